//! Interfaces and the XDP programs that are attached to them, over rtnetlink: what is attached so stays when the process
//! ends, and goes with the interface.

use std::io::{self, Error};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use super::super::sys;
use super::{KernelProgram, Loaded};

/// `struct nlmsghdr` and `struct ifinfomsg` (rtnetlink(7)).
const HEADER: usize = 16;
const ABOUT: usize = 16;

const ERROR: u16 = 2;
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const SET_LINK: u16 = 19;
const REQUEST: u16 = 1;
const ACK: u16 = 4;
/// In an error: the request is not repeated in it, and attributes follow.
const CAPPED: u16 = 0x100;
const TLVS: u16 = 0x200;
const MESSAGE: u16 = 1;

const NAME: u16 = 3;
const MTU: u16 = 4;
const XDP: u16 = 43;
const NESTED: u16 = 1 << 15;
const XDP_FD: u16 = 1;
const XDP_ATTACHED: u16 = 2;
const XDP_FLAGS: u16 = 3;
const XDP_ID: u16 = 4;
const XDP_EXPECTED: u16 = 8;

const IF_NONE: u32 = 1;
const GENERIC: u32 = 1 << 1;
const DRIVER: u32 = 1 << 2;
const REPLACE: u32 = 1 << 4;

const IFF_UP: u32 = 1;
const SOL_NETLINK: i32 = 270;
const CAP_ACK: i32 = 10;
const EXT_ACK: i32 = 11;
/// Names of interfaces are shorter.
const IFNAMSIZ: usize = 16;
/// How long the kernel may take to switch a card's program.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the kernel runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the interface's driver, before there is a socket buffer.
    Driver,
    /// In the kernel's stack, for any interface.
    Generic,
    /// On the card itself.
    Card,
}

impl XdpMode {
    fn flag(self) -> u32 {
        match self {
            XdpMode::Driver => DRIVER,
            XdpMode::Generic => GENERIC,
            XdpMode::Card => 1 << 3,
        }
    }
}

/// An interface, and what is attached to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct There {
    /// Its number.
    pub index: u32,
    /// Whether it is switched on.
    pub is_up: bool,
    /// Bytes of the longest packets that it sends.
    pub mtu: u32,
    /// The number of the program that is attached, and where it runs.
    pub program: Option<(u32, XdpMode)>,
}

/// The interfaces of a network namespace.
#[derive(Debug)]
pub struct Links {
    socket: OwnedFd,
    sequence: u32,
}

impl Links {
    /// Those of the calling thread's.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Self> {
        let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        for option in [CAP_ACK, EXT_ACK] {
            sys::set(&socket, SOL_NETLINK, option, &1)?;
        }
        Ok(Self { socket, sequence: 0 })
    }

    /// An interface; none if there is none of this name.
    ///
    /// # Errors
    /// The kernel's.
    pub fn get(&mut self, name: &str) -> io::Result<Option<There>> {
        if name.is_empty() || name.len() >= IFNAMSIZ {
            return Ok(None);
        }
        let mut attributes = Vec::new();
        attribute(&mut attributes, NAME, &[name.as_bytes(), &[0]].concat());
        match self.ask(GET_LINK, REQUEST, 0, &attributes) {
            Ok(answer) => Ok(there(&answer)),
            Err(error) if sys::number(&error) == libc::ENODEV => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Attaches a program to an interface, in the place of another one or of none. If another one is attached by now,
    /// nothing is changed.
    ///
    /// # Errors
    /// The kernel's, with what it says of it.
    pub fn attach(
        &mut self,
        index: u32,
        mode: XdpMode,
        to: (&Loaded, usize),
        instead: Option<&KernelProgram>,
    ) -> io::Result<()> {
        self.set(index, mode, Some(to.0.program(to.1)?), instead.map(|found| &found.program))
    }

    /// Replaces a program that was loaded with one that was found.
    ///
    /// # Errors
    /// As above.
    pub fn put_back(
        &mut self,
        index: u32,
        mode: XdpMode,
        was: Option<&KernelProgram>,
        instead: (&Loaded, usize),
    ) -> io::Result<()> {
        let expected = instead.0.program(instead.1)?;
        self.set(index, mode, was.map(|found| &found.program), Some(expected))
    }

    /// Takes a program away. If another one is attached by now, nothing is changed.
    ///
    /// # Errors
    /// As above.
    pub fn detach(&mut self, index: u32, mode: XdpMode, what: &KernelProgram) -> io::Result<()> {
        self.set(index, mode, None, Some(&what.program))
    }

    fn set(
        &mut self,
        index: u32,
        mode: XdpMode,
        to: Option<&OwnedFd>,
        expected: Option<&OwnedFd>,
    ) -> io::Result<()> {
        let number = |fd: &OwnedFd| fd.as_raw_fd().to_ne_bytes();
        let mut nested = Vec::new();
        attribute(&mut nested, XDP_FD, &to.map_or((-1_i32).to_ne_bytes(), number));
        let how = match expected {
            Some(expected) => {
                attribute(&mut nested, XDP_EXPECTED, &number(expected));
                REPLACE
            }
            None => IF_NONE,
        };
        attribute(&mut nested, XDP_FLAGS, &(how | mode.flag()).to_ne_bytes());
        let mut attributes = Vec::new();
        attribute(&mut attributes, XDP | NESTED, &nested);
        self.ask(SET_LINK, REQUEST | ACK, index, &attributes).map(drop)
    }

    /// Sends a request; the body of what answers it.
    fn ask(&mut self, kind: u16, flags: u16, index: u32, rest: &[u8]) -> io::Result<Vec<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = (HEADER + ABOUT + rest.len()) as u32;
        let mut message = Vec::with_capacity(length as usize);
        message.extend(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(index.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(rest);
        rustix::net::send(self.socket.as_fd(), &message, rustix::net::SendFlags::empty())?;
        let mut room = vec![0; 1 << 15];
        loop {
            if !sys::wait_readable(&[self.socket.as_raw_fd()], PATIENCE) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let flags = rustix::net::RecvFlags::empty();
            let (count, _) = rustix::net::recv(self.socket.as_fd(), &mut room[..], flags)?;
            for (kind, flags, sequence, body) in messages(&room[..count]) {
                match kind {
                    _ if sequence != self.sequence => {}
                    ERROR => return refusal(flags, body).map(|()| Vec::new()),
                    _ => return Ok([&kind.to_ne_bytes(), body].concat()),
                }
            }
        }
    }
}

/// The messages of a datagram: kind, flags, sequence number and body.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, u16, u32, &[u8])> {
    std::iter::from_fn(move || {
        let length = word(bytes, 0)? as usize;
        let body = bytes.get(HEADER..length)?;
        let (kinds, sequence) = (bytes.get(4..8)?, word(bytes, 8)?);
        let half = |at: usize| u16::from_ne_bytes([kinds[at], kinds[at + 1]]);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((half(0), half(2), sequence, body))
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend((4 + value.len() as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Attributes, by kind.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [a, b, c, d] = *bytes.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & !NESTED, value))
    })
}

/// What an error says; 0 is none.
fn refusal(flags: u16, body: &[u8]) -> io::Result<()> {
    let number = word(body, 0).unwrap_or_default() as i32;
    if number == 0 {
        return Ok(());
    }
    let error = Error::from_raw_os_error(-number);
    // Behind the request, of which only the header is there if it is capped.
    let request = match flags & CAPPED {
        0 => word(body, 4).unwrap_or_default() as usize,
        _ => HEADER,
    };
    let rest = body.get(4 + request..).filter(|_| flags & TLVS != 0).unwrap_or_default();
    let said = attributes(rest).find(|(kind, _)| *kind == MESSAGE).map(|(_, text)| text);
    match said.map(|text| String::from_utf8_lossy(text.strip_suffix(&[0]).unwrap_or(text))) {
        Some(said) if number != -libc::EPERM => {
            Err(Error::new(error.kind(), format!("{error}: {said}")))
        }
        _ => Err(error),
    }
}

fn there(answer: &[u8]) -> Option<There> {
    let (kind, body) = answer.split_first_chunk()?;
    if u16::from_ne_bytes(*kind) != NEW_LINK {
        return None;
    }
    let (index, flags) = (word(body, 4)?, word(body, 8)?);
    let (mut id, mut mode, mut mtu) = (0, 0, 0);
    for (kind, value) in attributes(body.get(ABOUT..)?) {
        match kind {
            MTU => mtu = word(value, 0)?,
            XDP => {
                for (kind, value) in attributes(value) {
                    match kind {
                        XDP_ATTACHED => mode = *value.first()?,
                        XDP_ID => id = word(value, 0)?,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let mode = match mode {
        1 => Some(XdpMode::Driver),
        2 => Some(XdpMode::Generic),
        // Programs for cards beside others are not distinguished.
        3 | 4 => Some(XdpMode::Card),
        _ => None,
    };
    Some(There { index, is_up: flags & IFF_UP != 0, mtu, program: mode.map(|mode| (id, mode)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_cut_off_are_read() {
        let mut nested = Vec::new();
        attribute(&mut nested, XDP_ATTACHED, &[1]);
        attribute(&mut nested, XDP_ID, &77_u32.to_ne_bytes());
        let mut body = vec![0; ABOUT];
        body[4] = 5;
        body[8] = 1;
        attribute(&mut body, MTU, &1500_u32.to_ne_bytes());
        attribute(&mut body, XDP | NESTED, &nested);
        let answer = [&NEW_LINK.to_ne_bytes()[..], &body].concat();
        let whole =
            There { index: 5, is_up: true, mtu: 1500, program: Some((77, XdpMode::Driver)) };
        assert_eq!(there(&answer), Some(whole));
        for end in 0..answer.len() {
            let _ = there(&answer[..end]);
            let _ = messages(&answer[..end]).count();
        }
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1000 {
            let bytes: Vec<u8> = (0..random.usize(..64)).map(|_| random.u8(..)).collect();
            let _ =
                (there(&bytes), messages(&bytes).count(), refusal(TLVS | CAPPED, &bytes).is_ok());
        }
    }
}
