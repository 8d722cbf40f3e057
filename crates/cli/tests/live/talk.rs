//! Hosts that speak with each other for as long as a test wants.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::live::Lab;

/// How long a connection may stand still: TCP waits twice as long after each loss.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// What goes to and fro at a time.
const PIECE: usize = 2000;
/// Connections that one thread speaks on.
const SHARE: usize = 25;
/// Datagrams that are sent before answers are looked for.
const BURST: usize = 32;
/// Bursts after which datagrams come from another port.
const BURSTS: usize = 64;

/// What was exchanged, and whether it is over.
#[derive(Clone, Default)]
struct Progress {
    over: Arc<AtomicBool>,
    pieces: Arc<AtomicU64>,
}

impl Progress {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn one_more(&self) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
    }
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends pieces that are different each time, and wants them back as they were.
fn speak(mut streams: Vec<TcpStream>, number: usize, progress: &Progress) {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let mut sent = vec![vec![0; PIECE]; streams.len()];
    let mut back = vec![0; PIECE];
    while !progress.is_over() {
        for (stream, sent) in streams.iter_mut().zip(&mut sent) {
            random.fill(sent);
            stream.write_all(sent).expect("the connection stands");
        }
        for (stream, sent) in streams.iter_mut().zip(&sent) {
            stream.read_exact(&mut back).expect("the connection stands");
            assert!(*sent == back, "bytes changed in transit");
            progress.one_more();
        }
    }
}

/// Sends back what comes.
fn echo(mut stream: TcpStream) {
    let mut buffer = [0; PIECE];
    loop {
        match stream.read(&mut buffer).expect("the connection stands") {
            0 => return,
            n => stream.write_all(&buffer[..n]).expect("the connection stands"),
        }
    }
}

/// TCP connections from the left host through a chain, all of them speaking until told to end.
pub(crate) struct Talk {
    progress: Progress,
    client: JoinHandle<()>,
    server: JoinHandle<()>,
}

impl Talk {
    /// So many connections to an address that leads to the right host.
    pub(crate) fn begin(lab: &Lab, address: &'static str, connections: usize) -> Self {
        let progress = Progress::default();
        let (to, from) = std::sync::mpsc::channel();
        let (all, connected) = std::sync::mpsc::channel();
        let server = lab.at("right", move || {
            let listener = TcpListener::bind(("0.0.0.0", 0)).unwrap();
            to.send(listener.local_addr().unwrap().port()).unwrap();
            let accepted = listener.incoming().take(connections);
            let echoes: Vec<_> = accepted
                .map(|stream| std::thread::spawn(|| echo(patient(stream.unwrap()))))
                .collect();
            echoes.into_iter().for_each(|echo| echo.join().unwrap());
        });
        let known = progress.clone();
        let client = lab.at("left", move || {
            let address = (address, from.recv().unwrap());
            let connect = |_| patient(TcpStream::connect(address).unwrap());
            let mut streams: Vec<_> = (0..connections).map(connect).collect();
            all.send(()).unwrap();
            let mut speakers = Vec::new();
            while !streams.is_empty() {
                let own = streams.split_off(streams.len().saturating_sub(SHARE));
                let (number, progress) = (speakers.len(), known.clone());
                speakers.push(std::thread::spawn(move || speak(own, number, &progress)));
            }
            speakers.into_iter().for_each(|speaker| speaker.join().unwrap());
        });
        connected.recv().expect("all are connected");
        Self { progress, client, server }
    }

    /// Waits until so many more pieces went to and fro.
    pub(crate) fn go_on(&self, pieces: u64) {
        let now = || self.progress.pieces.load(Ordering::Relaxed);
        let until = now() + pieces;
        while now() < until {
            assert!(!self.client.is_finished(), "a connection broke");
            std::thread::yield_now();
        }
    }

    #[track_caller]
    pub(crate) fn end(self) {
        self.progress.over.store(true, Ordering::Relaxed);
        self.client.join().expect("no connection broke, no byte changed");
        self.server.join().expect("no connection broke");
    }
}

/// Sends datagrams back until it is over.
fn answer(socket: &UdpSocket, progress: &Progress) {
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut buffer = [0; PIECE];
    while !progress.is_over() {
        if let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            // What cannot be sent is lost like any other.
            let _ = socket.send_to(&buffer[..length], peer);
        }
    }
}

/// Datagrams that go to the right host and come back, as many as do not get lost.
pub(crate) struct Datagrams {
    progress: Progress,
    client: JoinHandle<()>,
    server: JoinHandle<()>,
}

impl Datagrams {
    pub(crate) fn begin(lab: &Lab, address: &'static str) -> Self {
        let progress = Progress::default();
        let (to, from) = std::sync::mpsc::channel();
        let serving = progress.clone();
        let server = lab.at("right", move || {
            // Answers have to come from where the question went.
            let first = UdpSocket::bind("10.2.0.2:0").unwrap();
            let port = first.local_addr().unwrap().port();
            let second = UdpSocket::bind(("10.2.0.3", port)).unwrap();
            to.send(port).unwrap();
            std::thread::scope(|scope| {
                for socket in [&first, &second] {
                    scope.spawn(|| answer(socket, &serving));
                }
            });
        });
        let sending = progress.clone();
        let client = lab.at("left", move || {
            let port = from.recv().unwrap();
            let mut random = fastrand::Rng::with_seed(1);
            let mut buffer = [0; PIECE];
            while !sending.is_over() {
                let socket = UdpSocket::bind("10.1.0.2:0").unwrap();
                socket.connect((address, port)).unwrap();
                socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
                for _ in 0..BURSTS {
                    if sending.is_over() {
                        break;
                    }
                    for _ in 0..BURST {
                        let length = random.usize(..1400);
                        let _ = socket.send(&buffer[..length]);
                    }
                    for _ in 0..BURST {
                        match socket.recv(&mut buffer) {
                            Ok(_) => sending.one_more(),
                            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                            // An error that a router told of.
                            Err(_) => {}
                        }
                    }
                }
            }
        });
        Self { progress, client, server }
    }

    /// Waits until so many more came back: links and neighbours may have to be found again.
    pub(crate) fn go_on(&self, datagrams: u64) {
        let now = || self.progress.pieces.load(Ordering::Relaxed);
        let (begin, until) = (Instant::now(), now() + datagrams);
        while now() < until {
            assert!(!self.client.is_finished(), "the client ended");
            assert!(begin.elapsed() < PATIENCE, "no datagrams come back");
            std::thread::yield_now();
        }
    }

    #[track_caller]
    pub(crate) fn end(self) {
        self.progress.over.store(true, Ordering::Relaxed);
        self.client.join().expect("the client ends well");
        self.server.join().expect("the server ends well");
    }
}
