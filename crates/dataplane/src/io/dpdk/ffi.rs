//! DPDK's functions, each behind one that is safe to call. What is inline or a structure of
//! DPDK's is wrapped in `shim.c`.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

use net::{Batch, Buffer, Loan, Pool};

/// The most frames at a time, as in `shim.c`.
pub(super) const MOST: usize = 256;

/// The beginning of a buffer of DPDK's; `shim.c` has it checked that it is that of `struct
/// rte_mbuf`.
#[repr(C)]
struct Mbuf {
    buf_addr: *mut u8,
    buf_iova: u64,
    data_off: u16,
    refcnt: u16,
    nb_segs: u16,
    port: u16,
    ol_flags: u64,
    packet_type: u32,
    pkt_len: u32,
    data_len: u16,
    vlan_tci: u16,
    hash: [u32; 2],
    vlan_tci_outer: u16,
    buf_len: u16,
}

/// A buffer of DPDK's that was received.
struct Received(NonNull<Mbuf>);

// SAFETY: DPDK's pools may be used by any thread.
unsafe impl Send for Received {}

// SAFETY: a buffer has its memory to itself until it is given back; that was zero when DPDK got it.
unsafe impl Loan for Received {
    fn into_raw(self) -> NonNull<()> {
        ManuallyDrop::new(self).0.cast()
    }

    unsafe fn memory(raw: NonNull<()>) -> NonNull<[u8]> {
        // SAFETY: the buffer is the handle's, and its address is not null.
        let (start, length) = unsafe {
            let Mbuf { buf_addr, buf_len, .. } = *raw.cast::<Mbuf>().as_ptr();
            (NonNull::new_unchecked(buf_addr), buf_len.into())
        };
        NonNull::slice_from_raw_parts(start, length)
    }

    unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Self(raw.cast())
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // SAFETY: the buffer is this handle's, which goes.
        unsafe { catena_dpdk_give_back(self.0.as_ptr()) }
    }
}

/// `struct port` of `shim.c`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PortInfo {
    driver: [c_char; 64],
    number: u16,
    receive_queues: u16,
    send_queues: u16,
    mtu: u16,
    longest: u32,
    spreads: u8,
    probed: u8,
}

/// What a port has counted since it was opened; `struct counts` of `shim.c`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) received: u64,
    pub(super) missed: u64,
    pub(super) no_buffers: u64,
    pub(super) receive_errors: u64,
    pub(super) send_errors: u64,
}

unsafe extern "C" {
    fn catena_dpdk_listen();
    fn catena_dpdk_heard() -> *mut c_char;
    fn catena_dpdk_start(count: c_int, arguments: *mut *mut c_char) -> c_int;
    fn catena_dpdk_find(
        arguments: *const c_char,
        name: *const c_char,
        port: *mut PortInfo,
    ) -> c_int;
    fn catena_dpdk_open(
        port: *const PortInfo,
        queues: u16,
        spread: c_int,
        pool: *mut *mut c_void,
    ) -> c_int;
    fn catena_dpdk_close(port: *const PortInfo);
    fn catena_dpdk_free(pool: *mut c_void) -> c_int;
    fn catena_dpdk_is_up(port: u16) -> c_int;
    fn catena_dpdk_count(port: u16, counts: *mut Counts);
    fn catena_dpdk_receive(
        port: u16,
        queue: u16,
        pool: *mut c_void,
        mbufs: *mut *mut Mbuf,
        most: u16,
        lent: *mut c_int,
    ) -> u16;
    fn catena_dpdk_take(mbuf: *mut Mbuf, to: *mut u8, room: u32);
    fn catena_dpdk_copy(pool: *mut c_void, bytes: *const u8, length: u32) -> *mut Mbuf;
    fn catena_dpdk_prepare(bytes: *const u8, length: u32) -> *mut c_void;
    fn catena_dpdk_take_prepared(
        pool: *mut c_void,
        mbufs: *mut *mut Mbuf,
        count: u32,
        length: u32,
    ) -> c_int;
    fn catena_dpdk_give_back(mbuf: *mut Mbuf);
    fn catena_dpdk_give_all_back(mbufs: *mut *mut Mbuf, count: u32);
    fn catena_dpdk_send(port: u16, queue: u16, mbufs: *mut *mut Mbuf, count: u16) -> u16;
    fn rte_thread_register() -> c_int;
    fn rte_thread_unregister();
    fn rte_version() -> *const c_char;
}

/// DPDK's name and version.
pub(super) fn version() -> String {
    // SAFETY: the function returns a string that lives as long as the process.
    unsafe { CStr::from_ptr(rte_version()) }.to_string_lossy().into_owned()
}

/// Does something and keeps what DPDK says meanwhile; one thread at a time.
fn listen<T>(work: impl FnOnce() -> T) -> (T, String) {
    static LISTENING: Mutex<()> = Mutex::new(());
    let _one = LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: nobody else listens.
    unsafe { catena_dpdk_listen() };
    let result = work();
    // SAFETY: the string, if there is one, was allocated for this call and is freed once.
    let heard = unsafe {
        let heard = catena_dpdk_heard();
        let text = match heard.is_null() {
            true => String::new(),
            false => CStr::from_ptr(heard).to_string_lossy().into_owned(),
        };
        libc::free(heard.cast());
        text
    };
    (result, heard)
}

fn check(result: c_int) -> Result<(), std::io::Error> {
    if result < 0 { Err(std::io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

/// Why DPDK refused something: its error, and what it said.
pub(super) struct Refusal {
    pub(super) error: std::io::Error,
    pub(super) said: String,
}

fn refuse(result: c_int, said: String) -> Result<(), Refusal> {
    check(result).map_err(|error| Refusal { error, said })
}

/// Starts DPDK; to be called once.
///
/// # Errors
/// DPDK's.
pub(super) fn start(arguments: Vec<CString>) -> Result<(), Refusal> {
    let (answer, answered) = std::sync::mpsc::sync_channel(1);
    // EAL binds the thread that it starts in to a CPU; no other thread shall be bound by this.
    let thread = std::thread::Builder::new().name("dpdk".into()).spawn(move || {
        let mut pointers: Vec<*mut c_char> =
            arguments.iter().map(|a| a.as_ptr().cast_mut()).collect();
        let count = pointers.len() as c_int;
        pointers.push(null_mut());
        let (result, said) = listen(|| {
            // SAFETY: `count` strings, and a null pointer behind them, all of which live for the
            // call; EAL keeps copies.
            unsafe { catena_dpdk_start(count, pointers.as_mut_ptr()) }
        });
        let _ = answer.send((result, said));
    });
    thread.map_err(|error| Refusal { error, said: String::new() })?;
    let (result, said) = answered.recv().unwrap_or((-libc::EFAULT, String::new()));
    refuse(result, said)
}

/// A port that is known and not open.
pub(super) struct ClosedPort(PortInfo);

impl ClosedPort {
    /// Finds the port of the device of this name, which is made with these arguments if there is
    /// none. DPDK must have been started.
    ///
    /// # Errors
    /// DPDK's.
    pub(super) fn new(arguments: &CStr, name: &CStr) -> Result<Self, Refusal> {
        // SAFETY: a structure of integers.
        let mut info: PortInfo = unsafe { std::mem::zeroed() };
        let (result, said) = listen(|| {
            // SAFETY: two strings and a structure that live for the call.
            unsafe { catena_dpdk_find(arguments.as_ptr(), name.as_ptr(), &raw mut info) }
        });
        refuse(result, said)?;
        Ok(Self(info))
    }

    pub(super) fn driver(&self) -> String {
        // SAFETY: the shim ends the name with a zero inside of the array.
        unsafe { CStr::from_ptr(self.0.driver.as_ptr()) }.to_string_lossy().into_owned()
    }

    /// Bytes of the longest packet.
    pub(super) fn mtu(&self) -> usize {
        self.0.mtu.into()
    }

    /// The most queues that it can have in either direction.
    pub(super) fn queues(&self) -> usize {
        self.0.receive_queues.min(self.0.send_queues).into()
    }

    /// Whether it can spread flows over queues.
    pub(super) fn spreads(&self) -> bool {
        self.0.spreads != 0
    }

    /// Starts it with so many queues, over which it spreads flows, both directions to the same, if
    /// it is told to.
    ///
    /// # Errors
    /// DPDK's.
    pub(super) fn open(self, queues: u16, spread: bool) -> Result<Vec<Queue>, Refusal> {
        let mut device = Device { port: self.0, pool: Mempool(null_mut()) };
        let (result, said) = listen(|| {
            // SAFETY: the structure was filled by the shim; `pool` takes a pointer.
            unsafe { catena_dpdk_open(&device.port, queues, spread.into(), &raw mut device.pool.0) }
        });
        refuse(result, said)?;
        let device = Arc::new(device);
        let queue = |number| Queue {
            prepared: None,
            device: Arc::clone(&device),
            number,
            mbufs: [null_mut(); MOST],
        };
        Ok((0..queues).map(queue).collect())
    }
}

/// Buffers of DPDK's.
struct Mempool(*mut c_void);

// SAFETY: DPDK's pools may be used by any thread.
unsafe impl Send for Mempool {}

/// Pools of ports that were closed while packets still lay in their buffers, or other ports still
/// sent them.
static LEFT: Mutex<Vec<Mempool>> = Mutex::new(Vec::new());

/// A port that is open, and the pool that its frames lie in.
struct Device {
    port: PortInfo,
    pool: Mempool,
}

// SAFETY: DPDK's ports and pools may be used by any thread; each queue is used by one at a time,
// as it is used through `&mut Queue` only.
unsafe impl Sync for Device {}

impl Drop for Device {
    fn drop(&mut self) {
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        left.push(Mempool(self.pool.0));
        let _ = listen(|| {
            // SAFETY: the port was opened, or failed to be, and all its queues are gone.
            unsafe { catena_dpdk_close(&self.port) };
            // SAFETY: these pools are of no port; one that is freed is forgotten.
            left.retain(|pool| unsafe { catena_dpdk_free(pool.0) == 0 });
        });
    }
}

/// A pool whose buffers all have the same frame in them, and those of them that are to be sent next.
struct Prepared {
    pool: Mempool,
    length: usize,
    mbufs: [*mut Mbuf; MOST],
    /// How many of `mbufs` are to be sent.
    waiting: usize,
}

impl Prepared {
    /// Gives back what was to be sent; how many buffers that were.
    fn give_back(&mut self) -> usize {
        let waiting = std::mem::take(&mut self.waiting);
        for &mbuf in &self.mbufs[..waiting] {
            // SAFETY: the buffer was taken from the pool and not sent.
            unsafe { catena_dpdk_give_back(mbuf) };
        }
        waiting
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.give_back();
        // The device may have some still.
        LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(Mempool(self.pool.0));
    }
}

/// A queue to receive from and one to send to, of the same number.
pub(super) struct Queue {
    /// What was prepared to be sent over and over. It goes before the device, which frees the pool.
    prepared: Option<Box<Prepared>>,
    device: Arc<Device>,
    number: u16,
    mbufs: [*mut Mbuf; MOST],
}

// SAFETY: between calls the pointers in `mbufs` mean nothing, and those to prepared buffers are its own, which any thread may
// give back.
unsafe impl Send for Queue {}

impl Queue {
    /// Appends up to `most` frames that are there now: in the buffers that they came in, while there are enough of them.
    /// Gives the length of the shortest.
    pub(super) fn receive(&mut self, most: usize, batch: &mut Batch, pool: &mut Pool) -> usize {
        be_an_lcore();
        let most = most.min(MOST) as u16;
        let (port, mbufs) = (self.device.port.number, self.mbufs.as_mut_ptr());
        let (buffers, mut lent) = (self.device.pool.0, 0);
        // SAFETY: there is room for `most` pointers; nobody else uses the queue, as it is borrowed.
        let n =
            unsafe { catena_dpdk_receive(port, self.number, buffers, mbufs, most, &raw mut lent) };
        let mbufs = &self.mbufs[..usize::from(n).min(MOST)];
        let mut shortest = usize::MAX;
        if lent == 0 {
            for &mbuf in mbufs {
                // SAFETY: the buffer was just received, and is nobody else's.
                let length = unsafe { (*mbuf).pkt_len };
                let mut packet = pool.alloc(length as usize);
                let to = packet.data_mut().as_mut_ptr();
                // SAFETY: as above, and there is room for the frame; it is not used any more.
                unsafe { catena_dpdk_take(mbuf, to, length) };
                batch.push(packet);
                shortest = shortest.min(length as usize);
            }
            return shortest;
        }
        let lend = |&mbuf: &*mut Mbuf| {
            // SAFETY: the buffer was just received, and is nobody else's; the pointer is not null.
            let (received, Mbuf { data_off, pkt_len, .. }) =
                unsafe { (Received(NonNull::new_unchecked(mbuf)), &*mbuf) };
            let (start, length) = (usize::from(*data_off), *pkt_len as usize);
            shortest = shortest.min(length);
            (Buffer::lent(received), start, length)
        };
        pool.lend(batch, mbufs.iter().map(lend));
        shortest
    }

    /// Shows up to `most` frames that are there now, and gives their buffers back; how many these were.
    pub(super) fn receive_each(&mut self, most: usize, mut read: impl FnMut(&[u8])) -> usize {
        be_an_lcore();
        let most = most.min(MOST) as u16;
        let (port, all) = (self.device.port.number, self.mbufs.as_mut_ptr());
        let (buffers, mut lent) = (self.device.pool.0, 0);
        // SAFETY: there is room for `most` pointers; nobody else uses the queue, as it is borrowed.
        let n =
            unsafe { catena_dpdk_receive(port, self.number, buffers, all, most, &raw mut lent) };
        for mbuf in &mut self.mbufs[..usize::from(n).min(MOST)] {
            // SAFETY: the buffer was just received, and is nobody else's.
            let Mbuf { buf_addr, data_off, nb_segs, pkt_len, data_len, .. } = unsafe { &**mbuf };
            if *nb_segs == 1 {
                // SAFETY: so many bytes of the buffer are the frame, and were written by who received it.
                read(unsafe {
                    let start = buf_addr.add(usize::from(*data_off));
                    std::slice::from_raw_parts(start, usize::from(*data_len))
                });
                continue;
            }
            let mut whole = vec![0; *pkt_len as usize];
            // SAFETY: there is room for the frame, whose buffers are not used any more.
            unsafe { catena_dpdk_take(*mbuf, whole.as_mut_ptr(), whole.len() as u32) };
            *mbuf = null_mut();
            read(&whole);
        }
        // SAFETY: as above; null pointers are passed over.
        unsafe { catena_dpdk_give_all_back(all, n.into()) };
        usize::from(n)
    }

    /// Sends the first packets, as long as their lengths are among these, and recycles them: as
    /// many as there is room for. How many that were.
    pub(super) fn send(
        &mut self,
        lengths: Range<usize>,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> usize {
        be_an_lcore();
        let mut count = 0;
        for (mbuf, packet) in self.mbufs.iter_mut().zip(batch.iter()) {
            let length = packet.len();
            if !lengths.contains(&length) {
                break;
            }
            *mbuf = match packet.loan::<Received>() {
                Some(loan) => {
                    let mbuf: *mut Mbuf = loan.as_ptr().cast();
                    // SAFETY: the packet lies in the buffer, which nobody else has.
                    let to = unsafe { &mut *mbuf };
                    to.data_off = packet.headroom() as u16;
                    (to.data_len, to.pkt_len) = (length as u16, length as u32);
                    to.ol_flags = 0;
                    mbuf
                }
                // SAFETY: the bytes live for the call, and the pool as long as the device.
                None => unsafe {
                    let bytes = packet.data().as_ptr();
                    catena_dpdk_copy(self.device.pool.0, bytes, length as u32)
                },
            };
            if mbuf.is_null() {
                break;
            }
            count += 1;
        }
        let (port, mbufs) = (self.device.port.number, self.mbufs.as_mut_ptr());
        // SAFETY: the first `count` buffers are nobody else's; those that are sent are let go of
        // below. Nobody else uses the queue, as it is borrowed.
        let sent = unsafe { catena_dpdk_send(port, self.number, mbufs, count) };
        let sent = usize::from(sent);
        let unsent = sent..usize::from(count);
        for (&mbuf, packet) in self.mbufs[unsent.clone()].iter().zip(&batch.as_slice()[unsent]) {
            if packet.loan::<Received>().is_none() {
                // SAFETY: a copy that was made above.
                unsafe { catena_dpdk_give_back(mbuf) };
            }
        }
        pool.recycle_sent::<Received>(sent, batch);
        sent
    }

    /// Has a pool whose buffers have copies of a frame in them; whether there is memory for it.
    pub(super) fn prepare(&mut self, frame: &[u8]) -> bool {
        // SAFETY: the bytes live for the call.
        let pool = unsafe { catena_dpdk_prepare(frame.as_ptr(), frame.len() as u32) };
        let prepared =
            |pool| Prepared { pool, length: frame.len(), mbufs: [null_mut(); MOST], waiting: 0 };
        self.prepared = (!pool.is_null()).then(|| Box::new(prepared(Mempool(pool))));
        self.prepared.is_some()
    }

    /// Sends so many prepared copies, at most [`MOST`], each after it was changed. Of how many there was room for; the others come
    /// first next time.
    pub(super) fn send_prepared(
        &mut self,
        count: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> usize {
        be_an_lcore();
        let (port, number) = (self.device.port.number, self.number);
        let Some(prepared) = &mut self.prepared else { return 0 };
        let (count, length) = (count.min(MOST), prepared.length);
        if let Some(new @ [_, ..]) = prepared.mbufs.get_mut(prepared.waiting..count) {
            let (to, more) = (new.as_mut_ptr(), new.len() as u32);
            // SAFETY: there is room for as many pointers.
            let taken =
                unsafe { catena_dpdk_take_prepared(prepared.pool.0, to, more, length as u32) };
            if taken == 0 {
                for &mut mbuf in new {
                    // SAFETY: the buffer was just taken, so that it is nobody else's, and has so many bytes, which were
                    // written when the pool was made.
                    write(unsafe {
                        let start = (*mbuf).buf_addr.add(usize::from((*mbuf).data_off));
                        std::slice::from_raw_parts_mut(start, length)
                    });
                }
                prepared.waiting = count;
            }
        }
        let ready = prepared.waiting.min(count);
        let mbufs = prepared.mbufs.as_mut_ptr();
        // SAFETY: the first buffers are nobody else's; those that are sent are let go of below. Nobody else uses the
        // queue, as it is borrowed.
        let sent = usize::from(unsafe { catena_dpdk_send(port, number, mbufs, ready as u16) });
        if sent < prepared.waiting {
            prepared.mbufs.copy_within(sent..prepared.waiting, 0);
        }
        prepared.waiting -= sent;
        sent
    }

    /// Gives up what was prepared and not sent: frames and bytes.
    pub(super) fn drop_prepared(&mut self) -> (u64, u64) {
        let Some(prepared) = &mut self.prepared else { return (0, 0) };
        let count = prepared.give_back();
        (count as u64, (count * prepared.length) as u64)
    }

    /// Bytes of the longest frame that can be sent.
    pub(super) fn longest(&self) -> usize {
        self.device.port.longest as usize
    }

    /// Its number among the port's.
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    /// Whether the port's link is up.
    pub(super) fn is_up(&self) -> bool {
        // SAFETY: the port is open.
        unsafe { catena_dpdk_is_up(self.device.port.number) != 0 }
    }

    /// What the port has counted.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        // SAFETY: the port is open, and the structure is one of integers.
        unsafe { catena_dpdk_count(self.device.port.number, &raw mut counts) };
        counts
    }
}

/// A thread that DPDK knows has buffers at hand, and need not get each from where all threads do.
struct Lcore(bool);

impl Drop for Lcore {
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: this thread was registered.
            unsafe { rte_thread_unregister() }
        }
    }
}

thread_local! {
    // SAFETY: any thread may be registered once DPDK was started, and a queue exists only then.
    static LCORE: Lcore = Lcore(unsafe { rte_thread_register() } == 0);
}

/// Has DPDK know the calling thread. Without it frames are carried, too, but slower.
#[inline]
fn be_an_lcore() {
    LCORE.with(|_| ());
}
