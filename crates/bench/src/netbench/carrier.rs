//! How packets of an application are carried.

use std::fmt;
use std::str::FromStr;

use dataplane::io::{Choice, Mode};

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
}

impl Carrier {
    /// Sockets with one packet or many in a system call: UDP sockets, or raw ones.
    pub fn sockets(is_raw: bool, many: bool) -> Self {
        let mode = if many { Mode::AfPacketMmsg } else { Mode::AfPacket };
        let choice = Choice { interface: None, mode: Some(mode), batch: None, shared: false };
        if is_raw { Self::Frames(choice) } else { Self::Udp { many } }
    }
}

impl FromStr for Carrier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "udp" => Ok(Self::Udp { many: false }),
            "udp-mmsg" => Ok(Self::Udp { many: true }),
            _ => text
                .parse()
                .map(Self::Frames)
                .map_err(|why: String| format!("{why}, udp, udp-mmsg")),
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_are_read_or_refused() {
        for name in ["udp", "udp-mmsg", "af-packet", "af-packet-mmsg", "af-xdp", "auto"] {
            assert_eq!(name.parse::<Carrier>().unwrap().to_string(), name);
        }
        let names = [(false, false), (false, true), (true, false), (true, true)]
            .map(|(is_raw, many)| Carrier::sockets(is_raw, many).to_string());
        assert_eq!(names, ["udp", "udp-mmsg", "af-packet", "af-packet-mmsg"]);
        let wrong = "udp-many".parse::<Carrier>().unwrap_err();
        assert!(
            wrong.contains("the modes are auto") && wrong.ends_with("udp, udp-mmsg"),
            "{wrong}"
        );
    }
}
