//! Chains that are changed while they run: nothing is lost, and state goes on.

#![allow(unreachable_pub)]

mod capture;
mod change;
mod cores;
mod start;
mod support;
mod time;
