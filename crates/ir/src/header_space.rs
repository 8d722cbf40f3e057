//! Sets of packets: unions of disjoint cubes (SNF's packet filters, §7.2.1.1).
//!
//! A [`Cube`] gives some fields a set of numbers each; every other field may hold anything. The
//! fields of one cube never share a bit, so a cube is never empty. Where two cubes
//! name different fields that overlap (`ip.flags_frag` and `ip.frag`), an operation on them first
//! splits the fields at each other's edges, which is exact: the pieces are equal or apart.
//!
//! What is exact and what is not: the algebra, emptiness and inclusion are exact for the bits
//! that each base ([`crate::field::Base`]) leads to, taken as independent of one another. Hence an empty space
//! holds no packet, for sure; a space that is not empty has a valuation of bits, but perhaps no
//! real packet, since bases may lead to the same byte of a frame (`data` and `net`), the
//! properties in [`crate::field::meta`] depend on the bytes, and a packet may be too short for a field.
//!
//! Subtracting, intersecting and uniting can multiply cubes. Operations that can take a limit,
//! never make more cubes than that, and return [`TooLarge`] instead.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::Field;
use crate::interval::IntervalSet;
use crate::model::{BinaryOp, CompareOp, Cond, Expr};
use crate::notation::{Notation, Number, Numbers};

/// An operation would have made more cubes than its limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The limit that was given.
    pub limit: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the header space takes more than {} cubes", self.limit)
    }
}

impl std::error::Error for TooLarge {}

/// The packets whose fields are each in a set. Sorted by field; the fields share no bit; no set
/// is empty or full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cube(Vec<(Field, IntervalSet)>);

/// Fields of two cubes that share bits.
enum Meeting<'a> {
    /// A field of both.
    Both(&'a IntervalSet, &'a IntervalSet),
    /// Two fields that share bits but are not the same.
    Misaligned,
}

impl Cube {
    /// The fields that are constrained and what they may be.
    pub fn fields(&self) -> &[(Field, IntervalSet)] {
        &self.0
    }

    /// What a field may be, if exactly this field is constrained.
    pub fn get(&self, field: Field) -> Option<&IntervalSet> {
        self.0.binary_search_by_key(&field, |e| e.0).ok().map(|i| &self.0[i].1)
    }

    /// Whether a packet is in the cube: see [`HeaderSpace::contains`].
    pub fn contains(&self, value: impl Fn(Field) -> Option<u128>) -> Option<bool> {
        let mut known = true;
        for (field, set) in &self.0 {
            match value(*field) {
                Some(v) if !set.contains(v) => return Some(false),
                Some(_) => {}
                None => known = false,
            }
        }
        known.then_some(true)
    }

    /// Sets what a field may be; the set is not empty.
    fn put(&mut self, field: Field, set: IntervalSet) {
        let full = set.is_full(field.width);
        match self.0.binary_search_by_key(&field, |e| e.0) {
            Ok(i) if full => drop(self.0.remove(i)),
            Ok(i) => self.0[i].1 = set,
            Err(_) if full => {}
            Err(i) => self.0.insert(i, (field, set)),
        }
    }

    /// Calls `meet` for each pair of fields that share bits until it answers `false`.
    fn meetings<'a>(&'a self, other: &'a Cube, mut meet: impl FnMut(Meeting<'a>) -> bool) {
        let (mut i, mut j) = (0, 0);
        // Fields of one cube share no bit, so both lists ascend without overlap.
        while let (Some((a, x)), Some((b, y))) = (self.0.get(i), other.0.get(j)) {
            if a == b {
                if !meet(Meeting::Both(x, y)) {
                    return;
                }
                (i, j) = (i + 1, j + 1);
            } else {
                if a.overlaps(*b) && !meet(Meeting::Misaligned) {
                    return;
                }
                if (a.base, end(*a)) < (b.base, end(*b)) { i += 1 } else { j += 1 }
            }
        }
    }

    /// Whether fields of both that share bits are the same field.
    fn is_aligned(&self, other: &Cube) -> bool {
        let mut aligned = true;
        self.meetings(other, |m| {
            aligned = matches!(m, Meeting::Both(..));
            aligned
        });
        aligned
    }

    /// Whether a field of both shows that no packet is in both. Exact for aligned cubes.
    fn is_apart(&self, other: &Cube) -> bool {
        let mut apart = false;
        self.meetings(other, |m| {
            apart = matches!(m, Meeting::Both(x, y) if !x.intersects(y));
            !apart
        });
        apart
    }

    /// Whether every field that `other` constrains is constrained as much here. Exact for
    /// aligned cubes; for others `false` may be wrong.
    fn is_inside(&self, other: &Cube) -> bool {
        let set = |field| self.get(field);
        other.0.iter().all(|(field, theirs)| set(*field).is_some_and(|s| s.is_subset(theirs)))
    }

    /// The packets in both, if there are any. The cubes are aligned.
    fn intersect(&self, other: &Cube) -> Option<Cube> {
        let mut cube = self.clone();
        for (field, theirs) in &other.0 {
            let both = match cube.get(*field) {
                Some(mine) => mine.intersect(theirs),
                None => theirs.clone(),
            };
            if both.is_empty() {
                return None;
            }
            cube.put(*field, both);
        }
        Some(cube)
    }

    /// Adds disjoint cubes for the packets that are not in `other`. The cubes are aligned.
    fn subtract(mut self, other: &Cube, out: &mut Vec<Cube>) {
        for (field, theirs) in &other.0 {
            let (outside, inside) = match self.get(*field) {
                Some(mine) => (mine.subtract(theirs), mine.intersect(theirs)),
                None => (theirs.complement(field.width), theirs.clone()),
            };
            if !outside.is_empty() {
                let mut piece = self.clone();
                piece.put(*field, outside);
                out.push(piece);
                if inside.is_empty() {
                    return;
                }
                self.put(*field, inside);
            }
        }
    }

    /// The cube as disjoint cubes whose fields are split wherever a field of `other` begins or
    /// ends inside them.
    fn align(&self, other: &Cube, limit: usize) -> Result<Cow<'_, [Cube]>, TooLarge> {
        if self.is_aligned(other) {
            return Ok(Cow::Borrowed(std::slice::from_ref(self)));
        }
        let fields: Vec<Field> = other.0.iter().map(|e| e.0).collect();
        self.split_at(&fields, limit).map(Cow::Owned)
    }

    /// See [`HeaderSpace::split_at`].
    fn split_at(&self, fields: &[Field], limit: usize) -> Result<Vec<Cube>, TooLarge> {
        let mut cubes = vec![Cube::default()];
        for (field, set) in &self.0 {
            let mut cuts: Vec<u16> = fields
                .iter()
                .filter(|o| o.overlaps(*field))
                .flat_map(|o| [u32::from(o.offset), end(*o)])
                .filter(|&at| u32::from(field.offset) < at && at < end(*field))
                .map(|at| at as u16 - field.offset)
                .collect();
            cuts.sort_unstable();
            cuts.dedup();
            let rows = split(set, field.width, &cuts, limit)?;
            if cubes.len() * rows.len() > limit {
                return Err(TooLarge { limit });
            }
            let pieces = runs(*field, &cuts);
            cubes = cubes
                .iter()
                .flat_map(|cube| rows.iter().map(move |row| (cube, row)))
                .map(|(cube, row)| {
                    let mut cube = cube.clone();
                    pieces.iter().zip(row).for_each(|(f, s)| cube.put(*f, s.clone()));
                    cube
                })
                .collect();
        }
        Ok(cubes)
    }
}

/// What a cube asks of all fields but one.
#[derive(PartialEq, Eq)]
struct Rest<'a>(Vec<&'a (Field, IntervalSet)>);

impl Hash for Rest<'_> {
    /// Sets may be large, and hardly any differ in nothing of this.
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (field, set) in &self.0 {
            (field.offset, set.intervals().len(), set.min(), set.max()).hash(state);
        }
    }
}

/// Least and greatest number.
type Interval = (u128, u128);

/// One past the last bit of a field.
fn end(field: Field) -> u32 {
    u32::from(field.offset) + u32::from(field.width)
}

/// The fields that a field falls into when it is cut after so many bits.
fn runs(field: Field, cuts: &[u16]) -> Vec<Field> {
    let edges = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([field.width]);
    edges
        .zip(ends)
        .map(|(from, to)| Field::bits(field.base, field.offset + from, to - from))
        .collect()
}

/// A set of `width`-bit numbers as disjoint products of sets of their runs of bits, where
/// `cuts` says after how many bits a new run begins.
fn split(
    set: &IntervalSet,
    width: u16,
    cuts: &[u16],
    limit: usize,
) -> Result<Vec<Vec<IntervalSet>>, TooLarge> {
    let Some((&cut, _)) = cuts.split_first() else {
        return Ok(vec![vec![set.clone()]]);
    };
    let low_width = width - cut;
    let low_max = u128::MAX >> (128 - low_width);
    // For each range of the high run, the low runs that go with it, ascending.
    let mut rows: Vec<(Interval, Vec<Interval>)> = Vec::new();
    let mut add = |high: Interval, low: Interval| match rows.last_mut() {
        Some((last, lows)) if *last == high => lows.push(low),
        _ => rows.push((high, vec![low])),
    };
    for &(first, last) in set.intervals() {
        let (mut from, mut to) = (first >> low_width, last >> low_width);
        let (low_from, low_to) = (first & low_max, last & low_max);
        if from == to {
            add((from, to), (low_from, low_to));
            continue;
        }
        if low_from != 0 {
            add((from, from), (low_from, low_max));
            from += 1;
        }
        let tail = (low_to != low_max).then_some(to);
        if tail.is_some() {
            to -= 1; // cannot wrap: `to` was greater than `from` before
        }
        if from <= to {
            add((from, to), (0, low_max));
        }
        if let Some(tail) = tail {
            add((tail, tail), (0, low_to));
        }
    }
    let mut by_low: BTreeMap<IntervalSet, Vec<Interval>> = BTreeMap::new();
    for (high, lows) in rows {
        by_low.entry(IntervalSet::from_intervals(lows)).or_default().push(high);
    }
    let rest: Vec<u16> = cuts[1..].iter().map(|c| c - cut).collect();
    let mut products = Vec::new();
    for (low, highs) in by_low {
        let high = IntervalSet::from_intervals(highs);
        for mut row in split(&low, low_width, &rest, limit)? {
            row.insert(0, high.clone());
            products.push(row);
        }
        if products.len() > limit {
            return Err(TooLarge { limit });
        }
    }
    Ok(products)
}

/// A set of packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeaderSpace {
    /// No packet is in two of them.
    cubes: Vec<Cube>,
}

/// Wild bits above the lowest tested one up to which a mask becomes intervals of its field.
const WILD_BITS_IN_INTERVALS: u32 = 4;

impl HeaderSpace {
    /// No packet.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Every packet.
    pub fn full() -> Self {
        Self { cubes: vec![Cube::default()] }
    }

    /// The packets of cubes that are disjoint.
    pub fn of_disjoint(cubes: Vec<Cube>) -> Self {
        Self { cubes }
    }

    /// The packets whose field is in a set.
    pub fn test(field: Field, set: &IntervalSet) -> Self {
        let set = set.intersect(&IntervalSet::full(field.width));
        if set.is_empty() {
            return Self::empty();
        }
        let mut cube = Cube::default();
        cube.put(field, set);
        Self { cubes: vec![cube] }
    }

    /// The packets whose field starts with the first `length` bits of `value`.
    pub fn prefix(field: Field, value: u128, length: u16) -> Self {
        Self::test(field, &IntervalSet::prefix(field.width, value, length.min(field.width)))
    }

    /// The packets with `field & mask == value`. The mask may be any: one that would take many
    /// intervals becomes tests of the runs of bits that it covers.
    pub fn masked(field: Field, value: u128, mask: u128) -> Self {
        let mask = mask & field.max();
        if value & !mask != 0 {
            return Self::empty();
        }
        if mask == 0 {
            return Self::full();
        }
        let wild = u32::from(field.width) - mask.count_ones() - mask.trailing_zeros();
        if wild <= WILD_BITS_IN_INTERVALS
            && let Some(set) = IntervalSet::masked(field.width, value, mask)
        {
            return Self::test(field, &set);
        }
        let mut cube = Cube::default();
        for run in runs(field, &mask_cuts(field.width, mask)) {
            let shift = end(field) - end(run);
            if mask >> shift & 1 == 1 {
                cube.put(run, IntervalSet::single(value >> shift & run.max()));
            }
        }
        Self { cubes: vec![cube] }
    }

    /// The packets with `field & mask` in a set.
    fn masked_test(
        field: Field,
        mask: u128,
        set: &IntervalSet,
        limit: usize,
    ) -> Result<Self, TooLarge> {
        let mask = mask & field.max();
        if mask == field.max() {
            return Ok(Self::test(field, set));
        } else if let Some(value) = set.as_single() {
            return Ok(Self::masked(field, value, mask));
        } else if mask == 0 {
            return Ok(if set.contains(0) { Self::full() } else { Self::empty() });
        }
        // What is not under the mask is 0 in `field & mask` and free in the field.
        let cuts = mask_cuts(field.width, mask);
        let fields = runs(field, &cuts);
        let tested = |run: &Field| mask >> (end(field) - end(*run)) & 1 == 1;
        let set = set.intersect(&IntervalSet::full(field.width));
        let mut cubes = Vec::new();
        for row in split(&set, field.width, &cuts, limit)? {
            if fields.iter().zip(&row).all(|(f, s)| tested(f) || s.contains(0)) {
                let mut cube = Cube::default();
                fields
                    .iter()
                    .zip(row)
                    .filter(|(f, _)| tested(f))
                    .for_each(|(f, s)| cube.put(*f, s));
                cubes.push(cube);
            }
        }
        Ok(Self { cubes })
    }

    /// The cubes: no packet is in two of them.
    pub fn cubes(&self) -> &[Cube] {
        &self.cubes
    }

    /// Whether it holds no valuation of bits, and so no packet: see the module on what this
    /// guarantees.
    pub fn is_empty(&self) -> bool {
        self.cubes.is_empty()
    }

    /// Whether a packet is in the space, given its fields' values. Values of fields that
    /// overlap must agree. `None` if that depends on a field without a value.
    pub fn contains(&self, value: impl Fn(Field) -> Option<u128>) -> Option<bool> {
        let mut known = true;
        for cube in &self.cubes {
            match cube.contains(&value) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => known = false,
            }
        }
        known.then_some(false)
    }

    /// Values of the fields that make a packet one of the space; fields not named may hold
    /// anything. `None` if the space is empty.
    pub fn sample(&self) -> Option<Vec<(Field, u128)>> {
        let cube = self.cubes.first()?;
        Some(cube.0.iter().filter_map(|(f, s)| Some((*f, s.min()?))).collect())
    }

    /// The space with its fields split wherever one of `fields` begins or ends inside them. If
    /// several spaces are split at the fields of all of them, any two fields of theirs are the
    /// same or share no bit.
    ///
    /// # Errors
    /// [`TooLarge`] if that takes more than `limit` cubes.
    pub fn split_at(&self, fields: &[Field], limit: usize) -> Result<Self, TooLarge> {
        let mut cubes = Vec::with_capacity(self.cubes.len());
        for cube in &self.cubes {
            cubes.extend(cube.split_at(fields, limit)?);
            if cubes.len() > limit {
                return Err(TooLarge { limit });
            }
        }
        Ok(Self { cubes })
    }

    /// Packets in both.
    ///
    /// # Errors
    /// [`TooLarge`] if that takes more than `limit` cubes.
    pub fn intersect(&self, other: &Self, limit: usize) -> Result<Self, TooLarge> {
        let mut cubes = Vec::new();
        for a in &self.cubes {
            for b in other.cubes.iter().filter(|b| !a.is_apart(b)) {
                let (these, those) = (a.align(b, limit)?, b.align(a, limit)?);
                for x in these.iter() {
                    cubes.extend(those.iter().filter_map(|y| x.intersect(y)));
                    if cubes.len() > limit {
                        return Err(TooLarge { limit });
                    }
                }
            }
        }
        Ok(Self { cubes })
    }

    /// Packets here and not in `other`.
    ///
    /// # Errors
    /// [`TooLarge`] if that takes more than `limit` cubes.
    pub fn subtract(&self, other: &Self, limit: usize) -> Result<Self, TooLarge> {
        let mut rest = self.clone();
        rest.remove(other, limit)?;
        Ok(rest)
    }

    /// Takes the packets of `other` away, leaving cubes alone that have none of them: made to
    /// subtract many spaces one after the other.
    ///
    /// # Errors
    /// [`TooLarge`] if that makes more than `limit` cubes; then only some are taken away.
    pub fn remove(&mut self, other: &Self, limit: usize) -> Result<(), TooLarge> {
        other.cubes.iter().try_for_each(|b| subtract_cube(&mut self.cubes, b, limit))
    }

    /// Packets in either.
    ///
    /// # Errors
    /// [`TooLarge`] if that takes more than `limit` cubes.
    pub fn union(&self, other: &Self, limit: usize) -> Result<Self, TooLarge> {
        // Whole cubes that the other side covers go first: less to cut the other side with.
        let covered = |cube: &&Cube| other.cubes.iter().any(|b| cube.is_inside(b));
        let mut cubes: Vec<Cube> = self.cubes.iter().filter(|c| !covered(c)).cloned().collect();
        let mut more = other.cubes.clone();
        for cube in &cubes {
            subtract_cube(&mut more, cube, limit)?;
        }
        cubes.append(&mut more);
        if cubes.len() > limit {
            return Err(TooLarge { limit });
        }
        Ok(Self { cubes })
    }

    /// Packets in any of the spaces, compacted.
    ///
    /// # Errors
    /// [`TooLarge`] if that takes more than `limit` cubes.
    pub fn union_all(mut spaces: Vec<Self>, limit: usize) -> Result<Self, TooLarge> {
        // By halves: neighbours that merge do so before they are cut against the rest.
        while spaces.len() > 1 {
            let mut halved = Vec::with_capacity(spaces.len().div_ceil(2));
            for pair in spaces.chunks(2) {
                let mut both = match pair {
                    [a, b] => a.union(b, limit)?,
                    one => one[0].clone(),
                };
                both.compact();
                halved.push(both);
            }
            spaces = halved;
        }
        Ok(spaces.pop().unwrap_or_default())
    }

    /// Packets that are not in the space.
    ///
    /// # Errors
    /// [`TooLarge`] if that takes more than `limit` cubes.
    pub fn complement(&self, limit: usize) -> Result<Self, TooLarge> {
        if let [cube] = &self.cubes[..]
            && let [(field, set)] = &cube.0[..]
        {
            return Ok(Self::test(*field, &set.complement(field.width)));
        }
        Self::full().subtract(self, limit)
    }

    /// Whether every packet here is in `other`.
    ///
    /// # Errors
    /// [`TooLarge`] if finding out takes more than `limit` cubes.
    pub fn is_subset(&self, other: &Self, limit: usize) -> Result<bool, TooLarge> {
        for cube in &self.cubes {
            if !other.cubes.iter().any(|b| cube.is_inside(b)) {
                let mut rest = vec![cube.clone()];
                for b in &other.cubes {
                    subtract_cube(&mut rest, b, limit)?;
                }
                if !rest.is_empty() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether no packet is in both.
    ///
    /// # Errors
    /// [`TooLarge`] if finding out takes more than `limit` cubes.
    pub fn is_disjoint(&self, other: &Self, limit: usize) -> Result<bool, TooLarge> {
        for a in &self.cubes {
            for b in other.cubes.iter().filter(|b| !a.is_apart(b)) {
                let (these, those) = (a.align(b, limit)?, b.align(a, limit)?);
                if these.iter().any(|x| those.iter().any(|y| !x.is_apart(y))) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Merges cubes that differ in one field only, as far as that goes.
    pub fn compact(&mut self) {
        let mut fields: Vec<Field> =
            self.cubes.iter().flat_map(|c| c.0.iter().map(|e| e.0)).collect();
        fields.sort_unstable();
        fields.dedup();
        let mut merged = self.cubes.len() > 1;
        while merged {
            merged = false;
            for &field in &fields {
                let before = self.cubes.len();
                self.merge_along(field);
                merged |= self.cubes.len() < before;
            }
        }
    }

    /// Merges cubes that differ in this field only.
    fn merge_along(&mut self, field: Field) {
        // Cubes that leave the field open are disjoint from their like: nothing to merge.
        let mut groups: HashMap<Rest<'_>, usize> = HashMap::new();
        let mut merged: Vec<(&Cube, Vec<&IntervalSet>)> = Vec::with_capacity(self.cubes.len());
        for cube in &self.cubes {
            let Some(set) = cube.get(field) else {
                merged.push((cube, Vec::new()));
                continue;
            };
            let rest = Rest(cube.0.iter().filter(|e| e.0 != field).collect());
            let slot = *groups.entry(rest).or_insert(merged.len());
            match merged.get_mut(slot) {
                Some((_, sets)) => sets.push(set),
                None => merged.push((cube, vec![set])),
            }
        }
        if merged.len() == self.cubes.len() {
            return;
        }
        self.cubes = merged
            .into_iter()
            .map(|(cube, sets)| {
                let mut cube = cube.clone();
                if sets.len() > 1 {
                    let all = sets.iter().flat_map(|s| s.intervals()).copied().collect();
                    cube.put(field, IntervalSet::from_intervals(all));
                }
                cube
            })
            .collect();
    }

    /// The packets for which a condition holds, if the condition is about fields alone: made of
    /// `All`, `Any`, `Not` and tests of a field, of some of its bits (`field & mask`,
    /// `field >> n`), or of it against a constant. `Ok(None)` for any other condition.
    ///
    /// # Errors
    /// [`TooLarge`] if that takes more than `limit` cubes.
    pub fn from_cond(cond: &Cond, limit: usize) -> Result<Option<Self>, TooLarge> {
        Ok(Some(match cond {
            Cond::Const(true) => Self::full(),
            Cond::Const(false) => Self::empty(),
            Cond::Test(Expr::Const(value), set) if set.contains(*value) => Self::full(),
            Cond::Test(Expr::Const(_), _) => Self::empty(),
            Cond::Test(expr, set) => match bits_of(expr) {
                Some((field, mask)) => Self::masked_test(field, mask, set, limit)?,
                None => return Ok(None),
            },
            Cond::Compare(op, expr, Expr::Const(value)) => match bits_of(expr) {
                Some((field, mask)) => {
                    Self::masked_test(field, mask, &compared(*op, *value), limit)?
                }
                None => return Ok(None),
            },
            Cond::All(all) => {
                let mut space = Self::full();
                for cond in all {
                    match Self::from_cond(cond, limit)? {
                        Some(next) => space = space.intersect(&next, limit)?,
                        None => return Ok(None),
                    }
                }
                space
            }
            Cond::Any(any) => {
                let mut spaces = Vec::with_capacity(any.len());
                for cond in any {
                    match Self::from_cond(cond, limit)? {
                        Some(space) => spaces.push(space),
                        None => return Ok(None),
                    }
                }
                Self::union_all(spaces, limit)?
            }
            Cond::Not(inner) => match Self::from_cond(inner, limit)? {
                Some(space) => space.complement(limit)?,
                None => return Ok(None),
            },
            Cond::Compare(..) | Cond::FlowExists(..) => return Ok(None),
        }))
    }

    /// The condition that a packet is in the space.
    pub fn to_cond(&self) -> Cond {
        let cond = |cube: &Cube| match &cube.0[..] {
            [] => Cond::Const(true),
            [(field, set)] => field.is_in(set.clone()),
            fields => Cond::All(fields.iter().map(|(f, s)| f.is_in(s.clone())).collect()),
        };
        match &self.cubes[..] {
            [] => Cond::Const(false),
            [cube] => cond(cube),
            cubes => Cond::Any(cubes.iter().map(cond).collect()),
        }
    }
}

impl From<Cube> for HeaderSpace {
    fn from(cube: Cube) -> Self {
        Self { cubes: vec![cube] }
    }
}

/// Takes a cube away from disjoint cubes.
fn subtract_cube(cubes: &mut Vec<Cube>, other: &Cube, limit: usize) -> Result<(), TooLarge> {
    let (mut i, mut end) = (0, cubes.len());
    while i < end {
        let cube = &cubes[i];
        let pieces = if cube.is_apart(other) {
            None
        } else if cube.is_aligned(other) {
            let mut pieces = Vec::new();
            cube.clone().subtract(other, &mut pieces);
            Some(pieces)
        } else {
            let (these, those) = (cube.align(other, limit)?, other.align(cube, limit)?);
            let meets = |this: &Cube| those.iter().any(|that| !this.is_apart(that));
            if these.iter().any(meets) {
                let mut pieces = these.into_owned();
                for that in those.iter() {
                    subtract_cube(&mut pieces, that, limit)?;
                }
                Some(pieces)
            } else {
                None
            }
        };
        match pieces {
            None => i += 1,
            Some(mut pieces) => {
                // What moves here was the last cube not yet looked at, or a piece, which is
                // apart from `other`.
                cubes.swap_remove(i);
                end = end.min(cubes.len());
                cubes.append(&mut pieces);
                if cubes.len() > limit {
                    return Err(TooLarge { limit });
                }
            }
        }
    }
    Ok(())
}

/// After how many bits of a number a mask changes between 0 and 1.
fn mask_cuts(width: u16, mask: u128) -> Vec<u16> {
    let bit = |i: u16| mask >> (width - 1 - i) & 1;
    (1..width).filter(|&i| bit(i) != bit(i - 1)).collect()
}

/// The field and the mask that an expression is made of, if it is `field & mask` or less.
fn bits_of(expr: &Expr) -> Option<(Field, u128)> {
    match expr {
        Expr::Field(field) => Some((*field, Field::max(*field))),
        Expr::Binary(BinaryOp::And, a, b) => match (&**a, &**b) {
            (Expr::Const(c), e) | (e, Expr::Const(c)) => {
                bits_of(e).map(|(field, mask)| (field, mask & c))
            }
            _ => None,
        },
        Expr::Binary(BinaryOp::Shr, e, n) => match **n {
            Expr::Const(n) => {
                let (field, mask) = bits_of(e)?;
                let width = u16::try_from(n).ok().and_then(|n| field.width.checked_sub(n))?;
                (width > 0).then(|| (Field::bits(field.base, field.offset, width), mask >> n))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The numbers that compare so with `value`.
fn compared(op: CompareOp, value: u128) -> IntervalSet {
    let at_most = IntervalSet::range(0, value);
    match op {
        CompareOp::Eq => IntervalSet::single(value),
        CompareOp::Ne => IntervalSet::single(value).complement(128),
        CompareOp::Le => at_most,
        CompareOp::Gt => at_most.complement(128),
        CompareOp::Lt => at_most.subtract(&IntervalSet::single(value)),
        CompareOp::Ge => IntervalSet::range(value, u128::MAX),
    }
}

impl fmt::Display for Cube {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("everything");
        }
        for (i, (field, set)) in self.0.iter().enumerate() {
            let notation = Notation::of(*field);
            f.write_str(if i == 0 { "" } else { " && " })?;
            match set.as_single() {
                Some(value) => write!(f, "{field} == {}", Number(notation, value))?,
                None => write!(f, "{field} in {}", Numbers(notation, set))?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for HeaderSpace {
    /// `ip.dst in {10.0.0.0/8} && ip.proto == 6 || ip.ttl in {0..1}`; `everything`; `nothing`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cubes.is_empty() {
            return f.write_str("nothing");
        }
        for (i, cube) in self.cubes.iter().enumerate() {
            write!(f, "{}{cube}", if i == 0 { "" } else { " || " })?;
        }
        Ok(())
    }
}
