//! Configuring elements: arguments, their errors, and references to other elements.

use std::any::Any;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use click::config::Argument;
use ir::{Diagnostic, FileId, Processing, Sources, Span, nearest};

use crate::argument::FromArgument;
use crate::device::{Device, DeviceRequest};
use crate::names::Names;
use crate::process::ProcessSpec;

pub use zeroize::Zeroizing;

/// Errors were reported; nothing can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// Which of a chain's workers an element is made for. Workers share nothing, but what is
/// allocated by an element (external ports, identifiers) must not be allocated by two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerShare {
    /// From 0 on.
    pub index: usize,
    /// How many workers there are.
    pub count: usize,
    /// How many groups of traffic classes go from worker to worker.
    pub groups: usize,
}

impl WorkerShare {
    /// How many shares there are: one of each worker for what is of no group, and one of each
    /// group, which is at another worker when the group is.
    pub fn shares(self) -> usize {
        self.count + self.groups
    }

    /// The share of the numbers from `low` to `high` that packets of a group are given
    /// ([`net::Packet::group`]), or at this worker those of none: adjacent numbers, so that whoever
    /// brings a packet to its worker can compute whose it is; `None` if there are too few.
    #[inline]
    pub fn share(self, group: u16, low: u32, high: u32) -> Option<(u32, u32)> {
        if self == Self::default() {
            // No need to divide for each new flow.
            return (low <= high).then_some((low, high));
        }
        self.part_of_many(group, low, high)
    }

    fn part_of_many(self, group: u16, low: u32, high: u32) -> Option<(u32, u32)> {
        let size = u64::from(high).checked_sub(u64::from(low))? + 1;
        let index = match usize::from(group) {
            group if (1..=self.groups).contains(&group) => self.count + group - 1,
            _ => self.index,
        };
        let (index, count) = (index as u64, self.shares() as u64);
        if size < count || index >= count {
            return None;
        }
        let begin = |index: u64| u64::from(low) + size * index / count;
        Some((begin(index) as u32, (begin(index + 1) - 1) as u32))
    }
}

impl Default for WorkerShare {
    /// The only one.
    fn default() -> Self {
        Self { index: 0, count: 1, groups: 0 }
    }
}

/// Reads the text files that configurations name: libraries, lists of rules.
pub trait Files {
    /// Adds the text of the file that the source `from` calls `path` to the sources, so that
    /// diagnostics can point into it. A file that was read before keeps its id.
    ///
    /// # Errors
    /// A message such as “No such file or directory”.
    fn read(&mut self, sources: &mut Sources, from: FileId, path: &str) -> Result<FileId, String>;

    /// The text of a file with a key, found as other files are. It becomes no source, so that no diagnostic shows it.
    ///
    /// # Errors
    /// A message such as “No such file or directory”.
    fn key(&mut self, _: &Sources, _: FileId, _: &str) -> Result<Zeroizing<String>, String> {
        Err("keys are not read here".to_string())
    }

    /// The value of an environment variable with a key.
    ///
    /// # Errors
    /// Why there is none.
    fn variable(&mut self, _: &str) -> Result<Zeroizing<String>, String> {
        Err("the environment is not read here".to_string())
    }

    /// Bytes that nobody can know, and that were not given to another element, worker or run.
    ///
    /// # Errors
    /// Why there are none.
    fn entropy(&mut self) -> Result<[u8; 16], String> {
        Err("there is no source of random bytes here".to_string())
    }
}

/// Objects that elements share with others by reference: mappers, flow tables, patterns.
#[derive(Default)]
pub struct Shared {
    objects: HashMap<String, Vec<Rc<dyn Any>>>,
}

impl Shared {
    fn find<T: 'static>(&self, element: &str) -> Option<Rc<T>> {
        self.objects.get(element)?.iter().find_map(|o| Rc::clone(o).downcast::<T>().ok())
    }
}

/// How much memory the elements of a chain may take when they are made.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    limit: u64,
    left: u64,
}

/// Where nothing else is said, elements may take so many bytes: 1 GiB.
pub const DEFAULT_MEMORY: u64 = 1 << 30;

impl Default for Allowance {
    fn default() -> Self {
        Self::new(DEFAULT_MEMORY)
    }
}

impl Allowance {
    /// So many bytes.
    pub fn new(limit: u64) -> Self {
        Self { limit, left: limit }
    }

    /// Takes memory for an element, as one of its arguments asks for or all of its class need.
    ///
    /// # Errors
    /// The error, without a place, if there is not so much left.
    pub fn claim(
        &mut self,
        (element, class): (&str, &str),
        argument: Option<&str>,
        bytes: u64,
    ) -> Result<(), Diagnostic> {
        if let Some(left) = self.left.checked_sub(bytes) {
            self.left = left;
            return Ok(());
        }
        let size = |bytes: u64| match bytes {
            0..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
            _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        };
        let what = argument.map_or_else(String::new, |argument| format!("{argument} of "));
        let message = format!(
            "{what}{class} '{element}' takes {} of memory; of {} for all elements, {} are left",
            size(bytes),
            size(self.limit),
            size(self.left)
        );
        let help = "`--max-memory SIZE` lets elements take more";
        Err(Diagnostic::error("too-much-memory", message).help(help))
    }
}

/// What all elements of a chain have in common while they are configured.
pub struct Surroundings<'a> {
    /// The texts read so far.
    pub sources: &'a mut Sources,
    /// Reads files.
    pub files: &'a mut dyn Files,
    /// Names that AddressInfo and its like defined.
    pub names: &'a mut Names,
    /// Objects that elements share.
    pub shared: &'a mut Shared,
    /// Names of all elements, with their classes.
    pub elements: &'a HashMap<String, String>,
    /// Which of the chain's workers the elements are made for.
    pub part: WorkerShare,
    /// Memory that they may still take.
    pub memory: &'a mut Allowance,
    /// Errors and warnings so far.
    pub diagnostics: &'a mut Vec<Diagnostic>,
}

/// What an element is made from.
pub struct Configure<'a> {
    name: &'a str,
    class: &'a str,
    span: Span,
    arguments: Vec<Argument>,
    inputs: &'a [Processing],
    outputs: &'a [Processing],
    around: Surroundings<'a>,
}

impl<'a> Configure<'a> {
    /// An element of this name, class, place and configuration, with these connected ports.
    pub fn new(
        (name, class, span): (&'a str, &'a str, Span),
        arguments: Vec<Argument>,
        (inputs, outputs): (&'a [Processing], &'a [Processing]),
        around: Surroundings<'a>,
    ) -> Self {
        Self { name, class, span, arguments, inputs, outputs, around }
    }

    /// The element's full name.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The element's class.
    pub fn class(&self) -> &'a str {
        self.class
    }

    /// Where the element was declared.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Which of the chain's workers the element is made for.
    pub fn part(&self) -> WorkerShare {
        self.around.part
    }

    /// Number of connected inputs.
    pub fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Whether input 0 is pulled by the element itself.
    pub fn pulls(&self) -> bool {
        self.inputs.first() == Some(&Processing::Pull)
    }

    /// Processing of the connected outputs.
    pub fn output_processing(&self) -> &'a [Processing] {
        self.outputs
    }

    /// Number of connected outputs.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The names that others defined.
    pub fn names(&self) -> &Names {
        self.around.names
    }

    /// The names, to define more.
    pub fn names_mut(&mut self) -> &mut Names {
        self.around.names
    }

    /// Reports an error or a warning.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.around.diagnostics.push(diagnostic);
    }

    /// Reports an error at a place.
    pub fn error(&mut self, span: Span, message: impl Into<String>) -> Failed {
        self.report(Diagnostic::error("bad-argument", message).label(span, ""));
        Failed
    }

    /// Takes memory that an argument asks for, or every element of the class needs, before it is
    /// allocated.
    ///
    /// # Errors
    /// [`Failed`] after reporting that there is not so much.
    pub fn claim(&mut self, argument: Option<&str>, at: Span, bytes: u64) -> Result<(), Failed> {
        let claimed = self.around.memory.claim((self.name, self.class), argument, bytes);
        claimed.map_err(|error| {
            self.report(error.label(at, ""));
            Failed
        })
    }

    /// Reads a file that an argument names.
    ///
    /// # Errors
    /// [`Failed`] after reporting why it cannot be read.
    pub fn read_file(&mut self, path: &Argument) -> Result<(FileId, Arc<str>), Failed> {
        let name = String::from_utf8_lossy(&path.unquote()).into_owned();
        let from = if path.has_source() { path.span.file } else { self.span.file };
        match self.around.files.read(self.around.sources, from, &name) {
            Ok(file) => Ok((file, Arc::clone(self.around.sources.text(file)))),
            Err(why) => {
                let error =
                    Diagnostic::error("unreadable-file", format!("'{name}' cannot be read: {why}"));
                self.report(error.label(path.span, "named here"));
                Err(Failed)
            }
        }
    }

    /// Where a path that an argument names is: relative ones count from the folder of the file that the argument stands in.
    pub fn path(&self, argument: &Argument, path: &str) -> String {
        let from = if argument.has_source() { argument.span.file } else { self.span.file };
        let beside = Path::new(self.around.sources.name(from)).parent();
        beside.unwrap_or(Path::new("")).join(path).to_string_lossy().into_owned()
    }

    /// The text of a key that an argument names: a file, or `env:` and an environment variable. Nothing shows it.
    ///
    /// # Errors
    /// [`Failed`] after reporting why it cannot be read.
    pub fn read_key(&mut self, place: &Argument) -> Result<Zeroizing<String>, Failed> {
        let name = String::from_utf8_lossy(&place.unquote()).into_owned();
        let from = if place.has_source() { place.span.file } else { self.span.file };
        let read = match name.strip_prefix("env:") {
            Some(variable) => self.around.files.variable(variable),
            None => self.around.files.key(self.around.sources, from, &name),
        };
        read.map_err(|why| {
            let message = format!("the key of '{name}' cannot be read: {why}");
            self.report(Diagnostic::error("unreadable-key", message).label(place.span, ""));
            Failed
        })
    }

    /// Bytes that nobody can know, for an element that needs them.
    ///
    /// # Errors
    /// [`Failed`] after reporting why there are none.
    pub fn entropy(&mut self) -> Result<[u8; 16], Failed> {
        self.around.files.entropy().map_err(|why| {
            let message = format!("{} cannot be made: {why}", self.class);
            self.report(Diagnostic::error("no-entropy", message).label(self.span, ""));
            Failed
        })
    }

    /// The full name of an element that this one refers to: the innermost compound around it
    /// that has such an element.
    pub fn resolve(&self, reference: &str) -> Option<String> {
        scopes(self.name)
            .map(|scope| format!("{scope}{reference}"))
            .find(|n| self.around.elements.contains_key(n))
    }

    /// The class of an element by its full name.
    pub fn class_of(&self, element: &str) -> Option<&str> {
        self.around.elements.get(element).map(String::as_str)
    }

    /// Offers an object to other elements.
    pub fn share<T: 'static>(&mut self, object: Rc<T>) {
        self.around.shared.objects.entry(self.name.to_string()).or_default().push(object);
    }

    /// The object of type `T` that the element of this full name shares; it must have been
    /// configured in an earlier [`crate::element::Phase`].
    pub fn shared<T: 'static>(&self, element: &str) -> Option<Rc<T>> {
        self.around.shared.find(element)
    }

    /// The object of type `T` that all elements of a chain which ask for it by this name have in
    /// common; whoever asks first makes it.
    pub fn common<T: 'static>(&mut self, name: &str, make: impl FnOnce() -> T) -> Rc<T> {
        if let Some(object) = self.around.shared.find(name) {
            return object;
        }
        let object = Rc::new(make());
        self.around.shared.objects.entry(name.to_string()).or_default().push(object.clone());
        object
    }

    /// The arguments as they would be written, until they are taken apart.
    pub fn text(&self) -> String {
        let arguments: Vec<&str> = self.arguments.iter().map(|a| &a.text[..]).collect();
        arguments.join(", ")
    }

    /// The arguments, to be taken apart; `keywords` are the keyword arguments that there are.
    pub fn arguments<'c>(&'c mut self, keywords: &'c [&'static str]) -> Arguments<'c, 'a> {
        let mut positional = Vec::new();
        let mut keyed: Vec<(&'static str, Argument)> = Vec::new();
        for argument in std::mem::take(&mut self.arguments) {
            let keyword = argument
                .keyword()
                .and_then(|(word, value)| Some((*keywords.iter().find(|k| **k == word)?, value)));
            match keyword {
                // Of several, the last counts, as in Click.
                Some((keyword, value)) => {
                    keyed.retain(|(k, _)| *k != keyword);
                    keyed.push((keyword, value));
                }
                None => positional.push(argument),
            }
        }
        positional.reverse();
        Arguments { cx: self, keywords, positional, keyed, places: Vec::new(), failed: false }
    }
}

/// `a/b/`, `a/`, and the empty scope, for an element `a/b/c`.
pub fn scopes(name: &str) -> impl Iterator<Item = &str> {
    let ends = name.char_indices().rev().filter(|&(_, c)| c == '/').map(|(i, _)| i + 1);
    ends.chain(std::iter::once(0)).map(|end| &name[..end])
}

/// The arguments of an element while it takes them apart. Errors are reported as they are met;
/// a value that failed to parse is replaced by a default so that all errors come at once, and
/// [`Arguments::finish`] fails.
pub struct Arguments<'c, 'a> {
    cx: &'c mut Configure<'a>,
    keywords: &'c [&'static str],
    /// Last first.
    positional: Vec<Argument>,
    keyed: Vec<(&'static str, Argument)>,
    /// Where arguments that were taken stand, by name.
    places: Vec<(&'static str, Span)>,
    failed: bool,
}

impl<'a> Arguments<'_, 'a> {
    /// A mandatory argument: the next positional one, or the keyword of this name if it is one.
    pub fn required<T: FromArgument + Default>(&mut self, name: &'static str) -> T {
        match self.take(name) {
            Some(argument) => self.parse(name, &argument).unwrap_or_default(),
            None => {
                let error = Diagnostic::error(
                    "missing-argument",
                    format!("{} is missing its argument {name}, {}", self.cx.class, T::EXPECTED),
                );
                let span = self.cx.span;
                self.report(
                    error.label(span, "").help(format!("see 'catena elements {}'", self.cx.class)),
                );
                T::default()
            }
        }
    }

    /// An optional argument: the next positional one, or the keyword of this name if it is one.
    pub fn optional<T: FromArgument>(&mut self, name: &'static str) -> Option<T> {
        let argument = self.take(name)?;
        self.parse(name, &argument)
    }

    /// A keyword argument.
    pub fn keyword<T: FromArgument>(&mut self, name: &'static str) -> Option<T> {
        let argument = self.keyword_argument(name)?;
        self.parse(name, &argument)
    }

    /// The raw value of a keyword argument.
    pub fn keyword_argument(&mut self, name: &'static str) -> Option<Argument> {
        debug_assert!(self.keywords.contains(&name), "{name} is not declared as a keyword");
        let at = self.keyed.iter().position(|(k, _)| *k == name)?;
        let argument = self.keyed.remove(at).1;
        self.places.push((name, argument.span));
        Some(argument)
    }

    /// The next positional argument, raw.
    pub fn next_raw(&mut self) -> Option<Argument> {
        self.positional.pop()
    }

    /// The next positional argument, raw, unless it looks like a misspelt keyword with its value:
    /// that is left for [`Arguments::finish`] to complain about.
    pub fn next_plain(&mut self) -> Option<Argument> {
        let misspelt = |a: &Argument| {
            a.keyword().is_some_and(|(w, _)| nearest(w, self.keywords.iter().copied()).is_some())
        };
        if self.positional.last().is_some_and(misspelt) {
            return None;
        }
        self.positional.pop()
    }

    /// All further positional arguments, raw.
    pub fn rest(&mut self) -> Vec<Argument> {
        let mut rest = std::mem::take(&mut self.positional);
        rest.reverse();
        rest
    }

    /// How many positional arguments are left.
    pub fn remaining(&self) -> usize {
        self.positional.len()
    }

    /// Parses a raw argument (or a word of one), reporting what is wrong with it.
    pub fn parse<T: FromArgument>(&mut self, name: &str, argument: &Argument) -> Option<T> {
        match T::from_argument(argument, self.cx.around.names, self.cx.name) {
            Ok(value) => Some(value),
            Err(why) => {
                let label = if name.is_empty() {
                    String::new()
                } else {
                    format!("{name} takes {}", T::EXPECTED)
                };
                self.report(Diagnostic::error("bad-argument", why).label(argument.span, label));
                None
            }
        }
    }

    /// Reports an error or a warning.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.failed |= diagnostic.severity == ir::Severity::Error;
        self.cx.report(diagnostic);
    }

    /// Reports an error at an argument.
    pub fn error(&mut self, at: &Argument, message: impl Into<String>) {
        self.report(Diagnostic::error("bad-argument", message).label(at.span, ""));
    }

    /// Takes memory that an argument asks for, before it is allocated. Whether there is so much: if
    /// not, that is reported.
    pub fn claim(&mut self, name: &'static str, bytes: u64) -> bool {
        let at = self.places.iter().rev().find(|(known, _)| *known == name);
        let at = at.map_or(self.cx.span, |&(_, at)| at);
        let claimed = self.cx.claim(Some(name), at, bytes).is_ok();
        self.failed |= !claimed;
        claimed
    }

    /// Reads a file that an argument names, reporting why it cannot be read.
    pub fn read_file(&mut self, path: &Argument) -> Option<(FileId, Arc<str>)> {
        let read = self.cx.read_file(path).ok();
        self.failed |= read.is_none();
        read
    }

    /// Reads a key that an argument names, reporting why it cannot be read.
    pub fn read_key(&mut self, place: &Argument) -> Option<Zeroizing<String>> {
        let read = self.cx.read_key(place).ok();
        self.failed |= read.is_none();
        read
    }

    /// What the element is made from.
    pub fn cx(&mut self) -> &mut Configure<'a> {
        self.cx
    }

    /// Ends the taking apart: what is left over is an error.
    ///
    /// # Errors
    /// [`Failed`] if anything was wrong with any argument.
    pub fn finish(mut self) -> Result<(), Failed> {
        for argument in self.rest() {
            let unknown = argument.keyword().map(|(word, _)| word.to_string());
            let diagnostic = match unknown {
                Some(word) => {
                    let error = Diagnostic::error(
                        "unknown-keyword",
                        format!("{} has no keyword argument {word}", self.cx.class),
                    )
                    .label(argument.span, "");
                    match nearest(&word, self.keywords.iter().copied()) {
                        Some(near) => error.help(format!("did you mean {near}?")),
                        None if self.keywords.is_empty() => error,
                        None => error.help(format!("it has {}", self.keywords.join(", "))),
                    }
                }
                None => Diagnostic::error(
                    "too-many-arguments",
                    format!("{} does not take this argument", self.cx.class),
                )
                .label(argument.span, "too many arguments"),
            };
            self.report(diagnostic);
        }
        if self.failed { Err(Failed) } else { Ok(()) }
    }

    fn take(&mut self, name: &'static str) -> Option<Argument> {
        if self.keywords.contains(&name)
            && let Some(argument) = self.keyword_argument(name)
        {
            return Some(argument);
        }
        let argument = self.next_plain()?;
        self.places.push((name, argument.span));
        Some(argument)
    }
}

/// What an element is connected to the world with, after all are configured.
pub struct Initialize<'a> {
    /// The element's full name.
    pub name: &'a str,
    /// Where the element was declared.
    pub span: Span,
    devices: &'a mut dyn Devices,
    around: Surroundings<'a>,
}

/// Opens devices.
pub trait Devices {
    /// Opens what is asked for.
    ///
    /// # Errors
    /// A message that says why not.
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String>;

    /// Creates a file that text is written to, buffered; `-` is the standard output. Unless an
    /// implementation does so, what is written goes nowhere.
    ///
    /// # Errors
    /// A message that says why not.
    fn create(&mut self, _path: &str) -> Result<Box<dyn std::io::Write>, String> {
        Ok(Box::new(std::io::sink()))
    }

    /// Has a program run that packets go through, as long as what is returned is kept. Unless an implementation does
    /// so, none runs.
    ///
    /// # Errors
    /// A message that says why it cannot run.
    fn start(&mut self, _: &ProcessSpec) -> Result<Box<dyn Any>, String> {
        Ok(Box::new(()))
    }

    /// Opens what the element of this full name asks for.
    ///
    /// # Errors
    /// A message that says why not.
    fn open_for(
        &mut self,
        _element: &str,
        request: &DeviceRequest,
    ) -> Result<Box<dyn Device>, String> {
        self.open(request)
    }
}

impl<'a> Initialize<'a> {
    /// Surrounds the element of this name and place.
    pub fn new(
        name: &'a str,
        span: Span,
        devices: &'a mut dyn Devices,
        around: Surroundings<'a>,
    ) -> Self {
        Self { name, span, devices, around }
    }

    /// Opens a device; `span` is where the configuration names it.
    ///
    /// # Errors
    /// [`Failed`] after reporting why it cannot be opened.
    pub fn open(&mut self, request: &DeviceRequest, span: Span) -> Result<Box<dyn Device>, Failed> {
        self.devices.open_for(self.name, request).map_err(|why| {
            self.report(Diagnostic::error("device", why).label(span, ""));
            Failed
        })
    }

    /// Creates a file that text is written to; `span` is where the configuration names it.
    ///
    /// # Errors
    /// [`Failed`] after reporting why it cannot be created.
    pub fn create(&mut self, path: &str, span: Span) -> Result<Box<dyn std::io::Write>, Failed> {
        self.devices.create(path).map_err(|why| {
            self.report(Diagnostic::error("device", format!("{path}: {why}")).label(span, ""));
            Failed
        })
    }

    /// Has a program run that packets go through, as long as what is returned is kept; `span` is where the
    /// configuration names it.
    ///
    /// # Errors
    /// [`Failed`] after reporting why it cannot run.
    pub fn start(&mut self, spec: &ProcessSpec, span: Span) -> Result<Box<dyn Any>, Failed> {
        self.devices.start(spec).map_err(|why| {
            self.report(Diagnostic::error("process", why).label(span, ""));
            Failed
        })
    }

    /// The names that others defined.
    pub fn names(&self) -> &Names {
        self.around.names
    }

    /// Reports an error or a warning.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.around.diagnostics.push(diagnostic);
    }

    /// The object of type `T` that the element of this full name shares.
    pub fn shared<T: 'static>(&self, element: &str) -> Option<Rc<T>> {
        self.around.shared.find(element)
    }

    /// The full name of an element that this one refers to.
    pub fn resolve(&self, reference: &str) -> Option<String> {
        scopes(self.name)
            .map(|scope| format!("{scope}{reference}"))
            .find(|n| self.around.elements.contains_key(n))
    }
}

#[cfg(test)]
mod tests {
    use super::WorkerShare;

    #[test]
    fn shares_are_all_of_a_range_and_no_two_have_a_number() {
        let part = |index, count| WorkerShare { index, count, groups: 0 };
        for (low, high, count) in [(1, 10, 3), (5, 5, 1), (0, u32::MAX, 7), (1024, 65535, 64)] {
            for groups in [0, 2, 300] {
                let mut next = Some(low);
                let of_workers = (0..count).map(|index| (index, 0));
                let of_groups = (1..=groups).map(|group| (0, group as u16));
                for (index, group) in of_workers.chain(of_groups) {
                    let part = WorkerShare { index, count, groups };
                    let Some((first, last)) = part.share(group, low, high) else {
                        assert!(((high - low) as usize) < part.shares() - 1);
                        next = high.checked_add(1);
                        break;
                    };
                    assert_eq!(Some(first), next);
                    assert!(first <= last);
                    next = last.checked_add(1);
                }
                assert_eq!(next, high.checked_add(1));
            }
        }
        assert_eq!(part(0, 3).share(0, 1, 2), None);
        assert_eq!(part(0, 1).share(0, 2, 1), None);
        assert_eq!(part(1, 1).share(0, 1, 2), None);
    }
}
