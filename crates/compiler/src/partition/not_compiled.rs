//! Why there is nothing for a device, and how that names elements.

use std::fmt;

use codegen::{Lack, Unread};
use ir::{NodeId, Span};

/// Words for an element, or its rule, with file and line.
pub type Origin<'a> = &'a dyn Fn(NodeId, Option<Span>) -> String;

/// Why there is nothing for a device.
#[derive(Clone, Debug)]
pub enum NotCompiled {
    /// The chain has no entry behind a wire.
    NoWires,
    /// A wire has no port.
    NoPort(String),
    /// The device cannot hold even what hands all packets to cores.
    DoesNotFit(Lack),
    /// The artefact is not understood.
    Unread(Unread),
    /// Parts do not fit together.
    Apart(String),
    /// More places where packets are handed off than tags.
    TooManyHandoffs(usize),
    /// The device does not tell several servers apart, or does not take packets back from them.
    OneServer,
    /// The device does not limit rates.
    NoLimits,
    /// Packets are left to cores at an element where two servers may have to go on.
    TwoServers(String, [String; 2]),
    /// Two limits apply to packets at an element, which pass one meter.
    TwoLimits(String, [String; 2]),
    /// No packets that come in are known to go through what is limited.
    NoneLimited(String),
    /// Packets come back at an element that goes by more than their bytes.
    Annotated(String),
}

/// An 802.1Q tag holds 4,094 numbers.
pub(super) const TAGS: u16 = 4094;

impl fmt::Display for NotCompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotCompiled::NoWires => f.write_str(
                "no frames come into the chain from an interface or a file alone, so no device can be in front of it",
            ),
            NotCompiled::NoPort(wire) => write!(f, "the device has no port for '{wire}'"),
            NotCompiled::DoesNotFit(lack) => {
                write!(f, "the device cannot even hand all packets to cores: {lack}")
            }
            NotCompiled::Unread(why) => write!(f, "{why}"),
            NotCompiled::Apart(why) => f.write_str(why),
            NotCompiled::TooManyHandoffs(n) => {
                write!(f, "packets would be handed to cores at {n} places; {TAGS} have a tag")
            }
            NotCompiled::OneServer => f.write_str(
                "it hands packets to one server, and does not take them back to go on with them; ovs and openflow do",
            ),
            NotCompiled::NoLimits => f.write_str("it limits no rates; ovs and openflow do"),
            NotCompiled::TwoServers(at, [one, other]) => write!(
                f,
                "packets are left to cores at {at}, of which both '{one}' and '{other}' may have to take some"
            ),
            NotCompiled::TwoLimits(at, [one, other]) => write!(
                f,
                "the limits of '{one}' and of '{other}' both apply to packets at {at}: a packet passes one meter"
            ),
            NotCompiled::NoneLimited(of) => write!(
                f,
                "'{of}' cannot be limited: no packets are known to go there where they come in from a wire"
            ),
            NotCompiled::Annotated(at) => write!(
                f,
                "packets come back to the device at {at}, from which on annotations count, or where headers were marked: these \
                 do not come with them"
            ),
        }
    }
}
