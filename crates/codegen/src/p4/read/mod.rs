//! Reader: a P4 program with its entries as programs, by symbolic execution.
//!
//! Text of the subset is read whoever wrote it. The parser is executed only as far as what follows asks for; states of a
//! packet that agree in all that is read later are one, and become one step. Taken for granted is that frames have an
//! Ethernet header, and 60 bytes on a Tofino's ports; what BMv2 does with headers that are cut off is that they
//! are not extracted. Whatever depends on a field that is not there is refused.

mod code;
mod deparser;
mod entries;
mod graph;
mod lexer;
mod lookup;
mod machine;
mod output;
mod parser;
mod syntax;
mod walk;

use std::collections::HashMap;
use std::rc::Rc;

use ir::Program;

use super::{Arch, COMMANDS, ENTRIES, PROGRAM};
use crate::symbolic::terms::Terms;
use crate::{Device, File, Unread};
use deparser::Deparser;
use entries::Entry;
use lexer::Failure;
use machine::{Machine, Root, Scope};
use parser::Parsing;
use syntax::{Control, Expr, Source, Statement, Type};

/// Statements that are executed for one port.
const BUDGET: usize = 1 << 24;

/// The names of a control's parameters, which are of these types; any type where there is none.
fn scope(control: &Control, of: &[(Root, &str)]) -> Result<Scope, Failure> {
    if control.parameters.len() != of.len() {
        return Err((control.line, format!("it has to have {} parameters", of.len())));
    }
    let mut scope = Scope::new();
    for ((kind, name), (root, expected)) in control.parameters.iter().zip(of) {
        if !expected.is_empty() && kind != expected {
            return Err((control.line, format!("'{name}' has to be of type {expected}")));
        }
        if scope.insert(name.clone(), *root).is_some() {
            return Err((control.line, format!("'{name}' is declared twice")));
        }
    }
    Ok(scope)
}

/// The controls that a program is made of.
struct Parts<'a> {
    parser: &'a Control,
    verify: Option<&'a Control>,
    ingress: &'a Control,
    ingress_name: &'a str,
    deparser: &'a Control,
}

impl<'a> Parts<'a> {
    fn of(arch: Arch, source: &'a Source) -> Result<Self, Failure> {
        let instance = |name: &str| {
            source.instances.get(name).ok_or_else(|| (0, format!("there is no '{name}'")))
        };
        let main = instance("main")?;
        let (package, of, count) = match arch {
            Arch::V1model => ("V1Switch", main, 6),
            Arch::Tna => {
                let [pipe] = &main.1[..] else { return Err((0, "'main' has one pipe".into())) };
                if main.0 != "Switch" {
                    return Err((0, "'main' has to be a Switch".into()));
                }
                ("Pipeline", instance(pipe)?, 6)
            }
        };
        if of.0 != package || of.1.len() != count {
            return Err((0, format!("a {package} of {count} parts was expected")));
        }
        let control = |at: usize| {
            let name = &of.1[at];
            source.controls.get(name).ok_or_else(|| (0, format!("there is no '{name}'")))
        };
        let idle = |at: usize| match control(at)? {
            control if control.apply.is_empty() => Ok(()),
            control => Err((control.line, "it has to do nothing".to_string())),
        };
        match arch {
            Arch::V1model => {
                idle(3)?;
                idle(4)?;
                Ok(Self {
                    parser: control(0)?,
                    verify: Some(control(1)?),
                    ingress: control(2)?,
                    ingress_name: &of.1[2],
                    deparser: control(5)?,
                })
            }
            Arch::Tna => {
                idle(4)?;
                idle(5)?;
                let egress = control(3)?;
                if egress.states.iter().any(|state| state.statements.len() > 1) {
                    return Err((
                        egress.line,
                        "the egress parser extracts nothing of the packet".into(),
                    ));
                }
                Ok(Self {
                    parser: control(0)?,
                    verify: None,
                    ingress: control(1)?,
                    ingress_name: &of.1[1],
                    deparser: control(2)?,
                })
            }
        }
    }
}

/// The checksum that is verified.
type Verified = Option<(Scope, Expr, Vec<Expr>, Vec<String>)>;

fn verified(control: &Control, scope: Scope) -> Result<Verified, Failure> {
    match &control.apply[..] {
        [] => Ok(None),
        [Statement::Call(line, path, arguments)] => match (&path[..], &arguments[..]) {
            ([name], [when, Expr::List(fields), Expr::Path(with), Expr::Path(how)])
                if name == "verify_checksum" && how[..] == ["HashAlgorithm", "csum16"] =>
            {
                match scope.get(&with[0]) {
                    Some(Root::Metadata) => {
                        Ok(Some((scope, when.clone(), fields.clone(), with.clone())))
                    }
                    _ => Err((*line, "a checksum is compared with metadata".into())),
                }
            }
            _ => Err((*line, "'verify_checksum' with csum16 was expected".into())),
        },
        _ => Err((control.line, "at most one checksum is verified".into())),
    }
}

const STANDARD: &str = "standard_metadata_t";

/// Parameters of the parser, of the ingress control and of the deparser.
fn parameters(arch: Arch) -> [&'static [(Root, &'static str)]; 3] {
    use Root::{ForDeparser, ForTm, FromParser, Headers, Intrinsic, Metadata, Packet, Standard};
    match arch {
        Arch::V1model => [
            &[(Packet, "packet_in"), (Headers, ""), (Metadata, ""), (Standard, STANDARD)],
            &[(Headers, ""), (Metadata, ""), (Standard, STANDARD)],
            &[(Packet, "packet_out"), (Headers, "")],
        ],
        Arch::Tna => [
            &[
                (Packet, "packet_in"),
                (Headers, ""),
                (Metadata, ""),
                (Intrinsic, "ingress_intrinsic_metadata_t"),
            ],
            &[
                (Headers, ""),
                (Metadata, ""),
                (Intrinsic, "ingress_intrinsic_metadata_t"),
                (FromParser, "ingress_intrinsic_metadata_from_parser_t"),
                (ForDeparser, "ingress_intrinsic_metadata_for_deparser_t"),
                (ForTm, "ingress_intrinsic_metadata_for_tm_t"),
            ],
            &[
                (Packet, "packet_out"),
                (Headers, ""),
                (Metadata, ""),
                (ForDeparser, "ingress_intrinsic_metadata_for_deparser_t"),
            ],
        ],
    }
}

/// Reads what [`super::emit`] wrote, or people changed.
pub(super) fn read(
    arch: Arch,
    files: &[File],
    device: &Device<'_>,
) -> Result<Vec<Program>, Unread> {
    let file = |name: &str| {
        let file = files.iter().find(|file| file.name == name);
        file.map(|file| &file.contents[..]).ok_or_else(|| Unread {
            file: name.into(),
            line: 0,
            message: "it is missing".into(),
        })
    };
    let unread = |(line, message): Failure| Unread { file: PROGRAM.into(), line, message };
    let text =
        std::str::from_utf8(file(PROGRAM)?).map_err(|_| unread((0, "it is no UTF-8".into())))?;
    let source = syntax::source(text).map_err(unread)?;
    let parts = Parts::of(arch, &source).map_err(unread)?;
    let reading = Reading::new(arch, &source, &parts).map_err(unread)?;
    let mut machine = reading.machine(&[], device.cores, None);
    let widths = machine.widths().map_err(unread)?;
    let name = parts.ingress_name;
    // Who loads entries by P4Runtime needs no commands.
    let commands = files.iter().find(|file| file.name == COMMANDS);
    let commands = commands.map(|file| &file.contents[..]);
    let entries = entries::entries(file(ENTRIES)?, commands, parts.ingress, &widths, name)?;
    let mut all = Vec::new();
    let mut base = 0;
    for segment in &device.segments {
        let mut found: Option<Program> = None;
        for &port in &segment.ingress {
            let machine = reading.machine(&entries, port, Some(&segment.program));
            let program = graph::program(machine, &reading.deparser.emitted, segment, base, device)
                .map_err(unread)?;
            match &found {
                None => found = Some(program),
                Some(other) if other.steps == program.steps && other.terms == program.terms => {}
                Some(_) => {
                    let message =
                        format!("ports {} and {port} are treated differently", segment.ingress[0]);
                    return Err(unread((0, message)));
                }
            }
        }
        all.push(found.ok_or_else(|| unread((0, "a segment has no port".into())))?);
        base += segment.program.steps.len() as u32;
    }
    reading.check_back(&entries, device).map_err(unread)?;
    Ok(all)
}

/// A program that is read.
struct Reading<'a> {
    arch: Arch,
    source: &'a Source,
    control: &'a Control,
    scopes: [Scope; 2],
    headers: Vec<parser::Header>,
    metadata: HashMap<String, u16>,
    parsing: Rc<Parsing>,
    verified: Verified,
    deparser: Deparser,
}

impl<'a> Reading<'a> {
    fn new(arch: Arch, source: &'a Source, parts: &Parts<'a>) -> Result<Self, Failure> {
        let [of_parser, of_ingress, of_deparser] = parameters(arch);
        let parser_scope = scope(parts.parser, of_parser)?;
        let ingress_scope = scope(parts.ingress, of_ingress)?;
        let deparser_scope = scope(parts.deparser, of_deparser)?;
        // All speak of the same headers and metadata.
        let kind = |control: &'a Control, all: &[(Root, &str)], root: Root| {
            let at = all.iter().position(|of| of.0 == root)?;
            Some(&control.parameters[at].0)
        };
        let headers = kind(parts.ingress, of_ingress, Root::Headers);
        let metadata = kind(parts.ingress, of_ingress, Root::Metadata);
        let same = kind(parts.parser, of_parser, Root::Headers) == headers
            && kind(parts.parser, of_parser, Root::Metadata) == metadata
            && kind(parts.deparser, of_deparser, Root::Headers) == headers;
        let (Some(headers), Some(metadata), true) = (headers, metadata, same) else {
            return Err((parts.ingress.line, "parser and controls have other headers".into()));
        };
        let headers = parser::headers(source, headers)?;
        let fields =
            source.structs.get(metadata).ok_or_else(|| (0, format!("there is no '{metadata}'")))?;
        let width = |(name, of): &(String, Type)| match of {
            Type::Bits(width) => Ok((name.clone(), *width)),
            Type::Named(_) => Err((0, format!("'{name}' has no width"))),
        };
        let metadata = fields.iter().map(width).collect::<Result<HashMap<_, _>, _>>()?;
        let parameter = |at: usize| parts.parser.parameters[at].1.as_str();
        let parsing = Parsing::new(arch, parts.parser, &headers, parameter(0), parameter(1))?;
        let verified = match parts.verify {
            Some(control) => {
                let of = scope(control, &[(Root::Headers, ""), (Root::Metadata, "")])?;
                verified(control, of)?
            }
            None => None,
        };
        let deparser = Deparser::new(parts.deparser, &deparser_scope, &headers)?;
        let emitted = &deparser.emitted;
        // What the parser was not asked for leaves as it came in.
        let place = |header: usize| emitted.iter().position(|of| *of == header);
        for (first, then) in parsing.orders() {
            if first == then || place(first).is_none() || place(first) >= place(then) {
                let name = &headers[then].name;
                return Err((
                    parts.deparser.line,
                    format!("'{name}' does not leave where it came in"),
                ));
            }
        }
        Ok(Self {
            arch,
            source,
            control: parts.ingress,
            scopes: [parser_scope, ingress_scope],
            headers,
            metadata,
            parsing: Rc::new(parsing),
            verified,
            deparser,
        })
    }

    fn machine<'m>(
        &'m self,
        entries: &'m [Vec<Entry>],
        port: u32,
        of: Option<&'m Program>,
    ) -> Machine<'m> {
        Machine {
            arch: self.arch,
            terms: Terms::new(of.map_or_else(Vec::new, |of| of.terms.clone())),
            of,
            headers: self.headers.clone(),
            metadata: self.metadata.clone(),
            constants: &self.source.constants,
            parsing: Rc::clone(&self.parsing),
            control: self.control,
            scope: self.scopes[1].clone(),
            parser_scope: self.scopes[0].clone(),
            verified: self.verified.clone(),
            code: Vec::new(),
            live: Vec::new(),
            entries,
            updates: &self.deparser.updates,
            port,
            budget: BUDGET,
        }
    }

    /// The return path: a frame from the cores leaves, without its tag, by the port that the tag names.
    fn check_back(&self, entries: &[Vec<Entry>], device: &Device<'_>) -> Result<(), Failure> {
        for &port in device.egress.values() {
            let machine = self.machine(entries, device.cores, None);
            graph::back(machine, &self.deparser.emitted, port)?;
        }
        Ok(())
    }
}
