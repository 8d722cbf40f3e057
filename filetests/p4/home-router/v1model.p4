// Compile with p4c-bm2-ss, or check with p4test.
// What tables hold is in entries.json, in the terms of P4Runtime; commands.txt holds the same for simple_switch_CLI.
#include <core.p4>
#include <v1model.p4>

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
    bit<16> zero;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        meta.arm = 16w0x0;
        meta.class = 16w0x1af;
        meta.zero = 16w0;
        transition select(standard_metadata.ingress_port) {
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

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w5, { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.checksum, hdr.ipv4.src, hdr.ipv4.dst }, meta.zero, HashAlgorithm.csum16);
    }
}

control Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Packets and bytes of each exit, by its number; of frames from the cores and elsewhere behind them
    counter(432, CounterType.packets_and_bytes) classes;
    bit<16> key3_1;
    bit<16> key19_1;
    bit<16> key22_1;
    bit<16> key29_1;
    bit<16> key86_1;
    bit<16> key114_1;
    bit<16> key235_1;
    bit<16> key248_1;
    bit<16> key251_1;
    bit<16> key258_1;
    bit<16> key303_1;
    bit<16> key328_1;

    action go(bit<16> arm) {
        meta.arm = arm;
    }
    action discard(bit<16> number) {
        meta.class = number;
        mark_to_drop(standard_metadata);
    }
    action hand_off(bit<16> number, bit<12> place) {
        meta.class = number;
        hdr.tag.setValid();
        hdr.tag.pcp = 3w0;
        hdr.tag.dei = 1w0;
        hdr.tag.vid = place;
        hdr.tag.ether_type = hdr.ethernet.ether_type;
        hdr.ethernet.ether_type = 16w0x88a8;
        standard_metadata.egress_spec = CORES;
    }
    action leave(bit<16> number, bit<9> port, bit<48> ethernet_src, bit<8> arp_hlen, bit<8> arp_plen, bit<16> arp_op, bit<48> arp_sha, bit<32> arp_spa) {
        meta.class = number;
        truncate(32w0x2a);
        bit<48> old_arp_sha = hdr.arp.sha;
        bit<32> old_arp_spa = hdr.arp.spa;
        hdr.ethernet.dst = hdr.arp.sha;
        hdr.ethernet.src = ethernet_src;
        hdr.arp.hlen = arp_hlen;
        hdr.arp.plen = arp_plen;
        hdr.arp.op = arp_op;
        hdr.arp.sha = arp_sha;
        hdr.arp.spa = arp_spa;
        hdr.arp.tha = old_arp_sha;
        hdr.arp.tpa = old_arp_spa;
        standard_metadata.egress_spec = port;
    }
    action back(bit<9> port) {
        hdr.ethernet.ether_type = hdr.tag.ether_type;
        hdr.tag.setInvalid();
        standard_metadata.egress_spec = port;
    }
    action lost() {
        mark_to_drop(standard_metadata);
    }
    action count() {
        classes.count((bit<32>)meta.class);
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
    table rules3 {
        key = {
            hdr.ethernet.ether_type: exact;
            key3_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xa8);
        size = 3;
    }

    // lan/kind (home-router.click:15)
    table rules19 {
        key = {
            hdr.ethernet.ether_type: exact;
            key19_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xa8);
        size = 3;
    }

    // lan/kind (home-router.click:15)
    table rules22 {
        key = {
            hdr.ethernet.ether_type: exact;
            key22_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xa8);
        size = 3;
    }

    // lan/kind (home-router.click:15)
    table rules29 {
        key = {
            hdr.ethernet.ether_type: exact;
            key29_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xa8);
        size = 3;
    }

    // lan/kind (home-router.click:15)
    table rules86 {
        key = {
            hdr.ethernet.ether_type: exact;
            key86_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xa8);
        size = 3;
    }

    // lan/kind (home-router.click:15)
    table rules114 {
        key = {
            hdr.ethernet.ether_type: exact;
            key114_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xa8);
        size = 3;
    }

    // here (home-router.click:45)
    table rules11 {
        key = {
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            discard;
            hand_off;
        }
        default_action = discard(16w0xa1);
        size = 4;
    }

    // here (home-router.click:45)
    table rules49 {
        key = {
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xa1);
        size = 4;
    }

    // here (home-router.click:45)
    table rules51 {
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
        default_action = hand_off(16w0xc2, 12w0x19);
        size = 4;
    }

    // here (home-router.click:45)
    table rules50 {
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
        default_action = hand_off(16w0xb4, 12w0xb);
        size = 4;
    }

    // here (home-router.click:45)
    table rules100 {
        key = {
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xa1);
        size = 4;
    }

    // lan/ARPResponder@3 (home-router.click:16)
    table rules118 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            discard;
            leave;
        }
        default_action = discard(16w0x78);
        size = 1;
    }

    // here (home-router.click:45)
    table rules136 {
        key = {
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xa1);
        size = 4;
    }

    // wan/kind (home-router.click:15)
    table rules235 {
        key = {
            hdr.ethernet.ether_type: exact;
            key235_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x178);
        size = 3;
    }

    // wan/kind (home-router.click:15)
    table rules248 {
        key = {
            hdr.ethernet.ether_type: exact;
            key248_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x178);
        size = 3;
    }

    // wan/kind (home-router.click:15)
    table rules251 {
        key = {
            hdr.ethernet.ether_type: exact;
            key251_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x178);
        size = 3;
    }

    // wan/kind (home-router.click:15)
    table rules258 {
        key = {
            hdr.ethernet.ether_type: exact;
            key258_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x178);
        size = 3;
    }

    // wan/kind (home-router.click:15)
    table rules303 {
        key = {
            hdr.ethernet.ether_type: exact;
            key303_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x178);
        size = 3;
    }

    // wan/kind (home-router.click:15)
    table rules328 {
        key = {
            hdr.ethernet.ether_type: exact;
            key328_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x178);
        size = 3;
    }

    // back (home-router.click:52)
    table rules243 {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            discard;
            hand_off;
        }
        default_action = discard(16w0x171);
        size = 5;
    }

    // back (home-router.click:52)
    table rules278 {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x171);
        size = 5;
    }

    // back (home-router.click:52)
    table rules280 {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(16w0x18f, 12w0x54);
        size = 5;
    }

    // back (home-router.click:52)
    table rules279 {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(16w0x184, 12w0x49);
        size = 5;
    }

    // back (home-router.click:52)
    table rules317 {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x171);
        size = 5;
    }

    // wan/ARPResponder@3 (home-router.click:16)
    table rules332 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            discard;
            leave;
        }
        default_action = discard(16w0x14e);
        size = 1;
    }

    // back (home-router.click:52)
    table rules350 {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.sport[15:8]: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x171);
        size = 5;
    }

    apply {
        if (standard_metadata.ingress_port == CORES) {
            if (hdr.tag.isValid()) {
                ports.apply();
            } else {
                lost();
            }
        } else if (standard_metadata.ingress_port == 9w0x1) {
            // lan/HostEtherFilter@1 (home-router.click:14)
            if (standard_metadata.packet_length >= 32w0x22) {
                // lan/HostEtherFilter@1 (home-router.click:14)
                if (hdr.ethernet.dst == 48w0x20000000001) {
                    // lan/kind (home-router.click:15)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        // lan/kind (home-router.click:15)
                        key3_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                        rules3.apply();
                    } else {
                        hand_off(16w0xc5, 12w0x1c);
                    }
                } else {
                    // lan/HostEtherFilter@1 (home-router.click:14)
                    if (hdr.ethernet.dst == 48w0xffffffffffff) {
                        // lan/kind (home-router.click:15)
                        if (hdr.ethernet.ether_type == 16w0x800) {
                            // lan/kind (home-router.click:15)
                            key19_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                            rules19.apply();
                        } else {
                            hand_off(16w0xcc, 12w0x23);
                        }
                    } else {
                        // lan/HostEtherFilter@1 (home-router.click:14)
                        if (hdr.ethernet.dst[40:40] == 1w0x1) {
                            // lan/kind (home-router.click:15)
                            if (hdr.ethernet.ether_type == 16w0x800) {
                                // lan/kind (home-router.click:15)
                                key22_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                rules22.apply();
                            } else {
                                hand_off(16w0xcd, 12w0x24);
                            }
                        } else {
                            discard(16w0xa9);
                        }
                    }
                }
            } else {
                // lan/HostEtherFilter@1 (home-router.click:14)
                if (standard_metadata.packet_length <= 32w0xd) {
                    discard(16w0x18);
                } else {
                    // lan/HostEtherFilter@1 (home-router.click:14)
                    if (hdr.ethernet.dst == 48w0x20000000001) {
                        // lan/kind (home-router.click:15)
                        if (standard_metadata.packet_length >= 32w0x16) {
                            // lan/kind (home-router.click:15)
                            if (standard_metadata.packet_length >= 32w0x22) {
                                // lan/kind (home-router.click:15)
                                if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                    // lan/kind (home-router.click:15)
                                    if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                        key29_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                        rules29.apply();
                                    } else {
                                        discard(16w0xa8);
                                    }
                                } else {
                                    hand_off(16w0xce, 12w0x25);
                                }
                            } else {
                                hand_off(16w0xce, 12w0x25);
                            }
                        } else {
                            meta.arm = 16w0xa5;
                        }
                    } else {
                        // lan/HostEtherFilter@1 (home-router.click:14)
                        if (hdr.ethernet.dst == 48w0xffffffffffff) {
                            // lan/kind (home-router.click:15)
                            if (standard_metadata.packet_length >= 32w0x16) {
                                // lan/kind (home-router.click:15)
                                if (standard_metadata.packet_length >= 32w0x22) {
                                    // lan/kind (home-router.click:15)
                                    if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                        // lan/kind (home-router.click:15)
                                        if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                            key86_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                            rules86.apply();
                                        } else {
                                            discard(16w0xa8);
                                        }
                                    } else {
                                        hand_off(16w0xd6, 12w0x2d);
                                    }
                                } else {
                                    hand_off(16w0xd6, 12w0x2d);
                                }
                            } else {
                                meta.arm = 16w0xa5;
                            }
                        } else {
                            // lan/HostEtherFilter@1 (home-router.click:14)
                            if (hdr.ethernet.dst[40:40] == 1w0x1) {
                                // lan/kind (home-router.click:15)
                                if (standard_metadata.packet_length >= 32w0x16) {
                                    // lan/kind (home-router.click:15)
                                    if (standard_metadata.packet_length >= 32w0x22) {
                                        // lan/kind (home-router.click:15)
                                        if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                            // lan/kind (home-router.click:15)
                                            if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                                key114_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                                rules114.apply();
                                            } else {
                                                discard(16w0xa8);
                                            }
                                        } else {
                                            hand_off(16w0xdf, 12w0x36);
                                        }
                                    } else {
                                        hand_off(16w0xdf, 12w0x36);
                                    }
                                } else {
                                    meta.arm = 16w0xa5;
                                }
                            } else {
                                discard(16w0xa9);
                            }
                        }
                    }
                }
            }
            if (meta.arm == 16w0x4) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.ihl == 4w0x5) {
                        // lan/CheckIPHeader@6 (home-router.click:18)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // lan/CheckIPHeader@6 (home-router.click:18)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // lan/CheckIPHeader@6 (home-router.click:18)
                                if (standard_metadata.checksum_error == 1w0) {
                                    // here (home-router.click:45)
                                    if (hdr.ipv4.len >= 16w0x5dd) {
                                        // here (home-router.click:45)
                                        if (standard_metadata.packet_length >= 32w0x26) {
                                            // here (home-router.click:45)
                                            rules11.apply();
                                        } else {
                                            hand_off(16w0xc6, 12w0x1d);
                                        }
                                    } else {
                                        // here (home-router.click:45)
                                        if (hdr.ipv4.len >= 16w0x15) {
                                            // here (home-router.click:45)
                                            if (standard_metadata.packet_length >= 32w0x26) {
                                                // here (home-router.click:45)
                                                rules49.apply();
                                            } else {
                                                hand_off(16w0xd0, 12w0x27);
                                            }
                                        } else {
                                            meta.arm = 16w0x93;
                                        }
                                    }
                                } else {
                                    discard(16w0xa2);
                                }
                            } else {
                                discard(16w0xa3);
                            }
                        } else {
                            discard(16w0xa3);
                        }
                    } else {
                        // lan/CheckIPHeader@6 (home-router.click:18)
                        if (hdr.ipv4.ihl <= 4w0x4) {
                            discard(16w0x81);
                        } else {
                            // lan/CheckIPHeader@6 (home-router.click:18)
                            if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                                // lan/CheckIPHeader@6 (home-router.click:18)
                                if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                    // lan/CheckIPHeader@6 (home-router.click:18)
                                    if (hdr.ipv4.ihl == 4w0x5) {
                                        // here (home-router.click:45)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.len >= 16w0x15) {
                                            // here (home-router.click:45)
                                            if (standard_metadata.packet_length >= 32w0x26) {
                                                // here (home-router.click:45)
                                                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                                                    rules51.apply();
                                                } else {
                                                    hand_off(16w0xc2, 12w0x19);
                                                }
                                            } else {
                                                hand_off(16w0xba, 12w0x11);
                                            }
                                        } else {
                                            // here (home-router.click:45)
                                            if (hdr.ipv4.isValid() && hdr.ipv4.dst == 32w0xa010001) {
                                                hand_off(16w0xc0, 12w0x17);
                                            } else {
                                                // here (home-router.click:45)
                                                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                                    hand_off(16w0xc2, 12w0x19);
                                                } else {
                                                    // here (home-router.click:45)
                                                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                                                        hand_off(16w0xc1, 12w0x18);
                                                    } else {
                                                        // here (home-router.click:45)
                                                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                                                            hand_off(16w0xc1, 12w0x18);
                                                        } else {
                                                            hand_off(16w0xc2, 12w0x19);
                                                        }
                                                    }
                                                }
                                            }
                                        }
                                    } else {
                                        hand_off(16w0xd5, 12w0x2c);
                                    }
                                } else {
                                    discard(16w0xa3);
                                }
                            } else {
                                discard(16w0xa3);
                            }
                        }
                    }
                } else {
                    discard(16w0xa4);
                }
            } else if (meta.arm == 16w0x1e) {
                // lan/arp (home-router.click:17)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x7d);
                } else {
                    // lan/arp (home-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // lan/arp (home-router.click:17)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // lan/arp (home-router.click:17)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0xcf, 12w0x26);
                            } else {
                                discard(16w0x7d);
                            }
                        } else {
                            discard(16w0x7d);
                        }
                    } else {
                        discard(16w0x7d);
                    }
                }
            } else if (meta.arm == 16w0x22) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0xa7);
                } else {
                    // lan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl <= 4w0x4) {
                        hand_off(16w0xb8, 12w0xf);
                    } else {
                        // lan/CheckIPHeader@6 (home-router.click:18)
                        if (hdr.ipv4.isValid() && (((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // lan/CheckIPHeader@6 (home-router.click:18)
                            if (hdr.ipv4.isValid() && (((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // lan/CheckIPHeader@6 (home-router.click:18)
                                if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                    // here (home-router.click:45)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.len >= 16w0x15) {
                                        // here (home-router.click:45)
                                        if (standard_metadata.packet_length >= 32w0x26) {
                                            // here (home-router.click:45)
                                            if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                                                rules50.apply();
                                            } else {
                                                hand_off(16w0xb4, 12w0xb);
                                            }
                                        } else {
                                            hand_off(16w0xac, 12w0x3);
                                        }
                                    } else {
                                        // here (home-router.click:45)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.dst == 32w0xa010001) {
                                            hand_off(16w0xb2, 12w0x9);
                                        } else {
                                            // here (home-router.click:45)
                                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                                hand_off(16w0xb4, 12w0xb);
                                            } else {
                                                // here (home-router.click:45)
                                                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                                                    hand_off(16w0xb3, 12w0xa);
                                                } else {
                                                    // here (home-router.click:45)
                                                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                                                        hand_off(16w0xb3, 12w0xa);
                                                    } else {
                                                        hand_off(16w0xb4, 12w0xb);
                                                    }
                                                }
                                            }
                                        }
                                    }
                                } else {
                                    hand_off(16w0xb7, 12w0xe);
                                }
                            } else {
                                hand_off(16w0xb9, 12w0x10);
                            }
                        } else {
                            hand_off(16w0xb9, 12w0x10);
                        }
                    }
                }
            } else if (meta.arm == 16w0x57) {
                // lan/arp (home-router.click:17)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x7d);
                } else {
                    // lan/arp (home-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // lan/arp (home-router.click:17)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // lan/arp (home-router.click:17)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0xd7, 12w0x2e);
                            } else {
                                discard(16w0x7d);
                            }
                        } else {
                            discard(16w0x7d);
                        }
                    } else {
                        discard(16w0x7d);
                    }
                }
            } else if (meta.arm == 16w0x5b) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0xa7);
                } else {
                    meta.arm = 16w0x5c;
                }
            } else if (meta.arm == 16w0x73) {
                // lan/ARPResponder@3 (home-router.click:16)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x78);
                } else {
                    // lan/ARPResponder@3 (home-router.click:16)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // lan/ARPResponder@3 (home-router.click:16)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // lan/ARPResponder@3 (home-router.click:16)
                            if (hdr.arp.isValid()) {
                                rules118.apply();
                            } else {
                                discard(16w0x78);
                            }
                        } else {
                            discard(16w0x78);
                        }
                    } else {
                        discard(16w0x78);
                    }
                }
            } else if (meta.arm == 16w0x79) {
                // lan/arp (home-router.click:17)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x7d);
                } else {
                    // lan/arp (home-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // lan/arp (home-router.click:17)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // lan/arp (home-router.click:17)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0xe0, 12w0x37);
                            } else {
                                discard(16w0x7d);
                            }
                        } else {
                            discard(16w0x7d);
                        }
                    } else {
                        discard(16w0x7d);
                    }
                }
            } else if (meta.arm == 16w0x7e) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0xa7);
                } else {
                    meta.arm = 16w0x7f;
                }
            } else if (meta.arm == 16w0xa5) {
                // lan/kind (home-router.click:15)
                if (hdr.ethernet.ether_type == 16w0x806) {
                    discard(16w0xa8);
                } else {
                    // lan/kind (home-router.click:15)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        discard(16w0xa7);
                    } else {
                        discard(16w0xa8);
                    }
                }
            }
            if (meta.arm == 16w0xc) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if (standard_metadata.packet_length >= 32w0x26) {
                        // ICMPPingResponder@11 (home-router.click:46)
                        if (hdr.transport.sport[15:8] == 8w0x8) {
                            hand_off(16w0xc8, 12w0x1f);
                        } else {
                            discard(16w0x9f);
                        }
                    } else {
                        hand_off(16w0xc7, 12w0x1e);
                    }
                } else {
                    discard(16w0x9f);
                }
            } else if (meta.arm == 16w0xf) {
                // flows (home-router.click:35)
                if (hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.protocol == 8w0x6) {
                        hand_off(16w0xca, 12w0x21);
                    } else {
                        hand_off(16w0xcb, 12w0x22);
                    }
                } else {
                    discard(16w0xa0);
                }
            } else if (meta.arm == 16w0x34) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0x9f);
                    } else {
                        // ICMPPingResponder@11 (home-router.click:46)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@11 (home-router.click:46)
                            if (hdr.transport.sport[15:8] == 8w0x8) {
                                // lan/fragment (home-router.click:25)
                                if (hdr.ipv4.len <= 16w0x5dc) {
                                    hand_off(16w0xc3, 12w0x1a);
                                } else {
                                    hand_off(16w0xc4, 12w0x1b);
                                }
                            } else {
                                discard(16w0x9f);
                            }
                        } else {
                            hand_off(16w0xd1, 12w0x28);
                        }
                    }
                } else {
                    discard(16w0x9f);
                }
            } else if (meta.arm == 16w0x35) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        hand_off(16w0xb2, 12w0x9);
                    } else {
                        // ICMPPingResponder@11 (home-router.click:46)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@11 (home-router.click:46)
                            if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                                // lan/fragment (home-router.click:25)
                                if (hdr.ipv4.isValid() && hdr.ipv4.len <= 16w0x5dc) {
                                    hand_off(16w0xaa, 12w0x1);
                                } else {
                                    hand_off(16w0xab, 12w0x2);
                                }
                            } else {
                                hand_off(16w0xb2, 12w0x9);
                            }
                        } else {
                            hand_off(16w0xad, 12w0x4);
                        }
                    }
                } else {
                    hand_off(16w0xb2, 12w0x9);
                }
            } else if (meta.arm == 16w0x36) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        hand_off(16w0xc0, 12w0x17);
                    } else {
                        // ICMPPingResponder@11 (home-router.click:46)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@11 (home-router.click:46)
                            if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                                // lan/fragment (home-router.click:25)
                                if (hdr.ipv4.isValid() && hdr.ipv4.len <= 16w0x5dc) {
                                    hand_off(16w0xb5, 12w0xc);
                                } else {
                                    hand_off(16w0xb6, 12w0xd);
                                }
                            } else {
                                hand_off(16w0xc0, 12w0x17);
                            }
                        } else {
                            hand_off(16w0xbb, 12w0x12);
                        }
                    }
                } else {
                    hand_off(16w0xc0, 12w0x17);
                }
            } else if (meta.arm == 16w0x43) {
                // pings (home-router.click:36)
                if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x19)) {
                    discard(16w0x8e);
                } else {
                    hand_off(16w0xd2, 12w0x29);
                }
            } else if (meta.arm == 16w0x44) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x19)) {
                    hand_off(16w0xb1, 12w0x8);
                } else {
                    hand_off(16w0xae, 12w0x5);
                }
            } else if (meta.arm == 16w0x45) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x19)) {
                    hand_off(16w0xbf, 12w0x16);
                } else {
                    hand_off(16w0xbc, 12w0x13);
                }
            } else if (meta.arm == 16w0x46) {
                // flows (home-router.click:35)
                if (hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0xa0);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x25)) {
                                discard(16w0xa0);
                            } else {
                                hand_off(16w0xd3, 12w0x2a);
                            }
                        } else {
                            hand_off(16w0xd4, 12w0x2b);
                        }
                    }
                } else {
                    discard(16w0xa0);
                }
            } else if (meta.arm == 16w0x47) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        hand_off(16w0xb3, 12w0xa);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x25)) {
                                hand_off(16w0xb3, 12w0xa);
                            } else {
                                hand_off(16w0xaf, 12w0x6);
                            }
                        } else {
                            hand_off(16w0xb0, 12w0x7);
                        }
                    }
                } else {
                    hand_off(16w0xb3, 12w0xa);
                }
            } else if (meta.arm == 16w0x48) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        hand_off(16w0xc1, 12w0x18);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x25)) {
                                hand_off(16w0xc1, 12w0x18);
                            } else {
                                hand_off(16w0xbd, 12w0x14);
                            }
                        } else {
                            hand_off(16w0xbe, 12w0x15);
                        }
                    }
                } else {
                    hand_off(16w0xc1, 12w0x18);
                }
            } else if (meta.arm == 16w0x5c) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.ihl <= 4w0x4) {
                        discard(16w0x81);
                    } else {
                        // lan/CheckIPHeader@6 (home-router.click:18)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // lan/CheckIPHeader@6 (home-router.click:18)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // lan/CheckIPHeader@6 (home-router.click:18)
                                if (hdr.ipv4.ihl == 4w0x5) {
                                    // lan/CheckIPHeader@6 (home-router.click:18)
                                    if (standard_metadata.checksum_error == 1w0) {
                                        // here (home-router.click:45)
                                        if (hdr.ipv4.len >= 16w0x15) {
                                            // here (home-router.click:45)
                                            if (standard_metadata.packet_length >= 32w0x26) {
                                                // here (home-router.click:45)
                                                rules100.apply();
                                            } else {
                                                hand_off(16w0xd8, 12w0x2f);
                                            }
                                        } else {
                                            meta.arm = 16w0x93;
                                        }
                                    } else {
                                        discard(16w0xa2);
                                    }
                                } else {
                                    hand_off(16w0xde, 12w0x35);
                                }
                            } else {
                                discard(16w0xa3);
                            }
                        } else {
                            discard(16w0xa3);
                        }
                    }
                } else {
                    discard(16w0xa4);
                }
            } else if (meta.arm == 16w0x7f) {
                // lan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.ihl <= 4w0x4) {
                        discard(16w0x81);
                    } else {
                        // lan/CheckIPHeader@6 (home-router.click:18)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // lan/CheckIPHeader@6 (home-router.click:18)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // lan/CheckIPHeader@6 (home-router.click:18)
                                if (hdr.ipv4.ihl == 4w0x5) {
                                    // lan/CheckIPHeader@6 (home-router.click:18)
                                    if (standard_metadata.checksum_error == 1w0) {
                                        // here (home-router.click:45)
                                        if (hdr.ipv4.len >= 16w0x15) {
                                            // here (home-router.click:45)
                                            if (standard_metadata.packet_length >= 32w0x26) {
                                                // here (home-router.click:45)
                                                rules136.apply();
                                            } else {
                                                hand_off(16w0xe1, 12w0x38);
                                            }
                                        } else {
                                            meta.arm = 16w0x93;
                                        }
                                    } else {
                                        discard(16w0xa2);
                                    }
                                } else {
                                    hand_off(16w0xe7, 12w0x3e);
                                }
                            } else {
                                discard(16w0xa3);
                            }
                        } else {
                            discard(16w0xa3);
                        }
                    }
                } else {
                    discard(16w0xa4);
                }
            }
            if (meta.arm == 16w0x65) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0x9f);
                    } else {
                        // ICMPPingResponder@11 (home-router.click:46)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@11 (home-router.click:46)
                            if (hdr.transport.sport[15:8] == 8w0x8) {
                                hand_off(16w0xda, 12w0x31);
                            } else {
                                discard(16w0x9f);
                            }
                        } else {
                            hand_off(16w0xd9, 12w0x30);
                        }
                    }
                } else {
                    discard(16w0x9f);
                }
            } else if (meta.arm == 16w0x69) {
                // pings (home-router.click:36)
                if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x19)) {
                    discard(16w0x8e);
                } else {
                    hand_off(16w0xdb, 12w0x32);
                }
            } else if (meta.arm == 16w0x6a) {
                // flows (home-router.click:35)
                if (hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0xa0);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x25)) {
                                discard(16w0xa0);
                            } else {
                                hand_off(16w0xdc, 12w0x33);
                            }
                        } else {
                            hand_off(16w0xdd, 12w0x34);
                        }
                    }
                } else {
                    discard(16w0xa0);
                }
            } else if (meta.arm == 16w0x89) {
                // ICMPPingResponder@11 (home-router.click:46)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@11 (home-router.click:46)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0x9f);
                    } else {
                        // ICMPPingResponder@11 (home-router.click:46)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@11 (home-router.click:46)
                            if (hdr.transport.sport[15:8] == 8w0x8) {
                                hand_off(16w0xe3, 12w0x3a);
                            } else {
                                discard(16w0x9f);
                            }
                        } else {
                            hand_off(16w0xe2, 12w0x39);
                        }
                    }
                } else {
                    discard(16w0x9f);
                }
            } else if (meta.arm == 16w0x8d) {
                // pings (home-router.click:36)
                if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x19)) {
                    discard(16w0x8e);
                } else {
                    hand_off(16w0xe4, 12w0x3b);
                }
            } else if (meta.arm == 16w0x8f) {
                // flows (home-router.click:35)
                if (hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0xa0);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x25)) {
                                discard(16w0xa0);
                            } else {
                                hand_off(16w0xe5, 12w0x3c);
                            }
                        } else {
                            hand_off(16w0xe6, 12w0x3d);
                        }
                    }
                } else {
                    discard(16w0xa0);
                }
            } else if (meta.arm == 16w0x93) {
                // here (home-router.click:45)
                if (hdr.ipv4.dst == 32w0xa010001) {
                    discard(16w0x9f);
                } else {
                    // here (home-router.click:45)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        discard(16w0xa1);
                    } else {
                        // here (home-router.click:45)
                        if (hdr.ipv4.protocol == 8w0x6) {
                            discard(16w0xa0);
                        } else {
                            // here (home-router.click:45)
                            if (hdr.ipv4.protocol == 8w0x11) {
                                discard(16w0xa0);
                            } else {
                                discard(16w0xa1);
                            }
                        }
                    }
                }
            }
        } else if (standard_metadata.ingress_port == 9w0x2) {
            // wan/HostEtherFilter@1 (home-router.click:14)
            if (standard_metadata.packet_length >= 32w0x22) {
                // wan/HostEtherFilter@1 (home-router.click:14)
                if (hdr.ethernet.dst == 48w0x20000000002) {
                    // wan/kind (home-router.click:15)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        // wan/kind (home-router.click:15)
                        key235_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                        rules235.apply();
                    } else {
                        hand_off(16w0x190, 12w0x55);
                    }
                } else {
                    // wan/HostEtherFilter@1 (home-router.click:14)
                    if (hdr.ethernet.dst == 48w0xffffffffffff) {
                        // wan/kind (home-router.click:15)
                        if (hdr.ethernet.ether_type == 16w0x800) {
                            // wan/kind (home-router.click:15)
                            key248_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                            rules248.apply();
                        } else {
                            hand_off(16w0x196, 12w0x5b);
                        }
                    } else {
                        // wan/HostEtherFilter@1 (home-router.click:14)
                        if (hdr.ethernet.dst[40:40] == 1w0x1) {
                            // wan/kind (home-router.click:15)
                            if (hdr.ethernet.ether_type == 16w0x800) {
                                // wan/kind (home-router.click:15)
                                key251_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                rules251.apply();
                            } else {
                                hand_off(16w0x197, 12w0x5c);
                            }
                        } else {
                            discard(16w0x179);
                        }
                    }
                }
            } else {
                // wan/HostEtherFilter@1 (home-router.click:14)
                if (standard_metadata.packet_length <= 32w0xd) {
                    discard(16w0xfd);
                } else {
                    // wan/HostEtherFilter@1 (home-router.click:14)
                    if (hdr.ethernet.dst == 48w0x20000000002) {
                        // wan/kind (home-router.click:15)
                        if (standard_metadata.packet_length >= 32w0x16) {
                            // wan/kind (home-router.click:15)
                            if (standard_metadata.packet_length >= 32w0x22) {
                                // wan/kind (home-router.click:15)
                                if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                    // wan/kind (home-router.click:15)
                                    if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                        key258_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                        rules258.apply();
                                    } else {
                                        discard(16w0x178);
                                    }
                                } else {
                                    hand_off(16w0x198, 12w0x5d);
                                }
                            } else {
                                hand_off(16w0x198, 12w0x5d);
                            }
                        } else {
                            meta.arm = 16w0x175;
                        }
                    } else {
                        // wan/HostEtherFilter@1 (home-router.click:14)
                        if (hdr.ethernet.dst == 48w0xffffffffffff) {
                            // wan/kind (home-router.click:15)
                            if (standard_metadata.packet_length >= 32w0x16) {
                                // wan/kind (home-router.click:15)
                                if (standard_metadata.packet_length >= 32w0x22) {
                                    // wan/kind (home-router.click:15)
                                    if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                        // wan/kind (home-router.click:15)
                                        if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                            key303_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                            rules303.apply();
                                        } else {
                                            discard(16w0x178);
                                        }
                                    } else {
                                        hand_off(16w0x19f, 12w0x64);
                                    }
                                } else {
                                    hand_off(16w0x19f, 12w0x64);
                                }
                            } else {
                                meta.arm = 16w0x175;
                            }
                        } else {
                            // wan/HostEtherFilter@1 (home-router.click:14)
                            if (hdr.ethernet.dst[40:40] == 1w0x1) {
                                // wan/kind (home-router.click:15)
                                if (standard_metadata.packet_length >= 32w0x16) {
                                    // wan/kind (home-router.click:15)
                                    if (standard_metadata.packet_length >= 32w0x22) {
                                        // wan/kind (home-router.click:15)
                                        if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                            // wan/kind (home-router.click:15)
                                            if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                                key328_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                                rules328.apply();
                                            } else {
                                                discard(16w0x178);
                                            }
                                        } else {
                                            hand_off(16w0x1a7, 12w0x6c);
                                        }
                                    } else {
                                        hand_off(16w0x1a7, 12w0x6c);
                                    }
                                } else {
                                    meta.arm = 16w0x175;
                                }
                            } else {
                                discard(16w0x179);
                            }
                        }
                    }
                }
            }
            if (meta.arm == 16w0xec) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.ihl == 4w0x5) {
                        // wan/CheckIPHeader@6 (home-router.click:18)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // wan/CheckIPHeader@6 (home-router.click:18)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // wan/CheckIPHeader@6 (home-router.click:18)
                                if (standard_metadata.checksum_error == 1w0) {
                                    // back (home-router.click:52)
                                    if (hdr.ipv4.len >= 16w0x5dd) {
                                        // back (home-router.click:52)
                                        if (standard_metadata.packet_length >= 32w0x26) {
                                            // back (home-router.click:52)
                                            rules243.apply();
                                        } else {
                                            hand_off(16w0x191, 12w0x56);
                                        }
                                    } else {
                                        // back (home-router.click:52)
                                        if (hdr.ipv4.len >= 16w0x15) {
                                            // back (home-router.click:52)
                                            if (standard_metadata.packet_length >= 32w0x26) {
                                                // back (home-router.click:52)
                                                rules278.apply();
                                            } else {
                                                hand_off(16w0x19a, 12w0x5f);
                                            }
                                        } else {
                                            meta.arm = 16w0x167;
                                        }
                                    }
                                } else {
                                    discard(16w0x172);
                                }
                            } else {
                                discard(16w0x173);
                            }
                        } else {
                            discard(16w0x173);
                        }
                    } else {
                        // wan/CheckIPHeader@6 (home-router.click:18)
                        if (hdr.ipv4.ihl <= 4w0x4) {
                            discard(16w0x157);
                        } else {
                            // wan/CheckIPHeader@6 (home-router.click:18)
                            if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                                // wan/CheckIPHeader@6 (home-router.click:18)
                                if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                    // wan/CheckIPHeader@6 (home-router.click:18)
                                    if (hdr.ipv4.ihl == 4w0x5) {
                                        // back (home-router.click:52)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.len >= 16w0x15) {
                                            // back (home-router.click:52)
                                            if (standard_metadata.packet_length >= 32w0x26) {
                                                // back (home-router.click:52)
                                                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                                                    rules280.apply();
                                                } else {
                                                    hand_off(16w0x18f, 12w0x54);
                                                }
                                            } else {
                                                hand_off(16w0x188, 12w0x4d);
                                            }
                                        } else {
                                            // back (home-router.click:52)
                                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                                hand_off(16w0x18f, 12w0x54);
                                            } else {
                                                // back (home-router.click:52)
                                                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                                                    hand_off(16w0x18e, 12w0x53);
                                                } else {
                                                    // back (home-router.click:52)
                                                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                                                        hand_off(16w0x18e, 12w0x53);
                                                    } else {
                                                        hand_off(16w0x18f, 12w0x54);
                                                    }
                                                }
                                            }
                                        }
                                    } else {
                                        hand_off(16w0x19e, 12w0x63);
                                    }
                                } else {
                                    discard(16w0x173);
                                }
                            } else {
                                discard(16w0x173);
                            }
                        }
                    }
                } else {
                    discard(16w0x174);
                }
            } else if (meta.arm == 16w0x103) {
                // wan/arp (home-router.click:17)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x153);
                } else {
                    // wan/arp (home-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // wan/arp (home-router.click:17)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // wan/arp (home-router.click:17)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0x199, 12w0x5e);
                            } else {
                                discard(16w0x153);
                            }
                        } else {
                            discard(16w0x153);
                        }
                    } else {
                        discard(16w0x153);
                    }
                }
            } else if (meta.arm == 16w0x107) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0x177);
                } else {
                    // wan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl <= 4w0x4) {
                        hand_off(16w0x186, 12w0x4b);
                    } else {
                        // wan/CheckIPHeader@6 (home-router.click:18)
                        if (hdr.ipv4.isValid() && (((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // wan/CheckIPHeader@6 (home-router.click:18)
                            if (hdr.ipv4.isValid() && (((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // wan/CheckIPHeader@6 (home-router.click:18)
                                if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                    // back (home-router.click:52)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.len >= 16w0x15) {
                                        // back (home-router.click:52)
                                        if (standard_metadata.packet_length >= 32w0x26) {
                                            // back (home-router.click:52)
                                            if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                                                rules279.apply();
                                            } else {
                                                hand_off(16w0x184, 12w0x49);
                                            }
                                        } else {
                                            hand_off(16w0x17d, 12w0x42);
                                        }
                                    } else {
                                        // back (home-router.click:52)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                            hand_off(16w0x184, 12w0x49);
                                        } else {
                                            // back (home-router.click:52)
                                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                                                hand_off(16w0x183, 12w0x48);
                                            } else {
                                                // back (home-router.click:52)
                                                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x11) {
                                                    hand_off(16w0x183, 12w0x48);
                                                } else {
                                                    hand_off(16w0x184, 12w0x49);
                                                }
                                            }
                                        }
                                    }
                                } else {
                                    hand_off(16w0x185, 12w0x4a);
                                }
                            } else {
                                hand_off(16w0x187, 12w0x4c);
                            }
                        } else {
                            hand_off(16w0x187, 12w0x4c);
                        }
                    }
                }
            } else if (meta.arm == 16w0x130) {
                // wan/arp (home-router.click:17)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x153);
                } else {
                    // wan/arp (home-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // wan/arp (home-router.click:17)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // wan/arp (home-router.click:17)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0x1a0, 12w0x65);
                            } else {
                                discard(16w0x153);
                            }
                        } else {
                            discard(16w0x153);
                        }
                    } else {
                        discard(16w0x153);
                    }
                }
            } else if (meta.arm == 16w0x134) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0x177);
                } else {
                    meta.arm = 16w0x135;
                }
            } else if (meta.arm == 16w0x149) {
                // wan/ARPResponder@3 (home-router.click:16)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x14e);
                } else {
                    // wan/ARPResponder@3 (home-router.click:16)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // wan/ARPResponder@3 (home-router.click:16)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // wan/ARPResponder@3 (home-router.click:16)
                            if (hdr.arp.isValid()) {
                                rules332.apply();
                            } else {
                                discard(16w0x14e);
                            }
                        } else {
                            discard(16w0x14e);
                        }
                    } else {
                        discard(16w0x14e);
                    }
                }
            } else if (meta.arm == 16w0x14f) {
                // wan/arp (home-router.click:17)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x153);
                } else {
                    // wan/arp (home-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // wan/arp (home-router.click:17)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // wan/arp (home-router.click:17)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0x1a8, 12w0x6d);
                            } else {
                                discard(16w0x153);
                            }
                        } else {
                            discard(16w0x153);
                        }
                    } else {
                        discard(16w0x153);
                    }
                }
            } else if (meta.arm == 16w0x154) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0x177);
                } else {
                    meta.arm = 16w0x155;
                }
            } else if (meta.arm == 16w0x175) {
                // wan/kind (home-router.click:15)
                if (hdr.ethernet.ether_type == 16w0x806) {
                    discard(16w0x178);
                } else {
                    // wan/kind (home-router.click:15)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        discard(16w0x177);
                    } else {
                        discard(16w0x178);
                    }
                }
            }
            if (meta.arm == 16w0xf4) {
                // flows (home-router.click:35)
                if (hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.protocol == 8w0x6) {
                        hand_off(16w0x193, 12w0x58);
                    } else {
                        hand_off(16w0x194, 12w0x59);
                    }
                } else {
                    discard(16w0x170);
                }
            } else if (meta.arm == 16w0x119) {
                // pings (home-router.click:36)
                if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x19)) {
                    discard(16w0x160);
                } else {
                    hand_off(16w0x19b, 12w0x60);
                }
            } else if (meta.arm == 16w0x11a) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x19)) {
                    hand_off(16w0x181, 12w0x46);
                } else {
                    hand_off(16w0x17e, 12w0x43);
                }
            } else if (meta.arm == 16w0x11b) {
                // pings (home-router.click:36)
                if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x19)) {
                    hand_off(16w0x18c, 12w0x51);
                } else {
                    hand_off(16w0x189, 12w0x4e);
                }
            } else if (meta.arm == 16w0x11c) {
                // flows (home-router.click:35)
                if (hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0x170);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x25)) {
                                discard(16w0x170);
                            } else {
                                hand_off(16w0x19c, 12w0x61);
                            }
                        } else {
                            hand_off(16w0x19d, 12w0x62);
                        }
                    }
                } else {
                    discard(16w0x170);
                }
            } else if (meta.arm == 16w0x11d) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        hand_off(16w0x183, 12w0x48);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x25)) {
                                hand_off(16w0x183, 12w0x48);
                            } else {
                                hand_off(16w0x17f, 12w0x44);
                            }
                        } else {
                            hand_off(16w0x180, 12w0x45);
                        }
                    }
                } else {
                    hand_off(16w0x183, 12w0x48);
                }
            } else if (meta.arm == 16w0x11e) {
                // flows (home-router.click:35)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        hand_off(16w0x18e, 12w0x53);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x25)) {
                                hand_off(16w0x18e, 12w0x53);
                            } else {
                                hand_off(16w0x18a, 12w0x4f);
                            }
                        } else {
                            hand_off(16w0x18b, 12w0x50);
                        }
                    }
                } else {
                    hand_off(16w0x18e, 12w0x53);
                }
            } else if (meta.arm == 16w0x128) {
                // errors (home-router.click:38)
                if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x2f)) {
                    discard(16w0x166);
                } else {
                    hand_off(16w0x17c, 12w0x41);
                }
            } else if (meta.arm == 16w0x129) {
                // errors (home-router.click:38)
                if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x2f)) {
                    hand_off(16w0x182, 12w0x47);
                } else {
                    hand_off(16w0x17a, 12w0x3f);
                }
            } else if (meta.arm == 16w0x12a) {
                // errors (home-router.click:38)
                if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x2f)) {
                    hand_off(16w0x18d, 12w0x52);
                } else {
                    hand_off(16w0x17b, 12w0x40);
                }
            } else if (meta.arm == 16w0x135) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.ihl <= 4w0x4) {
                        discard(16w0x157);
                    } else {
                        // wan/CheckIPHeader@6 (home-router.click:18)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // wan/CheckIPHeader@6 (home-router.click:18)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // wan/CheckIPHeader@6 (home-router.click:18)
                                if (hdr.ipv4.ihl == 4w0x5) {
                                    // wan/CheckIPHeader@6 (home-router.click:18)
                                    if (standard_metadata.checksum_error == 1w0) {
                                        // back (home-router.click:52)
                                        if (hdr.ipv4.len >= 16w0x15) {
                                            // back (home-router.click:52)
                                            if (standard_metadata.packet_length >= 32w0x26) {
                                                // back (home-router.click:52)
                                                rules317.apply();
                                            } else {
                                                hand_off(16w0x1a1, 12w0x66);
                                            }
                                        } else {
                                            meta.arm = 16w0x167;
                                        }
                                    } else {
                                        discard(16w0x172);
                                    }
                                } else {
                                    hand_off(16w0x1a6, 12w0x6b);
                                }
                            } else {
                                discard(16w0x173);
                            }
                        } else {
                            discard(16w0x173);
                        }
                    }
                } else {
                    discard(16w0x174);
                }
            } else if (meta.arm == 16w0x155) {
                // wan/CheckIPHeader@6 (home-router.click:18)
                if (hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@6 (home-router.click:18)
                    if (hdr.ipv4.ihl <= 4w0x4) {
                        discard(16w0x157);
                    } else {
                        // wan/CheckIPHeader@6 (home-router.click:18)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // wan/CheckIPHeader@6 (home-router.click:18)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // wan/CheckIPHeader@6 (home-router.click:18)
                                if (hdr.ipv4.ihl == 4w0x5) {
                                    // wan/CheckIPHeader@6 (home-router.click:18)
                                    if (standard_metadata.checksum_error == 1w0) {
                                        // back (home-router.click:52)
                                        if (hdr.ipv4.len >= 16w0x15) {
                                            // back (home-router.click:52)
                                            if (standard_metadata.packet_length >= 32w0x26) {
                                                // back (home-router.click:52)
                                                rules350.apply();
                                            } else {
                                                hand_off(16w0x1a9, 12w0x6e);
                                            }
                                        } else {
                                            meta.arm = 16w0x167;
                                        }
                                    } else {
                                        discard(16w0x172);
                                    }
                                } else {
                                    hand_off(16w0x1ae, 12w0x73);
                                }
                            } else {
                                discard(16w0x173);
                            }
                        } else {
                            discard(16w0x173);
                        }
                    }
                } else {
                    discard(16w0x174);
                }
            }
            if (meta.arm == 16w0x13e) {
                // pings (home-router.click:36)
                if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x19)) {
                    discard(16w0x160);
                } else {
                    hand_off(16w0x1a2, 12w0x67);
                }
            } else if (meta.arm == 16w0x13f) {
                // flows (home-router.click:35)
                if (hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0x170);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x25)) {
                                discard(16w0x170);
                            } else {
                                hand_off(16w0x1a3, 12w0x68);
                            }
                        } else {
                            hand_off(16w0x1a4, 12w0x69);
                        }
                    }
                } else {
                    discard(16w0x170);
                }
            } else if (meta.arm == 16w0x143) {
                // errors (home-router.click:38)
                if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x2f)) {
                    discard(16w0x166);
                } else {
                    hand_off(16w0x1a5, 12w0x6a);
                }
            } else if (meta.arm == 16w0x15f) {
                // pings (home-router.click:36)
                if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x19)) {
                    discard(16w0x160);
                } else {
                    hand_off(16w0x1aa, 12w0x6f);
                }
            } else if (meta.arm == 16w0x161) {
                // flows (home-router.click:35)
                if (hdr.ipv4.frag == 13w0x0) {
                    // flows (home-router.click:35)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0x170);
                    } else {
                        // flows (home-router.click:35)
                        if (hdr.ipv4.protocol == 8w0x6) {
                            // flows (home-router.click:35)
                            if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x25)) {
                                discard(16w0x170);
                            } else {
                                hand_off(16w0x1ab, 12w0x70);
                            }
                        } else {
                            hand_off(16w0x1ac, 12w0x71);
                        }
                    }
                } else {
                    discard(16w0x170);
                }
            } else if (meta.arm == 16w0x165) {
                // errors (home-router.click:38)
                if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x2f)) {
                    discard(16w0x166);
                } else {
                    hand_off(16w0x1ad, 12w0x72);
                }
            } else if (meta.arm == 16w0x167) {
                // back (home-router.click:52)
                if (hdr.ipv4.protocol == 8w0x1) {
                    discard(16w0x171);
                } else {
                    // back (home-router.click:52)
                    if (hdr.ipv4.protocol == 8w0x6) {
                        discard(16w0x170);
                    } else {
                        // back (home-router.click:52)
                        if (hdr.ipv4.protocol == 8w0x11) {
                            discard(16w0x170);
                        } else {
                            discard(16w0x171);
                        }
                    }
                }
            }
        } else {
            lost();
        }
        count();
    }
}

control Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tag);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.transport);
    }
}

V1Switch(Parse(), Verify(), Ingress(), Egress(), Update(), Deparse()) main;
