//! Sources of the runtimes, for network functions that are built elsewhere.

/// The C runtime: its header, and its source.
pub const C: [(&str, &str); 2] = [
    ("catena_nf.h", include_str!("../c/catena_nf.h")),
    ("catena_nf.c", include_str!("../c/catena_nf.c")),
];

/// The sources of this crate, for NFs that are built elsewhere.
pub const RUST: [(&str, &str); 11] = [
    ("src/lib.rs", include_str!("lib.rs")),
    ("src/abi.rs", include_str!("abi.rs")),
    ("src/channel.rs", include_str!("channel.rs")),
    ("src/memory.rs", include_str!("memory.rs")),
    ("src/page.rs", include_str!("page.rs")),
    ("src/runtime.rs", include_str!("runtime.rs")),
    ("src/sources.rs", include_str!("sources.rs")),
    ("c/catena_nf.h", include_str!("../c/catena_nf.h")),
    ("c/catena_nf.c", include_str!("../c/catena_nf.c")),
    ("c/acl.c", C_EXAMPLE),
    ("examples/acl.rs", EXAMPLE),
];

/// Its dependencies, for such NFs.
pub const DEPENDENCIES: &str = "rustix = { version = \"1\", default-features = false, features = [\"event\", \"fs\", \"mm\", \"net\", \"process\", \"std\", \"thread\"] }";

/// An access list in C.
pub const C_EXAMPLE: &str = include_str!("../c/acl.c");

/// The same in Rust.
pub const EXAMPLE: &str = include_str!("../examples/acl.rs");
