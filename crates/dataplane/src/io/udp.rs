//! UDP sockets: datagrams of the host's own network stack, one or many in a system call, as frames. Their headers are the
//! stack's affair: what is sent loses them, and what comes is given some.

use std::io::{ErrorKind, Result};
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use elements::device::{Device, Event, Received, Wake};
use net::wire::{Ipv4, Udp, ether, ipv4, udp};
use net::{Batch, Pool};

use super::af_packet::large_buffers;
use super::messages::{Meaning, Receiver, Sender};
use super::port::{Losses, MOST, NO_ROOM, OVERRUN, OVERSIZE, REFUSED, TRUNCATED};
use super::sys;

/// Bytes of the headers of a frame with a UDP datagram: Ethernet, IPv4 without options, UDP.
pub const DATAGRAM_HEADERS: usize = ether::HEADER_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN;

/// A UDP socket between two addresses.
pub struct Datagrams {
    socket: OwnedFd,
    receiver: Receiver,
    sender: Sender,
    /// The headers of what comes, but for lengths.
    headers: [u8; DATAGRAM_HEADERS],
    /// Datagrams of a system call at most.
    at_once: usize,
    /// Datagrams that found no room in the socket, as the kernel counted them last; nothing of one that only sends.
    dropped: Option<u32>,
    losses: Losses,
}

/// The last of the numbers that `SO_MEMINFO` has: datagrams that found no room.
const DROPS: usize = 8;

impl Datagrams {
    /// Opens a socket: one to receive from, and the same to send by, up to `at_once` datagrams in a system call. `headers`
    /// are given to what comes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(
        local: SocketAddrV4,
        remote: SocketAddrV4,
        headers: [u8; DATAGRAM_HEADERS],
        at_once: usize,
    ) -> Result<(Self, Self)> {
        let socket = UdpSocket::bind(local)?;
        socket.connect(remote)?;
        socket.set_nonblocking(true)?;
        let socket = OwnedFd::from(socket);
        large_buffers(&socket);
        // The stack would leave checksums to a virtual interface, half done, and not every switch completes them. Over IPv4
        // there need be none (RFC 768).
        sys::set::<libc::c_int>(&socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, &1)?;
        let at_once = at_once.clamp(1, MOST);
        let of = |socket, dropped| {
            let (receiver, sender) = (Receiver::plain(at_once), Sender::new(at_once));
            let losses = Losses::default();
            Self { socket, receiver, sender, headers, at_once, dropped, losses }
        };
        Ok((of(socket.try_clone()?, Some(0)), of(socket, None)))
    }

    fn count_overruns(&mut self) {
        let Some(dropped) = &mut self.dropped else { return };
        let counts = sys::get::<[u32; DROPS + 1]>(&self.socket, libc::SOL_SOCKET, SO_MEMINFO);
        if let Ok(counts) = counts {
            let more = counts[DROPS].wrapping_sub(*dropped);
            *dropped = counts[DROPS];
            self.losses.received(OVERRUN, more.into(), 0);
        }
    }
}

/// Its number on all architectures of Linux that Rust's standard library has, but for SPARC and PA-RISC.
const SO_MEMINFO: libc::c_int = 55;

/// Writes the lengths into the headers of a frame.
fn set_lengths(frame: &mut [u8]) {
    let length = frame.len() - ether::HEADER_LEN;
    if let Some(mut packet) = Ipv4::new(&mut frame[ether::HEADER_LEN..]) {
        packet.set_total_len(length as u16);
        if let Some(mut datagram) = Udp::new(packet.payload_mut()) {
            datagram.set_len((length - ipv4::HEADER_LEN) as u16);
        }
    }
}

impl Device for Datagrams {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> std::result::Result<Received, String> {
        let Self { receiver, headers, losses, .. } = self;
        let most = burst.min(self.at_once);
        let received = receiver.receive(&self.socket, most, pool, |mut packet, message, pool| {
            if message.truncated {
                losses.received(TRUNCATED, 1, packet.len() as u64);
                return pool.recycle(packet);
            }
            packet.prepend(headers);
            set_lengths(packet.data_mut());
            batch.push(packet);
        });
        match received {
            Ok(_) => Ok(Received::More),
            // Nothing is there; or something that was sent came to nobody, who may come yet.
            Err(why)
                if matches!(
                    why.kind(),
                    ErrorKind::WouldBlock
                        | ErrorKind::Interrupted
                        | ErrorKind::ConnectionRefused
                        | ErrorKind::HostUnreachable
                ) =>
            {
                Ok(Received::More)
            }
            Err(why) => Err(format!("UDP socket: {why}")),
        }
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> std::result::Result<(), String> {
        for packet in batch.iter_mut() {
            packet.pull(DATAGRAM_HEADERS.min(packet.len()));
        }
        let Self { socket, sender, losses, .. } = self;
        let sent = sender.send_all(socket, batch, pool, losses, |error, _| match error {
            // A refusal tells of a datagram before.
            libc::EINTR | libc::ECONNREFUSED => Meaning::Again,
            libc::EAGAIN => Meaning::Full,
            libc::ENOBUFS => Meaning::Lost(NO_ROOM),
            libc::EMSGSIZE => Meaning::Lost(OVERSIZE),
            libc::ENETDOWN | libc::ENETUNREACH | libc::ENODEV => Meaning::Gone,
            _ => Meaning::Lost(REFUSED),
        });
        for packet in batch.iter_mut() {
            packet.push(DATAGRAM_HEADERS);
        }
        if sent.is_err() {
            pool.recycle_all(batch);
        }
        sent.map_err(|error| format!("UDP socket: {error}"))
    }

    fn wait_on(&self) -> Option<Wake> {
        Some(Wake::Readable(self.socket.as_raw_fd()))
    }

    fn next_event(&mut self) -> Option<Event> {
        if self.losses.is_empty() {
            self.count_overruns();
        }
        self.losses.next(false).or_else(|| self.losses.next(true))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    fn headers(from: u16, to: u16) -> [u8; DATAGRAM_HEADERS] {
        let mut frame = [0; DATAGRAM_HEADERS];
        let mut packet = Ipv4::new(&mut frame[ether::HEADER_LEN..]).unwrap();
        packet.set_header_len(ipv4::HEADER_LEN);
        packet.set_total_len((ipv4::HEADER_LEN + udp::HEADER_LEN) as u16);
        let mut datagram = Udp::new(packet.payload_mut()).unwrap();
        datagram.set_src_port(from);
        datagram.set_dst_port(to);
        frame
    }

    /// What sends, and what receives that.
    fn pair(at_once: usize) -> [Datagrams; 2] {
        // Ports that are free once these are dropped.
        let free = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let [a, b] = [free(), free()].map(|socket| socket.local_addr().unwrap().port());
        let at = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let [sends, receives] = [(a, b), (b, a)]
            .map(|(own, peer)| Datagrams::open(at(own), at(peer), headers(peer, own), at_once));
        [sends.unwrap().1, receives.unwrap().0]
    }

    #[test]
    fn frames_go_through_the_stack_and_get_headers() {
        for at_once in [1, 32] {
            let [mut a, mut b] = pair(at_once);
            let (mut pool, mut batch, mut came) = (Pool::new(), Batch::new(), Batch::new());
            for number in 0..100u8 {
                let mut frame = vec![0xee; DATAGRAM_HEADERS];
                frame.extend(vec![number; usize::from(number) + 1]);
                batch.push(pool.packet(&frame));
            }
            a.send(&mut batch, &mut pool).unwrap();
            assert!(batch.is_empty());
            while came.len() < 100 {
                assert!(sys::wait_readable(&[b.socket.as_raw_fd()], Duration::from_secs(10)));
                b.receive(256, &mut came, &mut pool).unwrap();
            }
            for (number, packet) in (0..100u8).zip(came.iter()) {
                let length = usize::from(number) + 1;
                let ip = Ipv4::new_checked(&packet.data()[ether::HEADER_LEN..]).unwrap();
                let datagram = Udp::new_checked(ip.payload()).unwrap();
                assert_eq!(usize::from(datagram.len()), udp::HEADER_LEN + length);
                assert_eq!(&packet.data()[DATAGRAM_HEADERS..], vec![number; length]);
            }
            pool.recycle_all(&mut came);
            assert_eq!((a.next_event(), b.next_event()), (None, None));
        }
    }

    #[test]
    fn what_finds_no_room_is_counted_and_nobody_there_is_no_error() {
        let [mut a, mut b] = pair(64);
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        let frame = vec![1; DATAGRAM_HEADERS + 1400];
        const SENT: u64 = 20_000;
        for _ in 0..SENT / 100 {
            (0..100).for_each(|_| batch.push(pool.packet(&frame)));
            a.send(&mut batch, &mut pool).unwrap();
            assert!(batch.is_empty());
        }
        let Some(Event::Lost { reason: OVERRUN, packets, sending: false, .. }) = b.next_event()
        else {
            panic!("nothing was lost");
        };
        let mut came = 0;
        while sys::wait_readable(&[b.socket.as_raw_fd()], Duration::ZERO) {
            b.receive(256, &mut batch, &mut pool).unwrap();
            came += batch.len() as u64;
            pool.recycle_all(&mut batch);
        }
        assert_eq!(came + packets, SENT);
        drop(b);
        for _ in 0..3 {
            batch.push(pool.packet(&frame));
            a.send(&mut batch, &mut pool).unwrap();
            assert!(batch.is_empty());
            assert_eq!(a.receive(32, &mut batch, &mut pool), Ok(Received::More));
        }
        batch.push(pool.packet(&[1; DATAGRAM_HEADERS - 1]));
        a.send(&mut batch, &mut pool).unwrap();
    }
}
