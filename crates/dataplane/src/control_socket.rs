//! Click's ControlSocket protocol, version 1.3: other programs read and write handlers while a
//! chain runs.
//!
//! [`Session`] is the protocol alone, bytes in and bytes out. [`ControlServer`] serves it on
//! sockets that never block; whoever drives the router polls it between rounds, and a poll does
//! little: it reads a piece from each connection and executes one command of each, or reads the
//! next slice of what it lists.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use elements::device::{ControlAddress, ControlSocketRequest};

use crate::guarded_path::{GuardedPath, SocketFile};
use crate::router::{Reading, Router};
use crate::slices::Slices;
use crate::threads;

/// What a session reads and writes.
pub trait Handlers {
    /// Reads `element.handler parameter`: all of it, or the slice from where the slice before says, 0 at first.
    ///
    /// # Errors
    /// A message.
    fn read(&mut self, handler: &str, from: u64) -> Result<Reading, String>;
    /// Writes `element.handler`.
    ///
    /// # Errors
    /// A message.
    fn write(&mut self, handler: &str, value: &str) -> Result<(), String>;
    /// Whether there is such a handler that can be read, or written.
    fn exists(&self, handler: &str, write: bool) -> bool;
}

impl Handlers for Router {
    fn read(&mut self, handler: &str, from: u64) -> Result<Reading, String> {
        self.read_slice(handler, from)
    }

    fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.write_handler(handler, value)
    }

    fn exists(&self, handler: &str, write: bool) -> bool {
        self.has_handler(handler, write)
    }
}

const OK: u16 = 200;
const TOO_MANY: u16 = 421;
const SYNTAX: u16 = 500;
const UNIMPLEMENTED: u16 = 501;
const NO_SUCH_ELEMENT: u16 = 510;
const NO_SUCH_HANDLER: u16 = 511;
const TOO_BIG: u16 = 513;
const LLRPC: u16 = 514;
const HANDLER: u16 = 520;
const PERMISSION: u16 = 530;

/// The longest line, and the most data, in bytes.
const MAX_LINE: usize = 1 << 16;
const MAX_DATA: usize = 1 << 22;
/// While so many bytes wait to be fetched, nothing is done for whoever should fetch them.
const MAX_WAITING: usize = 1 << 16;

const GREETING: &str = "Click::ControlSocket/1.3\r\n";

const HELP: [&str; 11] = [
    "Commands supported:",
    "READ handler [arg...]   call read handler, return DATA",
    "READDATA handler len    call read handler with len data bytes, return DATA",
    "READUNTIL handler term  call read handler, take data until term, return DATA",
    "WRITE handler [arg...]  call write handler",
    "WRITEDATA handler len   call write handler, pass len data bytes",
    "WRITEUNTIL handler term call write handler, take data until term",
    "CHECKREAD handler       check if read handler is valid",
    "CHECKWRITE handler      check if write handler is valid",
    "LLRPC elt#number [len]  not supported",
    "QUIT                    close connection",
];

/// One conversation.
#[derive(Debug)]
pub struct Session {
    read_only: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    /// What the next command waits for.
    answer: Option<Answer>,
    /// The other side sends no more, or is not listened to any more.
    ended: bool,
}

/// A handler that is being read: a piece of work at a time, for packets wait meanwhile.
#[derive(Debug)]
enum Answer {
    /// Its slices are read. The handler is called so by the client.
    Listed { handler: String, slices: Slices },
    /// Another thread makes text of them.
    Rendered { handler: String, text: Receiver<String> },
    /// Its value is sent, from here on.
    Sent { text: String, at: usize },
}

/// What is missing to execute a command.
enum Missing {
    More,
    TooMuch,
}

impl Session {
    /// A conversation in which handlers can perhaps only be read. It begins with a greeting.
    pub fn new(read_only: bool) -> Self {
        let output = GREETING.into();
        Self { read_only, input: Vec::new(), output, answer: None, ended: false }
    }

    /// Takes in bytes from the other side.
    pub fn receive(&mut self, bytes: &[u8]) {
        if !self.ended {
            self.input.extend_from_slice(bytes);
        }
    }

    /// The other side sends no more.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Bytes for the other side.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// So many bytes of the output have been sent.
    pub fn sent(&mut self, bytes: usize) {
        self.output.drain(..bytes.min(self.output.len()));
    }

    /// Whether all has been said.
    pub fn is_over(&self) -> bool {
        self.ended && self.input.is_empty() && self.output.is_empty() && self.answer.is_none()
    }

    /// Whether more input is welcome.
    fn wants_input(&self) -> bool {
        !self.ended && self.input.len() <= MAX_LINE + MAX_DATA
    }

    /// Does a piece of what the last command asked for, or else executes the next one, if it is complete. Says
    /// whether there was anything to do.
    pub fn step(&mut self, handlers: &mut dyn Handlers) -> bool {
        if self.output.len() >= MAX_WAITING {
            return false;
        }
        if let Some(answer) = self.answer.take() {
            return self.go_on(answer, handlers);
        }
        if self.input.is_empty() {
            return false;
        }
        let end = self.input.iter().position(|b| matches!(b, b'\r' | b'\n'));
        let (line_end, next) = match end {
            Some(end) => (end, end + line_break(&self.input[end..])),
            None if self.ended => (self.input.len(), self.input.len()),
            None if self.input.len() > MAX_LINE => {
                self.say(SYNTAX, "Line too long");
                self.close();
                return true;
            }
            None => return false,
        };
        let line = String::from_utf8_lossy(&self.input[..line_end]).into_owned();
        match self.command(&line, next, handlers) {
            Ok(used) => {
                self.input.drain(..used.min(self.input.len()));
                true
            }
            Err(Missing::More) if self.ended => {
                self.say(SYNTAX, "Not enough data");
                self.input.clear();
                true
            }
            Err(Missing::More) => false,
            Err(Missing::TooMuch) => {
                self.say(TOO_BIG, "Data too large");
                self.close();
                true
            }
        }
    }

    fn close(&mut self) {
        self.ended = true;
        self.input.clear();
    }

    fn say(&mut self, code: u16, text: &str) {
        let mut lines = text.split('\n').peekable();
        while let Some(line) = lines.next() {
            let mark = if lines.peek().is_some() { '-' } else { ' ' };
            let printable: String =
                line.chars().map(|c| if c.is_control() { '.' } else { c }).collect();
            self.output.extend_from_slice(format!("{code}{mark}{printable}\r\n").as_bytes());
        }
    }

    /// Executes a command whose data begin at `at`; how many bytes of the input it took.
    fn command(
        &mut self,
        line: &str,
        at: usize,
        handlers: &mut dyn Handlers,
    ) -> Result<usize, Missing> {
        let (command, rest) = split(line.trim());
        let (handler, argument) = split(rest);
        let upper = command.to_ascii_uppercase();
        let reads = upper.starts_with("READ") || upper == "GET";
        match upper.as_str() {
            "" => {}
            "READ" | "GET" | "WRITE" | "SET" if handler.is_empty() => self.wrong_number(),
            "READ" | "GET" => self.read(handler, argument, handlers),
            "WRITE" | "SET" => self.write(handler, argument, handlers),
            "READDATA" | "WRITEDATA" | "SETDATA" => {
                if argument.is_empty() || argument.contains(char::is_whitespace) {
                    self.wrong_number();
                    return Ok(at);
                }
                let Ok(length) = argument.parse::<usize>() else {
                    self.say(SYNTAX, &format!("Syntax error in '{upper}'"));
                    return Ok(at);
                };
                if length > MAX_DATA {
                    return Err(Missing::TooMuch);
                }
                let data = self.input.get(at..at + length).ok_or(Missing::More)?;
                let data = String::from_utf8_lossy(data).into_owned();
                self.read_or_write(reads, handler, &data, handlers);
                return Ok(at + length);
            }
            "READUNTIL" | "WRITEUNTIL" if handler.is_empty() => self.wrong_number(),
            "READUNTIL" | "WRITEUNTIL" => {
                let (end, next) = self.find_line(argument.as_bytes(), at)?;
                let data = String::from_utf8_lossy(&self.input[at..end]).into_owned();
                self.read_or_write(reads, handler, &data, handlers);
                return Ok(next);
            }
            "CHECKREAD" | "CHECKWRITE" if handler.is_empty() || !argument.is_empty() => {
                self.wrong_number();
            }
            "CHECKREAD" => self.check(handler, false, handlers),
            "CHECKWRITE" => self.check(handler, true, handlers),
            "LLRPC" => self.say(LLRPC, "LLRPCs are not supported"),
            "QUIT" | "CLOSE" => {
                if !rest.is_empty() {
                    self.say(SYNTAX, "Bad command syntax");
                }
                self.say(OK, "Goodbye!");
                self.close();
            }
            "HELP" => self.say(OK, &HELP.join("\n")),
            _ => self.say(UNIMPLEMENTED, &format!("Command '{upper}' unimplemented")),
        }
        Ok(at)
    }

    fn wrong_number(&mut self) {
        self.say(SYNTAX, "Wrong number of arguments");
    }

    /// Where the line `term` stands after `at`: its start, and the start of what follows.
    fn find_line(&self, term: &[u8], at: usize) -> Result<(usize, usize), Missing> {
        let mut start = at;
        loop {
            let rest = self.input.get(start..).unwrap_or(&[]);
            let Some(end) = rest.iter().position(|b| matches!(b, b'\r' | b'\n')) else {
                return Err(if start - at + rest.len() > MAX_DATA {
                    Missing::TooMuch
                } else {
                    Missing::More
                });
            };
            let next = start + end + line_break(&rest[end..]);
            if rest[..end].trim_ascii_end() == term {
                return Ok((start, next));
            }
            start = next;
        }
    }

    fn read_or_write(&mut self, reads: bool, handler: &str, data: &str, to: &mut dyn Handlers) {
        match reads {
            true => self.read(handler, data, to),
            false => self.write(handler, data, to),
        }
    }

    /// Says why a handler cannot be used; `false` if it can.
    fn refuse(&mut self, handler: &str, write: bool, handlers: &dyn Handlers) -> bool {
        let handler = canonical(handler);
        if handlers.exists(handler, write) {
            return false;
        }
        if handlers.exists(handler, !write) {
            let only = if write { "read-only" } else { "write-only" };
            self.say(PERMISSION, &format!("Handler '{handler}' {only}"));
            return true;
        }
        match handler.rsplit_once('.') {
            Some((element, _)) if !handlers.exists(&format!("{element}.name"), false) => {
                self.say(NO_SUCH_ELEMENT, &format!("No element named '{element}'"));
            }
            _ => self.say(NO_SUCH_HANDLER, &format!("No handler named '{handler}'")),
        }
        true
    }

    fn read(&mut self, handler: &str, argument: &str, handlers: &mut dyn Handlers) {
        if self.refuse(handler, false, handlers) {
            return;
        }
        let slices = Slices::new(format!("{} {argument}", canonical(handler)));
        self.read_on(handler.to_string(), slices, handlers);
    }

    /// Reads a handler, or the next slice of it.
    fn read_on(&mut self, handler: String, mut slices: Slices, handlers: &mut dyn Handlers) {
        let (of, from) = (slices.handler().to_string(), slices.next().unwrap_or(0));
        let added = handlers.read(&of, from).and_then(|reading| slices.add(reading));
        self.answer = match added {
            Ok(Some(text)) => self.value(&handler, text),
            Ok(None) if slices.next().is_some() => Some(Answer::Listed { handler, slices }),
            Ok(None) => {
                let (sender, text) = sync_channel(1);
                // Whoever has gone meanwhile needs no text.
                let work = move || drop(sender.send(slices.render()));
                match threads::aside("listing", work) {
                    Ok(()) => Some(Answer::Rendered { handler, text }),
                    Err(why) => self.failed(&handler, &why.to_string()),
                }
            }
            Err(why) => self.failed(&handler, &why),
        };
    }

    fn failed(&mut self, handler: &str, why: &str) -> Option<Answer> {
        self.say(HANDLER, &format!("Read handler '{handler}' error:\n{why}"));
        None
    }

    fn value(&mut self, handler: &str, text: String) -> Option<Answer> {
        self.say(OK, &format!("Read handler '{handler}' OK"));
        self.output.extend_from_slice(format!("DATA {}\r\n", text.len()).as_bytes());
        Some(Answer::Sent { text, at: 0 })
    }

    /// Does a piece of what was asked for; whether there was anything to do.
    fn go_on(&mut self, answer: Answer, handlers: &mut dyn Handlers) -> bool {
        match answer {
            Answer::Listed { handler, slices } => self.read_on(handler, slices, handlers),
            Answer::Rendered { handler, text } => {
                self.answer = match text.try_recv() {
                    Ok(text) => self.value(&handler, text),
                    Err(TryRecvError::Empty) => {
                        self.answer = Some(Answer::Rendered { handler, text });
                        return false;
                    }
                    Err(TryRecvError::Disconnected) => self.failed(&handler, "no memory"),
                }
            }
            Answer::Sent { text, at } => {
                let end = text.len().min(at + MAX_WAITING);
                self.output.extend_from_slice(&text.as_bytes()[at..end]);
                self.answer = (end < text.len()).then_some(Answer::Sent { text, at: end });
            }
        }
        true
    }

    fn write(&mut self, handler: &str, value: &str, handlers: &mut dyn Handlers) {
        if self.refuse(handler, true, handlers) {
            return;
        }
        if self.read_only {
            self.say(PERMISSION, &format!("Permission denied for '{handler}'"));
            return;
        }
        match handlers.write(canonical(handler), value) {
            Ok(()) => self.say(OK, &format!("Write handler '{handler}' OK")),
            Err(why) => self.say(HANDLER, &format!("Write handler '{handler}' error:\n{why}")),
        }
    }

    fn check(&mut self, handler: &str, write: bool, handlers: &dyn Handlers) {
        let word = if write { "Write" } else { "Read" };
        let name = canonical(handler);
        if handlers.exists(name, write) {
            if write && self.read_only {
                self.say(PERMISSION, &format!("Permission denied for '{handler}'"));
            } else {
                self.say(OK, &format!("{word} handler '{handler}' OK"));
            }
        } else if handlers.exists(name, !write) {
            let what = if write { "writable" } else { "readable" };
            self.say(NO_SUCH_HANDLER, &format!("Handler '{handler}' not {what}"));
        } else {
            self.refuse(handler, write, handlers);
        }
    }
}

/// Length of the line break at the start of `bytes`.
fn line_break(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\r\n") { 2 } else { 1 }
}

/// The first word, and what follows.
fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// A handler's name without the `0.` or `.` that the router's own handlers may have in front.
fn canonical(handler: &str) -> &str {
    handler.strip_prefix("0.").or_else(|| handler.strip_prefix('.')).unwrap_or(handler)
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, Arc<SocketFile>),
}

trait Stream: Read + Write + Send {}
impl Stream for TcpStream {}
impl Stream for UnixStream {}

struct Connection {
    stream: Box<dyn Stream>,
    session: Session,
}

struct Socket {
    name: String,
    request: ControlSocketRequest,
    listener: Option<Listener>,
    /// Tries that are left, and when the next one is.
    tries: u32,
    next_try: Option<Instant>,
}

/// Sockets in the file system, whose names go when their server does; or before it, where the
/// process ends without that.
#[derive(Clone, Default)]
pub struct SocketFiles(Arc<Mutex<Vec<Arc<SocketFile>>>>);

impl SocketFiles {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<SocketFile>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one away.
    fn remove(&self, file: &Arc<SocketFile>) {
        file.remove();
        self.all().retain(|other| !Arc::ptr_eq(other, file));
    }

    /// Takes all away that are there now.
    pub fn remove_all(&self) {
        self.all().drain(..).for_each(|file| file.remove());
    }
}

/// Control sockets and their connections.
#[derive(Default)]
pub struct ControlServer {
    files: SocketFiles,
    /// Those that no element asked for come first.
    sockets: Vec<Socket>,
    /// How many of them no element asked for.
    own: usize,
    connections: Vec<Connection>,
    messages: Vec<String>,
}

/// Connections at a time; further ones are turned away.
const MAX_CONNECTIONS: usize = 64;
/// Ports that are tried after the first.
const MAX_SEARCH: u16 = 10;

fn listen(request: &ControlSocketRequest) -> std::io::Result<Listener> {
    let listener = match &request.address {
        ControlAddress::Tcp { port, search, localhost } => {
            let address = if *localhost { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
            let last = if *search { port.saturating_add(MAX_SEARCH) } else { *port };
            let mut result = TcpListener::bind((address, *port));
            for port in port.saturating_add(1)..=last {
                if result.is_err() {
                    result = TcpListener::bind((address, port));
                }
            }
            let listener = result?;
            listener.set_nonblocking(true)?;
            let _ = request.bound.set(listener.local_addr()?.port());
            Listener::Tcp(listener)
        }
        ControlAddress::Unix { path } => {
            let (listener, file) = GuardedPath::find(Path::new(path))?.listen()?;
            listener.set_nonblocking(true)?;
            Listener::Unix(listener, Arc::new(file))
        }
    };
    Ok(listener)
}

impl ControlServer {
    /// Opens the sockets that elements of these names ask for, and `more`. Those in the file system
    /// are among `files` as long as they are there.
    ///
    /// # Errors
    /// Which socket cannot be opened, and why, unless it is to be tried again.
    pub fn open(
        elements: Vec<(String, ControlSocketRequest)>,
        more: Vec<ControlSocketRequest>,
        files: &SocketFiles,
    ) -> Result<Self, String> {
        let mut server = Self::default();
        (server.files, server.own) = (files.clone(), more.len());
        let more = more.into_iter().map(|request| ("control socket".to_string(), request));
        server.extend(more.collect())?;
        server.extend(elements)?;
        Ok(server)
    }

    /// Opens further sockets, that elements of these names ask for.
    ///
    /// # Errors
    /// As [`ControlServer::open`].
    pub fn extend(&mut self, elements: Vec<(String, ControlSocketRequest)>) -> Result<(), String> {
        elements.into_iter().try_for_each(|(name, request)| self.add(name, request))
    }

    fn add(&mut self, name: String, request: ControlSocketRequest) -> Result<(), String> {
        let tries = request.retries;
        let mut socket = Socket { name, request, listener: None, tries, next_try: None };
        self.messages.extend(socket.open(&self.files)?);
        self.sockets.push(socket);
        Ok(())
    }

    /// Closes and opens sockets so that they are those that the elements of another chain ask for.
    /// One that both chains have stays open, and so do all connections.
    pub fn change(&mut self, elements: Vec<(String, ControlSocketRequest)>) {
        let mut former = self.sockets.split_off(self.own.min(self.sockets.len()));
        for (name, request) in elements {
            let same = |s: &Socket| s.request.address == request.address && s.listener.is_some();
            match former.iter().position(same) {
                Some(at) => {
                    let socket = former.swap_remove(at);
                    if let Some(&port) = socket.request.bound.get() {
                        let _ = request.bound.set(port);
                    }
                    self.sockets.push(Socket { name, request, ..socket });
                }
                None => {
                    if let Err(why) = self.add(name, request) {
                        self.messages.push(why);
                    }
                }
            }
        }
        former.iter().for_each(|socket| socket.close(&self.files));
    }

    /// Whether there is anything to serve.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// What there is to tell the user since the last time.
    pub fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages)
    }

    /// Serves every connection a little; says whether there was anything to do.
    pub fn poll(&mut self, handlers: &mut dyn Handlers) -> bool {
        let mut worked = self.accept();
        for i in (0..self.connections.len()).rev() {
            let Connection { stream, session } = &mut self.connections[i];
            let (did, alive) = serve(&mut **stream, session, handlers);
            worked |= did;
            if !alive {
                self.connections.swap_remove(i);
            }
        }
        worked
    }

    #[expect(clippy::disallowed_methods, reason = "what holds an address goes by real time")]
    fn accept(&mut self) -> bool {
        let mut worked = false;
        for socket in &mut self.sockets {
            if socket.next_try.is_some_and(|time| time <= Instant::now()) {
                match socket.open(&self.files) {
                    Ok(message) => self.messages.extend(message),
                    Err(why) => self.messages.push(why),
                }
            }
            let stream: Option<Box<dyn Stream>> = match &socket.listener {
                Some(Listener::Tcp(listener)) => listener.accept().ok().and_then(|(stream, _)| {
                    stream.set_nonblocking(true).ok()?;
                    Some(Box::new(stream) as Box<dyn Stream>)
                }),
                Some(Listener::Unix(listener, _)) => {
                    listener.accept().ok().and_then(|(stream, _)| {
                        stream.set_nonblocking(true).ok()?;
                        Some(Box::new(stream) as Box<dyn Stream>)
                    })
                }
                None => None,
            };
            let Some(mut stream) = stream else { continue };
            worked = true;
            let mut session = Session::new(socket.request.read_only);
            let is_full = self.connections.len() >= MAX_CONNECTIONS;
            if socket.request.verbose {
                let what = if is_full { "turned away" } else { "opened" };
                self.messages.push(format!("{}: {what} connection", socket.name));
            }
            if is_full {
                session.say(TOO_MANY, &format!("{MAX_CONNECTIONS} clients are connected"));
                // A new connection has room for that; who has gone already misses nothing.
                let _ = stream.write_all(session.output());
            } else {
                self.connections.push(Connection { stream, session });
            }
        }
        worked
    }
}

impl Socket {
    /// Takes the name of a socket in the file system away.
    fn close(&self, files: &SocketFiles) {
        if let Some(Listener::Unix(_, file)) = &self.listener {
            files.remove(file);
        }
    }

    /// Where it listens, or is to.
    fn address(&self) -> String {
        match &self.request.address {
            ControlAddress::Tcp { port, .. } => {
                format!("TCP port {}", self.request.bound.get().unwrap_or(port))
            }
            ControlAddress::Unix { path } => path.clone(),
        }
    }

    /// Who can use a port, which asks nobody who he is; of a file its mode tells.
    fn audience(&self) -> Option<String> {
        let ControlAddress::Tcp { localhost, .. } = self.request.address else { return None };
        let who = match localhost {
            true => "every user of this host",
            false => "everybody who reaches this host by any of its addresses",
        };
        let what = if self.request.read_only { "read" } else { "read and write" };
        Some(format!("{}: {}: {who} can {what} handlers", self.name, self.address()))
    }

    /// Tries to open the socket; what there is to tell of it, be it that it is to be tried again.
    #[expect(clippy::disallowed_methods, reason = "what holds an address goes by real time")]
    fn open(&mut self, files: &SocketFiles) -> Result<Option<String>, String> {
        self.next_try = None;
        let why = match listen(&self.request) {
            Ok(listener) => {
                if let Listener::Unix(_, file) = &listener {
                    files.all().push(Arc::clone(file));
                }
                self.listener = Some(listener);
                return Ok(self.audience());
            }
            Err(why) => format!("{}: {}: {why}", self.name, self.address()),
        };
        let Some(left) = self.tries.checked_sub(1) else { return Err(why) };
        self.tries = left;
        self.next_try = Some(Instant::now() + Duration::from_secs(1));
        Ok(self.request.retry_warnings.then(|| format!("{why}; will try again")))
    }
}

/// Reads a piece, executes a command, and sends what can be sent. Says whether anything was
/// done, and whether the connection goes on.
fn serve(
    stream: &mut dyn Stream,
    session: &mut Session,
    handlers: &mut dyn Handlers,
) -> (bool, bool) {
    let mut worked = false;
    if session.wants_input() {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer) {
            Ok(0) => session.end(),
            Ok(n) => {
                session.receive(&buffer[..n]);
                worked = true;
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return (true, false),
        }
    }
    worked |= session.step(handlers);
    if !session.output().is_empty() {
        match stream.write(session.output()) {
            Ok(n) => {
                session.sent(n);
                worked |= n > 0;
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return (true, false),
        }
    }
    (worked, !session.is_over())
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        for connection in &mut self.connections {
            // One last try to hand over what was answered.
            let _ = connection.stream.write(connection.session.output());
        }
        self.sockets.iter().for_each(|socket| socket.close(&self.files));
    }
}

#[cfg(test)]
mod tests {
    use elements::listing::{Record, Slice};

    use super::*;

    /// One element `e` with handlers `value` (both), `look` and `poke`.
    struct Fake(String);

    impl Handlers for Fake {
        fn read(&mut self, handler: &str, from: u64) -> Result<Reading, String> {
            let row = |row: u64| Record::Row(row, format!("row {row}"));
            match handler.split_once(' ') {
                Some(("e.value", "fail")) => Err("no\nway".into()),
                Some(("e.value", "list")) => Ok(Reading::Slice(Slice {
                    records: vec![row(from)],
                    next: Some(from + 1).filter(|next| *next < 3),
                    ..Slice::default()
                })),
                Some((name, argument)) => {
                    Ok(Reading::Whole(format!("{name}={}{argument}", self.0)))
                }
                None => Err("unexpected".into()),
            }
        }

        fn write(&mut self, _: &str, value: &str) -> Result<(), String> {
            self.0 = value.into();
            if value == "bad" { Err("bad value".into()) } else { Ok(()) }
        }

        fn exists(&self, handler: &str, write: bool) -> bool {
            match handler {
                "e.value" => true,
                "e.look" | "e.name" | "list" => !write,
                "e.poke" | "stop" => write,
                _ => false,
            }
        }
    }

    /// What is answered to an input that comes in pieces of this size.
    fn answer(input: &[u8], piece: usize, read_only: bool) -> String {
        let (mut session, mut fake) = (Session::new(read_only), Fake("x".into()));
        for bytes in input.chunks(piece) {
            session.receive(bytes);
            while session.step(&mut fake) {}
        }
        session.end();
        while session.step(&mut fake) || session.answer.is_some() {}
        let output = String::from_utf8(session.output().to_vec()).unwrap();
        output.strip_prefix(GREETING).expect("a greeting").to_string()
    }

    #[track_caller]
    fn answers(input: &str, output: &str) {
        for piece in [1, 3, 4096] {
            assert_eq!(answer(input.as_bytes(), piece, false), output, "{input:?} by {piece}");
        }
    }

    #[test]
    fn handlers_are_read_and_written() {
        answers("READ e.value\r\n", "200 Read handler 'e.value' OK\r\nDATA 9\r\ne.value=x");
        answers("get .list 1  2\n", "200 Read handler '.list' OK\r\nDATA 10\r\nlist=x1  2");
        answers(
            "WRITE e.value a b\nREAD e.look",
            "200 Write handler 'e.value' OK\r\n200 Read handler 'e.look' OK\r\nDATA 10\r\ne.look=a b",
        );
        answers(
            "WRITEDATA e.value 5\r\na\r\nb READDATA e.look 2\nyz",
            "200 Write handler 'e.value' OK\r\n200 Read handler 'e.look' OK\r\nDATA 14\r\ne.look=a\r\nb yz",
        );
        answers(
            "WRITEUNTIL e.value END\r\na\r\nb\r\nEND  \r\nREADUNTIL e.look\nq\n\n",
            "200 Write handler 'e.value' OK\r\n200 Read handler 'e.look' OK\r\nDATA 15\r\ne.look=a\r\nb\r\nq\n",
        );
        answers("write e.value bad\n", "520-Write handler 'e.value' error:\r\n520 bad value\r\n");
        answers(
            "read e.value fail\n",
            "520-Read handler 'e.value' error:\r\n520-no\r\n520 way\r\n",
        );
    }

    #[test]
    fn a_listing_is_read_a_slice_a_step_and_commands_wait_for_it() {
        let (mut session, mut fake) = (Session::new(false), Fake("x".into()));
        session.receive(b"READ e.value list\nREAD e.look\n");
        for next in 1..3 {
            assert!(session.step(&mut fake));
            let Some(Answer::Listed { slices, .. }) = &session.answer else { panic!("{next}") };
            assert_eq!(slices.next(), Some(next));
        }
        answers(
            "READ e.value list\nREAD e.look\n",
            "200 Read handler 'e.value' OK\r\nDATA 18\r\nrow 0\nrow 1\nrow 2\n\
             200 Read handler 'e.look' OK\r\nDATA 8\r\ne.look=x",
        );
    }

    #[test]
    fn what_is_not_there_is_refused() {
        answers("READ e.none\n", "511 No handler named 'e.none'\r\n");
        answers("READ f.value\n", "510 No element named 'f'\r\n");
        answers("READ e.poke\n", "530 Handler 'e.poke' write-only\r\n");
        answers("WRITE e.look 1\n", "530 Handler 'e.look' read-only\r\n");
        answers("CHECKREAD e.look\n", "200 Read handler 'e.look' OK\r\n");
        answers("CHECKWRITE e.look\n", "511 Handler 'e.look' not writable\r\n");
        answers("CHECKWRITE g.look\n", "510 No element named 'g'\r\n");
        answers("LLRPC e#1\n", "514 LLRPCs are not supported\r\n");
        answers("DANCE\n", "501 Command 'DANCE' unimplemented\r\n");
        answers("READ\n", "500 Wrong number of arguments\r\n");
        answers("WRITEDATA e.value\n", "500 Wrong number of arguments\r\n");
        answers("WRITEDATA e.value -1\n", "500 Syntax error in 'WRITEDATA'\r\n");
        answers("WRITEDATA e.value 5\nabc", "500 Not enough data\r\n");
        answers("\r\n\n \n", "");
        assert_eq!(
            answer(b"WRITE e.value 1\nCHECKWRITE e.value\n", 9, true),
            "530 Permission denied for 'e.value'\r\n530 Permission denied for 'e.value'\r\n"
        );
    }

    #[test]
    fn a_conversation_ends_at_quit_and_at_nonsense_without_end() {
        answers("QUIT\nREAD e.value\n", "200 Goodbye!\r\n");
        answers("WRITEDATA e.value 99999999\nabc", "513 Data too large\r\n");
        let long = vec![b'a'; MAX_LINE + 2];
        assert_eq!(answer(&long, 4096, false), "500 Line too long\r\n");
        let endless = [b"WRITEUNTIL e.value X\n".to_vec(), vec![b'a'; MAX_DATA + 2]].concat();
        assert_eq!(answer(&endless, 1 << 20, false), "513 Data too large\r\n");
        assert!(answer(b"HELP\n", 2, false).starts_with("200-Commands supported:\r\n200-READ "));
        assert_eq!(
            answer(b"\xff\xfe\x00\n", 1, false),
            "501 Command '\u{fffd}\u{fffd}.' unimplemented\r\n"
        );
    }

    #[test]
    fn a_client_that_fetches_nothing_is_not_served_on() {
        let (mut session, mut fake) = (Session::new(false), Fake("y".repeat(3 * MAX_WAITING)));
        session.receive(b"READ e.value\nREAD e.value\n");
        for _ in 0..3 {
            while session.step(&mut fake) {}
            assert!((MAX_WAITING..2 * MAX_WAITING).contains(&session.output.len()));
            session.sent(usize::MAX);
        }
    }
}
