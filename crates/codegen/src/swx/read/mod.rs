//! Reader: a specification with the entries of its tables as programs, by symbolic execution.
//!
//! Jumps lead forward only, so a packet takes every instruction once at most. States of a packet that agree in all that is
//! read later are one, and become one step. Taken for granted is that headers are not cut off: what is read of those that are is not
//! known there. A path that reads what was never written, or a header that is not there, may do anything, and is read as a
//! drop that no class counts.

mod code;
mod graph;
mod machine;

use ir::Program;

use super::{SPEC, entries_of, spec};
use crate::{Device, File, Unread};
use spec::Failure;

/// Reads what [`super::emit`] wrote, or people changed.
pub(super) fn read(files: &[File], device: &Device<'_>) -> Result<Vec<Program>, Unread> {
    let text = |name: &str| {
        let fail = |message: &str| Unread { file: name.into(), line: 0, message: message.into() };
        let file =
            files.iter().find(|file| file.name == name).ok_or_else(|| fail("it is missing"))?;
        std::str::from_utf8(&file.contents).map_err(|_| fail("it is no UTF-8"))
    };
    let unread = |(line, message): Failure| Unread { file: SPEC.into(), line, message };
    let read = spec::Spec::read(text(SPEC)?).map_err(unread)?;
    let mut code = code::Code::new(&read).map_err(unread)?;
    for (at, table) in read.tables.iter().enumerate() {
        let file = entries_of(&table.name);
        let entries = spec::entries(text(&file)?).and_then(|all| code.fill(&read, at, all));
        entries.map_err(|(line, message)| Unread { file, line, message })?;
    }
    let mut all = Vec::new();
    let mut base = 0;
    for segment in &device.segments {
        let mut found: Option<Program> = None;
        for &port in &segment.ingress {
            let program = graph::program(&code, port, segment, base, device).map_err(unread)?;
            match &found {
                None => found = Some(program),
                Some(other) if other.steps == program.steps && other.terms == program.terms => {}
                Some(_) => {
                    let first = segment.ingress[0];
                    let message = format!("ports {first} and {port} are treated differently");
                    return Err(unread((0, message)));
                }
            }
        }
        all.push(found.ok_or_else(|| unread((0, "a segment has no port".into())))?);
        base += segment.program.steps.len() as u32;
    }
    for &port in device.egress.values() {
        graph::back(&code, port, device).map_err(unread)?;
    }
    Ok(all)
}
