//! Installing flow entries on a switch that speaks OpenFlow.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use codegen::openflow::codec::Limit;
use codegen::openflow::{self, Class, FlowEntry};
use compiler::partition::{Divided, RateLimit};
use control::openflow::{About, Failure as Refused, Foreign, Mark, Plan, Site, Switch, meters};
use ir::program::StepId;
use ir::topology::Address;
use serde_json::{Value, json};
use view::offload::Counted;

use super::super::compile::{Rack, origin};
use super::ahead::{Holds, Totals};
use super::{Installation, Offload, Split, address, chain, status};
use crate::failure::Failure;
use crate::loaded::Loaded;
use crate::terminal::{print, print_error};

/// How long a switch may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A switch that is reached.
struct Reached<'a> {
    name: &'a str,
    address: &'a Address,
    switch: Switch,
}

/// Takes a chain's entries away; what is said of that.
pub(super) fn remove(args: &Offload, address: &Address) -> Result<(String, Value), Refused> {
    let removed = Switch::connect(address, PATIENCE)?.remove(Mark::of(&chain(&args.file)))?;
    Ok((format!("{} removed", entries(removed)), removed.into()))
}

/// `1 entry`, `2 entries`.
fn entries(count: usize) -> String {
    if count == 1 { "1 entry".into() } else { format!("{count} entries") }
}

/// A switch in front of a run: what it shall have, and what it counts.
pub(super) struct Ahead {
    address: Address,
    mark: Mark,
    entries: Vec<FlowEntry>,
    /// Segments whose packets come with a tag more, as they come back from servers.
    returned: BTreeSet<u16>,
    switch: Option<Switch>,
}

/// Bytes of a tag.
const TAG: u64 = 4;

impl Ahead {
    fn plan(&mut self) -> Result<Plan, Refused> {
        let mut switch = match self.switch.take() {
            Some(switch) => switch,
            None => Switch::connect(&self.address, PATIENCE)?,
        };
        let there = switch.entries_of(self.mark)?;
        self.switch = Some(switch);
        Ok(Plan::new(there, self.entries.clone(), self.mark))
    }

    /// Whether it holds what it shall have.
    pub(super) fn holds(&mut self) -> Holds {
        match self.plan() {
            Err(why) => Holds::Unknown(why.to_string()),
            Ok(plan) if plan.is_empty() => Holds::All(entries(plan.stay.len())),
            Ok(plan) if plan.is_all_new() => Holds::Nothing,
            Ok(plan) => {
                let changed = plan.change.iter().filter(|change| change.is_of_packets()).count();
                let renumbered = plan.change.len() - changed;
                let mut differs = vec![
                    format!("it lacks {}", entries(plan.add.len())),
                    format!("has {} too many", plan.remove.len()),
                    format!("{changed} do something else"),
                ];
                if renumbered > 0 {
                    differs.push(format!("{renumbered} count for another class"));
                }
                let first =
                    plan.remove.iter().chain(plan.change.iter().map(|c| &c.from.flow)).next();
                let first = first.map_or(String::new(), |flow| format!("\n  it has: {flow}"));
                Holds::Other(format!("{}{first}", differs.join(", ")))
            }
        }
    }

    /// What it counted of packets that met entries as they shall be.
    pub(super) fn counted(&mut self) -> Result<Totals, String> {
        let plan = self.plan().map_err(|why| why.to_string())?;
        let mut totals = Totals::new();
        for stats in &plan.stay {
            if let Some(Class::Exit(segment, step)) = Class::of(stats.flow.cookie) {
                let sum = totals.entry((segment.into(), StepId(step))).or_default();
                let tags = if self.returned.contains(&segment) { TAG * stats.packets } else { 0 };
                sum.packets = sum.packets.saturating_add(stats.packets);
                sum.bytes = sum.bytes.saturating_add(stats.bytes.saturating_sub(tags));
            }
        }
        Ok(totals)
    }
}

impl Installation<'_> {
    /// The entries that the switch shall have: those that were proven.
    fn entries(&self) -> Result<Vec<FlowEntry>, Failure> {
        let Loaded { sources, chain, .. } = self.loaded;
        let target = self.rack.sited.target.name();
        let origin = origin(chain, sources);
        let device = self.compiled.device(&origin);
        let none = || {
            format!("'{target}' is nothing that is installed: load what `catena compile` writes")
        };
        let entries = openflow::entries(target, &device).ok_or_else(none)?;
        let entries = entries.map_err(|(_, _, lack)| format!("{target}: {lack}"))?;
        let proven =
            |text: String| self.compiled.files.iter().any(|file| file.contents == text.as_bytes());
        match openflow::text(target, &entries).is_some_and(proven) {
            true => Ok(entries),
            false => {
                Err("what would be installed is not what was proven; this is a fault of Catena's"
                    .to_string()
                    .into())
            }
        }
    }

    /// The switch, which has to be what the topology says.
    fn reach(&self, entries: &[FlowEntry]) -> Result<Reached<'_>, Failure> {
        let Rack { topology, switch, sited } = self.rack;
        let path = self.path;
        let address = address(path, self.rack)?;
        let reached = Switch::connect(address, PATIENCE)
            .map_err(|why| format!("{path}: '{switch}' at {address}: {why}"))?;
        let reached = Reached { name: switch, address, switch: reached };
        let of = &topology.switches[switch];
        let used = |number: u32| {
            sited.site.servers.iter().any(|server| server.number == number)
                || sited.site.ports.values().any(|port| port.number == number)
        };
        let ports = of.ports.iter().filter(|(_, port)| used(port.number));
        let site = Site {
            is_ovs: self.is_ovs(),
            ports: ports.map(|(name, port)| (port.number, format!("{switch}.{name}"))).collect(),
        };
        let mut wrong = Vec::new();
        for odd in reached.switch.odd(&site, entries) {
            match odd.is_passing() {
                true => print_error(&format!("warning: {path}: {odd}\n")),
                false => wrong.push(format!("{path}: '{switch}' at {}: {odd}", reached.address)),
            }
        }
        match wrong.is_empty() {
            true => Ok(reached),
            false => Err(wrong.join("\nerror: ").into()),
        }
    }

    /// What the switch's meters let pass.
    fn limits(&self) -> Vec<(u32, Limit)> {
        // What comes at once, when nothing came before: of a tenth of a second, and several packets.
        const BURST: u32 = 10;
        const LEAST: u32 = 64;
        let limits = self.rack.sited.site.limits.iter();
        let limit = |of: &RateLimit| {
            let rate = ((of.rate / 1e3).round() as u32).max(1);
            (of.meter, Limit { rate, burst: (rate / BURST).max(LEAST) })
        };
        limits.map(limit).collect()
    }

    /// Meters that entries of this chain refer to, and those of others.
    fn meters(&self, reached: &mut Reached<'_>) -> Result<[BTreeSet<u32>; 2], Failure> {
        let there = reached.switch.entries().map_err(|why| self.failed(reached, &why))?;
        let mark = Mark::of(&self.name);
        let of = |is_own: bool| {
            let all = there.iter().map(|stats| &stats.flow);
            meters(all.filter(|flow| mark.is_on(flow.cookie) == is_own))
        };
        Ok([of(true), of(false)])
    }

    fn is_ovs(&self) -> bool {
        self.rack.sited.target.name() == "ovs"
    }

    /// What has to change.
    fn plan(&self, reached: &mut Reached<'_>, entries: Vec<FlowEntry>) -> Result<Plan, Failure> {
        let there = reached.switch.entries().map_err(|why| self.failed(reached, &why))?;
        Ok(Plan::new(there, entries, Mark::of(&self.name)))
    }

    fn failed(&self, reached: &Reached<'_>, why: &Refused) -> Failure {
        format!("'{}' at {}: {why}", reached.name, reached.address).into()
    }

    /// What is asked of the switch while the chain runs.
    pub(super) fn ahead(&self, address: &Address) -> Result<Ahead, Failure> {
        let entries = self.entries()?;
        let returns = &self.compiled.servers.returns;
        let comes_back = |part: &Divided| {
            part.offload.segment.ingress.iter().any(|number| returns.contains_key(number))
        };
        let parts = (0..).zip(&self.compiled.parts);
        let returned = parts.filter(|(_, part)| comes_back(part)).map(|(at, _)| at).collect();
        let mark = Mark::of(&self.name);
        Ok(Ahead { address: address.clone(), mark, entries, returned, switch: None })
    }
}

impl Split<'_> {
    /// Names entries of others that meet the chain's.
    fn warn(&self, plan: &Plan) {
        for foreign in self.some(&plan.foreign) {
            print_error(&format!("warning: {}\n", met(foreign)));
        }
        let more = plan.foreign.len().saturating_sub(self.some(&plan.foreign).len());
        if more > 0 {
            print_error(&format!("warning: and {more} more; --limit 0 shows all\n"));
        }
    }

    /// `--install`.
    pub(super) fn install(&self) -> Result<ExitCode, Failure> {
        let entries = self.entries()?;
        let mut reached = self.reach(&entries)?;
        let start = Instant::now();
        let plan = self.plan(&mut reached, entries.clone())?;
        self.warn(&plan);
        let limits = self.limits();
        let [own, others] = self.meters(&mut reached)?;
        if let Some((meter, _)) = limits.iter().find(|(meter, _)| others.contains(meter)) {
            return Err(format!(
                "'{}' at {}: entries of others use meter {meter}, which a limit of this chain needs",
                reached.name, reached.address
            )
            .into());
        }
        let apply = |switch: &mut Switch| {
            if self.is_ovs() {
                switch.show_fragments()?;
            }
            switch.limit(&limits)?;
            if !plan.is_empty() {
                switch.apply(&plan)?;
            }
            let is_needed = |meter: &u32| limits.iter().any(|(of, _)| of == meter);
            switch.unlimit(own.iter().copied().filter(|meter| !is_needed(meter)))
        };
        apply(&mut reached.switch).map_err(|why| {
            let new = limits.iter().map(|(meter, _)| *meter).filter(|meter| !own.contains(meter));
            let _ = reached.switch.unlimit(new);
            self.failed(&reached, &why)
        })?;
        let took = start.elapsed();
        // What it has now is read back.
        let left = self.plan(&mut reached, entries)?;
        if !left.is_empty() {
            return Err(format!(
                "'{}' at {}: the switch confirmed, and has {} other than it was given: somebody else changes it",
                reached.name,
                reached.address,
                self::entries(left.add.len() + left.change.len() + left.remove.len()),
            )
            .into());
        }
        if self.args.json {
            print(&format!("{:#}\n", self.plan_json(&reached, &plan)));
        } else {
            print(&format!(
                "{} ({}): {}, in {:.1} ms\n",
                reached.name,
                reached.address,
                summary(&plan),
                took.as_secs_f64() * 1e3
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// `--diff`.
    pub(super) fn diff(&self) -> Result<ExitCode, Failure> {
        let entries = self.entries()?;
        let mut reached = self.reach(&entries)?;
        let plan = self.plan(&mut reached, entries)?;
        let fragments = self.fragments(&mut reached)?;
        match self.args.json {
            true => print(&format!("{:#}\n", self.plan_json(&reached, &plan))),
            false => {
                self.warn(&plan);
                print(&format!("{} ({}): {}\n", reached.name, reached.address, summary(&plan)));
                self.print_plan(&plan);
                if fragments {
                    print("! first fragments do not show their ports: --install changes that\n");
                }
            }
        }
        Ok(status(plan.is_empty() && !fragments))
    }

    /// Whether the switch treats fragments in another mode than the entries need.
    fn fragments(&self, reached: &mut Reached<'_>) -> Result<bool, Failure> {
        match self.is_ovs() {
            false => Ok(false),
            true => {
                let shown = reached.switch.shows_fragments();
                shown.map(|shown| !shown).map_err(|why| self.failed(reached, &why))
            }
        }
    }

    /// `--status`.
    pub(super) fn status(&self) -> Result<ExitCode, Failure> {
        let entries = self.entries()?;
        let all = entries.len();
        let mut reached = self.reach(&entries)?;
        let plan = self.plan(&mut reached, entries)?;
        let fragments = self.fragments(&mut reached)?;
        let counted = counted(&plan);
        let offloaded = self.offloaded(&[]);
        if self.args.json {
            let mut json = self.plan_json(&reached, &plan);
            json["counted"] = offloaded.counted_json(&counted);
            print(&format!("{json:#}\n"));
            return Ok(status(plan.is_empty() && !fragments));
        }
        self.warn(&plan);
        let About { made, .. } = reached.switch.about();
        let there = plan.stay.len() + plan.change.len();
        let mut text = format!(
            "{} ({}): {there} of {} installed, {} {}\n",
            reached.name,
            reached.address,
            self::entries(all),
            made.hardware,
            made.software,
        );
        text += &offloaded.counted(&counted, self.args.limit, self.paint());
        print(&text);
        if plan.is_all_new() && all > 0 {
            print(
                "! the switch has none of the chain's entries: it was restarted, or they were never installed; --install \
                 puts them there\n",
            );
        } else if !plan.is_empty() {
            print(&format!(
                "! the switch is not as this chain was installed: {}; it was edited, or the chain was. --install sets it \
                 right\n",
                summary(&plan)
            ));
            self.print_plan(&plan);
        }
        if fragments {
            print("! first fragments do not show their ports: --install changes that\n");
        }
        Ok(status(plan.is_empty() && !fragments))
    }

    fn print_plan(&self, plan: &Plan) {
        for flow in self.some(&plan.remove) {
            print(&format!("- {flow}\n"));
        }
        for change in self.some(&plan.change) {
            print(&format!(
                "- {}\n+ {}  # {}\n",
                change.from.flow, change.to.flow, change.to.origin
            ));
        }
        for entry in self.some(&plan.add) {
            print(&format!("+ {}  # {}\n", entry.flow, entry.origin));
        }
        let parts = [plan.remove.len(), plan.change.len(), plan.add.len()];
        let shown = if self.args.limit == 0 { usize::MAX } else { self.args.limit };
        let more: usize = parts.iter().map(|count| count.saturating_sub(shown)).sum();
        if more > 0 {
            print(&format!("  … {more} more; --limit 0 shows all\n"));
        }
    }

    fn plan_json(&self, reached: &Reached<'_>, plan: &Plan) -> Value {
        let entry =
            |entry: &FlowEntry| json!({ "entry": entry.flow.to_string(), "origin": *entry.origin });
        json!({
            "switch": reached.name,
            "address": reached.address.to_string(),
            "added": plan.add.iter().map(entry).collect::<Vec<_>>(),
            "changed": plan.change.iter().map(|change| json!({
                "from": change.from.flow.to_string(),
                "to": change.to.flow.to_string(),
                "origin": *change.to.origin,
            })).collect::<Vec<_>>(),
            "removed": plan.remove.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "same": plan.stay.len(),
            "warnings": plan.foreign.iter().map(met).collect::<Vec<_>>(),
        })
    }
}

fn summary(plan: &Plan) -> String {
    let renumbered = plan.change.iter().filter(|change| !change.is_of_packets()).count();
    let changed = plan.change.len() - renumbered;
    let mut said = format!(
        "{} added, {changed} changed, {} removed, {} as they were",
        entries(plan.add.len()),
        plan.remove.len(),
        plan.stay.len()
    );
    if renumbered > 0 {
        said += &format!(", {renumbered} counted for another class");
    }
    said
}

/// An entry of others beside the chain's.
fn met(foreign: &Foreign) -> String {
    let whose = match Mark::is_any_on(foreign.stats.flow.cookie) {
        true => "another chain",
        false => "others",
    };
    let what = match (foreign.conflicts(), foreign.comes_first()) {
        (true, _) => "stands where one of the chain's has to stand, of",
        (false, true) => "may take packets before that of",
        (false, false) => "no longer gets the packets of that of",
    };
    format!("an entry of {whose} {what} {}: {}", foreign.meets.origin, foreign.stats.flow)
}

/// Packets by class.
fn counted(plan: &Plan) -> Counted {
    let mut counted = Counted::new();
    let there = plan.stay.iter().chain(plan.change.iter().map(|change| &change.from));
    for stats in there {
        if let Some(Class::Exit(segment, step)) = Class::of(stats.flow.cookie) {
            let sum = counted.entry((segment.into(), StepId(step))).or_default();
            for (sum, more) in sum.iter_mut().zip([stats.packets, stats.bytes]) {
                *sum = sum.saturating_add(more);
            }
        }
    }
    counted
}
