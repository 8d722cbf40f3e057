//! What the tables of a program match, hold, read and write: for those who ask whether it fits a switch.

use std::collections::{BTreeSet, HashMap};

use ir::program::StepId;

use super::super::Arch;
use super::checksum;
use super::pipeline::{Action, CLASS, Kind, Pipeline, Statement, Table};
use crate::headers::Instance;
use crate::stages::{self, BranchId, Decision, FieldId, Guard, Key, MatchKind, TableId};
use crate::{Device, Tables};

/// What a switch is told of where a packet goes lies like headers: names, fields and widths.
const INTRINSIC: [(&str, &[(&str, u32)]); 2] =
    [("traffic manager", &[("padding", 7), ("egress port", 9)]), ("deparser", &[("drop", 3)])];

struct Sketch<'a> {
    arch: Arch,
    of: &'a Pipeline,
    all: stages::Pipeline,
    /// By table: its segment and step.
    steps: Vec<(usize, StepId)>,
    fields: HashMap<String, FieldId>,
    guards: Vec<Guard>,
    /// The segment and step that statements are for.
    segment: usize,
    step: StepId,
    origin: String,
}

/// Tables in the order in which packets meet them, from where frames come in to where they are counted.
pub(super) fn tables(arch: Arch, of: &Pipeline, device: &Device<'_>) -> Tables {
    let mut sketch = Sketch {
        arch,
        of,
        all: stages::Pipeline::default(),
        steps: Vec::new(),
        fields: HashMap::new(),
        guards: Vec::new(),
        segment: 0,
        step: StepId(0),
        origin: String::new(),
    };
    sketch.headers();
    let ports = sketch.field(arch.ingress());
    let ports = sketch.all.branch(Decision::Fields(vec![ports]));
    sketch.arm(ports, 0, |sketch| sketch.ports(device));
    for (at, (_, statements)) in of.segments.iter().enumerate() {
        sketch.segment = at;
        sketch.arm(ports, at as u32 + 1, |sketch| sketch.block(statements));
    }
    for header in of.sums.keys() {
        sketch.update(*header);
    }
    (sketch.segment, sketch.step, sketch.origin) =
        (0, StepId(0), "where packets are counted".into());
    let reads = vec![sketch.field(&format!("meta.{CLASS}"))];
    let count = stages::Action { name: "count".into(), reads, ..stages::Action::default() };
    sketch.always("count", count, true);
    Tables { pipeline: sketch.all, steps: sketch.steps }
}

impl Sketch<'_> {
    /// Fields of headers as they lie on the wire.
    fn headers(&mut self) {
        for header in self.of.extracted() {
            for (field, width) in header.fields() {
                let name = format!("{}.{field}", header.name());
                let id = self.all.field(&name, (*width).into(), Some(header.name()));
                self.fields.insert(name, id);
            }
        }
        for (header, fields) in INTRINSIC {
            for (name, width) in fields {
                let id = self.all.field(name, *width, Some(header));
                self.fields.insert((*name).into(), id);
            }
        }
    }

    /// A field by its name in the program, perhaps with the bits of it that are meant.
    fn field(&mut self, text: &str) -> FieldId {
        let name = text.split('[').next().unwrap_or(text);
        let name = &name.strip_prefix("hdr.").unwrap_or(name).replace("isValid()", "$valid")[..];
        let name = if name == self.arch.egress() { "egress port" } else { name };
        if let Some(known) = self.fields.get(name) {
            return *known;
        }
        let own = name.strip_prefix("meta.").unwrap_or(name);
        let known = self.of.metadata.iter().chain(&self.of.variables).find(|of| of.0 == own);
        let bits = match known {
            Some((_, width)) => u32::from(*width),
            None if name == self.arch.ingress() => 9,
            None if name.ends_with("packet_length") => 32,
            None => 1,
        };
        let id = self.all.field(name, bits, None);
        self.fields.insert(name.into(), id);
        id
    }

    fn all_of(&mut self, names: &BTreeSet<String>) -> Vec<FieldId> {
        names.iter().map(|name| self.field(name)).collect()
    }

    /// Whether a header is there.
    fn validity(&mut self, header: &str) -> FieldId {
        self.field(&format!("{header}.$valid"))
    }

    fn arm(&mut self, branch: BranchId, arm: u32, inside: impl FnOnce(&mut Self)) {
        self.guards.push(Guard { branch, arms: vec![arm] });
        inside(self);
        self.guards.pop();
    }

    fn action(&mut self, of: &Action) -> stages::Action {
        let mut action = stages::Action {
            name: of.name.clone(),
            reads: self.all_of(&of.reads),
            writes: self.all_of(&of.writes),
            data: of.parameters.iter().map(|parameter| u32::from(parameter.1)).sum(),
        };
        for header in Instance::ALL {
            let call = |what: &str| format!("hdr.{}.{what}();", header.name());
            let changes = |line: &String| *line == call("setValid") || *line == call("setInvalid");
            if of.body.iter().any(changes) {
                action.writes.push(self.validity(header.name()));
            }
        }
        action
    }

    /// A table whose action is always the same.
    fn always(&mut self, name: &str, action: stages::Action, counters: bool) {
        let table = stages::Table {
            name: name.into(),
            origin: self.origin.clone(),
            actions: vec![action],
            guards: self.guards.clone(),
            counters,
            ..stages::Table::default()
        };
        self.add(table, self.step);
    }

    /// A deparser tells by a bit whether a checksum leaves as it came: Tofino's compiler adds a table for it behind all others.
    fn update(&mut self, header: Instance) {
        let [_, _, (set, _)] = checksum::metadata(header);
        let fields = [self.field(&format!("meta.{set}")), self.validity(header.name())];
        let bits = ["old", "new"].map(|of| self.field(&format!("{}.${of}", header.name())));
        let action = stages::Action {
            name: "choose".into(),
            writes: bits.into(),
            data: 2,
            ..stages::Action::default()
        };
        let table = stages::Table {
            name: format!("{}_checksum", header.name()),
            origin: "where checksums are chosen".into(),
            keys: fields.map(|field| Key { field, kind: MatchKind::Exact }).into(),
            actions: vec![action],
            entries: 4,
            ..stages::Table::default()
        };
        self.add(table, StepId(0));
    }

    fn add(&mut self, table: stages::Table, step: StepId) -> TableId {
        self.steps.push((self.segment, step));
        self.all.table(table)
    }

    /// What frames from the cores meet.
    fn ports(&mut self, device: &Device<'_>) {
        let field = self.field("hdr.tag.vid");
        let (tagged, port) = (self.validity("tag"), self.field("egress port"));
        let (was, of) = (self.field("tag.ether_type"), self.field("ethernet.ether_type"));
        let back = stages::Action {
            name: "back".into(),
            reads: vec![was],
            writes: vec![of, tagged, port],
            data: 9,
        };
        let table = stages::Table {
            name: "ports".into(),
            origin: "frames from the cores".into(),
            keys: vec![Key { field, kind: MatchKind::Exact }],
            actions: vec![back],
            entries: device.egress.len() as u64,
            guards: self.guards.clone(),
            ..stages::Table::default()
        };
        self.add(table, StepId(0));
    }

    fn table(&mut self, of: &Table) {
        let mut keys: Vec<Key> = Vec::new();
        for key in &of.keys {
            let field = self.field(&key.text);
            let kind = match key.kind {
                Kind::Exact => MatchKind::Exact,
                Kind::Lpm => MatchKind::Lpm,
                Kind::Ternary => MatchKind::Ternary,
                Kind::Range => MatchKind::Range,
            };
            keys.push(Key { field, kind });
        }
        let pipeline = self.of;
        let actions = of.actions().into_iter().map(|at| self.action(&pipeline.actions[at]));
        let actions = actions.collect();
        let table = stages::Table {
            name: of.name.clone(),
            origin: of.origin.clone(),
            keys,
            actions,
            entries: of.entries.len() as u64,
            guards: self.guards.clone(),
            ..stages::Table::default()
        };
        self.add(table, of.step);
    }

    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::Step(step, origin) => {
                    (self.step, self.origin) = (*step, origin.clone());
                }
                Statement::If(when, yes, no) => {
                    let mut fields = self.all_of(&when.reads);
                    fields.extend(
                        when.needs
                            .iter()
                            .map(|need| need.name())
                            .map(|header| self.validity(header)),
                    );
                    let (step, origin) = (self.step, self.origin.clone());
                    let branch = self.all.branch(Decision::Fields(fields));
                    self.arm(branch, 1, |sketch| sketch.block(yes));
                    (self.step, self.origin) = (step, origin);
                    self.arm(branch, 0, |sketch| sketch.block(no));
                }
                Statement::Arms(arms) => {
                    let field = self.field("meta.at");
                    let branch = self.all.branch(Decision::Fields(vec![field]));
                    for (number, inner) in arms {
                        self.arm(branch, *number, |sketch| sketch.block(inner));
                    }
                }
                Statement::Apply(table) => {
                    let pipeline = self.of;
                    self.table(&pipeline.tables[*table]);
                }
                Statement::Call(call) => {
                    let action = self.action(&self.of.actions[call.action]);
                    // Its arguments stand in the program.
                    let action = stages::Action { data: 0, ..action };
                    // The first is the exit's number.
                    let number = call.arguments.first().copied().unwrap_or(0);
                    let name = format!("{}{number}", action.name);
                    self.always(&name, action, false);
                }
                Statement::Set(variable, _, reads) => {
                    let reads = self.all_of(reads);
                    let writes = vec![self.field(variable)];
                    let set = stages::Action { reads, writes, ..stages::Action::default() };
                    self.always(variable, set, false);
                }
            }
        }
    }
}
