use super::*;

fn table(pool: &str, capacity: u64, network_hosts: usize, timeout: u64) -> HostTable {
    let pool = pool.parse().unwrap();
    HostTable::new(Options { pool, capacity, network_hosts, timeout: timeout * SECOND })
}

/// A host of a network.
fn host(network: u64, number: u64) -> Ipv6Addr {
    (0x2001_0db8_u128 << 96 | u128::from(network) << 64 | 1 << 40 | u128::from(number)).into()
}

fn bound(table: &mut HostTable, host: Ipv6Addr, now: u64) -> Result<Ipv4Addr, Reason> {
    table.bind(host, now).map(|(_, stand_in)| stand_in)
}

/// Has a host send, get an answer, and send again.
fn establish(table: &mut HostTable, host: Ipv6Addr, now: u64) {
    let (number, _) = table.find(host, now).unwrap();
    for from in [Sender::Host, Sender::Server, Sender::Host] {
        table.touch(number, from, now);
    }
}

#[test]
fn a_scan_takes_nothing_from_hosts_at_work() {
    let mut table = table("240.0.0.0/4", 100, 1000, 7500);
    let busy: Vec<Ipv6Addr> = (0..50).map(|n| host(n, 1)).collect();
    let before = Vec::from_iter(busy.iter().map(|&host| bound(&mut table, host, 0)));
    busy.iter().for_each(|&host| establish(&mut table, host, 0));
    for n in 0..100_000 {
        bound(&mut table, host(1000 + n / 7, n), n * 10_000).unwrap();
        assert!(table.hosts.len() <= 100 && table.networks.len() <= 100);
    }
    let now = 1_000_000_000;
    let after = busy.iter().map(|&host| table.find(host, now).map(|(_, stand_in)| stand_in));
    assert_eq!(after.collect::<Vec<_>>(), before.into_iter().map(Result::ok).collect::<Vec<_>>());
    assert_eq!(table.stand_ins.len(), 100);
}

#[test]
fn a_network_has_so_many_hosts_and_others_theirs() {
    let mut table = table("240.0.0.0/4", 100, 10, 7500);
    for n in 0..10 {
        bound(&mut table, host(1, n), 0).unwrap();
    }
    assert_eq!(bound(&mut table, host(1, 10), 0), Err(NETWORK_LIMIT));
    assert!(bound(&mut table, host(2, 10), 0).is_ok());
    // Those that are not established are over soon.
    let later = BRIEF + tick(BRIEF);
    assert!(bound(&mut table, host(1, 10), later).is_ok());
}

#[test]
fn a_table_of_established_hosts_takes_no_others() {
    let mut table = table("240.0.0.0/4", 3, 10, 7500);
    for n in 0..3 {
        bound(&mut table, host(n, n), 0).unwrap();
        establish(&mut table, host(n, n), 0);
    }
    assert_eq!(bound(&mut table, host(4, 4), SECOND), Err(FULL));
    let over = (7500 + 5) * SECOND;
    assert!(bound(&mut table, host(4, 4), over).is_ok());
    assert_eq!(table.find(host(0, 0), over), None);
}

/// No other host has a stand-in until the timeout after its last packet is over.
#[test]
fn stand_ins_rest_until_flows_are_over() {
    for pool in ["10.0.0.0/29", "10.0.0.0/21"] {
        let mut table = table(pool, 4, 1 << 30, 1000);
        let mut last = std::collections::HashMap::new();
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut now, mut given) = (0, 0);
        for n in 0..60_000u64 {
            now += rng.u64(0..4 * SECOND);
            let host = host(0, n);
            if let Ok(stand_in) = bound(&mut table, host, now) {
                given += 1;
                let since = last.insert(stand_in, now).map_or(u64::MAX, |last| now - last);
                assert!(since >= 1000 * SECOND, "{stand_in} after {since}");
                assert_eq!(table.host(stand_in, now).map(|(_, host)| host), Some(host));
            }
        }
        assert!(given > 500, "{pool}: {given}");
    }
}

#[test]
fn addresses_that_no_host_beyond_the_link_has_are_refused() {
    let mut table = table("240.0.0.0/4", 100, 10, 7500);
    for bad in ["::", "::1", "::10.0.0.1", "::ffff:10.0.0.1", "fe80::1", "febf::1", "ff02::1"] {
        assert_eq!(bound(&mut table, bad.parse().unwrap(), 0), Err(BAD_SOURCE), "{bad}");
    }
    for good in ["2001:db8::1", "fd00::1", "64:ff9b:1::1"] {
        assert!(bound(&mut table, good.parse().unwrap(), 0).is_ok(), "{good}");
    }
}

/// Bindings go on in another configuration, and no stand-in comes up early there.
#[test]
fn bindings_go_along_with_a_change() {
    let mut old = table("10.0.0.0/29", 4, 10, 1000);
    let mut given = Vec::new();
    for n in 0..6 {
        given.push(bound(&mut old, host(n, n), n).unwrap());
    }
    establish(&mut old, host(5, 5), 6);
    for moved in [false, true] {
        let mut state = match moved {
            true => ElementState::new(crate::element_state::Scope::All),
            false => ElementState::copy(crate::element_state::Scope::All),
        };
        old.export("hosts", &mut state);
        let mut new = table("10.0.0.0/29", 4, 10, 1000);
        new.import("hosts", &mut state, 10);
        for n in 2..6 {
            let found = new.find(host(n, n), 10).map(|(_, stand_in)| stand_in);
            assert_eq!(found, Some(given[n as usize]), "moved: {moved}");
        }
        if moved {
            // Two are free, and were others' a moment ago.
            assert!(!given.contains(&bound(&mut new, host(9, 9), 10).unwrap()));
            assert!(!given.contains(&bound(&mut new, host(10, 10), 10).unwrap()));
            assert_eq!(bound(&mut new, host(11, 11), 10), Err(FULL));
        }
    }
}
