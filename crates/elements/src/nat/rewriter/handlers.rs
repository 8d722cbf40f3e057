//! What rewriters tell about their flows.

use std::net::{IpAddr, Ipv4Addr};

use click::config::Argument;

use super::{Action, Common, Kind};
use crate::argument::{FromArgument, Ip, parse_value};
use crate::context::Context;
use crate::element::{Handler, HandlerContext, NamedHandler};
use crate::flow_table::{Flow, Key};
use crate::listing::{self, FlowRecord, Form, Record, SLICE, Slice, Tuple};
use crate::names::Names;

/// Those of all rewriters, then those of TCPRewriter and IPRewriter, then those of IPRewriter.
const HANDLERS: [Handler; 15] = [
    Handler::read("table"),
    Handler::count("mappings"),
    Handler::read("table_size"),
    Handler::count("nmappings"),
    Handler::count("mapping_failures"),
    Handler::read("patterns"),
    Handler::read("size"),
    Handler::both("capacity"),
    Handler::write("clear"),
    Handler::read("lookup"),
    Handler::read("tcp_table"),
    Handler::read("udp_table"),
    Handler::count("tcp_mappings"),
    Handler::count("udp_mappings"),
    Handler::read("tcp_lookup"),
];

/// What a handler that lists is about.
#[derive(Clone, Copy)]
enum Asked {
    /// Flows, of this protocol if there is one.
    Flows(Option<u8>),
    /// How many flows all have that share the capacity.
    Size,
    /// How many flows were made here.
    Made,
    /// The same, with an input's pattern.
    Pattern(usize),
    /// The same with all patterns.
    Patterns,
}

impl Asked {
    fn of(handler: &str, inputs: usize) -> Option<Self> {
        Some(match handler {
            "table" | "mappings" => Self::Flows(None),
            "tcp_table" | "tcp_mappings" => Self::Flows(Some(6)),
            "udp_table" | "udp_mappings" => Self::Flows(Some(17)),
            "size" => Self::Size,
            "table_size" | "nmappings" => Self::Made,
            "patterns" => Self::Patterns,
            _ => {
                let input = handler.strip_prefix("pattern")?.parse().ok();
                Self::Pattern(input.filter(|input| *input < inputs)?)
            }
        })
    }
}

fn ip(address: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(address)
}

impl Common {
    pub(super) fn handlers(&self) -> &'static [Handler] {
        match self.kind {
            Kind::Ip => const { &HANDLERS },
            Kind::Tcp => const { HANDLERS.split_at(10).0 },
            _ => const { HANDLERS.split_at(9).0 },
        }
    }

    /// `pattern0` and so on, one for each input.
    pub(super) fn named_handlers(&self) -> Vec<NamedHandler> {
        (0..self.specs.len())
            .map(|i| NamedHandler { name: format!("pattern{i}"), read: true, write: false })
            .collect()
    }

    /// A slice of what a handler lists; none of one that lists nothing.
    pub(super) fn list(&self, handler: &str, from: u64, now: u64) -> Option<Slice> {
        let asked = Asked::of(handler, self.specs.len())?;
        let mut slice = Slice::default();
        if from == 0 {
            let row = |row: usize| Record::Row(row as u64, self.spec(row));
            match asked {
                Asked::Flows(_) => {}
                Asked::Size | Asked::Made => slice.records.push(Record::Count(0, 0)),
                Asked::Pattern(row_asked) => slice.records.push(row(row_asked)),
                Asked::Patterns => slice.records.extend((0..self.specs.len()).map(row)),
            }
        }
        let Some(joined) = &self.joined else { return Some(slice) };
        let table = &joined.set.borrow().table;
        let member = u16::from(joined.member);
        let mut counts = vec![0; self.specs.len().max(1)];
        (slice.next, slice.touches) = table.visit(from, SLICE, |flow| {
            if flow.expiry() <= now {
                return;
            }
            let made_here = flow.key(0).map >> 8 == member;
            match asked {
                Asked::Flows(protocol) => {
                    let is_first = flow.sides().start;
                    for side in flow.sides() {
                        let map = flow.key(side).map;
                        if map >> 8 == member && protocol.is_none_or(|p| p == map as u8) {
                            let record = self.record(flow, side, side == is_first, now);
                            slice.records.push(Record::Flow(record));
                        }
                    }
                }
                Asked::Size => counts[0] += 1,
                Asked::Made | Asked::Pattern(_) | Asked::Patterns => {
                    if let Some(count) = counts.get_mut(usize::from(flow.input))
                        && made_here
                    {
                        *count += 1;
                    }
                }
            }
        });
        let is_asked = |row: usize| !matches!(asked, Asked::Pattern(only) if only != row);
        let counted = counts.into_iter().enumerate().filter(|(row, n)| *n > 0 && is_asked(*row));
        slice.records.extend(counted.map(|(row, count)| Record::Count(row as u64, count)));
        Some(slice)
    }

    /// A direction of a flow.
    fn record(&self, flow: &Flow, side: usize, is_first: bool, now: u64) -> FlowRecord {
        FlowRecord {
            from: flow.key(side).tuple(),
            to: flow.rewritten(side).tuple(),
            form: match self.kind {
                Kind::Ip | Kind::Tcp | Kind::Udp => Form::Ports,
                Kind::Address => Form::Address,
                Kind::Pair => Form::Pair,
                Kind::Ping => Form::Identifier,
            },
            protocol: flow.protocol,
            is_reply: side == 1,
            is_first,
            outputs: [flow.output(0), flow.output(1)],
            input: flow.input,
            left: flow.expiry().saturating_sub(now),
            touched: flow.touched(),
        }
    }

    /// Removes the flow that has a direction with these packets; whether there was one.
    pub(super) fn remove_flow(&mut self, record: &FlowRecord, now: u64) -> bool {
        let Some(joined) = &self.joined else { return false };
        let mut set = joined.set.borrow_mut();
        let Tuple { src: IpAddr::V4(src), src_port, dst: IpAddr::V4(dst), dst_port } = record.from
        else {
            return false;
        };
        let map = u16::from(joined.member) << 8 | u16::from(self.kind.map(record.protocol));
        let key = Key::new(map, src.to_bits(), src_port, dst.to_bits(), dst_port);
        let found = set.table.lookup(&key, now);
        if let Some((number, _)) = found {
            set.table.remove(number);
        }
        found.is_some()
    }

    /// What an input's specification is.
    fn spec(&self, input: usize) -> String {
        match &self.specs[input].action {
            Action::Drop => "<drop>".to_string(),
            Action::Pass(_) => "<nochange>".to_string(),
            Action::Keep(_) => "<keep>".to_string(),
            Action::Pattern(pattern, _) => pattern.pattern().unparse(),
            Action::Map(_) => "<mapper>".to_string(),
            Action::Inbound(_) => "<inbound>".to_string(),
        }
    }

    /// What a TCP flow is rewritten to, or nothing.
    fn lookup(&self, parameter: &str, now: u64) -> Result<String, String> {
        let words: Vec<Argument> = Argument::bare(parameter).words().collect();
        let [src, src_port, dst, dst_port] = &words[..] else {
            return Err("expected 'SADDR SPORT DADDR DPORT'".to_string());
        };
        let address = |word| Ip::from_argument(word, &Names::default(), "").map(|a| a.0.to_bits());
        let port = |word| u16::from_argument(word, &Names::default(), "");
        let (src, dst) = (address(src)?, address(dst)?);
        let (src_port, dst_port) = (port(src_port)?, port(dst_port)?);
        let map = u16::from(self.member()) << 8 | u16::from(self.kind.map(6));
        let Some(joined) = &self.joined else { return Ok(String::new()) };
        let table = &joined.set.borrow().table;
        let found = table.lookup(&Key::new(map, src, src_port, dst, dst_port), now);
        Ok(found.map_or(String::new(), |(number, side)| {
            let to = table.flow(number).rewritten(side);
            format!("{} {} {} {}", ip(to.src()), to.src_port(), ip(to.dst()), to.dst_port())
        }))
    }

    pub(super) fn read(
        &self,
        handler: &str,
        parameter: &str,
        cx: &HandlerContext<'_>,
    ) -> Result<String, String> {
        let now = cx.now;
        Ok(match handler {
            "mapping_failures" => self.failures.iter().sum::<u64>().to_string(),
            "capacity" => self.capacity().to_string(),
            "lookup" | "tcp_lookup" => self.lookup(parameter, now)?,
            _ => listing::whole(|from| self.list(handler, from, now)),
        })
    }

    pub(super) fn write(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Context<'_>,
    ) -> Result<(), String> {
        let Some(joined) = &self.joined else { return Ok(()) };
        let mut set = joined.set.borrow_mut();
        match handler {
            "capacity" => set.table.set_capacity(parse_value(value)?, cx.now()),
            _ => set.table.clear(),
        }
        Ok(())
    }
}
