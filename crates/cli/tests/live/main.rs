//! Chains between interfaces of the kernel.
#![allow(clippy::print_stderr, unreachable_pub)]

mod change;
mod dispatch;
mod lab;
mod manners;
mod privileges;
mod protocols;
mod soak;
mod talk;
mod traffic;
mod watching;
