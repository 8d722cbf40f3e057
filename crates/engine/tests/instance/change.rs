use std::sync::Arc;
use std::sync::atomic::Ordering;

use catena_engine::instance::{Extent, Instance};
use catena_engine::session::Path;
use dataplane::change::Fate;

use crate::support::{FLOWS, Wire, configuration, drain, read, run, start};

/// A translator between two interfaces, with `middle` on its path out.
fn chain(rules: &str, middle: &str) -> String {
    format!(
        "FromDevice(in) -> Strip(14) -> MarkIPHeader
           -> f :: IPFilter({rules})
           -> nat :: IPRewriter(pattern 1.0.0.1 20000-30000# - - 0 0)
           -> c :: Counter {middle}
           -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02)
           -> q :: Queue(5000) -> ToDevice(out);"
    )
}

#[track_caller]
fn nothing_is_lost(path: Path, changes: usize) {
    let wire = Wire::new();
    let a = chain("allow all", "");
    let b = chain("deny src port 1, allow all", "-> d :: Counter -> CheckIPHeader");
    wire.open();
    let wires = [Arc::clone(&wire)];
    let instance = start(&a, &wires, path);
    run(&wire, 10 * FLOWS);
    let before = wire.ports();
    assert_eq!(before.len() as u64, FLOWS);
    let (a, b) = (configuration(&a), configuration(&b));
    for i in 0..changes {
        let next = if i % 2 == 0 { &b } else { &a };
        let changed = instance.change(next.clone(), Extent::Change).expect("it can be changed");
        assert!(changed.swapped.iter().all(|s| s.taken.unclaimed == 0));
        run(&wire, FLOWS);
    }
    drain(&instance, &wires);
    let (taken, sent) = (wire.taken.load(Ordering::SeqCst), wire.sent.load(Ordering::SeqCst));
    assert_eq!(wire.seen.lock().unwrap().wrong, Vec::<String>::new());
    assert_eq!(taken, sent, "packets were lost");
    assert_eq!(wire.ports(), before, "flows were translated anew");
    assert_eq!(read(&instance, "c.count"), taken.to_string());
    assert_eq!(read(&instance, "q.drops"), "0");
    assert_eq!(instance.generation(), changes as u64 + 1);
}

#[test]
fn a_hundred_changes_under_load_lose_nothing() {
    nothing_is_lost(Path::Synthesised, 100);
}

#[test]
fn element_by_element_nothing_is_lost() {
    nothing_is_lost(Path::Native, 10);
}

#[test]
fn interpreted_nothing_is_lost() {
    nothing_is_lost(Path::Interpreted, 3);
    nothing_is_lost(Path::SynthesisedInterpreted, 3);
}

#[test]
fn packets_in_queues_go_on() {
    let wire = Wire::new();
    wire.limit.store(300, Ordering::SeqCst);
    let held = |rest: &str| {
        format!(
            "FromDevice(in) -> q :: Queue(1000) -> u :: Unqueue(ACTIVE {rest}) -> ToDevice(out);"
        )
    };
    let instance = start(&held("false"), &[Arc::clone(&wire)], Path::Synthesised);
    while read(&instance, "q.length") != "300" {}
    let text = configuration(&held("false").replace("1000", "200"));
    let changed = instance.change(text, Extent::Change).unwrap();
    let line = changed.plan.lines.iter().find(|line| line.element == "q").unwrap();
    assert_eq!((line.fate, line.holding.packets), (Fate::Kept, 300));
    assert_eq!(
        (read(&instance, "q.length"), read(&instance, "q.highwater_length")),
        ("200".into(), "300".into())
    );
    instance.change(configuration(&held("true")), Extent::Change).unwrap();
    drain(&instance, &[Arc::clone(&wire)]);
    assert_eq!(wire.sent.load(Ordering::SeqCst), 200);
    assert_eq!(wire.seen.lock().unwrap().wrong, Vec::<String>::new());
}

#[test]
fn a_return_to_the_former_configuration_carries_state_too() {
    let wire = Wire::new();
    wire.open();
    let wires = [Arc::clone(&wire)];
    let instance = start(&chain("allow all", ""), &wires, Path::Synthesised);
    assert!(
        instance
            .roll_back(Extent::Change)
            .unwrap_err()
            .to_string()
            .contains("no other configuration")
    );
    run(&wire, 5 * FLOWS);
    instance.change(configuration(&chain("deny all", "")), Extent::Change).unwrap();
    run(&wire, 5 * FLOWS);
    let denied = read(&instance, "c.count");
    run(&wire, 5 * FLOWS);
    assert_eq!(read(&instance, "c.count"), denied, "nothing gets through");
    instance.roll_back(Extent::Change).unwrap();
    let before: u64 = denied.parse().unwrap();
    run(&wire, 5 * FLOWS);
    assert!(read(&instance, "c.count").parse::<u64>().unwrap() > before);
    assert_eq!(instance.current().1.text(), chain("allow all", ""));
    // And forth again.
    instance.roll_back(Extent::Change).unwrap();
    assert_eq!(instance.current().1.text(), chain("deny all", ""));
}

#[test]
fn what_is_wrong_is_refused_and_the_old_chain_goes_on() {
    let wire = Wire::new();
    wire.open();
    let instance = start(&chain("allow all", ""), &[Arc::clone(&wire)], Path::Synthesised);
    let wrong = chain("allow all", "").replace("20000-30000#", "20000-x");
    let why = instance.change(configuration(&wrong), Extent::Change).unwrap_err().to_string();
    assert!(why.contains("20000-x"), "{why}");
    let device = chain("allow all", "").replace("ToDevice(out)", "ToDevice(nowhere)");
    let why = instance.change(configuration(&device), Extent::Change).unwrap_err().to_string();
    assert!(why.contains("there is no nowhere"), "{why}");
    assert_eq!(instance.generation(), 1);
    let before: u64 = read(&instance, "c.count").parse().unwrap();
    run(&wire, 10 * FLOWS);
    assert!(read(&instance, "c.count").parse::<u64>().unwrap() > before);
}

#[test]
fn what_would_be_lost_is_told_and_trying_changes_nothing() {
    let wire = Wire::new();
    wire.open();
    let instance = start(&chain("allow all", ""), &[Arc::clone(&wire)], Path::Synthesised);
    run(&wire, 5 * FLOWS);
    let other = chain("allow all", "")
        .replace("nat ::", "nat2 ::")
        .replace("c :: Counter", "c :: AverageCounter")
        .replace("Queue(5000)", "Queue(100)");
    let tried = instance.change(configuration(&other), Extent::Check).unwrap();
    assert!(tried.plan.loses() && tried.swapped.is_empty());
    let fates: Vec<(&str, Fate)> =
        tried.plan.lines.iter().map(|line| (line.element.as_str(), line.fate)).collect();
    assert!(fates.contains(&("nat", Fate::Lost)), "{fates:?}");
    assert!(fates.contains(&("nat2", Fate::New)), "{fates:?}");
    assert!(fates.contains(&("c", Fate::Lost)), "{fates:?}");
    let nat = tried.plan.lines.iter().find(|line| line.element == "nat").unwrap();
    assert_eq!(nat.holding.flows as u64, FLOWS);
    assert_eq!(instance.generation(), 1);
    assert_eq!(read(&instance, "c.class"), "Counter");
}

#[test]
fn flows_go_on_under_other_timeouts_and_as_far_as_there_is_room() {
    let wire = Wire::new();
    wire.open();
    let wires = [Arc::clone(&wire)];
    let text = chain("allow all", "");
    let instance = start(&text, &wires, Path::Synthesised);
    run(&wire, 10 * FLOWS);
    let before = wire.ports();
    let longer = text.replace("IPRewriter(", "IPRewriter(UDP_TIMEOUT 77, TCP_TIMEOUT 999, ");
    instance.change(configuration(&longer), Extent::Change).unwrap();
    run(&wire, 10 * FLOWS);
    // Another pool: flows keep what they have.
    let other = longer.replace("20000-30000#", "40000-50000#");
    let changed = instance.change(configuration(&other), Extent::Change).unwrap();
    assert!(!changed.plan.loses(), "{:?}", changed.plan);
    run(&wire, 10 * FLOWS);
    drain(&instance, &wires);
    assert_eq!(wire.seen.lock().unwrap().wrong, Vec::<String>::new());
    assert_eq!(wire.ports(), before, "flows were translated anew");
    // Less room than flows: that is told before.
    let small = other.replace("UDP_TIMEOUT 77", "UDP_TIMEOUT 77, MAPPING_CAPACITY 10");
    let changed = instance.change(configuration(&small), Extent::Change).unwrap();
    let line = changed.plan.lines.iter().find(|line| line.element == "nat").unwrap();
    assert_eq!((line.fate, line.why.as_str()), (Fate::Partly, "flows: 50 flows, room for 10"));
    assert_eq!(instance.fleet().holdings()["nat"].flows, 10);
}

/// Rewriters that share a table are numbered there; flows stay with the rewriter that has their name.
#[test]
fn flows_stay_with_their_rewriter_when_others_come_to_share_its_table() {
    for path in [Path::Synthesised, Path::Interpreted] {
        let wire = Wire::new();
        wire.open();
        let wires = [Arc::clone(&wire)];
        let text = |others: &str| {
            let shared = "IPRewriter(MAPPING_CAPACITY root, ";
            let root = "root :: IPRewriter(drop)";
            let others = others.replace("IPRewriter", "IPRewriter(drop, MAPPING_CAPACITY root)");
            format!(
                "Idle -> {root} -> Discard; {others} {}",
                chain("allow all", "").replace("IPRewriter(", shared)
            )
        };
        let instance = start(&text(""), &wires, path);
        run(&wire, 10 * FLOWS);
        let before = wire.ports();
        let one = "Idle -> x :: IPRewriter -> Discard;";
        let two = "Idle -> y :: IPRewriter -> Discard; Idle -> x :: IPRewriter -> Discard;";
        for others in [one, two, ""] {
            instance.change(configuration(&text(others)), Extent::Change).unwrap();
            assert_eq!(read(&instance, "nat.table_size"), FLOWS.to_string());
            run(&wire, 10 * FLOWS);
        }
        drain(&instance, &wires);
        assert_eq!(wire.seen.lock().unwrap().wrong, Vec::<String>::new());
        assert_eq!(wire.ports(), before, "flows were translated anew");
    }
}

/// Flows go to three outputs in turn, if the balancer is not told otherwise.
fn balancer(arguments: &str, extra: &str) -> String {
    format!(
        "FromDevice(in) -> Strip(14) -> MarkIPHeader -> s :: IPRRSwitch({arguments}); {extra}
         s[0] -> a :: Counter -> Unstrip(14) -> ToDevice(out);
         s[1] -> b :: Counter -> Discard; s[2] -> c :: Counter -> Discard;"
    )
}

#[test]
fn flows_of_an_output_that_is_gone_go_to_another() {
    for path in [Path::Native, Path::Interpreted] {
        let wire = Wire::new();
        wire.open();
        let wires = [Arc::clone(&wire)];
        let instance = start(&balancer("", ""), &wires, path);
        run(&wire, 20 * FLOWS);
        instance.change(configuration(&balancer("MAX 2", "")), Extent::Change).unwrap();
        let before = read(&instance, "c.count");
        assert_ne!(before, "0");
        run(&wire, 20 * FLOWS);
        drain(&instance, &wires);
        assert_eq!(read(&instance, "c.count"), before, "{path:?}");
        assert_eq!(read(&instance, "s.flow_count"), FLOWS.to_string(), "{path:?}");
    }
}

#[test]
fn balancers_remember_where_flows_go() {
    let wire = Wire::new();
    wire.open();
    let wires = [Arc::clone(&wire)];
    let text = |extra: &str| balancer("", extra);
    let instance = start(&text(""), &wires, Path::Native);
    // Whole turns through all flows, so that each output has had the same flows.
    let share = |handler: &str| read(&instance, handler).parse::<u64>().unwrap();
    run(&wire, 20 * FLOWS);
    let before = wire.ports();
    let rounds = || instance.stats().1.expect("the worker runs").load.rounds;
    let before_changes = rounds();
    for extra in ["x :: Idle -> Discard;", ""] {
        instance.change(configuration(&text(extra)), Extent::Change).unwrap();
        assert!(rounds() >= before_changes, "how busy the worker has been is forgotten");
        run(&wire, 20 * FLOWS);
    }
    drain(&instance, &wires);
    assert_eq!(wire.ports().len(), before.len(), "a flow went elsewhere");
    assert_eq!(wire.seen.lock().unwrap().wrong, Vec::<String>::new());
    let taken = wire.taken.load(Ordering::SeqCst);
    assert_eq!(share("a.count") + share("b.count") + share("c.count"), taken);
    assert_eq!(read(&instance, "s.flow_count"), FLOWS.to_string());
}

/// A chain that drops what comes from so many addresses of a network.
fn listed(network: u32) -> String {
    let rule = |n: u32| format!("deny src host 10.{network}.{}.{}", n / 256, n % 256);
    let rules: Vec<String> = (0..3000).map(rule).collect();
    format!("FromDevice(in) -> f :: IPFilter({}, allow all) -> ToDevice(out);", rules.join(", "))
}

/// What is read while `change` makes something else of it, again and again, is one or the other.
fn is_read_in_one_piece(instance: &Instance, handler: &str, mut change: impl FnMut(bool)) {
    let both = [true, false].map(|other| {
        change(other);
        read(instance, handler)
    });
    assert_ne!(both[0], both[1]);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            for _ in 0..20 {
                match instance.read(handler) {
                    Ok(text) => assert!(both.contains(&text), "{handler} was read in two pieces"),
                    Err(why) => assert!(why.to_string().contains("changes faster"), "{why}"),
                }
            }
        });
        while !reader.is_finished() {
            [true, false].into_iter().for_each(&mut change);
        }
    });
}

#[test]
fn rules_that_change_while_they_are_listed_are_read_in_one_piece() {
    let instance = start(&listed(0), &[Wire::new()], Path::Native);
    let change = |other| match other {
        true => instance.write("f.rule_insert", "1 deny udp").unwrap(),
        false => instance.write("f.rule_remove", "1").unwrap(),
    };
    is_read_in_one_piece(&instance, "f.rules", change);
    is_read_in_one_piece(&instance, "f.config", change);
}

#[test]
fn a_chain_that_is_replaced_while_it_is_listed_is_read_in_one_piece() {
    let instance = start(&listed(0), &[Wire::new()], Path::Native);
    let chains = [listed(0), listed(1)];
    is_read_in_one_piece(&instance, "f.rules", |other| {
        let chain = configuration(&chains[usize::from(other)]);
        instance.change(chain, Extent::Change).unwrap();
    });
}
