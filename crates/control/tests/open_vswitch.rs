//! What is installed on Open vSwitch, changed, removed and found there, and what is not.

use std::time::Duration;

use catena_control::openflow::{Failure, Mark, Odd, Plan, Site, Switch};
use codegen::openflow::{Action, Bits, Class, Field, Flow, FlowEntry};
use ir::topology::Address;
use lab::ovs;

const PATIENCE: Duration = Duration::from_secs(20);

fn address(switch: &ovs::Switch) -> Address {
    Address::Unix(switch.socket())
}

fn connect(switch: &ovs::Switch) -> Switch {
    Switch::connect(&address(switch), PATIENCE).unwrap_or_else(|why| panic!("{why}"))
}

fn exact(field: Field, value: u128) -> Bits {
    Bits { field, value, mask: field.ones() }
}

/// Frames to an address and port leave by a port.
fn rule(number: u32, out: u32) -> FlowEntry {
    let when = vec![
        exact(Field::EthType, 0x800),
        exact(Field::IpProto, 6),
        exact(Field::IpDst, u128::from(0x0a00_0000 + number)),
        Bits { field: Field::TcpDst, value: 0x50, mask: 0xfff0 },
    ];
    let flow = Flow {
        cookie: Class::Exit(0, number).number(),
        table: 1,
        priority: 10,
        when,
        actions: vec![Action::DecTtl, Action::Output(out)],
        metadata: None,
        goto: None,
    };
    FlowEntry { flow, origin: format!("rule {number}").into() }
}

fn first() -> FlowEntry {
    let flow = Flow {
        cookie: Class::Inner(0, 0).number(),
        table: 0,
        priority: 2,
        when: vec![exact(Field::InPort, 1)],
        actions: Vec::new(),
        metadata: None,
        goto: Some(1),
    };
    FlowEntry { flow, origin: "frames of port 1".into() }
}

fn chain(rules: u32) -> Vec<FlowEntry> {
    [first()].into_iter().chain((0..rules).map(|number| rule(number, 2))).collect()
}

fn install(switch: &mut Switch, entries: Vec<FlowEntry>, mark: Mark) -> Plan {
    let plan = Plan::new(switch.entries().unwrap(), entries.clone(), mark);
    switch.apply(&plan).unwrap_or_else(|why| panic!("{why}"));
    let left = Plan::new(switch.entries().unwrap(), entries, mark);
    assert!(left.is_empty(), "{left:?}");
    plan
}

fn sizes(plan: &Plan) -> [usize; 4] {
    [plan.add.len(), plan.change.len(), plan.remove.len(), plan.stay.len()]
}

#[test]
fn a_second_installation_changes_what_differs() {
    let ovs = ovs::Switch::start(3);
    let mut switch = connect(&ovs);
    let mark = Mark::of("chain");
    assert_eq!(sizes(&install(&mut switch, chain(2000), mark)), [2001, 0, 0, 0]);
    assert_eq!(sizes(&install(&mut switch, chain(2000), mark)), [0, 0, 0, 2001]);
    // A hundred rules, one after the other.
    let mut entries = chain(2000);
    for number in 1..=100 {
        entries[number] = rule(number as u32 - 1, 3);
        assert_eq!(sizes(&install(&mut switch, entries.clone(), mark)), [0, 1, 0, 2000]);
    }
    let text = ovs.flows(&["dump-flows", "br0", "table=1,out_port=3"]);
    assert_eq!(text.matches("dec_ttl,output:3").count(), 100, "{text}");
    assert_eq!(sizes(&install(&mut switch, chain(5), mark)), [0, 5, 1995, 1]);
}

/// Lists in which order counts: one rule more shifts no other.
#[test]
fn a_rule_that_comes_between_changes_nothing_else() {
    let ovs = ovs::Switch::start(3);
    let mut switch = connect(&ovs);
    let mark = Mark::of("chain");
    let list = |rules: &[u32]| -> Vec<FlowEntry> {
        let one = |(at, &number): (usize, &u32)| {
            let mut entry = rule(number, 2);
            entry.flow.priority = (rules.len() - at) as u16;
            entry
        };
        rules.iter().enumerate().map(one).collect()
    };
    let mut rules: Vec<u32> = (0..1000).collect();
    install(&mut switch, list(&rules), mark);
    for (at, number) in [(0, 2000), (500, 2001), (500, 2002), (501, 2003), (1004, 2004)] {
        rules.insert(at, number);
        let before = rules.len() - 1;
        assert_eq!(sizes(&install(&mut switch, list(&rules), mark)), [1, 0, 0, before]);
    }
    rules.remove(400);
    assert_eq!(sizes(&install(&mut switch, list(&rules), mark)), [0, 0, 1, 1004]);
    // The first becomes the last.
    rules.rotate_left(1);
    assert_eq!(sizes(&install(&mut switch, list(&rules), mark)), [1, 0, 1, 1003]);
    // The order on the switch is that of the list.
    let mut there = switch.entries_of(mark).unwrap();
    there.sort_by_key(|stats| std::cmp::Reverse(stats.flow.priority));
    let numbers: Vec<u32> = there.iter().map(|s| (s.flow.cookie & 0xff_ffff) as u32).collect();
    assert_eq!(numbers, rules);
}

#[test]
fn entries_of_others_are_left_alone() {
    let ovs = ovs::Switch::start(3);
    let foreign = [
        "table=0,priority=0,actions=NORMAL",
        "cookie=0x77,table=1,priority=40000,tcp,nw_dst=10.0.0.3,actions=output:3",
        "cookie=0x1000000,table=1,priority=9,actions=drop",
        "table=5,udp,actions=group:1",
    ];
    ovs.flows(&["add-group", "br0", "group_id=1,type=all,bucket=output:2"]);
    foreign.iter().for_each(|entry| drop(ovs.flows(&["add-flow", "br0", entry])));
    let others = |ovs: &ovs::Switch| {
        let text = ovs.flows(&["--no-stats", "dump-flows", "br0"]);
        let is_own = |line: &&str| line.contains("cookie=0xca7e");
        let all: Vec<String> = text.lines().filter(|l| !is_own(l)).map(String::from).collect();
        all
    };
    let before = others(&ovs);
    assert_eq!(before.len(), 4, "{before:?}");
    let mut switch = connect(&ovs);
    let mark = Mark::of("chain");
    let plan = install(&mut switch, chain(10), mark);
    let met = |cookie: u64| plan.foreign.iter().find(|f| f.stats.flow.cookie == cookie);
    assert!(met(0x77).is_some_and(|f| f.comes_first() && &*f.meets.origin == "rule 3"), "{plan:?}");
    assert!(met(0x0100_0000).is_some_and(|f| !f.comes_first()), "{plan:?}");
    assert!(met(0).is_some_and(|f| !f.comes_first()), "{plan:?}");
    assert_eq!(plan.foreign.len(), 3);
    // Another chain's are others', too.
    let other = Mark::of("another");
    let mut own = first();
    own.flow.when = vec![exact(Field::InPort, 2)];
    install(&mut switch, vec![own], other);
    assert_eq!(others(&ovs), before);
    assert_eq!(switch.remove(mark), Ok(11));
    assert_eq!(switch.remove(mark), Ok(0));
    assert_eq!(switch.entries_of(other).unwrap().len(), 1);
    assert_eq!(switch.remove(other), Ok(1));
    assert_eq!(others(&ovs), before);
}

#[test]
fn an_entry_in_the_way_is_named_and_nothing_is_changed() {
    let ovs = ovs::Switch::start(3);
    ovs.flows(&["add-flow", "br0", "cookie=0x5,table=0,priority=2,in_port=1,actions=output:3"]);
    let before = ovs.flows(&["--no-stats", "dump-flows", "br0"]);
    let mut switch = connect(&ovs);
    let plan = Plan::new(switch.entries().unwrap(), chain(10), Mark::of("chain"));
    let why = switch.apply(&plan).expect_err("it conflicts");
    assert!(matches!(&why, Failure::Taken(_)), "{why:?}");
    let said = why.to_string();
    assert!(said.contains("frames of port 1") && said.contains("cookie=0x5"), "{said}");
    assert_eq!(ovs.flows(&["--no-stats", "dump-flows", "br0"]), before);
}

#[test]
fn one_refused_entry_changes_nothing() {
    let ovs = ovs::Switch::start(3);
    let mut switch = connect(&ovs);
    let mark = Mark::of("chain");
    install(&mut switch, chain(100), mark);
    let before = ovs.flows(&["--no-stats", "dump-flows", "br0"]);
    type Fault = (fn(&mut FlowEntry), &'static str);
    let unknown = |entry: &mut FlowEntry| {
        entry.flow.when.retain(|bits| bits.field != Field::EthType);
    };
    let unable = |entry: &mut FlowEntry| entry.flow.actions = vec![Action::Output(0xffff_ff10)];
    let faults: [Fault; 2] =
        [(unknown, "lacks the one that says that it is there"), (unable, "there is no such port")];
    for (fault, words) in faults {
        let mut entries = chain(4000);
        fault(&mut entries[3000]);
        let plan = Plan::new(switch.entries().unwrap(), entries, mark);
        let why = switch.apply(&plan).expect_err("one is refused");
        let Failure::Refused(refusal) = &why else { panic!("{why:?}") };
        let (number, of, text, origin) = refusal.entry.clone().expect("which one");
        // A hundred and one are there already.
        assert_eq!((number, of, &*origin), (2900, 3900, "rule 2999"), "{why}");
        assert!(text.contains("ip_dst=10.0.11.183"), "{text}");
        assert!(why.to_string().contains(words), "{why}");
        assert_eq!(ovs.flows(&["--no-stats", "dump-flows", "br0"]), before);
        // The connection goes on.
        assert_eq!(sizes(&install(&mut switch, chain(100), mark)), [0, 0, 0, 101]);
    }
}

#[test]
fn a_full_table_is_named() {
    let ovs = ovs::Switch::start(3);
    let limit = ["--", "--id=@t", "create", "Flow_Table", "flow_limit=1000"];
    ovs.configure(&[&["set", "bridge", "br0", "flow_tables:1=@t"], &limit[..]].concat());
    let mut switch = connect(&ovs);
    let plan = Plan::new(switch.entries().unwrap(), chain(2000), Mark::of("chain"));
    let why = switch.apply(&plan).expect_err("it is full").to_string();
    assert!(why.contains("the table is full, it has room for 1000 entries"), "{why}");
    assert!(why.contains("type 5, code 1"), "{why}");
    assert_eq!(switch.entries().unwrap(), []);
}

#[test]
fn edits_by_others_and_restarts_are_noticed_and_set_right() {
    let mut ovs = ovs::Switch::start(3);
    let mut switch = connect(&ovs);
    let mark = Mark::of("chain");
    install(&mut switch, chain(50), mark);
    let strict = "table=1,priority=32768,tcp,nw_dst=10.0.0.7,tp_dst=0x50/0xfff0";
    ovs.flows(&["--strict", "mod-flows", "br0", &format!("{strict},actions=output:3")]);
    ovs.flows(&["del-flows", "br0", "table=1,tcp,nw_dst=10.0.0.9"]);
    let cookie = mark.cookie() | Class::Exit(0, 1).number();
    let added = format!("cookie={cookie:#x},table=1,priority=11,arp,actions=output:3");
    ovs.flows(&["add-flow", "br0", &added]);
    let plan = Plan::new(switch.entries().unwrap(), chain(50), mark);
    assert_eq!(sizes(&plan), [1, 1, 1, 49]);
    assert_eq!((&*plan.add[0].origin, &*plan.change[0].to.origin), ("rule 9", "rule 7"));
    assert!(plan.change[0].is_of_packets());
    install(&mut switch, chain(50), mark);
    ovs.kill();
    assert!(matches!(switch.entries(), Err(Failure::Closed)));
    assert!(matches!(
        Switch::connect(&address(&ovs), PATIENCE),
        Err(Failure::Unreachable(std::io::ErrorKind::ConnectionRefused, _))
    ));
    ovs.start_again();
    let mut switch = connect(&ovs);
    let plan = Plan::new(switch.entries().unwrap(), chain(50), mark);
    assert!(plan.is_all_new() && sizes(&plan) == [51, 0, 0, 0], "{:?}", sizes(&plan));
    assert_eq!(switch.show_fragments(), Ok(true));
    assert_eq!((switch.show_fragments(), switch.shows_fragments()), (Ok(false), Ok(true)));
    install(&mut switch, chain(50), mark);
}

#[test]
fn what_a_switch_is_not_is_named() {
    let ovs = ovs::Switch::start(2);
    let switch = connect(&ovs);
    assert!(switch.about().made.hardware.contains("Open vSwitch"), "{:?}", switch.about());
    let site = |ports: &[(u32, &str)]| Site {
        is_ovs: true,
        ports: ports.iter().map(|(number, name)| (*number, (*name).to_string())).collect(),
    };
    assert_eq!(switch.odd(&site(&[(1, "tor.lan"), (2, "tor.up")]), &chain(3)), []);
    let odd = switch.odd(&site(&[(1, "tor.lan"), (7, "tor.up")]), &chain(3));
    let [Odd::Port(7, name, there)] = &odd[..] else { panic!("{odd:?}") };
    assert_eq!((name.as_str(), there.len()), ("tor.up", 2));
    assert!(odd[0].to_string().contains("1 (p1), 2 (p2)"), "{}", odd[0]);
    let mut deep = first();
    deep.flow.table = 254;
    let odd = switch.odd(&site(&[]), &[deep]);
    assert_eq!(odd, [Odd::Tables(254, 255)]);
    ovs.configure(&["set", "bridge", "br0", "protocols=OpenFlow10,OpenFlow15"]);
    // A running connection is closed then.
    let why = Switch::connect(&address(&ovs), PATIENCE).err().expect("no version in common");
    assert!(
        matches!(&why, Failure::Version(_)) && why.to_string().contains("protocols=OpenFlow13"),
        "{why}"
    );
}

#[test]
fn a_switch_listens_to_tcp_too() {
    let ovs = ovs::Switch::start(2);
    // The kernel finds a free port for a listener that goes before the switch listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    ovs.configure(&["set-controller", "br0", &format!("ptcp:{free}:127.0.0.1")]);
    let address = Address::Tcp("127.0.0.1".into(), free);
    let mut switch = None;
    lab::live::until("it listens", || {
        switch = Switch::connect(&address, PATIENCE).ok();
        switch.is_some()
    });
    install(&mut switch.unwrap(), chain(600), Mark::of("chain"));
}

/// The whole bundle is sent, and the connection ends before its commitment.
#[test]
fn a_client_that_dies_changes_nothing() {
    use codegen::openflow::codec::{ATOMIC, Bundle, Command, Message, encode};
    use std::io::{Read, Write};
    let ovs = ovs::Switch::start(2);
    install(&mut connect(&ovs), chain(5), Mark::of("chain"));
    let before = ovs.flows(&["--no-stats", "dump-flows", "br0"]);
    let mut stream = std::os::unix::net::UnixStream::connect(ovs.socket()).unwrap();
    let mut bytes = Vec::new();
    encode(&Message::Hello { version: 4, versions: 16 }, 1, &mut bytes);
    encode(&Message::Bundle { id: 1, step: Bundle::Open, flags: ATOMIC }, 2, &mut bytes);
    for (entry, number) in chain(200).into_iter().skip(50).zip(3..) {
        let add = Message::FlowMod { command: Command::Add, cookie_mask: 0, flow: entry.flow };
        let mut message = Vec::new();
        encode(&add, number, &mut message);
        encode(&Message::BundleAdd { id: 1, flags: ATOMIC, message }, number, &mut bytes);
    }
    encode(&Message::BarrierRequest, 1000, &mut bytes);
    stream.write_all(&bytes).unwrap();
    let (mut read, barrier) = (Vec::new(), 1000u32.to_be_bytes());
    while !read.windows(4).any(|bytes| bytes == barrier) {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).unwrap();
        read.extend_from_slice(&some[..count]);
    }
    drop(stream);
    assert_eq!(ovs.flows(&["--no-stats", "dump-flows", "br0"]), before);
}
