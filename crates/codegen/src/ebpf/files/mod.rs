//! Files: an object as libbpf loads it, and what its maps hold from the beginning, as commands for
//! `bpftool batch`. Objects of XDP programs carry no contents of maps.

mod btf;
mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;

/// The object.
pub(super) const OBJECT: &str = "catena.o";
/// What maps hold.
pub(super) const ENTRIES: &str = "catena.maps";
/// Instructions, for people.
pub(super) const LISTING: &str = "catena.lst";

/// The section of maps.
const MAPS: &str = ".maps";
/// The section of their types.
const TYPES: &str = ".BTF";
/// What programs are named by.
const XDP: &str = "xdp";
/// A relocation by a map.
const R_BPF_64_64: u32 = 1;
