//! A worker's devices, which outlive the chain that uses them: when one router replaces
//! another, both have the same devices in their hands, and nothing is closed, opened or lost.

use std::any::Any;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elements::configure::{Devices, WorkerShare};
use elements::device::{Device, DeviceRequest, Event, OwnedPorts, Received, Wake};
use elements::process::ProcessSpec;
use net::{Batch, Pool};

use crate::io::{Bindings, Process};
use crate::thread_owned::ThreadOwned;

/// Opens devices that can go from thread to thread.
pub trait Opener: Send {
    /// Opens what the element of this full name asks for.
    ///
    /// # Errors
    /// A message that says why not.
    fn open(
        &mut self,
        element: &str,
        request: &DeviceRequest,
    ) -> Result<Box<dyn Device + Send>, String>;

    /// Creates a file that text is written to.
    ///
    /// # Errors
    /// A message that says why not.
    fn create(&mut self, path: &str) -> Result<Box<dyn Write + Send>, String>;

    /// Has a program run. Unless an implementation does so, there are none.
    ///
    /// # Errors
    /// A message that says why it cannot.
    fn start(&mut self, _: &ProcessSpec) -> Result<Arc<dyn Process>, String> {
        Err("no programs are started here".into())
    }
}

/// What distinguishes devices: interfaces by name and direction, files to write by their path; and
/// then by how many of the kind a chain asked for before.
type Key = (String, usize);

struct Open {
    opener: Box<dyn Opener>,
    devices: HashMap<Key, ThreadOwned<Box<dyn Device + Send>>>,
    texts: HashMap<String, ThreadOwned<Box<dyn Write + Send>>>,
    /// Programs that run, by their names.
    processes: HashMap<String, Arc<dyn Process>>,
}

/// The devices of a worker. Clones are of the same ones.
#[derive(Clone)]
pub struct Ports(Arc<Mutex<Open>>);

/// What a chain asked its worker's [`Ports`] for.
#[derive(Clone, Debug, Default)]
pub struct InUse {
    devices: HashSet<Key>,
    texts: HashSet<String>,
    processes: HashSet<String>,
    /// Elements, and the names of the interfaces that they asked for.
    interfaces: Vec<(String, String)>,
}

impl InUse {
    /// The elements that receive from or send to an interface of this name.
    pub fn elements_at<'a>(&'a self, interface: &'a str) -> impl Iterator<Item = &'a str> {
        let at = move |(_, name): &&(String, String)| name == interface;
        self.interfaces.iter().filter(at).map(|(element, _)| element.as_str())
    }

    /// The devices that elements of a chain were for and those of another are not for any more, by
    /// their names in the chain.
    pub fn left_by<'a>(&'a self, other: &InUse) -> BTreeSet<&'a str> {
        let names = self.interfaces.iter().map(|(_, name)| name.as_str());
        names.filter(|name| other.elements_at(name).next().is_none()).collect()
    }
}

/// Opens the devices of one chain.
pub struct Attachment {
    ports: Ports,
    asked: HashMap<String, usize>,
    in_use: InUse,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ports {
    /// No devices yet.
    pub fn new(opener: Box<dyn Opener>) -> Self {
        let open = Open {
            opener,
            devices: HashMap::new(),
            texts: HashMap::new(),
            processes: HashMap::new(),
        };
        Self(Arc::new(Mutex::new(open)))
    }

    /// The devices of so many workers with the same bindings.
    pub fn of_workers(bindings: &Bindings, workers: usize) -> Vec<Self> {
        let of = |index| Bindings {
            part: WorkerShare { index, count: workers, ..bindings.part },
            ..bindings.clone()
        };
        let first = Self::new(Box::new(of(0)));
        let further = (1..workers)
            .map(|index| Self::new(Box::new(FurtherOpener::new(of(index), first.clone()))));
        std::iter::once(first.clone()).chain(further).collect()
    }

    /// Opens devices for a chain; those that are open already it gets as they are.
    pub fn attach(&self) -> Attachment {
        Attachment { ports: self.clone(), asked: HashMap::new(), in_use: InUse::default() }
    }

    /// Closes what is not in use.
    pub fn close_all_but(&self, in_use: &InUse) {
        let closed: (Vec<_>, Vec<_>, Vec<_>) = {
            let mut open = lock(&self.0);
            let devices: Vec<_> =
                open.devices.extract_if(|key, _| !in_use.devices.contains(key)).collect();
            let texts = open.texts.extract_if(|path, _| !in_use.texts.contains(path)).collect();
            let processes =
                open.processes.extract_if(|name, _| !in_use.processes.contains(name)).collect();
            (devices, texts, processes)
        };
        // Closing takes its time; nobody waits for it.
        drop(closed);
    }
}

impl Attachment {
    /// What was opened so far.
    pub fn in_use(&self) -> InUse {
        self.in_use.clone()
    }

    fn share(
        &mut self,
        element: &str,
        request: &DeviceRequest,
    ) -> Result<Box<dyn Device + Send>, String> {
        let mut open = lock(&self.ports.0);
        let name = match request {
            DeviceRequest::CaptureIn { path } => format!("read {path}"),
            DeviceRequest::CaptureOut { path, .. } => format!("file {path}"),
            DeviceRequest::Interface { name, receive: true } => format!("from {name}"),
            DeviceRequest::Interface { name, receive: false } => format!("to {name}"),
        };
        let asked = self.asked.entry(name.clone()).or_default();
        let key = (name, *asked);
        *asked += 1;
        let device = match open.devices.get(&key) {
            Some(device) => device.clone(),
            None => {
                let device = ThreadOwned::new(open.opener.open(element, request)?);
                open.devices.insert(key.clone(), device.clone());
                device
            }
        };
        self.in_use.devices.insert(key);
        if let DeviceRequest::Interface { name, .. } = request {
            self.in_use.interfaces.push((element.to_string(), name.clone()));
        }
        let shared = device.with(|device| device.share());
        Ok(shared.unwrap_or_else(|| Box::new(Handle(device))))
    }

    fn share_text(&mut self, path: &str) -> Result<Text, String> {
        let mut open = lock(&self.ports.0);
        let text = match open.texts.get(path) {
            Some(text) => text.clone(),
            None => {
                let text = ThreadOwned::new(open.opener.create(path)?);
                open.texts.insert(path.to_string(), text.clone());
                text
            }
        };
        self.in_use.texts.insert(path.to_string());
        Ok(Text(text))
    }
}

impl Devices for Attachment {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        self.open_for("", request)
    }

    fn open_for(
        &mut self,
        element: &str,
        request: &DeviceRequest,
    ) -> Result<Box<dyn Device>, String> {
        // How far it has read a file is the element's affair.
        if matches!(request, DeviceRequest::CaptureIn { .. }) {
            return Ok(lock(&self.ports.0).opener.open(element, request)?);
        }
        Ok(self.share(element, request)?)
    }

    fn create(&mut self, path: &str) -> Result<Box<dyn Write>, String> {
        Ok(Box::new(self.share_text(path)?))
    }

    fn start(&mut self, spec: &ProcessSpec) -> Result<Box<dyn Any>, String> {
        let mut open = lock(&self.ports.0);
        let name = spec.name();
        let process = match open.processes.get(&name) {
            Some(process) => Arc::clone(process),
            None => {
                let process = open.opener.start(spec)?;
                open.processes.insert(name.clone(), Arc::clone(&process));
                process
            }
        };
        self.in_use.processes.insert(name);
        Ok(Box::new(process))
    }
}

/// A device that another router may have, too, and that cannot be shared otherwise.
struct Handle(ThreadOwned<Box<dyn Device + Send>>);

impl Device for Handle {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        self.0.with(|device| device.receive(burst, batch, pool))
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        self.0.with(|device| device.send(batch, pool))
    }

    fn send_copies(&mut self, batch: &Batch, pool: &mut Pool) -> Result<usize, String> {
        self.0.with(|device| device.send_copies(batch, pool))
    }

    fn wait_on(&self) -> Option<Wake> {
        self.0.with(|device| device.wait_on())
    }

    fn steer(&mut self, owned: &[OwnedPorts]) -> Result<(), String> {
        self.0.with(|device| device.steer(owned))
    }

    fn next_event(&mut self) -> Option<Event> {
        self.0.with(|device| device.next_event())
    }

    fn burst(&self) -> Option<usize> {
        self.0.with(|device| device.burst())
    }

    fn flush(&mut self) -> Result<(), String> {
        self.0.with(|device| device.flush())
    }

    fn rate(&self) -> Option<u64> {
        self.0.with(|device| device.rate())
    }

    fn link_type(&self) -> u32 {
        self.0.with(|device| device.link_type())
    }

    fn position(&self) -> Option<u64> {
        self.0.with(|device| device.position())
    }

    fn seek(&mut self, position: u64) -> Result<(), String> {
        self.0.with(|device| device.seek(position))
    }

    fn length(&self) -> Option<u64> {
        self.0.with(|device| device.length())
    }
}

struct Text(ThreadOwned<Box<dyn Write + Send>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.with(|text| text.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.with(|text| text.flush())
    }
}

impl Opener for Bindings {
    fn open(&mut self, _: &str, request: &DeviceRequest) -> Result<Box<dyn Device + Send>, String> {
        self.open_device(request)
    }

    fn create(&mut self, path: &str) -> Result<Box<dyn Write + Send>, String> {
        self.create_text(path)
    }

    fn start(&mut self, spec: &ProcessSpec) -> Result<Arc<dyn Process>, String> {
        self.start_process(spec)
    }
}

/// Opens the devices of a worker that is not the first. What can be read once only, captures and
/// generated traffic, the first one reads; files that are written, all write.
pub struct FurtherOpener {
    bindings: Bindings,
    first: Ports,
}

impl FurtherOpener {
    /// For a worker with these bindings; `first` are the devices of the first.
    pub fn new(bindings: Bindings, first: Ports) -> Self {
        Self { bindings, first }
    }
}

impl Opener for FurtherOpener {
    fn open(
        &mut self,
        element: &str,
        request: &DeviceRequest,
    ) -> Result<Box<dyn Device + Send>, String> {
        let is_read_once = match request {
            DeviceRequest::CaptureIn { .. } => true,
            DeviceRequest::Interface { name, receive: true } => self.bindings.is_read_once(name),
            _ => false,
        };
        if is_read_once {
            self.bindings.leave_to_first();
            let link_type = self.bindings.open_device(request)?.link_type();
            return Ok(Box::new(Over { link_type }));
        }
        let is_file = match request {
            DeviceRequest::CaptureOut { .. } => true,
            DeviceRequest::Interface { name, receive: false } => self.bindings.is_file(name),
            _ => false,
        };
        match is_file {
            true => self.first.attach().share(element, request),
            false => self.bindings.open_device(request),
        }
    }

    fn create(&mut self, path: &str) -> Result<Box<dyn Write + Send>, String> {
        Ok(Box::new(self.first.attach().share_text(path)?))
    }

    fn start(&mut self, spec: &ProcessSpec) -> Result<Arc<dyn Process>, String> {
        self.bindings.start_process(spec)
    }
}

/// A source that another worker reads.
struct Over {
    link_type: u32,
}

impl Device for Over {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Err("a source cannot be sent to".to_string())
    }

    fn link_type(&self) -> u32 {
        self.link_type
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    /// A device that counts in one place what is asked of it, whoever has it.
    struct Counting(Arc<AtomicUsize>, bool);

    impl Device for Counting {
        fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
            self.0.fetch_add(1, Relaxed);
            Ok(Received::More)
        }

        fn send(&mut self, _: &mut Batch, _: &mut Pool) -> Result<(), String> {
            Ok(())
        }

        fn share(&self) -> Option<Box<dyn Device + Send>> {
            self.1.then(|| Box::new(Self(Arc::clone(&self.0), true)) as Box<dyn Device + Send>)
        }
    }

    struct Opening(Arc<AtomicUsize>, bool);

    impl Opener for Opening {
        fn open(&mut self, _: &str, _: &DeviceRequest) -> Result<Box<dyn Device + Send>, String> {
            Ok(Box::new(Counting(Arc::clone(&self.0), self.1)))
        }

        fn create(&mut self, _: &str) -> Result<Box<dyn Write + Send>, String> {
            Ok(Box::new(std::io::sink()))
        }
    }

    #[test]
    fn devices_that_can_be_shared_are_used_while_another_has_them() {
        for can_be_shared in [true, false] {
            let asked = Arc::default();
            let ports = Ports::new(Box::new(Opening(Arc::clone(&asked), can_be_shared)));
            let request = DeviceRequest::Interface { name: "a".to_string(), receive: true };
            let mut first = ports.attach().open_for("x", &request).unwrap();
            let mut next = ports.attach().open_for("x", &request).unwrap();
            let (mut batch, mut pool) = (Batch::new(), Pool::new());
            let kept = lock(&ports.0).devices.values().next().unwrap().clone();
            let mut both = || {
                first.receive(1, &mut batch, &mut pool).unwrap();
                next.receive(1, &mut batch, &mut pool).unwrap();
            };
            match can_be_shared {
                // Otherwise this would not come to an end.
                true => kept.with(|_| both()),
                false => both(),
            }
            assert_eq!(asked.load(Relaxed), 2);
        }
    }
}
