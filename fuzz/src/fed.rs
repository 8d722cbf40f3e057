//! Chains that frames are fed to.

use std::path::Path;

use engine::session;
use lab::chain::{self, Started};
use lab::outcome::{drain, feed, tallies};

/// A chain that runs. Packets come in behind elements, and leave by queues.
pub(crate) struct Fed(Started);

/// Lists, rules and keys of chains.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/files");

impl Fed {
    /// Starts a chain that is right.
    pub(crate) fn start(text: &str) -> Self {
        let started = chain::start("fuzz", text, Path::new(FILES), session::Path::Native);
        Self(started.unwrap_or_else(|(found, _)| panic!("{found:?}")))
    }

    /// Has a frame come in behind an element.
    pub(crate) fn feed(&mut self, behind: &str, frame: &[u8]) {
        feed(&mut self.0, behind, &[frame.to_vec()]);
    }

    /// Lets time pass, and what waits for it happen.
    pub(crate) fn pass_time(&mut self, nanoseconds: u64) {
        self.0.clock.advance(nanoseconds);
        self.0.router.round();
    }

    /// The frames that a queue holds.
    pub(crate) fn left(&mut self, queue: &str) -> Vec<Vec<u8>> {
        drain(&mut self.0, queue).iter().map(lab::outcome::Seen::bytes).collect()
    }

    /// Packets that were dropped.
    pub(crate) fn dropped(&mut self) -> u64 {
        tallies(&mut self.0.router).iter().map(|(_, _, dropped, ..)| dropped).sum()
    }

    /// What a handler says.
    pub(crate) fn read(&mut self, handler: &str) -> String {
        self.0.router.read_handler(handler).expect("the handler can be read")
    }

    /// The number that a handler says.
    pub(crate) fn count(&mut self, handler: &str) -> u64 {
        self.read(handler).trim().parse().expect("the handler says a number")
    }
}

/// An input as records: it gives numbers and bytes until there are no more.
pub(crate) struct Records<'a>(pub(crate) &'a [u8]);

impl<'a> Records<'a> {
    /// The next byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// The next two bytes, the higher one first.
    pub(crate) fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// The next so many bytes, or as many as there are.
    pub(crate) fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Bytes of the header of Ethernet.
pub(crate) const ETHERNET: usize = 14;

/// Makes the checksum of a frame's header of IPv4 right, so that it is looked at further. Gives whether it is a fragment; none
/// without such a header.
pub(crate) fn repair(frame: &mut [u8]) -> Option<bool> {
    let mut ip = net::wire::Ipv4::new(frame.get_mut(ETHERNET..)?)?;
    ip.fill_checksum();
    Some(ip.is_fragment())
}
