//! rte_flow, DPDK's interface to cards: segments as rules, in testpmd's commands and as JSON.
//!
//! A card in front of the cores matches patterns. It marks packets (MARK: the number of the continuation, which comes
//! with the packet's buffer, not on the wire) and hands them to the cores' queue, drops them, or sends them on. What
//! it does depends on its driver: `DRIVERS` says of each what it takes. `field` finds the fields for the numbers that
//! a program tests, `steps` flattens decisions to patterns, `action` finds actions for what exits write, `exact`
//! chooses what cards without masks keep, and `emit` writes it all. `read` shares nothing with these.

mod action;
mod emit;
mod exact;
mod field;
mod presume;
mod read;

use ir::Program;
use ir::layout::Layout;
use ir::program::{Continuation, StepId};
use net::wire::ip_protocol;

use crate::rule::{self, Packets};
use crate::{Device, File, Lack, Presumed, Presumption, Target, Unread};
use field::Key;

/// The file of commands.
const COMMANDS: &str = "flows.txt";

/// The file of the same rules as JSON.
const JSON: &str = "flows.json";

/// The least number in the type field of a frame that is a type (IEEE 802.3 §3.2.6).
const LEAST_TYPE: u128 = 0x600;

/// Types that say that a tag follows, as `rte_ether.h` has them. Of the first alone all cards know that.
const TAGS: [u128; 5] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300];

/// What a packet without a mark is taken to be marked with.
const UNMARKED: Continuation = Continuation(0);

/// Protocols with an item, and the bytes of their headers.
const TRANSPORTS: [(u8, u8); 4] = [
    (ip_protocol::TCP, 20),
    (ip_protocol::UDP, 8),
    (ip_protocol::ICMP, 8),
    (ip_protocol::SCTP, 12),
];

/// Which masks rules may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Masks {
    /// Each its own.
    Any,
    /// All bits of some fields: the same fields in all rules with the same items.
    OneSetForItems,
    /// All bits of some fields: the same in all rules.
    OneSet,
}

/// What a driver takes.
pub(crate) struct Driver {
    /// The name of the target.
    name: &'static str,
    /// Fields that it matches.
    keys: &'static [Key],
    masks: Masks,
    /// Whether rules lead to other groups.
    groups: bool,
    /// Whether rules count packets.
    counts: bool,
    /// Whether a queue leads back to a wire, and headers are changed there.
    hairpin: bool,
    /// Rules that fit.
    rules: usize,
    /// Priorities that there are.
    priorities: usize,
}

impl Driver {
    fn knows(&self, key: Key) -> bool {
        self.keys.contains(&key)
    }

    /// Whether a rule may take all packets that no other takes.
    fn takes_rest(&self) -> bool {
        self.masks == Masks::Any
    }
}

const ALL: &[Key] = &[
    Key::EthDst,
    Key::EthSrc,
    Key::EthType,
    Key::Tagged,
    Key::Tci,
    Key::InnerType,
    Key::Tos,
    Key::Ttl,
    Key::Protocol,
    Key::Source,
    Key::Destination,
    Key::HopLimit,
    Key::Source6,
    Key::Destination6,
    Key::SourcePort,
    Key::DestinationPort,
    Key::TcpFlags,
    Key::IcmpType,
    Key::IcmpCode,
];

/// What rte_flow itself has, in one group: masks, priorities, MARK, QUEUE, DROP and COUNT.
pub(crate) static GENERIC: Driver = Driver {
    name: "rte_flow",
    keys: ALL,
    masks: Masks::Any,
    groups: false,
    counts: true,
    hairpin: false,
    rules: 1 << 16,
    priorities: 1 << 16,
};

/// Intel 700 series: Flow Director takes whole fields, the first rule of a packet type fixes which, and has neither
/// priorities nor COUNT. 512 filters are guaranteed to a port, 7,168 more are shared.
pub(crate) static I40E: Driver = Driver {
    name: "rte_flow-i40e",
    keys: &[
        Key::EthType,
        Key::Tos,
        Key::Ttl,
        Key::Protocol,
        Key::Source,
        Key::Destination,
        Key::HopLimit,
        Key::Source6,
        Key::Destination6,
        Key::SourcePort,
        Key::DestinationPort,
    ],
    masks: Masks::OneSetForItems,
    groups: false,
    counts: false,
    hairpin: false,
    rules: 512,
    priorities: 1,
};

/// Intel 82599 and its successors: Flow Director's perfect filters share one mask. With the smallest buffer that is
/// set aside for them, 2,047 fit.
pub(crate) static IXGBE: Driver = Driver {
    name: "rte_flow-ixgbe",
    keys: &[
        Key::EthType,
        Key::Protocol,
        Key::Source,
        Key::Destination,
        Key::SourcePort,
        Key::DestinationPort,
    ],
    masks: Masks::OneSet,
    groups: false,
    counts: false,
    hairpin: false,
    rules: 2047,
    priorities: 1,
};

/// ConnectX from 5 on: masks, groups and jumps, and hairpin queues, that lead to a wire with headers changed.
pub(crate) static MLX5: Driver = Driver {
    name: "rte_flow-mlx5",
    keys: ALL,
    masks: Masks::Any,
    groups: true,
    counts: true,
    hairpin: true,
    rules: 1 << 20,
    // Those of groups behind the first.
    priorities: 21_844,
};

impl Target for Driver {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cuts(&self) -> bool {
        false
    }

    fn decides(
        &self,
        program: &Program,
        step: StepId,
        layout: &Layout,
    ) -> Result<Vec<Presumption>, Lack> {
        rule::decide(self, Packets { program, layout }, step)?;
        Ok(presume::presumed(self, program, step, layout))
    }

    fn does(
        &self,
        program: &Program,
        step: StepId,
        layout: &Layout,
    ) -> Result<Vec<Presumed>, Lack> {
        rule::does(self, Packets { program, layout }, step)?;
        Ok(Vec::new())
    }

    fn emit(&self, device: &Device<'_>) -> Result<Vec<File>, (usize, StepId, Lack)> {
        emit::emit(self, device)
    }

    fn read(&self, files: &[File], device: &Device<'_>) -> Result<Vec<Program>, Unread> {
        read::read(self, files, device)
    }

    fn undecided(&self) -> Option<Continuation> {
        Some(UNMARKED)
    }

    fn leaves(&self, device: &Device<'_>) -> Vec<(usize, StepId, Lack)> {
        emit::leaves(self, device)
    }
}
