//! AF_XDP: frames go from the driver into memory of this process, past the kernel's stack, and
//! back.
//!
//! A socket gets frames of its own queue only, whatever an XDP program says. But several sockets
//! may be bound to one queue, and the program may hand a frame to any of them: so every worker has
//! a socket on every queue, and a flow finds its worker whatever queue it comes on. What the sockets
//! of a queue have in common is where the kernel takes empty chunks from and returns those that
//! were sent (its buffer pool); workers take turns at these, once a batch. Each worker sends on a
//! queue of its own as long as there are enough.

use std::ffi::c_int;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use net::{Batch, Pool};

use super::netdev::in_words;
use super::offload::complete_if_partial;
use super::port::{ETHERNET, Losses, OVERRUN, OVERSIZE, Port, REFUSED, RUNT, recycle_first};
use super::rings::{COMPLETION, Chunk, Consumer, Descriptor, FILL, Producer, RECEIVE, SEND, Umem};
use super::sys;

/// Entries of each ring, and the fewest.
const RING: u32 = 2048;
const LEAST: u32 = 256;
/// So many interfaces have such rings; of more, each has shorter ones.
const INTERFACES: usize = 12;
/// Bytes that the kernel keeps in front of a received frame.
const KERNEL_HEADROOM: usize = 256;
/// Bytes for VLAN tags, which the MTU does not count.
const TAGS: usize = 8;
/// The most pieces of a frame that is sent.
const MAX_PIECES: usize = 17;
/// Times that the kernel is asked to go on sending before the rest is left for later.
const KICKS: u32 = RING / 16;
/// Bytes of frames to be sent.
const SEND_BUFFER: c_int = 16 << 20;

/// How frames of an interface lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    chunk: usize,
    /// Whether a frame may lie in several chunks.
    pub(super) pieces: bool,
    /// The longest frame that is sent.
    longest: usize,
}

impl Layout {
    /// The smallest chunks that hold an interface's frames, or pieces of them.
    pub(super) fn of(mtu: usize) -> Self {
        let longest = mtu + ETHERNET + TAGS;
        let chunk = if longest + KERNEL_HEADROOM <= 2048 { 2048 } else { 4096 };
        Self { chunk, pieces: longest + KERNEL_HEADROOM > chunk, longest }
    }
}

/// What the sockets of a queue have in common.
struct Common {
    fill: Producer<Chunk>,
    completion: Consumer<Chunk>,
    /// Chunks for frames to send.
    free: Vec<Chunk>,
    /// How often the kernel had no chunk for a frame, so far, and how often of that no worker has counted the
    /// frame yet.
    out_of_chunks: u64,
    uncounted: u64,
}

impl Common {
    /// Takes back the chunks of frames that were sent.
    fn reclaim(&mut self, umem: &Umem) {
        if self.completion.available() == 0 {
            return;
        }
        while let Some(chunk) = self.completion.read() {
            self.free.push(umem.whole(chunk));
        }
        self.completion.release();
    }
}

/// A worker's socket on one queue.
struct Queue {
    receive: Consumer<Descriptor>,
    common: Arc<Mutex<Common>>,
    socket: OwnedFd,
    /// Frames that the kernel dropped, and those that there was no room for in the ring, so far.
    counted: [u64; 2],
    /// What waits of that which waited at the last mark.
    marked: u32,
    /// Chunks that were emptied, to be given back to the kernel.
    emptied: Vec<Chunk>,
}

impl Queue {
    /// What it shares. None if it does not wait, and another worker is at it.
    fn common(common: &Mutex<Common>, waits: bool) -> Option<MutexGuard<'_, Common>> {
        if waits {
            return Some(common.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match common.try_lock() {
            Ok(common) => Some(common),
            Err(TryLockError::Poisoned(common)) => Some(common.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Gives the kernel the chunks that were emptied. If it does not wait, and another worker is at what they share,
    /// they go back with the next ones.
    fn give_back(&mut self, waits: bool) {
        let Some(mut common) = Self::common(&self.common, waits) else { return };
        self.emptied.drain(..).for_each(|chunk| common.fill.write(chunk));
        common.fill.publish();
        let asleep = common.fill.needs_wakeup();
        drop(common);
        if asleep {
            sys::wake(&self.socket);
        }
    }
}

/// A worker's sockets.
pub(super) struct AfXdp {
    // Sockets and rings go before the memory that they use.
    queues: Vec<Queue>,
    /// The ring of the socket that sends, and which one that is.
    send: Producer<Descriptor>,
    sender: usize,
    umem: Arc<Umem>,
    /// Whether a frame may lie in several chunks.
    pieces: bool,
    longest: usize,
    /// Chunks for frames to send.
    free: Vec<Chunk>,
    /// Where receiving starts, so that no queue is forgotten over another.
    turn: usize,
    /// Whether senders leave checksums half done.
    partial: bool,
    /// Whether the driver and this process share the frames.
    zero_copy: bool,
    /// The first pieces of a frame whose others have not come.
    begun: Vec<u8>,
}

/// Entries of the rings of one of so many interfaces. All their memory is locked, whether or not
/// frames come, and so many interfaces are mostly idle.
pub(super) fn ring(interfaces: usize) -> u32 {
    let share = RING as usize * INTERFACES / interfaces.max(INTERFACES);
    (1u32 << share.ilog2()).clamp(LEAST, RING)
}

/// The same where they are shorter than those of few interfaces.
pub(super) fn shorter_ring(interfaces: usize) -> Option<u32> {
    Some(ring(interfaces)).filter(|ring| *ring < RING)
}

/// Entries of the ring that a worker receives from on one queue, where rings have so many. Each
/// worker's can be full without the queue being out of chunks for the others: a worker that is late
/// holds up nobody.
fn receive_ring(ring: u32, workers: usize) -> u32 {
    (2 * ring / workers as u32).next_power_of_two().clamp(ring / 8, ring)
}

impl AfXdp {
    /// Opens sockets of so many workers on all queues of the interface with this number.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(
        index: u32,
        queues: u32,
        workers: usize,
        layout: Layout,
        ring: u32,
    ) -> Result<Vec<Self>> {
        let Layout { chunk, pieces, longest } = layout;
        let to_receive = workers * receive_ring(ring, workers) as usize;
        // Both the ring to send and that of what was sent can be full.
        let to_send = |queue: u32| match (queue as usize) < workers {
            true => 2 * ring as usize,
            false => 0,
        };
        let count: usize = (0..queues).map(|queue| to_receive + to_send(queue)).sum();
        let (umem, mut chunks) = Umem::new(count, chunk)?;
        let umem = Arc::new(umem);
        let mut all: Vec<Vec<Queue>> = (0..workers).map(|_| Vec::new()).collect();
        let mut senders: Vec<Option<Producer<Descriptor>>> = (0..workers).map(|_| None).collect();
        for number in 0..queues {
            let mut common = None;
            for worker in 0..workers {
                let socket = sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
                let receive = Consumer::new(&socket, RECEIVE, receive_ring(ring, workers))?;
                if number as usize == worker % queues as usize {
                    // A smaller buffer only means that fewer frames are in flight at a time.
                    let _ = sys::set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER);
                    senders[worker] = Some(Producer::new(&socket, SEND, ring)?);
                }
                let mut address: libc::sockaddr_xdp = sys::zero();
                address.sxdp_family = libc::AF_XDP as u16;
                address.sxdp_ifindex = index;
                address.sxdp_queue_id = number;
                let first = all.first().and_then(|queues| queues.first());
                let share = match (worker, first) {
                    // The first of all brings the memory, the first of a queue its rings.
                    (0, None) => {
                        umem.register(&socket)?;
                        None
                    }
                    (0, first) => first,
                    _ => all[0].last(),
                };
                match share {
                    Some(with) => {
                        address.sxdp_flags = libc::XDP_SHARED_UMEM;
                        address.sxdp_shared_umem_fd = with.socket.as_raw_fd() as u32;
                    }
                    None => {
                        address.sxdp_flags = libc::XDP_USE_NEED_WAKEUP;
                        if layout.pieces {
                            address.sxdp_flags |= libc::XDP_USE_SG;
                        }
                    }
                }
                let common = match &common {
                    Some(common) => Arc::clone(common),
                    None => {
                        let size = (to_receive as u32).next_power_of_two();
                        let mut fill = Producer::new(&socket, FILL, size)?;
                        let completion = Consumer::new(&socket, COMPLETION, ring)?;
                        chunks.by_ref().take(to_receive).for_each(|chunk| fill.write(chunk));
                        fill.publish();
                        let free = chunks.by_ref().take(to_send(number)).collect();
                        let new = Common { fill, completion, free, out_of_chunks: 0, uncounted: 0 };
                        Arc::clone(common.insert(Arc::new(Mutex::new(new))))
                    }
                };
                sys::bind(&socket, &address)?;
                let (counted, marked, emptied) = ([0; 2], 0, Vec::new());
                all[worker].push(Queue { receive, common, socket, counted, marked, emptied });
            }
        }
        let options = all[0]
            .first()
            .map(|q| sys::get::<libc::xdp_options>(&q.socket, libc::SOL_XDP, libc::XDP_OPTIONS));
        let zero_copy = matches!(options, Some(Ok(o)) if o.flags & libc::XDP_OPTIONS_ZEROCOPY != 0);
        let port = |(worker, (queues, send)): (usize, (Vec<Queue>, Option<_>))| {
            Some(Self {
                sender: worker % queues.len(),
                queues,
                send: send?,
                umem: Arc::clone(&umem),
                pieces,
                longest,
                free: Vec::new(),
                turn: 0,
                partial: false,
                zero_copy,
                begun: Vec::new(),
            })
        };
        Ok(all.into_iter().zip(senders).enumerate().filter_map(port).collect())
    }

    /// Frames may come with checksums half done.
    pub(super) fn expect_partial_checksums(&mut self) {
        self.partial = true;
    }

    /// Whether the driver and this process share the frames, so that nothing is copied between
    /// them.
    pub(super) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// The sockets, by queue.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &OwnedFd> {
        self.queues.iter().map(|queue| &queue.socket)
    }

    /// Gets chunks for frames to send, at least this many if there are so many. It waits for another worker only where
    /// packets would be lost otherwise.
    fn provide(&mut self, chunks: usize, waits: bool) {
        let Some(missing) = chunks.checked_sub(self.free.len()) else { return };
        let common = &self.queues[self.sender].common;
        let Some(mut common) = Queue::common(common, waits) else { return };
        common.reclaim(&self.umem);
        let left = common.free.len().saturating_sub(missing);
        self.free.extend(common.free.drain(left..));
    }

    /// Has the kernel send what waits in the ring, until it has taken all or cannot take more.
    fn kick(&mut self) -> Result<()> {
        for _ in 0..KICKS {
            if self.send.waiting() == 0 || !self.send.needs_wakeup() {
                break;
            }
            let socket = &self.queues[self.sender].socket;
            match sys::kick(socket).map_err(|e| (sys::number(&e), e)) {
                // It takes some at a time, and says so.
                Ok(()) | Err((libc::EAGAIN | libc::EINTR, _)) => {}
                Err((libc::EBUSY | libc::ENOBUFS, _)) => break,
                Err((_, error)) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive_from(
        &mut self,
        at: usize,
        most: usize,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
    ) {
        let queue = &mut self.queues[at];
        let n = (queue.receive.available() as usize).min(most);
        if n == 0 {
            // No packet waits for this, and the worker may sleep next.
            if !queue.emptied.is_empty() {
                queue.give_back(true);
            }
            return;
        }
        for _ in 0..n {
            let Some(piece) = queue.receive.read() else { break };
            let (length, continues) = (piece.length(), piece.continues());
            let room = length.min(self.umem.chunk());
            if continues || !self.begun.is_empty() {
                let start = self.begun.len();
                self.begun.resize(start + room, 0);
                let read = self.umem.read(&piece, &mut self.begun[start..]);
                queue.emptied.push(self.umem.emptied(piece));
                if read.is_none() {
                    self.begun.clear();
                    losses.received(REFUSED, 1, length as u64);
                } else if !continues {
                    if self.partial {
                        complete_if_partial(&mut self.begun);
                    }
                    batch.push(pool.packet(&self.begun));
                    self.begun.clear();
                }
                continue;
            }
            let mut packet = pool.alloc(room);
            let read = self.umem.read(&piece, packet.data_mut());
            queue.emptied.push(self.umem.emptied(piece));
            match read {
                Some(()) if length >= ETHERNET => {
                    if self.partial {
                        complete_if_partial(packet.data_mut());
                    }
                    batch.push(packet);
                }
                read => {
                    let why = if read.is_some() { RUNT } else { REFUSED };
                    losses.received(why, 1, length as u64);
                    pool.recycle(packet);
                }
            }
        }
        queue.receive.release();
        queue.marked = queue.marked.saturating_sub(n as u32);
        queue.give_back(false);
    }
}

impl Port for AfXdp {
    fn receive(
        &mut self,
        most: usize,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
    ) -> Result<()> {
        let before = batch.len();
        let count = self.queues.len();
        for i in 0..count {
            let left = most.saturating_sub(batch.len() - before);
            if left == 0 {
                break;
            }
            let at = (self.turn + i) % count;
            self.receive_from(at, left, batch, pool, losses);
        }
        self.turn = (self.turn + 1) % count.max(1);
        if batch.len() == before {
            // What the kernel could not send when it was told to is not forgotten.
            self.kick()?;
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool, losses: &mut Losses) -> Result<()> {
        let mut done = 0;
        let mut result = Ok(());
        for waits in [false, true] {
            let chunk = self.umem.chunk();
            let pieces_of = |bytes: &[u8]| bytes.len().div_ceil(chunk).max(1);
            let pieces = batch.iter().skip(done).map(|packet| pieces_of(packet.data())).sum();
            self.provide(pieces, waits);
            for packet in batch.iter().skip(done) {
                let bytes = packet.data();
                let pieces = pieces_of(bytes);
                if bytes.len() < ETHERNET || bytes.len() > self.longest || pieces > MAX_PIECES {
                    let why = if bytes.len() < ETHERNET { RUNT } else { OVERSIZE };
                    losses.sent(why, 1, bytes.len() as u64);
                    done += 1;
                    continue;
                }
                if self.free.len() < pieces || (self.send.room() as usize) < pieces {
                    break;
                }
                for (i, piece) in bytes.chunks(chunk).enumerate() {
                    let Some(chunk) = self.free.pop() else { break };
                    self.send.write(self.umem.write(chunk, piece, i + 1 < pieces));
                }
                done += 1;
            }
            self.send.publish();
            result = self.kick();
            if done >= batch.len() || result.is_err() {
                break;
            }
        }
        // Those that are in the ring are the kernel's, whatever it says.
        recycle_first(done, batch, pool);
        result
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.queues.iter().map(|queue| queue.socket.as_raw_fd()).collect()
    }

    fn waiting(&mut self) -> Option<u64> {
        Some(self.queues.iter_mut().map(|queue| u64::from(queue.receive.available())).sum())
    }

    fn mark(&mut self) {
        for queue in &mut self.queues {
            queue.marked = queue.receive.available();
        }
    }

    fn is_drained(&mut self) -> bool {
        self.queues.iter().all(|queue| queue.marked == 0)
    }

    fn is_sent(&mut self) -> bool {
        self.send.waiting() == 0
    }

    fn count_overruns(&mut self, losses: &mut Losses) {
        for queue in &mut self.queues {
            let statistics: Result<libc::xdp_statistics> =
                sys::get(&queue.socket, libc::SOL_XDP, libc::XDP_STATISTICS);
            if let Ok(s) = statistics {
                let counted = [s.rx_dropped, s.rx_ring_full];
                let before = std::mem::replace(&mut queue.counted, counted);
                let [dropped, full] = [0, 1].map(|i| counted[i].saturating_sub(before[i]));
                // It drops a frame if there is no chunk for it, or if that is too short. Of all workers
                // together it tells how often the former was; which worker's frames these were is not told.
                let Some(mut common) = Queue::common(&queue.common, true) else { continue };
                let new = s.rx_fill_ring_empty_descs.saturating_sub(common.out_of_chunks);
                common.out_of_chunks += new;
                common.uncounted += new;
                let no_chunk = if self.pieces { dropped } else { dropped.min(common.uncounted) };
                common.uncounted = common.uncounted.saturating_sub(no_chunk);
                drop(common);
                losses.received(OVERSIZE, dropped - no_chunk, 0);
                losses.received(OVERRUN, no_chunk + full, 0);
            }
        }
    }
}

/// Why AF_XDP cannot be had, and the mend.
pub(super) fn explain(name: &str, error: &Error) -> String {
    match sys::number(error) {
        libc::EBUSY | libc::EEXIST => format!(
            "another XDP program or socket has {name}: end the program that set it up (perhaps another \
             catena), or, if `ip` did, say `ip link set {name} xdp off` or `xdpgeneric off`"
        ),
        libc::EAFNOSUPPORT => "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)".to_string(),
        libc::EOPNOTSUPP => format!("the driver of {name} has no XDP"),
        libc::ENOSPC => {
            format!(
                "the other end of {name} sends on more queues than {name} receives on; `ethtool -L {name} \
                 rx N` gives it more"
            )
        }
        libc::ERANGE | libc::EINVAL => {
            format!("the driver of {name} refuses XDP ({error}); its MTU may be too large")
        }
        libc::ENOBUFS | libc::ENOMEM => format!(
            "{error}: frames need locked memory; raise `ulimit -l` or give the program CAP_IPC_LOCK"
        ),
        libc::EPERM | libc::EACCES => format!(
            "{error}: needs the capabilities CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF; run it as root, or \
             give them to the program with setcap"
        ),
        _ => in_words(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All memory of the rings is locked, whether or not frames come.
    #[test]
    fn many_interfaces_lock_little_memory() {
        assert_eq!(
            [0, 1, 12, 13, 24, 100, 1000].map(ring),
            [2048, 2048, 2048, 1024, 1024, 256, 256]
        );
        let memory = |interfaces: usize| {
            let ring = ring(interfaces);
            // One worker, one queue.
            interfaces * (receive_ring(ring, 1) + 2 * ring) as usize * Layout::of(1500).chunk
        };
        assert!(memory(100) < 160 << 20, "{}", memory(100));
        assert!(memory(12) < 160 << 20 && memory(50) < 160 << 20);
        assert_eq!(
            [1, 2, 4, 8, 64].map(|workers| receive_ring(256, workers)),
            [256, 256, 128, 64, 32]
        );
    }
}
