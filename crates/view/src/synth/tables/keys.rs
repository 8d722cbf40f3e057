//! Names of the keys of tables: header fields, as all lookups of a table name them together.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use ir::field::{eth, ip, ip6};
use ir::layout::{Kind, Layout, Layouts, Name};
use ir::model::{Op, Reg};
use ir::program::{Entries, StepId, Table, Term, TermId};
use ir::{Base, Expr, Field, IntervalSet, Model, Program};

use super::{Listed, is_of_rules, ops};

/// A step that looks something up in a table.
pub(super) struct Site<'a> {
    pub(super) program: &'a Program,
    pub(super) layouts: &'a Layouts,
    pub(super) step: StepId,
    /// The element that looks.
    pub(super) element: ir::NodeId,
    /// The terms that it looks up.
    pub(super) keys: &'a [TermId],
}

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Header fields, with `|` between them where lookups differ.
    pub(super) name: String,
    /// The widest of them, in bits.
    pub(super) width: u16,
}

/// The keys of a table.
pub(super) fn keys(of: &Listed<'_>, models: &[Model]) -> Vec<Key> {
    let table = of.table;
    let rules = OnceCell::new();
    let key = |(at, width): (usize, &u16)| {
        let mut key = Key { name: "not looked up".into(), width: *width };
        let mut names: Vec<String> = Vec::new();
        for site in &of.sites {
            let asked = || match &table.entries {
                Entries::Rules(_) => rules.get_or_init(|| rule_keys(table, models)).clone(),
                _ => lookup_keys(of, site, models),
            };
            for (name, width) in site.names(table, at, &asked) {
                key.width = key.width.max(width);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let known = names.clone();
        names.retain(|name| !is_named_better(name, &known));
        if !names.is_empty() {
            key.name = names.join(" | ");
        }
        key
    };
    table.widths.iter().enumerate().map(key).collect()
}

/// Whether a port has the names of its protocols, too.
fn is_named_better(name: &str, names: &[String]) -> bool {
    let is_better = |better: &str| names.contains(&name.replacen("transport.", better, 1));
    name.contains("transport.") && (is_better("tcp.") && is_better("udp."))
}

/// What a model looks up, key by key: each key may be one of several.
type Asked = Vec<Vec<Expr>>;

/// What the keys of a list of rules are in the model of its element.
fn rule_keys(table: &Table, models: &[Model]) -> Asked {
    let Entries::Rules(entries) = &table.entries else { return Vec::new() };
    let known = models.get(table.element).into_iter().flat_map(ops).find_map(|op| match op {
        Op::Match { rules, .. } if is_of_rules(entries, rules) => {
            compiler::table_of_rules(rules).filter(|(_, made)| made == entries)
        }
        _ => None,
    });
    known.into_iter().flat_map(|known| known.0).map(|key| vec![key]).collect()
}

/// What the element looks up in flows or routes, with what its registers hold.
fn lookup_keys(of: &Listed<'_>, site: &Site<'_>, models: &[Model]) -> Asked {
    let Some(model) = models.get(site.element) else { return Vec::new() };
    let bound = |reg: &Reg| {
        let value = |op: &Op| match op {
            Op::Let(to, value) if to == reg => Some(value.clone()),
            _ => None,
        };
        ops(model).filter_map(value).collect::<Vec<_>>()
    };
    let resolve = |key: &Expr| match key {
        Expr::Reg(reg) => bound(reg),
        key => vec![key.clone()],
    };
    let is_same = |flows: ir::model::StateRef| {
        let Some(state) = of.state() else { return false };
        model.state.get(usize::from(flows.0)).is_some_and(|known| {
            known.name == state.name && known.owner.as_ref().is_none_or(|of| *of == state.owner)
        })
    };
    let mut asked: Asked = vec![Vec::new(); site.keys.len()];
    for op in ops(model) {
        let keys = match op {
            Op::FlowLookup { flows, key, .. } if is_same(*flows) => &key[..],
            Op::Lookup { key, table, .. } if is_of(of.table, table) => std::slice::from_ref(key),
            _ => continue,
        };
        for (asked, key) in asked.iter_mut().zip(keys) {
            let new = resolve(key).into_iter().filter(|key| !matches!(key, Expr::Const(_)));
            for key in new {
                if !asked.contains(&key) {
                    asked.push(key);
                }
            }
        }
    }
    asked
}

fn is_of(table: &Table, prefixes: &std::sync::Arc<ir::PrefixTable>) -> bool {
    matches!(&table.entries, Entries::Prefixes(all) if std::sync::Arc::ptr_eq(all, prefixes))
}

impl Site<'_> {
    /// What a key is called here, and how wide that is. `asked` is what the model looks up.
    fn names(&self, table: &Table, at: usize, asked: &dyn Fn() -> Asked) -> Vec<(String, u16)> {
        let Some(term) = self.keys.get(at) else { return Vec::new() };
        let here = self.layouts.at(self.step);
        let bits = bits(self.program, *term);
        if let Some((start, width)) = bits {
            let names = self.names_in_packet(table, at, here, (start, width));
            if !names.is_empty() {
                return names.into_iter().map(|name| (name, width as u16)).collect();
            }
        } else if let Term::Input(field) = self.program.term(*term) {
            return vec![(field.to_string(), field.width)];
        }
        // What elements before wrote or decided, or what is there for them: the model says which field that is.
        let asked = asked().get(at).cloned().unwrap_or_default();
        let is_header = |field: &Field| matches!(field.base, Base::Header(_) | Base::Annotation);
        let field = |key: &Expr| match key {
            Expr::Field(field) if is_header(field) => Some((field.to_string(), field.width)),
            _ => None,
        };
        let fields: Vec<(String, u16)> = asked.iter().filter_map(field).collect();
        if !fields.is_empty() {
            return fields;
        }
        if let Some((start, width)) = bits {
            return vec![(format!("data[{start}+{width}]"), width as u16)];
        }
        if let Term::Const(value) = self.program.term(*term) {
            return vec![protocol(here, self, *value).unwrap_or((format!("constant {value}"), 0))];
        }
        vec![(self.made_from(here, *term), 0)]
    }

    /// What some bits of the packet are called. Rules that say what comes before them say it exactly.
    fn names_in_packet(
        &self,
        table: &Table,
        at: usize,
        here: &Layout,
        (start, width): (i32, u32),
    ) -> Vec<String> {
        // What tells frames by their types asks for what is behind before it is known what that is.
        let is_type = |key: &TermId| *self.program.term(*key) == Term::Input(eth::TYPE);
        let tells_frames = self.keys.iter().any(is_type);
        let usual = |layout: &Layout| {
            layout.name(start, width).filter(|name: &Name| {
                let header = &layout.headers()[name.header];
                !(tells_frames && header.assumed && header.kind.is_network())
            })
        };
        let known = usual(here);
        let is_exact =
            |name: &Name| name.field.is_some() && here.headers()[name.header].kind != Kind::Ports;
        if !known.as_ref().is_some_and(is_exact) {
            let narrowed = self.narrowed(table, at);
            let names = narrowed.iter().filter_map(usual).filter(|name| name.field.is_some());
            let names: BTreeSet<String> = names.map(|name| name.text).collect();
            if !names.is_empty() {
                return names.into_iter().collect();
            }
        }
        known.map(|name| name.text).into_iter().collect()
    }

    /// The layouts of the packets that rules look for which ask a key.
    fn narrowed(&self, table: &Table, at: usize) -> Vec<Layout> {
        let Entries::Rules(rules) = &table.entries else { return Vec::new() };
        let Some(facts) = self.layouts.facts(self.step) else { return Vec::new() };
        let asks = |cube: &&Vec<(u8, IntervalSet)>| cube.iter().any(|(k, _)| usize::from(*k) == at);
        // Addresses say nothing of headers.
        let tells =
            |key: usize| key != at && table.widths.get(key).is_some_and(|width| *width <= 16);
        let asking = rules.iter().flat_map(|rule| rule.cubes.iter()).filter(asks);
        let others: BTreeSet<Vec<&(u8, IntervalSet)>> = asking
            .map(|cube| cube.iter().filter(|(key, _)| tells(usize::from(*key))).collect())
            .collect();
        let layout = |cube: Vec<&(u8, IntervalSet)>| {
            let learn = |facts: ir::layout::Facts, (key, set): &(u8, IntervalSet)| match self
                .keys
                .get(usize::from(*key))
            {
                Some(term) => facts.with(self.program, *term, set),
                None => facts,
            };
            let facts = cube.into_iter().fold(facts.clone(), learn);
            self.layouts.narrowed(self.step, &facts)
        };
        others.into_iter().map(layout).collect()
    }

    /// The fields that a number is computed from.
    fn made_from(&self, here: &Layout, term: TermId) -> String {
        let (mut all, mut waiting) = (BTreeSet::new(), vec![term]);
        while let Some(term) = waiting.pop() {
            if all.insert(term) {
                waiting.extend(self.program.term(term).operands());
            }
        }
        let name = |term: &TermId| match self.program.term(*term) {
            Term::Input(field) => {
                let name = here.name_of(*field).map(|name| name.text);
                Some(name.unwrap_or_else(|| super::field_text(*field)))
            }
            Term::Bound(lookup, _) => {
                let owner = self.program.flows_of(*lookup).map(|flows| flows.owner.as_str());
                Some(format!("what {} holds", owner.unwrap_or("a route")))
            }
            _ => None,
        };
        let names: BTreeSet<String> = all.iter().filter_map(name).collect();
        format!("computed from {}", names.into_iter().collect::<Vec<_>>().join(", "))
    }
}

/// Which bits of the packet as it came in a number is.
fn bits(program: &Program, term: TermId) -> Option<(i32, u32)> {
    let of_data = |term: TermId| match program.term(term) {
        Term::Input(field) if field.base == Base::Data => Some(*field),
        _ => None,
    };
    match program.term(term) {
        Term::Slice { of, low, width } => {
            let field = of_data(*of)?;
            let before = field.width.checked_sub(u16::from(*low) + u16::from(*width))?;
            Some((i32::from(field.offset + before), u32::from(*width)))
        }
        _ => of_data(term).map(|field| (field.offset.into(), field.width.into())),
    }
}

/// The field that says which protocol follows, if packets here have this number there.
fn protocol(here: &Layout, site: &Site<'_>, value: u128) -> Option<(String, u16)> {
    use ir::layout::Evidence;
    let facts = site.layouts.facts(site.step)?;
    here.headers().iter().rev().filter(|_| value != 0).find_map(|header| {
        let field = match header.kind {
            Kind::Ipv4 => ip::PROTO,
            Kind::Ipv6 => ip6::NEXT,
            _ => return None,
        };
        let known = facts.bits(header.bit(field), field.width.into())?;
        (known.as_single() == Some(value)).then(|| (header.field_name(field), field.width))
    })
}
