//! FastClick beside the variants: the same chain and packets, in a process of its own.
//!
//! It replays a capture from memory, and notes the time when the traffic has settled and when all packets that are
//! measured have come. What its source takes differs from ours, so bare forwarding is measured, too, and what
//! the chain adds is compared.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use net::pcap::{Options, Writer};

use crate::BURST;
use crate::chains::Chain;
use crate::workload::{Frames, Workload};

/// FastClick's program, and a workload's packets in a file.
pub(crate) struct FastClick {
    folder: PathBuf,
    settle: u64,
    packets: u64,
}

impl FastClick {
    /// Whether there is a `click` that has FastClick's elements.
    pub(crate) fn is_there() -> bool {
        let text = "Idle -> ReplayUnqueue(STOP 1) -> Discard; DriverManager(stop)";
        let result = Command::new("click").args(["-e", text]).output();
        result.is_ok_and(|output| output.status.success())
    }

    /// Writes the packets that it replays.
    pub(crate) fn new(workload: &Rc<Workload>, packets: u64) -> Self {
        let folder = std::env::temp_dir().join(format!("catena-traffic-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let settle = workload.settle / BURST as u64 * BURST as u64;
        let file = File::create(folder.join("in.pcap")).expect("a capture");
        let mut writer = Writer::new(file, &Options::default()).expect("a capture");
        let mut frames = Frames::new(workload);
        for _ in 0..settle + packets {
            let frame = frames.next_frame();
            writer.write(0, frame, frame.len() as u32).expect("a capture");
        }
        writer.finish().expect("a capture");
        Self { folder, settle, packets }
    }

    /// Nanoseconds per packet of a chain.
    pub(crate) fn run(&self, chain: &Chain, workload: &Workload) -> f64 {
        let Self { folder, settle, packets } = self;
        let source = format!(
            "FromDump({}, STOP false) -> ReplayUnqueue(STOP 2, QUICK_CLONE false, BURST {BURST}) \
             -> Counter(COUNT_CALL {settle} begin.run) -> Counter(COUNT_CALL {} end.run)",
            folder.join("in.pcap").display(),
            settle + packets,
        );
        let scripts = "begin :: Script(TYPE PASSIVE, print \"begin $(now)\");\n\
                       end :: Script(TYPE PASSIVE, print \"end $(now)\", stop);\n";
        let text = chain.text(workload, &source, "Discard") + scripts;
        let file = folder.join("chain.click");
        write(&file, &text);
        let output = Command::new("click").arg(&file).output().expect("click runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        let time = |what: &str| -> f64 {
            let mut found = printed.lines().filter_map(|line| line.trim().strip_prefix(what));
            found.next().and_then(|time| time.trim().parse().ok()).unwrap_or_else(|| {
                let errors = String::from_utf8_lossy(&output.stderr);
                panic!("{}: click printed no time: {printed}{errors}", chain.name)
            })
        };
        (time("end") - time("begin")) * 1e9 / *packets as f64
    }
}

impl Drop for FastClick {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn write(path: &Path, text: &str) {
    let mut file = File::create(path).expect("a file");
    file.write_all(text.as_bytes()).expect("a file");
}
