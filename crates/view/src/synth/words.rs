//! Conditions and numbers in words.

use std::net::{Ipv4Addr, Ipv6Addr};

use compiler::explain::provenance::{Condition, ConditionSubject, Space, is_sum};
use ir::field::{anno, arp, ip, ip6, tcp};
use ir::layout::Layout;
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, LookupId, OnesSum, Term, TermId};
use ir::{Base, Expr, Field, Graph, IntervalSet, Model, Op, Program, Sources, Span};
use net::Header;

use super::flows::{self, Table};
use super::names::{Named, named};
use crate::explain::{Placed, say};

/// Intervals of a set, or types of packets in an interval, that are shown.
const SHOWN: usize = 3;
/// Terms within terms that are shown.
const DEPTH: usize = 4;
/// Rules that are shown by their texts.
const RULES: usize = 2;
/// Characters of a rule that are shown.
const RULE: usize = 50;

/// What surrounds the words.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) models: &'a [Model],
    pub(crate) sources: &'a Sources,
    pub(crate) program: &'a Program,
    pub(crate) layout: &'a Layout,
    /// The same of packets as they leave.
    pub(crate) leaving: &'a Layout,
}

/// What becomes of a number that a flow says.
enum Use {
    /// Packets leave by the output that it is.
    Output,
    /// It is written to a field.
    Field(Field),
}

impl Words<'_> {
    /// A condition: `ip.ttl 2..255`.
    pub(crate) fn condition(&self, asked: &ConditionSubject, condition: &Condition) -> String {
        match asked {
            ConditionSubject::Number(term) => self.number_is(*term, &condition.set),
            ConditionSubject::Compare(op, a, b) => {
                self.comparison(*op, *a, *b, condition.set.contains(1))
            }
            ConditionSubject::Flow(lookup) => self.flow(*lookup, condition.set.contains(1)),
            ConditionSubject::Rules(element) => {
                self.rules(&self.spans(*element, &condition.set), condition.unmatched)
            }
        }
    }

    /// An atom that holds, or does not.
    pub(crate) fn atom(&self, atom: &Atom, holds: bool) -> String {
        match atom {
            Atom::Test(term, set) if holds => self.number_is(*term, set),
            Atom::Test(term, set) => {
                self.number_is(*term, &set.complement(self.program.width(*term)))
            }
            Atom::Compare(op, a, b) => self.comparison(*op, *a, *b, holds),
        }
    }

    fn comparison(&self, op: CompareOp, a: TermId, b: TermId, holds: bool) -> String {
        let said = match (op, holds) {
            (CompareOp::Eq, true) | (CompareOp::Ne, false) => "=",
            (CompareOp::Ne, true) | (CompareOp::Eq, false) => "≠",
            (CompareOp::Lt, true) | (CompareOp::Ge, false) => "<",
            (CompareOp::Le, true) | (CompareOp::Gt, false) => "≤",
            (CompareOp::Gt, true) | (CompareOp::Le, false) => ">",
            (CompareOp::Ge, true) | (CompareOp::Lt, false) => "≥",
        };
        if let (Some((entry, age)), Term::Now) = (self.outlives(a), self.program.term(b)) {
            return match said {
                ">" | "≥" => format!("{entry} confirmed within {age} s"),
                _ => format!("{entry} not confirmed within {age} s"),
            };
        }
        format!("{} {said} {}", self.term(a), self.term(b))
    }

    /// If a number is when something has passed since an entry was confirmed: which entry, and how many seconds.
    fn outlives(&self, term: TermId) -> Option<(String, f64)> {
        let Term::Binary(BinaryOp::Add, since, age) = self.program.term(term) else { return None };
        match (self.program.term(*since), self.program.term(*age)) {
            (Term::Bound(lookup, _), Term::Const(age)) if self.is_time(*since) => {
                let entry = format!("{}'s {}", self.owner(*lookup), self.table(*lookup).entry);
                Some((entry, *age as f64 / 1e9))
            }
            _ => None,
        }
    }

    /// Whether a flow was known.
    pub(crate) fn flow(&self, lookup: LookupId, found: bool) -> String {
        let (owner, entry) = (self.owner(lookup), self.table(lookup).entry);
        let article = if found { "a" } else { "no" };
        format!("{article} {entry} known to {owner}")
    }

    /// The kind of table that a lookup looks into.
    fn table(&self, lookup: LookupId) -> &'static Table {
        let state = self.program.flows_of(lookup);
        state.map_or(&Table::UNKNOWN, |state| Table::of(state.name, &state.kind))
    }

    /// What a value of a flow is called.
    fn value_of(&self, lookup: LookupId, index: u8) -> String {
        let known = self.table(lookup).value(index);
        known.map_or_else(|| format!("value {}", index + 1), str::to_string)
    }

    /// Whether a number is a time, in nanoseconds.
    fn is_time(&self, term: TermId) -> bool {
        match self.program.term(term) {
            Term::Now => true,
            Term::Bound(lookup, index) => self.table(*lookup).value(*index) == Some(flows::LEARNED),
            _ => false,
        }
    }

    fn owner(&self, lookup: LookupId) -> &str {
        self.program.flows_of(lookup).map_or("?", |flows| flows.owner.as_str())
    }

    /// What the element that looks a flow up does with this number of the flow.
    fn use_of(&self, lookup: LookupId, index: u8) -> Option<Use> {
        let element = self.program.lookups.get(usize::from(lookup.0)).map(|l| l.element);
        let model = element.and_then(|e| self.models.get(e))?;
        let (mut bound, mut used) = (Vec::new(), Vec::new());
        let mut waiting: Vec<&Op> = model.inputs.iter().flatten().collect();
        while let Some(op) = waiting.pop() {
            match op {
                Op::FlowLookup { value, common, .. } => {
                    bound.extend(value.iter().chain(common).nth(index.into()));
                }
                Op::Emit(Expr::Reg(reg)) => used.push((reg, Use::Output)),
                Op::Set(field, Expr::Reg(reg)) => used.push((reg, Use::Field(*field))),
                _ => {}
            }
            waiting.extend(op.blocks().flatten());
        }
        used.into_iter().find(|(reg, _)| bound.contains(reg)).map(|(_, is)| is)
    }

    /// A number that is in a set.
    pub(crate) fn number_is(&self, term: TermId, set: &IntervalSet) -> String {
        if let Term::Sum16 { .. } | Term::OnesSum(OnesSum { complement: false, .. }) =
            self.program.term(term)
            && set.contains(0xffff) == (set.as_single() == Some(0xffff))
        {
            let said = match (self.program.verifies(term), set.contains(0xffff)) {
                (true, true) => "checksum right",
                (true, false) => "checksum wrong",
                (false, true) => "new checksum 0",
                (false, false) => "new checksum not 0",
            };
            return said.to_string();
        }
        if let Term::Position(header) = self.program.term(term) {
            let name = header_name(*header);
            return match set.as_single() {
                Some(0x8000_0000) => format!("{name} header not marked"),
                Some(at) => format!("{name} header at byte {}", at as u32 as i32),
                None if !set.contains(0x8000_0000) => format!("{name} header marked"),
                None => format!("{name} header elsewhere"),
            };
        }
        let field = self.field(term);
        if let Term::Bound(lookup, index) = self.program.term(term) {
            let (owner, entry) = (self.owner(*lookup), self.table(*lookup).entry);
            let value = self.value_of(*lookup, *index);
            let said = |field| said_set(field, set, self.program.width(term));
            return match (self.use_of(*lookup, *index), set.as_single()) {
                (Some(Use::Output), _) => {
                    format!("{owner}'s {entry} leads to output {}", said(None))
                }
                (Some(Use::Field(field)), _) => {
                    format!("{owner}'s {entry} has new {field} {}", said(Some(field.into())))
                }
                (None, Some(reply @ 0..=1)) if value == flows::DIRECTION => {
                    let direction = if reply == 0 { "forward" } else { "reply" };
                    format!("in {direction} direction of {owner}'s {entry}")
                }
                (None, _) => format!("{value} of {owner}'s {entry} is {}", said(None)),
            };
        }
        format!("{} {}", self.term(term), said_set(field, set, self.program.width(term)))
    }

    /// The field that a term is.
    fn field(&self, term: TermId) -> Option<Placed> {
        match self.program.term(term) {
            Term::Input(field) => self.named(*field).field,
            _ => None,
        }
    }

    fn named(&self, field: Field) -> Named {
        match field.base {
            Base::Data => named(self.layout, field.offset.into(), field.width.into()),
            _ => {
                let name = match field {
                    ir::field::meta::LEN => "length".to_string(),
                    ir::field::meta::TYPE => "packet type".to_string(),
                    ir::field::meta::TIMESTAMP => "timestamp".to_string(),
                    field => field.to_string(),
                };
                Named { name, field: Some(field.into()) }
            }
        }
    }

    /// What is written to a field that is not in the packet.
    pub(crate) fn value(&self, field: Field, term: TermId) -> String {
        match self.program.term(term) {
            Term::Const(value) => say(field, *value),
            _ => self.term(term),
        }
    }

    /// A place in the packet, counted from its data's start as it came in; what was pushed lies before that.
    pub(crate) fn offset(&self, term: TermId) -> String {
        match self.program.term(term) {
            Term::Const(at) => (*at as i128).to_string(),
            _ => self.term(term),
        }
    }

    /// A number.
    pub(crate) fn term(&self, term: TermId) -> String {
        let mut text = String::new();
        self.write(term, DEPTH, &mut text);
        text
    }

    fn write(&self, term: TermId, depth: usize, text: &mut String) {
        if depth == 0 || text.len() > 120 {
            text.push('…');
            return;
        }
        match self.program.term(term) {
            Term::Const(value) => text.push_str(&value.to_string()),
            Term::Input(field) => text.push_str(&self.named(*field).name),
            Term::Position(header) => {
                text.push_str(&format!("place of the {} header", header_name(*header)));
            }
            Term::Bound(lookup, index) => {
                let (owner, entry) = (self.owner(*lookup), self.table(*lookup).entry);
                let value = self.value_of(*lookup, *index);
                text.push_str(&format!("{value} of {owner}'s {entry}"));
            }
            Term::Cell(cells, _) => {
                let state = self.program.state.get(usize::from(cells.0));
                let (name, owner) = state.map_or(("?", "?"), |s| (s.name, s.owner.as_str()));
                text.push_str(&format!("{name} of {owner}"));
            }
            Term::Sum16 { .. } | Term::OnesSum(_) | Term::NonZero(_) => text.push_str("a checksum"),
            Term::Binary(op, a, b) => {
                self.write(*a, depth - 1, text);
                text.push_str(&format!(" {} ", symbol(*op)));
                match self.program.term(*b) {
                    Term::Const(nanoseconds) if self.is_time(*a) => {
                        text.push_str(&format!("{} s", *nanoseconds as f64 / 1e9));
                    }
                    _ => self.write(*b, depth - 1, text),
                }
            }
            Term::Slice { of, low, width } => {
                self.write(*of, depth - 1, text);
                text.push_str(&format!("[bits {low}..{}]", u32::from(*low) + u32::from(*width)));
            }
            Term::Concat { high, low, .. } => self.list(&[*high, *low], depth, text),
            Term::Choose(atom, a, b) => {
                self.write(*a, depth - 1, text);
                let atom = if depth > 2 { self.atom(atom, true) } else { "…".to_string() };
                text.push_str(&format!(" if {atom}, else "));
                self.write(*b, depth - 1, text);
            }
            Term::Map(of, _) => {
                text.push_str("what the table says of ");
                self.write(*of, depth - 1, text);
            }
            Term::Hash(_, all) => {
                text.push_str("a hash of ");
                self.list(all, depth, text);
            }
            Term::Now => text.push_str("now"),
        }
    }

    fn list(&self, all: &[TermId], depth: usize, text: &mut String) {
        text.push('(');
        for (i, term) in all.iter().enumerate() {
            text.push_str(if i == 0 { "" } else { ", " });
            self.write(*term, depth - 1, text);
        }
        text.push(')');
    }

    /// The rules of these numbers of an element, where they are known.
    pub(crate) fn spans(
        &self,
        element: ir::NodeId,
        numbers: &IntervalSet,
    ) -> Vec<(u32, Option<Span>)> {
        use ir::program::Step;
        let mut found: Vec<(u32, Option<Span>)> = Vec::new();
        for step in &self.program.steps {
            if let Step::Classify { rules, element: asks, .. } = step
                && *asks == element
            {
                found.extend(
                    rules
                        .iter()
                        .filter(|r| numbers.contains(r.number.into()))
                        .map(|r| (r.number, r.span)),
                );
            }
        }
        found.sort_unstable_by_key(|f| f.0);
        found.dedup_by_key(|f| f.0);
        found
    }

    /// Rules of which one matches first.
    pub(crate) fn rules(&self, rules: &[(u32, Option<Span>)], unmatched: bool) -> String {
        let none = if unmatched { "no rule" } else { "" };
        let said = match rules {
            [] => return none.to_string(),
            few if few.len() <= RULES => {
                let texts = few.iter().map(|(number, span)| match span {
                    Some(span) => format!("‘{}’", cut(self.sources.slice(*span), RULE)),
                    None => format!("rule {}", number + 1),
                });
                texts.collect::<Vec<_>>().join(" or ")
            }
            many => {
                let spans: Vec<Span> = many.iter().filter_map(|r| r.1).collect();
                let place = match (spans.first(), spans.last()) {
                    (Some(first), Some(last)) => {
                        let (from, to) =
                            (self.sources.landmark(*first), self.sources.landmark(*last));
                        let line = to.rsplit_once(':').map_or("", |l| l.1);
                        if from == to {
                            format!(" ({from})")
                        } else {
                            format!(" ({from}–{line})")
                        }
                    }
                    _ => String::new(),
                };
                format!("one of {} rules{place}", crate::table::grouped(many.len() as u64))
            }
        };
        if unmatched { format!("{said}, or {none}") } else { said }
    }

    /// What is written to a run of bits by taking `width` bits from bit `low` on of a number; none
    /// if that is what was there.
    pub(crate) fn written(
        &self,
        place: (Space, i32, u32),
        value: TermId,
        low: u32,
    ) -> Option<(String, String)> {
        let (space, start, bits) = place;
        let name = match space {
            Space::Annotation => {
                let field = u16::try_from(start)
                    .ok()
                    .filter(|_| (1..=128).contains(&bits))
                    .map(|s| Field::bits(Base::Annotation, s, bits as u16));
                field.map_or_else(
                    || Named { name: format!("anno[{start}+{bits}]"), field: None },
                    |f| Named { name: f.to_string(), field: Some(f.into()) },
                )
            }
            _ => named(self.leaving, start, bits),
        };
        let what = match self.part(value, low, bits) {
            Part::Const(number) => {
                let number = match name.field {
                    Some(field) => say(field, number),
                    None if bits > 32 => format!("{number:#x}"),
                    None => number.to_string(),
                };
                format!("= {number}")
            }
            Part::Input(field)
                if space == Space::Entry
                    && (i32::from(field.offset), u32::from(field.width)) == (start, bits)
                    && field.base == Base::Data =>
            {
                return None;
            }
            Part::Input(field) => format!("= {}, as it came in", self.named(field).name),
            Part::Whole(term) => self.change(term, start, bits),
            Part::Some(term) if is_sum(self.program, term) => "updated".to_string(),
            Part::Some(term) => format!("= part of {}", self.term(term)),
        };
        Some((name.name, what))
    }

    fn change(&self, term: TermId, start: i32, bits: u32) -> String {
        if is_sum(self.program, term) {
            return "updated".to_string();
        }
        if let Term::Bound(lookup, _) = self.program.term(term) {
            return format!("from {}'s {}", self.owner(*lookup), self.table(*lookup).entry);
        }
        if let Term::Binary(op, a, b) = self.program.term(term)
            && let Term::Input(field) = self.program.term(*a)
            && field.base == Base::Data
            && (i32::from(field.offset), u32::from(field.width)) == (start, bits)
            && let Term::Const(by) = self.program.term(*b)
            && let BinaryOp::Add | BinaryOp::Sub | BinaryOp::Xor = op
        {
            return format!("{}= {by}", symbol(*op));
        }
        format!("= {}", self.term(term))
    }

    /// The bits of a number from bit `low` on.
    fn part(&self, mut term: TermId, mut low: u32, bits: u32) -> Part {
        loop {
            match self.program.term(term) {
                Term::Const(value) => {
                    let mask = u128::MAX >> (128 - bits.clamp(1, 128));
                    return Part::Const(value.checked_shr(low).unwrap_or(0) & mask);
                }
                Term::Concat { high, low: tail, width } => {
                    let cut = u32::from(*width);
                    if low >= cut {
                        (term, low) = (*high, low - cut);
                    } else if low + bits <= cut {
                        term = *tail;
                    } else {
                        return Part::Some(term);
                    }
                }
                Term::Input(field) if u32::from(field.width) >= low + bits => {
                    let first = u32::from(field.offset) + u32::from(field.width) - low - bits;
                    return Part::Input(Field::bits(field.base, first as u16, bits as u16));
                }
                _ if low == 0 => return Part::Whole(term),
                _ => return Part::Some(term),
            }
        }
    }
}

/// Some bits of a number.
enum Part {
    Const(u128),
    Input(Field),
    /// All of a term.
    Whole(TermId),
    Some(TermId),
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Rem => "mod",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        BinaryOp::Xor => "^",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::Min => "or less,",
        BinaryOp::Max => "or more,",
    }
}

pub(crate) fn header_name(header: Header) -> &'static str {
    match header {
        Header::Mac => "MAC",
        Header::Network => "network",
        Header::Transport => "transport",
    }
}

/// A text on one line, cut to so many characters.
pub(crate) fn cut(text: &str, length: usize) -> String {
    let flat: Vec<&str> = text.split_whitespace().take(length).collect();
    let flat = flat.join(" ");
    match flat.char_indices().nth(length) {
        Some((at, _)) => format!("{}…", &flat[..at]),
        None => flat,
    }
}

/// A set of a field's numbers: `10.0.0.0/8 or 192.168.0.1`, `not 5`, `2..255`.
pub(crate) fn said_set(field: Option<Placed>, set: &IntervalSet, width: u16) -> String {
    let complement = set.complement(width);
    if set.intervals().len() > 1 && complement.intervals().len() < set.intervals().len() {
        return format!("not {}", said_union(field, &complement, width));
    }
    said_union(field, set, width)
}

fn said_union(field: Option<Placed>, set: &IntervalSet, width: u16) -> String {
    let intervals = set.intervals();
    let mut said: Vec<String> = intervals
        .iter()
        .take(SHOWN)
        .map(|&(low, high)| said_interval(field, low, high, width))
        .collect();
    match intervals.len() {
        0 => return "impossible".to_string(),
        n if n > SHOWN => said.push(format!("{} more ranges", n - SHOWN)),
        _ => {}
    }
    said.join(" or ")
}

fn said_interval(placed: Option<Placed>, low: u128, high: u128, width: u16) -> String {
    let one = |value: u128| match placed {
        Some(field) => say(field, value),
        None => value.to_string(),
    };
    let field = placed.map(|placed| placed.field);
    if low == high {
        return one(low);
    }
    if field == Some(ir::field::meta::TYPE) && high - low < SHOWN as u128 {
        return (low..=high).map(one).collect::<Vec<_>>().join(" or ");
    }
    let bits = match field {
        Some(ip::SRC | ip::DST | arp::SPA | arp::TPA | anno::DST_IP) => 32,
        Some(ip6::SRC | ip6::DST | anno::DST_IP6) => 128,
        _ => 0,
    };
    let free = (low ^ high).count_ones();
    let prefix =
        (low ^ high).checked_add(1).is_none_or(u128::is_power_of_two) && low & (low ^ high) == 0;
    if bits > 0 && prefix {
        let length = bits - free;
        return match bits {
            32 => format!("{}/{length}", Ipv4Addr::from_bits(low as u32)),
            _ => format!("{}/{length}", Ipv6Addr::from_bits(low)),
        };
    }
    let most = u128::MAX >> (128 - u32::from(width.clamp(1, 128)));
    let plain = |value: u128| match field {
        Some(tcp::FLAGS) | None => value.to_string(),
        Some(_) => one(value),
    };
    match (low, high) {
        (0, high) => format!("at most {}", plain(high)),
        (low, high) if high >= most => format!("at least {}", plain(low)),
        (low, high) => format!("{}..{}", plain(low), plain(high)),
    }
}
