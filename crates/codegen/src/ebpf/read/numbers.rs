//! Numbers in registers, as what they are of the frame.
//!
//! Equal numbers are one. Bits of the frame keep their places however they are moved about, sums are
//! kept as sums, and a sum that is folded to 16 bits is what it comes to modulo 0xffff: so a number is
//! recognised in whatever order instructions compute it.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};

use super::decode::Alu;

/// A number of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Num(pub(super) u32);

/// Where bits are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Of {
    Number(u64),
    /// Bits of the frame as it came in, by the first.
    Data(u32),
    /// Bits of a number, by the lowest.
    Num(Num, u8),
}

/// Some bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Piece {
    pub(super) width: u8,
    pub(super) of: Of,
}

/// A bit that a sum is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Bit {
    Data(u32),
    Num(Num, u8),
}

/// When a folded sum is 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Zero {
    Never,
    /// When these bits are so.
    When(Vec<(Bit, bool)>),
    /// When the sum is.
    Exactly(Vec<(Bit, i128)>, i128),
}

/// A folded sum.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    /// Weights modulo 0xffff.
    weights: Vec<(Bit, u32)>,
    constant: u32,
    zero: Zero,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// Bits beside bits, the lowest first; 64 all in all.
    Bits(Vec<Piece>),
    /// How long the frame was.
    Length,
    /// The time as of the last tick.
    Tick,
    /// The number of the slot that a lookup of flows leads to.
    Slot(u16),
    /// When the lease in it ends.
    Until(u16),
    /// A number of the key that it is of.
    Held(u16, u8),
    /// A number that a lookup of flows bound.
    Leased {
        lookup: u16,
        index: u8,
        width: u8,
    },
    /// Half of a number that a lookup bound.
    Bound(u16, u8, u8),
    /// A sum modulo 2^64.
    Sum(Vec<(Num, i128)>, i128),
    /// `(n & 0xffff) + (n >> 16)`
    Fold(Num),
    /// A sum folded to 16 bits.
    Ones(Form),
    /// A byte of a window: of so many bytes of the frame from an offset on, and 0 behind.
    Window {
        offset: u16,
        length: Num,
        at: u8,
    },
    /// The folded sum of bytes, in network byte order.
    Sum16 {
        offset: u16,
        length: Num,
    },
    Op(Alu, Num, Num),
}

/// Bytes of a window.
pub(super) const WINDOW: u8 = 64;

pub(super) struct Numbers {
    nodes: Vec<Node>,
    ids: HashMap<Node, Num>,
    /// The least and the greatest number; those of sums before they wrap.
    ranges: Vec<(i128, i128)>,
    /// Which are made from the frame's length.
    of_length: Vec<bool>,
    /// What folded sums were folded from, and whether their bytes were swapped then.
    from: HashMap<Num, (Num, bool)>,
}

const MOST: i128 = u64::MAX as i128;

fn ones(width: u8) -> u64 {
    match width {
        0 => 0,
        width => u64::MAX >> (64 - width.min(64)),
    }
}

fn cut(piece: Piece, low: u8, width: u8) -> Piece {
    let of = match piece.of {
        Of::Number(value) => Of::Number(value.checked_shr(low.into()).unwrap_or(0) & ones(width)),
        Of::Data(bit) => Of::Data(bit + u32::from(piece.width - low - width)),
        Of::Num(num, from) => Of::Num(num, from + low),
    };
    Piece { width, of }
}

/// Bits from `low` on.
fn slice(pieces: &[Piece], low: u8, width: u8) -> Vec<Piece> {
    let (mut at, mut all) = (0, Vec::new());
    for piece in pieces {
        let (from, to) = (at.max(low), (at + piece.width).min(low + width));
        if from < to {
            all.push(cut(*piece, from - at, to - from));
        }
        at += piece.width;
    }
    all
}

impl Numbers {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            ids: HashMap::new(),
            ranges: Vec::new(),
            of_length: Vec::new(),
            from: HashMap::new(),
        }
    }

    pub(super) fn node(&self, num: Num) -> &Node {
        &self.nodes[num.0 as usize]
    }

    pub(super) fn range(&self, num: Num) -> (i128, i128) {
        self.ranges[num.0 as usize]
    }

    /// The least and the greatest number that decides anything. A segment may ask for frames of fewer
    /// bytes than there are, and a number that is made from their length may be anything then.
    pub(super) fn deciding(&self, num: Num) -> (u64, u64) {
        match (self.node(num), self.of_length[num.0 as usize]) {
            (Node::Length, _) => (0, u32::MAX.into()),
            (_, true) => (0, u64::MAX),
            (_, false) => match self.range(num) {
                (least @ 0.., most @ ..=MOST) => (least as u64, most as u64),
                _ => (0, u64::MAX),
            },
        }
    }

    /// Whether it is the same number wherever it wraps.
    pub(super) fn is_exact(&self, num: Num) -> bool {
        let (least, most) = self.range(num);
        least >= 0 && most <= MOST
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What a folded sum was folded from.
    pub(super) fn folded_from(&self, num: Num) -> Option<(Num, bool)> {
        self.from.get(&num).copied()
    }

    /// The greatest number that 64 bits can be.
    pub(super) fn most(&self, num: Num) -> u64 {
        match self.range(num) {
            (0.., most @ ..=MOST) => most as u64,
            _ => u64::MAX,
        }
    }

    fn width(&self, num: Num) -> u8 {
        (64 - self.most(num).leading_zeros()) as u8
    }

    pub(super) fn intern(&mut self, node: Node) -> Num {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        let id = Num(self.nodes.len() as u32);
        let range = match &node {
            Node::Bits(pieces) => {
                let (mut low, mut high, mut at) = (0_u128, 0_u128, 0);
                for piece in pieces {
                    let (l, h) = match piece.of {
                        Of::Number(value) => (value, value),
                        _ => (0, ones(piece.width)),
                    };
                    low |= u128::from(l) << at;
                    high |= u128::from(h) << at;
                    at += piece.width;
                }
                (low as i128, high as i128)
            }
            // A frame has a MAC header.
            Node::Length => (14, 0xffff_ffff),
            Node::Tick | Node::Until(_) | Node::Held(..) | Node::Bound(..) => (0, MOST),
            Node::Slot(_) => (0, u32::MAX.into()),
            Node::Leased { width, .. } => (0, ones(*width).into()),
            Node::Sum(parts, constant) => {
                let mut range = (*constant, *constant);
                for (part, factor) in parts {
                    let most = i128::from(self.most(*part));
                    let least = self.range(*part).0.clamp(0, most);
                    let (a, b) = (least.saturating_mul(*factor), most.saturating_mul(*factor));
                    range = (range.0.saturating_add(a.min(b)), range.1.saturating_add(a.max(b)));
                }
                range
            }
            Node::Fold(num) => match self.most(*num) {
                0x1_0000 => (0, 0xffff),
                most => (0, 0xffff + i128::from(most >> 16)),
            },
            Node::Ones(form) => (i128::from(form.zero == Zero::Never), 0xffff),
            Node::Window { .. } => (0, 0xff),
            Node::Sum16 { .. } => (0, 0xffff),
            Node::Op(Alu::Rem, a, b) if self.range(*b).0 > 0 => {
                (0, i128::from(self.most(*a).min(self.most(*b) - 1)))
            }
            Node::Op(op, a, b) => {
                let (a, b) = (i128::from(self.most(*a)), i128::from(self.most(*b)));
                match op {
                    Alu::And => (0, a.min(b)),
                    Alu::Div | Alu::Shr | Alu::Rem => (0, a),
                    Alu::Or | Alu::Xor => {
                        let width = 64 - ((a | b) as u64).leading_zeros();
                        (0, i128::from(ones(width as u8)))
                    }
                    Alu::Shl if b < 64 && a << b <= MOST => (0, a << b),
                    _ => (0, MOST),
                }
            }
        };
        let of = |num: &Num| self.of_length[num.0 as usize];
        let of_length = match &node {
            Node::Length => true,
            Node::Tick | Node::Until(_) | Node::Held(..) | Node::Bound(..) => false,
            Node::Slot(_) | Node::Leased { .. } => false,
            Node::Bits(pieces) => {
                pieces.iter().any(|piece| matches!(&piece.of, Of::Num(num, _) if of(num)))
            }
            Node::Sum(parts, _) => parts.iter().any(|(num, _)| of(num)),
            Node::Fold(num) | Node::Window { length: num, .. } => of(num),
            Node::Sum16 { length, .. } => of(length),
            Node::Ones(form) => {
                form.weights.iter().any(|(bit, _)| matches!(bit, Bit::Num(num, _) if of(num)))
            }
            Node::Op(_, a, b) => of(a) || of(b),
        };
        self.of_length.push(of_length);
        self.nodes.push(node.clone());
        self.ranges.push(range);
        self.ids.insert(node, id);
        id
    }

    pub(super) fn number(&mut self, value: u64) -> Num {
        self.intern(Node::Bits(vec![Piece { width: 64, of: Of::Number(value) }]))
    }

    pub(super) fn as_number(&self, num: Num) -> Option<u64> {
        match self.node(num) {
            Node::Bits(pieces) => match pieces[..] {
                [Piece { width: 64, of: Of::Number(value) }] => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    /// What a number is made from, the lowest bits first.
    pub(super) fn pieces(&self, num: Num) -> Vec<Piece> {
        if let Node::Bits(pieces) = self.node(num) {
            return pieces.clone();
        }
        let width = self.width(num);
        let mut all = vec![Piece { width, of: Of::Num(num, 0) }];
        if width < 64 {
            all.push(Piece { width: 64 - width, of: Of::Number(0) });
        }
        all.retain(|piece| piece.width > 0);
        all
    }

    /// Bits beside bits as a number; those above are 0.
    pub(super) fn bits(&mut self, pieces: Vec<Piece>) -> Num {
        let mut all: Vec<Piece> = Vec::new();
        let mut total = 0;
        let rest = |total: u8| Piece { width: 64 - total, of: Of::Number(0) };
        let mut add = |piece: Piece| {
            // Bits of what is bits itself.
            if let Some(last) = all.last_mut() {
                let joined = match (last.of, piece.of) {
                    (Of::Number(low), Of::Number(high)) => {
                        Some(Of::Number(low | high.checked_shl(last.width.into()).unwrap_or(0)))
                    }
                    (Of::Data(low), Of::Data(high)) if high + u32::from(piece.width) == low => {
                        Some(Of::Data(high))
                    }
                    (Of::Num(a, low), Of::Num(b, high)) if a == b && high == low + last.width => {
                        Some(Of::Num(a, low))
                    }
                    _ => None,
                };
                if let Some(of) = joined {
                    *last = Piece { width: last.width + piece.width, of };
                    return;
                }
            }
            all.push(piece);
        };
        for piece in pieces.into_iter().filter(|piece| piece.width > 0) {
            total += piece.width;
            add(piece);
        }
        if total < 64 {
            add(rest(total));
        }
        if let Some(Piece { width, of: Of::Num(num, 0) }) = all.first().copied()
            && width >= self.width(num)
            && all[1..].iter().all(|piece| piece.of == Of::Number(0))
        {
            return num;
        }
        self.intern(Node::Bits(all))
    }

    /// `width` bits from bit `low` on.
    pub(super) fn slice(&mut self, num: Num, low: u8, width: u8) -> Num {
        let pieces = slice(&self.pieces(num), low, width);
        self.bits(pieces)
    }

    /// Bits of the frame.
    pub(super) fn data(&mut self, bit: u32, width: u8) -> Num {
        self.bits(vec![Piece { width, of: Of::Data(bit) }])
    }

    /// As a sum: parts and their factors, and a constant.
    fn parts(&self, num: Num) -> (BTreeMap<Num, i128>, i128) {
        match self.node(num) {
            Node::Sum(parts, constant) => (parts.iter().copied().collect(), *constant),
            _ => match self.as_number(num) {
                Some(value) => (BTreeMap::new(), value.into()),
                None => ([(num, 1)].into(), 0),
            },
        }
    }

    /// `a + factor * b`
    pub(super) fn sum(&mut self, a: Num, b: Num, factor: i128) -> Num {
        if factor == 1
            && let Some(of) = self.folds(a, b).or_else(|| self.folds(b, a))
        {
            return self.fold(of);
        }
        let (mut parts, mut constant) = self.parts(a);
        let (others, more) = self.parts(b);
        constant = constant.saturating_add(more.saturating_mul(factor));
        for (num, times) in others {
            let sum = parts.entry(num).or_insert(0);
            *sum = sum.saturating_add(times.saturating_mul(factor));
        }
        parts.retain(|_, factor| *factor != 0);
        // Factors that large are of no number that is computed here.
        let large = |n: &i128| n.unsigned_abs() > 1 << 100;
        if parts.values().any(large) || large(&constant) {
            return self.intern(Node::Op(if factor == 1 { Alu::Add } else { Alu::Sub }, a, b));
        }
        let parts: Vec<(Num, i128)> = parts.into_iter().collect();
        match (&parts[..], constant) {
            ([], constant) => self.number(constant as u64),
            ([(num, 1)], 0) => *num,
            _ => {
                // A constant that only wraps is taken for the negative that it is.
                let num = self.intern(Node::Sum(parts.clone(), constant));
                if self.range(num).1 > MOST && constant > MOST / 2 {
                    return self.intern(Node::Sum(parts, constant - (1 << 64)));
                }
                num
            }
        }
    }

    /// The number of which one is the low 16 bits and the other those above.
    fn folds(&self, low: Num, high: Num) -> Option<Num> {
        let (Node::Bits(low), Node::Bits(high)) = (self.node(low), self.node(high)) else {
            return None;
        };
        let (Of::Num(a, 0), Of::Num(b, 16)) = (low.first()?.of, high.first()?.of) else {
            return None;
        };
        let rest = |pieces: &[Piece]| pieces.iter().all(|piece| piece.of == Of::Number(0));
        let all = low[0].width == 16 && u16::from(high[0].width) + 16 >= self.width(a).into();
        (a == b && all && rest(&low[1..]) && rest(&high[1..])).then_some(a)
    }

    fn fold(&mut self, of: Num) -> Num {
        let num = self.intern(Node::Fold(of));
        if self.most(num) > 0xffff {
            return num;
        }
        let mut from = of;
        while let Node::Fold(inner) = self.node(from) {
            from = *inner;
        }
        self.ones(from)
    }

    /// A number folded to 16 bits: 0 only for 0.
    pub(super) fn ones(&mut self, of: Num) -> Num {
        if self.most(of) <= 0xffff {
            return of;
        }
        if let Some(value) = self.as_number(of) {
            return self.number((value - 1) % 0xffff + 1);
        }
        let (parts, constant) = self.parts(of);
        let mut bits: BTreeMap<Bit, i128> = BTreeMap::new();
        let mut exact = constant;
        for (num, factor) in &parts {
            let mut at = 0;
            for piece in self.pieces(*num) {
                let scale = if factor.unsigned_abs() < 1 << 32 { factor << at } else { return of };
                match piece.of {
                    Of::Number(value) => exact += scale * i128::from(value),
                    Of::Data(bit) => {
                        for j in 0..piece.width {
                            let bit = Bit::Data(bit + u32::from(piece.width - 1 - j));
                            *bits.entry(bit).or_insert(0) += scale << j;
                        }
                    }
                    Of::Num(num, low) => {
                        for j in 0..piece.width {
                            *bits.entry(Bit::Num(num, low + j)).or_insert(0) += scale << j;
                        }
                    }
                }
                at += piece.width;
            }
        }
        bits.retain(|_, factor| *factor != 0);
        if exact == 0
            && let Some((offset, length)) = self.whole_window(&bits)
        {
            let sum = self.intern(Node::Sum16 { offset, length });
            return self.reversed(sum, 16);
        }
        let least = bits.values().filter(|factor| **factor < 0).sum::<i128>() + exact;
        let zero = match least {
            1.. => Zero::Never,
            0 => Zero::When(bits.iter().map(|(bit, factor)| (*bit, *factor < 0)).collect()),
            _ => Zero::Exactly(bits.iter().map(|(b, f)| (*b, *f)).collect(), exact),
        };
        let form = |factor: &i128| factor.rem_euclid(0xffff) as u32;
        let mut weights: Vec<(Bit, u32)> = bits.iter().map(|(b, f)| (*b, form(f))).collect();
        weights.retain(|weight| weight.1 != 0);
        let num = self.intern(Node::Ones(Form { weights, constant: form(&exact), zero }));
        self.from.entry(num).or_insert((of, false));
        num
    }

    /// The window all of whose bytes are added up, as they lie in memory.
    fn whole_window(&self, bits: &BTreeMap<Bit, i128>) -> Option<(u16, Num)> {
        if bits.len() != usize::from(WINDOW) * 8 {
            return None;
        }
        let window = |num: Num| match *self.node(num) {
            Node::Window { offset, length, at } => Some((offset, length, at)),
            _ => None,
        };
        let mut found = None;
        for (bit, factor) in bits {
            let Bit::Num(num, low) = *bit else { return None };
            let (offset, length, at) = window(num)?;
            if *found.get_or_insert((offset, length)) != (offset, length) {
                return None;
            }
            let weight = (1_i128 << low) * if at % 2 == 0 { 1 } else { 256 };
            if factor.rem_euclid(0xffff) != weight.rem_euclid(0xffff) || *factor <= 0 {
                return None;
            }
        }
        found
    }

    /// The low bits with their bytes reversed.
    pub(super) fn reversed(&mut self, num: Num, bits: u8) -> Num {
        if bits == 16
            && let Node::Ones(form) = self.node(num)
            && !matches!(form.zero, Zero::Exactly(..))
        {
            let turn = |weight: u32| weight * 256 % 0xffff;
            let weights = form.weights.iter().map(|(bit, weight)| (*bit, turn(*weight))).collect();
            let (constant, zero) = (turn(form.constant), form.zero.clone());
            let turned = self.intern(Node::Ones(Form { weights, constant, zero }));
            let (from, is_turned) = self.from[&num];
            self.from.entry(turned).or_insert((from, !is_turned));
            return turned;
        }
        let pieces = self.pieces(num);
        let bytes = (0..bits / 8).rev().flat_map(|byte| slice(&pieces, 8 * byte, 8));
        self.bits(bytes.collect())
    }

    /// An operation on 64 bits.
    pub(super) fn apply(&mut self, op: Alu, a: Num, b: Num) -> Num {
        let (x, y) = (self.as_number(a), self.as_number(b));
        if let (Some(x), Some(y)) = (x, y) {
            let value = match op {
                Alu::Add => x.wrapping_add(y),
                Alu::Sub => x.wrapping_sub(y),
                Alu::Mul => x.wrapping_mul(y),
                Alu::Div => x.checked_div(y).unwrap_or(0),
                Alu::Rem => x.checked_rem(y).unwrap_or(x),
                Alu::Or => x | y,
                Alu::And => x & y,
                Alu::Xor => x ^ y,
                Alu::Shl => x.wrapping_shl(y as u32),
                Alu::Shr => x.wrapping_shr(y as u32),
                Alu::Mov => y,
            };
            return self.number(value);
        }
        match (op, x, y) {
            (Alu::Mov, ..) => b,
            (Alu::Add, _, Some(y)) if y > u64::MAX / 2 => {
                let less = self.number(y.wrapping_neg());
                self.sum(a, less, -1)
            }
            (Alu::Sub, _, Some(y)) if y > u64::MAX / 2 => {
                let more = self.number(y.wrapping_neg());
                self.sum(a, more, 1)
            }
            (Alu::Add, ..) => self.sum(a, b, 1),
            (Alu::Sub, ..) => self.sum(a, b, -1),
            (Alu::Mul, Some(_), _) => self.times(b, a),
            (Alu::Mul, _, Some(_)) => self.times(a, b),
            (Alu::Shl, _, Some(by @ 0..64)) => {
                let by = by as u8;
                let mut pieces = vec![Piece { width: by, of: Of::Number(0) }];
                pieces.extend(slice(&self.pieces(a), 0, 64 - by));
                self.bits(pieces)
            }
            (Alu::Shr, _, Some(by @ 0..64)) => self.slice(a, by as u8, 64 - by as u8),
            (Alu::And | Alu::Or | Alu::Xor, ..) => self.bitwise(op, a, b),
            _ => self.intern(Node::Op(op, a, b)),
        }
    }

    fn times(&mut self, a: Num, factor: Num) -> Num {
        let by = self.as_number(factor).unwrap_or(0);
        let product = i128::from(self.most(a)).checked_mul(by.into());
        if product.is_some_and(|most| most <= MOST) {
            if by.is_power_of_two() {
                let bits = self.number(by.trailing_zeros().into());
                return self.apply(Alu::Shl, a, bits);
            }
            let zero = self.number(0);
            return self.sum(zero, a, by.into());
        }
        if let Node::Op(Alu::Mul, inner, other) = *self.node(a)
            && let Some(other) = self.as_number(other)
        {
            let both = self.number(by.wrapping_mul(other));
            return self.intern(Node::Op(Alu::Mul, inner, both));
        }
        self.intern(Node::Op(Alu::Mul, a, factor))
    }

    fn bitwise(&mut self, op: Alu, a: Num, b: Num) -> Num {
        // What all bits are taken from.
        for (a, b) in [(a, b), (b, a)] {
            if let (Alu::Xor, Some(mask)) = (op, self.as_number(b))
                && mask.wrapping_add(1).is_power_of_two()
                && self.most(a) <= mask
            {
                return self.sum(b, a, -1);
            }
        }
        let (x, y) = (self.pieces(a), self.pieces(b));
        let mut ends: Vec<u8> = Vec::new();
        for pieces in [&x, &y] {
            let mut at = 0;
            for piece in pieces {
                if let Of::Number(value) = piece.of {
                    // Runs of equal bits.
                    let flips = |j: &u8| *j > 0 && (value >> j & 1) != (value >> (j - 1) & 1);
                    ends.extend((0..piece.width).filter(flips).map(|j| at + j));
                }
                at += piece.width;
                ends.push(at);
            }
        }
        ends.sort_unstable();
        ends.dedup();
        let (mut from, mut all) = (0, Vec::new());
        for end in ends {
            let width = end - from;
            let (p, q) = (slice(&x, from, width), slice(&y, from, width));
            let ([p], [q]) = (&p[..], &q[..]) else {
                return self.intern(Node::Op(op, a.min(b), a.max(b)));
            };
            let piece = match (op, p.of, q.of) {
                (_, Of::Number(p), Of::Number(q)) => {
                    let value = match op {
                        Alu::And => p & q,
                        Alu::Or => p | q,
                        _ => p ^ q,
                    };
                    Piece { width, of: Of::Number(value) }
                }
                (Alu::And, Of::Number(0), _) | (Alu::And, _, Of::Number(0)) => {
                    Piece { width, of: Of::Number(0) }
                }
                (Alu::Or | Alu::Xor, Of::Number(0), _) => *q,
                (Alu::Or | Alu::Xor, _, Of::Number(0)) => *p,
                (Alu::And, Of::Number(_), _) => *q,
                (Alu::And, _, Of::Number(_)) => *p,
                (Alu::Or, Of::Number(_), _) => *p,
                (Alu::Or, _, Of::Number(_)) => *q,
                (Alu::And | Alu::Or, p_of, q_of) if p_of == q_of => *p,
                _ => return self.intern(Node::Op(op, a.min(b), a.max(b))),
            };
            all.push(piece);
            from = end;
        }
        self.bits(all)
    }
}
