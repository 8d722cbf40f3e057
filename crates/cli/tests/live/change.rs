//! Chains that are changed while hosts speak through them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::lab::{Lab, PATIENCE, ctl, possible};

/// TCP connections at a time.
pub(crate) const CONNECTIONS: usize = 200;
/// What goes to and fro at a time.
const PIECE: usize = 2000;

/// Connections through a chain, all of them speaking until told to end.
pub(crate) struct Talk {
    over: Arc<AtomicBool>,
    pieces: Arc<AtomicU64>,
    client: std::thread::JoinHandle<()>,
    server: std::thread::JoinHandle<()>,
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends pieces that are different each time, and wants them back as they were.
fn speak(mut stream: TcpStream, number: usize, over: &AtomicBool, pieces: &AtomicU64) {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let (mut sent, mut back) = (vec![0; PIECE], vec![0; PIECE]);
    while !over.load(Ordering::Relaxed) {
        random.fill(&mut sent);
        stream.write_all(&sent).expect("the connection stands");
        stream.read_exact(&mut back).expect("the connection stands");
        assert!(sent == back, "bytes changed on the way");
        pieces.fetch_add(1, Ordering::Relaxed);
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

impl Talk {
    pub(crate) fn begin(lab: &Lab) -> Self {
        let (over, pieces) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (to, from) = std::sync::mpsc::channel();
        let (all, connected) = std::sync::mpsc::channel();
        let server = lab.at("right", move || {
            let listener = TcpListener::bind(("10.2.0.2", 0)).unwrap();
            to.send(listener.local_addr().unwrap()).unwrap();
            let accepted = listener.incoming().take(CONNECTIONS);
            let echoes: Vec<_> = accepted
                .map(|stream| std::thread::spawn(|| echo(patient(stream.unwrap()))))
                .collect();
            echoes.into_iter().for_each(|echo| echo.join().unwrap());
        });
        let (until, count) = (Arc::clone(&over), Arc::clone(&pieces));
        let client = lab.at("left", move || {
            let address = from.recv().unwrap();
            let connect = || patient(TcpStream::connect_timeout(&address, PATIENCE).unwrap());
            let streams: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
            all.send(()).unwrap();
            let begin = |(number, stream)| {
                let (until, count) = (Arc::clone(&until), Arc::clone(&count));
                std::thread::spawn(move || speak(stream, number, &until, &count))
            };
            let speakers: Vec<_> = streams.into_iter().enumerate().map(begin).collect();
            speakers.into_iter().for_each(|speaker| speaker.join().unwrap());
        });
        connected.recv().expect("all are connected");
        Self { over, pieces, client, server }
    }

    /// Waits until so many more pieces went to and fro.
    pub(crate) fn go_on(&self, pieces: u64) {
        let until = self.pieces.load(Ordering::Relaxed) + pieces;
        while self.pieces.load(Ordering::Relaxed) < until {
            assert!(!self.client.is_finished(), "a connection broke");
            std::thread::yield_now();
        }
    }

    #[track_caller]
    pub(crate) fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.client.join().expect("no connection broke, no byte changed");
        self.server.join().expect("no connection broke");
    }
}

/// Hundreds of connections through a translator while it is replaced again and again: none breaks,
/// and no byte changes.
#[test]
fn connections_outlive_a_hundred_changes() {
    if !possible() {
        return;
    }
    let example = include_str!("../../../../examples/home-router.click");
    let chain =
        example.replace("Device(lan)", "Device(left)").replace("Device(wan)", "Device(right)");
    let other = chain.replace("flows[0] -> [1] wan;", "flows[0] -> out :: Counter -> [1] wan;");
    for (mode, changes) in [("af-xdp", 100), ("af-packet-mmsg", 30)] {
        let lab = Lab::new(1500);
        let socket = lab.file("ctl", "").with_extension("sock");
        let path = socket.to_str().unwrap();
        let bound = ["--in", "left=eth0", "--in", "right=eth1"];
        let arguments = [&bound[..], &["--io", mode, "--control", path]].concat();
        let mut running = lab.run(&chain, &arguments);
        running.wait_for("control: ");
        let files = [lab.file("b", &other), lab.file("a", &chain)];
        let talk = Talk::begin(&lab);
        talk.go_on(CONNECTIONS as u64);
        for i in 0..changes {
            let done = ctl(&socket, &["swap", files[i % 2].to_str().unwrap()]);
            assert!(done.contains("packets waited"), "{done}");
            talk.go_on(20);
        }
        let counters = ctl(&socket, &["--json", "counters"]);
        let counters: serde_json::Value = serde_json::from_str(&counters).unwrap();
        let elements = counters["all"]["elements"].as_array().unwrap();
        let nat = elements.iter().find(|element| element["name"] == "flows").unwrap();
        assert!(nat["flows"].as_u64().unwrap() >= CONNECTIONS as u64, "{nat}");
        talk.end();
        running.stop();
    }
}
