//! Conditions on packets as patterns express them: tests on runs of bytes, and what combines them.

use ir::field::{Field, ip, meta};
use ir::{Base, Cond, Expr, IntervalSet};
use net::Header;

/// From where a test's bytes are counted, and when a packet has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The first data byte.
    Data,
    /// The Ethernet header. Only packets that have all of it have any of it.
    Mac,
    /// The IP header. Only packets that have its 20 bytes have any of it.
    Network,
    /// The transport header. Later fragments have none, nor do packets without an IP header.
    Transport,
    /// The header of IPv6. Only packets that have its 40 bytes have any of it.
    Network6,
    /// The transport header behind that of IPv6. Fragments have none.
    Transport6,
}

/// At most four bytes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PacketBytes {
    pub(crate) origin: Origin,
    /// Offset in bytes.
    pub(crate) offset: u16,
    /// Number of bytes, 1 to 4.
    pub(crate) length: u8,
}

impl PacketBytes {
    pub(crate) const fn new(origin: Origin, offset: u16, length: u8) -> Self {
        Self { origin, offset, length }
    }

    /// One past its last byte.
    pub(crate) fn end(self) -> u16 {
        self.offset + u16::from(self.length)
    }

    /// The greatest number that the bytes can make.
    pub(crate) fn max(self) -> u32 {
        u32::MAX >> (32 - 8 * u32::from(self.length))
    }

    /// Whether every packet with an IP header has the bytes.
    pub(crate) fn is_fixed(self) -> bool {
        match self.origin {
            Origin::Network => self.end() <= 20,
            Origin::Network6 => self.end() <= 40,
            Origin::Data | Origin::Mac | Origin::Transport | Origin::Transport6 => false,
        }
    }

    fn base(self) -> Base {
        match self.origin {
            Origin::Data => Base::Data,
            Origin::Mac => Base::Header(Header::Mac),
            Origin::Network | Origin::Network6 => Base::Header(Header::Network),
            Origin::Transport | Origin::Transport6 => Base::Header(Header::Transport),
        }
    }

    /// What must hold of a packet that has an IP header for it to have the bytes. (Whether it has
    /// an IP header is for the whole model to ask.)
    fn guards(self) -> Vec<Cond> {
        let end = u32::from(self.end());
        match self.origin {
            Origin::Data => vec![meta::LEN.ge(end)],
            Origin::Mac => vec![meta::AVAIL_MAC.ge(end.max(14))],
            Origin::Network | Origin::Network6 if self.is_fixed() => Vec::new(),
            Origin::Network | Origin::Network6 => vec![meta::AVAIL_NET.ge(end)],
            Origin::Transport6 => vec![meta::AVAIL_TRANSPORT.ge(end)],
            Origin::Transport => vec![ip::FRAG.eq(0u8), meta::AVAIL_TRANSPORT.ge(end)],
        }
    }
}

/// Whether bytes are there and the number that they make, masked, is in a set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Test {
    pub(crate) place: PacketBytes,
    /// The bits that count; not 0.
    pub(crate) mask: u32,
    /// Masked numbers that pass.
    pub(crate) set: IntervalSet,
}

impl Test {
    /// A test on all bits if it can be said so, which it can for a mask of leading ones.
    pub(crate) fn new(place: PacketBytes, mask: u32, set: IntervalSet) -> Self {
        let free = place.max() & !mask;
        if free & free.wrapping_add(1) != 0 {
            return Self { place, mask, set };
        }
        // Every interval of masked numbers becomes the numbers that are masked into it.
        let (low_bits, high_bits) = (u128::from(free), u128::from(mask));
        let widen = |&(low, high): &(u128, u128)| {
            let first = (low + low_bits) & high_bits;
            (first <= high).then_some((first, (high & high_bits) | low_bits))
        };
        let set = set.intervals().iter().filter_map(widen).collect();
        Self { place, mask: place.max(), set: IntervalSet::from_intervals(set) }
    }

    /// The condition itself, without guards.
    fn cond(&self) -> Cond {
        let PacketBytes { offset, length, .. } = self.place;
        let width = 8 * u16::from(length);
        let (lead, trail) =
            (self.mask.leading_zeros() as u16 + width - 32, self.mask.trailing_zeros());
        let contiguous = (self.mask >> trail) & (self.mask >> trail).wrapping_add(1) == 0;
        if !contiguous {
            let field = Field::bits(self.place.base(), 8 * offset, width);
            return Cond::Test(field.get() & self.mask, self.set.clone());
        }
        let field = Field::bits(self.place.base(), 8 * offset + lead, width - lead - trail as u16);
        let shift = |&(low, high): &(u128, u128)| (low.div_ceil(1 << trail), high >> trail);
        let set = self.set.intervals().iter().map(shift).collect();
        Cond::Test(Expr::Field(field), IntervalSet::from_intervals(set))
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pattern {
    Const(bool),
    Test(Test),
    Not(Box<Pattern>),
    /// All hold.
    All(Vec<Pattern>),
    /// One holds.
    Any(Vec<Pattern>),
    /// The second holds if the first does, else the third.
    Choose(Box<[Pattern; 3]>),
}

impl Pattern {
    /// The number at a place is in a set.
    pub(crate) fn test(place: PacketBytes, mask: u32, set: IntervalSet) -> Self {
        Self::Test(Test::new(place, mask, set))
    }

    /// All hold; flat, without what always holds.
    pub(crate) fn all(parts: impl IntoIterator<Item = Pattern>) -> Self {
        let mut all = Vec::new();
        for part in parts {
            match part {
                Self::Const(true) => {}
                Self::Const(false) => return Self::Const(false),
                Self::All(more) => all.extend(more),
                other => all.push(other),
            }
        }
        match all.len() {
            0 => Self::Const(true),
            1 => all.swap_remove(0),
            _ => Self::All(all),
        }
    }

    /// One holds; flat, without what never holds.
    pub(crate) fn any(parts: impl IntoIterator<Item = Pattern>) -> Self {
        let mut any = Vec::new();
        for part in parts {
            match part {
                Self::Const(false) => {}
                Self::Const(true) => return Self::Const(true),
                Self::Any(more) => any.extend(more),
                other => any.push(other),
            }
        }
        match any.len() {
            0 => Self::Const(false),
            1 => any.swap_remove(0),
            _ => Self::Any(any),
        }
    }

    /// It does not hold.
    pub(crate) fn not(self) -> Self {
        match self {
            Self::Const(value) => Self::Const(!value),
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    /// `then` holds if `condition` does, else `otherwise`.
    pub(crate) fn choose(condition: Pattern, then: Pattern, otherwise: Pattern) -> Self {
        match condition {
            Self::Const(true) => then,
            Self::Const(false) => otherwise,
            condition => Self::Choose(Box::new([condition, then, otherwise])),
        }
    }

    /// What is left of it for packets without an IP header.
    pub(crate) fn without_header(&self) -> Pattern {
        match self {
            Self::Const(value) => Self::Const(*value),
            Self::Test(test) => match test.place.origin {
                Origin::Data | Origin::Mac => self.clone(),
                _ => Self::Const(false),
            },
            Self::Not(inner) => inner.without_header().not(),
            Self::All(parts) => Self::all(parts.iter().map(Self::without_header)),
            Self::Any(parts) => Self::any(parts.iter().map(Self::without_header)),
            Self::Choose(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                Self::choose(
                    condition.without_header(),
                    then.without_header(),
                    otherwise.without_header(),
                )
            }
        }
    }

    /// Calls `visit` with every test.
    pub(crate) fn for_each_test<'a>(&'a self, visit: &mut impl FnMut(&'a Test)) {
        match self {
            Self::Const(_) => {}
            Self::Test(test) => visit(test),
            Self::Not(inner) => inner.for_each_test(visit),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().for_each(|p| p.for_each_test(visit));
            }
            Self::Choose(parts) => parts.iter().for_each(|p| p.for_each_test(visit)),
        }
    }

    /// The condition for the model, in normal form: a conjunction is flat, and each guard stands
    /// once, before the first test that needs it. Holds for packets that have an IP header if any
    /// test looks at one.
    pub(crate) fn cond(&self) -> Cond {
        match self {
            Self::Const(value) => Cond::Const(*value),
            Self::Test(_) | Self::All(_) => {
                let mut all = Vec::new();
                self.conjuncts(&mut all);
                if all.len() == 1 { all.swap_remove(0) } else { Cond::All(all) }
            }
            Self::Not(inner) => inner.cond().not(),
            Self::Any(parts) => Cond::Any(parts.iter().map(Self::cond).collect()),
            Self::Choose(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                let (then, otherwise) = (then.cond(), otherwise.cond());
                if condition.has_choice() {
                    // Stating the condition twice would double with every level.
                    let bit = |cond| Expr::choose(cond, 1u8, 0u8);
                    Expr::choose(condition.cond(), bit(then), bit(otherwise)).eq(1u8)
                } else {
                    let (yes, no) = (condition.cond(), condition.cond().not());
                    Cond::Any(vec![yes.and(then), Cond::All(vec![no, otherwise])])
                }
            }
        }
    }

    fn has_choice(&self) -> bool {
        match self {
            Self::Const(_) | Self::Test(_) => false,
            Self::Not(inner) => inner.has_choice(),
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::has_choice),
            Self::Choose(_) => true,
        }
    }

    fn conjuncts(&self, all: &mut Vec<Cond>) {
        match self {
            Self::All(parts) => parts.iter().for_each(|p| p.conjuncts(all)),
            Self::Test(test) => {
                for guard in test.place.guards() {
                    if !all.contains(&guard) {
                        all.push(guard);
                    }
                }
                // Whatever number may stand there: it is enough that it does.
                if !test.set.intervals().contains(&(0, u128::from(test.mask))) {
                    all.push(test.cond());
                }
            }
            other => all.push(other.cond()),
        }
    }
}
