//! Network interfaces of the host: which I/O mode each gets and why, what is switched off for
//! it, and that all is as it was in the end.

use std::fmt;
use std::io::Error;
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use elements::device::OwnedPorts;

use super::af_packet::{AfPacket, Group, Hold};
use super::af_xdp::{self, AfXdp, Layout};
use super::bpf::{self, Attached, SocketMap};
use super::claim::Claim;
use super::dispatch::{Dispatch, DispatchMode, Tags};
#[cfg(feature = "dpdk")]
use super::dpdk;
use super::hand_off::HandOff;
use super::neighbours::WithNeighbours;
use super::netdev::{Asker, Link, explain, in_words};
use super::port::{MOST, Port, WorkerShare};
use super::process::Process;
use super::steering::{self, Steering};
use super::sys;
use super::tap::Tap;

/// An I/O mode: how frames go between the kernel and the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// AF_XDP: frames go past the kernel's stack.
    AfXdp,
    /// AF_PACKET, many frames in a system call.
    AfPacketMmsg,
    /// AF_PACKET with a ring that the kernel puts frames into (TPACKET_V2).
    AfPacketRing,
    /// AF_PACKET, one frame in a system call: the baseline.
    AfPacket,
    /// A TAP interface, made for the chain.
    Tap,
    /// A device of DPDK's.
    #[cfg(feature = "dpdk")]
    Dpdk,
}

/// All modes with their names on the command line.
const MODES: &[(Mode, &str)] = &[
    (Mode::AfXdp, "af-xdp"),
    (Mode::AfPacketMmsg, "af-packet-mmsg"),
    (Mode::AfPacketRing, "af-packet-ring"),
    (Mode::AfPacket, "af-packet"),
    (Mode::Tap, "tap"),
    #[cfg(feature = "dpdk")]
    (Mode::Dpdk, "dpdk"),
];

/// Drivers of interfaces whose senders are on this host, or on the host that this one runs on:
/// they leave checksums half done, and do not tell XDP so.
const VIRTUAL: [&str; 4] = ["veth", "tun", "virtio_net", "dummy"];

/// The name of an interface's driver, in the network namespace of the calling thread; nothing if it reports none.
pub fn driver(interface: &str) -> Option<String> {
    Asker::new().ok().map(|asker| asker.driver(interface)).filter(|driver| !driver.is_empty())
}

impl Mode {
    /// Those that an interface of the host can be carried by, the best first.
    pub fn choices() -> impl Iterator<Item = Self> {
        MODES.iter().map(|(mode, _)| *mode).filter(|mode| mode.is_choice())
    }

    /// Whether it is one of those that an interface of the host can be carried by; the others have
    /// interfaces of their own.
    pub fn is_choice(self) -> bool {
        match self {
            Self::AfXdp | Self::AfPacketMmsg | Self::AfPacketRing | Self::AfPacket => true,
            Self::Tap => false,
            #[cfg(feature = "dpdk")]
            Self::Dpdk => false,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MODES.iter().find(|m| m.0 == *self).map_or("", |m| m.1))
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let choices = || MODES.iter().filter(|m| m.0.is_choice());
        let known = || choices().map(|m| m.1).collect::<Vec<_>>().join(", ");
        let mode = choices().find(|m| m.1 == text).map(|m| m.0);
        mode.ok_or_else(|| format!("'{text}' is not an I/O mode; the modes are auto, {}", known()))
    }
}

/// An interface, and how its frames are to be carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceSpec {
    /// Its name.
    pub name: String,
    /// The mode; the best that works if none is given.
    pub mode: Option<Mode>,
    /// How many packets are asked for at a time, 1 to 256; as the load has it if not given.
    pub batch: Option<usize>,
    /// Whether other processes may have it, too.
    pub shared: bool,
}

impl InterfaceSpec {
    /// The interface's name; a device of DPDK's is named with its driver's arguments behind it.
    pub(super) fn interface(&self) -> &str {
        self.name.split(',').next().unwrap_or_default()
    }
}

/// How the frames of an interface are to be carried, or those of all: `eth0=af-xdp`,
/// `af-packet-mmsg,batch=32`, `tap0=batch=8`, `auto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The interface's name.
    pub interface: Option<String>,
    /// As in [`InterfaceSpec`].
    pub mode: Option<Mode>,
    /// As in [`InterfaceSpec`].
    pub batch: Option<usize>,
    /// As in [`InterfaceSpec`].
    pub shared: bool,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let first = text.split(',').next().unwrap_or_default();
        let (interface, how) = match first.split_once('=') {
            Some((name, _)) if name != BATCH => (Some(name.to_string()), &text[name.len() + 1..]),
            _ => (None, text),
        };
        let mut choice = Self { interface, mode: None, batch: None, shared: false };
        for word in how.split(',') {
            match word.split_once('=') {
                Some((BATCH, number)) => {
                    let batch = number.parse().ok().filter(|n| (1..=MOST).contains(n));
                    choice.batch =
                        Some(batch.ok_or(format!("{word}: a batch has 1 to {MOST} packets"))?);
                }
                _ if word == "auto" => choice.mode = None,
                _ if word == "shared" => choice.shared = true,
                _ => choice.mode = Some(word.parse()?),
            }
        }
        Ok(choice)
    }
}

const BATCH: &str = "batch";

fn count_of(queues: u32) -> String {
    format!("{queues} queue{}", if queues == 1 { "" } else { "s" })
}

/// How long it is waited for queues to be released, and how long before each new try.
const RELEASE: Duration = Duration::from_millis(200);
const RELEASE_ROUND: Duration = Duration::from_millis(5);

/// Ranges that a program looks through for each packet.
const MOST_OWNED: usize = 200;

/// What hands frames to AF_XDP's sockets.
struct Redirection {
    attached: Attached,
    sockets: SocketMap,
    /// Whether frames may come in several pieces.
    pieces: bool,
}

/// What is open on an interface. What was switched off is not switched on again when this is
/// dropped, but by [`Interface::restore`].
struct Opened {
    redirection: Option<Redirection>,
    /// Keeps frames from the host.
    kept_from_host: Option<Attached>,
    /// A hold on the interface, where it is one that this process did not make.
    hold: Option<Hold>,
    /// Keeps other processes from taking its frames, where that may be.
    claim: Option<Claim>,
    /// The interface's number.
    index: u32,
    /// How often the interface was opened before.
    opening: u64,
    /// What carries each worker's frames, until the worker fetches it.
    ports: Vec<Option<Box<dyn Port + Send>>>,
    mtu: usize,
    /// What is to be said of the mode.
    remarks: Vec<String>,
    /// Features that were switched off.
    stopped: Vec<&'static str>,
}

impl Opened {
    /// The same, claimed by this process and others.
    fn claimed(mut self, (claim, others): (Claim, Vec<u32>)) -> Self {
        self.claim = Some(claim);
        if !others.is_empty() {
            let others: Vec<String> = others.iter().map(u32::to_string).collect();
            let others = others.join(", ");
            self.remarks.push(format!("shared with another catena (process {others})"));
        }
        self
    }
}

/// An interface that frames are carried from and to, by one worker or several.
pub(super) struct Interface {
    spec: InterfaceSpec,
    /// The mode that was found to be the one.
    mode: Mode,
    /// Why it is not a better one.
    why: Option<String>,
    workers: usize,
    /// How many interfaces there are in all.
    interfaces: usize,
    /// Whether anybody may receive from it.
    #[cfg_attr(not(feature = "dpdk"), allow(dead_code, reason = "nothing else reads it"))]
    receives: bool,
    /// What DPDK is started with.
    #[cfg_attr(not(feature = "dpdk"), allow(dead_code, reason = "nothing else reads it"))]
    eal: Option<String>,
    dispatch: Dispatch,
    asker: Asker,
    opened: Mutex<Option<Opened>>,
    openings: AtomicU64,
    /// What last kept it from being opened again.
    obstacle: Mutex<String>,
    /// What is allocated, as far as frames to it are brought to their workers. Locked after
    /// `opened`.
    owned: Mutex<Vec<OwnedPorts>>,
    /// Each worker's channel to the others, until the worker fetches it; none if they hand nothing to
    /// each other.
    hand_offs: Mutex<Vec<Option<HandOff>>>,
    /// Set when it is closed, and as it was found.
    left: Arc<OnceLock<()>>,
    /// The program whose interface is at its other end, which runs until this is closed.
    pub(super) process: Option<Arc<dyn Process>>,
}

/// An interface that is there.
pub(super) struct Present {
    /// Its name, which may have changed since it was opened.
    pub(super) name: String,
    /// Whether it can carry frames.
    pub(super) link: Link,
    /// Which opening of it lasts, if one does.
    pub(super) opening: Option<u64>,
}

/// A worker's port, and the opening of the interface that it is of.
pub(super) type Fetched = (Box<dyn Port + Send>, u64);

impl Interface {
    /// Opens an interface for a number of workers, as one of so many interfaces; for who sends alone, or also receives.
    ///
    /// # Errors
    /// What is wrong, and the mend.
    pub(super) fn open(
        spec: &InterfaceSpec,
        ((workers, interfaces), receives): ((usize, usize), bool),
        eal: Option<&str>,
        dispatch: Dispatch,
    ) -> Result<Self, String> {
        let name = &spec.name;
        let asker = Asker::new().map_err(|e| format!("{name}: {}", in_words(&e)))?;
        let mut interface = Self {
            spec: spec.clone(),
            mode: spec.mode.unwrap_or(Mode::AfXdp),
            why: None,
            workers: workers.max(1),
            interfaces,
            receives,
            eal: eal.map(str::to_string),
            dispatch,
            asker,
            opened: Mutex::new(None),
            openings: AtomicU64::new(0),
            obstacle: Mutex::default(),
            owned: Mutex::new(Vec::new()),
            hand_offs: Mutex::new(Vec::new()),
            left: Arc::default(),
            process: None,
        };
        let dispatch_mode = interface.dispatch.mode();
        if dispatch_mode.hands_on() && workers > 1 {
            let hands_on = |from, _| from == 0 || dispatch_mode == DispatchMode::HandOff;
            let all = HandOff::connect(workers, hands_on);
            let all = all.map_err(|e| format!("{name}: {}", in_words(&e)))?;
            interface.hand_offs = Mutex::new(all.into_iter().map(Some).collect());
        }
        if !interface.mode.is_choice() {
            let mode = interface.mode;
            let is_refused = match dispatch_mode {
                DispatchMode::Tags(_) => true,
                DispatchMode::Hash if interface.dispatch.is_elastic() => true,
                DispatchMode::Software => mode != Mode::Tap,
                DispatchMode::Hash | DispatchMode::Queue | DispatchMode::HandOff => false,
            };
            if interface.workers > 1 && is_refused {
                return Err(match dispatch_mode {
                    DispatchMode::Software => format!(
                        "{name}: by {mode} frames come to all workers, not to the first; --dispatch \
                         hand-off has them handed on from there"
                    ),
                    DispatchMode::Hash => format!(
                        "{name}: {mode} does not move flows between workers; the number of workers \
                         cannot change there"
                    ),
                    _ => format!(
                        "{name}: {mode} does not dispatch frames by their tags; use one worker with \
                         --dispatch {dispatch_mode} there"
                    ),
                });
            }
            let opened = interface.open_ports(0);
            let opened = opened.map_err(|why| format!("{name}: {}: {why}", interface.mode))?;
            *interface.lock() = Some(opened);
            return Ok(interface);
        }
        let index = interface.asker.index(name).map_err(|e| match sys::number(&e) {
            libc::ENODEV => {
                format!("there is no interface '{name}'; `ip link` lists all interfaces")
            }
            _ => format!("{name}: {e}"),
        })?;
        if !interface.asker.is_ethernet(name).unwrap_or(false) {
            return Err(format!(
                "{name} is not an Ethernet interface; Catena supports Ethernet only"
            ));
        }
        if interface.asker.link(name).is_ok_and(|link| link == Link::Down) {
            return Err(format!("{name} is down; switch it on with `ip link set {name} up`"));
        }
        let claim = interface.claim(index)?;
        let mut opened = interface.open_ports(index);
        if spec.mode.is_none()
            && let Err(why) = opened
        {
            interface.mode = Mode::AfPacketMmsg;
            interface.why = Some(why);
            opened = interface.open_ports(index);
        }
        let opened = opened.map_err(|why| format!("{name}: {}: {why}", interface.mode))?;
        *interface.lock() = Some(opened.claimed(claim));
        Ok(interface)
    }

    /// Claims the interface of a number for this process; with the processes that share it.
    fn claim(&self, index: u32) -> Result<(Claim, Vec<u32>), String> {
        let name = &self.spec.name;
        let claimed = Claim::new(index).map_err(|e| format!("{name}: {}", in_words(&e)))?;
        match claimed.1.first() {
            Some(process) if !self.spec.shared => Err(format!(
                "{name}: another catena (process {process}) has it, and frames of an interface are one's; \
                 --io {name}=shared has it all the same"
            )),
            _ => Ok(claimed),
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    fn lock(&self) -> MutexGuard<'_, Option<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn steering<'a>(&'a self, owned: &'a [OwnedPorts]) -> Steering<'a> {
        let has_queues = self.has_queues();
        Steering { owned, workers: self.workers, dispatch: &self.dispatch, has_queues }
    }

    /// Whether frames come on queues that somebody else chose.
    fn has_queues(&self) -> bool {
        self.mode != Mode::Tap
    }

    /// What says which worker's a frame is.
    pub(super) fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Its MAC address, as far as it is known.
    pub(super) fn address(&self) -> [u8; 6] {
        self.asker.address(&self.spec.name).unwrap_or_default()
    }

    /// What is allocated.
    pub(super) fn owned(&self) -> MutexGuard<'_, Vec<OwnedPorts>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Steers frames to what is allocated to the worker whose share it is, if there are
    /// several. A program that is returned is for the worker's port.
    ///
    /// # Errors
    /// A message.
    pub(super) fn steer(&self, owned: &[OwnedPorts]) -> Result<Option<OwnedFd>, String> {
        if self.workers == 1 || self.dispatch.mode().hands_on() {
            return Ok(None);
        }
        let name = &self.spec.name;
        let mut wanted: Vec<OwnedPorts> = Vec::new();
        for own in owned {
            if !wanted.contains(own) {
                wanted.push(*own);
            }
        }
        let opened = self.lock();
        let mut known = self.owned();
        if *known == wanted {
            return Ok(None);
        }
        if wanted.len() > MOST_OWNED {
            return Err(format!(
                "{name}: {} ranges of external ports are too many to bring packets to their workers",
                wanted.len()
            ));
        }
        let fail = |e: Error| format!("{name}: {}", explain(&e, "CAP_BPF"));
        let program = match self.mode {
            Mode::Tap => Some(steering::for_sockets(&self.steering(&wanted)).map_err(fail)?),
            _ if !self.mode.is_choice() || self.dispatch.mode() == DispatchMode::Queue => {
                let how = match self.mode.is_choice() {
                    true => self.dispatch.mode().to_string(),
                    false => self.mode.to_string(),
                };
                return Err(format!(
                    "{name}: by {how} no answer is sure to find the worker that translated the question"
                ));
            }
            Mode::AfXdp => {
                if let Some(Redirection { sockets, pieces, attached }) =
                    opened.as_ref().and_then(|opened| opened.redirection.as_ref())
                {
                    let program = steering::for_driver(sockets, &self.steering(&wanted), *pieces);
                    program.and_then(|program| attached.replace(&program)).map_err(fail)?;
                }
                None
            }
            _ => Some(steering::for_sockets(&self.steering(&wanted)).map_err(fail)?),
        };
        *known = wanted;
        Ok(program)
    }

    /// One line: the mode and why it is this one, and what was changed.
    pub(super) fn describe(&self) -> String {
        let opened = self.lock();
        let Some(opened) = &*opened else { return format!("{}: gone", self.spec.name) };
        let mut line = format!("{}: {}", self.spec.name, self.mode);
        for remark in &opened.remarks {
            line += ", ";
            line += remark;
        }
        line += &format!(", mtu {}", opened.mtu);
        if let Some(why) = &self.why {
            line += &format!("; not af-xdp: {why}");
        }
        if !opened.stopped.is_empty() {
            line += &format!("; switched off: {}", opened.stopped.join(", "));
        }
        if self.asker.link(&self.spec.name).is_ok_and(|link| link == Link::NoCarrier) {
            line += "; nothing is connected to it";
        }
        line
    }

    /// How many packets are asked for at a time, if that is fixed.
    pub(super) fn batch(&self) -> Option<usize> {
        #[cfg(feature = "dpdk")]
        if self.mode == Mode::Dpdk {
            // No system call is to be shared.
            return self.spec.batch.or(Some(super::dpdk::BURST));
        }
        self.spec.batch
    }

    /// Whether nothing signals when frames come.
    pub(super) fn is_polled(&self) -> bool {
        #[cfg(feature = "dpdk")]
        return self.mode == Mode::Dpdk;
        #[cfg(not(feature = "dpdk"))]
        false
    }

    /// The interface as it is now: the one that is open, whatever it is called by now, or if that
    /// is gone the one that has its name. What was open on one that is gone is closed.
    pub(super) fn find(&self) -> Option<Present> {
        let mut opened = self.lock();
        if let Some(now) = &*opened {
            let opening = Some(now.opening);
            if self.is_polled() {
                // The kernel does not know it; its port looks after its link.
                return Some(Present { name: self.spec.name.clone(), link: Link::Up, opening });
            }
            if let Some(name) = self.name_of(now) {
                let link = self.asker.link(&name).ok()?;
                return Some(Present { name, link, opening });
            }
            // Were it only in another namespace, its frames would still come to nobody.
            *opened = None;
        }
        let link = self.asker.link(&self.spec.name).ok()?;
        Some(Present { name: self.spec.name.clone(), link, opening: None })
    }

    /// What the interface that was opened is called by now; none if it is gone.
    fn name_of(&self, opened: &Opened) -> Option<String> {
        let is_there = opened.hold.as_ref().is_none_or(Hold::lasts);
        is_there.then(|| self.asker.name(opened.index).ok())?
    }

    /// The port of a worker; opens the interface of its name if none is open and `again` says so.
    ///
    /// # Errors
    /// What is wrong, and the mend.
    pub(super) fn fetch(&self, part: WorkerShare, again: bool) -> Result<Fetched, String> {
        let mut opened = self.lock();
        if again && opened.is_none() {
            let explain = |why: String| format!("{}: {why}", self.spec.name);
            let index = self.asker.index(&self.spec.name);
            let index = index.map_err(|e| explain(e.to_string()))?;
            let claim = self.claim(index)?;
            *opened = Some(self.open_ports(index).map_err(explain)?.claimed(claim));
        }
        let opened = opened.as_mut().ok_or_else(|| format!("{} is gone", self.spec.name))?;
        let port = opened.ports.get_mut(part.index).and_then(Option::take);
        let twice = || format!("{} is open already for this worker", self.spec.name);
        Ok((port.ok_or_else(twice)?, opened.opening))
    }

    /// Remembers what keeps it from being opened again; whether that is new to all workers.
    pub(super) fn replace_obstacle(&self, why: &str) -> bool {
        let mut known = self.obstacle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known != why;
        *known = why.to_string();
        is_new
    }

    /// A worker's channel to the others, if they hand frames to each other.
    pub(super) fn fetch_hand_off(&self, part: WorkerShare) -> Option<HandOff> {
        let mut all = self.hand_offs.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(part.index)?.take()
    }

    /// Opens the ports of all workers in the interface's mode.
    fn open_ports(&self, index: u32) -> Result<Opened, String> {
        let mut opened = Opened {
            redirection: None,
            kept_from_host: None,
            hold: None,
            claim: None,
            index,
            opening: self.openings.fetch_add(1, Ordering::Relaxed),
            ports: Vec::new(),
            mtu: 0,
            remarks: Vec::new(),
            stopped: Vec::new(),
        };
        if self.mode.is_choice() {
            opened.mtu = self.asker.mtu(&self.spec.name).map_err(|e| e.to_string())?;
        }
        let done = match self.mode {
            Mode::Tap => self.open_tap(&mut opened),
            #[cfg(feature = "dpdk")]
            Mode::Dpdk => self.open_dpdk(&mut opened),
            Mode::AfXdp => self.open_xdp(&mut opened),
            Mode::AfPacketMmsg | Mode::AfPacketRing | Mode::AfPacket => {
                self.open_packet(&mut opened)
            }
        };
        match done {
            Ok(()) => Ok(opened),
            Err(why) => {
                self.restore(&mut opened);
                Err(why)
            }
        }
    }

    /// What is set when it is closed, and as it was found.
    pub(super) fn left(&self) -> Arc<OnceLock<()>> {
        Arc::clone(&self.left)
    }

    /// Switches on again what was switched off.
    pub(super) fn leave(&self) {
        if let Some(opened) = &mut *self.lock() {
            self.restore(opened);
        }
    }

    fn restore(&self, opened: &mut Opened) {
        let stopped = std::mem::take(&mut opened.stopped);
        if !stopped.is_empty()
            && let Some(name) = self.name_of(opened)
        {
            // Nobody is left to hear of an error.
            let _ = self.asker.merge_again(&name, &stopped);
        }
    }

    fn how_flows_are_spread(&self) -> String {
        let workers = self.workers;
        let by = if self.has_queues() { "queue" } else { "a symmetric hash, as tap has no queues" };
        match self.dispatch.mode() {
            DispatchMode::Hash if self.dispatch.is_elastic() => {
                let (running, groups) = (self.dispatch.running(), self.dispatch.groups());
                format!(
                    "flows in {groups} groups to {running} of {workers} workers by a symmetric hash"
                )
            }
            DispatchMode::Hash => format!("flows to {workers} workers by a symmetric hash"),
            DispatchMode::Queue => format!("frames to {workers} workers by {by}"),
            DispatchMode::Tags(Tags::Mac) => {
                format!("groups to {workers} workers by destination MAC")
            }
            DispatchMode::Tags(Tags::Vlan(_)) => format!("groups to {workers} workers by VLAN"),
            DispatchMode::Software => "all frames to the worker that hands them on".to_string(),
            DispatchMode::HandOff => {
                format!("frames to {workers} workers by {by}, and on to their flow's")
            }
        }
    }

    #[cfg(feature = "dpdk")]
    fn open_dpdk(&self, opened: &mut Opened) -> Result<(), String> {
        let device =
            dpdk::open(&self.spec.name, self.eal.as_deref(), (self.workers, self.receives))?;
        opened.mtu = device.mtu;
        opened.remarks = device.remarks;
        for port in device.ports {
            opened.ports.push(Some(Box::new(port)));
        }
        Ok(())
    }

    fn open_packet(&self, opened: &mut Opened) -> Result<(), String> {
        let name = &self.spec.name;
        let fail = |e: Error| explain(&e, "CAP_NET_RAW");
        opened.hold = Some(Hold::new(opened.index).map_err(fail)?);
        let group = match self.workers {
            1 => None,
            _ => {
                let program = steering::for_sockets(&self.steering(&self.owned()));
                Some(Group::new(program.map_err(|e| explain(&e, "CAP_BPF"))?))
            }
        };
        for worker in 0..self.workers {
            let (index, group) = (opened.index, group.as_ref());
            let port: Box<dyn Port + Send> = match self.mode {
                Mode::AfPacketRing => {
                    Box::new(AfPacket::open_ring(index, group, opened.mtu).map_err(fail)?)
                }
                Mode::AfPacket => Box::new(AfPacket::open(index, 1, group).map_err(fail)?),
                _ => Box::new(AfPacket::open(index, MOST, group).map_err(fail)?),
            };
            // What is of no flow comes to the first worker.
            opened.ports.push(Some(match worker {
                0 => port,
                _ => Box::new(WithNeighbours::new(port, index, false).map_err(fail)?),
            }));
        }
        if self.workers > 1 {
            opened.remarks.push(self.how_flows_are_spread());
        }
        // Frames belong to the chain, as they do with AF_XDP, not to the chain and to the host.
        match bpf::keep_from_host(opened.index) {
            Ok(attached) => opened.kept_from_host = Some(attached),
            Err(e) => opened
                .remarks
                .push(format!("the host gets its frames, too ({})", explain(&e, "CAP_BPF"))),
        }
        let fail =
            |e: Error| format!("switching off gro and lro: {}", explain(&e, "CAP_NET_ADMIN"));
        self.asker.stop_merging(name, &mut opened.stopped).map_err(fail)
    }

    fn open_tap(&self, opened: &mut Opened) -> Result<(), String> {
        let name = &self.spec.name;
        let taps: Result<Vec<Tap>, String> =
            (0..self.workers).map(|_| Tap::open(name, self.workers)).collect();
        let mut taps = taps?;
        let fail = |e: Error| explain(&e, "CAP_NET_ADMIN");
        self.asker.switch_on(name).map_err(fail)?;
        opened.index = self.asker.index(name).map_err(fail)?;
        opened.mtu = self.asker.mtu(name).map_err(fail)?;
        if self.workers > 1 {
            let program = steering::for_sockets(&self.steering(&self.owned()));
            let program = program.map_err(|e| explain(&e, "CAP_BPF"))?;
            taps.iter_mut().try_for_each(|tap| tap.spread_by(&program)).map_err(fail)?;
            opened.remarks.push(self.how_flows_are_spread());
        }
        for (worker, mut tap) in taps.into_iter().enumerate() {
            tap.set_mtu(opened.mtu);
            let tap: Box<dyn Port + Send> = Box::new(tap);
            let fail = |e: Error| explain(&e, "CAP_NET_RAW");
            // What is of no flow comes to the first worker.
            opened.ports.push(Some(match worker {
                0 => tap,
                _ => Box::new(WithNeighbours::of_host(tap, opened.index).map_err(fail)?),
            }));
        }
        Ok(())
    }

    /// Opens all workers' AF_XDP sockets, and enters them into a map.
    fn open_sockets(
        &self,
        index: u32,
        queues: u32,
        layout: Layout,
    ) -> std::io::Result<(SocketMap, Vec<AfXdp>)> {
        let map = SocketMap::new(queues * self.workers as u32)?;
        let ring = af_xdp::ring(self.interfaces);
        let begin = Instant::now();
        let ports = loop {
            match AfXdp::open(index, queues, self.workers, layout, ring) {
                // The kernel releases a queue a little after its socket was closed.
                Err(e) if sys::number(&e) == libc::EBUSY && begin.elapsed() < RELEASE => {
                    sys::wait_readable(&[], RELEASE_ROUND);
                }
                ports => break ports?,
            }
        };
        for (worker, port) in ports.iter().enumerate() {
            for (queue, socket) in (0..queues).zip(port.sockets()) {
                map.set(steering::socket_number(queue, worker, self.workers), socket)?;
            }
        }
        Ok((map, ports))
    }

    fn open_xdp(&self, opened: &mut Opened) -> Result<(), String> {
        let name = &self.spec.name;
        let queues = self.asker.queues(name);
        let driver = self.asker.driver(name);
        let mut partial = VIRTUAL.contains(&driver.as_str());
        let fail = |e: Error| match (af_xdp::explain(name, &e), sys::number(&e)) {
            (why, libc::EAFNOSUPPORT) if self.spec.mode.is_some() => {
                format!("{why}; --io {name}=auto takes what it has")
            }
            (why, _) => why,
        };
        let owned = self.owned().clone();
        let mut layout = Layout::of(opened.mtu);
        let (mut ports, redirection) = loop {
            let (sockets, ports) = self.open_sockets(opened.index, queues, layout).map_err(fail)?;
            let pieces = layout.pieces;
            let program = steering::for_driver(&sockets, &self.steering(&owned), pieces);
            let program = program.map_err(fail)?;
            let attach = |in_driver| Attached::xdp(&program, opened.index, in_driver);
            let attached = match attach(true) {
                Ok(attached) => attached,
                // Whoever asked for it gets it where the driver has none: slower, and said.
                Err(e) if self.spec.mode.is_some() && sys::number(&e) == libc::EOPNOTSUPP => {
                    let remark = "in the kernel's stack (the driver has no XDP), where frames are lost \
                                  that senders on this host leave to be cut";
                    opened.remarks.push(remark.to_string());
                    let _ = self.asker.stop_merging(name, &mut opened.stopped);
                    // Frames come as the stack has them, whoever sent them.
                    partial = true;
                    attach(false).map_err(fail)?
                }
                // Longer frames may come than go: they would not fit into one piece.
                Err(e) if sys::number(&e) == libc::ERANGE && !layout.pieces => {
                    layout.pieces = true;
                    continue;
                }
                Err(e) => return Err(fail(e)),
            };
            break (ports, Redirection { attached, sockets, pieces });
        };
        if partial {
            ports.iter_mut().for_each(AfXdp::expect_partial_checksums);
        }
        opened.redirection = Some(redirection);
        opened.hold = Some(Hold::new(opened.index).map_err(fail)?);
        let copy = match ports.iter().all(AfXdp::is_zero_copy) {
            true => "zero-copy".to_string(),
            false if driver.is_empty() => "copy mode (no zero-copy in the driver)".to_string(),
            false => format!("copy mode ({driver} has no zero-copy)"),
        };
        opened.remarks.push(copy);
        opened.remarks.push(count_of(queues));
        if let Some(ring) = af_xdp::shorter_ring(self.interfaces) {
            let interfaces = self.interfaces;
            opened.remarks.push(format!("rings of {ring} frames, for {interfaces} interfaces"));
        }
        for (worker, port) in ports.into_iter().enumerate() {
            let port: Box<dyn Port + Send> = Box::new(port);
            opened.ports.push(Some(match self.workers {
                1 => port,
                _ => {
                    let port = WithNeighbours::new(port, opened.index, worker == 0);
                    Box::new(port.map_err(fail)?)
                }
            }));
        }
        if self.workers > 1 {
            opened.remarks.push(self.how_flows_are_spread());
        }
        Ok(())
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        self.leave();
        let _ = self.left.set(());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Binding, Bindings};
    use super::*;

    #[test]
    fn of_interfaces_without_a_choice_the_batch_is_chosen() {
        let mut bindings = Bindings::default();
        for (name, mode) in [("tap0", Some(Mode::Tap)), ("eth0", None), ("bus0,role=server", None)]
        {
            let spec = InterfaceSpec { name: name.to_string(), mode, batch: None, shared: false };
            bindings.inputs.insert(name.to_string(), Binding::Interface(spec));
        }
        let mut choose = |choice: &str| {
            let found = bindings.choose(&choice.parse().unwrap());
            let chosen = |name: &str| match &bindings.inputs[name] {
                Binding::Interface(spec) => (spec.mode, spec.batch),
                _ => unreachable!(),
            };
            (found, ["tap0", "eth0", "bus0,role=server"].map(chosen))
        };
        let (tap, ring) = (Some(Mode::Tap), Some(Mode::AfPacketRing));
        let unchosen = (None, None);
        assert_eq!(choose("tap0=auto"), (false, [(tap, None), unchosen, unchosen]));
        assert_eq!(choose("tap0=batch=8"), (true, [(tap, Some(8)), unchosen, unchosen]));
        assert_eq!(choose("bus0=batch=4"), (true, [(tap, Some(8)), unchosen, (None, Some(4))]));
        let all = [(tap, Some(8)), (ring, Some(2)), (ring, Some(2))];
        assert_eq!(choose("af-packet-ring,batch=2"), (true, all));
        assert!(!choose("tap0=af-xdp").0);
        // To share an interface is no choice of how.
        assert_eq!(choose("eth0=shared"), (true, all));
        assert_eq!(choose("batch=1"), (true, [(tap, Some(1)), (None, Some(1)), (None, Some(1))]));
    }

    #[test]
    fn choices_are_understood_or_refused() {
        let choice = |interface: Option<&str>, mode, batch| {
            Ok(Choice { interface: interface.map(str::to_string), mode, batch, shared: false })
        };
        let mmsg = Some(Mode::AfPacketMmsg);
        assert_eq!("auto".parse(), choice(None, None, None));
        assert_eq!("eth0=af-packet-mmsg".parse(), choice(Some("eth0"), mmsg, None));
        assert_eq!("af-packet-mmsg,batch=32".parse(), choice(None, mmsg, Some(32)));
        assert_eq!("eth0=auto,batch=1".parse(), choice(Some("eth0"), None, Some(1)));
        assert_eq!("batch=256".parse(), choice(None, None, Some(256)));
        let shared = choice(Some("eth0"), mmsg, None).map(|c| Choice { shared: true, ..c });
        assert_eq!("eth0=af-packet-mmsg,shared".parse(), shared);
        for wrong in ["", "fast", "batch=0", "batch=257", "batch=x", "eth0=", "tap", "a=af-xdp,x=1"]
        {
            assert!(wrong.parse::<Choice>().is_err(), "{wrong}");
        }
    }
}
