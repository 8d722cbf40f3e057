//! Frames that load what is measured: Catena's own AF_PACKET devices, many frames in a system call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use dataplane::io::{Binding, Bindings, InterfaceSpec, Mode};
use elements::device::{Device, DeviceRequest};
use net::{Batch, Pool};

use crate::testbed::{Testbed, pause};

/// Frames in a system call.
const BATCH: usize = 64;

/// Opens the interface of a load or an end, in the namespace of the calling thread.
pub(crate) fn open(receive: bool) -> Box<dyn Device + Send> {
    let mode = Some(Mode::AfPacketMmsg);
    let spec = InterfaceSpec { name: "veth0".to_string(), mode, batch: None, shared: false };
    let mut bindings = Bindings::default();
    bindings.inputs.insert("veth0".to_string(), Binding::Interface(spec.clone()));
    bindings.outputs.insert("veth0".to_string(), Binding::Interface(spec));
    let request = DeviceRequest::Interface { name: "veth0".to_string(), receive };
    bindings.open_device(&request).expect("veth0")
}

/// A thread that sends frames round and round until it is dropped: as fast as it can, or with a
/// pause after each system call.
pub(crate) struct Flood {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    pub(crate) fn start(
        testbed: &Arc<Testbed>,
        frames: &Arc<Vec<Vec<u8>>>,
        paused: Option<Duration>,
    ) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (testbed, frames, until) = (Arc::clone(testbed), Arc::clone(frames), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            testbed.enter_loading("load");
            let mut device = open(false);
            let (mut pool, mut batch) = (Pool::new(), Batch::new());
            let mut all = frames.iter().cycle();
            while !until.load(Ordering::Relaxed) {
                while batch.len() < BATCH {
                    let Some(frame) = all.next() else { return };
                    batch.push(pool.packet(frame));
                }
                device.send(&mut batch, &mut pool).expect("frames are sent");
                paused.into_iter().for_each(pause);
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
