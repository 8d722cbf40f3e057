//! DPDK: frames go between a driver of DPDK's and this process, past the kernel. One port a
//! device, one pair of queues a worker.

use std::ffi::CString;
use std::io::Result;
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};

use net::{Batch, Packet, Pool};

use super::offload::complete_if_partial;
use super::port::{
    ETHERNET, LINK_DOWN, Losses, OVERRUN, OVERSIZE, Port, REFUSED, RUNT, give_up, recycle_first,
};

mod ffi;
pub mod swx;

use ffi::{ClosedPort, Counts, Queue, Refusal};

/// Frames at a time: enough to share what is done once for all, few enough to stay in the first
/// cache.
pub(super) const BURST: usize = 64;

/// Drivers whose frames come from senders on this host, which leave checksums half done.
const VIRTUAL: [&str; 3] = ["net_af_packet", "net_af_xdp", "net_tap"];

/// Drivers that spread flows, both directions to the same queue, by default.
const SPREADING: [(&str, &str); 1] = [("net_af_packet", "the kernel's symmetric hash")];

/// What DPDK is started with if the user does not say: no files that other processes share.
const ARGUMENTS: &str = "--in-memory --no-telemetry";

/// Whether DPDK runs in this process, or why it does not. It can be started once.
static STARTED: Mutex<Option<std::result::Result<(), String>>> = Mutex::new(None);

/// A worker's queues of a device.
pub(super) struct Dpdk {
    name: String,
    queue: Queue,
    partial: bool,
    up: bool,
    counted: Counts,
}

/// A device that is open: its workers' ports, its MTU, and what is to be said of it.
pub(super) struct Opened {
    pub(super) ports: Vec<Dpdk>,
    pub(super) mtu: usize,
    pub(super) remarks: Vec<String>,
}

/// Opens the device of these arguments (`net_memif0,role=server`, `0000:03:00.0`) for so many
/// workers, that send alone or also receive. DPDK is started with these arguments of its own, if it was not.
///
/// # Errors
/// What is wrong, and the mend.
pub(super) fn open(
    device: &str,
    eal: Option<&str>,
    (workers, receives): (usize, bool),
) -> std::result::Result<Opened, String> {
    started(eal)?;
    let name = device.split(',').next().unwrap_or_default().to_string();
    let text = |text: &str| CString::new(text).map_err(|e| e.to_string());
    let found = ClosedPort::new(&text(device)?, &text(&name)?);
    let found = found.map_err(|refusal| not_found(&name, &refusal))?;
    let (driver, mtu) = (found.driver(), found.mtu());
    let spreading = SPREADING.iter().find(|(name, _)| *name == driver).map(|(_, how)| *how);
    if found.queues() < workers {
        return Err(format!(
            "{name} has {} for {workers} workers; arguments of its driver may give it more \
             (`dpdk-devbind.py --help`, DPDK's guide to network drivers)",
            match found.queues() {
                1 => "1 queue".to_string(),
                n => format!("{n} queues"),
            }
        ));
    }
    let spread = workers > 1 && receives && spreading.is_none();
    if spread && !found.spreads() {
        return Err(format!(
            "its driver {driver} cannot spread flows over {workers} workers (it has no RSS); run \
             one worker, or take a device that can"
        ));
    }
    let number = u16::try_from(workers).map_err(|e| e.to_string())?;
    let queues = found.open(number, spread).map_err(|refusal| explain(&refusal))?;
    let partial = VIRTUAL.contains(&driver.as_str());
    let mut remarks = vec![driver, ffi::version()];
    if workers > 1 && receives {
        let how = spreading.unwrap_or("RSS with a symmetric key");
        remarks.push(format!("flows to {workers} workers by {how}"));
    }
    let port = |queue: Queue| Dpdk {
        name: name.clone(),
        partial,
        up: queue.is_up(),
        counted: queue.counts(),
        queue,
    };
    Ok(Opened { ports: queues.into_iter().map(port).collect(), mtu, remarks })
}

/// Starts DPDK if it was not.
fn started(eal: Option<&str>) -> std::result::Result<(), String> {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    started.get_or_insert_with(|| start(eal)).clone()
}

fn start(eal: Option<&str>) -> std::result::Result<(), String> {
    let given = eal.unwrap_or(ARGUMENTS);
    let mut arguments = vec!["catena".to_string()];
    let cores = ["-l", "-c", "--lcores", "--main-lcore"];
    if !given.split_whitespace().any(|word| cores.iter().any(|core| word.starts_with(core))) {
        // EAL would start a thread on every CPU; workers are Catena's own.
        let cpu = crate::threads::cpus().first().copied().unwrap_or(0);
        arguments.extend(["--lcores".to_string(), format!("0@{cpu}")]);
    }
    arguments.extend(given.split_whitespace().map(str::to_string));
    let words = arguments.into_iter().map(CString::new).collect::<std::result::Result<_, _>>();
    ffi::start(words.map_err(|e| e.to_string())?).map_err(|refusal| {
        let said = explain(&refusal);
        let mend = if said.contains("hugepage") || said.contains("memory") {
            "; give DPDK memory (`echo 512 > /proc/sys/vm/nr_hugepages`), or do without huge pages: \
             --dpdk-eal '--no-huge -m 512'"
        } else {
            "; --dpdk-eal 'ARGUMENTS' changes how it starts"
        };
        format!("DPDK does not start: {said}{mend}")
    })
}

fn not_found(name: &str, refusal: &Refusal) -> String {
    if !refusal.said.contains("failed to parse device") {
        return explain(refusal);
    }
    format!(
        "no DPDK driver accepts '{name}'; name a device by its PCI address, or by driver, number and \
         arguments, as in dpdk:net_memif0,role=server"
    )
}

/// DPDK's error, and the last of what it said.
fn explain(refusal: &Refusal) -> String {
    let mut said: Vec<&str> =
        refusal.said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    said.drain(..said.len().saturating_sub(4));
    match said.is_empty() {
        true => refusal.error.to_string(),
        false => format!("{} ({})", said.join("; "), refusal.error),
    }
}

impl Dpdk {
    /// Tells when the link has changed.
    fn look(&mut self, losses: &mut Losses) {
        let up = self.queue.is_up();
        if up != self.up && self.queue.number() == 0 {
            let state = if up { "up" } else { "down" };
            losses.notice(format!("{}: the link is {state}", self.name));
        }
        self.up = up;
    }
}

impl Port for Dpdk {
    fn receive(
        &mut self,
        most: usize,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
    ) -> Result<()> {
        let first = batch.len();
        if self.queue.receive(most, batch, pool) < ETHERNET {
            let mut all = Batch::default();
            batch.split_to(first, &mut all);
            for packet in all.drain() {
                match packet.len() {
                    ETHERNET.. => batch.push(packet),
                    length => {
                        losses.received(RUNT, 1, length as u64);
                        pool.recycle(packet);
                    }
                }
            }
        }
        if self.partial {
            let frames = &mut batch.as_mut_slice()[first..];
            frames.iter_mut().for_each(|packet| complete_if_partial(packet.data_mut()));
        }
        Ok(())
    }

    fn receive_each(
        &mut self,
        most: usize,
        read: &mut dyn FnMut(&[u8]),
        losses: &mut Losses,
    ) -> Option<usize> {
        Some(self.queue.receive_each(most, |frame| match frame.len() {
            ETHERNET.. => read(frame),
            length => losses.received(RUNT, 1, length as u64),
        }))
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool, losses: &mut Losses) -> Result<()> {
        let lengths = ETHERNET..self.queue.longest() + 1;
        loop {
            let sent = self.queue.send(lengths.clone(), batch, pool);
            let Some(next) = batch.as_slice().first().map(Packet::len) else { break };
            if lengths.contains(&next) {
                if sent > 0 {
                    continue;
                }
                self.look(losses);
                if !self.up {
                    give_up(LINK_DOWN, batch, pool, losses);
                }
                break;
            }
            let why = if next < ETHERNET { RUNT } else { OVERSIZE };
            losses.sent(why, 1, next as u64);
            recycle_first(1, batch, pool);
        }
        Ok(())
    }

    fn prepare_copies(&mut self, frame: &[u8]) -> bool {
        (ETHERNET..=self.queue.longest()).contains(&frame.len()) && self.queue.prepare(frame)
    }

    fn send_prepared(
        &mut self,
        count: usize,
        write: &mut dyn FnMut(&mut [u8]),
        losses: &mut Losses,
    ) -> usize {
        let sent = self.queue.send_prepared(count, write);
        if sent == 0 {
            self.look(losses);
            if !self.up {
                let (packets, bytes) = self.queue.drop_prepared();
                losses.sent(LINK_DOWN, packets, bytes);
                return packets as usize;
            }
        }
        sent
    }

    fn waiting(&mut self) -> Option<u64> {
        None
    }

    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    fn count_overruns(&mut self, losses: &mut Losses) {
        self.look(losses);
        // The port counts for all its queues; one tells.
        if self.queue.number() > 0 {
            return;
        }
        let (now, before) = (self.queue.counts(), self.counted);
        let lost = |c: &Counts| c.missed.saturating_add(c.no_buffers);
        losses.received(OVERRUN, lost(&now).saturating_sub(lost(&before)), 0);
        let errors = now.receive_errors.saturating_sub(before.receive_errors);
        losses.received(REFUSED, errors, 0);
        losses.sent(REFUSED, now.send_errors.saturating_sub(before.send_errors), 0);
        self.counted = now;
    }
}
