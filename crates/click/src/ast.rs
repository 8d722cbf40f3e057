//! The syntax tree: statements in the order of the text, with the span of everything.

use ir::Span;

use crate::config::Argument;

/// A configuration file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// In the order of the text, which matters: elements and classes are declared before they are used.
    pub statements: Vec<Statement>,
    /// Comments and `#line` directives that stand between tokens (not those inside configurations).
    pub comments: Vec<Span>,
    /// How many tokens and arguments it has, at most [`crate::MAX_TOKENS`] and a few.
    pub tokens: usize,
}

/// One statement of a file, a compound or a group.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `a, b :: Class(config)`
    Declaration(Declaration),
    /// `a -> b [1] -> c`
    Chain(Chain),
    /// `elementclass Name …`
    ElementClass(ElementClass),
    /// `define($A 1, $B 2)`
    Define(Define),
    /// `require(package p)`
    Require(Require),
}

impl Statement {
    /// The text of the statement, without a closing semicolon.
    pub fn span(&self) -> Span {
        match self {
            Statement::Declaration(s) => s.span,
            Statement::Chain(s) => s.span,
            Statement::ElementClass(s) => s.span,
            Statement::Define(s) => s.span,
            Statement::Require(s) => s.span,
        }
    }
}

/// A name where it stands.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// The declaration of one or more elements that all have the class and configuration given.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// At least one.
    pub names: Vec<Name>,
    /// Their class.
    pub class: Class,
    /// Their configuration.
    pub config: Option<Config>,
    /// The whole.
    pub span: Span,
}

/// What may stand after `::`.
#[derive(Clone, Debug)]
pub enum Class {
    /// The class of that name.
    Named(Name),
    /// A compound written on the spot.
    Compound(Compound),
}

impl Class {
    /// Where the class is written.
    pub fn span(&self) -> Span {
        match self {
            Class::Named(name) => name.span,
            Class::Compound(compound) => compound.span,
        }
    }
}

/// The text between the parentheses after an element, `define` or `require`.
#[derive(Clone, Debug)]
pub struct Config {
    /// The text as written, as long as its span; `#line` directives in it are blanked.
    pub text: String,
    /// The text, without its parentheses.
    pub span: Span,
}

/// Stages connected by arrows; a single stage connects nothing but may declare elements.
#[derive(Clone, Debug)]
pub struct Chain {
    /// At least one; each holds the endpoints between its commas, at least one.
    pub stages: Vec<Vec<Endpoint>>,
    /// What stands between the stages: one fewer than these.
    pub arrows: Vec<Arrow>,
    /// The whole.
    pub span: Span,
}

/// An arrow between two stages.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// Which arrow.
    pub kind: ArrowKind,
    /// Where it stands.
    pub span: Span,
}

/// How two stages are connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrowKind {
    /// `->`: one to one, one to many or many to one.
    Single,
    /// `=>`: many to many, in order.
    Double,
    /// FastClick's context link `~>`, `~HTTP>` or `~/HTTP>`, with the text between `~` and `>`.
    Context(String),
}

/// An element with the ports by which a chain enters and leaves it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Input ports.
    pub inputs: Option<Ports>,
    /// The element.
    pub node: Node,
    /// Output ports.
    pub outputs: Option<Ports>,
    /// The whole.
    pub span: Span,
}

/// What stands in a chain.
#[derive(Clone, Debug)]
pub enum Node {
    /// A declared element, or an anonymous element of the class of this name.
    Name {
        /// The name of an element or a class.
        name: Name,
        /// Only right if the name is that of a class.
        config: Option<Config>,
    },
    /// `name :: Class(config)`
    Declaration {
        /// The element's name.
        name: Name,
        /// Its class.
        class: Class,
        /// Its configuration.
        config: Option<Config>,
    },
    /// `{ … }(config)`: an anonymous element of a class written on the spot.
    Compound {
        /// The class.
        compound: Compound,
        /// Its configuration.
        config: Option<Config>,
    },
    /// `( … )`
    Group(Group),
    /// Nothing at the start of a chain: the `input` of the enclosing compound or group. Ports written
    /// there are the endpoint's `outputs`.
    Input,
    /// Nothing at the end of a chain: the `output` of the enclosing compound or group. Ports written
    /// there are the endpoint's `inputs`.
    Output,
}

/// A list of ports: `[0]`, `[0, 2-4]`, `[1-]`.
#[derive(Clone, Debug)]
pub struct Ports {
    /// At least one; in the order written.
    pub ranges: Vec<PortRange>,
    /// Whether the list goes on after the last port, to as many ports as the other side offers.
    pub open: bool,
    /// The list with its brackets.
    pub span: Span,
}

impl Ports {
    /// Each port number that is written, in order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|range| range.first..=range.last)
    }
}

/// Ports `first..=last`, at most [`crate::MAX_PORT`].
#[derive(Clone, Debug)]
pub struct PortRange {
    /// First port.
    pub first: u32,
    /// Last port, not below the first.
    pub last: u32,
    /// Where the range stands.
    pub span: Span,
}

/// Statements in parentheses, with an `input` and an `output` of their own; its elements belong to the
/// enclosing file or compound.
#[derive(Clone, Debug)]
pub struct Group {
    /// In the order of the text.
    pub statements: Vec<Statement>,
    /// The group with its parentheses.
    pub span: Span,
}

/// `elementclass Name …`
#[derive(Clone, Debug)]
pub struct ElementClass {
    /// The name that is given.
    pub name: Name,
    /// A synonym if it is [`Class::Named`].
    pub class: Class,
    /// The whole.
    pub span: Span,
}

/// A class made of other elements.
#[derive(Clone, Debug)]
pub struct Compound {
    /// The overloads, separated by `||`; at least one.
    pub bodies: Vec<Body>,
    /// `|| ...`: falls back to the class that had this name before.
    pub extends: Option<Span>,
    /// The compound with its braces.
    pub span: Span,
}

/// One overload of a compound.
#[derive(Clone, Debug)]
pub struct Body {
    /// Positional ones first, then those with keywords, then `__REST__`.
    pub parameters: Vec<Parameter>,
    /// In the order of the text.
    pub statements: Vec<Statement>,
    /// All between the delimiters: `{` or `||` before it, `||` or `}` after it.
    pub span: Span,
}

/// `$a` or `KEYWORD $a`
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Given for arguments that are passed by keyword.
    pub keyword: Option<Name>,
    /// The variable without its `$`; the span includes it.
    pub variable: Name,
}

impl Parameter {
    /// Whether the parameter takes all arguments that remain.
    pub fn is_rest(&self) -> bool {
        self.keyword.as_ref().is_some_and(|keyword| keyword.text == "__REST__")
    }

    /// The whole.
    pub fn span(&self) -> Span {
        match &self.keyword {
            Some(keyword) => keyword.span.to(self.variable.span),
            None => self.variable.span,
        }
    }
}

/// `define($A 1, $B 2)`
#[derive(Clone, Debug)]
pub struct Define {
    /// The variables and their values, before any expansion.
    pub definitions: Vec<Definition>,
    /// What is written.
    pub config: Config,
    /// The whole.
    pub span: Span,
}

/// One variable of a `define`.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The variable without its `$`; the span includes it.
    pub variable: Name,
    /// What the variable stands for; may be empty.
    pub value: Argument,
}

/// `require(…)`
#[derive(Clone, Debug)]
pub struct Require {
    /// What is required.
    pub requirements: Vec<Requirement>,
    /// What is written.
    pub config: Config,
    /// The whole.
    pub span: Span,
}

/// One item of a `require`.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// What is required.
    pub kind: RequirementKind,
    /// Where it stands.
    pub span: Span,
}

/// What can be required.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequirementKind {
    /// `require(NAME)`, `require(package NAME)`
    Package(String),
    /// `require(library FILE)`: the statements of that file stand here, once.
    Library(String),
    /// `require(compact_config)`: a hint that changes nothing.
    CompactConfig,
}
