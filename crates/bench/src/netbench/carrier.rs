//! How packets of an application are carried.

use std::fmt;
use std::str::FromStr;

use dataplane::io::{Binding, Choice, HAS_DPDK, InterfaceSpec, Mode};
use host::fabric::{Ends, Fabric, NEEDS_DPDK};

/// By a UDP socket of the host's stack, or as frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// By a UDP socket, with one datagram in a system call or many.
    Udp {
        /// Whether it is many.
        many: bool,
    },
    /// As frames of an interface, in this I/O mode.
    Frames(Choice),
    /// As frames of a TAP interface, one in a system call.
    Tap,
    /// As frames of a virtio device, whose other end is a socket of vhost-user.
    VirtioUser,
    /// As frames in memory that is shared by memif, whose other end is at a socket.
    Memif,
    /// As frames of any device of DPDK's, by driver, number and arguments.
    Dpdk(String),
}

/// Before the name of a device of DPDK's.
const DPDK: &str = "dpdk:";

/// Descriptors of a virtio device in each direction. The default, 256, holds no more than one burst.
const DESCRIPTORS: usize = 1024;

/// How carriers are listed: the name, what it is, and whether DPDK does it.
pub const CARRIERS: [(&str, &str, bool); 10] = [
    ("udp", "UDP sockets, one datagram in a system call", false),
    ("udp-mmsg", "UDP sockets, many datagrams in a system call", false),
    ("af-packet", "raw sockets, one frame in a system call", false),
    ("af-packet-mmsg", "raw sockets, many frames in a system call", false),
    ("af-packet-ring", "raw sockets, whose receive ring is shared with the kernel", false),
    ("af-xdp", "AF_XDP: rings and frames are shared with the kernel", false),
    ("tap", "TAP: the switch's port is an interface whose other end is the application", false),
    ("virtio-user", "DPDK's virtio device, at a port of vhost-user", true),
    ("memif", "DPDK's shared memory interface, at a port of memif", true),
    ("dpdk:DEVICE", "any device of DPDK's, such as dpdk:net_af_packet0,iface=eth0", true),
];

impl Carrier {
    /// Sockets with one packet or many in a system call: UDP sockets, or raw ones.
    pub fn sockets(is_raw: bool, many: bool) -> Self {
        let mode = if many { Mode::AfPacketMmsg } else { Mode::AfPacket };
        let choice = Choice { interface: None, mode: Some(mode), batch: None, shared: false };
        if is_raw { Self::Frames(choice) } else { Self::Udp { many } }
    }

    /// The one at a switch, by its name, if none is chosen.
    pub(super) fn usual(fabric: &dyn Fabric) -> &'static str {
        match fabric.ends().first() {
            Some(Ends::Vhost) => "virtio-user",
            Some(Ends::Memif) => "memif",
            Some(Ends::Interfaces | Ends::Taps) | None => "af-packet-mmsg",
        }
    }

    /// What ports of a switch have to be.
    pub fn ends(&self) -> Ends {
        match self {
            Self::Udp { .. } | Self::Frames(_) | Self::Dpdk(_) => Ends::Interfaces,
            Self::Tap => Ends::Taps,
            Self::VirtioUser => Ends::Vhost,
            Self::Memif => Ends::Memif,
        }
    }

    /// Whether DPDK carries them. Its devices wake nobody.
    pub fn is_dpdk(&self) -> bool {
        matches!(self, Self::VirtioUser | Self::Memif | Self::Dpdk(_))
    }

    /// Whether something has to be named that they are carried over: an interface, or the path of a socket.
    pub fn needs_name(&self) -> bool {
        !matches!(self, Self::Udp { .. } | Self::Dpdk(_))
    }

    /// Why this build has no such carrier, if it has not.
    ///
    /// # Errors
    /// What it needs.
    pub fn look(&self) -> Result<(), String> {
        match self.is_dpdk() && !HAS_DPDK {
            true => Err(format!("{self}: it needs {}", NEEDS_DPDK)),
            false => Ok(()),
        }
    }

    /// Whether applications in a container with files of its own can have it: sockets and `/dev/net/tun` are files of the host.
    pub(super) fn is_in_containers(&self) -> bool {
        matches!(self, Self::Udp { .. } | Self::Frames(_))
    }

    /// What frames are bound to.
    ///
    /// # Errors
    /// If there is no such device in this build, or none is named.
    pub(super) fn binding(&self, name: Option<&str>) -> Result<Binding, String> {
        let name = || name.ok_or("frames go by an interface or a socket, and none is named");
        match self {
            Self::Dpdk(device) => Binding::sink(&format!("{DPDK}{device}")),
            Self::VirtioUser => Binding::sink(&format!(
                "{DPDK}virtio_user0,path={},queue_size={DESCRIPTORS}",
                name()?
            )),
            Self::Memif => Binding::sink(&format!(
                "{DPDK}net_memif0,role=client,socket={},socket-abstract=no",
                name()?
            )),
            Self::Tap => Binding::sink(&format!("tap:{}", name()?)),
            Self::Udp { .. } | Self::Frames(_) => Ok(Binding::Interface(InterfaceSpec {
                name: name()?.into(),
                mode: None,
                batch: None,
                shared: false,
            })),
        }
    }
}

impl FromStr for Carrier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "udp" => Ok(Self::Udp { many: false }),
            "udp-mmsg" => Ok(Self::Udp { many: true }),
            "tap" => Ok(Self::Tap),
            "virtio-user" => Ok(Self::VirtioUser),
            "memif" => Ok(Self::Memif),
            _ => match text.strip_prefix(DPDK) {
                Some("") => {
                    Err("dpdk: names no device, such as dpdk:net_af_packet0,iface=eth0".into())
                }
                Some(device) => Ok(Self::Dpdk(device.into())),
                None => text.parse().map(Self::Frames).map_err(|why: String| {
                    format!("{why}, udp, udp-mmsg, tap, virtio-user, memif, dpdk:DEVICE")
                }),
            },
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp { many } => f.write_str(if *many { "udp-mmsg" } else { "udp" }),
            Self::Frames(choice) => match choice.mode {
                Some(mode) => write!(f, "{mode}"),
                None => f.write_str("auto"),
            },
            Self::Tap => f.write_str("tap"),
            Self::VirtioUser => f.write_str("virtio-user"),
            Self::Memif => f.write_str("memif"),
            Self::Dpdk(device) => write!(f, "{DPDK}{device}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_are_read_or_refused() {
        for name in
            ["udp", "udp-mmsg", "af-packet", "af-packet-mmsg", "af-xdp", "auto", "tap", "memif"]
                .into_iter()
                .chain(["virtio-user", "dpdk:net_af_packet0,iface=eth0"])
        {
            assert_eq!(name.parse::<Carrier>().unwrap().to_string(), name);
        }
        let names = [(false, false), (false, true), (true, false), (true, true)]
            .map(|(is_raw, many)| Carrier::sockets(is_raw, many).to_string());
        assert!("dpdk:".parse::<Carrier>().unwrap_err().contains("names no device"));
        assert_eq!(names, ["udp", "udp-mmsg", "af-packet", "af-packet-mmsg"]);
        let wrong = "udp-many".parse::<Carrier>().unwrap_err();
        assert!(
            wrong.contains("the modes are auto")
                && wrong.ends_with("udp, udp-mmsg, tap, virtio-user, memif, dpdk:DEVICE"),
            "{wrong}"
        );
    }
}
