// Compile with p4c-bm2-ss, or check with p4test.
// What tables hold is in entries.json, in the terms of P4Runtime; commands.txt holds the same for simple_switch_CLI.
#include <core.p4>
#include <v1model.p4>

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
    bit<16> at;
    bit<16> arm;
    bit<16> next;
    bit<12> list;
    bit<16> class;
    bit<16> zero;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        meta.at = 16w0x0;
        meta.arm = 16w0x0;
        meta.next = 16w0x0;
        meta.list = 12w0x0;
        meta.class = 16w0x2e4;
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
    counter(741, CounterType.packets_and_bytes) classes;
    bit<16> key3_1;
    bit<16> key10_1;
    bit<16> key13_1;
    bit<16> key373_1;
    bit<16> key380_1;
    bit<16> key383_1;

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
    action go(bit<16> at, bit<16> arm) {
        meta.at = at;
        meta.arm = arm;
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

    // lan/HostEtherFilter@1 (ip-router.click:15)
    table decide1 {
        key = {
            standard_metadata.packet_length: range;
            hdr.ethernet.dst: ternary;
            hdr.ethernet.ether_type: ternary;
            hdr.ethernet.dst[40:40]: ternary;
        }
        actions = {
            discard;
            hand_off;
            go;
        }
        default_action = discard(16w0xfe);
        size = 20;
    }

    // lan/kind (ip-router.click:16)
    table rules3 {
        key = {
            hdr.ethernet.ether_type: exact;
            key3_1: ternary;
        }
        actions = {
            discard;
            go;
        }
        default_action = discard(16w0xfd);
        size = 3;
    }

    // lan/kind (ip-router.click:16)
    table rules10 {
        key = {
            hdr.ethernet.ether_type: exact;
            key10_1: ternary;
        }
        actions = {
            discard;
            go;
        }
        default_action = discard(16w0xfd);
        size = 3;
    }

    // lan/kind (ip-router.click:16)
    table rules13 {
        key = {
            hdr.ethernet.ether_type: exact;
            key13_1: ternary;
        }
        actions = {
            discard;
            go;
        }
        default_action = discard(16w0xfd);
        size = 3;
    }

    // lan/CheckIPHeader@7 (ip-router.click:20)
    table decide5 {
        key = {
            meta.arm: exact;
            hdr.arp.isValid(): ternary;
            hdr.ipv4.version: ternary;
            hdr.ipv4.ihl: range;
            standard_metadata.packet_length: range;
            hdr.arp.ptype: ternary;
            hdr.arp.htype: ternary;
            hdr.arp.sha[40:40]: ternary;
            hdr.arp.tpa: ternary;
        }
        actions = {
            discard;
            hand_off;
            go;
            leave;
        }
        default_action = discard(16w0xf9);
        size = 29;
    }

    // lan/CheckIPHeader@7 (ip-router.click:20)
    table decide10 {
        key = {
            meta.arm: exact;
            hdr.ipv4.ihl: ternary;
        }
        actions = {
            hand_off;
            go;
        }
        default_action = hand_off(16w0x171, 12w0x73);
        size = 5;
    }

    // ICMPPingResponder@4 (ip-router.click:45)
    table decide14 {
        key = {
            meta.arm: exact;
            hdr.ipv4.len: range;
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            standard_metadata.packet_length: range;
            hdr.transport.sport[15:8]: range;
            hdr.ipv4.ttl: ternary;
            hdr.ipv4.frag: ternary;
            hdr.ipv4.flags[1:1]: ternary;
        }
        actions = {
            discard;
            hand_off;
        }
        default_action = discard(16w0xf4);
        size = 261;
    }

    // wan/HostEtherFilter@1 (ip-router.click:15)
    table decide15 {
        key = {
            standard_metadata.packet_length: range;
            hdr.ethernet.dst: ternary;
            hdr.ethernet.ether_type: ternary;
            hdr.ethernet.dst[40:40]: ternary;
        }
        actions = {
            discard;
            hand_off;
            go;
        }
        default_action = discard(16w0x270);
        size = 20;
    }

    // wan/kind (ip-router.click:16)
    table rules373 {
        key = {
            hdr.ethernet.ether_type: exact;
            key373_1: ternary;
        }
        actions = {
            discard;
            go;
        }
        default_action = discard(16w0x26f);
        size = 3;
    }

    // wan/kind (ip-router.click:16)
    table rules380 {
        key = {
            hdr.ethernet.ether_type: exact;
            key380_1: ternary;
        }
        actions = {
            discard;
            go;
        }
        default_action = discard(16w0x26f);
        size = 3;
    }

    // wan/kind (ip-router.click:16)
    table rules383 {
        key = {
            hdr.ethernet.ether_type: exact;
            key383_1: ternary;
        }
        actions = {
            discard;
            go;
        }
        default_action = discard(16w0x26f);
        size = 3;
    }

    // wan/CheckIPHeader@7 (ip-router.click:20)
    table decide19 {
        key = {
            meta.arm: exact;
            hdr.arp.isValid(): ternary;
            hdr.ipv4.version: ternary;
            hdr.ipv4.ihl: range;
            standard_metadata.packet_length: range;
            hdr.arp.ptype: ternary;
            hdr.arp.htype: ternary;
            hdr.arp.sha[40:40]: ternary;
            hdr.arp.tpa: ternary;
        }
        actions = {
            discard;
            hand_off;
            go;
            leave;
        }
        default_action = discard(16w0x26b);
        size = 29;
    }

    // wan/CheckIPHeader@7 (ip-router.click:20)
    table decide24 {
        key = {
            meta.arm: exact;
            hdr.ipv4.ihl: ternary;
        }
        actions = {
            hand_off;
            go;
        }
        default_action = hand_off(16w0x2e3, 12w0xe6);
        size = 5;
    }

    // ICMPPingResponder@4 (ip-router.click:45)
    table decide28 {
        key = {
            meta.arm: exact;
            hdr.ipv4.len: range;
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            standard_metadata.packet_length: range;
            hdr.transport.sport[15:8]: range;
            hdr.ipv4.ttl: ternary;
            hdr.ipv4.frag: ternary;
            hdr.ipv4.flags[1:1]: ternary;
        }
        actions = {
            discard;
            hand_off;
        }
        default_action = discard(16w0x266);
        size = 261;
    }

    apply {
        if (standard_metadata.ingress_port == CORES) {
            if (hdr.tag.isValid()) {
                ports.apply();
            } else {
                lost();
            }
        } else if (standard_metadata.ingress_port == 9w0x3) {
            // lan/HostEtherFilter@1 (ip-router.click:15)
            decide1.apply();
            if (meta.at == 16w0x2) {
                // lan/kind (ip-router.click:16)
                key3_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                rules3.apply();
            } else if (meta.at == 16w0x3) {
                // lan/kind (ip-router.click:16)
                key10_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                rules10.apply();
            } else if (meta.at == 16w0x4) {
                // lan/kind (ip-router.click:16)
                key13_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                rules13.apply();
            }
            if (meta.at == 16w0x5) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                decide5.apply();
            }
            if (meta.at == 16w0x6) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        go(16w0xb, 16w0x22);
                    } else {
                        discard(16w0xf8);
                    }
                } else {
                    discard(16w0xf8);
                }
            } else if (meta.at == 16w0x7) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        go(16w0xa, 16w0x20);
                    } else {
                        discard(16w0xf8);
                    }
                } else {
                    discard(16w0xf8);
                }
            } else if (meta.at == 16w0x8) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        go(16w0xa, 16w0xbc);
                    } else {
                        discard(16w0xf8);
                    }
                } else {
                    discard(16w0xf8);
                }
            } else if (meta.at == 16w0x9) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        go(16w0xa, 16w0xe2);
                    } else {
                        discard(16w0xf8);
                    }
                } else {
                    discard(16w0xf8);
                }
            }
            if (meta.at == 16w0xa) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                decide10.apply();
            }
            if (meta.at == 16w0xb) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (standard_metadata.checksum_error == 1w0) {
                    go(16w0xe, 16w0x24);
                } else {
                    discard(16w0xf7);
                }
            } else if (meta.at == 16w0xc) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (standard_metadata.checksum_error == 1w0) {
                    go(16w0xe, 16w0xbe);
                } else {
                    discard(16w0xf7);
                }
            } else if (meta.at == 16w0xd) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (standard_metadata.checksum_error == 1w0) {
                    go(16w0xe, 16w0xe4);
                } else {
                    discard(16w0xf7);
                }
            }
            if (meta.at == 16w0xe) {
                // ICMPPingResponder@4 (ip-router.click:45)
                decide14.apply();
            }
        } else if (standard_metadata.ingress_port == 9w0x4) {
            // wan/HostEtherFilter@1 (ip-router.click:15)
            decide15.apply();
            if (meta.at == 16w0x10) {
                // wan/kind (ip-router.click:16)
                key373_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                rules373.apply();
            } else if (meta.at == 16w0x11) {
                // wan/kind (ip-router.click:16)
                key380_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                rules380.apply();
            } else if (meta.at == 16w0x12) {
                // wan/kind (ip-router.click:16)
                key383_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                rules383.apply();
            }
            if (meta.at == 16w0x13) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                decide19.apply();
            }
            if (meta.at == 16w0x14) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        go(16w0x19, 16w0x194);
                    } else {
                        discard(16w0x26a);
                    }
                } else {
                    discard(16w0x26a);
                }
            } else if (meta.at == 16w0x15) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        go(16w0x18, 16w0x192);
                    } else {
                        discard(16w0x26a);
                    }
                } else {
                    discard(16w0x26a);
                }
            } else if (meta.at == 16w0x16) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        go(16w0x18, 16w0x22e);
                    } else {
                        discard(16w0x26a);
                    }
                } else {
                    discard(16w0x26a);
                }
            } else if (meta.at == 16w0x17) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        go(16w0x18, 16w0x254);
                    } else {
                        discard(16w0x26a);
                    }
                } else {
                    discard(16w0x26a);
                }
            }
            if (meta.at == 16w0x18) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                decide24.apply();
            }
            if (meta.at == 16w0x19) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (standard_metadata.checksum_error == 1w0) {
                    go(16w0x1c, 16w0x196);
                } else {
                    discard(16w0x269);
                }
            } else if (meta.at == 16w0x1a) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (standard_metadata.checksum_error == 1w0) {
                    go(16w0x1c, 16w0x230);
                } else {
                    discard(16w0x269);
                }
            } else if (meta.at == 16w0x1b) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (standard_metadata.checksum_error == 1w0) {
                    go(16w0x1c, 16w0x256);
                } else {
                    discard(16w0x269);
                }
            }
            if (meta.at == 16w0x1c) {
                // ICMPPingResponder@4 (ip-router.click:45)
                decide28.apply();
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
