//! AF_XDP: frames go from the driver into memory of this process, past the kernel's stack, and
//! back. One socket a queue; a worker's sockets share their memory.

use std::ffi::c_int;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use net::{Batch, Pool};

use super::bpf::SocketMap;
use super::offload::complete_if_partial;
use super::port::{ETHERNET, Losses, OVERRUN, OVERSIZE, Port, REFUSED, RUNT, recycle_first};
use super::rings::{COMPLETION, Consumer, Descriptor, FILL, Producer, RECEIVE, SEND, Umem};
use super::sys;

/// Entries of each ring.
const RING: u32 = 2048;
/// Bytes that the kernel keeps in front of a received frame.
const KERNEL_HEADROOM: usize = 256;
/// Bytes for VLAN tags, which the MTU does not count.
const TAGS: usize = 8;
/// The most pieces of a frame that is sent.
const MAX_PIECES: usize = 17;
/// Times that the kernel is told to go on sending before the rest is left for later.
const KICKS: u32 = RING / 16;
/// Bytes of frames on their way out.
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

/// One queue's socket and rings.
struct Queue {
    receive: Consumer<Descriptor>,
    send: Producer<Descriptor>,
    fill: Producer<u64>,
    completion: Consumer<u64>,
    socket: OwnedFd,
    /// Frames that the kernel dropped, as counted so far.
    dropped: u64,
}

/// A worker's queues.
pub(super) struct AfXdp {
    // Sockets and rings go before the memory that they use.
    queues: Vec<Queue>,
    umem: Umem,
    chunk: usize,
    longest: usize,
    /// Chunks for frames to send.
    free: Vec<u64>,
    /// Where receiving starts, so that no queue is forgotten over another.
    turn: usize,
    /// Whether senders leave checksums half done.
    partial: bool,
    /// Whether the driver and this process share the frames.
    zero_copy: bool,
    /// The first pieces of a frame whose others have not come.
    begun: Vec<u8>,
}

impl AfXdp {
    /// Opens sockets on these queues of the interface with this number. `partial` says that
    /// frames may come with checksums half done.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(index: u32, of: &[u32], layout: Layout, partial: bool) -> Result<Self> {
        let per_queue = 2 * RING as usize;
        let umem = Umem::new(of.len() * per_queue * layout.chunk)?;
        let mut queues: Vec<Queue> = Vec::with_capacity(of.len());
        let mut chunks = (0..of.len() * per_queue).map(|i| (i * layout.chunk) as u64);
        for &queue in of {
            let socket = sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
            // A smaller buffer only means that fewer frames are on their way at a time.
            let _ = sys::set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER);
            if queues.is_empty() {
                umem.register(&socket, layout.chunk as u32)?;
            }
            let mut fill = Producer::new(&socket, FILL, RING)?;
            let completion = Consumer::new(&socket, COMPLETION, RING)?;
            let receive = Consumer::new(&socket, RECEIVE, RING)?;
            let send = Producer::new(&socket, SEND, RING)?;
            chunks.by_ref().take(RING as usize).for_each(|chunk| fill.write(chunk));
            fill.publish();
            let mut address: libc::sockaddr_xdp = sys::zero();
            address.sxdp_family = libc::AF_XDP as u16;
            address.sxdp_ifindex = index;
            address.sxdp_queue_id = queue;
            match queues.first() {
                None => {
                    address.sxdp_flags = libc::XDP_USE_NEED_WAKEUP;
                    if layout.pieces {
                        address.sxdp_flags |= libc::XDP_USE_SG;
                    }
                }
                Some(first) => {
                    address.sxdp_flags = libc::XDP_SHARED_UMEM;
                    address.sxdp_shared_umem_fd = first.socket.as_raw_fd() as u32;
                }
            }
            sys::bind(&socket, &address)?;
            queues.push(Queue { receive, send, fill, completion, socket, dropped: 0 });
        }
        let options = queues
            .first()
            .map(|q| sys::get::<libc::xdp_options>(&q.socket, libc::SOL_XDP, libc::XDP_OPTIONS));
        let zero_copy = matches!(options, Some(Ok(o)) if o.flags & libc::XDP_OPTIONS_ZEROCOPY != 0);
        let free = chunks.collect();
        let Layout { chunk, longest, .. } = layout;
        Ok(Self {
            queues,
            umem,
            chunk,
            longest,
            free,
            turn: 0,
            partial,
            zero_copy,
            begun: Vec::new(),
        })
    }

    /// Whether the driver and this process share the frames, so that nothing is copied between
    /// them.
    pub(super) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Enters the sockets into the map of the program that hands them their frames.
    pub(super) fn enter(&self, map: &SocketMap, queues: &[u32]) -> Result<()> {
        let mut pairs = queues.iter().zip(&self.queues);
        pairs.try_for_each(|(queue, socket)| map.set(*queue, &socket.socket))
    }

    /// Takes back the chunks of frames that were sent.
    fn reclaim(&mut self) {
        for queue in &mut self.queues {
            let n = queue.completion.available();
            for _ in 0..n {
                self.free.push(queue.completion.read() / self.chunk as u64 * self.chunk as u64);
            }
            if n > 0 {
                queue.completion.release();
            }
        }
    }

    /// Has the kernel send what waits in the rings, until it has taken all or cannot take more.
    fn kick(&mut self) -> Result<()> {
        for queue in &self.queues {
            for _ in 0..KICKS {
                if queue.send.waiting() == 0 || !queue.send.needs_wakeup() {
                    break;
                }
                match sys::kick(&queue.socket).map_err(|e| (sys::number(&e), e)) {
                    // It takes some at a time, and says so.
                    Ok(()) | Err((libc::EAGAIN | libc::EINTR, _)) => {}
                    Err((libc::EBUSY | libc::ENOBUFS, _)) => break,
                    Err((_, error)) => return Err(error),
                }
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
            return;
        }
        for _ in 0..n {
            let piece = queue.receive.read();
            let length = piece.length as usize;
            let chunk = piece.address / self.chunk as u64 * self.chunk as u64;
            if piece.options & libc::XDP_PKT_CONTD != 0 || !self.begun.is_empty() {
                let start = self.begun.len();
                self.begun.resize(start + length.min(self.chunk), 0);
                let read = self.umem.read(piece.address, &mut self.begun[start..]);
                queue.fill.write(chunk);
                if read.is_none() {
                    self.begun.clear();
                    losses.received(REFUSED, 1, length as u64);
                } else if piece.options & libc::XDP_PKT_CONTD == 0 {
                    if self.partial {
                        complete_if_partial(&mut self.begun);
                    }
                    batch.push(pool.packet(&self.begun));
                    self.begun.clear();
                }
                continue;
            }
            let mut packet = pool.alloc(length.min(self.chunk));
            let read = self.umem.read(piece.address, packet.data_mut());
            queue.fill.write(chunk);
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
        queue.fill.publish();
        if queue.fill.needs_wakeup() {
            sys::wake(&queue.socket);
        }
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
        for _ in 0..2 {
            self.reclaim();
            let Some(queue) = self.queues.first_mut() else { break };
            for packet in batch.iter().skip(done) {
                let bytes = packet.data();
                let pieces = bytes.len().div_ceil(self.chunk).max(1);
                if bytes.len() < ETHERNET || bytes.len() > self.longest || pieces > MAX_PIECES {
                    let why = if bytes.len() < ETHERNET { RUNT } else { OVERSIZE };
                    losses.sent(why, 1, bytes.len() as u64);
                    done += 1;
                    continue;
                }
                if self.free.len() < pieces || (queue.send.room() as usize) < pieces {
                    break;
                }
                for (i, piece) in bytes.chunks(self.chunk).enumerate() {
                    let Some(address) = self.free.pop() else { break };
                    let whole = self.umem.write(address, piece).is_some();
                    debug_assert!(whole, "chunks are inside of the memory");
                    let options = if i + 1 < pieces { libc::XDP_PKT_CONTD } else { 0 };
                    queue.send.write(Descriptor { address, length: piece.len() as u32, options });
                }
                done += 1;
            }
            queue.send.publish();
            self.kick()?;
            if done >= batch.len() {
                break;
            }
        }
        recycle_first(done, batch, pool);
        Ok(())
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.queues.iter().map(|queue| queue.socket.as_raw_fd()).collect()
    }

    fn count_overruns(&mut self, losses: &mut Losses) {
        for queue in &mut self.queues {
            let statistics: Result<libc::xdp_statistics> =
                sys::get(&queue.socket, libc::SOL_XDP, libc::XDP_STATISTICS);
            if let Ok(s) = statistics {
                let dropped = s.rx_dropped.saturating_add(s.rx_ring_full);
                losses.received(OVERRUN, dropped.saturating_sub(queue.dropped), 0);
                queue.dropped = dropped;
            }
        }
    }
}

/// Why AF_XDP cannot be had, and the mend.
pub(super) fn explain(name: &str, error: &Error) -> String {
    match sys::number(error) {
        libc::EBUSY | libc::EEXIST => format!(
            "another XDP program or socket has {name}; `ip link set {name} xdp off` detaches a program"
        ),
        libc::EAFNOSUPPORT => "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)".to_string(),
        libc::EOPNOTSUPP => format!("the driver of {name} has no XDP"),
        libc::ENOSPC => {
            format!("the other end of {name} sends on more queues than {name} receives on")
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
        _ => error.to_string(),
    }
}
