//! Network functions that packets cross in both directions, and chains made of them.
//!
//! Input and output 0 are the forward path, input and output 1 the return path. Functions of one kind take
//! and give IP packets whose header was checked, those of the other Ethernet frames.

/// A chain between inputs `in0` and `in1` and the queues `out0` and `out1`.
pub struct Chain {
    pub text: String,
    /// Frames that it is meant for.
    pub captured: Vec<Vec<u8>>,
    /// Handlers that are written while it runs, with what.
    writes: Vec<(String, &'static [&'static str])>,
}

/// Functions on IP packets; `@` is a number of their own.
const IP: &[&str] = &[
    // TTLs, with the error that expired packets cause.
    "input[0] -> ttl :: DecIPTTL -> [0] output; input[1] -> [1] output;
     ttl[1] -> ICMPError(172.16.@.1, timeexceeded) -> [1] output;",
    "input[0] -> [0] output; input[1] -> c :: Counter -> DecIPTTL -> [1] output;",
    // A router.
    "input[0] -> GetIPAddress(16) -> rt :: RadixIPLookup(172.16.@.1/32 1, 10.0.0.0/8 2, 224.0.0.0/4 3,
       20.0.0.0/16 0, 20.1.0.0/16 9.9.9.9 0, 100.0.0.0/8 0, 8.0.0.0/8 0);
     rt[0] -> DropBroadcasts -> op :: IPGWOptions(172.16.@.1) -> FixIPSrc(172.16.@.1) -> ttl :: DecIPTTL
       -> fr :: IPFragmenter(600) -> [0] output;
     op[1] -> ICMPError(172.16.@.1, parameterproblem) -> back :: Null -> [1] output;
     ttl[1] -> ICMPError(172.16.@.1, timeexceeded) -> back;
     fr[1] -> ICMPError(172.16.@.1, unreachable, needfrag) -> back;
     rt[1] -> own :: Counter -> ICMPPingResponder -> back; rt[2] -> DecIPTTL -> back; rt[3] -> Discard;
     input[1] -> back;",
    "input[0] -> rt :: StaticIPLookup(10.0.0.0/8 1, 20.0.0.0/7 0, 8.8.8.8/32 2, 0.0.0.0/0 0);
     rt[0] -> [0] output; rt[1] -> DecIPTTL -> [1] output; rt[2] -> SetIPAddress(8.8.4.4) -> [0] output;
     input[1] -> [1] output;",
    // Access lists.
    "input[0] -> acl :: IPFilter(deny src net 10.9.0.0/16, allow udp dst port 53, deny tcp opt syn && dst port 65535,
       allow tcp && src port > 1023, deny ip frag, allow icmp, allow dst host 20.0.0.1 or 8.8.8.8) -> [0] output;
     input[1] -> IPFilter(deny dst 100.0.0.1 and tcp syn, allow all) -> [1] output;",
    "input[0] -> k :: IPClassifier(tcp syn, udp src port < 1025, icmp type echo, ip ttl < 5, ip dscp 1, -);
     k[0] -> a :: Counter -> [0] output; k[1] -> b :: Counter -> [0] output; k[2] -> [0] output;
     k[3] -> slow :: Counter -> Discard; k[4] -> SetIPDSCP(8) -> [0] output; k[5] -> [0] output;
     input[1] -> IPClassifier(tcp or udp or icmp) -> [1] output;",
    // Address translators.
    "input[0] -> k :: IPClassifier(tcp or udp, -); rw :: IPRewriter(pattern 100.0.@.1 1024-1030# - - 0 1, drop,
       UDP_TIMEOUT 5, TCP_TIMEOUT 6, TCP_DONE_TIMEOUT 1, UDP_GUARANTEE 1, TCP_GUARANTEE 0);
     k[0] -> [0] rw; k[1] -> [0] output; rw[0] -> [0] output; rw[1] -> [1] output;
     input[1] -> j :: IPClassifier(tcp or udp, -); j[0] -> [1] rw; j[1] -> [1] output;",
    "input[0] -> k :: IPClassifier(tcp or udp, icmp, -);
     rw :: IPRewriter(pattern 100.0.@.1 2000-2002 - - 0 1, pass 1, MAPPING_CAPACITY 3, UDP_TIMEOUT 2, REPLY_ANNO 17);
     pings :: ICMPPingRewriter(pattern 100.0.@.1 500-502# - - 0 1, drop, TIMEOUT 3);
     er :: ICMPRewriter(rw pings);
     k[0] -> [0] rw; k[1] -> [0] pings; k[2] -> [0] output; rw[0] -> [0] output; rw[1] -> [1] output;
     pings[0] -> [0] output; pings[1] -> [1] output;
     input[1] -> j :: IPClassifier(tcp or udp, icmp type echo-reply, icmp, -);
     j[0] -> [1] rw; j[1] -> [1] pings; j[2] -> er -> [1] output; j[3] -> [1] output;",
    "t :: TCPRewriter(pattern 100.0.@.1 1024-65535# - - 0 1, drop, TCP_DONE_TIMEOUT 1, MAPPING_CAPACITY 4);
     u :: UDPRewriter(pattern 100.0.@.2 1024-1026# - - 0 1, drop, TIMEOUT 2, STREAMING_TIMEOUT 4);
     input[0] -> k :: IPClassifier(tcp, udp, -); k[0] -> [0] t; k[1] -> [0] u; k[2] -> [0] output;
     input[1] -> j :: IPClassifier(tcp, udp, -); j[0] -> [1] t; j[1] -> [1] u; j[2] -> [1] output;
     t[0] -> [0] output; t[1] -> [1] output; u[0] -> [0] output; u[1] -> [1] output;",
    "rw :: IPAddrRewriter(pattern 100.0.@.1-100.0.@.4# - 0 1, pass 1, TIMEOUT 4, MAPPING_CAPACITY 3);
     input[0] -> [0] rw; input[1] -> [1] rw; rw[0] -> [0] output; rw[1] -> [1] output;",
    // Balancers.
    "lb :: RoundRobinIPMapper(- - 10.1.0.1 - 0 1, - - 10.1.0.2 8080 0 1);
     input[0] -> k :: IPClassifier(tcp or udp, -); k[0] -> [0] rw :: IPRewriter(lb, pass 1, UDP_TIMEOUT 3) -> [0] output;
     k[1] -> [0] output; rw[1] -> [1] output;
     input[1] -> j :: IPClassifier(tcp or udp, -); j[0] -> [1] rw; j[1] -> [1] output;",
    "lb :: SourceIPHashMapper(4 9, - - 10.1.0.1 - 0 1 4, - - 10.1.0.2 81 0 1 7);
     input[0] -> k :: IPClassifier(tcp or udp, -); k[0] -> [0] rw :: IPRewriter(lb) -> [0] output;
     k[1] -> [0] output; rw[1] -> [1] output; input[1] -> [1] output;",
    "input[0] -> h :: HashSwitch(16, 4); h[0] -> SetIPAddress(20.0.0.9) -> StoreIPAddress(16) -> [0] output;
     h[1] -> [0] output; input[1] -> s :: RoundRobinSwitch; s[0] -> [1] output; s[1] -> Paint(9) -> [1] output;",
    // Marks and colours.
    "input[0] -> Paint(@) -> SetIPDSCP(@) -> t :: Tee -> [0] output; t[1] -> c :: Counter -> Discard;
     input[1] -> CheckPaint(@) -> d :: Counter -> [1] output;",
    "input[0] -> s :: Switch(0); s[0] -> a :: Counter -> [0] output; s[1] -> SetIPDSCP(5) -> [0] output;
     s[2] -> Discard; input[1] -> p :: PaintTee(3) -> [1] output; p[1] -> Discard;",
    "input[0] -> ps :: PaintSwitch; ps[0] -> Paint(1) -> [0] output; ps[1] -> Paint(2) -> [0] output;
     ps[2] -> Paint(0) -> SetIPDSCP(3) -> [0] output; input[1] -> [1] output;",
    // Checks of what IP carries.
    "input[0] -> k :: IPClassifier(tcp, udp, icmp, -); k[0] -> CheckTCPHeader -> m :: Null -> [0] output;
     k[1] -> CheckUDPHeader -> m; k[2] -> CheckICMPHeader -> m; k[3] -> m;
     input[1] -> SetIPChecksum -> l :: CheckLength(80) -> [1] output; l[1] -> Truncate(60) -> CheckIPHeader -> [1] output;",
    "input[0] -> k :: IPClassifier(tcp and not ip frag, udp and not ip frag, -); k[0] -> SetTCPChecksum -> [0] output;
     k[1] -> SetUDPChecksum -> [0] output; k[2] -> [0] output; input[1] -> [1] output;",
    // Tunnels.
    "input[0] -> IPEncap(4, 172.17.@.1, 172.17.@.2, TTL 9) -> CheckIPHeader -> DecIPTTL -> [0] output;
     input[1] -> k :: IPClassifier(ip proto 4, -); k[0] -> StripIPHeader -> CheckIPHeader -> [1] output; k[1] -> [1] output;",
    "input[0] -> IPEncap(ipip, 172.17.@.1, 172.17.@.2) -> StripIPHeader -> CheckIPHeader -> [0] output;
     input[1] -> UDPIPEncap(172.17.@.1, 53, 10.0.0.1, 5000) -> [1] output;",
    "input[0] -> GREEncap(0x0800, KEY @, CHECKSUM true) -> IPEncap(gre, 172.17.@.1, 172.17.@.2) -> CheckIPHeader -> [0] output;
     input[1] -> GREEncap(0x0800, SEQUENCE true) -> d :: GREDecap(0x0800) -> CheckIPHeader -> [1] output; d[1] -> Discard;",
    // Packets that change the same numbers by programs and by elements.
    "e :: IPEncap(4, 172.17.@.1, 172.17.@.2) -> CheckIPHeader -> [0] output; input[0] -> k :: IPClassifier(udp, icmp, -);
     k[0] -> IPReassembler -> e; k[1] -> DecIPTTL -> IPFragmenter(100) -> e; k[2] -> e; input[1] -> [1] output;",
    "e :: UDPIPEncap(172.17.@.1, 53, 10.0.0.1, 5000) -> [0] output; input[0] -> t :: Tee; t[0] -> k :: IPClassifier(udp, -);
     t[1] -> j :: IPClassifier(icmp or tcp syn, -); k[0] -> IPReassembler -> e; k[1] -> e; j[0] -> SetIPDSCP(3) -> e; j[1] -> Discard;
     input[1] -> [1] output;",
    "input[0] -> k :: IPClassifier(tcp or udp, -); rw :: IPRewriter(pattern 100.0.@.1 1024-1030# - - 0 1, drop,
       UDP_TIMEOUT 5, TCP_TIMEOUT 6, TCP_DONE_TIMEOUT 1, UDP_GUARANTEE 1, TCP_GUARANTEE 0);
     k[0] -> [0] rw; rw[0] -> e :: GREEncap(0x0800, SEQUENCE true) -> IPEncap(gre, 172.17.@.1, 172.17.@.2) -> CheckIPHeader -> [0] output;
     k[1] -> ttl :: DecIPTTL -> e; ttl[1] -> ICMPError(172.16.@.1, timeexceeded) -> [1] output; rw[1] -> [1] output;
     input[1] -> j :: IPClassifier(tcp or udp, -); j[0] -> [1] rw; j[1] -> [1] output;",
    // Decisions by numbers that packets change: tokens, rates, turns and lots. Their paths do not meet again: elements
    // send fragments that part here output by output, and programs in order.
    "input[0] -> s :: RatedSplitter(20, BURST_SIZE 3) -> [0] output; s[1] -> DecIPTTL -> SetIPDSCP(7) -> e :: Counter -> Discard;
     input[1] -> b :: BandwidthRatedSplitter(2kBps, BURST_BYTES 500) -> [1] output; b[1] -> d :: Counter -> Discard;",
    "input[0] -> m :: Meter(10, 100); m[0] -> [0] output; m[1] -> SetIPDSCP(2) -> b :: Counter -> Discard; m[2] -> c :: Counter -> Discard;
     input[1] -> n :: BandwidthMeter(100, 10000); n[0] -> a :: AverageCounter(IGNORE 1) -> [1] output; n[1] -> d :: Counter -> Discard; n[2] -> Discard;",
    "input[0] -> r :: RandomSwitch; r[0] -> [0] output; r[1] -> SetIPDSCP(9) -> a :: Counter -> Discard; r[2] -> DecIPTTL -> b :: Counter -> Discard;
     input[1] -> RandomSample(0.7) -> [1] output;",
    "s :: RatedSplitter(50, BURST_SIZE 5); input[0] -> k :: IPClassifier(udp, icmp, -); k[0] -> IPReassembler -> s;
     k[1] -> DecIPTTL -> IPFragmenter(100) -> s; k[2] -> s; s[0] -> [0] output; s[1] -> SetIPDSCP(5) -> a :: Counter -> Discard;
     input[1] -> t :: RoundRobinSwitch -> UDPIPEncap(172.17.@.1, 53, 10.0.0.1, 5000) -> [1] output; t[1] -> b :: Counter -> Discard;",
    "input[0] -> k :: IPClassifier(tcp or udp, -); rw :: IPRewriter(pattern 100.0.@.1 1024-1030# - - 0 1, drop,
       UDP_TIMEOUT 5, TCP_TIMEOUT 6, TCP_DONE_TIMEOUT 1, UDP_GUARANTEE 1, TCP_GUARANTEE 0);
     k[0] -> [0] rw; rw[0] -> s :: RatedSplitter(40, BURST_SIZE 6) -> [0] output; s[1] -> SetIPDSCP(5) -> a :: Counter -> Discard;
     k[1] -> t :: RoundRobinSwitch -> s; t[1] -> b :: Counter -> Discard; rw[1] -> [1] output;
     input[1] -> j :: IPClassifier(tcp or udp, -); j[0] -> [1] rw; j[1] -> [1] output;",
    // Barriers.
    "input[0] -> Queue(100) -> Unqueue -> [0] output; input[1] -> f :: IPFragmenter(100) -> IPReassembler -> [1] output;
     f[1] -> ICMPError(172.16.@.1, unreachable, needfrag) -> [0] output;",
    "input[0] -> Print(PRINTANNO true, ACTIVE false) -> MarkIPHeader -> [0] output;
     input[1] -> IPMirror -> k :: IPClassifier(src 10.0.0.0/8, -); k[0] -> m :: Counter -> Discard; k[1] -> IPMirror -> [1] output;",
];

/// Functions on Ethernet frames.
const FRAMES: &[&str] = &[
    "input[0] -> c :: Classifier(12/0806 20/0001, 12/0806, 12/0800, 12/8100, -);
     c[0] -> ARPResponder(10.0.0.254 172.16.@.1 02:00:00:00:00:fa) -> [1] output; c[1] -> a :: Counter -> Discard;
     c[2] -> [0] output; c[3] -> [0] output; c[4] -> n :: Counter -> [0] output; input[1] -> [1] output;",
    "input[0] -> EtherVLANEncap(0x0800, 02:00:00:00:@:01, 02:00:00:00:@:02, @) -> [0] output;
     input[1] -> Strip(14) -> Unstrip(14) -> VLANDecap -> [1] output;",
    "input[0] -> VLANEncap(VLAN_ID 7) -> CheckVLAN -> c :: Classifier(14/0007%0fff 16/0800, -); c[0] -> VLANDecap -> [0] output;
     c[1] -> VLANDecap -> d :: Counter -> [0] output; input[1] -> EtherMirror -> [1] output;",
    "input[0] -> HostEtherFilter(02:00:00:00:00:02) -> [0] output;
     input[1] -> StoreData(6, \\<020000000007>) -> EtherRewrite(02:00:00:00:@:01, 02:00:00:00:@:02) -> [1] output;",
    "input[0] -> Strip(14) -> EtherEncap(0x0800, 02:00:00:00:@:01, 02:00:00:00:@:02) -> [0] output;
     input[1] -> c :: Classifier(12/0800 23/11, 12/0800 23/06 47/02%02, -); c[0] -> [1] output; c[1] -> [1] output;
     c[2] -> d :: Counter -> [1] output;",
    "input[0] -> c :: Classifier(12/86dd, -); c[0] -> Strip(14) -> CheckIP6Header -> h :: DecIP6HLIM
       -> rt :: LookupIP6Route(2001:db8::/64 ::0 0, ::0/0 ::0 1); rt[0] -> EtherEncap(0x86dd, 02:00:00:00:@:01, 02:00:00:00:@:02)
       -> [0] output; rt[1] -> Discard; h[1] -> Discard; c[1] -> [0] output; input[1] -> [1] output;",
    "s :: EtherSwitch; input[0] -> [0] s; input[1] -> [1] s; s[0] -> [1] output; s[1] -> [0] output;",
    "input[0] -> VXLANEncap(@, 172.18.@.1, 172.18.@.2) -> EtherEncap(0x0800, 02:00:00:00:@:01, 02:00:00:00:@:02) -> [0] output;
     input[1] -> VXLANEncap(@, 172.18.@.2, 172.18.@.1) -> DecIPTTL -> v :: VXLANDecap(@) -> [1] output; v[1] -> Discard;",
    "input[0] -> Truncate(300) -> Pad(64) -> [0] output; input[1] -> Truncate(200) -> [1] output;",
];

const FRONT: &str = "input[0] -> Strip(14) -> CheckIPHeader -> [0] output; input[1] -> EtherEncap(0x0800, 02:00:00:01:@:01, 02:00:00:01:@:02) -> [1] output;";
const BACK: &str = "input[0] -> EtherEncap(0x0800, 02:00:00:02:@:01, 02:00:00:02:@:02) -> [0] output; input[1] -> Strip(14) -> CheckIPHeader -> [1] output;";

impl Chain {
    /// A chain of functions, each with the number it has there.
    fn of(functions: &[&str]) -> Self {
        let (mut text, mut writes) = (String::new(), Vec::new());
        for (i, function) in functions.iter().enumerate() {
            let body = function.replace('@', &(i + 1).to_string());
            text += &format!("f{i} :: {{\n     {body}\n}};\n");
            for (declaration, handler, values) in WRITTEN {
                if function.contains(declaration) {
                    let name = declaration.split(' ').next().unwrap_or_default();
                    writes.push((format!("f{i}/{name}.{handler}"), *values));
                }
            }
        }
        let last = functions.len() - 1;
        text += "in0 :: Idle -> [0] f0; f0[1] -> out1 :: Queue(100000) -> Idle;\n";
        for i in 0..last {
            text += &format!("f{i}[0] -> [0] f{}; f{}[1] -> [1] f{i};\n", i + 1, i + 1);
        }
        text +=
            &format!("in1 :: Idle -> [1] f{last}; f{last}[0] -> out0 :: Queue(100000) -> Idle;\n");
        Self { text, captured: Vec::new(), writes }
    }

    /// A chain that was put together at random.
    pub fn random(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut functions = Vec::new();
        for _ in 0..rng.usize(1..4) {
            if rng.u8(..3) == 0 {
                functions.push(FRAMES[rng.usize(..FRAMES.len())]);
                continue;
            }
            functions.push(FRONT);
            functions.extend((0..rng.usize(1..4)).map(|_| IP[rng.usize(..IP.len())]));
            functions.push(BACK);
        }
        Self::of(&functions)
    }

    /// A chain of one direction.
    pub fn forward(functions: &str, body: &str) -> Self {
        let text = format!(
            "{functions}\nin0 :: Idle {body} -> out0 :: Queue(100000) -> Idle;\n\
             in1 :: Idle -> out1 :: Queue(100000) -> Idle;\n"
        );
        Self { text, captured: Vec::new(), writes: Vec::new() }
    }

    /// A handler to write and what, now and then.
    pub fn write(&self, rng: &mut fastrand::Rng) -> Option<(String, String)> {
        let (handler, values) = rng.choice(&self.writes).filter(|_| rng.u8(..8) == 0)?;
        Some((handler.clone(), values[rng.usize(..values.len())].to_string()))
    }
}

/// Declarations of elements whose handlers change what they mean, and what is written.
const WRITTEN: &[(&str, &str, &[&str])] = &[
    ("s :: Switch", "switch", &["0", "1", "2", "-1"]),
    (
        "acl :: IPFilter",
        "rule_insert",
        &[
            "1 deny src net 10.0.0.0/9",
            "2 allow udp",
            "1 allow tcp dst port < 1024",
            "2 deny dst host 20.0.0.1 or ip ttl < 3",
            "1 @10.0.0.0/8 0.0.0.0/0 0 : 65535 1024 : 65535 0x06/0xFF",
        ],
    ),
    (
        "acl :: IPFilter",
        "rule_replace",
        &[
            "1 allow all",
            "2 deny tcp opt rst",
            "1 deny icmp",
            "2 allow src port > 1023",
            "1 allow ip frag",
        ],
    ),
    (
        "acl :: IPFilter",
        "config",
        &[
            "allow udp, deny tcp syn, allow all",
            "ACTION drop, deny dst port 53, allow src net 10.0.0.0/8",
        ],
    ),
    (
        "k :: IPClassifier(tcp syn",
        "rule_replace",
        &[
            "1 tcp",
            "1 tcp syn and not ack",
            "2 udp dst port 53",
            "4 ip ttl < 70",
            "5 dst net 20.0.0.0/8",
            "6 tcp or udp",
        ],
    ),
    (
        "c :: Classifier(12/0806 20/0001",
        "rule_replace",
        &["1 12/0806", "3 12/0800 23/11", "3 12/0800", "5 !12/0806", "5 -", "4 12/81"],
    ),
];

/// A chain for each function.
pub fn each() -> Vec<Chain> {
    let ip = IP.iter().map(|function| Chain::of(&[FRONT, function, BACK]));
    ip.chain(FRAMES.iter().map(|function| Chain::of(&[function]))).collect()
}
