//! A capture replayed from memory, over and over: a source that costs little, to measure chains.

mod rewrite;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use elements::device::{Device, Received};
use net::pcap::{LinkType, Reader};
use net::{Batch, Packet, Pool};

use super::generator::scaled;
use rewrite::{MAX_SHIFTS, Shift};

/// What is replayed. Written as `FILE`, with options after commas; see [`Replay::OPTIONS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The capture.
    pub path: PathBuf,
    /// Number of packets; 0 is as many as `loops` have.
    pub count: u64,
    /// How often the capture is replayed, where `count` is 0.
    pub loops: u64,
    /// So many loops have flows of their own: the addresses of all but the first are rewritten. Then addresses are the first
    /// loop's again.
    pub rewrite: u64,
    /// Whether packets have the times at which the capture recorded them, each loop behind the one before; else they have
    /// none.
    pub timed: bool,
}

impl FromStr for Replay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut replay = Self { path: text.into(), count: 0, loops: 0, rewrite: 1, timed: false };
        let mut path = text;
        while let Some((rest, option)) = path.rsplit_once(',')
            && let Some((key, value)) = option.split_once('=')
        {
            let number = |most| scaled(value).filter(|number| (1..=most).contains(number));
            let wrong = |why: &str| format!("'{option}': {why}");
            match key {
                "count" => {
                    // 0: as many as the loops have.
                    replay.count = scaled(value).ok_or_else(|| wrong("a number of packets"))?;
                }
                "loops" => {
                    let loops = number(u64::MAX);
                    replay.loops = loops.ok_or_else(|| wrong("how often a capture is replayed"))?;
                }
                "rewrite" => {
                    let why =
                        || wrong(&format!("loops with flows of their own, 1 to {MAX_SHIFTS}"));
                    replay.rewrite = number(MAX_SHIFTS).ok_or_else(why)?;
                }
                // A name may have a comma and an equals sign.
                _ if Path::new(path).exists() => break,
                _ => return Err(wrong(&format!("a replay takes {}", Self::OPTIONS))),
            }
            path = rest;
        }
        if replay.count > 0 && replay.loops > 0 {
            return Err("count and loops: how much is replayed follows from one of them".into());
        }
        if replay.loops == 0 {
            replay.loops = replay.rewrite;
        }
        replay.path = path.into();
        Ok(replay)
    }
}

impl Replay {
    /// What can be said of it, for help texts.
    pub const OPTIONS: &'static str = "count=PACKETS, loops=N, rewrite=N";

    pub(super) fn start(&self) -> Result<Box<dyn Device + Send>, String> {
        Running::load(self).map(|r| Box::new(r) as Box<dyn Device + Send>)
    }
}

/// Bytes that are kept at the most, compressed as the capture may be.
const MOST: usize = 1 << 30;

/// The frames, one after another.
struct Running {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`.
    ends: Vec<usize>,
    /// When each frame was recorded, if packets are to have times, and when the loop begins that the next one is in.
    times: Option<(Vec<u64>, u64)>,
    next: usize,
    left: u64,
    link_type: LinkType,
    /// The loop that the next frame is in, of those with flows of their own.
    turn: u64,
    turns: u64,
}

impl Running {
    fn load(replay: &Replay) -> Result<Self, String> {
        let explain = |why: String| format!("{}: {why}", replay.path.display());
        let file = crate::file::open(&replay.path).map_err(|e| explain(e.to_string()))?;
        let mut reader =
            Reader::open(Box::new(file) as Box<dyn Read>).map_err(|e| explain(e.to_string()))?;
        let (mut bytes, mut ends, mut times) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(record) = reader.next().map_err(|e| explain(e.to_string()))? {
            bytes.extend_from_slice(record.data);
            ends.push(bytes.len());
            if replay.timed {
                times.push(record.header.timestamp_ns);
            }
            if bytes.len() + size_of_val(&ends[..]) + size_of_val(&times[..]) > MOST {
                return Err(explain(format!(
                    "more than {MOST} bytes of frames; without 'replay:' they are not kept in memory"
                )));
            }
        }
        let link_type = reader.link_type().unwrap_or(LinkType::ETHERNET);
        let mut running = Self::new(bytes, ends, link_type, replay).map_err(explain)?;
        if replay.timed {
            running.set_times(times).map_err(explain)?;
        }
        Ok(running)
    }

    fn new(
        bytes: Vec<u8>,
        ends: Vec<usize>,
        link_type: LinkType,
        replay: &Replay,
    ) -> Result<Self, String> {
        if replay.rewrite > 1 && link_type != LinkType::ETHERNET && !link_type.is_raw_ip() {
            return Err(format!(
                "rewrite={} is for captures of Ethernet or IP, and this one is {link_type}",
                replay.rewrite
            ));
        }
        let left = match (ends.len() as u64, replay.count) {
            (0, _) => 0,
            (all, 0) => all.saturating_mul(replay.loops),
            (_, count) => count,
        };
        let turns = replay.rewrite;
        Ok(Self { bytes, ends, times: None, next: 0, left, link_type, turn: 0, turns })
    }

    /// Has packets come at these times, unless loops would not end.
    fn set_times(&mut self, times: Vec<u64>) -> Result<(), String> {
        if self.left > times.len() as u64 && times.iter().max() <= times.first() {
            let why = "all its packets have one time: when to begin anew is not known; replay it once, or at a rate";
            return Err(why.into());
        }
        self.times = Some((times, 0));
        Ok(())
    }

    /// Gives the packets that come next their times. A loop begins a mean distance behind the one before.
    fn stamp(&mut self, packets: &mut [Packet]) {
        let Some((times, begin)) = &mut self.times else { return };
        for (packet, time) in packets.iter_mut().zip(&times[self.next..]) {
            packet.set_timestamp(time.saturating_add(*begin));
        }
        if self.next + packets.len() == times.len() {
            let first = times.first().copied().unwrap_or(0);
            let length = times.iter().max().map_or(0, |last| last.saturating_sub(first));
            let mean = length / (times.len() as u64 - 1).max(1);
            *begin = begin.saturating_add(length).saturating_add(mean);
        }
    }

    /// Gives frames the addresses of a loop.
    fn rewrite(&self, packets: &mut [Packet]) {
        if self.turn == 0 {
            return;
        }
        let shift = Shift::new(self.turn);
        for packet in packets {
            match self.link_type.is_raw_ip() {
                true => shift.rewrite(packet.data_mut()),
                false => shift.rewrite_frame(packet.data_mut()),
            }
        }
    }
}

impl Device for Running {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let mut wanted = self.left.min(burst as u64) as usize;
        self.left -= wanted as u64;
        while wanted > 0 {
            // As many as there are before the capture begins anew.
            let ends = &self.ends[self.next..];
            let ends = &ends[..wanted.min(ends.len())];
            let mut start = self.next.checked_sub(1).map_or(0, |before| self.ends[before]);
            let frame = |&end: &usize| &self.bytes[std::mem::replace(&mut start, end)..end];
            let first = batch.len();
            pool.packets(batch, ends.iter().map(frame));
            let taken = ends.len();
            self.rewrite(&mut batch.as_mut_slice()[first..]);
            self.stamp(&mut batch.as_mut_slice()[first..]);
            wanted -= taken;
            self.next += taken;
            if self.next == self.ends.len() {
                self.next = 0;
                self.turn = (self.turn + 1) % self.turns;
            }
        }
        Ok(if self.left == 0 { Received::End } else { Received::More })
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        batch.drain().for_each(|p| pool.recycle(p));
        Err("a replayed capture cannot be written to".to_string())
    }

    fn link_type(&self) -> u32 {
        self.link_type.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use net::wire::Ipv4;

    use super::*;

    /// Frames of generated traffic without end.
    fn generated(count: usize) -> Vec<Vec<u8>> {
        let generator: super::super::Generator = "proto=udp+tcp,flows=10".parse().unwrap();
        let (mut batch, mut pool) = (Batch::new(), Pool::new());
        generator.start().unwrap().0.receive(count, &mut batch, &mut pool).unwrap();
        batch.iter().map(|packet| packet.data().to_vec()).collect()
    }

    fn replayed(frames: &[Vec<u8>], replay: &str, burst: usize) -> Vec<Vec<u8>> {
        let replay: Replay = replay.parse().unwrap();
        let mut ends = Vec::new();
        for frame in frames {
            ends.push(ends.last().unwrap_or(&0) + frame.len());
        }
        let mut running = Running::new(frames.concat(), ends, LinkType::ETHERNET, &replay).unwrap();
        let (mut batch, mut pool, mut all) = (Batch::new(), Pool::new(), Vec::new());
        while running.receive(burst, &mut batch, &mut pool).unwrap() == Received::More {}
        all.extend(batch.drain().map(|packet| packet.data().to_vec()));
        all
    }

    #[test]
    fn loops_have_flows_of_their_own() {
        let frames = generated(10);
        for burst in [1, 7, 10, 32, 100] {
            let all = replayed(&frames, "a.pcap,rewrite=3,loops=4", burst);
            assert_eq!(all.len(), 40, "{burst}");
            let flow = |frame: &Vec<u8>| frame[26..38].to_vec();
            let flows: HashSet<_> = all.iter().map(flow).collect();
            assert_eq!(flows.len(), 30, "{burst}");
            assert_eq!((&all[..10], &all[30..]), (&frames[..], &frames[..]));
            assert!(all.iter().all(|frame| Ipv4::new(&frame[14..]).unwrap().checksum_ok()));
        }
    }

    #[test]
    fn how_much_is_replayed() {
        let frames = generated(10);
        for (replay, packets) in [
            ("a.pcap", 10),
            ("a.pcap,count=0", 10),
            ("a.pcap,count=25", 25),
            ("a.pcap,loops=3", 30),
            ("a.pcap,rewrite=3", 30),
            ("a.pcap,rewrite=3,count=5", 5),
            ("a.pcap,loops=2,rewrite=3", 20),
        ] {
            assert_eq!(replayed(&frames, replay, 32).len(), packets, "{replay}");
        }
        assert!(replayed(&[], "a.pcap,rewrite=3", 32).is_empty());
    }

    #[test]
    fn loops_follow_one_another_in_time() {
        let frames = generated(3);
        for burst in [1, 2, 5, 32] {
            let replay: Replay = "a.pcap,loops=3".parse().unwrap();
            let ends = (1..=3).map(|n| frames[..n].concat().len()).collect();
            let mut running =
                Running::new(frames.concat(), ends, LinkType::ETHERNET, &replay).unwrap();
            running.set_times(vec![1000, 1010, 1040]).unwrap();
            let (mut batch, mut pool) = (Batch::new(), Pool::new());
            while running.receive(burst, &mut batch, &mut pool).unwrap() == Received::More {}
            let times: Vec<u64> = batch.iter().map(|packet| packet.timestamp()).collect();
            assert_eq!(times, [1000, 1010, 1040, 1060, 1070, 1100, 1120, 1130, 1160], "{burst}");
        }
    }

    #[test]
    fn loops_without_length_are_refused() {
        for (replay, is_refused) in
            [("a.pcap", false), ("a.pcap,loops=2", true), ("a.pcap,count=3", true)]
        {
            let replay: Replay = replay.parse().unwrap();
            let mut running =
                Running::new(vec![0; 20], vec![10, 20], LinkType::ETHERNET, &replay).unwrap();
            let found = running.set_times(vec![7, 7]);
            assert_eq!(found.is_err(), is_refused, "{replay:?}");
        }
    }

    #[test]
    fn options_are_read_from_the_end() {
        let replay: Replay = "a,b.pcap,rewrite=2,count=1k".parse().unwrap();
        assert_eq!((replay.path, replay.rewrite, replay.count), ("a,b.pcap".into(), 2, 1000));
        for (wrong, why) in [
            ("a.pcap,speed=3", "'speed=3': a replay takes count=PACKETS, loops=N, rewrite=N"),
            ("a.pcap,count=x", "'count=x': a number of packets"),
            ("a.pcap,loops=0", "'loops=0': how often a capture is replayed"),
            ("a.pcap,rewrite=65537", "'rewrite=65537': loops with flows of their own, 1 to 65536"),
            ("a.pcap,count=2,loops=2", "count and loops: "),
        ] {
            let error = wrong.parse::<Replay>().unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }

    #[test]
    fn what_has_no_addresses_where_they_are_looked_for_is_refused() {
        let replay: Replay = "a.pcap,rewrite=2".parse().unwrap();
        let refused = Running::new(Vec::new(), Vec::new(), LinkType::LINUX_SLL, &replay);
        assert!(refused.err().unwrap().contains("rewrite=2 is for captures of Ethernet or IP"));
    }
}
