//! Captures and interfaces: what sources make of a capture, what sinks write, and when.

use std::path::{Path as Folder, PathBuf};

use dataplane::Rest;
use dataplane::io::{Binding, Bindings};
use engine::session::Path;
use net::pcap::{Options, Reader, Writer};

use crate::support::{Started, start_bound};

const SECOND: u64 = 1_000_000_000;

/// A folder of a test's own that goes when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("catena-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Writes a capture: times in seconds, frames, and the bytes that were cut off.
    fn capture(&self, name: &str, link: u32, frames: &[(f64, &[u8], u32)]) {
        let mut options = Options::for_file_name(Folder::new(name));
        options.link_type = net::pcap::LinkType(link);
        let mut writer = Writer::new(Vec::new(), &options).unwrap();
        for (time, frame, cut) in frames {
            let time = (time * 1e9) as u64;
            writer.write(time, frame, frame.len() as u32 + cut).unwrap();
        }
        std::fs::write(self.0.join(name), writer.finish().unwrap()).unwrap();
    }

    /// What a capture holds: link type, and time, length and length on the wire of each frame.
    fn read(&self, name: &str) -> (u32, Vec<(u64, usize, u32)>) {
        let mut reader = Reader::open(std::fs::File::open(self.0.join(name)).unwrap()).unwrap();
        let mut frames = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            let h = record.header;
            frames.push((h.timestamp_ns, record.data.len(), h.original_len));
        }
        (reader.link_type().unwrap().0, frames)
    }

    fn start(&self, text: &str) -> Started {
        let bindings = Bindings { folder: self.0.clone(), ..Bindings::default() };
        self.start_with(text, bindings)
    }

    fn start_with(&self, text: &str, bindings: Bindings) -> Started {
        start_bound("test", text, &self.0, Path::Native, bindings)
            .unwrap_or_else(|(diagnostics, _)| panic!("{text}\nis refused: {diagnostics:?}"))
    }

    /// Runs a chain to its end; the values of handlers then.
    #[track_caller]
    fn after(&self, text: &str, answers: &[(&str, &str)]) {
        let mut started = self.start(text);
        started.router.run(|_, _| false);
        started.router.finish();
        for (handler, value) in answers {
            let answer = started.router.read_handler(handler);
            assert_eq!(answer.as_deref(), Ok(*value), "{text}: {handler}");
        }
        assert_eq!(started.heard.0.borrow().errors, Vec::<String>::new(), "{text}");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn frame(length: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    if length > 0 {
        frame[0] = length as u8;
    }
    frame
}

/// Five frames of 60 to 64 bytes, one a second from 100 on.
fn five(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let frames: Vec<Vec<u8>> = (0..5).map(|i| frame(60 + i)).collect();
    let timed = |(i, f): (usize, &'_ Vec<u8>)| (100.0 + i as f64, f.clone());
    let timed: Vec<(f64, Vec<u8>)> = frames.iter().enumerate().map(timed).collect();
    let borrowed: Vec<(f64, &[u8], u32)> = timed.iter().map(|(t, f)| (*t, &f[..], 0)).collect();
    scratch.capture("in.pcap", 1, &borrowed);
    scratch
}

#[test]
fn a_part_of_a_capture_is_read() {
    let scratch = five("window");
    for (window, count) in [
        ("", "5"),
        ("START 102", "3"),
        ("START_AFTER 1.5", "3"),
        ("END 103", "3"),
        ("END_AFTER 1", "1"),
        ("START 101, INTERVAL 2", "2"),
        ("START 101.5, END_AFTER 3", "1"),
        ("SAMPLE 0", "0"),
        ("START 200", "0"),
        ("FILEPOS 100", "4"),
    ] {
        let text =
            format!("f :: FromDump(in.pcap, STOP true, {window}) -> c :: Counter -> Discard");
        scratch.after(&text, &[("c.count", count), ("f.count", count)]);
    }
    let wrong = [
        "START 1, START_AFTER 1",
        "END 1, INTERVAL 1",
        "SAMPLE 2",
        "FORCE_LEN 59",
        "STOP true, END_CALL f.stop",
        "END_CALL nobody.stop",
        "ACCELERATION 0",
    ];
    for wrong in wrong {
        let text = format!("f :: FromDump(in.pcap, {wrong}) -> Discard");
        let bindings = Bindings { folder: scratch.0.clone(), ..Bindings::default() };
        assert!(start_bound("test", &text, &scratch.0, Path::Native, bindings).is_err(), "{wrong}");
    }
}

#[test]
fn the_end_can_be_put_off_and_the_file_read_again() {
    let scratch = five("extend");
    let mut started = scratch.start("f :: FromDump(in.pcap, END 102) -> c :: Counter -> Discard");
    let router = &mut started.router;
    for (write, count) in [("extend_interval 1", "3"), ("active true", "5"), ("filepos 24", "10")] {
        let (handler, value) = write.split_once(' ').unwrap();
        router.run(|_, _| false);
        router.write_handler(&format!("f.{handler}"), value).unwrap();
        router.run(|_, _| false);
        assert_eq!(router.read_handler("c.count").as_deref(), Ok(count), "{write}");
    }
    assert!(router.write_handler("f.filepos", "3").is_err());
    // A handler that is called at the end may put it off itself.
    scratch.after(
        "f :: FromDump(in.pcap, END 102, END_CALL f.extend_interval 2) -> c :: Counter -> Discard",
        &[("c.count", "5")],
    );
}

#[test]
fn the_times_of_a_capture_are_kept() {
    let scratch = five("timing");
    for (speed, waits) in [("", SECOND), (", ACCELERATION 400", SECOND / 4)] {
        let text = format!("FromDump(in.pcap, TIMING true{speed}) -> c :: Counter -> Discard");
        let mut started = scratch.start(&text);
        let mut times = Vec::new();
        started.router.run(|_, rest| {
            if let Rest::Until(time) = rest {
                times.push(time);
            }
            false
        });
        let steps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        assert_eq!(steps, [waits; 3]);
        assert_eq!(started.router.read_handler("c.count").as_deref(), Ok("5"));
    }
    let pulled = "FromDump(in.pcap, TIMING true) -> Unqueue -> c :: Counter -> Discard";
    scratch.after(pulled, &[("c.count", "5")]);
}

#[test]
fn lengths_are_forced() {
    let scratch = Scratch::new("lengths");
    let frame = net::notation::parse("udp 10.0.0.1:1 > 10.0.0.2:2 size 100").unwrap();
    scratch.capture("in.pcap", 1, &[(1.0, &frame[..70], 30), (2.0, &frame, 0)]);
    let check = |force: &str, bytes: &str| {
        let text = format!(
            "FromDump(in.pcap, FORCE_LEN {force}, STOP true) -> c :: Counter -> Strip(14)
             -> CheckIPHeader -> d :: Counter -> Discard"
        );
        scratch.after(&text, &[("c.byte_count", bytes), ("d.count", "2")]);
    };
    check("0", "200");
    check("64", "128");
    check("500", "1000");
}

#[test]
fn sinks_write_what_they_are_told() {
    let scratch = Scratch::new("sinks");
    scratch.capture("in.pcap", 1, &[(1.5, &frame(100), 900), (2.5, &frame(60), 0)]);
    scratch.after(
        "f :: FromDump(in.pcap, STOP true) -> ToDump(a.pcap, 64) -> ToDump(b.pcap, EXTRA_LENGTH false, NANO true)
         -> Strip(14) -> ToDump(c.pcap, SNAPLEN 0, ENCAP IP, UNBUFFERED true) -> Unstrip(14)
         -> SetTimestamp(0) -> d :: ToDump(d.pcap.gz, USE_ENCAP_FROM f)",
        &[("d.count", "2"), ("f.encap", "ETHER"), ("d.filename", "d.pcap.gz")],
    );
    let times = [SECOND * 3 / 2, SECOND * 5 / 2];
    assert_eq!(scratch.read("a.pcap"), (1, vec![(times[0], 64, 1000), (times[1], 60, 60)]));
    assert_eq!(scratch.read("b.pcap"), (1, vec![(times[0], 100, 100), (times[1], 60, 60)]));
    assert_eq!(scratch.read("c.pcap"), (101, vec![(times[0], 86, 986), (times[1], 46, 46)]));
    // A packet without a time is written with the present one.
    let now = crate::support::EPOCH;
    assert_eq!(scratch.read("d.pcap.gz"), (1, vec![(now, 100, 1000), (now, 60, 60)]));
}

#[test]
fn interfaces_are_bound_to_captures_and_generators() {
    let scratch = five("interfaces");
    let mut broadcast = frame(60);
    broadcast[..6].fill(0xff);
    let mut multicast = frame(60);
    multicast[0] = 1;
    scratch.capture(
        "types.pcap",
        1,
        &[(0.0, &broadcast, 0), (1.0, &multicast, 0), (2.0, &frame(60), 0)],
    );
    let mut bindings = Bindings::default();
    let capture = |name: &str| Binding::Capture(scratch.0.join(name));
    bindings.inputs.insert("eth0".into(), capture("in.pcap"));
    bindings.inputs.insert("types".into(), capture("types.pcap"));
    bindings.inputs.insert("paced".into(), Binding::source("gen:rate=1k,count=500").unwrap());
    bindings.outputs.insert("eth1".into(), capture("out.pcap"));
    bindings.outputs.insert("eth2".into(), capture("pulled.pcap"));
    let mut started = scratch.start_with(
        "FromDevice(eth0, PROMISC true, SNAPLEN 2000) -> t :: ToDevice(eth1) -> c :: Counter -> Discard;
         p :: FromDevice(paced) -> Queue -> ToDevice(eth2);
         FromDevice(types) -> DropBroadcasts -> d :: Counter -> Discard;",
        bindings,
    );
    let mut last = 0;
    assert_eq!(
        started.router.run(|_, rest| {
            if let Rest::Until(time) = rest {
                last = time;
            }
            false
        }),
        Rest::Idle
    );
    started.router.finish();
    for (handler, value) in
        [("c.count", "5"), ("t.count", "5"), ("p.count", "500"), ("d.count", "1")]
    {
        assert_eq!(started.router.read_handler(handler).as_deref(), Ok(value), "{handler}");
    }
    assert_eq!(scratch.read("out.pcap").1.len(), 5);
    assert_eq!(scratch.read("pulled.pcap").1.len(), 500);
    // 500 packets, of which a burst of 32 came at once, at a thousand a second.
    let passed = last - crate::support::EPOCH;
    assert!((460_000_000..500_000_000).contains(&passed), "{passed}");
    let traffic: Vec<_> = started.router.report().filter_map(|(n, .., t)| Some((n, t?))).collect();
    assert!(
        traffic.iter().any(|(n, t)| *n == "t" && !t.source && t.packets == 5 && t.bytes == 310)
    );
}

#[test]
fn a_capture_that_breaks_off_yields_what_came_before() {
    let scratch = five("broken");
    let path = scratch.0.join("in.pcap");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    let mut started =
        scratch.start("FromDump(in.pcap, STOP true) -> c :: Counter -> ToDump(out.pcap)");
    assert_eq!(started.router.run(|_, _| false), Rest::Stopped);
    started.router.finish();
    assert_eq!(started.router.read_handler("c.count").as_deref(), Ok("4"));
    let errors = started.heard.0.borrow().errors.clone();
    assert!(errors.len() == 1 && errors[0].contains("byte 334"), "{errors:?}");
    assert_eq!(scratch.read("out.pcap").1.len(), 4);
}
