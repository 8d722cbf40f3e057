//! Many messages in one system call: recvmmsg(2) into packets and sendmmsg(2) out of them.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io::{Error, Result};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};

use ir::Reason;
use net::{BUFFER_SIZE, Batch, HEADROOM, Packet, Pool};

use super::offload::VNET_HEADER;
use super::port::{Losses, recycle_first};
use super::sys;

/// Bytes of a frame that go straight into a packet's buffer.
const STRAIGHT: usize = BUFFER_SIZE - HEADROOM;
/// Bytes of a super-frame beyond these.
const BEYOND: usize = (1 << 16) + 64 - STRAIGHT;
/// Words of a control message that holds a `tpacket_auxdata`.
const CONTROL: usize = 6;

/// What the kernel says of a received message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// What the frame's sender left to be done.
    pub(super) vnet: [u8; VNET_HEADER],
    /// The protocol and the value of the VLAN tag that was taken out of the frame.
    pub(super) vlan: Option<(u16, u16)>,
    /// Whether the frame was longer than there was room for.
    pub(super) truncated: bool,
}

/// Receives frames, each behind a `virtio_net_hdr` where a socket has them. Messages are prepared once; for the next call
/// only those that were used are prepared again, however many are asked for.
pub(super) struct Receiver {
    /// Bytes in front of each.
    front: usize,
    headers: Box<[libc::mmsghdr]>,
    pieces: Box<[[libc::iovec; 3]]>,
    vnet: Box<[[u8; VNET_HEADER]]>,
    control: Box<[[u64; CONTROL]]>,
    /// For each message what does not fit into its packet. The kernel writes there only when it
    /// must, so most of this memory is never touched.
    beyond: Box<[u8]>,
    /// The packets that the first messages are received into, a message each.
    packets: Vec<Packet>,
}

// SAFETY: the pointers in `headers` and `pieces` are to memory that the receiver owns and that
// stays where it is, on whatever thread that is.
unsafe impl Send for Receiver {}

impl Receiver {
    /// Receives up to `most` messages at a time, each behind a `virtio_net_hdr`.
    pub(super) fn new(most: usize) -> Self {
        Self::behind(VNET_HEADER, most)
    }

    /// Receives up to `most` messages at a time with nothing in front.
    pub(super) fn plain(most: usize) -> Self {
        Self::behind(0, most)
    }

    fn behind(front: usize, most: usize) -> Self {
        const NOTHING: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self {
            front,
            // SAFETY: a header of zeros is valid: no name, no pieces, no control message.
            headers: (0..most).map(|_| unsafe { zeroed() }).collect(),
            pieces: vec![[NOTHING; 3]; most].into_boxed_slice(),
            vnet: vec![[0; VNET_HEADER]; most].into_boxed_slice(),
            control: vec![[0; CONTROL]; most].into_boxed_slice(),
            beyond: vec![0; most * BEYOND].into_boxed_slice(),
            packets: Vec::with_capacity(most),
        }
    }

    /// Receives up to `most` messages that are there now, and hands each on.
    ///
    /// # Errors
    /// The kernel's; `WouldBlock` if nothing is there.
    pub(super) fn receive(
        &mut self,
        socket: &OwnedFd,
        most: usize,
        pool: &mut Pool,
        mut each: impl FnMut(Packet, Message, &mut Pool),
    ) -> Result<usize> {
        let most = most.min(self.headers.len());
        while self.packets.len() < most {
            let mut packet = pool.alloc(STRAIGHT);
            self.prepare(self.packets.len(), &mut packet);
            self.packets.push(packet);
        }
        let (fd, headers) = (socket.as_raw_fd(), self.headers.as_mut_ptr());
        // SAFETY: the first `most` headers were prepared: they point at pieces and control messages
        // of this structure and at the buffers of packets that it owns, with their lengths; nothing
        // of this is touched or moved until the call returns.
        let n = unsafe {
            let flags = libc::MSG_DONTWAIT;
            libc::recvmmsg(fd, headers, most as _, flags as _, std::ptr::null_mut())
        };
        if n < 0 {
            return Err(Error::last_os_error());
        }
        let n = (n as usize).min(most);
        for i in 0..n {
            let header = &self.headers[i];
            let truncated = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let length = (header.msg_len as usize).saturating_sub(self.front);
            let vlan = vlan(&self.control[i], header.msg_hdr.msg_controllen);
            let message = Message { vnet: self.vnet[i], vlan, truncated };
            let mut next = pool.alloc(STRAIGHT);
            self.prepare(i, &mut next);
            let mut packet = std::mem::replace(&mut self.packets[i], next);
            if length > STRAIGHT {
                let whole = length.min(STRAIGHT + BEYOND);
                let mut large = pool.alloc(whole);
                let (straight, rest) = large.data_mut().split_at_mut(STRAIGHT);
                straight.copy_from_slice(packet.data());
                rest.copy_from_slice(&self.beyond[i * BEYOND..][..rest.len()]);
                pool.recycle(std::mem::replace(&mut packet, large));
            }
            packet.truncate(length);
            each(packet, message, pool);
        }
        Ok(n)
    }

    /// Has a message be received into a packet.
    fn prepare(&mut self, i: usize, packet: &mut Packet) {
        let beyond = &mut self.beyond[i * BEYOND..(i + 1) * BEYOND];
        self.pieces[i] =
            [piece(&mut self.vnet[i][..self.front]), piece(packet.data_mut()), piece(beyond)];
        let header = &mut self.headers[i].msg_hdr;
        header.msg_iov = self.pieces[i].as_mut_ptr();
        header.msg_iovlen = 3;
        header.msg_control = self.control[i].as_mut_ptr().cast();
        header.msg_controllen = size_of::<[u64; CONTROL]>() as _;
    }
}

fn piece(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
}

/// The VLAN tag in a control message of this many bytes that holds a `tpacket_auxdata`.
fn vlan(control: &[u64; CONTROL], length: usize) -> Option<(u16, u16)> {
    // A length, a level and a type, then the data: status, lengths, offsets, the tag's value and
    // its protocol.
    const DATA: usize = 16;
    if length < DATA + 20 {
        return None;
    }
    let mut bytes = [0; size_of::<[u64; CONTROL]>()];
    for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(control) {
        *to = word.to_ne_bytes();
    }
    let word =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
    if (word(8), word(12)) != (libc::SOL_PACKET as u32, libc::PACKET_AUXDATA as u32) {
        return None;
    }
    tag(word(DATA), half(DATA + 18), half(DATA + 16))
}

/// The tag that a status word says is there: its protocol and its value.
pub(super) fn tag(status: u32, tpid: u16, tci: u16) -> Option<(u16, u16)> {
    let valid = status & libc::TP_STATUS_VLAN_VALID != 0;
    let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { tpid } else { 0x8100 };
    valid.then_some((tpid, tci))
}

/// What an error means for the packet that it is about.
pub(super) enum Meaning {
    /// It was about another: this one is sent once more.
    Again,
    /// There is no room now: it stays, with those behind it.
    Full,
    /// It is lost.
    Lost(Reason),
    /// So is the socket.
    Gone,
}

/// Sends frames.
pub(super) struct Sender {
    headers: Vec<libc::mmsghdr>,
    pieces: Vec<libc::iovec>,
}

// SAFETY: as for `Receiver`.
unsafe impl Send for Sender {}

impl Sender {
    /// Sends up to `most` frames at a time.
    pub(super) fn new(most: usize) -> Self {
        Self {
            // SAFETY: a header of zeros is valid: no name, no pieces, no control message.
            headers: (0..most).map(|_| unsafe { zeroed() }).collect(),
            pieces: vec![libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; most],
        }
    }

    /// Sends packets and recycles them; those for which there is no room now stay. `meaning` judges an error's number by the
    /// length of the packet.
    ///
    /// # Errors
    /// The kernel's, if the socket is gone; packets that stay in the batch were not sent.
    pub(super) fn send_all(
        &mut self,
        socket: &OwnedFd,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
        meaning: impl Fn(c_int, usize) -> Meaning,
    ) -> Result<()> {
        let mut done = 0;
        let mut result = Ok(());
        while done < batch.len() {
            let error = match self.send(socket, batch, done) {
                Ok(taken) => {
                    done += taken;
                    continue;
                }
                Err(error) => error,
            };
            let length = batch.as_slice()[done].len();
            match meaning(sys::number(&error), length) {
                Meaning::Again => {}
                Meaning::Full => break,
                Meaning::Lost(why) => {
                    losses.sent(why, 1, length as u64);
                    done += 1;
                }
                Meaning::Gone => {
                    result = Err(error);
                    break;
                }
            }
        }
        recycle_first(done, batch, pool);
        result
    }

    /// Sends the first packets of the batch from the `from`th on; how many were taken.
    ///
    /// # Errors
    /// The kernel's, about the first of them.
    fn send(&mut self, socket: &OwnedFd, batch: &mut Batch, from: usize) -> Result<usize> {
        let packets = batch.as_mut_slice().get_mut(from..).unwrap_or_default();
        let most = packets.len().min(self.headers.len());
        for (i, packet) in packets.iter_mut().take(most).enumerate() {
            self.pieces[i] = piece(packet.data_mut());
            self.headers[i].msg_hdr.msg_iov = &raw mut self.pieces[i];
            self.headers[i].msg_hdr.msg_iovlen = 1;
        }
        let (fd, headers) = (socket.as_raw_fd(), self.headers.as_mut_ptr());
        // SAFETY: the first `most` headers point at pieces of this structure, and these at the
        // bytes of packets in the batch; none of it is touched or moved until the call returns.
        let n = unsafe { libc::sendmmsg(fd, headers, most as _, libc::MSG_DONTWAIT as _) };
        if n < 0 { Err(Error::last_os_error()) } else { Ok((n as usize).min(most)) }
    }
}
