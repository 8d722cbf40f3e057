//! Instructions with their names resolved, and the entries of tables.

use std::collections::{BTreeSet, HashMap};

use ir::model::{BinaryOp, CompareOp};

use super::super::spec::{self, Failure, Match, Spec};

/// Bits of the headers of a packet.
const MOST_BITS: u32 = 1 << 13;

/// What is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A field of a header.
    Header(usize, usize),
    Meta(usize),
    Argument(usize),
    Number(u64),
}

/// What an instruction does; jumps have the index of the instruction that they lead to.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Receive(usize),
    Send(Operand),
    Drop,
    Extract(usize),
    Emit(usize),
    Validate(usize),
    Invalidate(usize),
    Move(Operand, Operand),
    Compute(BinaryOp, Operand, Operand),
    Count(Operand),
    Table(usize),
    Jump(usize),
    JumpValid(usize, usize, bool),
    JumpIf(CompareOp, usize, Operand, Operand),
    /// Whether the table before matched, or not.
    JumpHit(usize, bool),
    Return,
}

/// A header: its name, its fields, and its bits.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) fields: Vec<(String, u16)>,
    pub(super) bits: u32,
}

/// An entry: value and mask of each key.
pub(super) struct Entry {
    pub(super) line: usize,
    pub(super) matches: Vec<(u128, u128)>,
    pub(super) action: usize,
    pub(super) arguments: Vec<u128>,
}

pub(super) struct Table {
    pub(super) name: String,
    /// Metadata, and whether all bits count.
    pub(super) keys: Vec<(usize, Match)>,
    pub(super) actions: Vec<usize>,
    pub(super) default: usize,
    pub(super) entries: Vec<Entry>,
}

pub(super) struct Action {
    pub(super) arguments: Vec<(String, u16)>,
    pub(super) ops: Vec<(usize, Op)>,
}

/// What a specification says.
pub(super) struct Code {
    pub(super) headers: Vec<Header>,
    pub(super) metadata: Vec<(String, u16)>,
    pub(super) actions: Vec<Action>,
    pub(super) tables: Vec<Table>,
    /// Instructions and their lines.
    pub(super) ops: Vec<(usize, Op)>,
    /// By instruction: metadata that are read there or behind, and whether headers may still be extracted.
    pub(super) live: Vec<BTreeSet<usize>>,
    pub(super) parses: Vec<bool>,
}

fn position<T>(
    all: &[T],
    is: impl Fn(&T) -> bool,
    what: &str,
    name: &str,
) -> Result<usize, String> {
    all.iter().position(is).ok_or_else(|| format!("there is no {what} '{}'", name.escape_debug()))
}

/// Names that instructions resolve.
struct Names<'a> {
    headers: &'a [Header],
    metadata: &'a [(String, u16)],
    arguments: &'a [(String, u16)],
    tables: Vec<&'a str>,
    registers: Vec<&'a str>,
    labels: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn new(
        spec: &'a Spec,
        headers: &'a [Header],
        metadata: &'a [(String, u16)],
        arguments: &'a [(String, u16)],
    ) -> Self {
        let tables = spec.tables.iter().map(|table| table.name.as_str()).collect();
        let registers = spec.registers.iter().map(|of| of.name.as_str()).collect();
        Self { headers, metadata, arguments, tables, registers, labels: HashMap::new() }
    }

    fn header(&self, of: &str) -> Result<usize, String> {
        let name = of.strip_prefix("h.").unwrap_or_default();
        position(self.headers, |header| header.name == name, "header", of)
    }

    fn meta(&self, of: &str) -> Result<usize, String> {
        let name = of.strip_prefix("m.").unwrap_or_default();
        position(self.metadata, |field| field.0 == name, "metadata field", of)
    }

    fn operand(&self, of: &str) -> Result<Operand, String> {
        if let Some(number) = spec::number(of) {
            let number =
                u64::try_from(number).map_err(|_| format!("{of} has more than 64 bits"))?;
            return Ok(Operand::Number(number));
        }
        let parts: Vec<&str> = of.split('.').collect();
        match parts[..] {
            ["m", _] => self.meta(of).map(Operand::Meta),
            ["t", name] => position(self.arguments, |field| field.0 == name, "argument", of)
                .map(Operand::Argument),
            ["h", header, field] => {
                let header =
                    position(self.headers, |known| known.name == header, "header", header)?;
                let fields = &self.headers[header].fields;
                let field = position(fields, |known| known.0 == field, "field", of)?;
                Ok(Operand::Header(header, field))
            }
            _ => Err(format!("'{}' is no operand", of.escape_debug())),
        }
    }

    fn width(&self, of: Operand) -> Option<u16> {
        match of {
            Operand::Header(header, field) => Some(self.headers[header].fields[field].1),
            Operand::Meta(field) => Some(self.metadata[field].1),
            Operand::Argument(field) => Some(self.arguments[field].1),
            Operand::Number(_) => None,
        }
    }

    fn target(&self, of: Operand) -> Result<Operand, String> {
        match of {
            Operand::Header(..) | Operand::Meta(_) => Ok(of),
            _ => Err("a field of a header or of the metadata was expected".into()),
        }
    }

    /// Operands to compute with: more than 64 bits are moved only.
    fn narrow(&self, all: [Operand; 2]) -> Result<[Operand; 2], String> {
        match all.iter().all(|of| self.width(*of).is_none_or(|width| width <= 64)) {
            true => Ok(all),
            false => Err("more than 64 bits are not computed with".into()),
        }
    }

    fn label(&self, of: &str, at: usize) -> Result<usize, String> {
        let to = self
            .labels
            .get(of)
            .ok_or_else(|| format!("there is no label '{}'", of.escape_debug()))?;
        if *to > at { Ok(*to) } else { Err("a jump leads back".into()) }
    }

    fn op(&self, words: &[&str], at: usize) -> Result<Op, String> {
        let two = |a: &str, b: &str| -> Result<[Operand; 2], String> {
            Ok([self.operand(a)?, self.operand(b)?])
        };
        Ok(match *words {
            ["rx", port] => Op::Receive(self.meta(port)?),
            ["tx", port] => Op::Send(self.operand(port)?),
            ["drop"] => Op::Drop,
            ["return"] => Op::Return,
            ["extract", header] => Op::Extract(self.header(header)?),
            ["emit", header] => Op::Emit(self.header(header)?),
            ["validate", header] => Op::Validate(self.header(header)?),
            ["invalidate", header] => Op::Invalidate(self.header(header)?),
            ["mov", to, from] => {
                let [to, from] = two(to, from)?;
                let to = self.target(to)?;
                let widths = (self.width(to).unwrap_or(64), self.width(from).unwrap_or(64));
                if (widths.0 > 64 || widths.1 > 64) && widths.0 != widths.1 {
                    return Err("more than 64 bits are moved as a whole".into());
                }
                Op::Move(to, from)
            }
            [name @ ("add" | "sub" | "and" | "or" | "xor" | "shl" | "shr"), to, from] => {
                let op = match name {
                    "add" => BinaryOp::Add,
                    "sub" => BinaryOp::Sub,
                    "and" => BinaryOp::And,
                    "or" => BinaryOp::Or,
                    "xor" => BinaryOp::Xor,
                    "shl" => BinaryOp::Shl,
                    _ => BinaryOp::Shr,
                };
                let [to, from] = self.narrow(two(to, from)?)?;
                Op::Compute(op, self.target(to)?, from)
            }
            ["regadd", registers, number, "0x1" | "1"] => {
                position(
                    &self.registers,
                    |known| *known == registers,
                    "register array",
                    registers,
                )?;
                Op::Count(self.operand(number)?)
            }
            ["table", table] => {
                Op::Table(position(&self.tables, |known| *known == table, "table", table)?)
            }
            ["jmp", to] => Op::Jump(self.label(to, at)?),
            [name @ ("jmph" | "jmpnh"), to] => Op::JumpHit(self.label(to, at)?, name == "jmph"),
            [name @ ("jmpv" | "jmpnv"), to, header] => {
                Op::JumpValid(self.label(to, at)?, self.header(header)?, name == "jmpv")
            }
            [name @ ("jmpeq" | "jmpneq" | "jmplt" | "jmpgt"), to, a, b] => {
                let op = match name {
                    "jmpeq" => CompareOp::Eq,
                    "jmpneq" => CompareOp::Ne,
                    "jmplt" => CompareOp::Lt,
                    _ => CompareOp::Gt,
                };
                let [a, b] = self.narrow(two(a, b)?)?;
                Op::JumpIf(op, self.label(to, at)?, self.target(a)?, b)
            }
            _ => return Err("this instruction is not known".into()),
        })
    }
}

impl Code {
    pub(super) fn new(spec: &Spec) -> Result<Self, Failure> {
        let nowhere = |message: String| (0, message);
        let fields = |of: &str| {
            let found = spec.structs.iter().find(|known| known.name == of);
            found
                .map(|known| known.fields.clone())
                .ok_or_else(|| nowhere(format!("there is no struct '{of}'")))
        };
        let mut headers = Vec::new();
        for (name, of) in &spec.headers {
            let fields = fields(of)?;
            let bits = fields.iter().map(|field| u32::from(field.1)).sum();
            if bits > MOST_BITS {
                return Err(nowhere(format!("'{name}' has {bits} bits")));
            }
            headers.push(Header { name: name.clone(), fields, bits });
        }
        let metadata = fields(&spec.metadata)?;
        let mut actions = Vec::new();
        for action in &spec.actions {
            let arguments = match &action.arguments {
                Some(of) => fields(of)?,
                None => Vec::new(),
            };
            let mut ops = Vec::new();
            for of in &action.instructions {
                let words: Vec<&str> = of.text.split(' ').collect();
                let op = Names::new(spec, &headers, &metadata, &arguments)
                    .op(&words, 0)
                    .map_err(|why| (of.line, why))?;
                if !matches!(op, Op::Move(..) | Op::Compute(..) | Op::Return) {
                    return Err((of.line, "actions compute only".into()));
                }
                ops.push((of.line, op));
            }
            if !matches!(ops.last(), Some((_, Op::Return))) {
                return Err((action.line, "an action ends with 'return'".into()));
            }
            actions.push(Action { arguments, ops });
        }
        let mut tables = Vec::new();
        for table in &spec.tables {
            let fail = |why: String| (table.line, why);
            let action = |of: &String| {
                position(&spec.actions, |known| known.name == *of, "action", of).map_err(fail)
            };
            let own = table.actions.iter().map(action).collect::<Result<Vec<_>, _>>()?;
            let default = action(&table.default)?;
            if !own.contains(&default) || spec.actions[default].arguments.is_some() {
                return Err(fail("its default action is one of its own, without arguments".into()));
            }
            let key = |(name, kind): &(String, Match)| {
                Names::new(spec, &headers, &metadata, &[])
                    .meta(name)
                    .map(|field| (field, *kind))
                    .map_err(fail)
            };
            let keys = table.keys.iter().map(key).collect::<Result<Vec<_>, _>>()?;
            let kinds: BTreeSet<bool> = keys.iter().map(|key| key.1 == Match::Exact).collect();
            if kinds.len() != 1 {
                return Err(fail("some of its keys are exact".into()));
            }
            let name = table.name.clone();
            tables.push(Table { name, keys, actions: own, default, entries: Vec::new() });
        }
        let mut labelled = Names::new(spec, &headers, &metadata, &[]);
        let mut lines: Vec<(usize, Vec<&str>)> = Vec::new();
        for of in &spec.instructions {
            let words: Vec<&str> = of.text.split(' ').collect();
            let words = match words[..] {
                [label, ":", ..] => {
                    if labelled.labels.insert(label, lines.len()).is_some() {
                        return Err((of.line, format!("there are two labels '{label}'")));
                    }
                    words[2..].to_vec()
                }
                _ => words,
            };
            lines.push((of.line, words));
        }
        let mut ops = Vec::new();
        for (at, (line, words)) in lines.into_iter().enumerate() {
            let op = labelled.op(&words, at).map_err(|why| (line, why))?;
            if let Op::Return = op {
                return Err((line, "'return' ends actions".into()));
            }
            ops.push((line, op));
        }
        let mut code =
            Self { headers, metadata, actions, tables, ops, live: Vec::new(), parses: Vec::new() };
        code.look_back();
        Ok(code)
    }

    /// Finds what is read behind each instruction.
    fn look_back(&mut self) {
        let count = self.ops.len();
        self.live = vec![BTreeSet::new(); count + 1];
        self.parses = vec![false; count + 1];
        let meta = |of: &Operand| if let Operand::Meta(field) = of { Some(*field) } else { None };
        for at in (0..count).rev() {
            let mut live = self.live[at + 1].clone();
            let mut parses = self.parses[at + 1];
            match &self.ops[at].1 {
                Op::Drop => (live, parses) = (BTreeSet::new(), false),
                Op::Send(port) => {
                    live = meta(port).into_iter().collect();
                    parses = false;
                }
                Op::Receive(field) => drop(live.remove(field)),
                Op::Extract(_) => parses = true,
                Op::Move(to, from) => {
                    meta(to).map(|field| live.remove(&field));
                    live.extend(meta(from));
                }
                Op::Compute(_, to, from) => live.extend([to, from].into_iter().filter_map(meta)),
                Op::Count(number) => live.extend(meta(number)),
                Op::Table(table) => {
                    let table = &self.tables[*table];
                    live.extend(table.keys.iter().map(|key| key.0));
                    for (_, op) in
                        table.actions.iter().flat_map(|action| &self.actions[*action].ops)
                    {
                        match op {
                            Op::Move(_, from) => live.extend(meta(from)),
                            Op::Compute(_, to, from) => {
                                live.extend([to, from].into_iter().filter_map(meta));
                            }
                            _ => {}
                        }
                    }
                }
                Op::Jump(to) => {
                    live = self.live[*to].clone();
                    parses = self.parses[*to];
                }
                Op::JumpValid(to, ..) | Op::JumpHit(to, _) => {
                    live.extend(&self.live[*to]);
                    parses |= self.parses[*to];
                }
                Op::JumpIf(_, to, a, b) => {
                    live.extend(&self.live[*to]);
                    live.extend([a, b].into_iter().filter_map(meta));
                    parses |= self.parses[*to];
                }
                Op::Emit(_) | Op::Validate(_) | Op::Invalidate(_) | Op::Return => {}
            }
            self.live[at] = live;
            self.parses[at] = parses;
        }
    }

    /// Gives a table its entries.
    ///
    /// # Errors
    /// An entry that the library would refuse, or two of which it is not said which comes first.
    pub(super) fn fill(
        &mut self,
        spec: &Spec,
        at: usize,
        all: Vec<spec::TableEntry>,
    ) -> Result<(), Failure> {
        let table = &self.tables[at];
        let is_exact = table.keys.iter().any(|key| key.1 == Match::Exact);
        let mut filled: Vec<(u32, Entry)> = Vec::with_capacity(all.len());
        for entry in all {
            let fail = |why: String| (entry.line, why);
            let action = position(
                &spec.actions,
                |known| known.name == entry.action,
                "action",
                &entry.action,
            );
            let action = action.map_err(fail)?;
            if !table.actions.contains(&action) {
                return Err(fail(format!("the table has no action '{}'", entry.action)));
            }
            if entry.matches.len() != table.keys.len() {
                return Err(fail(format!("'{}' has {} keys", table.name, table.keys.len())));
            }
            let keys = table.keys.iter().map(|(field, _)| self.metadata[*field].1);
            let widths = keys.chain(self.actions[action].arguments.iter().map(|of| of.1));
            if !widths.map(|width| width > 64).eq(entry.wide.iter().copied()) {
                return Err(fail(
                    "numbers of more than 64 bits, and no others, have 32 digits".into(),
                ));
            }
            let mut matches = Vec::new();
            for ((value, mask), (field, _)) in entry.matches.into_iter().zip(&table.keys) {
                let ones = crate::number::ones(self.metadata[*field].1.into());
                if is_exact && mask.is_some_and(|mask| mask != ones) {
                    return Err(fail("an exact key has no mask".into()));
                }
                let mask = mask.unwrap_or(ones);
                if value & !ones != 0 || mask & !ones != 0 {
                    return Err(fail("a key is wider than its field".into()));
                }
                matches.push((value & mask, mask));
            }
            let mut arguments = Vec::new();
            let expected = &self.actions[action].arguments;
            if expected.len() != entry.arguments.len() {
                return Err(fail(format!("'{}' has {} arguments", entry.action, expected.len())));
            }
            for ((name, width), (own, value)) in expected.iter().zip(&entry.arguments) {
                if name != own {
                    return Err(fail(format!("'{name}' was expected")));
                }
                if value & !crate::number::ones((*width).into()) != 0 {
                    return Err(fail(format!("'{name}' is wider than its field")));
                }
                arguments.push(*value);
            }
            filled.push((entry.priority, Entry { line: entry.line, matches, action, arguments }));
        }
        if is_exact {
            let mut seen = BTreeSet::new();
            for (_, entry) in &filled {
                if !seen.insert(&entry.matches) {
                    return Err((entry.line, "an entry matches what another one does".into()));
                }
            }
        } else {
            filled.sort_by_key(|entry| entry.0);
            if let Some(pair) = filled.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err((pair[1].1.line, "two entries have the same priority".into()));
            }
        }
        self.tables[at].entries = filled.into_iter().map(|entry| entry.1).collect();
        Ok(())
    }
}
