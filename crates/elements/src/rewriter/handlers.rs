//! What rewriters tell about their flows.

use std::fmt::Write;
use std::net::Ipv4Addr;

use click::config::Argument;

use super::{Action, Common, Kind};
use crate::argument::{FromArgument, Ip, parse_value};
use crate::context::Context;
use crate::element::{Handler, HandlerContext, NamedHandler};
use crate::flow_table::{Flow, Key};
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

fn ip(address: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(address)
}

fn quadruple(key: &Key) -> String {
    format!("({}, {}, {}, {})", ip(key.src()), key.src_port(), ip(key.dst()), key.dst_port())
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

    /// Calls for each living flow and direction whose packets arrive here.
    fn each_entry(&self, now: u64, mut visit: impl FnMut(&Flow, usize)) {
        let Some(joined) = &self.joined else { return };
        let set = joined.set.borrow();
        for (number, sides) in set.table.in_order() {
            let flow = set.table.flow(number);
            let here = |side: usize| flow.key(side).map >> 8 == u16::from(joined.member);
            if flow.expiry() > now {
                sides.filter(|&side| here(side)).for_each(|side| visit(flow, side));
            }
        }
    }

    /// Number of living flows that each input made.
    fn counts(&self, now: u64) -> Vec<u64> {
        let mut counts = vec![0; self.specs.len()];
        let Some(joined) = &self.joined else { return counts };
        let set = joined.set.borrow();
        for (number, _) in set.table.in_order() {
            let flow = set.table.flow(number);
            let mine = flow.key(0).map >> 8 == u16::from(joined.member);
            if let Some(count) = counts.get_mut(usize::from(flow.input))
                && mine
                && flow.expiry() > now
            {
                *count += 1;
            }
        }
        counts
    }

    /// Number of living flows of all rewriters that share the capacity.
    fn size(&self, now: u64) -> usize {
        let Some(joined) = &self.joined else { return 0 };
        let set = joined.set.borrow();
        let living = |&(number, _): &(u32, _)| set.table.flow(number).expiry() > now;
        set.table.in_order().iter().filter(|f| living(f)).count()
    }

    /// A line about a direction of a flow, as Click prints it.
    fn unparse(&self, flow: &Flow, side: usize, now: u64, lines: &mut String) {
        let (from, to) = (flow.key(side), flow.rewritten(side));
        let mapping = match self.kind {
            Kind::Ip | Kind::Tcp | Kind::Udp => {
                format!("{} => {}", quadruple(&from), quadruple(&to))
            }
            Kind::Address => format!("{} => {}", ip(from.src()), ip(to.src())),
            Kind::Pair => format!(
                "({}, {}) => ({}, {})",
                ip(from.src()),
                ip(from.dst()),
                ip(to.src()),
                ip(to.dst())
            ),
            Kind::Ping => format!(
                "({}, {}, {}) => ({}, {}, {})",
                ip(from.src()),
                ip(from.dst()),
                from.src_port(),
                ip(to.src()),
                ip(to.dst()),
                to.src_port()
            ),
        };
        let star = |which| if side == which { "*" } else { "" };
        // Rounded to seconds.
        let left = (flow.expiry().saturating_sub(now) + 500_000_000) / 1_000_000_000;
        let _ = writeln!(
            lines,
            "{mapping} [{}{} {}{}] i{} exp{left}",
            star(0),
            flow.output(0),
            star(1),
            flow.output(1),
            flow.input
        );
    }

    fn table(&self, now: u64, protocol: Option<u8>) -> String {
        let mut lines = String::new();
        self.each_entry(now, |flow, side| {
            if protocol.is_none_or(|p| p == flow.key(side).map as u8) {
                self.unparse(flow, side, now, &mut lines);
            }
        });
        lines
    }

    /// What an input's specification is, and how many flows it made.
    fn spec(&self, input: usize, counts: &[u64]) -> String {
        let mut text = match &self.specs[input].action {
            Action::Drop => "<drop>".to_string(),
            Action::Pass(_) => "<nochange>".to_string(),
            Action::Keep(_) => "<keep>".to_string(),
            Action::Pattern(pattern, _) => pattern.pattern().unparse(),
            Action::Map(_) => "<mapper>".to_string(),
        };
        if let Some(count) = counts.get(input).filter(|&&c| c > 0) {
            let _ = write!(text, " [{count}]");
        }
        text.push('\n');
        text
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
        let input = handler.strip_prefix("pattern").and_then(|i| i.parse().ok());
        Ok(match (handler, input) {
            ("table_size" | "nmappings", _) => self.counts(now).iter().sum::<u64>().to_string(),
            ("mapping_failures", _) => self.failures.iter().sum::<u64>().to_string(),
            ("size", _) => self.size(now).to_string(),
            ("capacity", _) => self.capacity().to_string(),
            ("tcp_table" | "tcp_mappings", _) => self.table(now, Some(6)),
            ("udp_table" | "udp_mappings", _) => self.table(now, Some(17)),
            ("lookup" | "tcp_lookup", _) => self.lookup(parameter, now)?,
            ("patterns", _) => {
                let counts = self.counts(now);
                (0..self.specs.len()).map(|i| self.spec(i, &counts)).collect()
            }
            (_, Some(input)) if input < self.specs.len() => self.spec(input, &self.counts(now)),
            _ => self.table(now, None),
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
