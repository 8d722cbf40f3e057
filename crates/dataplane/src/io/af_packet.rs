//! AF_PACKET: frames by system calls on a socket, one each or many at a time, or in by a ring of shared memory. Every
//! kernel has it.

use std::cell::Cell;
use std::ffi::c_int;
use std::io::{ErrorKind, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use net::{Batch, Packet, Pool};

use super::messages::{Meaning, Message, Receiver, Sender};
use super::offload::{VnetHeader, complete};
use super::packet_ring::PacketRing;
use super::port::{
    Backlog, ETHERNET, Losses, MOST, NO_ROOM, NOT_SEGMENTED, OVERRUN, OVERSIZE, Port, REFUSED,
    RUNT, TRUNCATED,
};
use super::sys;

/// Bytes of frames that the kernel keeps for a socket.
const SOCKET_BUFFER: c_int = 8 << 20;

/// Two sockets of an interface: one to receive from, one to send by sendmmsg(2).
pub(super) struct AfPacket {
    // The socket goes before the memory that it uses.
    socket: OwnedFd,
    receiving: Receiving,
    backlog: Backlog,
    sending: Sending,
}

enum Receiving {
    /// By recvmmsg(2), with so many messages in a call at most.
    Messages(Receiver, usize),
    Ring(PacketRing),
}

/// `ETH_P_ALL` in network byte order.
const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A socket that gets a copy of every frame that comes in on an interface, once it is bound.
pub(super) fn receiving_socket() -> Result<OwnedFd> {
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    large_buffer(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF);
    Ok(socket)
}

/// Sockets of workers that share the frames of an interface: a program says whose each is.
pub(super) struct Group {
    program: OwnedFd,
    /// The number that the kernel gave to the group for its first socket.
    number: Cell<Option<c_int>>,
}

impl Group {
    /// A group without sockets.
    pub(super) fn new(program: OwnedFd) -> Self {
        Self { program, number: Cell::new(None) }
    }

    fn join(&self, socket: &OwnedFd) -> Result<()> {
        let kind = libc::PACKET_FANOUT_EBPF as c_int;
        let fanout = match self.number.get() {
            Some(number) => number | kind << 16,
            // No other group has the number that the kernel finds, in this process or another.
            None => (kind | libc::PACKET_FANOUT_FLAG_UNIQUEID as c_int) << 16,
        };
        sys::set(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &fanout)?;
        let told: c_int = sys::get(socket, libc::SOL_PACKET, libc::PACKET_FANOUT)?;
        self.number.set(Some(told & 0xffff));
        spread_by(socket, &self.program)
    }
}

/// Has a socket get the frames of an interface: all that come in, none that go out; or, of those
/// that the sockets of a group share, its own.
pub(super) fn attach(socket: &OwnedFd, index: u32, group: Option<&Group>) -> Result<()> {
    sys::set::<c_int>(socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
    bind(socket, index, ALL)?;
    group.map_or(Ok(()), |group| group.join(socket))
}

fn bind(socket: &OwnedFd, index: u32, protocol: u16) -> Result<()> {
    let mut address: libc::sockaddr_ll = sys::zero();
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol;
    address.sll_ifindex = index as c_int;
    sys::bind(socket, &address)
}

/// A hold on an interface, by a socket that no frame comes to. As long as it is open the interface
/// takes frames for other stations, too: those of the addresses that a chain has.
pub(super) struct Hold {
    socket: OwnedFd,
    index: u32,
}

impl Hold {
    /// Takes hold of the interface with this number.
    pub(super) fn new(index: u32) -> Result<Self> {
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        bind(&socket, index, 0)?;
        let mut promiscuous: libc::packet_mreq = sys::zero();
        promiscuous.mr_ifindex = index as c_int;
        promiscuous.mr_type = libc::PACKET_MR_PROMISC as u16;
        sys::set(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
        Ok(Self { socket, index })
    }

    /// Whether the interface never left. One that was removed, or went to another namespace, has
    /// lost all that was open on it, also if it came back with the same number.
    pub(super) fn lasts(&self) -> bool {
        let address: Result<libc::sockaddr_ll> = sys::bound_to(&self.socket);
        address.is_ok_and(|address| address.sll_ifindex == self.index as c_int)
    }
}

/// Has the frames of the group of sockets that this one is of spread by this program.
fn spread_by(socket: &OwnedFd, program: &OwnedFd) -> Result<()> {
    sys::set(socket, libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &program.as_raw_fd())
}

/// Counts the frames that a socket could not keep since the last call; `statistics` is made of
/// packets and drops, and further numbers.
fn count_overruns(socket: &OwnedFd, losses: &mut Losses) {
    let counts = sys::get::<[u32; 3]>(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS);
    if let Ok([_, drops, _]) = counts {
        losses.received(OVERRUN, drops.into(), 0);
    }
}

/// The same in both directions.
pub(super) fn large_buffers(socket: &OwnedFd) {
    large_buffer(socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF);
    large_buffer(socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF);
}

fn large_buffer(socket: &OwnedFd, force: c_int, ask: c_int) {
    // Beyond the limit for everybody if that is allowed, else up to it: a smaller buffer loses
    // frames earlier, and these are counted.
    if sys::set(socket, libc::SOL_SOCKET, force, &SOCKET_BUFFER).is_err() {
        let _ = sys::set(socket, libc::SOL_SOCKET, ask, &SOCKET_BUFFER);
    }
}

impl AfPacket {
    /// Opens sockets on the interface with this number, with up to `most` messages in a system
    /// call.
    pub(super) fn open(index: u32, most: usize, group: Option<&Group>) -> Result<Self> {
        let socket = receiving_socket()?;
        sys::set::<c_int>(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
        sys::set::<c_int>(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1)?;
        let most = most.min(MOST);
        let receiving = Receiving::Messages(Receiver::new(most), most);
        Self::with(socket, receiving, index, most, group)
    }

    /// Opens sockets on the interface with this number and MTU, of which one receives by a ring.
    pub(super) fn open_ring(index: u32, group: Option<&Group>, mtu: usize) -> Result<Self> {
        let socket = receiving_socket()?;
        let ring = PacketRing::open(&socket, mtu)?;
        Self::with(socket, Receiving::Ring(ring), index, MOST, group)
    }

    fn with(
        socket: OwnedFd,
        receiving: Receiving,
        index: u32,
        most: usize,
        group: Option<&Group>,
    ) -> Result<Self> {
        attach(&socket, index, group)?;
        let sending = Sending::open(index, most)?;
        Ok(Self { socket, receiving, backlog: Backlog::default(), sending })
    }
}

/// Completes a frame that was received, or gives it up.
pub(super) fn accept(
    packet: Packet,
    message: Message,
    batch: &mut Batch,
    pool: &mut Pool,
    losses: &mut Losses,
) {
    let length = packet.len();
    let completed = if message.truncated {
        Err((packet, TRUNCATED))
    } else if length < ETHERNET {
        Err((packet, RUNT))
    } else {
        complete(packet, &VnetHeader::parse(&message.vnet), message.vlan, batch, pool)
    };
    if let Err((packet, why)) = completed {
        losses.received(why, 1, length as u64);
        pool.recycle(packet);
    }
}

impl Port for AfPacket {
    fn receive(
        &mut self,
        most: usize,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
    ) -> Result<()> {
        let received = match &mut self.receiving {
            Receiving::Ring(ring) => Ok(ring.receive(&self.socket, most, batch, pool, losses)),
            Receiving::Messages(receiver, at_once) => {
                let most = most.min(*at_once);
                receiver.receive(&self.socket, most, pool, |packet, message, pool| {
                    accept(packet, message, batch, pool, losses);
                })
            }
        };
        match received {
            Ok(count) => {
                self.backlog.received(count);
                Ok(())
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
            Err(e) if sys::number(&e) == libc::EINVAL => {
                // What is left to do to the frame cannot be said in the header; it is gone.
                losses.received(NOT_SEGMENTED, 1, 0);
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool, losses: &mut Losses) -> Result<()> {
        self.sending.send(batch, pool, losses)
    }

    fn descriptors(&self) -> Vec<RawFd> {
        vec![self.socket.as_raw_fd()]
    }

    fn spread_by(&mut self, program: &OwnedFd) -> Result<()> {
        spread_by(&self.socket, program)
    }

    fn waiting(&mut self) -> Option<u64> {
        match &self.receiving {
            Receiving::Ring(ring) => Some(ring.waiting()),
            Receiving::Messages(..) => None,
        }
    }

    fn mark(&mut self) {
        self.backlog.mark();
    }

    fn is_drained(&mut self) -> bool {
        let is_empty = match &self.receiving {
            Receiving::Ring(ring) => ring.is_empty(),
            Receiving::Messages(..) => true,
        };
        is_empty && self.backlog.is_over(&self.socket)
    }

    fn count_overruns(&mut self, losses: &mut Losses) {
        count_overruns(&self.socket, losses);
    }
}

/// A socket that only sends.
struct Sending {
    socket: OwnedFd,
    sender: Sender,
}

impl Sending {
    /// Opens one on the interface with this number.
    fn open(index: u32, most: usize) -> Result<Self> {
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        large_buffer(&socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF);
        sys::set::<c_int>(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)?;
        bind(&socket, index, 0)?;
        Ok(Self { socket, sender: Sender::new(most.min(MOST)) })
    }

    /// Sends packets and recycles them; those for which there is no room now stay.
    ///
    /// # Errors
    /// The kernel's; packets that stay in the batch were not sent.
    fn send(&mut self, batch: &mut Batch, pool: &mut Pool, losses: &mut Losses) -> Result<()> {
        self.sender.send_all(&self.socket, batch, pool, losses, |error, length| match error {
            libc::EINTR => Meaning::Again,
            libc::EAGAIN => Meaning::Full,
            libc::ENOBUFS => Meaning::Lost(NO_ROOM),
            libc::EMSGSIZE => Meaning::Lost(OVERSIZE),
            libc::EINVAL if length < ETHERNET => Meaning::Lost(RUNT),
            libc::ENETDOWN | libc::ENXIO | libc::ENODEV => Meaning::Gone,
            _ => Meaning::Lost(REFUSED),
        })
    }
}
