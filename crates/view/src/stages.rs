//! Which table of a device holds which table of an artefact, and why: for people and programs.

use std::fmt::Write;

use codegen::stages::{
    Amounts, Assignment, At, Dependence, Fit, Hardware, Pipeline, Placement, Resource, Room,
    Stages, Table as Of, TableId,
};
use serde_json::{Value, json};

use crate::paint::{Paint, count};
use crate::table::{Table, grouped};

/// What is reported of tables on a device.
pub struct Staged<'a> {
    /// The target's name.
    pub target: &'a str,
    /// The tables.
    pub pipeline: &'a Pipeline,
    /// The device.
    pub hardware: &'a Hardware,
    /// Where tables lie.
    pub fit: &'a Fit,
}

/// Resources that the table of stages shows.
const SHOWN: [Resource; 6] = [
    Resource::Tables,
    Resource::Sram,
    Resource::Tcam,
    Resource::ExactCrossbar,
    Resource::HashGroups,
    Resource::Instructions,
];

impl Staged<'_> {
    /// For people.
    pub fn text(&self, paint: Paint) -> String {
        let head = format!("{} → {}", self.target, self.hardware.name);
        let head = paint.bold(&head);
        let mut text = String::new();
        match (&self.fit.at, &self.hardware.room) {
            (At::Stages(placement), Room::Stages(stages)) => {
                let _ = writeln!(
                    text,
                    "{head}  {} in {} of {} stages; dependences ask for {}",
                    count(self.pipeline.tables.len(), "table"),
                    placement.stages,
                    stages.count,
                    placement.depth,
                );
                self.stages(placement, stages, &mut text);
            }
            (At::Tables(assigned), Room::Tables(fixed)) => {
                let tables = count(self.pipeline.tables.len(), "table");
                let _ = writeln!(text, "{head}  {tables}; the device has {}", fixed.len());
                self.tables(assigned, &mut text);
            }
            _ => {
                let _ = writeln!(text, "{head}  {}", count(self.pipeline.tables.len(), "table"));
                self.tables(&[], &mut text);
            }
        }
        if let Some(misfit) = &self.fit.misfit {
            let _ = writeln!(text, "  does not fit: {}", misfit.why);
        }
        text
    }

    fn of(&self, table: TableId) -> &Of {
        &self.pipeline.tables[table.0 as usize]
    }

    fn keys(&self, table: &Of) -> String {
        let key =
            |key: &codegen::stages::Key| format!("{} {}", self.pipeline.name(key.field), key.kind);
        match table.keys.is_empty() {
            true => "none".into(),
            false => table.keys.iter().map(key).collect::<Vec<_>>().join(", "),
        }
    }

    /// `match on ipv4.dst, which 'nat' (stage 2) writes`
    fn depends(&self, placement: &Placement, dependence: &Dependence) -> String {
        let Dependence { from, kind, fields, .. } = dependence;
        let stage = placement.places[from.0 as usize].last;
        let from = format!("'{}' (stage {stage})", self.of(*from).name);
        if fields.is_empty() {
            return format!("{kind}: {from}");
        }
        let mut names: Vec<&str> =
            fields.iter().take(3).map(|field| self.pipeline.name(*field)).collect();
        if fields.len() > names.len() {
            names.push("…");
        }
        format!("{kind} on {}: {from}", names.join(", "))
    }

    fn why(&self, placement: &Placement, table: TableId) -> String {
        let place = &placement.places[table.0 as usize];
        let depends = place.depends.as_ref().map(|depends| self.depends(placement, depends));
        let lacks = place
            .lacks
            .map(|short| format!("stage {} has no room: {short}", place.first.saturating_sub(1)));
        let all: Vec<String> = lacks.into_iter().chain(depends).collect();
        all.join("; ")
    }

    fn stages(&self, placement: &Placement, stages: &Stages, text: &mut String) {
        let mut table = Table::new(["stage", "table", "entries", "key", "why no earlier", "from"]);
        for part in &placement.parts {
            let of = self.of(part.table);
            let place = &placement.places[part.table.0 as usize];
            let why = match part.stage == place.first {
                true => self.why(placement, part.table),
                false => format!("the rest of it, behind stage {}", part.stage - 1),
            };
            let entries = match of.entries {
                0 => "-".into(),
                all if all == part.entries => grouped(all),
                all => format!("{} of {}", grouped(part.entries), grouped(all)),
            };
            table.row([
                part.stage.to_string(),
                of.name.clone(),
                entries,
                self.keys(of),
                why,
                of.origin.clone(),
            ]);
        }
        text.push_str(&table.render());
        let mut taken =
            Table::new(["stage", "tables", "SRAM", "TCAM", "crossbar bytes", "hashes", "actions"]);
        let row = |name: String, amounts: &Amounts| {
            let [a, b, c, d, e, f] = SHOWN.map(|resource| amounts[resource as usize].to_string());
            [name, a, b, c, d, e, f]
        };
        for (stage, amounts) in placement.taken.iter().enumerate() {
            taken.row(row(stage.to_string(), amounts));
        }
        let mut all = Amounts::default();
        for resource in Resource::ALL {
            all[resource as usize] = resource.of(stages);
        }
        taken.row(row("there are".into(), &all));
        text.push('\n');
        text.push_str(&taken.render());
        text.push_str("\n  the last stage is so late because of\n");
        for table in &placement.critical {
            let place = &placement.places[table.0 as usize];
            let why = self.why(placement, *table);
            let between = if why.is_empty() { "" } else { "  " };
            let of = self.of(*table);
            let _ = writeln!(
                text,
                "    stage {}  {} ({}){between}{why}",
                place.last, of.name, of.origin
            );
        }
    }

    fn tables(&self, assigned: &[Assignment], text: &mut String) {
        let mut table = Table::new(["table", "of the device", "entries", "of", "key", "from"]);
        for (at, of) in self.pipeline.tables.iter().enumerate() {
            let there = assigned.get(at).and_then(|assigned| match &self.hardware.room {
                Room::Tables(fixed) => {
                    fixed.get(assigned.fixed).map(|fixed| (fixed, assigned.mode))
                }
                _ => None,
            });
            let most =
                there.map(|(fixed, mode)| fixed.modes.get(mode).and_then(|mode| mode.entries));
            table.row([
                of.name.clone(),
                there.map_or("-".into(), |(fixed, _)| fixed.name.clone()),
                grouped(of.entries),
                most.map_or("-".into(), |most| most.map_or("any".into(), grouped)),
                self.keys(of),
                of.origin.clone(),
            ]);
        }
        text.push_str(&table.render());
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let name = |table: TableId| self.of(table).name.clone();
        let misfit = self.fit.misfit.as_ref().map(|misfit| {
            json!({ "table": misfit.table.map(name), "lacks": misfit.lack.to_string(), "why": misfit.why })
        });
        let mut tables: Vec<Value> = Vec::new();
        for (at, of) in self.pipeline.tables.iter().enumerate() {
            let keys = of.keys.iter().map(|key| {
                json!({ "field": self.pipeline.name(key.field), "match": key.kind.to_string() })
            });
            let mut table = json!({
                "name": of.name,
                "from": of.origin,
                "entries": of.entries,
                "keys": keys.collect::<Vec<Value>>(),
            });
            match &self.fit.at {
                At::Stages(placement) => {
                    let place = &placement.places[at];
                    table["first"] = place.first.into();
                    table["last"] = place.last.into();
                    table["depends"] = place.depends.as_ref().map_or(Value::Null, |depends| {
                        let fields = depends.fields.iter().map(|field| self.pipeline.name(*field));
                        json!({
                            "on": name(depends.from),
                            "kind": depends.kind.to_string(),
                            "fields": fields.collect::<Vec<_>>(),
                        })
                    });
                    table["lacks"] = place.lacks.map_or(Value::Null, |short| {
                        json!({ "resource": short.resource.key(), "needed": short.needed, "free": short.free })
                    });
                }
                At::Tables(assigned) => {
                    if let (Some(assigned), Room::Tables(fixed)) =
                        (assigned.get(at), &self.hardware.room)
                    {
                        table["table"] = fixed[assigned.fixed].name.clone().into();
                    }
                }
                At::Nowhere => {}
            }
            tables.push(table);
        }
        let mut document = json!({
            "target": self.target,
            "device": self.hardware.name,
            "fits": self.fit.misfit.is_none(),
            "misfit": misfit,
            "tables": tables,
        });
        if let (At::Stages(placement), Room::Stages(stages)) = (&self.fit.at, &self.hardware.room) {
            let taken = |amounts: &Amounts| -> Value {
                let one = |resource: Resource| {
                    (resource.key().to_string(), amounts[resource as usize].into())
                };
                Value::Object(Resource::ALL.into_iter().map(one).collect())
            };
            document["stages"] = json!({
                "needed": placement.stages,
                "available": stages.count,
                "dependences": placement.depth,
                "bound": placement.bound,
                "taken": placement.taken.iter().map(taken).collect::<Vec<Value>>(),
                "critical": placement.critical.iter().map(|table| name(*table)).collect::<Vec<_>>(),
            });
        }
        document
    }
}
