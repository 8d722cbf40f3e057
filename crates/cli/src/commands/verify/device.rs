//! Whether what a device is given, and what cores go on with, do what a chain does.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use codegen::File;
use compiler::partition::Divided;
use compiler::prove::{Compared, Difference, Fate, Observation, Verdict};
use serde_json::{Value, json};

use super::report::{clipped, described, hex};
use super::{UNDECIDED, Verify};
use crate::commands::compile::Device;
use crate::failure::Failure;
use crate::terminal::print;

/// The files of an artefact.
fn artefact(folder: &Path) -> Result<Vec<File>, String> {
    let failed = |why: std::io::Error| format!("{}: {why}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            files.push(File { name, contents: fs::read(entry.path()).map_err(failed)? });
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Runs the command for devices.
pub(super) fn run(
    args: &Verify,
    device: &Device,
    file: &str,
    variables: &[String],
) -> Result<ExitCode, Failure> {
    let files = args.artefact.as_deref().map(artefact).transpose()?;
    let (mut status, mut documents) = (0, Vec::new());
    let (loaded, sites) = device.sites(&args.limits, variables, file)?;
    for sited in sites {
        let target = sited.target;
        let compiled = sited.compile(&loaded, files.clone())?;
        for part in &compiled.parts {
            let verdict = &part.proof.together.verdict;
            let one = match verdict {
                Verdict::Equal => 0,
                Verdict::Different(_) => 1,
                Verdict::Unproven(_) => UNDECIDED,
            };
            // A difference outweighs what could not be shown.
            status = if status == 1 || one == 1 { 1 } else { status.max(one) };
            match args.json {
                true => documents.push(json(target.label(), part)),
                false => print(&text(target.label(), part)),
            }
        }
    }
    if args.json {
        print(&format!("{:#}\n", Value::Array(documents)));
    }
    Ok(ExitCode::from(status))
}

fn text(target: &str, part: &Divided) -> String {
    let mut text = format!("{} → {target}: ", part.wires.join(", "));
    match &part.proof.together.verdict {
        Verdict::Equal => {
            text += "what the device is given and what cores go on with are proven to do what the chain does\n";
        }
        Verdict::Unproven(why) => text += &format!("neither proven nor refuted: {why}\n"),
        Verdict::Different(difference) => {
            text += "DIFFERENT\n";
            show(&mut text, difference);
        }
    }
    match &part.proof.untrusted {
        Some(Compared { verdict: Verdict::Different(difference), .. }) => {
            text += "where frames are not what --trust states, it differs:\n";
            show(&mut text, difference);
        }
        Some(Compared { verdict: Verdict::Equal, .. }) => {
            text += "without --trust it would be so, too\n";
        }
        Some(Compared { verdict: Verdict::Unproven(why), .. }) => {
            text += &format!(
                "how it differs where frames are not what --trust states is not known: {why}\n"
            );
        }
        None => {}
    }
    text
}

fn show(text: &mut String, difference: &Difference) {
    let frame = &difference.packet.frame;
    *text += &format!("  packet {}\n    {}\n", clipped(described(frame)), clipped(hex(frame)));
    for (who, seen) in [("the chain", &difference.a), ("device and cores", &difference.b)] {
        *text += &format!("  {who}: {}\n", said(seen));
    }
}

fn said(seen: &Observation) -> String {
    let said = |fate: &Fate| match fate {
        Fate::Arrived(queue, packet) => {
            format!("sends to '{}': {}", queue.element, clipped(described(&packet.frame)))
        }
        Fate::Dropped(element, reason, _) => format!("drops at '{element}' as {reason}"),
        Fate::Fault(why) => why.clone(),
    };
    seen.fates.iter().map(said).collect::<Vec<_>>().join("; then ")
}

fn json(target: &str, part: &Divided) -> Value {
    let shown = |difference: &Difference| {
        json!({
            "packet": hex(&difference.packet.frame),
            "chain": said(&difference.a),
            "device_and_cores": said(&difference.b),
        })
    };
    let one = |compared: &Compared| match &compared.verdict {
        Verdict::Equal => json!({ "verdict": "equal" }),
        Verdict::Unproven(why) => json!({ "verdict": "undecided", "why": why }),
        Verdict::Different(difference) => {
            json!({ "verdict": "different", "difference": shown(difference) })
        }
    };
    json!({
        "target": target,
        "wires": part.wires,
        "together": one(&part.proof.together),
        "without_trust": part.proof.untrusted.as_ref().map(one),
    })
}
