//! The text form of models, conditions, expressions and header spaces.
//!
//! Everything prints with [`std::fmt::Display`] and reads back with the functions here:
//! what was printed reads back as the same thing (the spans of rules are left out). One operation
//! stands on a line, blocks are indented, `//` begins a comment:
//!
//! ```text
//! state count: counter
//!
//! input 0 {
//!   if ip.ttl in {0..1} {
//!     drop ttl-expired
//!   }
//!   set ip.ttl = ip.ttl - 1
//!   count count
//!   emit 0
//! }
//! ```
//!
//! | | |
//! |---|---|
//! | numbers | `6`, `0x800`, `-14` (two's complement), `10.0.0.1`, `2001:db8::1`, `02:00:00:00:00:01` |
//! | sets | `{0..1, 6}`, `{10.0.0.0/8, 192.168.0.1}`; both ends belong to a range |
//! | fields | `ip.ttl`; `net[64+8]`: 8 bits from bit 64 of the network header |
//! | registers | `r0` |
//! | arithmetic | `+ - * / % & \| ^ << >>` with Rust's precedence, `min(a, b)`, `max(a, b)`, `choose(condition, a, b)`, `hash(a, b)` |
//! | bytes | `load(net, 4 * r0, 16)`, `sum16(net, 0, 20)`, `bytesum(data, 0, meta.len)`, `position(transport)` |
//! | the world | `now`, `random(0, 9)` |
//! | tests | `a in {…}`, `a not in {…}`, `a == 6`, `a != 6` |
//! | comparisons | `a < b` …; `compare(a < 6)` where the constant is not to become a test |
//! | conditions | `!a`, `a && b`, `a \|\| b`, `all(…)`, `any(…)`, `true`, `false`, `exists(flows, key, …)` |
//! | state | its name, or `#0` by its number if two share the name |
//!
//! Reasons and names of state live as long as the program. Those that are read are interned: each
//! distinct one is kept once, and no more than [`MAX_INTERNED`] bytes of them in all.

mod intern;
mod lexer;
mod parse;
mod print;

pub use intern::MAX_INTERNED;
pub use parse::{
    MAX_DEPTH, Programs, parse_cond, parse_expr, parse_header_space, parse_model, parse_programs,
};
pub(crate) use print::{Constant, Name, level};
