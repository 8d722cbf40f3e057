//! Patterns: what a new flow's addresses and ports are rewritten to.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::rc::Rc;

use click::config::Argument;
use ir::{Cond, Diagnostic, Expr, IntervalSet, Op, StateValue};

use super::model::{Builder, N_DST, N_DST_PORT, N_SRC, N_SRC_PORT, NEXT};
use crate::argument::{FromArgument, Ip, IpMask, parse_integer};
use crate::configure::{Arguments, WorkerShare};
use crate::device::OwnedPorts;
use crate::element_state::ElementState;
use crate::flow_table::{FlowTable, Hashed, Key, Numbers, Pool, TRIES};

/// How a number of a range is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The packet's own if it is free, else as at random.
    Own,
    /// At random, and on from there to the first that is free.
    Random,
    /// On from the one that was allocated last.
    Turn,
}

/// What is chosen from a range for each flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vary {
    Nothing,
    /// The source port.
    Port {
        low: u16,
        high: u16,
    },
    /// The source address.
    Address {
        low: u32,
        high: u32,
    },
}

/// One pattern; what is `None` stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    src: Option<u32>,
    src_port: Option<u16>,
    dst: Option<u32>,
    dst_port: Option<u16>,
    /// What of a packet's key stays, and what replaces the rest; see [`Pattern::fix`].
    kept: Key,
    given: Key,
    vary: Vary,
    order: Order,
    /// Whether ports were mentioned.
    ports: bool,
    /// From whose share of the range it allocates.
    part: WorkerShare,
}

/// The patterns of an element, with where each one's turn is.
#[derive(Debug)]
pub(crate) struct Patterns {
    /// The element that they belong to.
    pub owner: String,
    pub patterns: Vec<Pattern>,
    /// For each the distance from the range's start to the number that is tried first.
    pub next: Vec<Cell<u64>>,
}

/// A flow that is to be made.
pub(crate) struct New<'a> {
    /// Of the packet.
    pub key: &'a Key,
    /// The map in which answers are looked up.
    pub reply_map: u16,
    /// Whether the source port is an ICMP identifier.
    pub echo: bool,
    /// The packet's group.
    pub group: u16,
}

impl New<'_> {
    /// The key of its answers if nothing is rewritten.
    pub(crate) fn unchanged(&self) -> Key {
        Key { map: self.reply_map, ..self.key.reverse() }
    }
}

/// One of an element's patterns.
#[derive(Clone, Debug)]
pub(crate) struct PatternRef {
    pub group: Rc<Patterns>,
    pub index: usize,
}

/// Name of the declared state that [`Patterns::next`] is.
pub(crate) const NEXT_STATE: &str = "next";

/// Ranges that are smaller are searched number by number.
const WATCHED: u32 = TRIES;

impl PatternRef {
    /// What new flows say of source address and port, and destination address and port, where it is not as in the packet.
    pub(super) fn given(&self, echo: bool) -> [Option<IntervalSet>; 4] {
        let pattern = self.pattern();
        let single = |number: u32| (number, number);
        let port = |number: Option<u16>| number.map(|n| single(n.into()));
        let (mut src, mut src_port) = (pattern.src.map(single), port(pattern.src_port));
        // Flows of other workers' shares may come here, when they are moved.
        match pattern.vary {
            Vary::Nothing => {}
            Vary::Address { low, high } => src = Some((low, high)),
            Vary::Port { low, high } => src_port = Some((low.into(), high.into())),
        }
        let dst_port = port(pattern.dst_port).filter(|_| !echo);
        [src, src_port, pattern.dst.map(single), dst_port]
            .map(|range| range.map(|(low, high)| IntervalSet::range(low.into(), high.into())))
    }

    /// What the pattern allocates, each worker from its share.
    pub(crate) fn owned(&self) -> Option<OwnedPorts> {
        self.pattern().owned()
    }
}

impl Patterns {
    pub(crate) fn new(owner: &str, patterns: Vec<Pattern>) -> Self {
        let next = patterns.iter().map(|_| Cell::new(0)).collect();
        Self { owner: owner.to_string(), patterns, next }
    }

    pub(crate) fn export(&self, to: &mut ElementState) {
        if !self.patterns.is_empty() {
            let next = self.next.iter().map(|n| n.get().into()).collect();
            to.set(&self.owner, NEXT_STATE, StateValue::Cells(next));
        }
    }

    pub(crate) fn import(&self, from: &ElementState) {
        for (next, &value) in self.next.iter().zip(from.declared.cells(&self.owner, NEXT_STATE)) {
            next.set(u64::try_from(value).unwrap_or(0));
        }
    }
}

/// An address by itself or by its name.
fn address(text: &str, arguments: &mut Arguments<'_, '_>) -> Option<u32> {
    let cx = arguments.cx();
    Ip::from_argument(&Argument::bare(text), cx.names(), cx.name()).ok().map(|a| a.0.to_bits())
}

/// The range and the order of choosing from it that a word ends with: `#`, `?` or neither.
pub(crate) fn order(word: &str) -> (&str, Order) {
    if let Some(range) = word.strip_suffix('#') {
        (range, Order::Turn)
    } else if let Some(range) = word.strip_suffix('?') {
        (range, Order::Random)
    } else {
        (word, Order::Own)
    }
}

/// `L-H`, or a prefix without its first and last address.
fn address_range(word: &str, arguments: &mut Arguments<'_, '_>) -> Option<(u32, u32)> {
    if let Some((low, high)) = word.split_once('-') {
        let range = (address(low, arguments)?, address(high, arguments)?);
        return (range.0 <= range.1).then_some(range);
    }
    let cx = arguments.cx();
    let network = IpMask::from_argument(&Argument::bare(word), cx.names(), cx.name()).ok()?;
    let network = network.prefix()?;
    let [first, last] = [network.network(), network.broadcast()].map(Ipv4Addr::to_bits);
    match network.prefix_len() {
        0 => None,
        31 | 32 => Some((first, last)),
        _ => Some((first + 1, last - 1)),
    }
}

pub(crate) fn port_range(word: &str) -> Option<(u16, u16)> {
    let (low, high) = word.split_once('-')?;
    let port = |text| u16::try_from(parse_integer(text)?).ok();
    Some((port(low)?, port(high)?)).filter(|(low, high)| low <= high)
}

fn port(word: &str) -> Option<u16> {
    u16::try_from(parse_integer(word)?).ok().filter(|&p| p != 0)
}

impl Pattern {
    /// Parses `SADDR SPORT DADDR DPORT`, `SADDR DADDR` or `SADDR DADDR SPORT`, reporting errors.
    pub(crate) fn parse(words: &[Argument], arguments: &mut Arguments<'_, '_>) -> Option<Self> {
        let (src, src_port, dst, dst_port) = match words {
            [src, dst] => (src, None, dst, None),
            [src, dst, src_port] => (src, Some(src_port), dst, None),
            [src, src_port, dst, dst_port] => (src, Some(src_port), dst, Some(dst_port)),
            _ => return None,
        };
        let mut pattern = Self {
            src: None,
            src_port: None,
            dst: None,
            dst_port: None,
            kept: Key::default(),
            given: Key::default(),
            vary: Vary::Nothing,
            order: Order::Own,
            ports: words.len() > 2,
            part: arguments.cx().part(),
        };
        let mut well = true;
        let mut wrong = |word: &Argument, expected: &str, arguments: &mut Arguments<'_, '_>| {
            arguments.error(word, format!("'{}' is not {expected}", word.text));
            well = false;
        };
        if src.text != "-" {
            let (range, order) = order(&src.text);
            if let Some(fixed) = address(&src.text, arguments) {
                pattern.src = Some(fixed);
            } else if let Some((low, high)) = address_range(range, arguments) {
                pattern.src = Some(low);
                pattern.order = order;
                if low < high {
                    pattern.vary = Vary::Address { low, high };
                }
            } else {
                wrong(src, "a source address, a range of them (L-H) or -", arguments);
            }
        }
        if let Some(word) = src_port.filter(|w| w.text != "-") {
            let (range, order) = order(&word.text);
            if let Some(fixed) = port(&word.text) {
                pattern.src_port = Some(fixed);
            } else if let Some((low, high)) = port_range(range) {
                if pattern.vary != Vary::Nothing {
                    arguments.error(word, "only one of source address and port can have a range");
                    return None;
                }
                pattern.order = order;
                match low < high {
                    true => pattern.vary = Vary::Port { low, high },
                    false => pattern.src_port = Some(low).filter(|&p| p != 0),
                }
            } else {
                wrong(word, "a source port, a range of them (L-H) or -", arguments);
            }
        }
        if dst.text != "-" {
            pattern.dst = address(&dst.text, arguments);
            if pattern.dst.is_none() {
                wrong(dst, "a destination address or -", arguments);
            }
        }
        if let Some(word) = dst_port.filter(|w| w.text != "-") {
            pattern.dst_port = port(&word.text);
            if pattern.dst_port.is_none() {
                wrong(word, "a destination port or -", arguments);
            }
        }
        if well && pattern.vary != Vary::Nothing && pattern.range(0).is_none() {
            let range =
                if matches!(pattern.vary, Vary::Port { .. }) { src_port } else { Some(src) };
            let message = match pattern.part {
                WorkerShare { count, groups: 0, .. } => {
                    format!("has too few numbers for {count} workers, which share them out")
                }
                WorkerShare { count, groups, .. } => format!(
                    "has too few numbers for {count} workers and {groups} groups of traffic classes, \
                     which share them out"
                ),
            };
            arguments.error(range.unwrap_or(src), message);
            return None;
        }
        if well && pattern.part.count > 1 && pattern.may_collide() {
            let help = "a range of source ports is divided among the workers";
            let warning = Diagnostic::warning(
                "workers-collide",
                "flows on different workers can get the same translated addresses and ports",
            );
            let label = "every worker allocates this address independently of the others";
            arguments.report(warning.label(src.span, label).help(help));
        }
        pattern.fix();
        well.then_some(pattern)
    }

    /// Makes masks of what is given, so that it is written at once.
    fn fix(&mut self) {
        let mut kept = Key::new(0, u32::MAX, u16::MAX, u32::MAX, u16::MAX);
        let mut given = Key::default();
        if let Some(src) = self.src {
            kept.set_src(0);
            given.set_src(src);
        }
        if let Some(port) = self.src_port {
            kept.set_src_port(0);
            given.set_src_port(port);
        }
        if let Some(dst) = self.dst {
            kept.set_dst(0);
            given.set_dst(dst);
        }
        if let Some(port) = self.dst_port {
            kept.set_dst_port(0);
            given.set_dst_port(port);
        }
        (self.kept, self.given) = (kept, given);
    }

    /// What it allocates, each worker from its share.
    fn owned(&self) -> Option<OwnedPorts> {
        Some(match (self.src, self.vary) {
            (Some(src), Vary::Port { low, high }) => {
                OwnedPorts { addresses: (src, src), ports: (low, high) }
            }
            (_, Vary::Address { low, high }) => {
                OwnedPorts { addresses: (low, high), ports: (0, u16::MAX) }
            }
            _ => return None,
        })
    }

    /// Whether different flows can become the same though nothing is allocated twice.
    fn may_collide(&self) -> bool {
        self.src.is_some() && self.vary == Vary::Nothing
    }

    /// Whether it changes nothing but the source address.
    pub(crate) fn changes_only_source(&self) -> bool {
        self.dst.is_none() && self.changes_only_addresses()
    }

    /// Whether it leaves ports alone.
    pub(crate) fn changes_only_addresses(&self) -> bool {
        self.src_port.is_none()
            && self.dst_port.is_none()
            && !matches!(self.vary, Vary::Port { .. })
    }

    /// The share of the range that packets of a group are given; `None` if there is no range, or
    /// too little for all.
    #[inline]
    fn range(&self, group: u16) -> Option<(u32, u32)> {
        match self.vary {
            Vary::Nothing => None,
            Vary::Port { low, high } => self.part.share(group, low.into(), high.into()),
            Vary::Address { low, high } => self.part.share(group, low, high),
        }
    }

    /// Whether it gives each flow a port.
    fn changes_port(&self) -> bool {
        matches!(self.vary, Vary::Port { .. })
    }

    /// What packets with this key become with that number from the range, if there is one.
    #[inline]
    fn with(&self, key: &Key, number: Option<u32>, echo: bool) -> Key {
        let mut to = Key {
            addresses: key.addresses & self.kept.addresses | self.given.addresses,
            ports: key.ports & self.kept.ports | self.given.ports,
            map: key.map,
        };
        match (&self.vary, number) {
            (Vary::Port { .. }, Some(number)) => to.set_src_port(number as u16),
            (Vary::Address { .. }, Some(number)) => to.set_src(number),
            _ => {}
        }
        if echo {
            to.set_dst_port(echo_port(to.src_port()));
        }
        to
    }

    /// The pool that it gives numbers from, if it is large; `member` is the rewriter where
    /// answers arrive, and `echo` whether its keys are those of ICMP echo.
    #[inline]
    pub(crate) fn pool(&self, member: u8, echo: bool) -> Option<Pool> {
        let all = Pool {
            member,
            numbers: if echo { Numbers::Identifiers } else { Numbers::Ports },
            addresses: self.src.map_or((0, u32::MAX), |src| (src, src)),
            ports: (0, u16::MAX),
        };
        match self.vary {
            Vary::Port { low, high } if u32::from(high - low) >= WATCHED => {
                Some(Pool { ports: (low, high), ..all })
            }
            Vary::Address { low, high } if high - low >= WATCHED => {
                Some(Pool { numbers: Numbers::Addresses, addresses: (low, high), ..all })
            }
            _ => None,
        }
    }

    /// As Click prints it.
    pub(crate) fn unparse(&self) -> String {
        let ip = |a: u32| Ipv4Addr::from_bits(a).to_string();
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
        let src = match self.vary {
            Vary::Address { low, high } => format!("{}-{}", ip(low), ip(high)),
            _ => or_dash(self.src.map(ip)),
        };
        let dst = or_dash(self.dst.map(ip));
        if !self.ports {
            return format!("{src} {dst}");
        }
        let src_port = match self.vary {
            Vary::Port { low, high } => format!("{low}-{high}"),
            _ => or_dash(self.src_port.map(|p| p.to_string())),
        };
        let dst_port = or_dash(self.dst_port.map(|p| p.to_string()));
        format!("{src} {src_port} {dst} {dst_port}")
    }
}

/// What packets of an ICMP echo request's flow have as destination port: that distinguishes requests
/// from replies.
pub(crate) fn echo_port(identifier: u16) -> u16 {
    identifier.wrapping_add(1)
}

impl PatternRef {
    pub(crate) fn pattern(&self) -> &Pattern {
        &self.group.patterns[self.index]
    }

    /// The key of answers to a new flow, which no other flow has any more; `None` if no free number is left.
    #[inline]
    pub(crate) fn choose(
        &self,
        new: &New<'_>,
        table: &mut FlowTable,
        now: u64,
        mut random: impl FnMut(u64, u64) -> u64,
    ) -> Option<Hashed> {
        let pattern = self.pattern();
        let own = self.own_reply(new).map(|own| table.hashed(own));
        let Some((low, high)) = pattern.range(new.group) else {
            own.iter().for_each(|own| table.vacate(own));
            return own;
        };
        if own.is_some_and(|own| table.is_free(&own, now)) {
            return own;
        }
        let is_port = pattern.changes_port();
        let top = u64::from(high - low);
        let next = &self.group.next[self.index];
        let first = match pattern.order {
            Order::Turn if next.get() > top => 0,
            Order::Turn => next.get(),
            Order::Own | Order::Random => random(0, top),
        };
        let first = low + first as u32;
        let (number, reply) = if new.echo && is_port && pattern.order == Order::Turn {
            let reply = table.hashed(self.reply(new, Some(first)));
            table.vacate(&reply);
            (first, reply)
        } else {
            let pool = pattern.pool((new.reply_map >> 8) as u8, new.echo);
            let reply = |number| self.reply(new, Some(number));
            table.allocate((low, high), first, pool, reply, now)?
        };
        if pattern.order == Order::Turn {
            next.set(u64::from(number - low) + 1);
        }
        Some(reply)
    }

    /// The key of answers to a new flow that is tried before any number is drawn, if one is.
    #[inline(always)]
    pub(crate) fn own_reply(&self, new: &New<'_>) -> Option<Key> {
        let pattern = self.pattern();
        let keeps = match pattern.range(new.group) {
            None => true,
            Some((low, high)) => {
                let own = u32::from(new.key.src_port());
                pattern.order == Order::Own && pattern.changes_port() && (low..=high).contains(&own)
            }
        };
        keeps.then(|| self.reply(new, None))
    }

    /// The key of answers that a new flow probably has, after so many others, unless it has
    /// [`PatternRef::own_reply`]; `random` draws as [`PatternRef::choose`] will.
    pub(crate) fn other_reply(
        &self,
        new: &New<'_>,
        others: usize,
        random: impl FnOnce(u64, u64) -> u64,
    ) -> Key {
        let pattern = self.pattern();
        let number = pattern.range(new.group).map(|(low, high)| {
            let top = u64::from(high - low);
            match pattern.order {
                Order::Turn => {
                    let turn = self.group.next[self.index].get().wrapping_add(others as u64);
                    low + (turn % (top + 1)) as u32
                }
                Order::Own | Order::Random => low + random(0, top) as u32,
            }
        });
        self.reply(new, number)
    }

    /// The key of answers to a new flow with that number from the range, if there is one.
    #[inline]
    fn reply(&self, new: &New<'_>, number: Option<u32>) -> Key {
        Key { map: new.reply_map, ..self.pattern().with(new.key, number, new.echo).reverse() }
    }

    /// The same in the model: binds the new flow's registers from the key's. `exhausted` runs
    /// when no number is free; if it does not end the packet's path, it must set `found` to 0.
    pub(crate) fn model(
        &self,
        b: &mut Builder,
        exhausted: Vec<Op>,
        found: Option<ir::model::Reg>,
    ) -> Vec<Op> {
        let pattern = self.pattern();
        let [src, src_port, dst, dst_port] = b.directed();
        let fixed = |value: Option<u128>, own: Expr| value.map_or(own, Expr::Const);
        let mut ops = vec![
            Op::Let(N_SRC, fixed(pattern.src.map(u128::from), src)),
            Op::Let(N_SRC_PORT, fixed(pattern.src_port.map(u128::from), src_port.clone())),
            Op::Let(N_DST, fixed(pattern.dst.map(u128::from), dst)),
            Op::Let(N_DST_PORT, fixed(pattern.dst_port.map(u128::from), dst_port)),
        ];
        if let Some((low, high)) = pattern.range(0) {
            let is_port = matches!(pattern.vary, Vary::Port { .. });
            let bind = if is_port { N_SRC_PORT } else { N_SRC };
            let flows = b.flows();
            let top = high - low;
            let mut choose = Vec::new();
            let start = match pattern.order {
                Order::Turn => {
                    let next = b.next(&self.group);
                    choose.push(Op::Read(NEXT, next, self.index.into()));
                    let next = Expr::from(NEXT);
                    Expr::choose(next.clone().le(top), next, 0u8) + low
                }
                Order::Own | Order::Random => Expr::Random(0, top.into()) + low,
            };
            if b.is_echo() && is_port && pattern.order == Order::Turn {
                choose.push(Op::Let(bind, start));
            } else {
                choose.push(Op::Allocate {
                    bind,
                    range: (low.into(), high.into()),
                    start,
                    flows,
                    key: b.reply_key(),
                    exhausted,
                });
            }
            if pattern.order == Order::Turn {
                let next = b.next(&self.group);
                let after = Expr::from(bind) - low + 1u8;
                let advance = Op::Write(next, self.index.into(), after);
                choose.push(match found {
                    Some(found) => Op::when(Expr::from(found).ne(0u8), vec![advance]),
                    None => advance,
                });
            }
            if pattern.order == Order::Own && is_port {
                let own = IntervalSet::range(low.into(), high.into());
                let free = Cond::FlowExists(flows, b.reply_key()).not();
                ops.push(Op::Let(bind, src_port.clone()));
                ops.push(Op::If(src_port.is_in(own).and(free), Vec::new(), choose));
            } else {
                ops.append(&mut choose);
            }
        }
        if b.is_echo() {
            ops.push(Op::Let(N_DST_PORT, (Expr::from(N_SRC_PORT) + 1u8) & 0xffffu16));
        }
        ops
    }
}
