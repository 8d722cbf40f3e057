// Compile with p4c --target tofino --arch tna.
// What tables hold is in entries.json, in the terms of P4Runtime; commands.txt holds the same for simple_switch_CLI.
#include <core.p4>
#include <tna.p4>

// The port towards the cores
const bit<9> CORES = 9w0x5;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header vlan_t {
    bit<3> pcp;
    bit<1> dei;
    bit<12> vid;
    bit<16> ether_type;
}

header arp_t {
    bit<16> htype;
    bit<16> ptype;
    bit<8> hlen;
    bit<8> plen;
    bit<16> op;
    bit<48> sha;
    bit<32> spa;
    bit<48> tha;
    bit<32> tpa;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> len;
    bit<16> id;
    bit<3> flags;
    bit<13> frag;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header transport_t {
    bit<16> sport;
    bit<16> dport;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t tag;
    arp_t arp;
    ipv4_t ipv4;
    transport_t transport;
}

struct metadata_t {
    bit<16> arm;
}

parser Parse(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        meta.arm = 16w0;
        transition select(ig_intr_md.ingress_port) {
            CORES: from_cores;
            default: parse_ethernet;
        }
    }
    state from_cores {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            16w0x88a8: parse_tag;
            default: accept;
        }
    }
    state parse_tag {
        packet.extract(hdr.tag);
        transition accept;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            16w0x806: parse_arp;
            16w0x800: parse_ipv4;
            default: accept;
        }
    }
    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl) {
            4w5: parse_transport4;
            default: accept;
        }
    }
    state parse_transport4 {
        packet.extract(hdr.transport);
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md, in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md, inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    // Packets and bytes of each exit, by its number
    Counter<bit<64>, bit<32>>(650, CounterType_t.PACKETS_AND_BYTES) classes;
    bit<16> key2_1;
    bit<16> key7_1;
    bit<16> key10_1;
    bit<16> key327_1;
    bit<16> key332_1;
    bit<16> key335_1;

    action go(bit<16> arm) {
        meta.arm = arm;
    }
    action hand_off(bit<32> number, bit<12> place) {
        classes.count(number);
        hdr.tag.setValid();
        hdr.tag.pcp = 3w0;
        hdr.tag.dei = 1w0;
        hdr.tag.vid = place;
        hdr.tag.ether_type = hdr.ethernet.ether_type;
        hdr.ethernet.ether_type = 16w0x88a8;
        ig_tm_md.ucast_egress_port = CORES;
    }
    action back(bit<9> port) {
        hdr.ethernet.ether_type = hdr.tag.ether_type;
        hdr.tag.setInvalid();
        ig_tm_md.ucast_egress_port = port;
    }
    action lost() {
        ig_dprsr_md.drop_ctl = 3w1;
    }

    // Frames from the cores leave by the port that their tag names
    table ports {
        key = {
            hdr.tag.vid: exact;
        }
        actions = {
            back;
            lost;
        }
        default_action = lost();
        size = 2;
    }

    // lan/kind (ip-router.click:16)
    table rules2 {
        key = {
            hdr.ethernet.ether_type: exact;
            key2_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x143, 12w0x9c);
        size = 3;
    }

    // lan/kind (ip-router.click:16)
    table rules7 {
        key = {
            hdr.ethernet.ether_type: exact;
            key7_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x143, 12w0x9c);
        size = 3;
    }

    // lan/kind (ip-router.click:16)
    table rules10 {
        key = {
            hdr.ethernet.ether_type: exact;
            key10_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x143, 12w0x9c);
        size = 3;
    }

    // lan/CheckIPHeader@7 (ip-router.click:20)
    table test13 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0xf);
        size = 115;
    }

    // lan/CheckIPHeader@7 (ip-router.click:20)
    table test11 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0xc);
        size = 1;
    }

    // lan/CheckIPHeader@7 (ip-router.click:20)
    table test14 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x10);
        size = 115;
    }

    // routes (ip-router.click:34)
    table routes17 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x11c, 12w0x75);
        size = 5;
    }

    // routes (ip-router.click:34)
    table routes18 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x135, 12w0x8e);
        size = 5;
    }

    // lan/ttl (ip-router.click:24)
    table test23 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x2b);
        size = 1;
    }

    // lan/ttl (ip-router.click:24)
    table test24 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x2c);
        size = 1;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test27 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1d);
        size = 1;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test31 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x10c, 12w0x65);
        size = 31;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test28 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1e);
        size = 1;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test33 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x125, 12w0x7e);
        size = 31;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test29 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x20);
        size = 2;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test30 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x22);
        size = 2;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test32 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xce, 12w0x27);
        size = 31;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test34 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xf2, 12w0x4b);
        size = 31;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test35 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x105, 12w0x5e);
        size = 14;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test36 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xcb, 12w0x24);
        size = 14;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test37 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x11e, 12w0x77);
        size = 14;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test38 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xef, 12w0x48);
        size = 14;
    }

    // lan/fragment (ip-router.click:24)
    table test43 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x2d);
        size = 1;
    }

    // lan/fragment (ip-router.click:24)
    table test44 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x2e);
        size = 1;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test49 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x34);
        size = 2;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test51 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x10e, 12w0x67);
        size = 31;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test50 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x36);
        size = 2;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test53 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x127, 12w0x80);
        size = 31;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test52 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xd3, 12w0x2c);
        size = 31;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test54 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xf7, 12w0x50);
        size = 31;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test55 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x108, 12w0x61);
        size = 14;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test56 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xd0, 12w0x29);
        size = 14;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test57 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x121, 12w0x7a);
        size = 14;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test58 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xf4, 12w0x4d);
        size = 14;
    }

    // wan/ttl (ip-router.click:24)
    table test63 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x41);
        size = 1;
    }

    // wan/ttl (ip-router.click:24)
    table test64 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x42);
        size = 1;
    }

    // wan/fragment (ip-router.click:24)
    table test65 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x43);
        size = 1;
    }

    // wan/fragment (ip-router.click:24)
    table test66 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x44);
        size = 1;
    }

    // ICMPPingResponder@4 (ip-router.click:45)
    table test71 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x49);
        size = 1;
    }

    // ICMPPingResponder@4 (ip-router.click:45)
    table test72 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x4a);
        size = 1;
    }

    // wan/ttl (ip-router.click:24)
    table test117 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x89);
        size = 1;
    }

    // wan/ttl (ip-router.click:24)
    table test118 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x8a);
        size = 1;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test121 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x7b);
        size = 1;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test125 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x117, 12w0x70);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test122 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x7c);
        size = 1;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test127 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x130, 12w0x89);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test123 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x7e);
        size = 2;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test124 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x80);
        size = 2;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test126 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xda, 12w0x33);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test128 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xfe, 12w0x57);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test129 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x112, 12w0x6b);
        size = 14;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test130 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xd7, 12w0x30);
        size = 14;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test131 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x12b, 12w0x84);
        size = 14;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test132 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xfb, 12w0x54);
        size = 14;
    }

    // wan/fragment (ip-router.click:24)
    table test137 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x8b);
        size = 1;
    }

    // wan/fragment (ip-router.click:24)
    table test138 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x8c);
        size = 1;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test143 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x92);
        size = 2;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test145 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x119, 12w0x72);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test144 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x94);
        size = 2;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test147 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x132, 12w0x8b);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test146 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xdf, 12w0x38);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test148 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x103, 12w0x5c);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test149 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x114, 12w0x6d);
        size = 14;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test150 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xdc, 12w0x35);
        size = 14;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test151 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x12d, 12w0x86);
        size = 14;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test152 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x100, 12w0x59);
        size = 14;
    }

    // lan/CheckIPHeader@7 (ip-router.click:20)
    table test162 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x13e, 12w0x97);
        size = 1;
    }

    // lan/ARPResponder@3 (ip-router.click:17)
    table rules165 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x138, 12w0x91);
        size = 1;
    }

    // lan/CheckIPHeader@7 (ip-router.click:20)
    table test167 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x141, 12w0x9a);
        size = 1;
    }

    // wan/kind (ip-router.click:16)
    table rules327 {
        key = {
            hdr.ethernet.ether_type: exact;
            key327_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x288, 12w0x139);
        size = 3;
    }

    // wan/kind (ip-router.click:16)
    table rules332 {
        key = {
            hdr.ethernet.ether_type: exact;
            key332_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x288, 12w0x139);
        size = 3;
    }

    // wan/kind (ip-router.click:16)
    table rules335 {
        key = {
            hdr.ethernet.ether_type: exact;
            key335_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x288, 12w0x139);
        size = 3;
    }

    // wan/CheckIPHeader@7 (ip-router.click:20)
    table test338 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x154);
        size = 115;
    }

    // wan/CheckIPHeader@7 (ip-router.click:20)
    table test336 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x151);
        size = 1;
    }

    // wan/CheckIPHeader@7 (ip-router.click:20)
    table test339 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x155);
        size = 115;
    }

    // routes (ip-router.click:34)
    table routes342 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x261, 12w0x112);
        size = 5;
    }

    // routes (ip-router.click:34)
    table routes343 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x27a, 12w0x12b);
        size = 5;
    }

    // lan/ttl (ip-router.click:24)
    table test348 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x15e);
        size = 1;
    }

    // lan/ttl (ip-router.click:24)
    table test349 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x15f);
        size = 1;
    }

    // lan/fragment (ip-router.click:24)
    table test350 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x160);
        size = 1;
    }

    // lan/fragment (ip-router.click:24)
    table test351 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x161);
        size = 1;
    }

    // wan/ttl (ip-router.click:24)
    table test354 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x176);
        size = 1;
    }

    // wan/ttl (ip-router.click:24)
    table test355 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x177);
        size = 1;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test358 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x168);
        size = 1;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test362 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x253, 12w0x104);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test359 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x169);
        size = 1;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test364 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x26c, 12w0x11d);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test360 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x16b);
        size = 2;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test361 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x16d);
        size = 2;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test363 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x213, 12w0xc4);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test365 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x237, 12w0xe8);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test366 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x24c, 12w0xfd);
        size = 14;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test367 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x210, 12w0xc1);
        size = 14;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test368 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x265, 12w0x116);
        size = 14;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test369 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x234, 12w0xe5);
        size = 14;
    }

    // wan/fragment (ip-router.click:24)
    table test374 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x178);
        size = 1;
    }

    // wan/fragment (ip-router.click:24)
    table test375 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x179);
        size = 1;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test380 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x17f);
        size = 2;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test382 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x255, 12w0x106);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test381 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x181);
        size = 2;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test384 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x26e, 12w0x11f);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test383 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x218, 12w0xc9);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test385 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x23c, 12w0xed);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test386 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x24f, 12w0x100);
        size = 14;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test387 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x215, 12w0xc6);
        size = 14;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test388 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x268, 12w0x119);
        size = 14;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test389 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x239, 12w0xea);
        size = 14;
    }

    // ICMPPingResponder@4 (ip-router.click:45)
    table test396 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x18e);
        size = 1;
    }

    // ICMPPingResponder@4 (ip-router.click:45)
    table test397 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x18f);
        size = 1;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test406 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x198);
        size = 1;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test410 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x25c, 12w0x10d);
        size = 31;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test407 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x199);
        size = 1;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test412 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x275, 12w0x126);
        size = 31;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test408 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x19b);
        size = 2;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test409 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x19d);
        size = 2;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test411 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x21f, 12w0xd0);
        size = 31;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test413 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x243, 12w0xf4);
        size = 31;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test414 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x257, 12w0x108);
        size = 14;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test415 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x21c, 12w0xcd);
        size = 14;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test416 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x270, 12w0x121);
        size = 14;
    }

    // lan/ICMPError@18 (ip-router.click:27)
    table test417 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x240, 12w0xf1);
        size = 14;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test428 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1af);
        size = 2;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test430 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x25e, 12w0x10f);
        size = 31;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test429 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1b1);
        size = 2;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test432 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x277, 12w0x128);
        size = 31;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test431 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x224, 12w0xd5);
        size = 31;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test433 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x248, 12w0xf9);
        size = 31;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test434 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x259, 12w0x10a);
        size = 14;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test435 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x221, 12w0xd2);
        size = 14;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test436 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x272, 12w0x123);
        size = 14;
    }

    // lan/ICMPError@19 (ip-router.click:28)
    table test437 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x245, 12w0xf6);
        size = 14;
    }

    // wan/ttl (ip-router.click:24)
    table test442 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x1ce);
        size = 1;
    }

    // wan/ttl (ip-router.click:24)
    table test443 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x1cf);
        size = 1;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test446 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1c0);
        size = 1;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test450 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x20b, 12w0xbc);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test447 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1c1);
        size = 1;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test452 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x22f, 12w0xe0);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test448 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1c3);
        size = 2;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test449 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1c5);
        size = 2;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test451 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x1f1, 12w0xa2);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test453 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x1fb, 12w0xac);
        size = 31;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test454 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x204, 12w0xb5);
        size = 14;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test455 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x1ee, 12w0x9f);
        size = 14;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test456 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x228, 12w0xd9);
        size = 14;
    }

    // wan/ICMPError@18 (ip-router.click:27)
    table test457 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x1f8, 12w0xa9);
        size = 14;
    }

    // wan/fragment (ip-router.click:24)
    table test462 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1d0);
        size = 1;
    }

    // wan/fragment (ip-router.click:24)
    table test463 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1d1);
        size = 1;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test468 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1d7);
        size = 2;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test470 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x20d, 12w0xbe);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test469 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1d9);
        size = 2;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test472 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x231, 12w0xe2);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test471 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x1f6, 12w0xa7);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test473 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x200, 12w0xb1);
        size = 31;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test474 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x207, 12w0xb8);
        size = 14;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test475 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x1f3, 12w0xa4);
        size = 14;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test476 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x22b, 12w0xdc);
        size = 14;
    }

    // wan/ICMPError@19 (ip-router.click:28)
    table test477 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x1fd, 12w0xae);
        size = 14;
    }

    // wan/CheckIPHeader@7 (ip-router.click:20)
    table test487 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x283, 12w0x134);
        size = 1;
    }

    // wan/ARPResponder@3 (ip-router.click:17)
    table rules490 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x27d, 12w0x12e);
        size = 1;
    }

    // wan/CheckIPHeader@7 (ip-router.click:20)
    table test492 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x286, 12w0x137);
        size = 1;
    }

    apply {
        if (ig_intr_md.ingress_port == CORES) {
            if (hdr.tag.isValid()) {
                ports.apply();
            } else {
                lost();
            }
        } else if (ig_intr_md.ingress_port == 9w0x3) {
            // lan/HostEtherFilter@1 (ip-router.click:15)
            if (hdr.ethernet.dst == 48w0x20000001001) {
                // lan/kind (ip-router.click:16)
                if (hdr.ethernet.ether_type == 16w0x800) {
                    // lan/kind (ip-router.click:16)
                    if (hdr.ipv4.isValid()) {
                        key2_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                        rules2.apply();
                    } else {
                        hand_off(32w0x143, 12w0x9c);
                    }
                } else {
                    hand_off(32w0x139, 12w0x92);
                }
            } else {
                // lan/HostEtherFilter@1 (ip-router.click:15)
                if (hdr.ethernet.dst == 48w0xffffffffffff) {
                    // lan/kind (ip-router.click:16)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        // lan/kind (ip-router.click:16)
                        if (hdr.ipv4.isValid()) {
                            key7_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                            rules7.apply();
                        } else {
                            hand_off(32w0x143, 12w0x9c);
                        }
                    } else {
                        hand_off(32w0x13a, 12w0x93);
                    }
                } else {
                    // lan/HostEtherFilter@1 (ip-router.click:15)
                    if (hdr.ethernet.dst[40:40] == 1w0x1) {
                        // lan/kind (ip-router.click:16)
                        if (hdr.ethernet.ether_type == 16w0x800) {
                            // lan/kind (ip-router.click:16)
                            if (hdr.ipv4.isValid()) {
                                key10_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                rules10.apply();
                            } else {
                                hand_off(32w0x143, 12w0x9c);
                            }
                        } else {
                            hand_off(32w0x13b, 12w0x94);
                        }
                    } else {
                        hand_off(32w0x144, 12w0x9d);
                    }
                }
            }
            if (meta.arm == 16w0x3) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                        // lan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.isValid()) {
                            test13.apply();
                        } else {
                            go(16w0xf);
                        }
                    } else {
                        // lan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.isValid()) {
                            test11.apply();
                        } else {
                            go(16w0xc);
                        }
                    }
                } else {
                    hand_off(32w0x142, 12w0x9b);
                }
            }
            if (meta.arm == 16w0xc) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid()) {
                        test14.apply();
                    } else {
                        go(16w0x10);
                    }
                } else {
                    hand_off(32w0x136, 12w0x8f);
                }
            }
            if (meta.arm == 16w0xf) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                    meta.arm = 16w0x45;
                } else {
                    hand_off(32w0x11a, 12w0x73);
                }
            }
            if (meta.arm == 16w0x10) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                    meta.arm = 16w0x46;
                } else {
                    hand_off(32w0x133, 12w0x8c);
                }
            }
            if (meta.arm == 16w0x11) {
                // routes (ip-router.click:34)
                if (hdr.ipv4.isValid()) {
                    routes17.apply();
                } else {
                    hand_off(32w0x11c, 12w0x75);
                }
            }
            if (meta.arm == 16w0x12) {
                // routes (ip-router.click:34)
                if (hdr.ipv4.isValid()) {
                    routes18.apply();
                } else {
                    hand_off(32w0x135, 12w0x8e);
                }
            }
            if (meta.arm == 16w0x17) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test23.apply();
                } else {
                    go(16w0x2b);
                }
            }
            if (meta.arm == 16w0x18) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test24.apply();
                } else {
                    go(16w0x2c);
                }
            }
            if (meta.arm == 16w0x19) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test27.apply();
                    } else {
                        go(16w0x1d);
                    }
                } else {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test31.apply();
                    } else {
                        hand_off(32w0x10c, 12w0x65);
                    }
                }
            }
            if (meta.arm == 16w0x1a) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test28.apply();
                    } else {
                        go(16w0x1e);
                    }
                } else {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test33.apply();
                    } else {
                        hand_off(32w0x125, 12w0x7e);
                    }
                }
            }
            if (meta.arm == 16w0x1d) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.transport.isValid()) {
                    test29.apply();
                } else {
                    go(16w0x20);
                }
            }
            if (meta.arm == 16w0x1e) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.transport.isValid()) {
                    test30.apply();
                } else {
                    go(16w0x22);
                }
            }
            if (meta.arm == 16w0x20) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test32.apply();
                } else {
                    hand_off(32w0xce, 12w0x27);
                }
            }
            if (meta.arm == 16w0x22) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test34.apply();
                } else {
                    hand_off(32w0xf2, 12w0x4b);
                }
            }
            if (meta.arm == 16w0x23) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test35.apply();
                } else {
                    hand_off(32w0x105, 12w0x5e);
                }
            }
            if (meta.arm == 16w0x24) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test36.apply();
                } else {
                    hand_off(32w0xcb, 12w0x24);
                }
            }
            if (meta.arm == 16w0x25) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test37.apply();
                } else {
                    hand_off(32w0x11e, 12w0x77);
                }
            }
            if (meta.arm == 16w0x26) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test38.apply();
                } else {
                    hand_off(32w0xef, 12w0x48);
                }
            }
            if (meta.arm == 16w0x27) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x104, 12w0x5d);
                } else {
                    hand_off(32w0x10b, 12w0x64);
                }
            }
            if (meta.arm == 16w0x28) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xca, 12w0x23);
                } else {
                    hand_off(32w0xcd, 12w0x26);
                }
            }
            if (meta.arm == 16w0x29) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x11d, 12w0x76);
                } else {
                    hand_off(32w0x124, 12w0x7d);
                }
            }
            if (meta.arm == 16w0x2a) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xee, 12w0x47);
                } else {
                    hand_off(32w0xf1, 12w0x4a);
                }
            }
            if (meta.arm == 16w0x2b) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test43.apply();
                } else {
                    go(16w0x2d);
                }
            }
            if (meta.arm == 16w0x2c) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test44.apply();
                } else {
                    go(16w0x2e);
                }
            }
            if (meta.arm == 16w0x2d) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.transport.isValid()) {
                            test49.apply();
                        } else {
                            go(16w0x34);
                        }
                    } else {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid()) {
                            test51.apply();
                        } else {
                            hand_off(32w0x10e, 12w0x67);
                        }
                    }
                } else {
                    hand_off(32w0x109, 12w0x62);
                }
            }
            if (meta.arm == 16w0x2e) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.transport.isValid()) {
                            test50.apply();
                        } else {
                            go(16w0x36);
                        }
                    } else {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid()) {
                            test53.apply();
                        } else {
                            hand_off(32w0x127, 12w0x80);
                        }
                    }
                } else {
                    hand_off(32w0x122, 12w0x7b);
                }
            }
            if (meta.arm == 16w0x34) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test52.apply();
                } else {
                    hand_off(32w0xd3, 12w0x2c);
                }
            }
            if (meta.arm == 16w0x36) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test54.apply();
                } else {
                    hand_off(32w0xf7, 12w0x50);
                }
            }
            if (meta.arm == 16w0x37) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test55.apply();
                } else {
                    hand_off(32w0x108, 12w0x61);
                }
            }
            if (meta.arm == 16w0x38) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test56.apply();
                } else {
                    hand_off(32w0xd0, 12w0x29);
                }
            }
            if (meta.arm == 16w0x39) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test57.apply();
                } else {
                    hand_off(32w0x121, 12w0x7a);
                }
            }
            if (meta.arm == 16w0x3a) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test58.apply();
                } else {
                    hand_off(32w0xf4, 12w0x4d);
                }
            }
            if (meta.arm == 16w0x3b) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x107, 12w0x60);
                } else {
                    hand_off(32w0x10d, 12w0x66);
                }
            }
            if (meta.arm == 16w0x3c) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xcf, 12w0x28);
                } else {
                    hand_off(32w0xd2, 12w0x2b);
                }
            }
            if (meta.arm == 16w0x3d) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x120, 12w0x79);
                } else {
                    hand_off(32w0x126, 12w0x7f);
                }
            }
            if (meta.arm == 16w0x3e) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xf3, 12w0x4c);
                } else {
                    hand_off(32w0xf6, 12w0x4f);
                }
            }
            if (meta.arm == 16w0x3f) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test63.apply();
                } else {
                    go(16w0x41);
                }
            }
            if (meta.arm == 16w0x40) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test64.apply();
                } else {
                    go(16w0x42);
                }
            }
            if (meta.arm == 16w0x41) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test65.apply();
                } else {
                    go(16w0x43);
                }
            }
            if (meta.arm == 16w0x42) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test66.apply();
                } else {
                    go(16w0x44);
                }
            }
            if (meta.arm == 16w0x43) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    meta.arm = 16w0x8d;
                } else {
                    hand_off(32w0x110, 12w0x69);
                }
            }
            if (meta.arm == 16w0x44) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    meta.arm = 16w0x8e;
                } else {
                    hand_off(32w0x129, 12w0x82);
                }
            }
            if (meta.arm == 16w0x45) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if (hdr.ipv4.isValid()) {
                        test71.apply();
                    } else {
                        go(16w0x49);
                    }
                } else {
                    hand_off(32w0x11b, 12w0x74);
                }
            }
            if (meta.arm == 16w0x46) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if (hdr.ipv4.isValid()) {
                        test72.apply();
                    } else {
                        go(16w0x4a);
                    }
                } else {
                    hand_off(32w0x134, 12w0x8d);
                }
            }
            if (meta.arm == 16w0x49) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                    hand_off(32w0xd4, 12w0x2d);
                } else {
                    hand_off(32w0xd5, 12w0x2e);
                }
            }
            if (meta.arm == 16w0x4a) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                    hand_off(32w0xf8, 12w0x51);
                } else {
                    hand_off(32w0xf9, 12w0x52);
                }
            }
            if (meta.arm == 16w0x75) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test117.apply();
                } else {
                    go(16w0x89);
                }
            }
            if (meta.arm == 16w0x76) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test118.apply();
                } else {
                    go(16w0x8a);
                }
            }
            if (meta.arm == 16w0x77) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test121.apply();
                    } else {
                        go(16w0x7b);
                    }
                } else {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test125.apply();
                    } else {
                        hand_off(32w0x117, 12w0x70);
                    }
                }
            }
            if (meta.arm == 16w0x78) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test122.apply();
                    } else {
                        go(16w0x7c);
                    }
                } else {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test127.apply();
                    } else {
                        hand_off(32w0x130, 12w0x89);
                    }
                }
            }
            if (meta.arm == 16w0x7b) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.transport.isValid()) {
                    test123.apply();
                } else {
                    go(16w0x7e);
                }
            }
            if (meta.arm == 16w0x7c) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.transport.isValid()) {
                    test124.apply();
                } else {
                    go(16w0x80);
                }
            }
            if (meta.arm == 16w0x7e) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test126.apply();
                } else {
                    hand_off(32w0xda, 12w0x33);
                }
            }
            if (meta.arm == 16w0x80) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test128.apply();
                } else {
                    hand_off(32w0xfe, 12w0x57);
                }
            }
            if (meta.arm == 16w0x81) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test129.apply();
                } else {
                    hand_off(32w0x112, 12w0x6b);
                }
            }
            if (meta.arm == 16w0x82) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test130.apply();
                } else {
                    hand_off(32w0xd7, 12w0x30);
                }
            }
            if (meta.arm == 16w0x83) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test131.apply();
                } else {
                    hand_off(32w0x12b, 12w0x84);
                }
            }
            if (meta.arm == 16w0x84) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test132.apply();
                } else {
                    hand_off(32w0xfb, 12w0x54);
                }
            }
            if (meta.arm == 16w0x85) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x111, 12w0x6a);
                } else {
                    hand_off(32w0x116, 12w0x6f);
                }
            }
            if (meta.arm == 16w0x86) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xd6, 12w0x2f);
                } else {
                    hand_off(32w0xd9, 12w0x32);
                }
            }
            if (meta.arm == 16w0x87) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x12a, 12w0x83);
                } else {
                    hand_off(32w0x12f, 12w0x88);
                }
            }
            if (meta.arm == 16w0x88) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xfa, 12w0x53);
                } else {
                    hand_off(32w0xfd, 12w0x56);
                }
            }
            if (meta.arm == 16w0x89) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test137.apply();
                } else {
                    go(16w0x8b);
                }
            }
            if (meta.arm == 16w0x8a) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test138.apply();
                } else {
                    go(16w0x8c);
                }
            }
            if (meta.arm == 16w0x8b) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    meta.arm = 16w0x8d;
                } else {
                    hand_off(32w0xc8, 12w0x21);
                }
            }
            if (meta.arm == 16w0x8c) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    meta.arm = 16w0x8e;
                } else {
                    hand_off(32w0xec, 12w0x45);
                }
            }
            if (meta.arm == 16w0x8d) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.transport.isValid()) {
                        test143.apply();
                    } else {
                        go(16w0x92);
                    }
                } else {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid()) {
                        test145.apply();
                    } else {
                        hand_off(32w0x119, 12w0x72);
                    }
                }
            }
            if (meta.arm == 16w0x8e) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.transport.isValid()) {
                        test144.apply();
                    } else {
                        go(16w0x94);
                    }
                } else {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid()) {
                        test147.apply();
                    } else {
                        hand_off(32w0x132, 12w0x8b);
                    }
                }
            }
            if (meta.arm == 16w0x92) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test146.apply();
                } else {
                    hand_off(32w0xdf, 12w0x38);
                }
            }
            if (meta.arm == 16w0x94) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test148.apply();
                } else {
                    hand_off(32w0x103, 12w0x5c);
                }
            }
            if (meta.arm == 16w0x95) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test149.apply();
                } else {
                    hand_off(32w0x114, 12w0x6d);
                }
            }
            if (meta.arm == 16w0x96) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test150.apply();
                } else {
                    hand_off(32w0xdc, 12w0x35);
                }
            }
            if (meta.arm == 16w0x97) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test151.apply();
                } else {
                    hand_off(32w0x12d, 12w0x86);
                }
            }
            if (meta.arm == 16w0x98) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test152.apply();
                } else {
                    hand_off(32w0x100, 12w0x59);
                }
            }
            if (meta.arm == 16w0x99) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x113, 12w0x6c);
                } else {
                    hand_off(32w0x118, 12w0x71);
                }
            }
            if (meta.arm == 16w0x9a) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xdb, 12w0x34);
                } else {
                    hand_off(32w0xde, 12w0x37);
                }
            }
            if (meta.arm == 16w0x9b) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x12c, 12w0x85);
                } else {
                    hand_off(32w0x131, 12w0x8a);
                }
            }
            if (meta.arm == 16w0x9c) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xff, 12w0x58);
                } else {
                    hand_off(32w0x102, 12w0x5b);
                }
            }
            if (meta.arm == 16w0xa1) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid()) {
                        test162.apply();
                    } else {
                        hand_off(32w0x13e, 12w0x97);
                    }
                } else {
                    hand_off(32w0x142, 12w0x9b);
                }
            }
            if (meta.arm == 16w0xa3) {
                // lan/ARPResponder@3 (ip-router.click:17)
                if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                    // lan/ARPResponder@3 (ip-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                        // lan/ARPResponder@3 (ip-router.click:17)
                        if (hdr.arp.isValid()) {
                            rules165.apply();
                        } else {
                            hand_off(32w0x138, 12w0x91);
                        }
                    } else {
                        hand_off(32w0x138, 12w0x91);
                    }
                } else {
                    hand_off(32w0x138, 12w0x91);
                }
            }
            if (meta.arm == 16w0xa6) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid()) {
                        test167.apply();
                    } else {
                        hand_off(32w0x141, 12w0x9a);
                    }
                } else {
                    hand_off(32w0x142, 12w0x9b);
                }
            }
        } else if (ig_intr_md.ingress_port == 9w0x4) {
            // wan/HostEtherFilter@1 (ip-router.click:15)
            if (hdr.ethernet.dst == 48w0x20000002001) {
                // wan/kind (ip-router.click:16)
                if (hdr.ethernet.ether_type == 16w0x800) {
                    // wan/kind (ip-router.click:16)
                    if (hdr.ipv4.isValid()) {
                        key327_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                        rules327.apply();
                    } else {
                        hand_off(32w0x288, 12w0x139);
                    }
                } else {
                    hand_off(32w0x27e, 12w0x12f);
                }
            } else {
                // wan/HostEtherFilter@1 (ip-router.click:15)
                if (hdr.ethernet.dst == 48w0xffffffffffff) {
                    // wan/kind (ip-router.click:16)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        // wan/kind (ip-router.click:16)
                        if (hdr.ipv4.isValid()) {
                            key332_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                            rules332.apply();
                        } else {
                            hand_off(32w0x288, 12w0x139);
                        }
                    } else {
                        hand_off(32w0x27f, 12w0x130);
                    }
                } else {
                    // wan/HostEtherFilter@1 (ip-router.click:15)
                    if (hdr.ethernet.dst[40:40] == 1w0x1) {
                        // wan/kind (ip-router.click:16)
                        if (hdr.ethernet.ether_type == 16w0x800) {
                            // wan/kind (ip-router.click:16)
                            if (hdr.ipv4.isValid()) {
                                key335_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                rules335.apply();
                            } else {
                                hand_off(32w0x288, 12w0x139);
                            }
                        } else {
                            hand_off(32w0x280, 12w0x131);
                        }
                    } else {
                        hand_off(32w0x289, 12w0x13a);
                    }
                }
            }
            if (meta.arm == 16w0x148) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                        // wan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.isValid()) {
                            test338.apply();
                        } else {
                            go(16w0x154);
                        }
                    } else {
                        // wan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.isValid()) {
                            test336.apply();
                        } else {
                            go(16w0x151);
                        }
                    }
                } else {
                    hand_off(32w0x287, 12w0x138);
                }
            }
            if (meta.arm == 16w0x151) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid()) {
                        test339.apply();
                    } else {
                        go(16w0x155);
                    }
                } else {
                    hand_off(32w0x27b, 12w0x12c);
                }
            }
            if (meta.arm == 16w0x154) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                    meta.arm = 16w0x18a;
                } else {
                    hand_off(32w0x25f, 12w0x110);
                }
            }
            if (meta.arm == 16w0x155) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                    meta.arm = 16w0x18b;
                } else {
                    hand_off(32w0x278, 12w0x129);
                }
            }
            if (meta.arm == 16w0x156) {
                // routes (ip-router.click:34)
                if (hdr.ipv4.isValid()) {
                    routes342.apply();
                } else {
                    hand_off(32w0x261, 12w0x112);
                }
            }
            if (meta.arm == 16w0x157) {
                // routes (ip-router.click:34)
                if (hdr.ipv4.isValid()) {
                    routes343.apply();
                } else {
                    hand_off(32w0x27a, 12w0x12b);
                }
            }
            if (meta.arm == 16w0x15c) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test348.apply();
                } else {
                    go(16w0x15e);
                }
            }
            if (meta.arm == 16w0x15d) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test349.apply();
                } else {
                    go(16w0x15f);
                }
            }
            if (meta.arm == 16w0x15e) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test350.apply();
                } else {
                    go(16w0x160);
                }
            }
            if (meta.arm == 16w0x15f) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test351.apply();
                } else {
                    go(16w0x161);
                }
            }
            if (meta.arm == 16w0x160) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    meta.arm = 16w0x1aa;
                } else {
                    hand_off(32w0x24a, 12w0xfb);
                }
            }
            if (meta.arm == 16w0x161) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    meta.arm = 16w0x1ab;
                } else {
                    hand_off(32w0x263, 12w0x114);
                }
            }
            if (meta.arm == 16w0x162) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test354.apply();
                } else {
                    go(16w0x176);
                }
            }
            if (meta.arm == 16w0x163) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test355.apply();
                } else {
                    go(16w0x177);
                }
            }
            if (meta.arm == 16w0x164) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test358.apply();
                    } else {
                        go(16w0x168);
                    }
                } else {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test362.apply();
                    } else {
                        hand_off(32w0x253, 12w0x104);
                    }
                }
            }
            if (meta.arm == 16w0x165) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test359.apply();
                    } else {
                        go(16w0x169);
                    }
                } else {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test364.apply();
                    } else {
                        hand_off(32w0x26c, 12w0x11d);
                    }
                }
            }
            if (meta.arm == 16w0x168) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.transport.isValid()) {
                    test360.apply();
                } else {
                    go(16w0x16b);
                }
            }
            if (meta.arm == 16w0x169) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.transport.isValid()) {
                    test361.apply();
                } else {
                    go(16w0x16d);
                }
            }
            if (meta.arm == 16w0x16b) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test363.apply();
                } else {
                    hand_off(32w0x213, 12w0xc4);
                }
            }
            if (meta.arm == 16w0x16d) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test365.apply();
                } else {
                    hand_off(32w0x237, 12w0xe8);
                }
            }
            if (meta.arm == 16w0x16e) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test366.apply();
                } else {
                    hand_off(32w0x24c, 12w0xfd);
                }
            }
            if (meta.arm == 16w0x16f) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test367.apply();
                } else {
                    hand_off(32w0x210, 12w0xc1);
                }
            }
            if (meta.arm == 16w0x170) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test368.apply();
                } else {
                    hand_off(32w0x265, 12w0x116);
                }
            }
            if (meta.arm == 16w0x171) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test369.apply();
                } else {
                    hand_off(32w0x234, 12w0xe5);
                }
            }
            if (meta.arm == 16w0x172) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x24b, 12w0xfc);
                } else {
                    hand_off(32w0x252, 12w0x103);
                }
            }
            if (meta.arm == 16w0x173) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x20f, 12w0xc0);
                } else {
                    hand_off(32w0x212, 12w0xc3);
                }
            }
            if (meta.arm == 16w0x174) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x264, 12w0x115);
                } else {
                    hand_off(32w0x26b, 12w0x11c);
                }
            }
            if (meta.arm == 16w0x175) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x233, 12w0xe4);
                } else {
                    hand_off(32w0x236, 12w0xe7);
                }
            }
            if (meta.arm == 16w0x176) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test374.apply();
                } else {
                    go(16w0x178);
                }
            }
            if (meta.arm == 16w0x177) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test375.apply();
                } else {
                    go(16w0x179);
                }
            }
            if (meta.arm == 16w0x178) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.transport.isValid()) {
                            test380.apply();
                        } else {
                            go(16w0x17f);
                        }
                    } else {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid()) {
                            test382.apply();
                        } else {
                            hand_off(32w0x255, 12w0x106);
                        }
                    }
                } else {
                    hand_off(32w0x250, 12w0x101);
                }
            }
            if (meta.arm == 16w0x179) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.transport.isValid()) {
                            test381.apply();
                        } else {
                            go(16w0x181);
                        }
                    } else {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid()) {
                            test384.apply();
                        } else {
                            hand_off(32w0x26e, 12w0x11f);
                        }
                    }
                } else {
                    hand_off(32w0x269, 12w0x11a);
                }
            }
            if (meta.arm == 16w0x17f) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test383.apply();
                } else {
                    hand_off(32w0x218, 12w0xc9);
                }
            }
            if (meta.arm == 16w0x181) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test385.apply();
                } else {
                    hand_off(32w0x23c, 12w0xed);
                }
            }
            if (meta.arm == 16w0x182) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test386.apply();
                } else {
                    hand_off(32w0x24f, 12w0x100);
                }
            }
            if (meta.arm == 16w0x183) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test387.apply();
                } else {
                    hand_off(32w0x215, 12w0xc6);
                }
            }
            if (meta.arm == 16w0x184) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test388.apply();
                } else {
                    hand_off(32w0x268, 12w0x119);
                }
            }
            if (meta.arm == 16w0x185) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test389.apply();
                } else {
                    hand_off(32w0x239, 12w0xea);
                }
            }
            if (meta.arm == 16w0x186) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x24e, 12w0xff);
                } else {
                    hand_off(32w0x254, 12w0x105);
                }
            }
            if (meta.arm == 16w0x187) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x214, 12w0xc5);
                } else {
                    hand_off(32w0x217, 12w0xc8);
                }
            }
            if (meta.arm == 16w0x188) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x267, 12w0x118);
                } else {
                    hand_off(32w0x26d, 12w0x11e);
                }
            }
            if (meta.arm == 16w0x189) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x238, 12w0xe9);
                } else {
                    hand_off(32w0x23b, 12w0xec);
                }
            }
            if (meta.arm == 16w0x18a) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if (hdr.ipv4.isValid()) {
                        test396.apply();
                    } else {
                        go(16w0x18e);
                    }
                } else {
                    hand_off(32w0x260, 12w0x111);
                }
            }
            if (meta.arm == 16w0x18b) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if (hdr.ipv4.isValid()) {
                        test397.apply();
                    } else {
                        go(16w0x18f);
                    }
                } else {
                    hand_off(32w0x279, 12w0x12a);
                }
            }
            if (meta.arm == 16w0x18e) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                    hand_off(32w0x219, 12w0xca);
                } else {
                    hand_off(32w0x21a, 12w0xcb);
                }
            }
            if (meta.arm == 16w0x18f) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                    hand_off(32w0x23d, 12w0xee);
                } else {
                    hand_off(32w0x23e, 12w0xef);
                }
            }
            if (meta.arm == 16w0x194) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test406.apply();
                    } else {
                        go(16w0x198);
                    }
                } else {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test410.apply();
                    } else {
                        hand_off(32w0x25c, 12w0x10d);
                    }
                }
            }
            if (meta.arm == 16w0x195) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test407.apply();
                    } else {
                        go(16w0x199);
                    }
                } else {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test412.apply();
                    } else {
                        hand_off(32w0x275, 12w0x126);
                    }
                }
            }
            if (meta.arm == 16w0x198) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.transport.isValid()) {
                    test408.apply();
                } else {
                    go(16w0x19b);
                }
            }
            if (meta.arm == 16w0x199) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.transport.isValid()) {
                    test409.apply();
                } else {
                    go(16w0x19d);
                }
            }
            if (meta.arm == 16w0x19b) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test411.apply();
                } else {
                    hand_off(32w0x21f, 12w0xd0);
                }
            }
            if (meta.arm == 16w0x19d) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test413.apply();
                } else {
                    hand_off(32w0x243, 12w0xf4);
                }
            }
            if (meta.arm == 16w0x19e) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test414.apply();
                } else {
                    hand_off(32w0x257, 12w0x108);
                }
            }
            if (meta.arm == 16w0x19f) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test415.apply();
                } else {
                    hand_off(32w0x21c, 12w0xcd);
                }
            }
            if (meta.arm == 16w0x1a0) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test416.apply();
                } else {
                    hand_off(32w0x270, 12w0x121);
                }
            }
            if (meta.arm == 16w0x1a1) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test417.apply();
                } else {
                    hand_off(32w0x240, 12w0xf1);
                }
            }
            if (meta.arm == 16w0x1a2) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x256, 12w0x107);
                } else {
                    hand_off(32w0x25b, 12w0x10c);
                }
            }
            if (meta.arm == 16w0x1a3) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x21b, 12w0xcc);
                } else {
                    hand_off(32w0x21e, 12w0xcf);
                }
            }
            if (meta.arm == 16w0x1a4) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x26f, 12w0x120);
                } else {
                    hand_off(32w0x274, 12w0x125);
                }
            }
            if (meta.arm == 16w0x1a5) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x23f, 12w0xf0);
                } else {
                    hand_off(32w0x242, 12w0xf3);
                }
            }
            if (meta.arm == 16w0x1aa) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.transport.isValid()) {
                        test428.apply();
                    } else {
                        go(16w0x1af);
                    }
                } else {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid()) {
                        test430.apply();
                    } else {
                        hand_off(32w0x25e, 12w0x10f);
                    }
                }
            }
            if (meta.arm == 16w0x1ab) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.transport.isValid()) {
                        test429.apply();
                    } else {
                        go(16w0x1b1);
                    }
                } else {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid()) {
                        test432.apply();
                    } else {
                        hand_off(32w0x277, 12w0x128);
                    }
                }
            }
            if (meta.arm == 16w0x1af) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test431.apply();
                } else {
                    hand_off(32w0x224, 12w0xd5);
                }
            }
            if (meta.arm == 16w0x1b1) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test433.apply();
                } else {
                    hand_off(32w0x248, 12w0xf9);
                }
            }
            if (meta.arm == 16w0x1b2) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test434.apply();
                } else {
                    hand_off(32w0x259, 12w0x10a);
                }
            }
            if (meta.arm == 16w0x1b3) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test435.apply();
                } else {
                    hand_off(32w0x221, 12w0xd2);
                }
            }
            if (meta.arm == 16w0x1b4) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test436.apply();
                } else {
                    hand_off(32w0x272, 12w0x123);
                }
            }
            if (meta.arm == 16w0x1b5) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test437.apply();
                } else {
                    hand_off(32w0x245, 12w0xf6);
                }
            }
            if (meta.arm == 16w0x1b6) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x258, 12w0x109);
                } else {
                    hand_off(32w0x25d, 12w0x10e);
                }
            }
            if (meta.arm == 16w0x1b7) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x220, 12w0xd1);
                } else {
                    hand_off(32w0x223, 12w0xd4);
                }
            }
            if (meta.arm == 16w0x1b8) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x271, 12w0x122);
                } else {
                    hand_off(32w0x276, 12w0x127);
                }
            }
            if (meta.arm == 16w0x1b9) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x244, 12w0xf5);
                } else {
                    hand_off(32w0x247, 12w0xf8);
                }
            }
            if (meta.arm == 16w0x1ba) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test442.apply();
                } else {
                    go(16w0x1ce);
                }
            }
            if (meta.arm == 16w0x1bb) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test443.apply();
                } else {
                    go(16w0x1cf);
                }
            }
            if (meta.arm == 16w0x1bc) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test446.apply();
                    } else {
                        go(16w0x1c0);
                    }
                } else {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test450.apply();
                    } else {
                        hand_off(32w0x20b, 12w0xbc);
                    }
                }
            }
            if (meta.arm == 16w0x1bd) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test447.apply();
                    } else {
                        go(16w0x1c1);
                    }
                } else {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid()) {
                        test452.apply();
                    } else {
                        hand_off(32w0x22f, 12w0xe0);
                    }
                }
            }
            if (meta.arm == 16w0x1c0) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.transport.isValid()) {
                    test448.apply();
                } else {
                    go(16w0x1c3);
                }
            }
            if (meta.arm == 16w0x1c1) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.transport.isValid()) {
                    test449.apply();
                } else {
                    go(16w0x1c5);
                }
            }
            if (meta.arm == 16w0x1c3) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test451.apply();
                } else {
                    hand_off(32w0x1f1, 12w0xa2);
                }
            }
            if (meta.arm == 16w0x1c5) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test453.apply();
                } else {
                    hand_off(32w0x1fb, 12w0xac);
                }
            }
            if (meta.arm == 16w0x1c6) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test454.apply();
                } else {
                    hand_off(32w0x204, 12w0xb5);
                }
            }
            if (meta.arm == 16w0x1c7) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test455.apply();
                } else {
                    hand_off(32w0x1ee, 12w0x9f);
                }
            }
            if (meta.arm == 16w0x1c8) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test456.apply();
                } else {
                    hand_off(32w0x228, 12w0xd9);
                }
            }
            if (meta.arm == 16w0x1c9) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid()) {
                    test457.apply();
                } else {
                    hand_off(32w0x1f8, 12w0xa9);
                }
            }
            if (meta.arm == 16w0x1ca) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x203, 12w0xb4);
                } else {
                    hand_off(32w0x20a, 12w0xbb);
                }
            }
            if (meta.arm == 16w0x1cb) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x1ed, 12w0x9e);
                } else {
                    hand_off(32w0x1f0, 12w0xa1);
                }
            }
            if (meta.arm == 16w0x1cc) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x227, 12w0xd8);
                } else {
                    hand_off(32w0x22e, 12w0xdf);
                }
            }
            if (meta.arm == 16w0x1cd) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x1f7, 12w0xa8);
                } else {
                    hand_off(32w0x1fa, 12w0xab);
                }
            }
            if (meta.arm == 16w0x1ce) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test462.apply();
                } else {
                    go(16w0x1d0);
                }
            }
            if (meta.arm == 16w0x1cf) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid()) {
                    test463.apply();
                } else {
                    go(16w0x1d1);
                }
            }
            if (meta.arm == 16w0x1d0) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.transport.isValid()) {
                            test468.apply();
                        } else {
                            go(16w0x1d7);
                        }
                    } else {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid()) {
                            test470.apply();
                        } else {
                            hand_off(32w0x20d, 12w0xbe);
                        }
                    }
                } else {
                    hand_off(32w0x208, 12w0xb9);
                }
            }
            if (meta.arm == 16w0x1d1) {
                // wan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.transport.isValid()) {
                            test469.apply();
                        } else {
                            go(16w0x1d9);
                        }
                    } else {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid()) {
                            test472.apply();
                        } else {
                            hand_off(32w0x231, 12w0xe2);
                        }
                    }
                } else {
                    hand_off(32w0x22c, 12w0xdd);
                }
            }
            if (meta.arm == 16w0x1d7) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test471.apply();
                } else {
                    hand_off(32w0x1f6, 12w0xa7);
                }
            }
            if (meta.arm == 16w0x1d9) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test473.apply();
                } else {
                    hand_off(32w0x200, 12w0xb1);
                }
            }
            if (meta.arm == 16w0x1da) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test474.apply();
                } else {
                    hand_off(32w0x207, 12w0xb8);
                }
            }
            if (meta.arm == 16w0x1db) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test475.apply();
                } else {
                    hand_off(32w0x1f3, 12w0xa4);
                }
            }
            if (meta.arm == 16w0x1dc) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test476.apply();
                } else {
                    hand_off(32w0x22b, 12w0xdc);
                }
            }
            if (meta.arm == 16w0x1dd) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid()) {
                    test477.apply();
                } else {
                    hand_off(32w0x1fd, 12w0xae);
                }
            }
            if (meta.arm == 16w0x1de) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x206, 12w0xb7);
                } else {
                    hand_off(32w0x20c, 12w0xbd);
                }
            }
            if (meta.arm == 16w0x1df) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x1f2, 12w0xa3);
                } else {
                    hand_off(32w0x1f5, 12w0xa6);
                }
            }
            if (meta.arm == 16w0x1e0) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x22a, 12w0xdb);
                } else {
                    hand_off(32w0x230, 12w0xe1);
                }
            }
            if (meta.arm == 16w0x1e1) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0x1fc, 12w0xad);
                } else {
                    hand_off(32w0x1ff, 12w0xb0);
                }
            }
            if (meta.arm == 16w0x1e6) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid()) {
                        test487.apply();
                    } else {
                        hand_off(32w0x283, 12w0x134);
                    }
                } else {
                    hand_off(32w0x287, 12w0x138);
                }
            }
            if (meta.arm == 16w0x1e8) {
                // wan/ARPResponder@3 (ip-router.click:17)
                if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                    // wan/ARPResponder@3 (ip-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                        // wan/ARPResponder@3 (ip-router.click:17)
                        if (hdr.arp.isValid()) {
                            rules490.apply();
                        } else {
                            hand_off(32w0x27d, 12w0x12e);
                        }
                    } else {
                        hand_off(32w0x27d, 12w0x12e);
                    }
                } else {
                    hand_off(32w0x27d, 12w0x12e);
                }
            }
            if (meta.arm == 16w0x1eb) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid()) {
                        test492.apply();
                    } else {
                        hand_off(32w0x286, 12w0x137);
                    }
                } else {
                    hand_off(32w0x287, 12w0x138);
                }
            }
        } else {
            lost();
        }
    }
}

control Deparse(packet_out packet, inout headers_t hdr, in metadata_t meta, in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tag);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.transport);
    }
}

struct egress_headers_t {
}

struct egress_metadata_t {
}

parser EgressParse(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        transition accept;
    }
}

control Egress(inout egress_headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md, in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md, inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    apply {
    }
}

control EgressDeparse(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta, in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
    }
}

Pipeline(Parse(), Ingress(), Deparse(), EgressParse(), Egress(), EgressDeparse()) pipe;
Switch(pipe) main;
