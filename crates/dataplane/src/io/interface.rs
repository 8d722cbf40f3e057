//! Network interfaces of the host: which way of I/O each gets and why, what is switched off for
//! it, and that all is as it was in the end.

use std::fmt;
use std::io::Error;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::af_packet::AfPacket;
use super::netdev::{Asker, Link, explain};
use super::port::{MOST, Part, Port};
use super::sys;

/// A way of carrying frames between the kernel and the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// AF_PACKET, many frames in a system call.
    AfPacketMmsg,
    /// AF_PACKET, one frame in a system call: the baseline.
    AfPacket,
}

/// All modes with their names on the command line.
const MODES: [(Mode, &str); 2] =
    [(Mode::AfPacketMmsg, "af-packet-mmsg"), (Mode::AfPacket, "af-packet")];

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MODES.iter().find(|m| m.0 == *self).map_or("", |m| m.1))
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || MODES.map(|m| m.1).join(", ");
        let mode = MODES.iter().find(|m| m.1 == text).map(|m| m.0);
        mode.ok_or_else(|| format!("'{text}' is no way of I/O; there are auto, {}", known()))
    }
}

/// An interface, and how its frames are to be carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceSpec {
    /// Its name.
    pub name: String,
    /// The mode; the best that works if none is given.
    pub mode: Option<Mode>,
}

/// What is open on an interface. Dropping it leaves the interface as it was found.
struct Opened {
    /// The interface's number; one that is made anew has another.
    index: u32,
    /// What carries each worker's frames, until the worker fetches it.
    ports: Vec<Option<Box<dyn Port + Send>>>,
    mtu: usize,
    /// What is to be said of the mode.
    remarks: Vec<String>,
    /// Features that were switched off.
    stopped: Vec<&'static str>,
}

/// An interface that frames are carried from and to, by one worker or several.
pub(super) struct Interface {
    spec: InterfaceSpec,
    /// The mode that was found to be the one.
    mode: Mode,
    workers: usize,
    asker: Asker,
    opened: Mutex<Option<Opened>>,
}

/// A worker's port, the number of the interface that it was opened on, and its MTU.
pub(super) type Fetched = (Box<dyn Port + Send>, u32);

impl Interface {
    /// Opens an interface for a number of workers.
    ///
    /// # Errors
    /// What is wrong, and the mend.
    pub(super) fn open(spec: &InterfaceSpec, workers: usize) -> Result<Self, String> {
        let name = &spec.name;
        let asker = Asker::new().map_err(|e| format!("{name}: {e}"))?;
        let mode = spec.mode.unwrap_or(Mode::AfPacketMmsg);
        let interface = Self {
            spec: spec.clone(),
            mode,
            workers: workers.max(1),
            asker,
            opened: Mutex::new(None),
        };
        let index = interface.asker.index(name).map_err(|e| match sys::number(&e) {
            libc::ENODEV => {
                format!("there is no interface '{name}'; `ip link` lists those there are")
            }
            _ => format!("{name}: {e}"),
        })?;
        if !interface.asker.is_ethernet(name).unwrap_or(false) {
            return Err(format!("{name} is no Ethernet interface; Catena carries Ethernet frames"));
        }
        if interface.asker.link(name).is_ok_and(|link| link == Link::Down) {
            return Err(format!("{name} is down; switch it on with `ip link set {name} up`"));
        }
        let opened = interface.open_ports(index)?;
        *interface.lock() = Some(opened);
        Ok(interface)
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.spec.name
    }

    fn lock(&self) -> MutexGuard<'_, Option<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
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
        if !opened.stopped.is_empty() {
            line += &format!("; switched off: {}", opened.stopped.join(", "));
        }
        if self.asker.link(&self.spec.name).is_ok_and(|link| link == Link::NoCarrier) {
            line += "; nothing is connected to it";
        }
        line
    }

    /// Whether the interface is there and can carry frames, and its number.
    pub(super) fn link(&self) -> Option<(u32, Link)> {
        let index = self.asker.index(&self.spec.name).ok()?;
        Some((index, self.asker.link(&self.spec.name).ok()?))
    }

    /// The port of a worker, on the interface that has this number now; opens the interface again
    /// if it had another before.
    ///
    /// # Errors
    /// What is wrong, and the mend.
    pub(super) fn fetch(&self, part: Part, index: Option<u32>) -> Result<Fetched, String> {
        let mut opened = self.lock();
        if let Some(index) = index
            && opened.as_ref().is_none_or(|o| o.index != index)
        {
            // What was open on the interface that is gone must be closed first.
            drop(opened.take());
            *opened = Some(self.open_ports(index)?);
        }
        let opened = opened.as_mut().ok_or_else(|| format!("{} is gone", self.spec.name))?;
        let port = opened.ports.get_mut(part.index).and_then(Option::take);
        let twice = || format!("{} is open already for this worker", self.spec.name);
        Ok((port.ok_or_else(twice)?, opened.index))
    }

    fn open_ports(&self, index: u32) -> Result<Opened, String> {
        let name = &self.spec.name;
        let fail = |e: Error| format!("{name}: {}: {}", self.mode, explain(&e, "CAP_NET_RAW"));
        let mut opened = Opened {
            index,
            ports: Vec::new(),
            mtu: self.asker.mtu(name).map_err(fail)?,
            remarks: Vec::new(),
            stopped: Vec::new(),
        };
        for worker in 0..self.workers {
            let part = Part { index: worker, count: self.workers };
            let port: Box<dyn Port + Send> = match self.mode {
                Mode::AfPacketMmsg => Box::new(AfPacket::open(index, MOST, part).map_err(fail)?),
                Mode::AfPacket => Box::new(AfPacket::open(index, 1, part).map_err(fail)?),
            };
            opened.ports.push(Some(port));
        }
        opened.stopped = self.asker.stop_merging(name).map_err(|e| {
            format!("{name}: switching off gro and lro: {}", explain(&e, "CAP_NET_ADMIN"))
        })?;
        Ok(opened)
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        if let Some(opened) = self.lock().take()
            && self.asker.index(&self.spec.name).is_ok_and(|index| index == opened.index)
        {
            // Nobody is left to hear of an error.
            let _ = self.asker.merge_again(&self.spec.name, &opened.stopped);
        }
    }
}
