//! Chains between interfaces of the kernel.
#![allow(clippy::print_stderr, unreachable_pub)]

mod bench;
mod change;
mod clients;
mod collected;
mod conntrack;
mod deploy;
mod direct;
mod dispatch;
mod floods;
mod kernel;
mod lease;
mod links;
mod listed;
mod load;
mod manners;
mod masquerade;
mod namespaces;
mod netbench;
mod netbench_containers;
mod netbench_hosts;
mod nic;
mod privileges;
mod protocols;
mod rack;
mod replan;
mod soak;
mod talk;
mod third_party;
mod traffic;
mod watching;

/// The program under test.
const CATENA: lab::live::Catena = lab::live::Catena(env!("CARGO_BIN_EXE_catena"));
