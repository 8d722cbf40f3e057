//! Programs in the kernel, which runs them on frames one by one and says how long it took.

use codegen::File;
use codegen::ebpf::insn::{EXIT, set};
use codegen::ebpf::{self, Code, Object, PORTS_MAP};
use dataplane::io::Loaded;

/// The host's loopback: frames leave by it, and go nowhere.
const SOMEWHERE: u32 = 1;

/// An artefact, in the kernel.
pub(crate) fn load(name: &str, files: &[File]) -> Loaded {
    let object = ebpf::object(files).unwrap_or_else(|why| panic!("{name}: {why:?}"));
    let loaded = Loaded::new(&object).unwrap_or_else(|why| panic!("{name}: {why}"));
    if object.maps.iter().any(|map| map.name == PORTS_MAP) {
        for port in 0..8_u32 {
            let set = loaded.set(PORTS_MAP, &port.to_le_bytes(), &SOMEWHERE.to_le_bytes());
            set.expect("a port");
        }
    }
    loaded
}

/// A program that lets every frame pass.
pub(crate) fn nothing() -> Loaded {
    const PASS: i32 = 2;
    let words = vec![set(0, PASS), EXIT];
    let code = Code { name: "empty".into(), section: "xdp".into(), words, maps: Vec::new() };
    Loaded::new(&Object { maps: Vec::new(), programs: vec![code] }).expect("it loads")
}

/// Nanoseconds a frame that the program of an entry takes.
pub(crate) fn run(loaded: &Loaded, entry: usize, frames: &[&[u8]]) -> f64 {
    let ran = frames.iter().map(|frame| loaded.test_run(entry, frame, 1).expect("it runs"));
    ran.map(|ran| f64::from(ran.nanoseconds)).sum::<f64>() / frames.len() as f64
}
