//! What the kernel knows of a network interface, and the few switches that are turned on it.

use std::io::{Error, Result};
use std::os::fd::OwnedFd;

use rustix::process::{Resource, getrlimit};

use super::sys::{self, Ethtool, InterfaceRequest, Question};

/// Commands that read and that set a feature, the feature's bit if they share a word, its name.
const MERGERS: [(Ethtool<2>, Ethtool<2>, u32, &str); 2] =
    [(sys::GRO, sys::SET_GRO, 1, "gro"), (sys::FLAGS, sys::SET_FLAGS, 1 << 15, "lro")];

/// A socket to ask about interfaces through.
pub(super) struct Asker(OwnedFd);

/// Whether an interface can carry frames now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// It is switched off.
    Down,
    /// It is switched on, and there is nothing at its other end.
    NoCarrier,
    /// It is ready.
    Up,
}

impl Asker {
    /// Opens the socket, in the network namespace of the calling thread.
    pub(super) fn new() -> Result<Self> {
        sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).map(Self)
    }

    fn ask(&self, question: Question, name: &str) -> Result<InterfaceRequest> {
        let mut with = InterfaceRequest::new(name)?;
        sys::ask(&self.0, question, &mut with)?;
        Ok(with)
    }

    /// The interface's number.
    pub(super) fn index(&self, name: &str) -> Result<u32> {
        self.ask(Question::Index, name).map(|r| r.number() as u32)
    }

    /// The name that the interface with this number has now.
    pub(super) fn name(&self, index: u32) -> Result<String> {
        let mut with = InterfaceRequest::of(index);
        sys::ask(&self.0, Question::Name, &mut with)?;
        Ok(with.name())
    }

    /// The longest network packet that it sends, in bytes.
    pub(super) fn mtu(&self, name: &str) -> Result<usize> {
        self.ask(Question::Mtu, name).map(|r| r.number().max(0) as usize)
    }

    /// Whether it can carry frames.
    pub(super) fn link(&self, name: &str) -> Result<Link> {
        let flags = self.ask(Question::Flags, name)?;
        let flags = i32::from(u16::from_ne_bytes([flags.value[0], flags.value[1]]));
        Ok(match (flags & libc::IFF_UP != 0, flags & libc::IFF_RUNNING != 0) {
            (false, _) => Link::Down,
            (true, false) => Link::NoCarrier,
            (true, true) => Link::Up,
        })
    }

    /// Switches it on.
    pub(super) fn switch_on(&self, name: &str) -> Result<()> {
        let mut flags = self.ask(Question::Flags, name)?;
        flags.value[0] |= libc::IFF_UP as u8;
        sys::ask(&self.0, Question::SetFlags, &mut flags)
    }

    /// Whether its frames begin with an Ethernet header.
    pub(super) fn is_ethernet(&self, name: &str) -> Result<bool> {
        let address = self.ask(Question::HardwareAddress, name)?;
        let family = u16::from_ne_bytes([address.value[0], address.value[1]]);
        Ok(matches!(family, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK))
    }

    /// Its MAC address.
    pub(super) fn address(&self, name: &str) -> Result<[u8; 6]> {
        let address = self.ask(Question::HardwareAddress, name)?.value;
        Ok([address[2], address[3], address[4], address[5], address[6], address[7]])
    }

    /// The name of its driver, empty if it reports none.
    pub(super) fn driver(&self, name: &str) -> String {
        let Ok(info) = sys::ethtool(&self.0, name, sys::DRIVER, [0; _]) else {
            return String::new();
        };
        let driver: Vec<u8> = info[1..9].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let driver = driver.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(driver).into_owned()
    }

    /// Number of its receive queues.
    pub(super) fn queues(&self, name: &str) -> u32 {
        match sys::ethtool(&self.0, name, sys::CHANNELS, [0; _]) {
            Ok(channels) => channels[5].saturating_add(channels[8]).max(1),
            Err(_) => 1,
        }
    }

    fn feature(&self, name: &str, command: Ethtool<2>, value: u32) -> Result<u32> {
        sys::ethtool(&self.0, name, command, [0, value]).map(|[_, value]| value)
    }

    /// Switches off what merges frames before they can be received, and adds the names of what was
    /// on, also where it fails halfway.
    pub(super) fn stop_merging(&self, name: &str, stopped: &mut Vec<&'static str>) -> Result<()> {
        for (read, set, bit, feature) in MERGERS {
            // A driver that does not know the command has not got the feature.
            let Ok(value) = self.feature(name, read, 0) else { continue };
            if value & bit != 0 {
                self.feature(name, set, value & !bit)?;
                stopped.push(feature);
            }
        }
        Ok(())
    }

    /// Switches on again what [`Asker::stop_merging`] switched off.
    pub(super) fn merge_again(&self, name: &str, stopped: &[&str]) -> Result<()> {
        for (read, set, bit, _) in MERGERS.iter().filter(|m| stopped.contains(&m.3)) {
            let value = self.feature(name, *read, 0)?;
            self.feature(name, *set, value | bit)?;
        }
        Ok(())
    }
}

/// Hears of changes of interfaces.
pub(super) struct Monitor(OwnedFd);

impl Monitor {
    /// Listens, in the network namespace of the calling thread.
    pub(super) fn new() -> Result<Self> {
        let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        let mut address: libc::sockaddr_nl = sys::zero();
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        sys::bind(&socket, &address)?;
        Ok(Self(socket))
    }

    /// What becomes readable when something changed.
    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Whether something changed since the last call.
    pub(super) fn changed(&self) -> bool {
        let mut changed = false;
        while sys::discard(&self.0) {
            changed = true;
        }
        changed
    }
}

/// Whether an interface of this name exists.
pub(super) fn exists(name: &str) -> bool {
    Asker::new().and_then(|asker| asker.index(name)).is_ok()
}

/// What may be missing when the kernel refuses.
pub(super) fn explain(error: &Error, capability: &str) -> String {
    match sys::number(error) {
        libc::EPERM | libc::EACCES => format!(
            "{error}: needs the capability {capability}; run it as root, or give it to the program \
             with setcap"
        ),
        _ => in_words(error),
    }
}

/// What is wrong, and the mend where the process has as much as it may.
pub(super) fn in_words(error: &Error) -> String {
    match sys::number(error) {
        libc::EMFILE => {
            let limit = getrlimit(Resource::Nofile).current;
            let limit = limit.map_or(String::new(), |limit| format!(" of {limit}"));
            format!(
                "{error}: files and sockets are at the limit{limit}; raise it by `ulimit -n 65536`, or \
                 LimitNOFILE=65536 in a unit of systemd"
            )
        }
        _ => error.to_string(),
    }
}
