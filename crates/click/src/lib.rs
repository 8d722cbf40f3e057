//! The Click language as FastClick accepts it: text to syntax tree, configuration strings, a formatter.
//!
//! This crate knows how configurations are *written*. Which element classes exist, what their
//! arguments mean and how compounds expand is decided by those who read the tree.
//!
//! # Grammar
//!
//! ```text
//! file        = statement*
//! statement   = chain [";"] | "elementclass" NAME (NAME | compound) | "define" config
//!             | "require" config | ";"
//! chain       = stage (arrow stage)*
//! arrow       = "->" | "=>" | "~" [["/"] NAME] ">"
//! stage       = endpoint ("," endpoint)*
//! endpoint    = [ports] node [ports] | ports | nothing     (the latter two: see below)
//! node        = (NAME | NAME "::" class | compound) [config] | group
//! class       = NAME | compound
//! compound    = "{" body ("||" body)* ["||" "..."] "}"
//! body        = [[parameter ("," parameter)*] "|"] statement*
//! parameter   = [KEYWORD] $NAME                            (keyword __REST__: all that remain)
//! group       = "(" statement* ")"
//! ports       = "[" [NUMBER ["-" NUMBER] ("," NUMBER ["-" NUMBER])*] ["-" | ","] "]"
//! config      = "(" text with balanced parentheses ")"
//! ```
//!
//! A `NAME` is made of letters, digits, `_` and `@`, with single slashes inside. Comments are those of
//! C++; a line that starts with `#` is a `#line` directive. A configuration is kept as text, in which
//! quotes and comments hide parentheses; [`Config::arguments`](ast::Config::arguments) splits it.
//!
//! - `a, b :: Class(config)` standing alone declares every name of the list with that class.
//! - A name that stands without `::` is a reference to a declared element, or an anonymous element if
//!   it names a class; the reader of the tree decides, in the order of the statements.
//! - Inside compounds and groups a chain may start with an arrow or with ports alone (`-> x`,
//!   `[1] -> x`), which means `input`; and end so (`x ->`, `x -> [1]`), which means `output`.
//! - `[2-]`, `[2,]` and `[]` are *open*: they extend to as many ports as the other side offers.
#![forbid(unsafe_code)]

pub mod ast;
mod bind;
pub mod config;
mod format;
mod lexer;
mod parser;

pub use bind::BindError;
pub use config::Argument;
pub use format::format;
pub use parser::{MAX_DEPTH, MAX_PORT, MAX_TOKENS, parse};
