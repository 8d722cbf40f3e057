//! Ironside's ingress mapper (§4.3.4): prefixes of destinations go to as few servers as bear them.

use serde::{Deserialize, Serialize};

use crate::frame::{Action, MS, Nanos, Observation, Policy, Server, ServerSeen};

/// What is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Nanoseconds between decisions. Unseen prefixes wait so long (ours; the text decides when packets arrive).
    pub period: Nanos,
    /// τ: dedicated cores from which on a server gets no further prefixes, as a share of its cores (§4.3.4 prints none; ours).
    pub tau: f64,
    /// Bits of a prefix at the most, whatever the switch holds.
    pub bits: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { period: MS, tau: 0.6, bits: 12 }
    }
}

impl Settings {
    /// k: the length of prefixes for a switch with so many entries. There are 2^k prefixes of length k.
    pub fn length(&self, entries: u32) -> u32 {
        entries.max(1).ilog2().min(self.bits).min(32)
    }
}

/// The ingress mapper of a rack.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IngressMapper {
    settings: Settings,
    /// Cores of a server.
    cores: u32,
}

impl IngressMapper {
    /// One for servers with so many cores.
    pub fn new(settings: &Settings, cores: u32) -> Self {
        Self { settings: settings.clone(), cores }
    }

    /// The server of an unseen prefix: the one with the most dedicated cores below τ, else one without any, else the one
    /// with the fewest.
    pub fn server(&self, servers: &[ServerSeen]) -> Option<Server> {
        let tau = (self.settings.tau * f64::from(self.cores)) as u32;
        let most = |of: &&ServerSeen| (of.dedicated, std::cmp::Reverse(of.server));
        let used =
            servers.iter().filter(|of| of.dedicated > 0 && of.dedicated < tau).max_by_key(most);
        let least = || servers.iter().min_by_key(|of| (of.dedicated, of.server));
        used.or_else(least).map(|of| of.server)
    }
}

impl Policy for IngressMapper {
    fn period(&self) -> Nanos {
        self.settings.period
    }

    fn decide(&mut self, _: Nanos, seen: &Observation) -> Vec<Action> {
        let Some(to) = self.server(&seen.servers) else { return Vec::new() };
        seen.unseen.iter().map(|&prefix| Action::Steer { prefix, to }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_go_to_the_fullest_server_that_is_below_the_threshold() {
        let mapper = IngressMapper::new(&Settings { tau: 0.5, ..Settings::default() }, 64);
        let servers = |dedicated: [u32; 3]| -> Vec<ServerSeen> {
            let of =
                |(at, n): (usize, &u32)| ServerSeen { server: Server(at as u32), dedicated: *n };
            dedicated.iter().enumerate().map(of).collect()
        };
        assert_eq!(mapper.server(&servers([31, 7, 0])), Some(Server(0)));
        assert_eq!(mapper.server(&servers([32, 7, 0])), Some(Server(1)));
        assert_eq!(mapper.server(&servers([32, 32, 0])), Some(Server(2)), "a new server");
        assert_eq!(mapper.server(&servers([40, 33, 33])), Some(Server(1)), "all are full");
        assert_eq!(mapper.server(&[]), None);
    }

    /// The text writes 2^(32-k) entries for prefixes of length k; there are 2^k.
    #[test]
    fn prefixes_are_as_long_as_the_switch_has_room_for() {
        let settings = Settings { bits: 32, ..Settings::default() };
        assert_eq!([0, 1, 4095, 4096, u32::MAX].map(|n| settings.length(n)), [0, 0, 11, 12, 31]);
    }
}
