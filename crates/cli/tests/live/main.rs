//! Chains between interfaces of the kernel.
#![allow(clippy::print_stderr, unreachable_pub)]

mod change;
mod lab;
mod manners;
mod traffic;
