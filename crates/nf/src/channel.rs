//! The socket between the host and an NF: messages with descriptors.
//!
//! It is a pair of sockets, one end of which is the NF's standard input: no path leads to it, and whoever speaks there is
//! the process that was given it.

use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

use crate::abi::{
    CACHE, LONGEST_MESSAGE, MOST_COUNTERS, MOST_DESCRIPTORS, MOST_REASONS, VERSION, flag, kind,
};
use crate::flow::Flow;
use crate::memory::Memory;
use crate::page::Layout;
use crate::store::{Answer, Update, answer_texts, parse_updates, read_flows};

/// A message as it came.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) kind: u32,
    pub(crate) version: u32,
    pub(crate) body: Vec<u8>,
    pub(crate) files: Vec<OwnedFd>,
}

pub(crate) fn send(
    socket: impl AsFd,
    kind: u32,
    body: &[u8],
    files: &[BorrowedFd<'_>],
) -> Result<()> {
    let mut text = Vec::with_capacity(8 + body.len());
    text.extend_from_slice(&kind.to_le_bytes());
    text.extend_from_slice(&VERSION.to_le_bytes());
    text.extend_from_slice(body);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(&text)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(crate) fn receive(socket: impl AsFd) -> Result<Message> {
    let mut text = vec![0; 8 + LONGEST_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut text)];
    let got = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(all) = message {
            files.extend(all);
        }
    }
    let number = |at: usize| {
        text.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
    };
    let is_whole = (8..=text.len()).contains(&got.bytes)
        && !got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    match (number(0), number(4)) {
        _ if got.bytes == 0 => Err(ErrorKind::UnexpectedEof.into()),
        (Some(kind), Some(version)) if is_whole => {
            let body = text[8..got.bytes].to_vec();
            Ok(Message { kind, version, body, files })
        }
        _ => Err(Error::new(ErrorKind::InvalidData, "a message that is none of the ABI")),
    }
}

/// Receives a message of a kind, on the NF's side.
pub(crate) fn expect(
    socket: &OwnedFd,
    kind: u32,
) -> Result<(Vec<u8>, std::vec::IntoIter<OwnedFd>)> {
    let message = receive(socket)?;
    if message.version != VERSION {
        let text =
            format!("the host has version {} of the ABI, and this NF {VERSION}", message.version);
        return Err(Error::new(ErrorKind::InvalidData, text));
    }
    match message.kind == kind {
        true => Ok((message.body, message.files.into_iter())),
        false => Err(Error::new(ErrorKind::InvalidData, "another message than was due")),
    }
}

/// The names that an NF gave, and whether it keeps state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Its counters.
    pub counters: Vec<String>,
    /// Its reasons to drop.
    pub reasons: Vec<String>,
    /// Whether it keeps state of flows.
    pub has_state: bool,
}

impl Names {
    pub(crate) fn text(&self) -> String {
        let counters = self.counters.iter().map(|name| format!("counter {name}\n"));
        let reasons = self.reasons.iter().map(|name| format!("reason {name}\n"));
        counters.chain(reasons).chain(self.has_state.then(|| "state\n".into())).collect()
    }

    /// Reads what an NF sent.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &[u8]) -> std::result::Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "names that are no UTF-8")?;
        let mut names = Self::default();
        for line in text.lines() {
            if line == "state" && !names.has_state {
                names.has_state = true;
                continue;
            }
            let (all, name) = match line.split_once(' ') {
                Some(("counter", name)) => (&mut names.counters, name),
                Some(("reason", name)) => (&mut names.reasons, name),
                _ => {
                    return Err(format!(
                        "a line that names neither a counter, a reason nor state: {line:?}"
                    ));
                }
            };
            if !is_name(name) {
                return Err(format!("{name:?} is no name: letters, digits and `_-`, at most 40"));
            }
            if all.iter().any(|other| other == name) {
                return Err(format!("'{name}' is named twice"));
            }
            all.push(name.to_string());
        }
        match names.counters.len() > MOST_COUNTERS || names.reasons.len() > MOST_REASONS {
            true => Err(format!("more than {MOST_COUNTERS} counters or {MOST_REASONS} reasons")),
            false => Ok(names),
        }
    }
}

/// Whether this can be the name of a counter or a reason.
pub(crate) fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=40).contains(&name.len()) && name.bytes().all(is_good)
}

/// Why an NF was not attached.
#[derive(Debug)]
pub enum Trouble {
    /// It ended before it was ready.
    Ended,
    /// It said nothing in time.
    Silent,
    /// It has another version of the ABI.
    Version(u32),
    /// It refuses, and says why.
    Refused(String),
    /// It does not keep to the ABI.
    Abi(String),
    /// The kernel refuses something.
    System(Error),
}

impl From<Error> for Trouble {
    fn from(why: Error) -> Self {
        match why.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                Self::Ended
            }
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Silent,
            ErrorKind::InvalidData => Self::Abi(why.to_string()),
            _ => Self::System(why),
        }
    }
}

/// What an NF is given.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// How memory is laid out.
    pub layout: Layout,
    /// Whether it may write to packets.
    pub writes: bool,
    /// Its page.
    pub page: &'a Memory,
    /// What wakes it.
    pub wake: BorrowedFd<'a>,
    /// What wakes who comes next.
    pub wake_next: BorrowedFd<'a>,
    /// Where packets are when they come.
    pub input: &'a Memory,
    /// Where it copies them to, if it does.
    pub own: Option<&'a Memory>,
    /// How state of flows is kept, if the host does that.
    pub state: Option<Kept>,
}

/// How a host keeps state of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Whether packets whose state cannot be read pass the NF.
    pub opens: bool,
    /// Flows that the NF's runtime holds at most.
    pub cache: u32,
}

/// The host's end of the socket to an NF.
#[derive(Debug)]
pub struct HostEnd(OwnedFd);

impl HostEnd {
    /// A pair: the host's end, and the one that becomes the NF's standard input.
    ///
    /// # Errors
    /// The kernel's.
    pub fn pair() -> Result<(Self, OwnedFd)> {
        let (near, far) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(near), far))
    }

    /// How long the NF may take for each answer.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_patience(&self, patience: Duration) -> Result<()> {
        Ok(set_socket_timeout(&self.0, Timeout::Recv, Some(patience))?)
    }

    fn expect(&self, kind: u32) -> std::result::Result<Message, Trouble> {
        let message = receive(&self.0)?;
        match message.kind {
            _ if message.version != VERSION => Err(Trouble::Version(message.version)),
            kind::REFUSED => {
                let said: String =
                    String::from_utf8_lossy(&message.body).chars().take(400).collect();
                Err(Trouble::Refused(said.replace(|letter: char| letter.is_control(), " ")))
            }
            other if other == kind => Ok(message),
            other => Err(Trouble::Abi(format!("message {other:#x} where {kind:#x} was due"))),
        }
    }

    /// Waits until an NF says which version of the ABI it has, which is the first that it does.
    ///
    /// # Errors
    /// If it has another one, or does not say so.
    pub fn hello(&self) -> std::result::Result<(), Trouble> {
        self.expect(kind::HELLO).map(drop)
    }

    /// Gives an NF what it writes to. Once all of a chain have it, their memory is closed to writers.
    ///
    /// # Errors
    /// Why it did not take it.
    pub fn attach(&self, offer: &Offer<'_>) -> std::result::Result<(), Trouble> {
        self.hello()?;
        let mut flags = 0;
        let mut files = vec![offer.page.file().as_fd(), offer.wake, offer.wake_next];
        if offer.writes {
            flags |= flag::WRITES;
        }
        match offer.own {
            Some(own) => {
                flags |= flag::COPIES;
                files.push(own.file().as_fd());
            }
            None if offer.writes => files.push(offer.input.file().as_fd()),
            None => {}
        }
        if let Some(state) = offer.state {
            flags |= flag::STORE | if state.opens { flag::OPEN } else { 0 };
        }
        let cache = offer.state.map_or(CACHE, |state| state.cache);
        let Layout { buffers, buffer_size, capacity } = offer.layout;
        let numbers = [flags, buffers, buffer_size, capacity, cache];
        let body: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        send(&self.0, kind::ATTACH, &body, &files)?;
        self.expect(kind::ATTACHED).map(drop)
    }

    /// Gives an NF what it reads, and its configuration.
    ///
    /// # Errors
    /// If that cannot be sent.
    pub fn begin(
        &self,
        offer: &Offer<'_>,
        host: &Memory,
        before: &Memory,
        config: &str,
    ) -> std::result::Result<(), Trouble> {
        let mut files = vec![host.read_only()?, before.read_only()?];
        if offer.own.is_some() || !offer.writes {
            files.push(offer.input.read_only()?);
        }
        let files: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        Ok(send(&self.0, kind::BEGIN, config.as_bytes(), &files)?)
    }

    /// Waits until it has initialised itself.
    ///
    /// # Errors
    /// Why it has not.
    pub fn ready(&self) -> std::result::Result<Names, Trouble> {
        Names::parse(&self.expect(kind::READY)?.body).map_err(Trouble::Abi)
    }

    /// Waits for what an NF asks of its state while it runs, however long that takes.
    ///
    /// # Errors
    /// If it ended, or does not keep to the ABI.
    pub fn asked(&self) -> std::result::Result<Asked, Trouble> {
        let Message { kind, version, body, .. } = receive(&self.0)?;
        let asked = match kind {
            _ if version != VERSION => return Err(Trouble::Version(version)),
            kind::READ => read_flows(&body).map(Asked::Read),
            kind::UPDATE => parse_updates(&body).map(Asked::Update),
            _ => None,
        };
        asked.ok_or_else(|| Trouble::Abi(format!("a message {kind:#x} about state that is none")))
    }

    /// Answers what it reads, flow by flow.
    ///
    /// # Errors
    /// If it ended, or does not receive it.
    pub fn answer(&self, answers: &[Answer]) -> Result<()> {
        answer_texts(answers).iter().try_for_each(|text| send(&self.0, kind::VALUES, text, &[]))
    }

    /// From now on it is waited for without end, and it has so long to receive an answer.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_running(&self, longest: Duration) -> Result<()> {
        set_socket_timeout(&self.0, Timeout::Recv, None)?;
        Ok(set_socket_timeout(&self.0, Timeout::Send, Some(longest))?)
    }

    /// Ends what is said here: who waits for a message waits no more.
    pub fn close(&self) {
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}

/// What an NF asks of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// What is kept of these flows.
    Read(Vec<Flow>),
    /// That this is kept.
    Update(Vec<Update>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_bad_ones_refused() {
        let names = Names {
            counters: vec!["seen".into()],
            reasons: vec!["denied".into(), "odd".into()],
            has_state: true,
        };
        assert_eq!(Names::parse(names.text().as_bytes()), Ok(names));
        let many = "reason a\n".repeat(2);
        let long = format!("counter {}", "a".repeat(41));
        for bad in
            ["x", "reason ", "reason a b", "reason a\u{1b}", "state\nstate", &many, &long, "\u{0}"]
        {
            assert!(Names::parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        let more: String = (0..=MOST_REASONS).map(|number| format!("reason r{number}\n")).collect();
        assert!(Names::parse(more.as_bytes()).is_err());
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let (line, far) = HostEnd::pair().unwrap();
        let offered = |bytes: &[u8]| {
            rustix::io::write(&far, bytes).unwrap();
            line.expect(kind::HELLO).err().map(|why| format!("{why:?}")).unwrap_or_default()
        };
        assert!(offered(b"short").contains("Abi"));
        assert!(offered(b"lo\x46\x4e\x02\x00\x00\x00").contains("Abi"));
        assert!(offered(&[1, 0, 0x46, 0x4e, 1, 0, 0, 0]).contains("Version(1)"));
        assert_eq!(offered(&[1, 0, 0x46, 0x4e, 2, 0, 0, 0]), "");
        drop(far);
        assert!(matches!(line.expect(kind::HELLO), Err(Trouble::Ended)));
    }
}
