//! Chains that are changed while they run: nothing is lost, and state goes on.

mod change;
mod cores;
mod support;
