//! Script and DriverManager: small programs that read and write handlers.

mod expression;
mod memory;
mod program;

use std::rc::Rc;

use click::config::{Argument, Variable};
use ir::{Model, Reason};
use net::{Batch, Packet};

use self::expression::{CLOSE, FUNCTIONS, OPEN, Words, evaluate, insert, plain, quoted};
use self::memory::{Errors, MAX_TEXT, Variables};
use self::program::{Instruction, Label, Program, Target, Text};
use crate::argument::{Nanoseconds, parse_value};
use crate::configure::{Configure, Failed, scopes};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerCalls, HandlerContext, NamedHandler};
use crate::plumbing::print::show_time;

element! {
    /// Script([TYPE type,] INSTRUCTION, ...) -- reads and writes handlers as a program says
    ///
    /// Executes its arguments one after the other. Text in them is subject to substitution:
    /// $NAME is the value of a variable, $(HANDLER ARGUMENTS) the value of a read handler; the
    /// two can be nested. A handler without an element is one of the script's own, or else one of
    /// the router. The instructions with a q at the end remove a layer of quotation marks.
    ///
    /// = INSTRUCTIONS
    ///
    /// set VAR TEXT, setq: sets a variable.
    /// init VAR TEXT, initq: sets a variable once, at the start.
    /// export VAR [TEXT], exportq: like init, and makes VAR a read handler.
    /// print [>FILE | >>FILE] TEXT, printn: prints TEXT, or the value of the handler that it is
    /// if it starts with a letter; printn adds no line break. printq and printnq unquote the
    /// handler's arguments.
    /// save HANDLER [FILE], append: prints a handler's value to a file.
    /// read HANDLER, readq: shows a handler's name and value.
    /// write HANDLER [VALUE], writeq: writes a handler; $? is 0 if that worked.
    /// wait TIME, wait_time, wait_for: waits so long, or for a step.
    /// pause [N], wait_step, wait_stop: waits for N steps; wait without a time does too.
    /// label NAME; goto NAME [CONDITION]: continues elsewhere, if the condition is true. The
    /// labels begin, loop, end, exit, stop and error are always there. A script that makes 1000
    /// jumps without waiting is given up. A text has at most 1 MiB, all variables together 16 MiB.
    /// loop: goes on at the first instruction.
    /// end: ends the script. exit: ends it; a packet is dropped. stop: ends it and asks the
    /// driver to stop. error [TEXT]: ends it with an error.
    /// return [VALUE], returnq: ends it with a value.
    ///
    /// = TYPES
    ///
    /// ACTIVE: runs from the start. The default without ports.
    /// PASSIVE: runs when its handler run is read or written; $args are the arguments, $1, $2 ...
    /// the words of them, and $# their number.
    /// PACKET: runs for each packet; $input is the port it came in on, and the value returned the
    /// port it leaves on. end means port 0. The default with ports.
    /// PROXY: runs for every handler that it does not have; $0 is the handler's name, and $write
    /// says whether it is written.
    /// DRIVER: runs from the start, and takes a step whenever the driver is asked to stop; the
    /// driver stops when the script has ended. A script without instructions lets it stop.
    /// Unlike in Click, no script runs when the process receives a signal (SIGNAL).
    ///
    /// = HANDLERS
    ///
    /// run (read, write): runs the script from its first instruction.
    /// step (write): goes on behind the instruction that waits; a number says behind how many.
    /// goto (write): goes on at a label.
    /// get (read), set (write), shift (read): a variable; the first word of one, taken off.
    /// add, sub, mul, div, idiv, mod, rem, neg, abs, ceil, min, max, avg, count, popcount, gt_vec
    /// (read): arithmetic. div is exact, idiv a whole number.
    /// eq, ne, lt, le, gt, ge (read): comparisons of numbers, or of words.
    /// not, and, or, nand, nor, if, in (read): logic.
    /// sprintf, first, length, unquote (read): text.
    /// random [[FROM] TO] (read): a random number; with one argument, one below it.
    /// now, now_steady (read): the time in seconds.
    /// readable, writable (read): whether all these handlers exist.
    /// htons, htonl, ntohs, ntohl (read): byte order.
    /// cat, catq (read): the content of a file. Only elements of the chain can read these two.
    ///
    /// = EXAMPLE
    ///
    /// Script(set x 0, label again, print $x, set x $(add $x 1), goto again $(lt $x 5), stop)
    /// prints the numbers from 0 to 4 and stops the driver.
    ///
    /// = SEE ALSO
    ///
    /// DriverManager, ControlSocket
    Script {
        category: Control, ports: "-/-", processing: "ah/ah",
        samples: [("return $(random 3)", 1, 2)]
    }
}

/// See [`Script::CLASS`].
pub(crate) struct Script {
    name: String,
    kind: Kind,
    program: Rc<Program>,
    variables: Variables,
    started: bool,
    /// Whether the first step is still to be taken.
    initial: bool,
    /// The instruction that comes next.
    position: usize,
    /// Steps taken so far, and up to which number they may be.
    steps: u64,
    goal: u64,
    /// Steps that each waiting instruction has let pass.
    passed: Vec<u32>,
    /// When the instruction that waits for a time is done.
    deadline: Option<u64>,
    /// Status of the last write.
    status: i32,
    /// What the handlers that run the script were called with.
    arguments: String,
    called: String,
    written: bool,
    errors: Errors,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Active,
    Driver,
    Passive,
    Packet,
    Proxy,
}

/// Who makes a script take a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The driver was asked to stop.
    Stop,
    Other,
}

/// Why a script came to rest.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rest {
    /// It waits.
    Blocked,
    End,
    Exit,
    Stop,
    Error,
    Return,
}

/// Jumps that a script may make without waiting.
const MAX_JUMPS: u32 = 1000;

/// The script dropped the packet.
const DROPPED: Reason = Reason("script");

/// Handlers besides the functions.
const OWN: [Handler; 14] = [
    Handler::both("run"),
    Handler::write("step"),
    Handler::write("goto"),
    Handler::read("get"),
    Handler::write("set"),
    Handler::read("shift"),
    Handler::read("random"),
    Handler::read("now"),
    Handler::read("now_steady"),
    Handler::read("readable"),
    Handler::read("writable"),
    Handler::read("unquote"),
    Handler::private("cat"),
    Handler::private("catq"),
];

static HANDLERS: [Handler; OWN.len() + FUNCTIONS.len()] = {
    let mut all = [OWN[0]; OWN.len() + FUNCTIONS.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = if i < OWN.len() { OWN[i] } else { Handler::read(FUNCTIONS[i - OWN.len()]) };
        i += 1;
    }
    all
};

impl Script {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let default = if cx.inputs() + cx.outputs() > 0 { Kind::Packet } else { Kind::Active };
        Self::of_kind(cx, default)
    }

    fn of_kind(cx: &mut Configure<'_>, default: Kind) -> Result<Self, Failed> {
        let (name, span) = (cx.name().to_string(), cx.span());
        let (inputs, outputs) = (cx.inputs(), cx.outputs());
        let mut arguments = cx.arguments(&["TYPE"]);
        let kind = match arguments.keyword_argument("TYPE") {
            None => default,
            Some(kind) => Self::parse_kind(&kind).unwrap_or_else(|why| {
                arguments.error(&kind, why);
                default
            }),
        };
        if kind == Kind::Packet && inputs == 0 {
            let error = ir::Diagnostic::error("bad-ports", "a PACKET script must have an input");
            arguments.report(error.label(span, ""));
        } else if kind != Kind::Packet && inputs + outputs > 0 {
            let error = ir::Diagnostic::error("bad-ports", "only PACKET scripts have ports");
            arguments.report(error.label(span, ""));
        }
        let program = Program::parse(&mut arguments, kind == Kind::Driver);
        arguments.finish()?;
        Ok(Self {
            name,
            kind,
            variables: Variables::new(&program.variables),
            started: false,
            initial: false,
            position: 0,
            steps: 0,
            goal: 0,
            passed: vec![0; program.instructions.len()],
            program: Rc::new(program),
            deadline: None,
            status: 0,
            arguments: String::new(),
            called: String::new(),
            written: false,
            errors: Errors::default(),
        })
    }

    fn parse_kind(kind: &Argument) -> Result<Kind, String> {
        match kind.text.as_str() {
            "ACTIVE" => Ok(Kind::Active),
            "PASSIVE" => Ok(Kind::Passive),
            "PACKET" | "PUSH" => Ok(Kind::Packet),
            "PROXY" => Ok(Kind::Proxy),
            "DRIVER" => Ok(Kind::Driver),
            other if other.split_whitespace().next() == Some("SIGNAL") => {
                Err("no script runs at a signal; make it PASSIVE and write its handler 'run'"
                    .into())
            }
            other => Err(format!("'{other}' is not ACTIVE, PASSIVE, PACKET, PROXY or DRIVER")),
        }
    }

    /// Sets the variables that are set at the start, before anything else happens.
    fn start(&mut self, cx: &mut Context<'_>) {
        if self.started {
            return;
        }
        self.started = true;
        for instruction in &Rc::clone(&self.program).instructions {
            if let Instruction::Init { variable, text, .. } = instruction {
                self.assign(*variable, text, cx);
            }
        }
        if !matches!(self.kind, Kind::Active | Kind::Driver) {
            return;
        }
        match self.program.instructions.first() {
            Some(Instruction::Initial) => {
                self.initial = true;
                self.step(1, Cause::Other, cx);
            }
            Some(Instruction::Wait(time)) => self.set_alarm(&time.clone(), cx),
            _ => {}
        }
    }

    /// Asks to be woken after a time; `false` if the text is not a time.
    fn set_alarm(&mut self, text: &str, cx: &mut Context<'_>) {
        let time = self.substitute(text, cx);
        match parse_value::<Nanoseconds>(&time) {
            Ok(Nanoseconds(wait)) => {
                let deadline = cx.now().saturating_add(wait);
                self.deadline = Some(deadline);
                cx.wake_at(deadline);
            }
            Err(why) => self.errors.push(format!("wait: {why}")),
        }
    }

    /// Lets up to `count` waiting instructions pass, and executes what follows them up to the
    /// next one.
    fn step(&mut self, count: u64, cause: Cause, cx: &mut Context<'_>) -> Rest {
        let program = Rc::clone(&self.program);
        self.goal = self.steps + count;
        let mut jumps = 0;
        while self.steps <= self.goal {
            let at = self.position;
            let Some(instruction) = program.instructions.get(at) else { break };
            // Handlers that an instruction calls may change the position.
            self.position = at + 1;
            match instruction {
                Instruction::Initial => {
                    if std::mem::take(&mut self.initial) {
                        self.steps += 1;
                    }
                }
                Instruction::Pause(count) => {
                    while self.steps < self.goal && self.passed[at] < *count {
                        self.passed[at] += 1;
                        self.steps += 1;
                    }
                    if self.passed[at] < *count {
                        self.position = at;
                        return Rest::Blocked;
                    }
                }
                Instruction::Wait(time) => {
                    if self.steps == self.goal {
                        self.position = at;
                        self.set_alarm(time, cx);
                        return Rest::Blocked;
                    }
                    self.steps += 1;
                    self.deadline = None;
                }
                Instruction::Print { text, target, newline } => {
                    self.print(text, target, *newline, cx);
                }
                Instruction::Read(text) => {
                    let call = self.substitute(&text.text, cx);
                    if let Some(value) = self.call(&call, text.unquote, cx) {
                        let name = Words(call).next().unwrap_or_default();
                        cx.message(&format!("{name}:\n{value}\n"));
                    }
                }
                Instruction::Write(text) => {
                    let call = self.substitute(&text.text, cx);
                    let (handler, value) = Argument::bare(call).split_word();
                    let value = if text.unquote { plain(&value.text) } else { value.text };
                    let result = self.write_handler(&handler.text, &value, cx);
                    self.status = if result.is_ok() { 0 } else { -1 };
                    if let Err(why) = result {
                        self.errors.push(format!("write {}: {why}", handler.text));
                    }
                }
                Instruction::Set(variable, text) => self.assign(*variable, text, cx),
                Instruction::Return(variable, text) => {
                    self.assign(*variable, text, cx);
                    if self.position == at + 1 {
                        self.position = at;
                        return Rest::Return;
                    }
                }
                Instruction::Init { .. } | Instruction::Label(_) => {}
                Instruction::Goto { label, condition } => {
                    let condition = self.substitute(condition, cx);
                    match (condition.is_empty(), parse_value(&condition)) {
                        (true, _) | (false, Ok(true)) => {
                            if let Some(rest) = self.jump(at, *label, cause, cx) {
                                return rest;
                            }
                        }
                        (false, Ok(false)) => {}
                        (false, Err::<bool, _>(why)) => self.errors.push(format!("goto: {why}")),
                    }
                }
                Instruction::Error(text) => {
                    let message = self.expand(text, cx);
                    if !message.is_empty() {
                        self.errors.push(message);
                    }
                    self.position = at;
                    return Rest::Error;
                }
                Instruction::End => {
                    self.position = at;
                    return Rest::End;
                }
                Instruction::Exit => {
                    self.position = at;
                    return Rest::Exit;
                }
                Instruction::Stop => {
                    self.position = at;
                    return self.stop(cause, cx);
                }
            }
            if self.position != at + 1 {
                jumps += 1;
                if jumps >= MAX_JUMPS {
                    self.errors.push("too many jumps, giving up".to_string());
                    self.position = program.instructions.len();
                    self.deadline = None;
                }
            }
        }
        Rest::End
    }

    fn stop(&mut self, cause: Cause, cx: &mut Context<'_>) -> Rest {
        if cause != Cause::Stop {
            cx.stop();
        }
        Rest::Stop
    }

    /// Goes on at a label, forgetting the steps that the instructions in between have let pass.
    fn jump(
        &mut self,
        at: usize,
        label: Label,
        cause: Cause,
        cx: &mut Context<'_>,
    ) -> Option<Rest> {
        let rest = match label {
            Label::At(target) => {
                if target < at {
                    self.passed[target..at].fill(0);
                }
                self.position = target;
                return None;
            }
            Label::End => Rest::End,
            Label::Exit => Rest::Exit,
            Label::Error => Rest::Error,
            Label::Stop => self.stop(cause, cx),
        };
        self.position = at;
        Some(rest)
    }

    fn print(&mut self, text: &Text, target: &Target, newline: bool, cx: &mut Context<'_>) {
        let is_handler =
            text.text.starts_with(|c: char| c.is_ascii_alphabetic() || "@_".contains(c));
        let mut result = if is_handler {
            let call = self.substitute(&text.text, cx);
            match self.call(&call, text.unquote, cx) {
                Some(value) => value,
                None => return,
            }
        } else {
            self.expand_unquoted(&text.text, cx)
        };
        if newline && !result.ends_with('\n') {
            result.push('\n');
        }
        match target {
            Target::File { path, append } if path != "-" => {
                if let Err(why) = cx.services().write_file(path, result.as_bytes(), *append) {
                    self.errors.push(format!("{path}: {why}"));
                }
            }
            _ => cx.output(&result),
        }
    }

    /// Gives a variable what a text comes to.
    fn assign(&mut self, variable: usize, text: &Text, cx: &mut Context<'_>) {
        let value = self.expand(text, cx);
        if let Err(why) = self.variables.set(variable, value) {
            self.errors.push(why);
        }
    }

    /// Substitutes and, if the instruction says so, unquotes.
    fn expand(&mut self, text: &Text, cx: &mut Context<'_>) -> String {
        let expanded = self.substitute(&text.text, cx);
        if text.unquote { plain(&expanded) } else { expanded }
    }

    /// Replaces variables and calls of handlers by their values.
    fn substitute(&mut self, text: &str, cx: &mut Context<'_>) -> String {
        if !text.contains('$') {
            return text.to_string();
        }
        let mut room = MAX_TEXT;
        let mut lookup = |variable: Variable<'_>| {
            self.look_up_within(variable, &mut room, cx).map(Argument::bare)
        };
        Argument::bare(text).expand(&mut lookup).text
    }

    /// What is put in a variable's place. If there is no room for it, that is an error, and nothing is.
    fn look_up_within(
        &mut self,
        variable: Variable<'_>,
        room: &mut usize,
        cx: &mut Context<'_>,
    ) -> Option<String> {
        let value = self.look_up(variable, cx)?;
        Some(match room.checked_sub(value.len()) {
            Some(left) => {
                *room = left;
                value
            }
            None => {
                self.errors.push(format!("a text becomes longer than {MAX_TEXT} bytes"));
                *room = 0;
                String::new()
            }
        })
    }

    /// Replaces variables and calls of handlers and removes the quotation marks of the text, but
    /// not those of the values.
    fn expand_unquoted(&mut self, text: &str, cx: &mut Context<'_>) -> String {
        let (mut values, mut room) = (Vec::new(), MAX_TEXT);
        let mut lookup = |variable: Variable<'_>| {
            let value = match variable {
                Variable::Call(call) => {
                    let call = insert(call, &values);
                    self.look_up_within(Variable::Call(&call), &mut room, cx)?
                }
                name => self.look_up_within(name, &mut room, cx)?,
            };
            values.push(value);
            Some(Argument::bare(format!("{OPEN}{}{CLOSE}", values.len() - 1)))
        };
        let expanded = Argument::bare(text).expand(&mut lookup).text;
        insert(&plain(&expanded), &values)
    }

    fn look_up(&mut self, variable: Variable<'_>, cx: &mut Context<'_>) -> Option<String> {
        let name = match variable {
            Variable::Call(call) => return self.call(call, false, cx),
            Variable::Name(name) => name,
        };
        if let Some(number) = self.variables.find(name) {
            return Some(self.variables.value(number).to_string());
        }
        let mut words = Words(self.arguments.clone());
        Some(match name {
            "?" => self.status.to_string(),
            "args" => self.arguments.clone(),
            "#" => words.count().to_string(),
            "0" => self.called.clone(),
            "write" => self.written.to_string(),
            number => words.nth(number.parse::<usize>().ok()?.checked_sub(1)?).unwrap_or_default(),
        })
    }

    /// The name of one of this script's own handlers, if that is what is meant.
    fn own<'n>(&self, handler: &'n str) -> Option<&'n str> {
        let name = match handler.rsplit_once('.') {
            None => handler,
            Some((element, name)) => {
                let mut names = scopes(&self.name).map(|scope| format!("{scope}{element}"));
                names.any(|n| n == self.name).then_some(name)?
            }
        };
        let exported = self.exports().any(|variable| self.variables.name(variable) == name);
        (exported || HANDLERS.iter().any(|h| h.name == name)).then_some(name)
    }

    fn exports(&self) -> impl Iterator<Item = usize> {
        self.program.instructions.iter().filter_map(|i| match i {
            Instruction::Init { variable, export: true, .. } => Some(*variable),
            _ => None,
        })
    }

    /// The value of a read handler `element.handler arguments`; errors are noted.
    fn call(&mut self, call: &str, unquote: bool, cx: &mut Context<'_>) -> Option<String> {
        let (handler, arguments) = Argument::bare(call).split_word();
        let arguments = if unquote { plain(&arguments.text) } else { arguments.text };
        let value = match self.own(&handler.text) {
            Some("run") => Err("the script is running".to_string()),
            Some(name) => self.function(name, &arguments, cx),
            None => cx.read_handler(&format!("{} {arguments}", handler.text)),
        };
        value.map_err(|why| self.errors.push(format!("{}: {why}", handler.text))).ok()
    }

    /// Writes a handler from within the script.
    fn write_handler(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Context<'_>,
    ) -> Result<(), String> {
        match self.own(handler) {
            None => cx.write_handler(handler, value),
            Some("goto") => self.go_to(value),
            Some("step") => {
                self.goal += parse_count(value)?;
                Ok(())
            }
            Some("set") => self.set(value),
            Some("run") => Err("the script is running".to_string()),
            Some(name) => Err(format!("read-only handler '{name}'")),
        }
    }

    /// The value of one of the script's own read handlers but `run`.
    fn function(
        &mut self,
        name: &str,
        arguments: &str,
        cx: &mut Context<'_>,
    ) -> Result<String, String> {
        match name {
            "get" => self.value(arguments).map(str::to_string),
            "shift" => {
                let name = if arguments.is_empty() { "args" } else { arguments };
                let mut words = Words(self.value(name)?.to_string());
                let first = words.next().unwrap_or_default();
                self.set_value(name, words.0).map(|()| first)
            }
            "random" => random(arguments, cx),
            "now" | "now_steady" => Ok(show_time(cx.now())),
            "readable" | "writable" => {
                let write = name == "writable";
                let exists = |handler: String| cx.has_handler(&handler, write);
                Ok(Words(arguments.to_string()).all(exists).to_string())
            }
            "unquote" => Ok(plain(arguments)),
            "cat" | "catq" => {
                let path = plain(arguments);
                let bytes = match path.as_str() {
                    "-" => Err("scripts do not read the standard input".to_string()),
                    path => cx.services().read_file(path, MAX_TEXT as u64),
                };
                let bytes = bytes.map_err(|why| format!("{path}: {why}"))?;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Ok(if name == "catq" { quoted(&text) } else { text })
            }
            _ => match self.exports().find(|&v| self.variables.name(v) == name) {
                Some(variable) => Ok(self.variables.value(variable).to_string()),
                None => evaluate(name, arguments),
            },
        }
    }

    /// The value of a variable.
    fn value(&self, name: &str) -> Result<&str, String> {
        if name == "args" {
            return Ok(&self.arguments);
        }
        let found = self.variables.find(name).map(|number| self.variables.value(number));
        found.ok_or_else(|| format!("no variable named '{name}'"))
    }

    /// Gives a variable a value; it is made if there is none of the name.
    fn set_value(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "args" => self.arguments = value,
            name => self.variables.set_named(name, value)?,
        }
        Ok(())
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = Argument::bare(text).split_word();
        match name.text.as_str() {
            "" => Err("set takes a variable and a value".to_string()),
            name => self.set_value(name, value.text),
        }
    }

    fn go_to(&mut self, label: &str) -> Result<(), String> {
        match self.program.find_label(label.trim()) {
            Some(Label::At(target)) => {
                self.passed[target..].fill(0);
                self.position = target;
                Ok(())
            }
            _ => Err(format!("no label named '{label}'")),
        }
    }

    /// Runs the script from its start for a handler; the value that it returns.
    fn run_for(
        &mut self,
        handler: &str,
        arguments: &str,
        write: bool,
        cx: &mut Context<'_>,
    ) -> Result<String, String> {
        self.start(cx);
        self.called = handler.to_string();
        self.arguments = arguments.to_string();
        self.written = write;
        self.position = 0;
        let rest = self.step(0, Cause::Other, cx);
        self.called.clear();
        self.written = false;
        self.outcome(rest)
    }

    /// What a handler that made the script run answers.
    fn outcome(&mut self, rest: Rest) -> Result<String, String> {
        let errors = self.errors.take();
        if rest == Rest::Error || !errors.is_empty() {
            return Err(errors.join("\n"));
        }
        Ok(if rest == Rest::Return { self.returned() } else { String::new() })
    }

    fn returned(&self) -> String {
        self.value("_").map_or(String::new(), str::to_string)
    }

    /// Shows the errors of a script that runs on its own account.
    fn complain(&mut self, cx: &mut Context<'_>) {
        for error in self.errors.take() {
            cx.error(&error);
        }
    }

    /// The port that the script chooses for a packet.
    fn port_for(&mut self, input: usize, cx: &mut Context<'_>) -> Option<usize> {
        self.start(cx);
        if let Err(why) = self.set_value("input", input.to_string()) {
            self.errors.push(why);
        }
        self.position = 0;
        let rest = self.step(0, Cause::Other, cx);
        self.complain(cx);
        match rest {
            Rest::End => Some(0),
            Rest::Return => self.returned().trim().parse().ok(),
            _ => None,
        }
    }

    fn hand_on(&mut self, port: Option<usize>, packet: Packet, cx: &mut Context<'_>) {
        match port.filter(|p| *p < cx.outputs()) {
            Some(port) => cx.emit(port, packet),
            None => cx.drop(packet, DROPPED),
        }
    }
}

fn parse_count(text: &str) -> Result<u64, String> {
    match text.trim() {
        "" => Ok(1),
        count => parse_value::<u32>(count).map(u64::from),
    }
}

fn random(arguments: &str, cx: &mut Context<'_>) -> Result<String, String> {
    let numbers = Words(arguments.to_string()).map(|w| parse_value::<u32>(&w));
    let numbers: Vec<u32> = numbers.collect::<Result<_, _>>()?;
    let (from, to) = match numbers[..] {
        [] => (0, i32::MAX as u32),
        [below] if below > 0 => (0, below - 1),
        [from, to] if from <= to => (from, to),
        _ => return Err("random takes at most two numbers, the second not less".to_string()),
    };
    Ok(cx.random(from.into(), to.into()).to_string())
}

impl Element for Script {
    fn starts_over(&self) -> bool {
        true
    }

    fn push(&mut self, input: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        for packet in batch.drain() {
            let port = self.port_for(input, cx);
            self.hand_on(port, packet, cx);
        }
    }

    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        while let Some(packet) = cx.pull(0) {
            match self.port_for(0, cx) {
                Some(0) => return Some(packet),
                port => self.hand_on(port, packet, cx),
            }
        }
        None
    }

    fn model(&self) -> Model {
        Model::opaque("runs a script")
    }

    fn handler_calls(&self) -> HandlerCalls {
        self.program.handler_calls()
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        self.start(cx);
        match self.deadline {
            Some(deadline) if deadline <= cx.now() => {
                self.deadline = None;
                self.step(1, Cause::Other, cx);
            }
            Some(deadline) => cx.wake_at(deadline),
            None => {}
        }
        self.complain(cx);
    }

    fn on_stop(&mut self, cx: &mut Context<'_>) -> bool {
        if self.kind != Kind::Driver {
            return false;
        }
        self.start(cx);
        let rest = self.step(1, Cause::Stop, cx);
        self.complain(cx);
        rest == Rest::Blocked
    }

    fn stops_driver(&self) -> bool {
        // The others run when somebody calls them.
        matches!(self.kind, Kind::Active | Kind::Driver | Kind::Packet)
            && self.program.instructions.iter().any(Instruction::stops_driver)
    }

    fn handlers(&self) -> &'static [Handler] {
        &HANDLERS
    }

    fn named_handlers(&self) -> Vec<NamedHandler> {
        let exported = self.exports().map(|v| self.variables.name(v).to_string());
        let mut all: Vec<NamedHandler> =
            exported.map(|name| NamedHandler { name, read: true, write: false }).collect();
        if self.kind == Kind::Proxy {
            all.push(NamedHandler { name: "*".to_string(), read: true, write: true });
        }
        all
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Err(format!("handler '{handler}' has to be called"))
    }

    fn call(
        &mut self,
        handler: &str,
        parameter: &str,
        cx: &mut Context<'_>,
    ) -> Result<String, String> {
        self.start(cx);
        match self.own(handler) {
            Some(name) if name != "run" => self.function(name, parameter, cx),
            _ => self.run_for(handler, parameter, false, cx),
        }
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        self.start(cx);
        let rest = match handler {
            "set" => return self.set(value),
            "step" => self.step(parse_count(value)?, Cause::Other, cx),
            "goto" => {
                self.go_to(value)?;
                self.step(0, Cause::Other, cx)
            }
            _ => return self.run_for(handler, value, true, cx).map(|_| ()),
        };
        self.outcome(rest).map(|_| ())
    }
}

/// See [`DriverManager::CLASS`].
pub(crate) struct DriverManager;

element! {
    /// DriverManager(INSTRUCTION, ...) -- decides when the driver stops
    ///
    /// A Script of type DRIVER: it takes a step whenever the driver is asked to stop, and the
    /// driver stops when the script has ended.
    ///
    /// = EXAMPLE
    ///
    /// DriverManager(wait_stop, write u.active true, wait 0.2s) stops the driver 0.2 seconds
    /// after something asked it to.
    ///
    /// = SEE ALSO
    ///
    /// Script
    DriverManager {
        category: Control, ports: "0/0", processing: "a/a",
        samples: []
    }
}

impl DriverManager {
    fn configure(cx: &mut Configure<'_>) -> Result<Script, Failed> {
        Script::of_kind(cx, Kind::Driver)
    }
}
