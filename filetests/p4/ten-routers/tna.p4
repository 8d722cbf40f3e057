// Compile with p4c --target tofino --arch tna.
// What tables hold is in entries.json, in the terms of P4Runtime; commands.txt holds the same for simple_switch_CLI.
#include <core.p4>
#include <tna.p4>

// The port towards the cores
const bit<9> CORES = 9w0x4;

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
            16w0x800: parse_ipv4;
            default: accept;
        }
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
    Counter<bit<64>, bit<32>>(323, CounterType_t.PACKETS_AND_BYTES) classes;

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

    // Classifier@2 (ten-routers.click:20)
    table rules0 {
        key = {
            hdr.ethernet.ether_type: exact;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x142, 12w0x93);
        size = 1;
    }

    // r1/routes (ten-routers.click:8)
    table routes3 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x13d, 12w0x8e);
        size = 4;
    }

    // r1/CheckIPHeader@2 (ten-routers.click:7)
    table test46 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x2f);
        size = 1;
    }

    // r1/fragment (ten-routers.click:10)
    table test7 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x1b);
        size = 2;
    }

    // r1/ttl (ten-routers.click:9)
    table test48 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x3a);
        size = 1;
    }

    // r2/routes (ten-routers.click:8)
    table routes8 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x137, 12w0x88);
        size = 4;
    }

    // r3/routes (ten-routers.click:8)
    table routes10 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x134, 12w0x85);
        size = 4;
    }

    // r4/routes (ten-routers.click:8)
    table routes12 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x131, 12w0x82);
        size = 4;
    }

    // r5/routes (ten-routers.click:8)
    table routes14 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x12e, 12w0x7f);
        size = 4;
    }

    // r6/routes (ten-routers.click:8)
    table routes16 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x12b, 12w0x7c);
        size = 4;
    }

    // r7/routes (ten-routers.click:8)
    table routes18 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x128, 12w0x79);
        size = 4;
    }

    // r8/routes (ten-routers.click:8)
    table routes20 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x125, 12w0x76);
        size = 4;
    }

    // r9/routes (ten-routers.click:8)
    table routes22 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x122, 12w0x73);
        size = 4;
    }

    // r10/routes (ten-routers.click:8)
    table routes24 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x11f, 12w0x70);
        size = 4;
    }

    // r1/fragment (ten-routers.click:10)
    table test27 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0xa7);
        size = 1;
    }

    // r2/routes (ten-routers.click:8)
    table routes28 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x137, 12w0x88);
        size = 4;
    }

    // r3/routes (ten-routers.click:8)
    table routes30 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x134, 12w0x85);
        size = 4;
    }

    // r4/routes (ten-routers.click:8)
    table routes32 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x131, 12w0x82);
        size = 4;
    }

    // r5/routes (ten-routers.click:8)
    table routes34 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x12e, 12w0x7f);
        size = 4;
    }

    // r6/routes (ten-routers.click:8)
    table routes36 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x12b, 12w0x7c);
        size = 4;
    }

    // r7/routes (ten-routers.click:8)
    table routes38 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x128, 12w0x79);
        size = 4;
    }

    // r8/routes (ten-routers.click:8)
    table routes40 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x125, 12w0x76);
        size = 4;
    }

    // r9/routes (ten-routers.click:8)
    table routes42 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x122, 12w0x73);
        size = 4;
    }

    // r10/routes (ten-routers.click:8)
    table routes44 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x11f, 12w0x70);
        size = 4;
    }

    // r1/ICMPError@18 (ten-routers.click:15)
    table test50 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x33);
        size = 1;
    }

    // r1/ICMPError@18 (ten-routers.click:15)
    table test52 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x101, 12w0x52);
        size = 31;
    }

    // r1/ICMPError@18 (ten-routers.click:15)
    table test51 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x35);
        size = 2;
    }

    // r1/ICMPError@18 (ten-routers.click:15)
    table test53 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xb4, 12w0x5);
        size = 31;
    }

    // r1/ICMPError@18 (ten-routers.click:15)
    table test54 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xe8, 12w0x39);
        size = 14;
    }

    // r1/ICMPError@18 (ten-routers.click:15)
    table test55 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xb1, 12w0x2);
        size = 14;
    }

    // r1/fragment (ten-routers.click:10)
    table test58 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0xa7);
        size = 1;
    }

    // r2/routes (ten-routers.click:8)
    table routes59 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x137, 12w0x88);
        size = 4;
    }

    // r2/ttl (ten-routers.click:9)
    table test61 {
        key = {
            hdr.ipv4.ttl: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x47);
        size = 1;
    }

    // r2/ICMPError@18 (ten-routers.click:15)
    table test63 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x40);
        size = 1;
    }

    // r2/ICMPError@18 (ten-routers.click:15)
    table test65 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x104, 12w0x55);
        size = 31;
    }

    // r2/ICMPError@18 (ten-routers.click:15)
    table test64 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x42);
        size = 2;
    }

    // r2/ICMPError@18 (ten-routers.click:15)
    table test66 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xb9, 12w0xa);
        size = 31;
    }

    // r2/ICMPError@18 (ten-routers.click:15)
    table test67 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xea, 12w0x3b);
        size = 14;
    }

    // r2/ICMPError@18 (ten-routers.click:15)
    table test68 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xb6, 12w0x7);
        size = 14;
    }

    // r3/routes (ten-routers.click:8)
    table routes71 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x134, 12w0x85);
        size = 4;
    }

    // r3/ttl (ten-routers.click:9)
    table test73 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x53);
        size = 1;
    }

    // r3/ICMPError@18 (ten-routers.click:15)
    table test75 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x4c);
        size = 1;
    }

    // r3/ICMPError@18 (ten-routers.click:15)
    table test77 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x107, 12w0x58);
        size = 31;
    }

    // r3/ICMPError@18 (ten-routers.click:15)
    table test76 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x4e);
        size = 2;
    }

    // r3/ICMPError@18 (ten-routers.click:15)
    table test78 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xbe, 12w0xf);
        size = 31;
    }

    // r3/ICMPError@18 (ten-routers.click:15)
    table test79 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xec, 12w0x3d);
        size = 14;
    }

    // r3/ICMPError@18 (ten-routers.click:15)
    table test80 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xbb, 12w0xc);
        size = 14;
    }

    // r4/routes (ten-routers.click:8)
    table routes83 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x131, 12w0x82);
        size = 4;
    }

    // r4/ttl (ten-routers.click:9)
    table test85 {
        key = {
            hdr.ipv4.ttl: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x5f);
        size = 1;
    }

    // r4/ICMPError@18 (ten-routers.click:15)
    table test87 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x58);
        size = 1;
    }

    // r4/ICMPError@18 (ten-routers.click:15)
    table test89 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x10a, 12w0x5b);
        size = 31;
    }

    // r4/ICMPError@18 (ten-routers.click:15)
    table test88 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x5a);
        size = 2;
    }

    // r4/ICMPError@18 (ten-routers.click:15)
    table test90 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xc3, 12w0x14);
        size = 31;
    }

    // r4/ICMPError@18 (ten-routers.click:15)
    table test91 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xee, 12w0x3f);
        size = 14;
    }

    // r4/ICMPError@18 (ten-routers.click:15)
    table test92 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xc0, 12w0x11);
        size = 14;
    }

    // r5/routes (ten-routers.click:8)
    table routes95 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x12e, 12w0x7f);
        size = 4;
    }

    // r5/ttl (ten-routers.click:9)
    table test97 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x6b);
        size = 1;
    }

    // r5/ICMPError@18 (ten-routers.click:15)
    table test99 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x64);
        size = 1;
    }

    // r5/ICMPError@18 (ten-routers.click:15)
    table test101 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x10d, 12w0x5e);
        size = 31;
    }

    // r5/ICMPError@18 (ten-routers.click:15)
    table test100 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x66);
        size = 2;
    }

    // r5/ICMPError@18 (ten-routers.click:15)
    table test102 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xc8, 12w0x19);
        size = 31;
    }

    // r5/ICMPError@18 (ten-routers.click:15)
    table test103 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xf0, 12w0x41);
        size = 14;
    }

    // r5/ICMPError@18 (ten-routers.click:15)
    table test104 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xc5, 12w0x16);
        size = 14;
    }

    // r6/routes (ten-routers.click:8)
    table routes107 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x12b, 12w0x7c);
        size = 4;
    }

    // r6/ttl (ten-routers.click:9)
    table test109 {
        key = {
            hdr.ipv4.ttl: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x77);
        size = 1;
    }

    // r6/ICMPError@18 (ten-routers.click:15)
    table test111 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x70);
        size = 1;
    }

    // r6/ICMPError@18 (ten-routers.click:15)
    table test113 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x110, 12w0x61);
        size = 31;
    }

    // r6/ICMPError@18 (ten-routers.click:15)
    table test112 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x72);
        size = 2;
    }

    // r6/ICMPError@18 (ten-routers.click:15)
    table test114 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xcd, 12w0x1e);
        size = 31;
    }

    // r6/ICMPError@18 (ten-routers.click:15)
    table test115 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xf2, 12w0x43);
        size = 14;
    }

    // r6/ICMPError@18 (ten-routers.click:15)
    table test116 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xca, 12w0x1b);
        size = 14;
    }

    // r7/routes (ten-routers.click:8)
    table routes119 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x128, 12w0x79);
        size = 4;
    }

    // r7/ttl (ten-routers.click:9)
    table test121 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x83);
        size = 1;
    }

    // r7/ICMPError@18 (ten-routers.click:15)
    table test123 {
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

    // r7/ICMPError@18 (ten-routers.click:15)
    table test125 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x113, 12w0x64);
        size = 31;
    }

    // r7/ICMPError@18 (ten-routers.click:15)
    table test124 {
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

    // r7/ICMPError@18 (ten-routers.click:15)
    table test126 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xd2, 12w0x23);
        size = 31;
    }

    // r7/ICMPError@18 (ten-routers.click:15)
    table test127 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xf4, 12w0x45);
        size = 14;
    }

    // r7/ICMPError@18 (ten-routers.click:15)
    table test128 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xcf, 12w0x20);
        size = 14;
    }

    // r8/routes (ten-routers.click:8)
    table routes131 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x125, 12w0x76);
        size = 4;
    }

    // r8/ttl (ten-routers.click:9)
    table test133 {
        key = {
            hdr.ipv4.ttl: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x8f);
        size = 1;
    }

    // r8/ICMPError@18 (ten-routers.click:15)
    table test135 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x88);
        size = 1;
    }

    // r8/ICMPError@18 (ten-routers.click:15)
    table test137 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x116, 12w0x67);
        size = 31;
    }

    // r8/ICMPError@18 (ten-routers.click:15)
    table test136 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x8a);
        size = 2;
    }

    // r8/ICMPError@18 (ten-routers.click:15)
    table test138 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xd7, 12w0x28);
        size = 31;
    }

    // r8/ICMPError@18 (ten-routers.click:15)
    table test139 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xf6, 12w0x47);
        size = 14;
    }

    // r8/ICMPError@18 (ten-routers.click:15)
    table test140 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xd4, 12w0x25);
        size = 14;
    }

    // r9/routes (ten-routers.click:8)
    table routes143 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x122, 12w0x73);
        size = 4;
    }

    // r9/ttl (ten-routers.click:9)
    table test145 {
        key = {
            hdr.ipv4.ttl: ternary;
        }
        actions = {
            go;
        }
        default_action = go(16w0x9b);
        size = 1;
    }

    // r9/ICMPError@18 (ten-routers.click:15)
    table test147 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x94);
        size = 1;
    }

    // r9/ICMPError@18 (ten-routers.click:15)
    table test149 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x119, 12w0x6a);
        size = 31;
    }

    // r9/ICMPError@18 (ten-routers.click:15)
    table test148 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x96);
        size = 2;
    }

    // r9/ICMPError@18 (ten-routers.click:15)
    table test150 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xdc, 12w0x2d);
        size = 31;
    }

    // r9/ICMPError@18 (ten-routers.click:15)
    table test151 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xf8, 12w0x49);
        size = 14;
    }

    // r9/ICMPError@18 (ten-routers.click:15)
    table test152 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xd9, 12w0x2a);
        size = 14;
    }

    // r10/routes (ten-routers.click:8)
    table routes155 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x11f, 12w0x70);
        size = 4;
    }

    // r10/ttl (ten-routers.click:9)
    table test157 {
        key = {
            hdr.ipv4.ttl: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xfb, 12w0x4c);
        size = 1;
    }

    // r10/ICMPError@18 (ten-routers.click:15)
    table test159 {
        key = {
            hdr.ipv4.len: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0xa0);
        size = 1;
    }

    // r10/ICMPError@18 (ten-routers.click:15)
    table test160 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0xa2);
        size = 2;
    }

    // r10/ICMPError@18 (ten-routers.click:15)
    table test161 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x11c, 12w0x6d);
        size = 31;
    }

    // r10/ICMPError@18 (ten-routers.click:15)
    table test162 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xe1, 12w0x32);
        size = 31;
    }

    // r10/ICMPError@18 (ten-routers.click:15)
    table test163 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xfa, 12w0x4b);
        size = 14;
    }

    // r10/ICMPError@18 (ten-routers.click:15)
    table test164 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xde, 12w0x2f);
        size = 14;
    }

    // r1/ICMPError@19 (ten-routers.click:16)
    table test169 {
        key = {
            hdr.transport.sport[15:8]: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0xab);
        size = 2;
    }

    // r1/ICMPError@19 (ten-routers.click:16)
    table test170 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x139, 12w0x8a);
        size = 31;
    }

    // r1/ICMPError@19 (ten-routers.click:16)
    table test171 {
        key = {
            hdr.ipv4.dst: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xe6, 12w0x37);
        size = 31;
    }

    // r1/ICMPError@19 (ten-routers.click:16)
    table test172 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xfd, 12w0x4e);
        size = 14;
    }

    // r1/ICMPError@19 (ten-routers.click:16)
    table test173 {
        key = {
            hdr.ipv4.src: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xe3, 12w0x34);
        size = 14;
    }

    apply {
        if (ig_intr_md.ingress_port == CORES) {
            if (hdr.tag.isValid()) {
                ports.apply();
            } else {
                lost();
            }
        } else if (ig_intr_md.ingress_port == 9w0x1) {
            // Classifier@2 (ten-routers.click:20)
            rules0.apply();
            if (meta.arm == 16w0x1) {
                // r1/CheckIPHeader@2 (ten-routers.click:7)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // r1/CheckIPHeader@2 (ten-routers.click:7)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                        // r1/routes (ten-routers.click:8)
                        if (hdr.ipv4.isValid()) {
                            routes3.apply();
                        } else {
                            hand_off(32w0x13d, 12w0x8e);
                        }
                    } else {
                        // r1/CheckIPHeader@2 (ten-routers.click:7)
                        if (hdr.ipv4.isValid()) {
                            test46.apply();
                        } else {
                            go(16w0x2f);
                        }
                    }
                } else {
                    hand_off(32w0x141, 12w0x92);
                }
            }
            if (meta.arm == 16w0x5) {
                // r1/DropBroadcasts@5 (ten-routers.click:9)
                if (hdr.ethernet.dst[40:40] == 1w0x1) {
                    hand_off(32w0x13a, 12w0x8b);
                } else {
                    // r1/ttl (ten-routers.click:9)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ttl == 8w0xa) {
                        // r1/fragment (ten-routers.click:10)
                        if (hdr.ipv4.isValid()) {
                            test7.apply();
                        } else {
                            go(16w0x1b);
                        }
                    } else {
                        // r1/ttl (ten-routers.click:9)
                        if (hdr.ipv4.isValid()) {
                            test48.apply();
                        } else {
                            go(16w0x3a);
                        }
                    }
                }
            }
            if (meta.arm == 16w0x8) {
                // r2/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes8.apply();
                } else {
                    hand_off(32w0x137, 12w0x88);
                }
            }
            if (meta.arm == 16w0xa) {
                // r3/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes10.apply();
                } else {
                    hand_off(32w0x134, 12w0x85);
                }
            }
            if (meta.arm == 16w0xc) {
                // r4/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes12.apply();
                } else {
                    hand_off(32w0x131, 12w0x82);
                }
            }
            if (meta.arm == 16w0xe) {
                // r5/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes14.apply();
                } else {
                    hand_off(32w0x12e, 12w0x7f);
                }
            }
            if (meta.arm == 16w0x10) {
                // r6/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes16.apply();
                } else {
                    hand_off(32w0x12b, 12w0x7c);
                }
            }
            if (meta.arm == 16w0x12) {
                // r7/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes18.apply();
                } else {
                    hand_off(32w0x128, 12w0x79);
                }
            }
            if (meta.arm == 16w0x14) {
                // r8/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes20.apply();
                } else {
                    hand_off(32w0x125, 12w0x76);
                }
            }
            if (meta.arm == 16w0x16) {
                // r9/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes22.apply();
                } else {
                    hand_off(32w0x122, 12w0x73);
                }
            }
            if (meta.arm == 16w0x18) {
                // r10/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes24.apply();
                } else {
                    hand_off(32w0x11f, 12w0x70);
                }
            }
            if (meta.arm == 16w0x1a) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    meta.arm = 16w0xa0;
                } else {
                    meta.arm = 16w0xa1;
                }
            }
            if (meta.arm == 16w0x1b) {
                // r1/fragment (ten-routers.click:10)
                if (hdr.ipv4.isValid()) {
                    test27.apply();
                } else {
                    go(16w0xa7);
                }
            }
            if (meta.arm == 16w0x1c) {
                // r2/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes28.apply();
                } else {
                    hand_off(32w0x137, 12w0x88);
                }
            }
            if (meta.arm == 16w0x1e) {
                // r3/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes30.apply();
                } else {
                    hand_off(32w0x134, 12w0x85);
                }
            }
            if (meta.arm == 16w0x20) {
                // r4/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes32.apply();
                } else {
                    hand_off(32w0x131, 12w0x82);
                }
            }
            if (meta.arm == 16w0x22) {
                // r5/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes34.apply();
                } else {
                    hand_off(32w0x12e, 12w0x7f);
                }
            }
            if (meta.arm == 16w0x24) {
                // r6/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes36.apply();
                } else {
                    hand_off(32w0x12b, 12w0x7c);
                }
            }
            if (meta.arm == 16w0x26) {
                // r7/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes38.apply();
                } else {
                    hand_off(32w0x128, 12w0x79);
                }
            }
            if (meta.arm == 16w0x28) {
                // r8/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes40.apply();
                } else {
                    hand_off(32w0x125, 12w0x76);
                }
            }
            if (meta.arm == 16w0x2a) {
                // r9/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes42.apply();
                } else {
                    hand_off(32w0x122, 12w0x73);
                }
            }
            if (meta.arm == 16w0x2c) {
                // r10/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes44.apply();
                } else {
                    hand_off(32w0x11f, 12w0x70);
                }
            }
            if (meta.arm == 16w0x2f) {
                // r1/CheckIPHeader@2 (ten-routers.click:7)
                if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                    hand_off(32w0x13e, 12w0x8f);
                } else {
                    hand_off(32w0x13f, 12w0x90);
                }
            }
            if (meta.arm == 16w0x31) {
                // r1/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r1/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test50.apply();
                    } else {
                        go(16w0x33);
                    }
                } else {
                    // r1/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test52.apply();
                    } else {
                        hand_off(32w0x101, 12w0x52);
                    }
                }
            }
            if (meta.arm == 16w0x33) {
                // r1/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid()) {
                    test51.apply();
                } else {
                    go(16w0x35);
                }
            }
            if (meta.arm == 16w0x35) {
                // r1/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test53.apply();
                } else {
                    hand_off(32w0xb4, 12w0x5);
                }
            }
            if (meta.arm == 16w0x36) {
                // r1/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test54.apply();
                } else {
                    hand_off(32w0xe8, 12w0x39);
                }
            }
            if (meta.arm == 16w0x37) {
                // r1/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test55.apply();
                } else {
                    hand_off(32w0xb1, 12w0x2);
                }
            }
            if (meta.arm == 16w0x38) {
                // r1/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xe7, 12w0x38);
                } else {
                    hand_off(32w0x100, 12w0x51);
                }
            }
            if (meta.arm == 16w0x39) {
                // r1/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xb0, 12w0x1);
                } else {
                    hand_off(32w0xb3, 12w0x4);
                }
            }
            if (meta.arm == 16w0x3a) {
                // r1/fragment (ten-routers.click:10)
                if (hdr.ipv4.isValid()) {
                    test58.apply();
                } else {
                    go(16w0xa7);
                }
            }
            if (meta.arm == 16w0x3b) {
                // r2/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes59.apply();
                } else {
                    hand_off(32w0x137, 12w0x88);
                }
            }
            if (meta.arm == 16w0x3d) {
                // r2/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid()) {
                    test61.apply();
                } else {
                    go(16w0x47);
                }
            }
            if (meta.arm == 16w0x3e) {
                // r2/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r2/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test63.apply();
                    } else {
                        go(16w0x40);
                    }
                } else {
                    // r2/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test65.apply();
                    } else {
                        hand_off(32w0x104, 12w0x55);
                    }
                }
            }
            if (meta.arm == 16w0x40) {
                // r2/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid()) {
                    test64.apply();
                } else {
                    go(16w0x42);
                }
            }
            if (meta.arm == 16w0x42) {
                // r2/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test66.apply();
                } else {
                    hand_off(32w0xb9, 12w0xa);
                }
            }
            if (meta.arm == 16w0x43) {
                // r2/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test67.apply();
                } else {
                    hand_off(32w0xea, 12w0x3b);
                }
            }
            if (meta.arm == 16w0x44) {
                // r2/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test68.apply();
                } else {
                    hand_off(32w0xb6, 12w0x7);
                }
            }
            if (meta.arm == 16w0x45) {
                // r2/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xe9, 12w0x3a);
                } else {
                    hand_off(32w0x103, 12w0x54);
                }
            }
            if (meta.arm == 16w0x46) {
                // r2/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xb5, 12w0x6);
                } else {
                    hand_off(32w0xb8, 12w0x9);
                }
            }
            if (meta.arm == 16w0x47) {
                // r3/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes71.apply();
                } else {
                    hand_off(32w0x134, 12w0x85);
                }
            }
            if (meta.arm == 16w0x49) {
                // r3/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid()) {
                    test73.apply();
                } else {
                    go(16w0x53);
                }
            }
            if (meta.arm == 16w0x4a) {
                // r3/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r3/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test75.apply();
                    } else {
                        go(16w0x4c);
                    }
                } else {
                    // r3/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test77.apply();
                    } else {
                        hand_off(32w0x107, 12w0x58);
                    }
                }
            }
            if (meta.arm == 16w0x4c) {
                // r3/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid()) {
                    test76.apply();
                } else {
                    go(16w0x4e);
                }
            }
            if (meta.arm == 16w0x4e) {
                // r3/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test78.apply();
                } else {
                    hand_off(32w0xbe, 12w0xf);
                }
            }
            if (meta.arm == 16w0x4f) {
                // r3/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test79.apply();
                } else {
                    hand_off(32w0xec, 12w0x3d);
                }
            }
            if (meta.arm == 16w0x50) {
                // r3/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test80.apply();
                } else {
                    hand_off(32w0xbb, 12w0xc);
                }
            }
            if (meta.arm == 16w0x51) {
                // r3/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xeb, 12w0x3c);
                } else {
                    hand_off(32w0x106, 12w0x57);
                }
            }
            if (meta.arm == 16w0x52) {
                // r3/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xba, 12w0xb);
                } else {
                    hand_off(32w0xbd, 12w0xe);
                }
            }
            if (meta.arm == 16w0x53) {
                // r4/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes83.apply();
                } else {
                    hand_off(32w0x131, 12w0x82);
                }
            }
            if (meta.arm == 16w0x55) {
                // r4/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid()) {
                    test85.apply();
                } else {
                    go(16w0x5f);
                }
            }
            if (meta.arm == 16w0x56) {
                // r4/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r4/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test87.apply();
                    } else {
                        go(16w0x58);
                    }
                } else {
                    // r4/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test89.apply();
                    } else {
                        hand_off(32w0x10a, 12w0x5b);
                    }
                }
            }
            if (meta.arm == 16w0x58) {
                // r4/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid()) {
                    test88.apply();
                } else {
                    go(16w0x5a);
                }
            }
            if (meta.arm == 16w0x5a) {
                // r4/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test90.apply();
                } else {
                    hand_off(32w0xc3, 12w0x14);
                }
            }
            if (meta.arm == 16w0x5b) {
                // r4/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test91.apply();
                } else {
                    hand_off(32w0xee, 12w0x3f);
                }
            }
            if (meta.arm == 16w0x5c) {
                // r4/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test92.apply();
                } else {
                    hand_off(32w0xc0, 12w0x11);
                }
            }
            if (meta.arm == 16w0x5d) {
                // r4/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xed, 12w0x3e);
                } else {
                    hand_off(32w0x109, 12w0x5a);
                }
            }
            if (meta.arm == 16w0x5e) {
                // r4/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xbf, 12w0x10);
                } else {
                    hand_off(32w0xc2, 12w0x13);
                }
            }
            if (meta.arm == 16w0x5f) {
                // r5/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes95.apply();
                } else {
                    hand_off(32w0x12e, 12w0x7f);
                }
            }
            if (meta.arm == 16w0x61) {
                // r5/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid()) {
                    test97.apply();
                } else {
                    go(16w0x6b);
                }
            }
            if (meta.arm == 16w0x62) {
                // r5/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r5/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test99.apply();
                    } else {
                        go(16w0x64);
                    }
                } else {
                    // r5/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test101.apply();
                    } else {
                        hand_off(32w0x10d, 12w0x5e);
                    }
                }
            }
            if (meta.arm == 16w0x64) {
                // r5/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid()) {
                    test100.apply();
                } else {
                    go(16w0x66);
                }
            }
            if (meta.arm == 16w0x66) {
                // r5/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test102.apply();
                } else {
                    hand_off(32w0xc8, 12w0x19);
                }
            }
            if (meta.arm == 16w0x67) {
                // r5/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test103.apply();
                } else {
                    hand_off(32w0xf0, 12w0x41);
                }
            }
            if (meta.arm == 16w0x68) {
                // r5/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test104.apply();
                } else {
                    hand_off(32w0xc5, 12w0x16);
                }
            }
            if (meta.arm == 16w0x69) {
                // r5/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xef, 12w0x40);
                } else {
                    hand_off(32w0x10c, 12w0x5d);
                }
            }
            if (meta.arm == 16w0x6a) {
                // r5/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xc4, 12w0x15);
                } else {
                    hand_off(32w0xc7, 12w0x18);
                }
            }
            if (meta.arm == 16w0x6b) {
                // r6/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes107.apply();
                } else {
                    hand_off(32w0x12b, 12w0x7c);
                }
            }
            if (meta.arm == 16w0x6d) {
                // r6/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid()) {
                    test109.apply();
                } else {
                    go(16w0x77);
                }
            }
            if (meta.arm == 16w0x6e) {
                // r6/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r6/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test111.apply();
                    } else {
                        go(16w0x70);
                    }
                } else {
                    // r6/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test113.apply();
                    } else {
                        hand_off(32w0x110, 12w0x61);
                    }
                }
            }
            if (meta.arm == 16w0x70) {
                // r6/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid()) {
                    test112.apply();
                } else {
                    go(16w0x72);
                }
            }
            if (meta.arm == 16w0x72) {
                // r6/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test114.apply();
                } else {
                    hand_off(32w0xcd, 12w0x1e);
                }
            }
            if (meta.arm == 16w0x73) {
                // r6/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test115.apply();
                } else {
                    hand_off(32w0xf2, 12w0x43);
                }
            }
            if (meta.arm == 16w0x74) {
                // r6/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test116.apply();
                } else {
                    hand_off(32w0xca, 12w0x1b);
                }
            }
            if (meta.arm == 16w0x75) {
                // r6/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xf1, 12w0x42);
                } else {
                    hand_off(32w0x10f, 12w0x60);
                }
            }
            if (meta.arm == 16w0x76) {
                // r6/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xc9, 12w0x1a);
                } else {
                    hand_off(32w0xcc, 12w0x1d);
                }
            }
            if (meta.arm == 16w0x77) {
                // r7/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes119.apply();
                } else {
                    hand_off(32w0x128, 12w0x79);
                }
            }
            if (meta.arm == 16w0x79) {
                // r7/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid()) {
                    test121.apply();
                } else {
                    go(16w0x83);
                }
            }
            if (meta.arm == 16w0x7a) {
                // r7/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r7/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test123.apply();
                    } else {
                        go(16w0x7c);
                    }
                } else {
                    // r7/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test125.apply();
                    } else {
                        hand_off(32w0x113, 12w0x64);
                    }
                }
            }
            if (meta.arm == 16w0x7c) {
                // r7/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid()) {
                    test124.apply();
                } else {
                    go(16w0x7e);
                }
            }
            if (meta.arm == 16w0x7e) {
                // r7/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test126.apply();
                } else {
                    hand_off(32w0xd2, 12w0x23);
                }
            }
            if (meta.arm == 16w0x7f) {
                // r7/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test127.apply();
                } else {
                    hand_off(32w0xf4, 12w0x45);
                }
            }
            if (meta.arm == 16w0x80) {
                // r7/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test128.apply();
                } else {
                    hand_off(32w0xcf, 12w0x20);
                }
            }
            if (meta.arm == 16w0x81) {
                // r7/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xf3, 12w0x44);
                } else {
                    hand_off(32w0x112, 12w0x63);
                }
            }
            if (meta.arm == 16w0x82) {
                // r7/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xce, 12w0x1f);
                } else {
                    hand_off(32w0xd1, 12w0x22);
                }
            }
            if (meta.arm == 16w0x83) {
                // r8/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes131.apply();
                } else {
                    hand_off(32w0x125, 12w0x76);
                }
            }
            if (meta.arm == 16w0x85) {
                // r8/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid()) {
                    test133.apply();
                } else {
                    go(16w0x8f);
                }
            }
            if (meta.arm == 16w0x86) {
                // r8/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r8/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test135.apply();
                    } else {
                        go(16w0x88);
                    }
                } else {
                    // r8/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test137.apply();
                    } else {
                        hand_off(32w0x116, 12w0x67);
                    }
                }
            }
            if (meta.arm == 16w0x88) {
                // r8/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid()) {
                    test136.apply();
                } else {
                    go(16w0x8a);
                }
            }
            if (meta.arm == 16w0x8a) {
                // r8/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test138.apply();
                } else {
                    hand_off(32w0xd7, 12w0x28);
                }
            }
            if (meta.arm == 16w0x8b) {
                // r8/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test139.apply();
                } else {
                    hand_off(32w0xf6, 12w0x47);
                }
            }
            if (meta.arm == 16w0x8c) {
                // r8/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test140.apply();
                } else {
                    hand_off(32w0xd4, 12w0x25);
                }
            }
            if (meta.arm == 16w0x8d) {
                // r8/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xf5, 12w0x46);
                } else {
                    hand_off(32w0x115, 12w0x66);
                }
            }
            if (meta.arm == 16w0x8e) {
                // r8/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xd3, 12w0x24);
                } else {
                    hand_off(32w0xd6, 12w0x27);
                }
            }
            if (meta.arm == 16w0x8f) {
                // r9/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes143.apply();
                } else {
                    hand_off(32w0x122, 12w0x73);
                }
            }
            if (meta.arm == 16w0x91) {
                // r9/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid()) {
                    test145.apply();
                } else {
                    go(16w0x9b);
                }
            }
            if (meta.arm == 16w0x92) {
                // r9/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r9/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test147.apply();
                    } else {
                        go(16w0x94);
                    }
                } else {
                    // r9/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test149.apply();
                    } else {
                        hand_off(32w0x119, 12w0x6a);
                    }
                }
            }
            if (meta.arm == 16w0x94) {
                // r9/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid()) {
                    test148.apply();
                } else {
                    go(16w0x96);
                }
            }
            if (meta.arm == 16w0x96) {
                // r9/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test150.apply();
                } else {
                    hand_off(32w0xdc, 12w0x2d);
                }
            }
            if (meta.arm == 16w0x97) {
                // r9/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test151.apply();
                } else {
                    hand_off(32w0xf8, 12w0x49);
                }
            }
            if (meta.arm == 16w0x98) {
                // r9/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test152.apply();
                } else {
                    hand_off(32w0xd9, 12w0x2a);
                }
            }
            if (meta.arm == 16w0x99) {
                // r9/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xf7, 12w0x48);
                } else {
                    hand_off(32w0x118, 12w0x69);
                }
            }
            if (meta.arm == 16w0x9a) {
                // r9/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xd8, 12w0x29);
                } else {
                    hand_off(32w0xdb, 12w0x2c);
                }
            }
            if (meta.arm == 16w0x9b) {
                // r10/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes155.apply();
                } else {
                    hand_off(32w0x11f, 12w0x70);
                }
            }
            if (meta.arm == 16w0x9d) {
                // r10/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid()) {
                    test157.apply();
                } else {
                    hand_off(32w0xfb, 12w0x4c);
                }
            }
            if (meta.arm == 16w0x9e) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r10/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid()) {
                        test159.apply();
                    } else {
                        go(16w0xa0);
                    }
                } else {
                    meta.arm = 16w0xa1;
                }
            }
            if (meta.arm == 16w0xa0) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid()) {
                    test160.apply();
                } else {
                    go(16w0xa2);
                }
            }
            if (meta.arm == 16w0xa1) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test161.apply();
                } else {
                    hand_off(32w0x11c, 12w0x6d);
                }
            }
            if (meta.arm == 16w0xa2) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test162.apply();
                } else {
                    hand_off(32w0xe1, 12w0x32);
                }
            }
            if (meta.arm == 16w0xa3) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test163.apply();
                } else {
                    hand_off(32w0xfa, 12w0x4b);
                }
            }
            if (meta.arm == 16w0xa4) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid()) {
                    test164.apply();
                } else {
                    hand_off(32w0xde, 12w0x2f);
                }
            }
            if (meta.arm == 16w0xa5) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xf9, 12w0x4a);
                } else {
                    hand_off(32w0x11b, 12w0x6c);
                }
            }
            if (meta.arm == 16w0xa6) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xdd, 12w0x2e);
                } else {
                    hand_off(32w0xe0, 12w0x31);
                }
            }
            if (meta.arm == 16w0xa7) {
                // r1/fragment (ten-routers.click:10)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    // r1/ICMPError@19 (ten-routers.click:16)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // r1/ICMPError@19 (ten-routers.click:16)
                        if (hdr.transport.isValid()) {
                            test169.apply();
                        } else {
                            go(16w0xab);
                        }
                    } else {
                        // r1/ICMPError@19 (ten-routers.click:16)
                        if (hdr.ipv4.isValid()) {
                            test170.apply();
                        } else {
                            hand_off(32w0x139, 12w0x8a);
                        }
                    }
                } else {
                    hand_off(32w0xfe, 12w0x4f);
                }
            }
            if (meta.arm == 16w0xab) {
                // r1/ICMPError@19 (ten-routers.click:16)
                if (hdr.ipv4.isValid()) {
                    test171.apply();
                } else {
                    hand_off(32w0xe6, 12w0x37);
                }
            }
            if (meta.arm == 16w0xac) {
                // r1/ICMPError@19 (ten-routers.click:16)
                if (hdr.ipv4.isValid()) {
                    test172.apply();
                } else {
                    hand_off(32w0xfd, 12w0x4e);
                }
            }
            if (meta.arm == 16w0xad) {
                // r1/ICMPError@19 (ten-routers.click:16)
                if (hdr.ipv4.isValid()) {
                    test173.apply();
                } else {
                    hand_off(32w0xe3, 12w0x34);
                }
            }
            if (meta.arm == 16w0xae) {
                // r1/ICMPError@19 (ten-routers.click:16)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xfc, 12w0x4d);
                } else {
                    hand_off(32w0x138, 12w0x89);
                }
            }
            if (meta.arm == 16w0xaf) {
                // r1/ICMPError@19 (ten-routers.click:16)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    hand_off(32w0xe2, 12w0x33);
                } else {
                    hand_off(32w0xe5, 12w0x36);
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
