//! What tidy holds, as data. Every exception stands here with its reason, and nowhere else.

/// Where this file stands: the one place that may spell the forbidden words.
pub(super) const THIS_FILE: &str = "xtask/src/tidy/rules.rs";

/// The floors of the house, lowest first. A crate may import crates of lower floors only.
pub(super) const FLOORS: [&[&str]; 8] = [
    &["net", "nf"],
    &["ir"],
    &["click", "classify", "codegen", "placement", "scale"],
    &["elements"],
    &["compiler", "dataplane"],
    &["engine", "host", "view"],
    &["control", "bench", "sim"],
    &["cli"],
];

/// Crates beside the house: they may import any crate, and are imported by tests and benches only.
pub(super) const BESIDE: [&str; 1] = ["lab"];

/// Crates whose tests import higher floors: who, what, why.
pub(super) const TESTED_WITH: [(&str, &[&str], &str); 1] = [(
    "elements",
    &["dataplane", "engine"],
    "elements are compared with their models in every execution mode",
)];

/// Imports that go down and are wrong all the same: who, what, why.
pub(super) const NOT_IMPORTED: [(&str, &str, &str); 1] =
    [("dataplane", "click", "the data plane runs graphs, whatever language they were written in")];

/// The crates that may use a dependency: which, who, why.
pub(super) const RESERVED: [(&str, &[&str], &str); 1] =
    [("tokio", &["control", "cli"], "packets do not wait for an async runtime")];

/// Where code may print and read the environment; a build script speaks to cargo, an example and tests to who runs them.
pub(super) const TALKATIVE: [&str; 6] = [
    "crates/bench/build.rs",
    "crates/cli/",
    "crates/dataplane/build.rs",
    "crates/engine/examples/",
    "crates/lab/",
    "xtask/",
];

/// The files that may hold `unsafe`: which, why.
pub(super) const UNSAFE_FILES: [(&str, &str); 13] = [
    ("crates/classify/benches/rule_sets/rte_acl.rs", "calls the C library that it compares with"),
    ("crates/classify/src/memory.rs", "tells the kernel about memory"),
    ("crates/classify/src/simd.rs", "vector instructions that not every processor has"),
    ("crates/dataplane/src/io/bpf.rs", "hands the kernel pointers to programs"),
    ("crates/dataplane/src/io/dpdk/ffi.rs", "calls DPDK"),
    ("crates/dataplane/src/io/dpdk/swx.rs", "calls DPDK's SWX"),
    ("crates/dataplane/src/io/messages.rs", "hands the kernel pointers to packets"),
    ("crates/dataplane/src/io/rings.rs", "shares memory with the kernel"),
    ("crates/dataplane/src/io/sys.rs", "calls the kernel"),
    ("crates/dataplane/src/pipeline/simd.rs", "vector instructions that not every processor has"),
    ("crates/host/src/sys.rs", "calls the kernel"),
    ("crates/net/src/buffer.rs", "packets in memory that devices lend"),
    ("crates/nf/src/memory.rs", "shares memory with other processes"),
];

/// The crates whose modules are looked at for circles of imports.
pub(super) const WITHOUT_CIRCLES: [&str; 3] = ["classify", "compiler", "dataplane"];

/// Modules of a folder that may import each other in a circle: where, which, why.
pub(super) const IN_CIRCLES: [(&str, &[&str], &str); 1] = [(
    "crates/dataplane/src",
    &["pipeline", "router"],
    "a router runs stages in the place of its elements, and a stage works in a router",
)];

/// How many lines of code, tests aside, a file may have.
pub(super) const MAX_LINES: usize = 900;

/// The files that may be longer: which, why.
pub(super) const LONG_FILES: [(&str, &str); 0] = [];

/// Marks of work left undone.
pub(super) const UNFINISHED: [&str; 6] =
    ["todo!", "unimplemented!", "#[ignore", "FIXME", "XXX", "TODO"];

/// Starts of paths that exist on one machine only.
pub(super) const MACHINE_PATHS: [&str; 3] = ["/home/", "/root/", "/Users/"];

/// Texts outside `elements` that equal an element's name and do not mean it: where, which, why.
pub(super) const WORDS_THAT_ARE_ALSO_ELEMENTS: [(&str, &str, &str); 2] = [
    ("crates/codegen/src/p4/read/mod.rs", "Switch", "a package of TNA"),
    ("crates/codegen/src/p4/read/syntax.rs", "Counter", "an extern of TNA"),
];

/// Phrases that texts do not use, and the field's term for each. Of words with `|` in between, any may stand there.
pub(super) const WORDS: [(&str, &str); 13] = [
    ("take|takes|took|taken|taking the place|places of", "replaces, or hot-swaps"),
    ("bring|brings|brought|bringing near", "prefetch"),
    ("give|gives|gave|given|giving out", "allocated"),
    ("bear|bears|bore|bearing a|the mark", "is traced, or carries a trace id"),
    ("carry|carries|carried|carrying out", "executed, or run"),
    ("parted", "partitioned"),
    ("large page|pages", "huge pages"),
    ("made|taken aside", "built in the background"),
    ("scout|scouts", "lookahead"),
    ("heirloom|heirlooms", "state that is carried over"),
    ("seldom", "rarely"),
    ("plainly", "simply, or what exactly"),
    ("way|ways", "path; of dispatch and I/O, mode; of links, direction"),
];
