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
    bit<16> class;
}

parser Parse(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        meta.arm = 16w0x0;
        meta.class = 16w0xbd;
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
    // Packets and bytes of each exit, by its number; of frames from the cores and elsewhere behind them
    Counter<bit<64>, bit<16>>(190, CounterType_t.PACKETS_AND_BYTES) classes;
    bit<16> key2_1;
    bit<16> key13_1;
    bit<16> key16_1;
    bit<16> key104_1;
    bit<16> key113_1;
    bit<16> key116_1;

    action go(bit<16> arm) {
        meta.arm = arm;
    }
    action hand_off(bit<16> number, bit<12> place) {
        meta.class = number;
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
    action count() {
        classes.count(meta.class);
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
        default_action = hand_off(16w0x64, 12w0x2d);
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
        default_action = hand_off(16w0x64, 12w0x2d);
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
        default_action = hand_off(16w0x64, 12w0x2d);
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
        default_action = hand_off(16w0x50, 12w0x19);
        size = 4;
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
        default_action = hand_off(16w0x42, 12w0xb);
        size = 4;
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
        default_action = hand_off(16w0x49, 12w0x12);
        size = 4;
    }

    // lan/fragment (home-router.click:25)
    table test29 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(16w0x39, 12w0x2);
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
        default_action = hand_off(16w0x3b, 12w0x4);
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
        default_action = hand_off(16w0x59, 12w0x22);
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
        default_action = hand_off(16w0xbb, 12w0x56);
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
        default_action = hand_off(16w0xbb, 12w0x56);
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
        default_action = hand_off(16w0xbb, 12w0x56);
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
        default_action = hand_off(16w0xa9, 12w0x44);
        size = 5;
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
        default_action = hand_off(16w0x9b, 12w0x36);
        size = 5;
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
        default_action = hand_off(16w0xa2, 12w0x3d);
        size = 5;
    }

    // wan/ARPResponder@3 (home-router.click:16)
    table rules139 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(16w0xb0, 12w0x4b);
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
                        hand_off(16w0x64, 12w0x2d);
                    }
                } else {
                    hand_off(16w0x5a, 12w0x23);
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
                            hand_off(16w0x64, 12w0x2d);
                        }
                    } else {
                        hand_off(16w0x5b, 12w0x24);
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
                                hand_off(16w0x64, 12w0x2d);
                            }
                        } else {
                            hand_off(16w0x5c, 12w0x25);
                        }
                    } else {
                        hand_off(16w0x65, 12w0x2e);
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
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                            hand_off(16w0x61, 12w0x2a);
                        } else {
                            // lan/CheckIPHeader@6 (home-router.click:18)
                            if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                // here (home-router.click:45)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfff0) != 16w0x0 && (hdr.ipv4.len & 16w0xfffc) != 16w0x10 && hdr.ipv4.len != 16w0x14)) {
                                    // here (home-router.click:45)
                                    if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                                        rules22.apply();
                                    } else {
                                        hand_off(16w0x50, 12w0x19);
                                    }
                                } else {
                                    // here (home-router.click:45)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.dst == 32w0xa010001) {
                                        hand_off(16w0x54, 12w0x1d);
                                    } else {
                                        // here (home-router.click:45)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                            hand_off(16w0x56, 12w0x1f);
                                        } else {
                                            // here (home-router.click:45)
                                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                                                hand_off(16w0x55, 12w0x1e);
                                            } else {
                                                // here (home-router.click:45)
                                                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                                                    hand_off(16w0x55, 12w0x1e);
                                                } else {
                                                    hand_off(16w0x56, 12w0x1f);
                                                }
                                            }
                                        }
                                    }
                                }
                            } else {
                                hand_off(16w0x57, 12w0x20);
                            }
                        }
                    }
                } else {
                    hand_off(16w0x63, 12w0x2c);
                }
            } else if (meta.arm == 16w0x29) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                        hand_off(16w0x61, 12w0x2a);
                    } else {
                        hand_off(16w0x5f, 12w0x28);
                    }
                } else {
                    hand_off(16w0x63, 12w0x2c);
                }
            } else if (meta.arm == 16w0x2b) {
                // lan/ARPResponder@3 (home-router.click:16)
                if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                    // lan/ARPResponder@3 (home-router.click:16)
                    if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                        // lan/ARPResponder@3 (home-router.click:16)
                        if (hdr.arp.isValid()) {
                            rules45.apply();
                        } else {
                            hand_off(16w0x59, 12w0x22);
                        }
                    } else {
                        hand_off(16w0x59, 12w0x22);
                    }
                } else {
                    hand_off(16w0x59, 12w0x22);
                }
            } else if (meta.arm == 16w0x2e) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                        hand_off(16w0x61, 12w0x2a);
                    } else {
                        hand_off(16w0x62, 12w0x2b);
                    }
                } else {
                    hand_off(16w0x63, 12w0x2c);
                }
            }
            if (meta.arm == 16w0x6) {
                // here (home-router.click:45)
                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                    rules6.apply();
                } else {
                    hand_off(16w0x42, 12w0xb);
                }
            } else if (meta.arm == 16w0x13) {
                // here (home-router.click:45)
                if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfff0) != 16w0x0 && (hdr.ipv4.len & 16w0xfffc) != 16w0x10 && hdr.ipv4.len != 16w0x14)) {
                    // here (home-router.click:45)
                    if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                        rules21.apply();
                    } else {
                        hand_off(16w0x49, 12w0x12);
                    }
                } else {
                    // here (home-router.click:45)
                    if (hdr.ipv4.isValid() && hdr.ipv4.dst == 32w0xa010001) {
                        hand_off(16w0x51, 12w0x1a);
                    } else {
                        // here (home-router.click:45)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                            hand_off(16w0x53, 12w0x1c);
                        } else {
                            // here (home-router.click:45)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                                hand_off(16w0x52, 12w0x1b);
                            } else {
                                // here (home-router.click:45)
                                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                                    hand_off(16w0x52, 12w0x1b);
                                } else {
                                    hand_off(16w0x53, 12w0x1c);
                                }
                            }
                        }
                    }
                }
            } else if (meta.arm == 16w0x18) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0x4e, 12w0x17);
                    } else {
                        // ICMPPingResponder@11 (home-router.click:46)
                        if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                            // lan/fragment (home-router.click:25)
                            if (hdr.ipv4.isValid()) {
                                test30.apply();
                            } else {
                                hand_off(16w0x3b, 12w0x4);
                            }
                        } else {
                            hand_off(16w0x4e, 12w0x17);
                        }
                    }
                } else {
                    hand_off(16w0x4e, 12w0x17);
                }
            } else if (meta.arm == 16w0x20) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffe) == 16w0x18)) {
                    hand_off(16w0x4d, 12w0x16);
                } else {
                    hand_off(16w0x4a, 12w0x13);
                }
            } else if (meta.arm == 16w0x22) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0x4f, 12w0x18);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfff8) == 16w0x18 || (hdr.ipv4.len & 16w0xfffc) == 16w0x20 || (hdr.ipv4.len & 16w0xfffe) == 16w0x24)) {
                                hand_off(16w0x4f, 12w0x18);
                            } else {
                                hand_off(16w0x4b, 12w0x14);
                            }
                        } else {
                            hand_off(16w0x4c, 12w0x15);
                        }
                    }
                } else {
                    hand_off(16w0x4f, 12w0x18);
                }
            }
            if (meta.arm == 16w0x7) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                        hand_off(16w0x3c, 12w0x5);
                    } else {
                        hand_off(16w0x40, 12w0x9);
                    }
                } else {
                    hand_off(16w0x40, 12w0x9);
                }
            } else if (meta.arm == 16w0x9) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                        hand_off(16w0x3e, 12w0x7);
                    } else {
                        hand_off(16w0x3f, 12w0x8);
                    }
                } else {
                    hand_off(16w0x41, 12w0xa);
                }
            } else if (meta.arm == 16w0x17) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0x47, 12w0x10);
                    } else {
                        // ICMPPingResponder@11 (home-router.click:46)
                        if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                            // lan/fragment (home-router.click:25)
                            if (hdr.ipv4.isValid()) {
                                test29.apply();
                            } else {
                                hand_off(16w0x39, 12w0x2);
                            }
                        } else {
                            hand_off(16w0x47, 12w0x10);
                        }
                    }
                } else {
                    hand_off(16w0x47, 12w0x10);
                }
            } else if (meta.arm == 16w0x1f) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffe) == 16w0x18)) {
                    hand_off(16w0x46, 12w0xf);
                } else {
                    hand_off(16w0x43, 12w0xc);
                }
            } else if (meta.arm == 16w0x21) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0x48, 12w0x11);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfff8) == 16w0x18 || (hdr.ipv4.len & 16w0xfffc) == 16w0x20 || (hdr.ipv4.len & 16w0xfffe) == 16w0x24)) {
                                hand_off(16w0x48, 12w0x11);
                            } else {
                                hand_off(16w0x44, 12w0xd);
                            }
                        } else {
                            hand_off(16w0x45, 12w0xe);
                        }
                    }
                } else {
                    hand_off(16w0x48, 12w0x11);
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
                        hand_off(16w0xbb, 12w0x56);
                    }
                } else {
                    hand_off(16w0xb1, 12w0x4c);
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
                            hand_off(16w0xbb, 12w0x56);
                        }
                    } else {
                        hand_off(16w0xb2, 12w0x4d);
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
                                hand_off(16w0xbb, 12w0x56);
                            }
                        } else {
                            hand_off(16w0xb3, 12w0x4e);
                        }
                    } else {
                        hand_off(16w0xbc, 12w0x57);
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
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                            hand_off(16w0xb8, 12w0x53);
                        } else {
                            // wan/CheckIPHeader@6 (home-router.click:18)
                            if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                // back (home-router.click:52)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfff0) != 16w0x0 && (hdr.ipv4.len & 16w0xfffc) != 16w0x10 && hdr.ipv4.len != 16w0x14)) {
                                    // back (home-router.click:52)
                                    if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                                        rules122.apply();
                                    } else {
                                        hand_off(16w0xa9, 12w0x44);
                                    }
                                } else {
                                    // back (home-router.click:52)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                        hand_off(16w0xad, 12w0x48);
                                    } else {
                                        // back (home-router.click:52)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                                            hand_off(16w0xac, 12w0x47);
                                        } else {
                                            // back (home-router.click:52)
                                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                                                hand_off(16w0xac, 12w0x47);
                                            } else {
                                                hand_off(16w0xad, 12w0x48);
                                            }
                                        }
                                    }
                                }
                            } else {
                                hand_off(16w0xae, 12w0x49);
                            }
                        }
                    }
                } else {
                    hand_off(16w0xba, 12w0x55);
                }
            } else if (meta.arm == 16w0x87) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                        hand_off(16w0xb8, 12w0x53);
                    } else {
                        hand_off(16w0xb6, 12w0x51);
                    }
                } else {
                    hand_off(16w0xba, 12w0x55);
                }
            } else if (meta.arm == 16w0x89) {
                // wan/ARPResponder@3 (home-router.click:16)
                if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                    // wan/ARPResponder@3 (home-router.click:16)
                    if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                        // wan/ARPResponder@3 (home-router.click:16)
                        if (hdr.arp.isValid()) {
                            rules139.apply();
                        } else {
                            hand_off(16w0xb0, 12w0x4b);
                        }
                    } else {
                        hand_off(16w0xb0, 12w0x4b);
                    }
                } else {
                    hand_off(16w0xb0, 12w0x4b);
                }
            } else if (meta.arm == 16w0x8c) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                        hand_off(16w0xb8, 12w0x53);
                    } else {
                        hand_off(16w0xb9, 12w0x54);
                    }
                } else {
                    hand_off(16w0xba, 12w0x55);
                }
            }
            if (meta.arm == 16w0x6c) {
                // back (home-router.click:52)
                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                    rules108.apply();
                } else {
                    hand_off(16w0x9b, 12w0x36);
                }
            } else if (meta.arm == 16w0x77) {
                // back (home-router.click:52)
                if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfff0) != 16w0x0 && (hdr.ipv4.len & 16w0xfffc) != 16w0x10 && hdr.ipv4.len != 16w0x14)) {
                    // back (home-router.click:52)
                    if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                        rules121.apply();
                    } else {
                        hand_off(16w0xa2, 12w0x3d);
                    }
                } else {
                    // back (home-router.click:52)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        hand_off(16w0xab, 12w0x46);
                    } else {
                        // back (home-router.click:52)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            hand_off(16w0xaa, 12w0x45);
                        } else {
                            // back (home-router.click:52)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                                hand_off(16w0xaa, 12w0x45);
                            } else {
                                hand_off(16w0xab, 12w0x46);
                            }
                        }
                    }
                }
            } else if (meta.arm == 16w0x7c) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffe) == 16w0x18)) {
                    hand_off(16w0xa6, 12w0x41);
                } else {
                    hand_off(16w0xa3, 12w0x3e);
                }
            } else if (meta.arm == 16w0x7e) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0xa8, 12w0x43);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfff8) == 16w0x18 || (hdr.ipv4.len & 16w0xfffc) == 16w0x20 || (hdr.ipv4.len & 16w0xfffe) == 16w0x24)) {
                                hand_off(16w0xa8, 12w0x43);
                            } else {
                                hand_off(16w0xa4, 12w0x3f);
                            }
                        } else {
                            hand_off(16w0xa5, 12w0x40);
                        }
                    }
                } else {
                    hand_off(16w0xa8, 12w0x43);
                }
            } else if (meta.arm == 16w0x86) {
                // errors (home-router.click:38)
                if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfff8) == 16w0x18 || (hdr.ipv4.len & 16w0xfff0) == 16w0x20)) {
                    hand_off(16w0xa7, 12w0x42);
                } else {
                    hand_off(16w0x95, 12w0x30);
                }
            }
            if (meta.arm == 16w0x6d) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                        hand_off(16w0x97, 12w0x32);
                    } else {
                        hand_off(16w0x98, 12w0x33);
                    }
                } else {
                    hand_off(16w0x9a, 12w0x35);
                }
            } else if (meta.arm == 16w0x7b) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffe) == 16w0x18)) {
                    hand_off(16w0x9f, 12w0x3a);
                } else {
                    hand_off(16w0x9c, 12w0x37);
                }
            } else if (meta.arm == 16w0x7d) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0xa1, 12w0x3c);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfff8) == 16w0x18 || (hdr.ipv4.len & 16w0xfffc) == 16w0x20 || (hdr.ipv4.len & 16w0xfffe) == 16w0x24)) {
                                hand_off(16w0xa1, 12w0x3c);
                            } else {
                                hand_off(16w0x9d, 12w0x38);
                            }
                        } else {
                            hand_off(16w0x9e, 12w0x39);
                        }
                    }
                } else {
                    hand_off(16w0xa1, 12w0x3c);
                }
            } else if (meta.arm == 16w0x85) {
                // errors (home-router.click:38)
                if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfff8) == 16w0x18 || (hdr.ipv4.len & 16w0xfff0) == 16w0x20)) {
                    hand_off(16w0xa0, 12w0x3b);
                } else {
                    hand_off(16w0x94, 12w0x2f);
                }
            }
        } else {
            lost();
        }
        count();
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
