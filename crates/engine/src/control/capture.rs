//! `catena ctl capture`: packets of connections, written as pcapng while they pass.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use dataplane::capture::{Capture, Captured, Counts};
use dataplane::ports::InUse;
use dataplane::{Router, Tap};
use elements::selector::Selector;
use net::pcap::{InterfaceOptions, LinkType, PcapngWriter};

use super::edge::{self, Names};
use super::protocol::{self, CaptureEnd};
use super::stream::Stream;
use super::{Answer, Controlled, answer};
use crate::error::Error;
use crate::instance::{Configuration, TapPoint, Watcher};

/// Bytes of a packet that are kept unless asked for otherwise, as tcpdump does.
const SNAP_LENGTH: u64 = 262_144;
/// How long what was written may wait for more, and packets for earlier ones of other workers.
const DELAY: Duration = Duration::from_millis(100);
/// Bytes that are sent at once.
const PIECE: usize = 1 << 16;

/// What comes from the packet path and from whoever controls it.
enum Heard {
    Packets(Vec<Captured>),
    /// Further places, from this number on.
    Places(u32, Vec<TapPoint>),
    /// Nothing more will come.
    Over(Option<String>),
}

impl From<Vec<Captured>> for Heard {
    fn from(packets: Vec<Captured>) -> Self {
        Self::Packets(packets)
    }
}

struct Watch {
    edge: String,
    interfaces: Vec<(String, String)>,
    capture: Capture<Heard>,
}

impl Watch {
    fn tell(&self, heard: Heard) {
        // Whoever listened may be gone.
        let _ = self.capture.to.send(heard);
    }
}

impl Watcher for Watch {
    fn places(
        &self,
        configuration: &Configuration,
        devices: &InUse,
    ) -> Result<Vec<TapPoint>, Error> {
        Names { configuration, devices, interfaces: &self.interfaces }.edges(&self.edge)
    }

    fn begins(&self, first: u32, places: &[TapPoint]) {
        self.tell(Heard::Places(first, places.to_vec()));
    }

    fn tap(&self, router: &mut Router, place: &TapPoint, number: u32, worker: u32) -> Option<Tap> {
        let point = self.capture.clone().point(number, worker);
        router.taps().insert(place.from, place.to, point)
    }

    fn ends(&self, why: &str) {
        self.tell(Heard::Over(Some(why.to_string())));
    }
}

/// Writes what is heard.
struct Recorder<'a> {
    stream: &'a mut Stream,
    writer: PcapngWriter<Vec<u8>>,
    places: HashMap<u32, TapPoint>,
    filter: String,
    snap_length: u32,
    /// Interfaces of the capture, by place and link type, and how many packets each has.
    interfaces: HashMap<(u32, u32), (u32, u64)>,
    /// Packets that are not written yet, in the order of time.
    held: VecDeque<Captured>,
    counts: &'a Counts,
    written: u64,
    most: u64,
    last: u64,
}

impl Recorder<'_> {
    /// Takes packets as a worker saw them, in its own order; whether there is to be more.
    fn packets(&mut self, packets: Vec<Captured>) -> io::Result<bool> {
        for packet in packets {
            if self.written + self.held.len() as u64 == self.most {
                self.counts.written(&packet);
                continue;
            }
            let at = self.held.partition_point(|held| held.time <= packet.time);
            self.held.insert(at, packet);
        }
        let newest = self.held.back().map_or(0, |packet| packet.time);
        self.write_until(newest.saturating_sub(DELAY.as_nanos() as u64))?;
        Ok(self.written + (self.held.len() as u64) < self.most)
    }

    /// Writes the packets that passed until then.
    fn write_until(&mut self, time: u64) -> io::Result<()> {
        while let Some(packet) = self.held.pop_front_if(|packet| packet.time <= time) {
            self.counts.written(&packet);
            self.write(&packet)?;
        }
        Ok(())
    }

    fn write(&mut self, packet: &Captured) -> io::Result<()> {
        let key = (packet.place, packet.link_type);
        if !self.interfaces.contains_key(&key) {
            let place = self.places.get(&packet.place);
            let about = InterfaceOptions {
                name: place.map_or(String::new(), |place| place.name.clone()),
                description: place.map_or(String::new(), |place| place.landmark.clone()),
                filter: self.filter.clone(),
            };
            let link_type = LinkType(packet.link_type);
            let number = self.writer.interface(link_type, self.snap_length, &about)?;
            self.interfaces.insert(key, (number, 0));
        }
        let Some((interface, count)) = self.interfaces.get_mut(&key) else { return Ok(()) };
        *count += 1;
        let Captured { worker, time, data, length, .. } = packet;
        self.writer.packet(*interface, *worker, *time, data, *length)?;
        self.written += 1;
        self.last = self.last.max(*time);
        if self.writer.get_mut().len() > PIECE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(self.writer.get_mut());
        if bytes.is_empty() { Ok(()) } else { self.stream.bytes(&bytes) }
    }

    /// Takes what comes until it is over; why, if the chain ended it.
    #[expect(clippy::disallowed_methods, reason = "what was captured is sent soon by real time")]
    fn run(&mut self, heard: &Receiver<Heard>) -> io::Result<Option<String>> {
        loop {
            let next = match heard.recv_timeout(DELAY) {
                Ok(next) => next,
                Err(RecvTimeoutError::Timeout) => {
                    self.write_until(u64::MAX)?;
                    self.flush()?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            };
            match next {
                Heard::Packets(packets) => {
                    if !self.packets(packets)? {
                        return Ok(None);
                    }
                }
                Heard::Places(first, places) => {
                    self.stream.more(edge::piece(&places))?;
                    self.places.extend((first..).zip(places));
                }
                Heard::Over(why) => return Ok(why),
            }
        }
    }

    /// Writes how many packets there were; missing ones are not counted by interface.
    fn finish(&mut self, missing: u64) -> io::Result<()> {
        self.write_until(u64::MAX)?;
        let mut missing = missing;
        let mut all: Vec<_> = self.interfaces.values().copied().collect();
        all.sort_unstable();
        for (interface, count) in all {
            let dropped = std::mem::take(&mut missing);
            self.writer.statistics(interface, self.last, count + dropped, dropped)?;
        }
        self.flush()
    }
}

/// Executes a request: sends pcapng until it is over, and then answers with what happened.
///
/// # Errors
/// What is wrong with the request. The outer error is that of a client that is gone.
pub(super) fn serve(
    controlled: &Arc<Controlled>,
    asked: &protocol::Capture,
    stream: &mut Stream,
) -> io::Result<Answer> {
    let selector = match Selector::new(&asked.filter) {
        Ok(selector) => selector,
        Err(why) => return Ok(Err(Error::Filter(why))),
    };
    let snap = match asked.snap {
        None | Some(0) => SNAP_LENGTH,
        Some(snap) => snap.min(SNAP_LENGTH),
    };
    let (to, heard): (Sender<Heard>, _) = channel();
    let counts = Arc::<Counts>::default();
    let capture = Capture {
        selector,
        snap_length: snap as usize,
        counts: Arc::clone(&counts),
        to: to.clone(),
    };
    let interfaces = controlled.interfaces.clone();
    let watch = Arc::new(Watch { edge: asked.edge.clone(), interfaces, capture });
    let tapping = match controlled.instance.tap(watch) {
        Ok(tapping) => tapping,
        Err(why) => return Ok(Err(why)),
    };
    stream.on_hang_up(move || drop(to.send(Heard::Over(None))))?;
    let (generation, configuration) = controlled.instance.current();
    let comment = format!("{}, configuration number {generation}", configuration.name());
    let program = concat!("catena ", env!("CARGO_PKG_VERSION"));
    let mut recorder = Recorder {
        writer: PcapngWriter::new(Vec::new(), program, &comment)?,
        stream,
        places: HashMap::new(),
        filter: asked.filter.clone(),
        snap_length: snap as u32,
        interfaces: HashMap::new(),
        held: VecDeque::new(),
        counts: &counts,
        written: 0,
        most: asked.count.unwrap_or(u64::MAX),
        last: 0,
    };
    let mut why = recorder.run(&heard)?;
    drop(tapping);
    // What passed before the taps were out, if it was asked for to the end.
    for rest in heard.try_iter() {
        match rest {
            Heard::Packets(packets) => drop(recorder.packets(packets)?),
            Heard::Over(told) => why = why.or(told),
            Heard::Places(..) => {}
        }
    }
    let missing = counts.missing.load(Ordering::Relaxed);
    recorder.finish(missing)?;
    let chosen = counts.chosen.load(Ordering::Relaxed);
    let end = CaptureEnd { captured: recorder.written, chosen, missing, ended: why };
    Ok(answer(asked, Ok(end)))
}
