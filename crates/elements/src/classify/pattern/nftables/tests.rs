use super::*;

const LISTING: &str = r#"# printed by nft
table inet filter {
	set blocked {
		type ipv4_addr
		flags interval
		elements = { 10.0.0.0/8, 192.0.2.1 comment "a, b",
			     192.0.2.7-192.0.2.9 }
	}
	set seen { type ipv4_addr; flags dynamic; }
	counter all { packets 0 bytes 0 }
	chain web {
		tcp dport 80 accept
	}
	chain forward { # handle 3
		type filter hook forward priority filter; policy drop;
		ip saddr @blocked counter packets 1 bytes 2 drop comment "no, not accept"
		tcp flags & (fin | syn | rst | ack) == syn accept; icmp type { echo-request,
			echo-reply } accept
	}
}
table ip6 filter { chain forward { type filter hook forward priority 0; accept; } }
"#;

fn wrong(text: &str) -> String {
    let text = format!("nft {text}");
    let Err(wrong) = parse(&text) else { panic!("{text} was read") };
    format!("{}: {}", &text[wrong.range.clone()], wrong.message)
}

fn pattern(text: &str) -> Pattern {
    parse(&format!("nft {text}")).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}")).1
}

#[test]
fn listings_have_chains_with_sets_and_a_policy() {
    assert!(is_listing(LISTING) && is_listing("flush ruleset") && !is_listing("allow tcp"));
    let chains = chains(LISTING).unwrap();
    let names: Vec<_> = chains.iter().map(Chain::name).collect();
    assert_eq!(names, ["web", "forward"]);
    let forward = &chains[1];
    assert_eq!(
        forward.policy.clone().map(|(passes, at)| (passes, &LISTING[at])),
        Some((false, "policy drop"))
    );
    assert_eq!(chains[0].policy, None);
    let rules: Vec<_> = forward.rules().map(|(at, rule)| (&LISTING[at], rule.unwrap())).collect();
    let (written, rule) = &rules[0];
    assert!(written.starts_with("ip saddr @blocked"), "{written}");
    assert!(!rule.passes);
    // Without what means nothing, and whole without the set.
    assert_eq!(
        rule.text,
        "'nft ip saddr { 10.0.0.0/8 , 192.0.2.1 comment \"a, b\" , 192.0.2.7-192.0.2.9 } drop'"
    );
    for (_, rule) in &rules {
        assert!(is_rule(&rule.text));
        assert_eq!(parse(&rule.text), Ok((rule.passes, rule.pattern.clone())), "{}", rule.text);
    }
    assert_eq!(rules.len(), 3);
}

#[test]
fn what_is_refused_is_named() {
    for (text, why) in [
        ("iifname lan accept", "iifname: the rule depends on an interface"),
        ("ct state new accept", "ct: the rule depends on the state of a connection"),
        ("limit rate 1/second accept", "limit: 'limit' is not supported"),
        ("jump web", "jump: 'jump' neither accepts nor drops packets"),
        ("tcp dport vmap { 22 : accept }", "vmap: verdict maps are not supported"),
        ("tcp window 1 accept", "tcp window: 'tcp window' is not supported"),
        ("tcp dport ssh accept", "ssh: 'ssh' is not a number"),
        ("tcp dport 65536 accept", "65536: '65536' is not a number"),
        ("tcp dport 9-8 accept", "9-8: '9-8' is not a number"),
        (
            "ip saddr 2001:db8::1 drop",
            "2001:db8::1: '2001:db8::1' is not an IPv4 address: rules are those of IPv4",
        ),
        ("ip saddr @none drop", "@none: there is no set 'none'"),
        ("ip saddr { 10.0.0.1 drop", "{: the set does not end"),
        (
            "ip saddr . tcp dport { 10.0.0.1 } drop",
            "10.0.0.1: 2 values are needed, with dots between",
        ),
        ("ip saddr < 10.0.0.0/8 drop", "<: only single numbers are greater or less than others"),
        ("ip saddr", "ip: a value is missing after 'ip'"),
        ("tcp dport 80", ": the rule decides nothing"),
        ("accept drop", "drop: this stands behind the verdict"),
        ("tcp flags & (syn == syn drop", "tcp: a bracket is not closed"),
        ("tcp flags none drop", "none: 'none' is not a flag of TCP"),
        ("ip ttl { 1 timeout 3s } drop", "timeout: 'timeout' is not supported in a set"),
    ] {
        assert_eq!(wrong(text), why, "{text}");
    }
    for (text, why) in [
        ("table ip a {\n chain b {\n accept\n", "'}' is missing"),
        ("table ip a", "'{' is missing"),
        ("table ip {", "'{' is missing"),
        ("table ip a {}\nadd rule ip a b accept", "'add' is not supported"),
    ] {
        let Err(wrong) = chains(text) else { panic!("{text} was read") };
        assert_eq!(wrong.message, why, "{text}");
    }
}

#[test]
fn forms_of_one_rule_mean_the_same() {
    for (one, other) in [
        ("tcp dport { 80, 443 } accept", "meta l4proto tcp tcp dport { 443, 80 } accept"),
        ("tcp dport 22-24 accept", "tcp dport { 22, 23, 24 } accept"),
        ("tcp flags & (syn | ack) == syn drop", "tcp flags syn / syn,ack drop"),
        ("tcp flags syn,ack drop", "tcp flags & (syn | ack) != 0 drop"),
        ("tcp flags ! syn drop", "tcp flags & syn == 0 drop"),
        ("ip dscp af11 drop", "ip dscp 0x0a drop"),
        ("ip dscp { cs1, ef } drop", "ip dscp { 8, 46 } drop"),
        ("ip dscp af41-af43 drop", "ip dscp 34-38 drop"),
        ("ip ttl < 2 drop", "ip ttl { 0, 1 } drop"),
        ("ip ttl >= 254 drop", "ip ttl 254-255 drop"),
        (
            "icmp type echo-request log prefix \"a\" level info drop",
            "icmp type 8 reject with icmp type admin-prohibited",
        ),
        ("ip saddr . tcp dport { 10.0.0.1 . 80 } accept", "tcp dport 80 ip saddr 10.0.0.1 accept"),
        (
            "ip saddr . tcp dport 10.0.0.1 . 80 accept",
            "ip saddr . tcp dport { 10.0.0.1 . 80 } accept",
        ),
        ("ip6 saddr ::1 accept", "meta nfproto ipv6 accept"),
        ("meta nfproto ipv4 accept", "accept"),
        ("ip protocol != { tcp, udp } drop", "meta l4proto != { 6, 17 } drop"),
    ] {
        let parts = |text| match pattern(text) {
            Pattern::All(mut parts) => {
                parts.sort_by_key(|part| format!("{part:?}"));
                parts
            }
            other => vec![other],
        };
        assert_eq!(parts(one), parts(other), "{one}");
    }
    // Where a key is missing, nothing is told of it, as of a single key.
    let there = Pattern::test(key::DESTINATION_PORT, 0xffff, IntervalSet::full(16));
    let Pattern::All(parts) = pattern("ip saddr . tcp dport != { 10.0.0.1 . 80 } drop") else {
        panic!("parts")
    };
    assert!(parts.contains(&there), "{parts:?}");
    assert_eq!(pattern("ip6 saddr { ::1, fe80::/10 } accept"), Pattern::Const(false));
    assert_eq!(pattern("icmpv6 type nd-neighbor-solicit accept"), Pattern::Const(false));
}
