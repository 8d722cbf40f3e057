//! Tables of Lemur's network functions, written by hand: as it published them (chapter 2 of Wang's dissertation, 2023, and
//! `src/expected_optimal.p4`), and as one would lower them.

use std::collections::HashMap;

use catena_codegen::stages::{
    Action, BranchId, Decision, FieldId, Guard, Key, MatchKind, Member, Members, Pipeline, Table,
    TableId,
};

use MatchKind::{Exact, Lpm, Ternary};

pub(crate) fn action(reads: &[FieldId], writes: &[FieldId], data: u32) -> Action {
    Action { name: String::new(), reads: reads.to_vec(), writes: writes.to_vec(), data }
}

/// Lemur's headers and metadata, and a pipeline to which its NFs are appended.
pub(crate) struct Lemur {
    pub(crate) all: Pipeline,
    guards: Vec<Guard>,
    names: HashMap<&'static str, FieldId>,
}

const HEADERS: &[(&str, &[(&str, u32)])] = &[
    ("ethernet", &[("eth.dst", 48), ("eth.src", 48), ("eth.type", 16)]),
    ("vlan", &[("vlan.tci", 16), ("vlan.type", 16)]),
    (
        "nsh",
        &[
            ("nsh.flags", 4),
            ("nsh.ttl", 6),
            ("nsh.length", 6),
            ("nsh.unassigned", 4),
            ("nsh.md", 4),
            ("nsh.proto", 8),
            ("nsh.spi", 24),
            ("nsh.si", 8),
            ("nsh.context", 128),
        ],
    ),
    (
        "ipv4",
        &[
            ("ip.version", 8),
            ("ip.tos", 8),
            ("ip.len", 16),
            ("ip.id", 16),
            ("ip.frag", 16),
            ("ip.ttl", 8),
            ("ip.proto", 8),
            ("ip.sum", 16),
            ("ip.src", 32),
            ("ip.dst", 32),
        ],
    ),
    // What Tofino's traffic manager is told lies like a header.
    (
        "traffic manager",
        &[
            ("padding", 7),
            ("egress", 9),
            ("discard", 3),
            ("bypass", 5),
            ("queue", 8),
            ("more", 5),
            ("copy", 1),
        ],
    ),
    ("tcp", &[("tcp.src", 16), ("tcp.dst", 16), ("tcp.rest", 128)]),
];

const METADATA: &[(&str, u32)] = &[
    ("spi", 24),
    ("si", 8),
    ("previous", 16),
    ("forward", 1),
    ("controller", 1),
    ("nsh", 1),
    ("drop", 1),
    ("forward_miss", 4),
    ("acl_miss", 1),
    ("is_external", 1),
    ("nat_miss", 1),
    ("address", 32),
    ("mac", 48),
    ("new.src", 32),
    ("new.dst", 32),
    ("new.sport", 16),
    ("new.dport", 16),
    ("port", 9),
    ("vlan.valid", 1),
    ("nsh.valid", 1),
];

impl Lemur {
    pub(crate) fn new() -> Self {
        let mut lemur =
            Self { all: Pipeline::default(), guards: Vec::new(), names: Default::default() };
        for (header, fields) in HEADERS {
            for (name, bits) in *fields {
                lemur.names.insert(name, lemur.all.field(name, *bits, Some(header)));
            }
        }
        for (name, bits) in METADATA {
            lemur.names.insert(name, lemur.all.field(name, *bits, None));
        }
        lemur
    }

    pub(crate) fn fields(&self, names: &[&str]) -> Vec<FieldId> {
        names.iter().map(|name| self.names[name]).collect()
    }

    pub(crate) fn act(&self, reads: &[&str], writes: &[&str], data: u32) -> Action {
        action(&self.fields(reads), &self.fields(writes), data)
    }

    pub(crate) fn table(
        &mut self,
        name: &str,
        keys: &[(&str, MatchKind)],
        actions: Vec<Action>,
        entries: u64,
    ) -> TableId {
        let keys =
            keys.iter().map(|(name, kind)| Key { field: self.names[name], kind: *kind }).collect();
        let guards = self.guards.clone();
        let origin = "published".into();
        self.all.table(Table {
            name: name.into(),
            origin,
            keys,
            actions,
            entries,
            guards,
            ..Table::default()
        })
    }

    pub(crate) fn branch(&mut self, on: &[&str]) -> BranchId {
        let on = Decision::Fields(self.fields(on));
        self.all.branch(on)
    }

    pub(crate) fn arm(&mut self, branch: BranchId, arms: &[u32], inside: impl FnOnce(&mut Self)) {
        self.guards.push(Guard { branch, arms: arms.to_vec() });
        inside(self);
        self.guards.pop();
    }

    pub(crate) fn initialise(&mut self, writes: &[&str]) {
        let nothing = self.act(&[], writes, 0);
        self.table("initialise", &[], vec![nothing], 0);
    }

    /// Its IPv4Fwd: 5,000 prefixes.
    pub(crate) fn forward(&mut self) {
        self.initialise(&["forward_miss"]);
        let hit = self.act(&["eth.dst"], &["eth.src", "eth.dst", "egress", "forward_miss"], 57);
        let miss = self.act(&[], &["forward_miss"], 0);
        self.table("forward", &[("ip.dst", Lpm)], vec![hit, miss], 5000);
    }

    /// Its NAT: 2,000 entries of a ternary table, over metadata.
    pub(crate) fn nat(&mut self) {
        let external = self.act(&[], &["address", "mac", "is_external"], 81);
        let drop = self.act(&[], &["drop"], 0);
        self.table("interface", &[("port", Exact)], vec![external, drop.clone()], 10);
        let new = ["nat_miss", "new.src", "new.dst", "new.sport", "new.dport"];
        let out = self.act(&["ip.dst", "tcp.dst"], &new, 48);
        let back = self.act(&["ip.src", "tcp.src"], &new, 48);
        let miss = self.act(&[], &["nat_miss", "drop"], 0);
        let keys = [
            ("is_external", Ternary),
            ("ip.src", Ternary),
            ("ip.dst", Ternary),
            ("tcp.src", Ternary),
            ("tcp.dst", Ternary),
        ];
        self.table("nat", &keys, vec![out, back, miss.clone(), miss, drop], 2000);
        let hit = self.branch(&["nat_miss"]);
        self.arm(hit, &[0], |lemur| {
            let read = ["new.src", "new.dst", "new.sport", "new.dport"];
            let rewrite = lemur.act(&read, &["ip.src", "ip.dst", "tcp.src", "tcp.dst"], 0);
            lemur.table("rewrite", &[], vec![rewrite], 0);
        });
    }

    /// Where it sends packets next.
    pub(crate) fn next(&mut self) {
        let next = self.act(&["spi", "si"], &["previous", "spi", "si"], 0);
        let miss = self.act(&[], &["spi", "drop"], 0);
        self.table("next", &[], vec![next, miss], 0);
    }

    /// What its programs begin with.
    pub(crate) fn begin(&mut self) {
        let clear = self.act(&[], &["forward", "controller", "nsh"], 0);
        self.table("clear", &[], vec![clear], 0);
        let tagged = self.branch(&["nsh.valid"]);
        self.arm(tagged, &[1], |lemur| {
            let remove =
                lemur.act(&["nsh.spi", "nsh.si"], &["spi", "si", "eth.type", "nsh.valid"], 0);
            lemur.table("decapsulate", &[], vec![remove], 0);
        });
        self.arm(tagged, &[0], |lemur| {
            let select = lemur.act(&["spi", "si"], &["previous", "spi", "si"], 0);
            let miss = lemur.act(&[], &["spi", "drop"], 0);
            let all = vec![select.clone(), select.clone(), select.clone(), select, miss];
            lemur.table("select", &[("ip.dst", Ternary)], all, 20);
        });
    }

    /// What they end with.
    pub(crate) fn end(&mut self) {
        let leaves = self.branch(&["spi", "si"]);
        self.arm(leaves, &[1], |lemur| {
            let set = lemur.act(&[], &["nsh"], 0);
            lemur.table("to cores", &[], vec![set], 0);
        });
        let tags = self.branch(&["controller", "nsh"]);
        self.arm(tags, &[1], |lemur| {
            let nsh = [
                "nsh.valid",
                "nsh.flags",
                "nsh.ttl",
                "nsh.length",
                "nsh.unassigned",
                "nsh.md",
                "nsh.spi",
                "nsh.si",
                "nsh.context",
                "si",
            ];
            let encapsulate = lemur.act(&["spi", "si"], &nsh, 0);
            lemur.table("encapsulate", &[], vec![encapsulate], 0);
            let vlan = lemur.branch(&["vlan.valid"]);
            for (arm, name) in [(1, "over vlan"), (0, "over ipv4")] {
                lemur.arm(vlan, &[arm], |lemur| {
                    let set = lemur.act(&[], &["eth.type", "nsh.proto"], 0);
                    lemur.table(name, &[], vec![set], 0);
                });
            }
        });
        for (flag, writes) in [("nsh", "egress"), ("controller", "copy"), ("drop", "discard")] {
            let flagged = self.branch(&[flag]);
            self.arm(flagged, &[1], |lemur| {
                let send = lemur.act(&[], &[writes], 0);
                lemur.table(flag, &[], vec![send], 0);
            });
        }
    }
}

/// BPF -> so many NATs in branches -> IPv4Fwd, as Lemur's compiler composes it: its NAT, a split into metadata, a
/// merge behind all arms.
pub(crate) fn nats(count: u32) -> Pipeline {
    let mut lemur = Lemur::new();
    lemur.begin();
    let split = lemur.act(&["spi", "si"], &["previous", "spi", "si"], 0);
    lemur.table(
        "bpf",
        &[("ip.src", Ternary), ("ip.dst", Ternary)],
        vec![split; count as usize],
        count.into(),
    );
    let arms = lemur.branch(&["spi", "si", "drop"]);
    for arm in 0..count {
        lemur.arm(arms, &[arm], |lemur| {
            lemur.initialise(&[]);
            lemur.nat();
            lemur.next();
        });
    }
    let merge = lemur.branch(&["spi", "si", "drop"]);
    lemur.arm(merge, &[1], Lemur::forward);
    lemur.end();
    lemur.all
}

/// The same chain as one would lower it: flows are looked up exactly, in both directions, what is written comes from
/// the entry, and the arm is a number in metadata.
pub(crate) fn nats_in_one(count: u32) -> Pipeline {
    let mut lemur = Lemur::new();
    let arm = lemur.all.field("arm", 8, None);
    let split = action(&[], &[arm], 8);
    lemur.table("bpf", &[("ip.src", Ternary), ("ip.dst", Ternary)], vec![split], count.into());
    let arms = lemur.all.branch(Decision::Fields(vec![arm]));
    for number in 0..count {
        lemur.arm(arms, &[number], |lemur| {
            let out = lemur.act(&[], &["ip.src", "tcp.src"], 48);
            let back = lemur.act(&[], &["ip.dst", "tcp.dst"], 48);
            let five =
                ["ip.src", "ip.dst", "ip.proto", "tcp.src", "tcp.dst"].map(|name| (name, Exact));
            lemur.table("nat", &five, vec![out, back], 2000);
        });
    }
    let hit = lemur.act(&[], &["eth.src", "eth.dst", "egress"], 105);
    lemur.table("forward", &[("ip.dst", Lpm)], vec![hit], 5000);
    lemur.all
}

/// The same chain in functions, each with the tables that it would have alone.
pub(crate) fn functions(count: usize) -> Members {
    let member = |name: String, keys: &[(&str, MatchKind)], writes: &[&str], data, entries| {
        let mut lemur = Lemur::new();
        let mut writes = lemur.fields(writes);
        // A function that has one output writes none.
        if name.starts_with("bpf") || name.starts_with("forward") {
            writes.push(lemur.all.field("egress port", 9, Some("out")));
        }
        let act = action(&[], &writes, data);
        lemur.table(&name, keys, vec![act], entries);
        let forks = name == "bpf";
        Some(Member { name, pipeline: lemur.all, numbers: 0, forks })
    };
    let five = ["ip.src", "ip.dst", "ip.proto", "tcp.src", "tcp.dst"].map(|name| (name, Exact));
    let split = [("ip.src", Ternary), ("ip.dst", Ternary)];
    let mut all = vec![member("bpf".into(), &split, &[], 8, count as u64)];
    for nat in 0..count {
        let writes = ["ip.src", "ip.dst", "tcp.src", "tcp.dst"];
        all.push(member(format!("nat{nat}"), &five, &writes, 96, 2000));
    }
    all.push(member("forward".into(), &[("ip.dst", Lpm)], &["eth.src", "eth.dst"], 105, 5000));
    let edges = (1..=count).flat_map(|nat| [(0, nat), (nat, count + 1)]).collect();
    Members { all, edges }
}

/// The program that Lemur published for four chains: Limiter -> NAT, Encrypt -> Tunnel, Limiter -> ACL, and
/// Detunnel -> Decrypt, each to IPv4Fwd. What is encrypted or limited runs on cores.
pub(crate) fn four_chains() -> Pipeline {
    let mut lemur = Lemur::new();
    lemur.begin();
    let arms = lemur.branch(&["spi", "si", "drop", "controller"]);
    lemur.arm(arms, &[0], |lemur| {
        lemur.initialise(&[]);
        let vlan = lemur.branch(&["vlan.valid"]);
        lemur.arm(vlan, &[1], |lemur| {
            let pop = lemur.act(&["vlan.type"], &["eth.type", "vlan.valid"], 0);
            lemur.table("detunnel", &[], vec![pop], 0);
        });
        lemur.next();
    });
    lemur.arm(arms, &[1], Lemur::forward);
    lemur.arm(arms, &[2], |lemur| {
        lemur.initialise(&[]);
        let hit = lemur.act(&[], &["acl_miss"], 0);
        let miss = lemur.act(&[], &["acl_miss", "drop"], 0);
        let keys =
            [("ip.src", Ternary), ("ip.dst", Ternary), ("tcp.src", Ternary), ("tcp.dst", Ternary)];
        lemur.table("acl", &keys, vec![hit, miss], 50);
        lemur.forward();
    });
    lemur.arm(arms, &[3], |lemur| {
        lemur.initialise(&[]);
        let push =
            lemur.act(&["eth.type"], &["vlan.valid", "vlan.tci", "vlan.type", "eth.type"], 16);
        lemur.table("tunnel", &[], vec![push], 0);
        lemur.forward();
    });
    lemur.arm(arms, &[4], |lemur| {
        lemur.initialise(&[]);
        lemur.nat();
        lemur.forward();
    });
    lemur.end();
    lemur.all
}

/// The four chains as one would lower them: one table that steers, what NFs write comes from entries, one table of
/// routes behind all arms, and tags that are pushed beside it.
pub(crate) fn four_chains_in_one() -> Pipeline {
    let mut lemur = Lemur::new();
    let arm = lemur.all.field("arm", 8, None);
    let steer = action(&[], &[arm], 8);
    lemur.table(
        "steer",
        &[("nsh.valid", Ternary), ("nsh.spi", Ternary), ("nsh.si", Ternary), ("ip.dst", Ternary)],
        vec![steer],
        20,
    );
    let arms = lemur.all.branch(Decision::Fields(vec![arm]));
    lemur.arm(arms, &[0], |lemur| {
        let pop = lemur.act(&["vlan.type"], &["eth.type", "vlan.valid"], 0);
        lemur.table("detunnel", &[], vec![pop], 0);
    });
    lemur.arm(arms, &[1], |lemur| {
        let keys =
            [("ip.src", Ternary), ("ip.dst", Ternary), ("tcp.src", Ternary), ("tcp.dst", Ternary)];
        let drop = lemur.act(&[], &["discard"], 0);
        lemur.table("acl", &keys, vec![drop], 50);
    });
    lemur.arm(arms, &[2], |lemur| {
        let push =
            lemur.act(&["eth.type"], &["vlan.valid", "vlan.tci", "vlan.type", "eth.type"], 16);
        lemur.table("tunnel", &[], vec![push], 0);
    });
    lemur.arm(arms, &[3], |lemur| {
        let out = lemur.act(&[], &["ip.src", "tcp.src"], 48);
        let back = lemur.act(&[], &["ip.dst", "tcp.dst"], 48);
        let five = ["ip.src", "ip.dst", "ip.proto", "tcp.src", "tcp.dst"].map(|name| (name, Exact));
        lemur.table("nat", &five, vec![out, back], 2000);
    });
    lemur.arm(arms, &[1, 2, 3, 4], |lemur| {
        let hit = lemur.act(&[], &["eth.src", "eth.dst", "egress"], 105);
        lemur.table("forward", &[("ip.dst", Lpm)], vec![hit], 5000);
    });
    lemur.arm(arms, &[0, 5], |lemur| {
        let nsh = ["nsh.valid", "nsh.proto", "nsh.spi", "nsh.si", "eth.type", "egress"];
        let push = lemur.act(&[], &nsh, 32);
        lemur.table("encapsulate", &[], vec![push], 0);
    });
    lemur.all
}
