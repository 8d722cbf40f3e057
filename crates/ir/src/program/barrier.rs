//! Barriers: why a program ends before the chain does.

use std::fmt;

macro_rules! barriers {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $why:literal;)*) => {
        /// Why a path through a program ends although the chain goes on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Barrier {
            /// The element's model ends here; it says why.
            Opaque(&'static str),
            $($(#[$doc])* $name,)*
        }

        impl Barrier {
            /// All but [`Barrier::Opaque`].
            pub const KNOWN: &[Self] = &[$(Self::$name),*];

            /// A stable name in kebab case.
            pub fn code(self) -> &'static str {
                match self {
                    Self::Opaque(_) => "opaque",
                    $(Self::$name => $code,)*
                }
            }
        }

        impl fmt::Display for Barrier {
            /// What is said of the element that the path ends at.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    Self::Opaque(why) => why,
                    $(Self::$name => $why,)*
                })
            }
        }
    };
}

barriers! {
    /// Another program begins at the input that follows.
    NextStage = "next-stage", "the next stage";
    /// Packets are pulled from the output that follows.
    Pulled = "pulled", "packets are pulled from here on";
    /// The element takes no packets.
    NoInput = "no-input", "takes no packets";
    /// The path was at this input before.
    Loop = "loop", "the chain leads back here";
    /// The packet is not as the element's model expects nearly all to be.
    Unexpected = "unexpected", "holds what its configuration does not make";
    /// No packet comes here: any end is right.
    Unreachable = "unreachable", "no packet comes here";
    /// The block of a model ends without an operation that ends it.
    NoEnd = "no-end", "its model does not say how it ends";
    /// A condition was open that is known; a fault of synthesis that costs speed only.
    Decided = "decided", "a condition that is known";
    /// The path would write next to bytes that are not known.
    PartialWrite = "partial-write", "writes beside bytes that nothing wrote";
    /// No flow is known: the element makes one.
    NewFlow = "new-flow", "makes a flow";
    /// A flow table is looked up that the path changed.
    ChangedFlows = "changed-flows", "looks flows up again that it changed";
    /// A flow is changed that the path did not look up.
    OtherFlow = "other-flow", "changes another flow";
    /// The model depends on whether a flow exists without looking it up.
    FlowTest = "flow-test", "depends on whether a flow exists";
    /// More lookups than a program may have.
    TooManyLookups = "too-many-lookups", "too many lookups";
    /// More outputs than paths are made for.
    TooManyOutputs = "too-many-outputs", "has too many outputs";
    /// Rules with comparisons cannot be looked up.
    RulesNotConjunctions = "rules-not-conjunctions", "its rules are no conjunctions";
    /// Rules tested in turn would be too many tests.
    TooManyAlternatives = "too-many-alternatives", "its rules have too many alternatives";
    /// Rules look at more numbers than a classifier takes.
    TooManyKeys = "too-many-keys", "its rules look at too many things";
    /// Rules look at numbers of more bits than a classifier takes.
    WideKeys = "wide-keys", "its rules look at wide numbers";
    /// Rules look at a header of which bytes are missing.
    MissingHeader = "missing-header", "its rules look at a header that is not all there";
    /// A rule has no arm.
    NoArm = "no-arm", "a rule leads nowhere";
    /// The model has a loop.
    Repeats = "repeats", "repeats something";
    /// The packet becomes longer at its end.
    Extends = "extends", "makes the packet longer";
    /// The packet, or another cell, determines which cell the model uses.
    Cells = "cells", "a number that is not known determines which of its numbers it uses";
    /// A copy left that may change state before the packet itself finds it.
    Copies = "copies", "a copy of the packet may change its state first";
    /// The model draws a random number.
    Random = "random", "draws lots";
    /// The packet is shorter than what is pulled.
    TooShort = "too-short", "pulls more than there is";
    /// The data's start moves too far.
    PullsFar = "pulls-far", "pulls very far";
    /// The model asks how much headroom there is.
    Headroom = "headroom", "needs room in the packet's buffer";
    /// A header lies too far from the data's start.
    FarHeader = "far-header", "a header is too far from the start";
    /// A header is not where the model expects it.
    OddHeader = "odd-header", "a header is at an unexpected offset";
    /// A header is read that is not marked.
    UnmarkedHeader = "unmarked-header", "reads a header that is not marked";
    /// The packet has IP options in front of what is read.
    Options = "options", "reads behind a header with options";
    /// A register is read before it is written.
    UnwrittenRegister = "unwritten-register", "reads a register that was not written";
    /// Bytes are read that were pushed and not written.
    UnwrittenBytes = "unwritten-bytes", "reads bytes that nothing wrote";
    /// The model adds up too many bytes.
    ByteSum = "byte-sum", "adds many bytes up";
    /// A sum over bytes too far from the data's start.
    FarSum = "far-sum", "sums bytes far away";
    /// A sum whose two zeros cannot be distinguished.
    ZeroSum = "zero-sum", "sums bytes that may all be zero";
    /// A sum over bytes that the path may have written.
    WrittenSum = "written-sum", "sums bytes that may have been written";
    /// A sum over bytes that were pushed and not written.
    UnwrittenSum = "unwritten-sum", "sums bytes that nothing wrote";
    /// A sum over bytes that were pushed.
    PushedSum = "pushed-sum", "sums bytes that were pushed";
    /// A sum over something other than the packet's data.
    OtherSum = "other-sum", "sums what is not the packet";
    /// A place is read or written that only the packet knows.
    ComputedPlace = "computed-place", "accesses an offset that the packet determines";
    /// A place too far from the data's start.
    FarPlace = "far-place", "works at bytes far away";
    /// A property is written that cannot be.
    ReadOnly = "read-only", "writes what cannot be written";
    /// The packet's type is computed.
    ComputedType = "computed-type", "computes a packet's type";
    /// The program was cut here: it continues elsewhere.
    Cut = "cut", "the program continues elsewhere";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_tell_barriers_apart() {
        let codes: BTreeSet<_> = Barrier::KNOWN.iter().map(|b| b.code()).collect();
        assert_eq!(codes.len(), Barrier::KNOWN.len());
        assert!(!codes.contains(Barrier::Opaque("").code()));
    }
}
