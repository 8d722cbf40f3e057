//! A connection that speaks OpenFlow 1.3: requests, answers and bundles, each within some time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use codegen::openflow::Flow;
use codegen::openflow::codec::{
    self, ATOMIC, Bundle, Command, Error, Message, Reply, Request, Stats, decode, encode, length,
};
use ir::topology::Address;

use super::failure::Failure;

/// Entries that a switch may report: what it says beyond that is not believed.
const MOST_ENTRIES: usize = 1 << 21;

/// Parts of an answer.
const MOST_PARTS: usize = 1 << 16;

/// Messages that are sent before it is heard whether the switch took them.
const CHUNK: usize = 512;

/// Messages of a bundle take effect in their order.
const ORDERED: u16 = 2;

/// The only bundle of a connection.
const BUNDLE: u32 = 1;

/// Sends and receives bytes.
trait Stream: Read + Write + Send {
    fn patience(&self, patience: Duration) -> io::Result<()>;
}

impl Stream for UnixStream {
    fn patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))?;
        self.set_write_timeout(Some(patience))
    }
}

impl Stream for TcpStream {
    fn patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))?;
        self.set_write_timeout(Some(patience))
    }
}

pub(super) struct Client {
    stream: Box<dyn Stream>,
    /// What was received and not looked at.
    received: Vec<u8>,
    /// The last transaction number.
    number: u32,
    patience: Duration,
}

/// A change to an entry.
pub(super) type Change = (Command, Flow);

/// Why a bundle was refused, and by which of its changes.
pub(super) struct Refused {
    pub(super) change: Option<usize>,
    pub(super) error: Error,
}

/// What became of a bundle.
pub(super) type Outcome = Result<Result<(), Refused>, Failure>;

impl Client {
    pub(super) fn connect(address: &Address, patience: Duration) -> Result<Self, Failure> {
        let unreachable = |why: io::Error| Failure::Unreachable(why.kind(), why.to_string());
        let stream: Box<dyn Stream> = match address {
            Address::Xdp(_) => {
                let why = "the kernel's XDP speaks no OpenFlow".into();
                return Err(Failure::Unreachable(ErrorKind::Unsupported, why));
            }
            Address::Unix(path) => Box::new(UnixStream::connect(path).map_err(unreachable)?),
            Address::Tcp(host, port) => {
                let mut last = io::Error::from(ErrorKind::NotFound);
                let all = (host.as_str(), *port)
                    .to_socket_addrs()
                    .map_err(|why| Failure::Unreachable(ErrorKind::Other, why.to_string()))?;
                let mut found = None;
                for address in all {
                    match TcpStream::connect_timeout(&address, patience) {
                        Ok(stream) => {
                            found = Some(stream);
                            break;
                        }
                        Err(why) => last = why,
                    }
                }
                let stream = found.ok_or(last).map_err(unreachable)?;
                // Small messages go at once.
                stream.set_nodelay(true).map_err(unreachable)?;
                Box::new(stream)
            }
        };
        let mut client = Self { stream, received: Vec::new(), number: 0, patience };
        client.greet()?;
        Ok(client)
    }

    fn greet(&mut self) -> Result<(), Failure> {
        let deadline = self.deadline();
        let own = 1u32 << codec::VERSION;
        self.send(&[(1, Message::Hello { version: codec::VERSION, versions: own })], deadline)?;
        self.number = 1;
        match self.receive(deadline, "a greeting")?.1 {
            Message::Hello { version, versions: 0 } if version >= codec::VERSION => Ok(()),
            Message::Hello { version, versions: 0 } => Err(Failure::Version(vec![version])),
            Message::Hello { versions, .. } if versions & own != 0 => Ok(()),
            Message::Hello { versions, .. } => {
                Err(Failure::Version((1..32).filter(|n| versions >> n & 1 == 1).collect()))
            }
            // Nothing in common (§6.3.1).
            Message::Error(Error { kind: 0, code: 0, .. }) => Err(Failure::Version(Vec::new())),
            _ => Err(Failure::Malformed("it does not begin with a greeting".into())),
        }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// Time that is left until then.
    fn left(&self, deadline: Instant, what: &'static str) -> Result<(), Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(Failure::Silent(self.patience, what)),
            false => self.stream.patience(left).map_err(|_| Failure::Closed),
        }
    }

    fn send(&mut self, messages: &[(u32, Message)], deadline: Instant) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        messages.iter().for_each(|(number, message)| encode(message, *number, &mut bytes));
        self.left(deadline, "to what it is sent")?;
        self.stream.write_all(&bytes).map_err(|why| match why.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                Failure::Silent(self.patience, "to what it is sent")
            }
            _ => Failure::Closed,
        })
    }

    /// The next message that is no question whether anybody is there.
    fn receive(
        &mut self,
        deadline: Instant,
        what: &'static str,
    ) -> Result<(u32, Message), Failure> {
        loop {
            let malformed = |why: codec::Malformed| Failure::Malformed(why.to_string());
            let whole = length(&self.received).map_err(malformed)?;
            if let Some(whole) = whole.filter(|whole| *whole <= self.received.len()) {
                let message = decode(&self.received[..whole]).map_err(malformed);
                self.received.drain(..whole);
                match message? {
                    (number, Message::EchoRequest(data)) => {
                        self.send(&[(number, Message::EchoReply(data))], deadline)?;
                    }
                    message => return Ok(message),
                }
                continue;
            }
            self.left(deadline, what)?;
            let mut bytes = [0; 1 << 16];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(Failure::Closed),
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if matches!(why.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
                    return Err(Failure::Silent(self.patience, what));
                }
                Err(_) => return Err(Failure::Closed),
            }
        }
    }

    fn next(&mut self) -> u32 {
        self.number = self.number.wrapping_add(1);
        self.number
    }

    /// The answer to a request, or the switch's error.
    pub(super) fn ask(
        &mut self,
        message: Message,
        what: &'static str,
    ) -> Result<Result<Message, Error>, Failure> {
        let (deadline, number) = (self.deadline(), self.next());
        self.send(&[(number, message)], deadline)?;
        loop {
            // What comes unasked, of ports and packets, is for others.
            match self.receive(deadline, what)? {
                (of, Message::Error(error)) if of == number => return Ok(Err(error)),
                (of, answer) if of == number => return Ok(Ok(answer)),
                _ => {}
            }
        }
    }

    /// Something that is not answered unless it is refused.
    pub(super) fn tell(
        &mut self,
        message: Message,
        what: &'static str,
    ) -> Result<Result<(), Error>, Failure> {
        let (deadline, number, barrier) = (self.deadline(), self.next(), self.next());
        self.send(&[(number, message), (barrier, Message::BarrierRequest)], deadline)?;
        let mut told = Ok(());
        loop {
            match self.receive(deadline, what)? {
                (of, Message::Error(error)) if of == number => told = Err(error),
                (of, Message::Barrier) if of == barrier => return Ok(told),
                _ => {}
            }
        }
    }

    /// All parts of an answer.
    pub(super) fn parts(
        &mut self,
        request: Request,
        what: &'static str,
    ) -> Result<Result<Vec<Reply>, Error>, Failure> {
        let (deadline, number) = (self.deadline(), self.next());
        self.send(&[(number, Message::Request(request))], deadline)?;
        let mut parts = Vec::new();
        loop {
            match self.receive(deadline, what)? {
                (of, Message::Error(error)) if of == number => return Ok(Err(error)),
                (of, Message::Reply { more, reply }) if of == number => {
                    parts.push(reply);
                    if !more {
                        return Ok(Ok(parts));
                    }
                    if parts.len() > MOST_PARTS {
                        return Err(Failure::Malformed("its answer has no end".into()));
                    }
                }
                (of, _) if of == number => {
                    return Err(Failure::Malformed("it answers something else".into()));
                }
                _ => {}
            }
        }
    }

    /// Entries by their cookies.
    pub(super) fn flows(
        &mut self,
        cookie: u64,
        mask: u64,
    ) -> Result<Result<Vec<Stats>, Error>, Failure> {
        let parts = match self.parts(Request::Flows { cookie, mask }, "which entries it has")? {
            Ok(parts) => parts,
            Err(error) => return Ok(Err(error)),
        };
        let mut all = Vec::new();
        for part in parts {
            match part {
                Reply::Flows(mut some) => all.append(&mut some),
                _ => return Err(Failure::Malformed("it answers something else".into())),
            }
            if all.len() > MOST_ENTRIES {
                return Err(Failure::Malformed(format!("it has more than {MOST_ENTRIES} entries")));
            }
        }
        Ok(Ok(all))
    }

    /// Carries changes out, all or none.
    pub(super) fn commit(&mut self, changes: &[Change], mask: u64) -> Outcome {
        let flags = ATOMIC | ORDERED;
        let step = |step| Message::Bundle { id: BUNDLE, step, flags };
        let what = "to a bundle of changes";
        if let Err(error) = self.ask(step(Bundle::Open), what)? {
            return Ok(Err(Refused { change: None, error }));
        }
        let first = self.number.wrapping_add(1);
        let mut refused = None;
        for chunk in changes.chunks(CHUNK) {
            let deadline = self.deadline();
            let mut messages = Vec::with_capacity(chunk.len() + 1);
            for (command, flow) in chunk {
                let number = self.next();
                let change = Message::FlowMod {
                    command: *command,
                    // Of others' entries none is deleted, whatever became of them meanwhile.
                    cookie_mask: if *command == Command::Add { 0 } else { mask },
                    flow: flow.clone(),
                };
                let mut message = Vec::new();
                encode(&change, number, &mut message);
                messages.push((number, Message::BundleAdd { id: BUNDLE, flags, message }));
            }
            // An answer to this says that all before was looked at.
            let echo = self.next();
            messages.push((echo, Message::EchoRequest(Vec::new())));
            self.send(&messages, deadline)?;
            self.settle(deadline, echo, first, &mut refused, |m| {
                matches!(m, Message::EchoReply(_))
            })?;
            if let Some((number, error)) = refused {
                self.ask(step(Bundle::Discard), what)?.ok();
                let change = self.change(first, number, changes.len());
                return Ok(Err(Refused { change, error }));
            }
        }
        let (deadline, number) = (self.deadline(), self.next());
        // From here on, the switch decides.
        let committed = |message: &Message| {
            matches!(message, Message::Bundle { step: Bundle::Committed, .. } | Message::Error(_))
        };
        let unconfirmed = |why| match why {
            Failure::Closed | Failure::Silent(..) => Failure::Unconfirmed,
            why => why,
        };
        self.send(&[(number, step(Bundle::Commit))], deadline).map_err(unconfirmed)?;
        let told =
            self.settle(deadline, number, first, &mut refused, committed).map_err(unconfirmed)?;
        if let Message::Error(error) = told {
            let (change, error) = match refused {
                Some((number, error)) => (self.change(first, number, changes.len()), error),
                None => (None, error),
            };
            return Ok(Err(Refused { change, error }));
        }
        self.ask(Message::BarrierRequest, what).map_err(unconfirmed)?.ok();
        Ok(Ok(()))
    }

    /// The change that a message of a bundle is.
    fn change(&self, first: u32, number: u32, changes: usize) -> Option<usize> {
        // Behind each chunk, a number is taken by a question.
        let at = number.wrapping_sub(first) as usize;
        let (chunk, at) = (at / (CHUNK + 1), at % (CHUNK + 1));
        Some(chunk * CHUNK + at).filter(|at| *at < changes)
    }

    /// Waits for an answer; the first error about a change of a bundle is kept.
    fn settle(
        &mut self,
        deadline: Instant,
        number: u32,
        first: u32,
        refused: &mut Option<(u32, Error)>,
        is_it: impl Fn(&Message) -> bool,
    ) -> Result<Message, Failure> {
        loop {
            let (of, message) = self.receive(deadline, "to a bundle of changes")?;
            if of == number && is_it(&message) {
                return Ok(message);
            }
            match message {
                Message::Error(error) if of.wrapping_sub(first) < number.wrapping_sub(first) => {
                    refused.get_or_insert((of, error));
                }
                _ => {}
            }
        }
    }
}
