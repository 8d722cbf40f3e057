//! Sources of the runtimes, for network functions that are built elsewhere.

/// The C runtime: its header, and its source.
pub const C: [(&str, &str); 2] = [
    ("catena_nf.h", include_str!("../c/catena_nf.h")),
    ("catena_nf.c", include_str!("../c/catena_nf.c")),
];

/// The Python runtime: a module.
pub const PYTHON: [(&str, &str); 1] = [("catena_nf.py", include_str!("../python/catena_nf.py"))];

/// The Go runtime: the files of a package.
pub const GO: [(&str, &str); 3] = [
    ("nf.go", include_str!("../go/nf.go")),
    ("attach.go", include_str!("../go/attach.go")),
    ("state.go", include_str!("../go/state.go")),
];

/// The module of the Go runtime, and the oldest Go that builds it. The name leads to no server: nothing is loaded.
pub const GO_MODULE: &str = "nf.catena/nf";

/// What `go.mod` has of it.
pub const GO_VERSION: &str = "1.19";

/// Threads that Go's own runtime needs at most, beside the one that processes packets.
pub const GO_THREADS: u32 = 16;

/// The sources of this crate, for NFs that are built elsewhere.
pub const RUST: [(&str, &str); 24] = [
    ("src/lib.rs", include_str!("lib.rs")),
    ("src/abi.rs", include_str!("abi.rs")),
    ("src/cache.rs", include_str!("cache.rs")),
    ("src/channel.rs", include_str!("channel.rs")),
    ("src/flow.rs", include_str!("flow.rs")),
    ("src/memory.rs", include_str!("memory.rs")),
    ("src/page.rs", include_str!("page.rs")),
    ("src/runtime.rs", include_str!("runtime.rs")),
    ("src/sources.rs", include_str!("sources.rs")),
    ("src/store.rs", include_str!("store.rs")),
    ("c/catena_nf.h", include_str!("../c/catena_nf.h")),
    ("c/catena_nf.c", include_str!("../c/catena_nf.c")),
    ("c/acl.c", C_EXAMPLE),
    ("c/quota.c", C_STATE_EXAMPLE),
    ("python/catena_nf.py", PYTHON[0].1),
    ("python/acl.py", PYTHON_EXAMPLE),
    ("python/quota.py", PYTHON_STATE_EXAMPLE),
    ("go/nf.go", GO[0].1),
    ("go/attach.go", GO[1].1),
    ("go/state.go", GO[2].1),
    ("go/acl.go", GO_EXAMPLE),
    ("go/quota.go", GO_STATE_EXAMPLE),
    ("examples/acl.rs", EXAMPLE),
    ("examples/quota.rs", STATE_EXAMPLE),
];

/// Its dependencies, for such NFs.
pub const DEPENDENCIES: &str = "foldhash = \"0.2\"\nrustix = { version = \"1\", default-features = false, features = [\"event\", \"fs\", \"mm\", \"net\", \"process\", \"std\", \"thread\"] }";

/// An access list in C.
pub const C_EXAMPLE: &str = include_str!("../c/acl.c");

/// A quota in C, which keeps state of flows.
pub const C_STATE_EXAMPLE: &str = include_str!("../c/quota.c");

/// The access list in Rust.
pub const EXAMPLE: &str = include_str!("../examples/acl.rs");

/// The same in Python.
pub const PYTHON_EXAMPLE: &str = include_str!("../python/acl.py");

/// The same in Go.
pub const GO_EXAMPLE: &str = include_str!("../go/acl.go");

/// The quota in Rust.
pub const STATE_EXAMPLE: &str = include_str!("../examples/quota.rs");

/// The same in Python.
pub const PYTHON_STATE_EXAMPLE: &str = include_str!("../python/quota.py");

/// The same in Go.
pub const GO_STATE_EXAMPLE: &str = include_str!("../go/quota.go");
