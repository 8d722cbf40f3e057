//! Chains between interfaces of the kernel.
#![allow(clippy::print_stderr, unreachable_pub)]

mod lab;
mod manners;
mod traffic;
