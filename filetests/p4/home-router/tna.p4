// Compile with p4c --target tofino --arch tna.
// What tables hold is in entries.json, in the terms of P4Runtime; commands.txt holds the same for simple_switch_CLI.
#include <core.p4>
#include <tna.p4>

// The port towards the cores
const bit<9> CORES = 9w0x3;

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
    Counter<bit<64>, bit<32>>(189, CounterType_t.PACKETS_AND_BYTES) classes;
    bit<16> key2_1;
    bit<16> key13_1;
    bit<16> key16_1;
    bit<16> key104_1;
    bit<16> key113_1;
    bit<16> key116_1;

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

    // lan/kind (home-router.click:15)
    table rules2 {
        key = {
            hdr.ethernet.ether_type: exact;
            key2_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x64, 12w0x2d);
        size = 3;
    }

    // lan/kind (home-router.click:15)
    table rules13 {
        key = {
            hdr.ethernet.ether_type: exact;
            key13_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x64, 12w0x2d);
        size = 3;
    }

    // lan/kind (home-router.click:15)
    table rules16 {
        key = {
            hdr.ethernet.ether_type: exact;
            key16_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x64, 12w0x2d);
        size = 3;
    }

    // here (home-router.click:45)
    table test5 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x13);
        size = 1;
    }

    // lan/CheckIPHeader@6 (home-router.click:18)
    table test17 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x12);
        size = 1;
    }

    // here (home-router.click:45)
    table rules6 {
        key = {
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x42, 12w0xb);
        size = 4;
    }

    // here (home-router.click:45)
    table test20 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x31);
        size = 1;
    }

    // here (home-router.click:45)
    table test19 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x30);
        size = 1;
    }

    // here (home-router.click:45)
    table rules21 {
        key = {
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x49, 12w0x12);
        size = 4;
    }

    // here (home-router.click:45)
    table rules22 {
        key = {
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x50, 12w0x19);
        size = 4;
    }

    // ICMPPingResponder@11 (home-router.click:46)
    table test25 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1b);
        size = 1;
    }

    // ICMPPingResponder@11 (home-router.click:46)
    table test26 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x1c);
        size = 1;
    }

    // lan/fragment (home-router.click:25)
    table test29 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x39, 12w0x2);
        size = 1;
    }

    // lan/fragment (home-router.click:25)
    table test30 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x3b, 12w0x4);
        size = 1;
    }

    // pings (home-router.click:36)
    table test31 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x43, 12w0xc);
        size = 1;
    }

    // pings (home-router.click:36)
    table test32 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x4a, 12w0x13);
        size = 1;
    }

    // flows (home-router.click:35)
    table test35 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x25);
        size = 1;
    }

    // flows (home-router.click:35)
    table test36 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x26);
        size = 1;
    }

    // flows (home-router.click:35)
    table test39 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x44, 12w0xd);
        size = 1;
    }

    // flows (home-router.click:35)
    table test40 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x4b, 12w0x14);
        size = 1;
    }

    // lan/CheckIPHeader@6 (home-router.click:18)
    table test42 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x5f, 12w0x28);
        size = 1;
    }

    // lan/ARPResponder@3 (home-router.click:16)
    table rules45 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x59, 12w0x22);
        size = 1;
    }

    // lan/CheckIPHeader@6 (home-router.click:18)
    table test47 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x62, 12w0x2b);
        size = 1;
    }

    // wan/kind (home-router.click:15)
    table rules104 {
        key = {
            hdr.ethernet.ether_type: exact;
            key104_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xbb, 12w0x56);
        size = 3;
    }

    // wan/kind (home-router.click:15)
    table rules113 {
        key = {
            hdr.ethernet.ether_type: exact;
            key113_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xbb, 12w0x56);
        size = 3;
    }

    // wan/kind (home-router.click:15)
    table rules116 {
        key = {
            hdr.ethernet.ether_type: exact;
            key116_1: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xbb, 12w0x56);
        size = 3;
    }

    // back (home-router.click:52)
    table test107 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x77);
        size = 1;
    }

    // wan/CheckIPHeader@6 (home-router.click:18)
    table test117 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x76);
        size = 1;
    }

    // back (home-router.click:52)
    table rules108 {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0x9b, 12w0x36);
        size = 5;
    }

    // back (home-router.click:52)
    table test120 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x8f);
        size = 1;
    }

    // back (home-router.click:52)
    table test119 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x8e);
        size = 1;
    }

    // back (home-router.click:52)
    table rules121 {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xa2, 12w0x3d);
        size = 5;
    }

    // back (home-router.click:52)
    table rules122 {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(32w0xa9, 12w0x44);
        size = 5;
    }

    // pings (home-router.click:36)
    table test123 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x9c, 12w0x37);
        size = 1;
    }

    // pings (home-router.click:36)
    table test124 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0xa3, 12w0x3e);
        size = 1;
    }

    // flows (home-router.click:35)
    table test127 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x81);
        size = 1;
    }

    // flows (home-router.click:35)
    table test128 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = go(16w0x82);
        size = 1;
    }

    // flows (home-router.click:35)
    table test131 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x9d, 12w0x38);
        size = 1;
    }

    // flows (home-router.click:35)
    table test132 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0xa4, 12w0x3f);
        size = 1;
    }

    // errors (home-router.click:38)
    table test133 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x94, 12w0x2f);
        size = 1;
    }

    // errors (home-router.click:38)
    table test134 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0x95, 12w0x30);
        size = 1;
    }

    // wan/CheckIPHeader@6 (home-router.click:18)
    table test136 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0xb6, 12w0x51);
        size = 1;
    }

    // wan/ARPResponder@3 (home-router.click:16)
    table rules139 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0xb0, 12w0x4b);
        size = 1;
    }

    // wan/CheckIPHeader@6 (home-router.click:18)
    table test141 {
        key = {
            hdr.ipv4.ihl: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(32w0xb9, 12w0x54);
        size = 1;
    }

    apply {
        if (ig_intr_md.ingress_port == CORES) {
            if (hdr.tag.isValid()) {
                ports.apply();
            } else {
                lost();
            }
        } else if (ig_intr_md.ingress_port == 9w0x1) {
            // lan/HostEtherFilter@1 (home-router.click:14)
            if (hdr.ethernet.dst == 48w0x20000000001) {
                // lan/kind (home-router.click:15)
                if (hdr.ethernet.ether_type == 16w0x800) {
                    // lan/kind (home-router.click:15)
                    if (hdr.ipv4.isValid()) {
                        key2_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                        rules2.apply();
                    } else {
                        hand_off(32w0x64, 12w0x2d);
                    }
                } else {
                    hand_off(32w0x5a, 12w0x23);
                }
            } else {
                // lan/HostEtherFilter@1 (home-router.click:14)
                if (hdr.ethernet.dst == 48w0xffffffffffff) {
                    // lan/kind (home-router.click:15)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        // lan/kind (home-router.click:15)
                        if (hdr.ipv4.isValid()) {
                            key13_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                            rules13.apply();
                        } else {
                            hand_off(32w0x64, 12w0x2d);
                        }
                    } else {
                        hand_off(32w0x5b, 12w0x24);
                    }
                } else {
                    // lan/HostEtherFilter@1 (home-router.click:14)
                    if (hdr.ethernet.dst[40:40] == 1w0x1) {
                        // lan/kind (home-router.click:15)
                        if (hdr.ethernet.ether_type == 16w0x800) {
                            // lan/kind (home-router.click:15)
                            if (hdr.ipv4.isValid()) {
                                key16_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                rules16.apply();
                            } else {
                                hand_off(32w0x64, 12w0x2d);
                            }
                        } else {
                            hand_off(32w0x5c, 12w0x25);
                        }
                    } else {
                        hand_off(32w0x65, 12w0x2e);
                    }
                }
            }
            if (meta.arm == 16w0x3) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                        // here (home-router.click:45)
                        if (hdr.ipv4.isValid()) {
                            test5.apply();
                        } else {
                            go(16w0x13);
                        }
                    } else {
                        // lan/CheckIPHeader@6 (home-router.click:18)
                        if (hdr.ipv4.isValid()) {
                            test17.apply();
                        } else {
                            go(16w0x12);
                        }
                    }
                } else {
                    hand_off(32w0x63, 12w0x2c);
                }
            }
            if (meta.arm == 16w0x6) {
                // here (home-router.click:45)
                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                    rules6.apply();
                } else {
                    hand_off(32w0x42, 12w0xb);
                }
            }
            if (meta.arm == 16w0x7) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                        hand_off(32w0x3c, 12w0x5);
                    } else {
                        hand_off(32w0x40, 12w0x9);
                    }
                } else {
                    hand_off(32w0x40, 12w0x9);
                }
            }
            if (meta.arm == 16w0x9) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                        hand_off(32w0x3e, 12w0x7);
                    } else {
                        hand_off(32w0x3f, 12w0x8);
                    }
                } else {
                    hand_off(32w0x41, 12w0xa);
                }
            }
            if (meta.arm == 16w0x12) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                    // here (home-router.click:45)
                    if (hdr.ipv4.isValid()) {
                        test20.apply();
                    } else {
                        go(16w0x31);
                    }
                } else {
                    hand_off(32w0x57, 12w0x20);
                }
            }
            if (meta.arm == 16w0x13) {
                // here (home-router.click:45)
                if (hdr.ipv4.isValid()) {
                    test19.apply();
                } else {
                    go(16w0x30);
                }
            }
            if (meta.arm == 16w0x15) {
                // here (home-router.click:45)
                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                    rules21.apply();
                } else {
                    hand_off(32w0x49, 12w0x12);
                }
            }
            if (meta.arm == 16w0x16) {
                // here (home-router.click:45)
                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                    rules22.apply();
                } else {
                    hand_off(32w0x50, 12w0x19);
                }
            }
            if (meta.arm == 16w0x17) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if (hdr.ipv4.isValid()) {
                        test25.apply();
                    } else {
                        go(16w0x1b);
                    }
                } else {
                    hand_off(32w0x47, 12w0x10);
                }
            }
            if (meta.arm == 16w0x18) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if (hdr.ipv4.isValid()) {
                        test26.apply();
                    } else {
                        go(16w0x1c);
                    }
                } else {
                    hand_off(32w0x4e, 12w0x17);
                }
            }
            if (meta.arm == 16w0x1b) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                    // lan/fragment (home-router.click:25)
                    if (hdr.ipv4.isValid()) {
                        test29.apply();
                    } else {
                        hand_off(32w0x39, 12w0x2);
                    }
                } else {
                    hand_off(32w0x47, 12w0x10);
                }
            }
            if (meta.arm == 16w0x1c) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                    // lan/fragment (home-router.click:25)
                    if (hdr.ipv4.isValid()) {
                        test30.apply();
                    } else {
                        hand_off(32w0x3b, 12w0x4);
                    }
                } else {
                    hand_off(32w0x4e, 12w0x17);
                }
            }
            if (meta.arm == 16w0x1f) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid()) {
                    test31.apply();
                } else {
                    hand_off(32w0x43, 12w0xc);
                }
            }
            if (meta.arm == 16w0x20) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid()) {
                    test32.apply();
                } else {
                    hand_off(32w0x4a, 12w0x13);
                }
            }
            if (meta.arm == 16w0x21) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid()) {
                        test35.apply();
                    } else {
                        go(16w0x25);
                    }
                } else {
                    hand_off(32w0x48, 12w0x11);
                }
            }
            if (meta.arm == 16w0x22) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid()) {
                        test36.apply();
                    } else {
                        go(16w0x26);
                    }
                } else {
                    hand_off(32w0x4f, 12w0x18);
                }
            }
            if (meta.arm == 16w0x25) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid()) {
                        test39.apply();
                    } else {
                        hand_off(32w0x44, 12w0xd);
                    }
                } else {
                    hand_off(32w0x45, 12w0xe);
                }
            }
            if (meta.arm == 16w0x26) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid()) {
                        test40.apply();
                    } else {
                        hand_off(32w0x4b, 12w0x14);
                    }
                } else {
                    hand_off(32w0x4c, 12w0x15);
                }
            }
            if (meta.arm == 16w0x29) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid()) {
                        test42.apply();
                    } else {
                        hand_off(32w0x5f, 12w0x28);
                    }
                } else {
                    hand_off(32w0x63, 12w0x2c);
                }
            }
            if (meta.arm == 16w0x2b) {
                // lan/ARPResponder@3 (home-router.click:16)
                if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                    // lan/ARPResponder@3 (home-router.click:16)
                    if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                        // lan/ARPResponder@3 (home-router.click:16)
                        if (hdr.arp.isValid()) {
                            rules45.apply();
                        } else {
                            hand_off(32w0x59, 12w0x22);
                        }
                    } else {
                        hand_off(32w0x59, 12w0x22);
                    }
                } else {
                    hand_off(32w0x59, 12w0x22);
                }
            }
            if (meta.arm == 16w0x2e) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid()) {
                        test47.apply();
                    } else {
                        hand_off(32w0x62, 12w0x2b);
                    }
                } else {
                    hand_off(32w0x63, 12w0x2c);
                }
            }
            if (meta.arm == 16w0x30) {
                // here (home-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.dst == 32w0xa010001) {
                    hand_off(32w0x51, 12w0x1a);
                } else {
                    // here (home-router.click:45)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        hand_off(32w0x53, 12w0x1c);
                    } else {
                        // here (home-router.click:45)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            hand_off(32w0x52, 12w0x1b);
                        } else {
                            // here (home-router.click:45)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                                hand_off(32w0x52, 12w0x1b);
                            } else {
                                hand_off(32w0x53, 12w0x1c);
                            }
                        }
                    }
                }
            }
            if (meta.arm == 16w0x31) {
                // here (home-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.dst == 32w0xa010001) {
                    hand_off(32w0x54, 12w0x1d);
                } else {
                    // here (home-router.click:45)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        hand_off(32w0x56, 12w0x1f);
                    } else {
                        // here (home-router.click:45)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            hand_off(32w0x55, 12w0x1e);
                        } else {
                            // here (home-router.click:45)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                                hand_off(32w0x55, 12w0x1e);
                            } else {
                                hand_off(32w0x56, 12w0x1f);
                            }
                        }
                    }
                }
            }
        } else if (ig_intr_md.ingress_port == 9w0x2) {
            // wan/HostEtherFilter@1 (home-router.click:14)
            if (hdr.ethernet.dst == 48w0x20000000002) {
                // wan/kind (home-router.click:15)
                if (hdr.ethernet.ether_type == 16w0x800) {
                    // wan/kind (home-router.click:15)
                    if (hdr.ipv4.isValid()) {
                        key104_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                        rules104.apply();
                    } else {
                        hand_off(32w0xbb, 12w0x56);
                    }
                } else {
                    hand_off(32w0xb1, 12w0x4c);
                }
            } else {
                // wan/HostEtherFilter@1 (home-router.click:14)
                if (hdr.ethernet.dst == 48w0xffffffffffff) {
                    // wan/kind (home-router.click:15)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        // wan/kind (home-router.click:15)
                        if (hdr.ipv4.isValid()) {
                            key113_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                            rules113.apply();
                        } else {
                            hand_off(32w0xbb, 12w0x56);
                        }
                    } else {
                        hand_off(32w0xb2, 12w0x4d);
                    }
                } else {
                    // wan/HostEtherFilter@1 (home-router.click:14)
                    if (hdr.ethernet.dst[40:40] == 1w0x1) {
                        // wan/kind (home-router.click:15)
                        if (hdr.ethernet.ether_type == 16w0x800) {
                            // wan/kind (home-router.click:15)
                            if (hdr.ipv4.isValid()) {
                                key116_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                rules116.apply();
                            } else {
                                hand_off(32w0xbb, 12w0x56);
                            }
                        } else {
                            hand_off(32w0xb3, 12w0x4e);
                        }
                    } else {
                        hand_off(32w0xbc, 12w0x57);
                    }
                }
            }
            if (meta.arm == 16w0x69) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                        // back (home-router.click:52)
                        if (hdr.ipv4.isValid()) {
                            test107.apply();
                        } else {
                            go(16w0x77);
                        }
                    } else {
                        // wan/CheckIPHeader@6 (home-router.click:18)
                        if (hdr.ipv4.isValid()) {
                            test117.apply();
                        } else {
                            go(16w0x76);
                        }
                    }
                } else {
                    hand_off(32w0xba, 12w0x55);
                }
            }
            if (meta.arm == 16w0x6c) {
                // back (home-router.click:52)
                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                    rules108.apply();
                } else {
                    hand_off(32w0x9b, 12w0x36);
                }
            }
            if (meta.arm == 16w0x6d) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                        hand_off(32w0x97, 12w0x32);
                    } else {
                        hand_off(32w0x98, 12w0x33);
                    }
                } else {
                    hand_off(32w0x9a, 12w0x35);
                }
            }
            if (meta.arm == 16w0x76) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                    // back (home-router.click:52)
                    if (hdr.ipv4.isValid()) {
                        test120.apply();
                    } else {
                        go(16w0x8f);
                    }
                } else {
                    hand_off(32w0xae, 12w0x49);
                }
            }
            if (meta.arm == 16w0x77) {
                // back (home-router.click:52)
                if (hdr.ipv4.isValid()) {
                    test119.apply();
                } else {
                    go(16w0x8e);
                }
            }
            if (meta.arm == 16w0x79) {
                // back (home-router.click:52)
                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                    rules121.apply();
                } else {
                    hand_off(32w0xa2, 12w0x3d);
                }
            }
            if (meta.arm == 16w0x7a) {
                // back (home-router.click:52)
                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                    rules122.apply();
                } else {
                    hand_off(32w0xa9, 12w0x44);
                }
            }
            if (meta.arm == 16w0x7b) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid()) {
                    test123.apply();
                } else {
                    hand_off(32w0x9c, 12w0x37);
                }
            }
            if (meta.arm == 16w0x7c) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid()) {
                    test124.apply();
                } else {
                    hand_off(32w0xa3, 12w0x3e);
                }
            }
            if (meta.arm == 16w0x7d) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid()) {
                        test127.apply();
                    } else {
                        go(16w0x81);
                    }
                } else {
                    hand_off(32w0xa1, 12w0x3c);
                }
            }
            if (meta.arm == 16w0x7e) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid()) {
                        test128.apply();
                    } else {
                        go(16w0x82);
                    }
                } else {
                    hand_off(32w0xa8, 12w0x43);
                }
            }
            if (meta.arm == 16w0x81) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid()) {
                        test131.apply();
                    } else {
                        hand_off(32w0x9d, 12w0x38);
                    }
                } else {
                    hand_off(32w0x9e, 12w0x39);
                }
            }
            if (meta.arm == 16w0x82) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid()) {
                        test132.apply();
                    } else {
                        hand_off(32w0xa4, 12w0x3f);
                    }
                } else {
                    hand_off(32w0xa5, 12w0x40);
                }
            }
            if (meta.arm == 16w0x85) {
                // errors (home-router.click:38)
                if (hdr.ipv4.isValid()) {
                    test133.apply();
                } else {
                    hand_off(32w0x94, 12w0x2f);
                }
            }
            if (meta.arm == 16w0x86) {
                // errors (home-router.click:38)
                if (hdr.ipv4.isValid()) {
                    test134.apply();
                } else {
                    hand_off(32w0x95, 12w0x30);
                }
            }
            if (meta.arm == 16w0x87) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid()) {
                        test136.apply();
                    } else {
                        hand_off(32w0xb6, 12w0x51);
                    }
                } else {
                    hand_off(32w0xba, 12w0x55);
                }
            }
            if (meta.arm == 16w0x89) {
                // wan/ARPResponder@3 (home-router.click:16)
                if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                    // wan/ARPResponder@3 (home-router.click:16)
                    if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                        // wan/ARPResponder@3 (home-router.click:16)
                        if (hdr.arp.isValid()) {
                            rules139.apply();
                        } else {
                            hand_off(32w0xb0, 12w0x4b);
                        }
                    } else {
                        hand_off(32w0xb0, 12w0x4b);
                    }
                } else {
                    hand_off(32w0xb0, 12w0x4b);
                }
            }
            if (meta.arm == 16w0x8c) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid()) {
                        test141.apply();
                    } else {
                        hand_off(32w0xb9, 12w0x54);
                    }
                } else {
                    hand_off(32w0xba, 12w0x55);
                }
            }
            if (meta.arm == 16w0x8e) {
                // back (home-router.click:52)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    hand_off(32w0xab, 12w0x46);
                } else {
                    // back (home-router.click:52)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                        hand_off(32w0xaa, 12w0x45);
                    } else {
                        // back (home-router.click:52)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                            hand_off(32w0xaa, 12w0x45);
                        } else {
                            hand_off(32w0xab, 12w0x46);
                        }
                    }
                }
            }
            if (meta.arm == 16w0x8f) {
                // back (home-router.click:52)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    hand_off(32w0xad, 12w0x48);
                } else {
                    // back (home-router.click:52)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                        hand_off(32w0xac, 12w0x47);
                    } else {
                        // back (home-router.click:52)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                            hand_off(32w0xac, 12w0x47);
                        } else {
                            hand_off(32w0xad, 12w0x48);
                        }
                    }
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
