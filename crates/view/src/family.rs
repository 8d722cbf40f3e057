//! Families of elements, told by what their models do.

use std::collections::HashSet;
use std::rc::Rc;

use dataplane::trace::Stage;
use elements::Element;
use elements::configure::Files;
use elements::element::Class;
use ir::field::Base;
use ir::model::{Block, StateKind};
use ir::{Cond, Expr, Field, FileId, Model, Op, Sources};
use net::Header;

/// What elements of a kind are called together, in the order in which they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Sources of packets.
    Sources,
    /// Sinks of packets.
    Sinks,
    /// Ethernet, VLAN and ARP headers.
    Link,
    /// IPv4 and transport headers.
    Ip,
    /// IPv6 headers.
    Ip6,
    /// Classification, routing and switching.
    Choice,
    /// Flows and address translation.
    Flows,
    /// Queues, scheduling and shaping.
    Storage,
    /// Annotations, counters and whole packets.
    Packet,
    /// All others that packets pass.
    Other,
    /// What packets do not pass.
    Control,
}

impl Family {
    /// What the family is called.
    pub fn title(self) -> &'static str {
        match self {
            Family::Sources => "Sources",
            Family::Sinks => "Sinks",
            Family::Link => "Ethernet, VLAN and ARP headers",
            Family::Ip => "IPv4 and transport headers",
            Family::Ip6 => "IPv6 headers",
            Family::Choice => "Classification, routing and switching",
            Family::Flows => "Flows and address translation",
            Family::Storage => "Queues, scheduling and shaping",
            Family::Packet => "Annotations, counters and whole packets",
            Family::Other => "Other",
            Family::Control => "Information and control",
        }
    }

    /// The family of a class.
    pub fn of(class: &Class) -> Family {
        let (inputs, outputs) = class.ports.split_once('/').unwrap_or((class.ports, "="));
        match (inputs, outputs) {
            ("0", "0") => return Family::Control,
            ("0", _) => return Family::Sources,
            (_, "0" | "0-1") => return Family::Sinks,
            _ => {}
        }
        match sample(class).map(|element| element.model()) {
            Some(model) if !model.is_opaque() => Self::by_model(&model),
            _ if class.processing.contains('l') => Family::Storage,
            _ if inputs == "0-" || outputs == "0-" => Family::Control,
            _ => Family::Other,
        }
    }

    fn by_model(model: &Model) -> Family {
        let mut met = Met::default();
        model.inputs.iter().for_each(|b| met.block(b));
        let touches = |base: Base| met.fields.iter().any(|f| f.base == base);
        let network = Base::Header(Header::Network);
        // Fields that only IPv6 has: its addresses, hop limit and next header.
        let v6 = |f: &Field| {
            f.base == network && matches!((f.offset, f.width), (64 | 192, 128) | (48 | 56, 8))
        };
        if model.state.iter().any(|s| matches!(s.kind, StateKind::Flows { .. })) {
            Family::Flows
        } else if met.chooses || met.ports.len() > 2 {
            Family::Choice
        } else if met.fields.iter().any(v6) {
            Family::Ip6
        } else if touches(network) || touches(Base::Header(Header::Transport)) || met.marks {
            Family::Ip
        } else if touches(Base::Data) || touches(Base::Header(Header::Mac)) {
            Family::Link
        } else {
            Family::Packet
        }
    }
}

/// There are no files: samples name none.
struct NoFiles;

impl Files for NoFiles {
    fn read(&mut self, _: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        Err(format!("{path}: not read"))
    }
}

/// An element under the first of the configurations that its law is tested with.
fn sample(class: &Class) -> Option<Box<dyn Element>> {
    let sample = class.samples.first()?;
    let mut text = format!("{}\nx :: {}({});\n", class.prelude, class.name, sample.config);
    (0..sample.inputs).for_each(|i| text += &format!("Idle -> [{i}] x;\n"));
    (0..sample.outputs).for_each(|o| text += &format!("x [{o}] -> Queue -> Idle;\n"));
    let mut sources = Sources::new();
    let file = sources.add(class.name, text);
    let mut files = NoFiles;
    let options = compiler::Options::default();
    let (chain, _) = compiler::elaborate(&mut sources, file, &options, &mut files);
    let chain = chain?;
    let mut made = compiler::instantiate(&chain, &mut sources, &mut files, &mut Vec::new())?;
    made.initialize(&chain, &mut sources, &mut files, &mut Stage(Rc::default()), &mut Vec::new());
    let x = chain.find("x")?;
    Some(made.elements.swap_remove(x))
}

/// What a walk through a model meets.
#[derive(Default)]
struct Met {
    fields: Vec<Field>,
    ports: HashSet<u128>,
    /// It chooses a port by rules, a table or a computed number.
    chooses: bool,
    /// It marks headers.
    marks: bool,
}

impl Met {
    /// A place whose offset the configuration or the packet decides says little unless it lies in
    /// a header.
    fn somewhere(&mut self, base: Base) {
        if matches!(base, Base::Header(_)) {
            self.fields.push(Field::bits(base, 0, 1));
        }
    }

    fn block(&mut self, block: &Block) {
        block.iter().for_each(|op| self.op(op));
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Let(_, e) | Op::Truncate(e) | Op::Extend(e) | Op::Pull(e) => self.expr(e),
            Op::Set(field, e) => {
                self.fields.push(*field);
                self.expr(e);
            }
            Op::Store { base, offset, value, .. } => {
                self.somewhere(*base);
                self.expr(offset);
                self.expr(value);
            }
            Op::Expect(cond) => self.cond(cond),
            Op::If(cond, then, otherwise) => {
                self.cond(cond);
                self.block(then);
                self.block(otherwise);
            }
            Op::Match { rules, arms, otherwise } => {
                self.chooses = true;
                rules.iter().for_each(|r| self.cond(&r.when));
                arms.iter().for_each(|a| self.block(a));
                self.block(otherwise);
            }
            Op::Lookup { miss, .. } => {
                self.chooses = true;
                self.block(miss);
            }
            Op::Repeat { body, .. } => self.block(body),
            Op::Mark(header, e) => {
                self.marks |= *header != Header::Mac;
                self.expr(e);
            }
            Op::FlowLookup { miss, .. } => self.block(miss),
            Op::EmitCopy(port) | Op::Emit(port) => match port {
                Expr::Const(port) => {
                    self.ports.insert(*port);
                }
                _ => self.chooses = true,
            },
            _ => {}
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Field(field) => self.fields.push(*field),
            Expr::Load { base, offset, .. } => {
                self.somewhere(*base);
                self.expr(offset);
            }
            Expr::Binary(_, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            Expr::Choose(cond, a, b) => {
                self.cond(cond);
                self.expr(a);
                self.expr(b);
            }
            Expr::Sum16 { base, .. } | Expr::ByteSum { base, .. } => self.somewhere(*base),
            _ => {}
        }
    }

    fn cond(&mut self, cond: &Cond) {
        match cond {
            Cond::Test(e, _) => self.expr(e),
            Cond::Compare(_, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            Cond::All(all) | Cond::Any(all) => all.iter().for_each(|c| self.cond(c)),
            Cond::Not(inner) => self.cond(inner),
            Cond::Const(_) | Cond::FlowExists(..) => {}
        }
    }
}
