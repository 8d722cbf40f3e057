//! What an exit does to a packet as an action.

use std::collections::BTreeSet;

use ir::program::{End, Exit, StepId, TermId};
use net::wire::ether_type;

use super::super::Arch;
use super::checksum;
use super::number::{Expr, Numbers};
use super::pipeline::{Action, CLASS};
use crate::Lack;
use crate::headers::{Instance, Need, Placed};
use crate::leave::{self, Bits, beside, moved};
use crate::number::ones;

/// What an exit's action does, with the arguments that make it this exit's.
pub(super) struct Done {
    pub(super) action: Action,
    pub(super) arguments: Vec<u128>,
    pub(super) needs: Vec<Need>,
    pub(super) headers: BTreeSet<Instance>,
}

/// The value of some bits as they leave; `None` if they are what came in there.
fn leaves(
    numbers: &mut Numbers<'_>,
    exit: &Exit,
    bit: i32,
    width: u16,
) -> Result<Option<Expr>, Lack> {
    let Some(bits) = leave::bits(exit, bit, width) else { return Ok(None) };
    let mut parts: Vec<Expr> = Vec::new();
    for (of, count) in bits {
        parts.push(match of {
            Bits::Written(term, low) => numbers.bits(term, low, count)?,
            Bits::Zero => numbers.zero(count),
            Bits::Came(at) => {
                numbers.data(at, count).ok_or_else(|| Lack::Write(format!("data[{at}+{count}]")))?
            }
        });
    }
    Ok(parts.into_iter().reduce(Expr::beside))
}

fn take(action: &mut Action, arguments: &mut Vec<u128>, name: &str, width: u16, value: u128) {
    action.parameters.push((name.into(), width));
    arguments.push(value & ones(width.into()));
}

/// The action of an exit. `port` gives the device's port behind an input port; `number` is what it is counted under.
///
/// # Errors
/// What the architecture cannot do.
pub(super) fn action(
    numbers: &mut Numbers<'_>,
    exit: &Exit,
    number: u32,
    port: Option<u32>,
) -> Result<Done, Lack> {
    beside(exit)?;
    let arch = numbers.arch;
    let mut action = Action {
        name: String::new(),
        parameters: Vec::new(),
        body: Vec::new(),
        reads: BTreeSet::new(),
        writes: BTreeSet::new(),
    };
    let mut arguments = Vec::new();
    let (mut needs, mut headers) = (Vec::new(), BTreeSet::new());
    take(&mut action, &mut arguments, "number", 16, number.into());
    action.body.push(format!("meta.{CLASS} = number;"));
    action.writes.insert(format!("meta.{CLASS}"));
    match exit.end {
        End::Drop { .. } => {
            let drop = match arch {
                Arch::V1model => "mark_to_drop(standard_metadata);",
                Arch::Tna => "ig_dprsr_md.drop_ctl = 3w1;",
            };
            action.body.push(drop.into());
            action.writes.insert("drop".into());
        }
        End::Handoff { to } => {
            take(&mut action, &mut arguments, "place", 12, to.0.into());
            let tag = u128::from(ether_type::QINQ);
            for line in [
                "hdr.tag.setValid();".to_string(),
                "hdr.tag.pcp = 3w0;".into(),
                "hdr.tag.dei = 1w0;".into(),
                "hdr.tag.vid = place;".into(),
                "hdr.tag.ether_type = hdr.ethernet.ether_type;".into(),
                format!("hdr.ethernet.ether_type = 16w{tag:#x};"),
                format!("{} = CORES;", arch.egress()),
            ] {
                action.body.push(line);
            }
            action.reads.insert("hdr.ethernet.ether_type".into());
            let fields = [
                "hdr.tag.pcp",
                "hdr.tag.dei",
                "hdr.tag.vid",
                "hdr.tag.ether_type",
                "hdr.ethernet.ether_type",
            ];
            action.writes.extend(fields.map(String::from));
            action.writes.insert(arch.egress().into());
            headers.extend([Instance::Ethernet, Instance::Tag]);
        }
        End::Push { .. } => {
            take(&mut action, &mut arguments, "port", 9, port.unwrap_or(0).into());
            write(numbers, exit, &mut action, &mut arguments, &mut needs, &mut headers)?;
            action.body.push(format!("{} = port;", arch.egress()));
            action.writes.insert(arch.egress().into());
        }
    }
    Ok(Done { action, arguments, needs, headers })
}

fn write(
    numbers: &mut Numbers<'_>,
    exit: &Exit,
    action: &mut Action,
    arguments: &mut Vec<u128>,
    needs: &mut Vec<Need>,
    headers: &mut BTreeSet<Instance>,
) -> Result<(), Lack> {
    let placed = numbers.placed;
    let moved = moved(exit, placed)?;
    let mut set: Vec<(String, Expr)> = Vec::new();
    let mut touched = moved.needs.clone();
    let mut summed: Vec<Instance> = Vec::new();
    numbers.before = Some(Vec::new());
    let mut covered: Vec<(i32, i32)> = Vec::new();
    for leaving in &moved.leaving {
        let mut bit = leaving.bit;
        covered.push((bit, bit + leaving.instance.bits()));
        let mut is_set = false;
        for &(field, width) in leaving.instance.fields() {
            let own = leaving.was.map(|was| bit + was - leaving.bit);
            let is_written = leave::bits(exit, bit, width).is_some();
            if numbers.arch == Arch::Tna
                && is_written
                && checksum::is_checksum(leaving.instance, field)
            {
                summed.push(leaving.instance);
                is_set = true;
                bit += i32::from(width);
                continue;
            }
            let value = leaves(numbers, exit, bit, width)?;
            let value = match (value, own) {
                (None, own) if own != Some(bit) => {
                    let data = numbers.data(bit as u16, width);
                    Some(data.ok_or_else(|| Lack::Write(format!("data[{bit}+{width}]")))?)
                }
                (value, _) => value,
            };
            let name = format!("hdr.{}.{field}", leaving.instance.name());
            bit += i32::from(width);
            let Some(value) = value else { continue };
            // What comes to be what it was is not written.
            if leaving.was.is_some() && value.text == name {
                continue;
            }
            is_set = true;
            set.push((name, value));
        }
        if is_set || leaving.was.is_none() {
            headers.insert(leaving.instance);
            touched.extend(placed.iter().position(|of| of.instance == leaving.instance));
        }
    }
    leave::covers(exit, &covered)?;
    for instance in summed {
        let header = placed.iter().find(|of| of.instance == instance);
        let header = header.ok_or_else(|| Lack::Write(format!("{}.checksum", instance.name())))?;
        let lies = |of| moved.leaving.iter().find(|at| at.instance == of).map(|at| at.bit);
        let add = checksum::added(numbers, exit, header, lies)?;
        let [_, (of_add, width), (of_set, _)] = checksum::metadata(instance);
        take(action, arguments, &of_add, width, add.into());
        action.body.push(format!("meta.{of_add} = {of_add};"));
        action.body.push(format!("meta.{of_set} = 1w1;"));
        action.writes.extend([of_add, of_set].map(|of| format!("meta.{of}")));
    }
    for at in touched {
        needs.extend(placed[at].needs.iter().cloned());
        headers.insert(placed[at].instance);
    }
    if let Some(length) = exit.writes.length {
        if numbers.arch == Arch::Tna {
            return Err(Lack::Cut);
        }
        let length = numbers.number(length, 32)?;
        action.reads.extend(length.reads.iter().cloned());
        need_all(placed, &length, needs, headers);
        action.body.push(format!("truncate({});", length.text));
    }
    // All is computed from what came in: what would be overwritten before is kept.
    let mut kept: Vec<String> = Vec::new();
    let mut written: BTreeSet<String> = BTreeSet::new();
    let mut lines = Vec::new();
    for (name, mut value) in set {
        for read in value.reads.clone() {
            if written.contains(&read) {
                let variable = format!("old_{}", read.replace('.', "_").trim_start_matches("hdr_"));
                let width = width_of(&read);
                let line = format!("bit<{width}> {variable} = {read};");
                if !kept.contains(&line) {
                    kept.push(line);
                }
                value.text = replaced(&value.text, &read, &variable);
            }
        }
        need_all(placed, &value, needs, headers);
        action.reads.extend(value.reads.iter().cloned());
        if value.is_constant() {
            let (_, parameter) = name.split_once('.').unwrap_or_default();
            let parameter = parameter.replace('.', "_");
            let constant = value.as_constant();
            take(action, arguments, &parameter, value.width, constant);
            lines.push(format!("{name} = {parameter};"));
        } else {
            lines.push(format!("{name} = {};", value.text));
        }
        written.insert(name);
    }
    action.writes.extend(written);
    action.body.extend(numbers.before.take().unwrap_or_default());
    action.body.extend(kept);
    let pushed = moved.leaving.iter().filter(|leaving| leaving.was.is_none());
    action
        .body
        .extend(pushed.map(|leaving| format!("hdr.{}.setValid();", leaving.instance.name())));
    action.body.extend(lines);
    action.body.extend(moved.gone.iter().map(|gone| format!("hdr.{}.setInvalid();", gone.name())));
    Ok(())
}

fn need_all(
    placed: &[Placed],
    value: &Expr,
    needs: &mut Vec<Need>,
    headers: &mut BTreeSet<Instance>,
) {
    for of in placed {
        let prefix = format!("hdr.{}.", of.instance.name());
        if value.reads.iter().any(|read| read.starts_with(&prefix)) {
            headers.insert(of.instance);
            needs.extend(of.needs.iter().cloned());
        }
    }
}

fn width_of(field: &str) -> u16 {
    let mut parts = field.split('.').skip(1);
    let (header, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let of = Instance::ALL.into_iter().find(|instance| instance.name() == header);
    let fields = of.map_or(&[][..], Instance::fields);
    fields.iter().find(|field| field.0 == name).map_or(1, |field| field.1)
}

/// A text with another name in the place of one.
fn replaced(text: &str, name: &str, by: &str) -> String {
    let mut all = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, behind) = (&rest[..at], &rest[at + name.len()..]);
        let goes_on = behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        all.push_str(before);
        all.push_str(if goes_on { name } else { by });
        rest = behind;
    }
    all + rest
}

/// Conditions of all packets that an exit's writes are done to.
pub(super) fn needs(numbers: &mut Numbers<'_>, step: StepId) -> Result<Vec<Need>, Lack> {
    let ir::program::Step::Exit(exit) = numbers.program.step(step) else { return Ok(Vec::new()) };
    action(numbers, exit, step.0, None).map(|done| done.needs)
}

/// The terms that an exit's writes are made from.
pub(super) fn terms(exit: &Exit) -> Vec<TermId> {
    exit.writes.bytes.iter().map(|write| write.value).chain(exit.writes.length).collect()
}
