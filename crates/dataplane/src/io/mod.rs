//! Devices: where frames come from and go to. Each kind has its own file; [`Bindings`] is the one
//! place that chooses among them.
#![expect(
    clippy::disallowed_methods,
    reason = "interfaces, and the kernel behind them, go by real time"
)]

mod af_packet;
mod af_xdp;
mod bpf;
mod capture;
mod claim;
mod dispatch;
#[cfg(feature = "dpdk")]
mod dpdk;
mod faults;
mod generator;
mod hand_off;
mod interface;
mod leases;
mod live;
mod messages;
mod neighbours;
mod netdev;
mod offload;
mod packet_ring;
mod port;
mod process;
mod replay;
mod rings;
mod steering;
mod sys;
mod tap;
mod udp;
mod uplink;
mod wait;
mod xdp;

#[cfg(feature = "dpdk")]
pub use dpdk::swx;
pub use xdp::{KernelProgram, Links, Loaded, Ran, Rejected, There, XdpMode};

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use elements::configure::{Devices, WorkerShare};
use elements::device::{Device, DeviceRequest};
use elements::process::{ProcessSpec, is_process_device};
use net::pcap::{Format, LinkType, Options};

use faults::Faulty;
use interface::Interface;
use live::{Handle, Live};

use crate::guarded_path;
use crate::thread_owned::{self, ThreadOwned, WeakOwned};

pub use dispatch::{Dispatch, DispatchMode, MOST_GROUPS, Tag, Tags, dispatch_hash};
pub use faults::{FaultInjection, Faults};
pub use generator::{FloodedHash, Generator, Mix, Protocol, RuleList};
pub use hand_off::{Giver, Taker, hand_off};
pub use interface::{Choice, InterfaceSpec, Mode, driver};
pub use leases::LeaseMaps;
pub(crate) use leases::monotonic;
pub use process::{Launcher, Process, Processes};
pub use replay::Replay;
pub use udp::{DATAGRAM_HEADERS, Datagrams};
pub use uplink::{Uplink, Wire, Wires, wires_behind};
pub use wait::{Polling, Waiter};

/// Whether this build has devices of DPDK's.
pub const HAS_DPDK: bool = cfg!(feature = "dpdk");

/// Sleeps until a descriptor becomes readable, or a while less.
pub(crate) fn sleep_until_readable(on: &[std::os::fd::RawFd]) {
    thread_owned::release();
    sys::wait_readable(on, std::time::Duration::from_secs(1));
}

/// From now on this thread runs only while its core has nothing else to do, or nearly so.
pub(crate) fn run_when_idle() {
    sys::run_when_idle();
}

/// From now on memory that is given back stays with this process.
pub(crate) fn keep_memory() {
    sys::keep_memory();
}

/// What an interface's name is bound to.
#[derive(Clone, Debug)]
pub enum Binding {
    /// A capture file.
    Capture(PathBuf),
    /// The built-in traffic generator (receive only).
    Generator(Generator),
    /// A capture replayed from memory (receive only).
    Replay(Replay),
    /// A network interface of the host.
    Interface(InterfaceSpec),
    /// A wire of several that a network interface of the host brings.
    Uplink(Uplink),
}

/// What the names in a configuration are bound to. It can be copied to every worker; copies share
/// the interfaces that are open.
#[derive(Clone, Default)]
pub struct Bindings {
    /// What `FromDevice(NAME)` reads.
    pub inputs: HashMap<String, Binding>,
    /// What `ToDevice(NAME)` writes.
    pub outputs: HashMap<String, Binding>,
    /// Whether a name that nothing is bound to is that of an interface of the host.
    pub direct: bool,
    /// Faults to put on whatever names are bound to.
    pub faults: Option<FaultInjection>,
    /// The worker whose devices are opened.
    pub part: WorkerShare,
    /// Folder that relative paths of captures count from; the current one if empty.
    pub folder: PathBuf,
    /// The configuration's folder: captures to read that are not in `folder` are looked for here.
    pub beside: PathBuf,
    /// How packets find their workers.
    pub dispatch: Dispatch,
    /// The interfaces that are open.
    pub interfaces: Interfaces,
    /// What DPDK's environment (EAL) is started with, when a device of DPDK's is opened; without
    /// files that other processes share if nothing is said.
    pub eal: Option<String>,
    /// The programs that packets go through; without, there can be none.
    pub processes: Option<Processes>,
    /// How frames between the chain and these programs are carried: mode and batch, as in [`InterfaceSpec`].
    pub process_io: (Option<Mode>, Option<usize>),
}

/// What is open on interfaces; clones are of the same. All of it is closed when no element has it
/// any more.
#[derive(Clone, Default)]
pub struct Interfaces(Arc<Mutex<Shared>>);

#[derive(Default)]
struct Shared {
    /// By the interface's name, each with what says when it is as it was found.
    interfaces: HashMap<String, (Weak<Interface>, Arc<OnceLock<()>>)>,
    /// By the interface's name and the worker.
    live: HashMap<(String, usize), WeakOwned<Live>>,
    uplinks: HashMap<(String, usize), WeakOwned<uplink::Shared>>,
    /// What is to be reported of interfaces and traffic that were opened.
    lines: Vec<String>,
    /// Names that elements have asked for, and whether to receive.
    asked: HashSet<(String, bool)>,
    /// Whether the first worker reads something that others do not.
    first_reads_alone: bool,
}

impl Interfaces {
    /// What a worker has open.
    fn of(&self, worker: usize) -> Vec<ThreadOwned<Live>> {
        let shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = shared.live.iter().filter(|((_, of), _)| *of == worker);
        own.filter_map(|(_, live)| live.upgrade()).collect()
    }

    fn each<T>(&self, worker: usize, mut ask: impl FnMut(&mut Live) -> T) -> Vec<T> {
        self.of(worker).iter().map(|live| live.with(&mut ask)).collect()
    }

    /// Leaves all interfaces as they were found, whoever has them still: nothing that is open
    /// carries frames well after this. What the kernel takes back with the process (programs,
    /// sockets) is left to it.
    pub fn leave(&self) {
        let shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<_> = shared.interfaces.values().cloned().collect();
        drop(shared);
        for (interface, left) in all {
            match interface.upgrade() {
                Some(interface) => interface.leave(),
                // Another thread is closing it, and may not be through.
                None => drop(left.wait()),
            }
        }
    }

    /// Brings the frames of groups, counted from 0, from one worker to another, which
    /// puts them aside until [`Interfaces::hand_out`]. The first worker gets none any more then;
    /// what it has got already it has received when [`Interfaces::is_drained`].
    ///
    /// # Errors
    /// A message; nothing has changed then.
    pub fn bring(
        &self,
        dispatch: &Dispatch,
        groups: &[usize],
        from: usize,
        to: usize,
    ) -> Result<(), String> {
        let numbers: Vec<u16> = groups.iter().map(|&group| group as u16 + 1).collect();
        self.each(to, |live| live.await_groups(&numbers));
        let mut all = groups.iter();
        let done = all.try_for_each(|&group| dispatch.bring(group, to));
        if let Err(error) = done.and_then(|()| sys::let_packets_through()) {
            // Where no map could be changed, none was before.
            groups.iter().for_each(|&group| drop(dispatch.bring(group, from)));
            self.hand_out(to);
            return Err(format!("bringing frames to another worker: {error}"));
        }
        self.each(from, Live::mark);
        Ok(())
    }

    /// Has a worker that stood by forget what came meanwhile, which no packet of a group can be.
    pub fn forget(&self, worker: usize) {
        self.each(worker, Live::forget);
    }

    /// How many frames wait for a worker, by interface: what was received and that it has not taken. Interfaces of
    /// which the kernel does not say are left out.
    pub fn waiting(&self, worker: usize) -> BTreeMap<String, u64> {
        let all = self.each(worker, |live| Some((live.interface().to_string(), live.waiting()?)));
        all.into_iter().flatten().collect()
    }

    /// Whether a worker has received what waited when a group was brought to another.
    pub fn is_drained(&self, worker: usize) -> bool {
        self.each(worker, Live::is_drained).into_iter().all(|drained| drained)
    }

    /// Whether the kernel has taken all frames that a worker sent.
    pub fn is_sent(&self, worker: usize) -> bool {
        self.each(worker, Live::is_sent).into_iter().all(|sent| sent)
    }

    /// Has a worker handed what was put aside for it, before all else.
    pub fn hand_out(&self, worker: usize) {
        self.each(worker, |live| live.await_groups(&[]));
    }
}

/// Whether a name can only be meant for an interface, or for a file that is there.
fn is_bare(name: &str) -> bool {
    name != "-" && !name.contains(['/', '.'])
}

impl Binding {
    /// The interface of the host that it needs.
    fn interface(&self) -> Option<&InterfaceSpec> {
        match self {
            Self::Interface(spec) => Some(spec),
            Self::Uplink(uplink) => Some(&uplink.interface),
            Self::Capture(_) | Self::Generator(_) | Self::Replay(_) => None,
        }
    }

    fn interface_mut(&mut self) -> Option<&mut InterfaceSpec> {
        match self {
            Self::Interface(spec) => Some(spec),
            Self::Uplink(uplink) => Some(&mut uplink.interface),
            Self::Capture(_) | Self::Generator(_) | Self::Replay(_) => None,
        }
    }

    /// What a source's name is bound to: `gen:…`, `replay:…`, `dev:INTERFACE`, `tap:INTERFACE`,
    /// `dpdk:DEVICE`, an interface or a capture file.
    ///
    /// # Errors
    /// What is not understood.
    pub fn source(text: &str) -> Result<Self, String> {
        Ok(match text.split_once(':') {
            _ if text == "gen" => Self::Generator(Generator::default()),
            Some(("gen", spec)) => Self::Generator(spec.parse()?),
            Some(("replay", spec)) => Self::Replay(spec.parse()?),
            _ => return Self::sink(text),
        })
    }

    /// What a sink's name is bound to: `dev:INTERFACE`, `tap:INTERFACE`, `dpdk:DEVICE`, an interface
    /// or a capture file.
    ///
    /// # Errors
    /// If it is to be a device of DPDK's and this program was built without DPDK, or there is
    /// neither an interface nor a file of a name that does not look like a new file's.
    pub fn sink(text: &str) -> Result<Self, String> {
        let interface = |name: &str, mode| {
            Ok(Self::Interface(InterfaceSpec {
                name: name.to_string(),
                mode,
                batch: None,
                shared: false,
            }))
        };
        match text.split_once(':') {
            Some(("dev", name)) => interface(name, None),
            Some(("tap", name)) => interface(name, Some(Mode::Tap)),
            #[cfg(feature = "dpdk")]
            Some(("dpdk", device)) => interface(device, Some(Mode::Dpdk)),
            #[cfg(not(feature = "dpdk"))]
            Some(("dpdk", _)) => Err(format!(
                "{text}: this catena was built without DPDK; build it with `--features dpdk`"
            )),
            _ if Path::new(text).exists() => Ok(Self::Capture(text.into())),
            _ if netdev::exists(text) => interface(text, None),
            _ if is_bare(text) => Err(format!(
                "there is no interface '{text}', and no file; `ip link` lists the interfaces there are, and \
                 ./{text} is a file"
            )),
            _ => Ok(Self::Capture(text.into())),
        }
    }
}

impl Bindings {
    /// Where a capture to read is.
    fn find(&self, path: &str) -> PathBuf {
        let (here, beside) = (self.folder.join(path), self.beside.join(path));
        if path != "-" && !here.exists() && beside.exists() { beside } else { here }
    }

    /// Has an interface's frames carried in this I/O mode, or those of all interfaces that there is a
    /// choice for; where there is none, only the batch is chosen. Whether there is such an interface.
    pub fn choose(&mut self, choice: &Choice) -> bool {
        if choice.interface.is_none() {
            self.process_io = (choice.mode, choice.batch);
        }
        let mut found = false;
        for binding in self.inputs.values_mut().chain(self.outputs.values_mut()) {
            let Some(spec) = binding.interface_mut() else { continue };
            if choice.interface.as_ref().is_some_and(|name| *name != spec.interface()) {
                continue;
            }
            spec.shared |= choice.shared;
            if choice.shared && choice.mode.is_none() && choice.batch.is_none() {
                // Nothing is said of how.
            } else if spec.mode.is_none_or(Mode::is_choice) {
                (spec.mode, spec.batch) = (choice.mode, choice.batch);
            } else if choice.mode.is_none() && choice.batch.is_some() {
                spec.batch = choice.batch;
            } else {
                continue;
            }
            found = true;
        }
        found
    }

    /// A line for each interface that was opened since the last call: its name in the
    /// configuration, its I/O and why it is this one, what was changed.
    pub fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.shared().lines)
    }

    /// Whether an element has asked for what a name is bound to, to receive or to send.
    pub fn was_asked_for(&self, name: &str, receive: bool) -> bool {
        self.shared().asked.contains(&(name.to_string(), receive))
    }

    /// Whether captures or generated traffic come in, which the first of several workers reads alone.
    pub fn first_reads_alone(&self) -> bool {
        self.shared().first_reads_alone
    }

    /// Notes that a further worker does not read what the first one does.
    pub(crate) fn leave_to_first(&self) {
        self.shared().first_reads_alone = true;
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.interfaces.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The interface, for who receives or who sends. It is opened once for all workers, and each
    /// worker's part of it once for all elements.
    fn interface(
        &self,
        name: &str,
        (spec, process): (&InterfaceSpec, Option<Arc<dyn Process>>),
        receives: bool,
    ) -> Result<Box<dyn Device + Send>, String> {
        let shared = &mut *self.shared();
        let key = (spec.name.clone(), self.part.index);
        if let Some(live) = shared.live.get(&key).and_then(WeakOwned::upgrade) {
            return Ok(Box::new(Handle::new(live, receives)));
        }
        let interface = match shared.interfaces.get(&spec.name).and_then(|(open, _)| open.upgrade())
        {
            Some(interface) => interface,
            None => {
                let interfaces: HashSet<String> =
                    self.names().into_iter().map(|(_, interface)| interface).collect();
                let sizes = (self.part.count, interfaces.len());
                let receives = process.is_some() || self.may_receive(spec);
                let dispatch = self.dispatch.clone();
                let eal = self.eal.as_deref();
                let mut interface = Interface::open(spec, (sizes, receives), eal, dispatch)?;
                interface.process = process;
                let interface = Arc::new(interface);
                shared.lines.push(match name == spec.name {
                    true => interface.describe(),
                    false => format!("{name}: {}", interface.describe()),
                });
                let known = (Arc::downgrade(&interface), interface.left());
                shared.interfaces.insert(spec.name.clone(), known);
                interface
            }
        };
        let live = ThreadOwned::new(Live::open(&interface, self.part)?);
        shared.live.insert(key, live.downgrade());
        Ok(Box::new(Handle::new(live, receives)))
    }

    /// Whether anybody may receive from an interface.
    fn may_receive(&self, spec: &InterfaceSpec) -> bool {
        let mut inputs = self.inputs.values().filter_map(Binding::interface);
        self.direct || inputs.any(|input| input.name == spec.name)
    }

    /// A wire that an interface brings; all wires of a worker share its part of the interface.
    fn uplink(
        &self,
        name: &str,
        uplink: &Uplink,
        receives: bool,
    ) -> Result<Box<dyn Device + Send>, String> {
        let key = (uplink.interface.name.clone(), self.part.index);
        if let Some(open) = self.shared().uplinks.get(&key).and_then(WeakOwned::upgrade) {
            return Ok(Box::new(uplink::Handle::new(open, uplink, receives)));
        }
        self.shared().lines.extend(uplink::narrow(&uplink.interface.name));
        let device = self.interface(name, (&uplink.interface, None), true)?;
        let wires = Arc::clone(&uplink.wires);
        let open = ThreadOwned::new(uplink::Shared::new(device, wires));
        self.shared().uplinks.insert(key, open.downgrade());
        Ok(Box::new(uplink::Handle::new(open, uplink, receives)))
    }

    /// A wire that is known since the names were bound.
    fn learned(&self, name: &str) -> Option<Uplink> {
        self.inputs.values().find_map(|binding| match binding {
            Binding::Uplink(uplink) => uplink.other(name),
            _ => None,
        })
    }

    /// Creates a file that text is written to; `-` is the standard output.
    ///
    /// # Errors
    /// A message that says why not.
    pub fn create_text(&self, path: &str) -> Result<Box<dyn Write + Send>, String> {
        if path == "-" {
            return Ok(Box::new(std::io::stdout()));
        }
        let file =
            guarded_path::create(&self.folder.join(path), false).map_err(|e| e.to_string())?;
        Ok(Box::new(BufWriter::new(file)))
    }

    /// The names that interfaces of the host are bound to, with the interfaces.
    pub fn names(&self) -> Vec<(String, String)> {
        let all = self.inputs.iter().chain(&self.outputs);
        let interfaces = all.filter_map(|(name, binding)| {
            binding.interface().map(|spec| (name.clone(), spec.name.clone()))
        });
        let mut interfaces: Vec<_> = interfaces.collect();
        interfaces.sort();
        interfaces.dedup();
        interfaces
    }

    /// Whether a name is bound to an interface of the host.
    pub fn is_live(&self) -> bool {
        let mut all = self.inputs.values().chain(self.outputs.values());
        self.direct || all.any(|binding| binding.interface().is_some())
    }

    /// Whether what comes in under a name can be read by one worker only.
    pub(crate) fn is_read_once(&self, name: &str) -> bool {
        use Binding::{Capture, Generator, Replay};
        matches!(self.inputs.get(name), Some(Capture(_) | Generator(_) | Replay(_)))
    }

    /// Whether what goes out under a name goes to a file.
    pub(crate) fn is_file(&self, name: &str) -> bool {
        matches!(self.outputs.get(name), Some(Binding::Capture(_)))
    }

    /// Opens what an element asks for, so that it can go on in the hands of another thread.
    ///
    /// # Errors
    /// A message that says why not.
    pub fn open_device(
        &mut self,
        request: &DeviceRequest,
    ) -> Result<Box<dyn Device + Send>, String> {
        match request {
            DeviceRequest::CaptureIn { path } => capture::Input::open(&self.find(path)),
            DeviceRequest::CaptureOut { path, snap_length, link_type, nanoseconds, unbuffered } => {
                let path = self.folder.join(path);
                let mut options = Options::for_file_name(&path);
                options.snap_length = *snap_length;
                options.link_type = LinkType(*link_type);
                if *nanoseconds && options.format == Format::PcapMicroseconds {
                    options.format = Format::PcapNanoseconds;
                }
                capture::Output::create(&path, &options, *unbuffered)
            }
            DeviceRequest::Interface { name, receive } => {
                let device = self.open_bound(name, *receive)?;
                Ok(match &self.faults {
                    None => device,
                    Some(faults) => Box::new(Faulty::new(device, faults.clone())),
                })
            }
        }
    }

    /// Has a program run.
    ///
    /// # Errors
    /// A message that says why it cannot.
    pub fn start_process(&self, spec: &ProcessSpec) -> Result<Arc<dyn Process>, String> {
        match &self.processes {
            Some(processes) => processes.start(spec),
            None => Err("programs of a chain are started by `catena run` alone".into()),
        }
    }

    /// Opens what a name is bound to.
    fn open_bound(&self, name: &str, receive: bool) -> Result<Box<dyn Device + Send>, String> {
        self.shared().asked.insert((name.to_string(), receive));
        let named =
            |name: String, (mode, batch)| InterfaceSpec { name, mode, batch, shared: false };
        if let Some((process, end)) = self.processes.as_ref().and_then(|all| all.find(name)) {
            return self.interface(name, (&named(end, self.process_io), Some(process)), receive);
        }
        let all = if receive { &self.inputs } else { &self.outputs };
        match (all.get(name), receive) {
            (Some(Binding::Capture(path)), true) => capture::Input::open(path),
            (Some(Binding::Capture(path)), false) => {
                capture::Output::create(path, &Options::for_file_name(path), false)
            }
            (Some(Binding::Generator(generator)), true) => {
                let (device, remark) = generator.start()?;
                self.shared().lines.extend(remark);
                Ok(device)
            }
            (Some(Binding::Replay(replay)), true) => replay.start(),
            (Some(Binding::Generator(_) | Binding::Replay(_)), false) => {
                Err(format!("'{name}' is bound to a source, which cannot be written to"))
            }
            (Some(Binding::Interface(spec)), _) => self.interface(name, (spec, None), receive),
            (Some(Binding::Uplink(uplink)), _) => self.uplink(name, uplink, receive),
            (None, _) if let Some(uplink) = self.learned(name) => {
                self.uplink(name, &uplink, receive)
            }
            (None, _) if self.direct => {
                let spec = named(name.to_string(), (None, None));
                self.interface(name, (&spec, None), receive)
            }
            (None, _) if is_process_device(name) => Err("the program does not run".into()),
            (None, true) => Err(format!(
                "nothing is bound to '{name}': bind it with --in {name}=INTERFACE, \
                         --in {name}=FILE or --in {name}=gen:…"
            )),
            (None, false) => Err(format!(
                "nothing is bound to '{name}': bind it with --out {name}=INTERFACE or \
                         --out {name}=FILE"
            )),
        }
    }
}

impl Devices for Bindings {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        Ok(self.open_device(request)?)
    }

    fn start(&mut self, spec: &ProcessSpec) -> Result<Box<dyn Any>, String> {
        Ok(Box::new(self.start_process(spec)?))
    }

    fn create(&mut self, path: &str) -> Result<Box<dyn Write>, String> {
        Ok(self.create_text(path)?)
    }
}
