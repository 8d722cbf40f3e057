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
    bit<16> arm;
    bit<16> class;
    bit<16> zero;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        meta.arm = 16w0x0;
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
    bit<16> key20_1;
    bit<16> key178_1;
    bit<16> key208_1;
    bit<16> key373_1;
    bit<16> key380_1;
    bit<16> key383_1;
    bit<16> key390_1;
    bit<16> key548_1;
    bit<16> key578_1;

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

    // lan/kind (ip-router.click:16)
    table rules3 {
        key = {
            hdr.ethernet.ether_type: exact;
            key3_1: ternary;
        }
        actions = {
            go;
            discard;
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
            go;
            discard;
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
            go;
            discard;
        }
        default_action = discard(16w0xfd);
        size = 3;
    }

    // lan/kind (ip-router.click:16)
    table rules20 {
        key = {
            hdr.ethernet.ether_type: exact;
            key20_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xfd);
        size = 3;
    }

    // lan/kind (ip-router.click:16)
    table rules178 {
        key = {
            hdr.ethernet.ether_type: exact;
            key178_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xfd);
        size = 3;
    }

    // lan/kind (ip-router.click:16)
    table rules208 {
        key = {
            hdr.ethernet.ether_type: exact;
            key208_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xfd);
        size = 3;
    }

    // routes (ip-router.click:34)
    table routes41 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(16w0x133, 12w0x35);
        size = 5;
    }

    // routes (ip-router.click:34)
    table routes40 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xf6);
        size = 5;
    }

    // routes (ip-router.click:34)
    table routes192 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xf6);
        size = 5;
    }

    // lan/ARPResponder@3 (ip-router.click:17)
    table rules212 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            discard;
            leave;
        }
        default_action = discard(16w0xd6);
        size = 1;
    }

    // routes (ip-router.click:34)
    table routes230 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xf6);
        size = 5;
    }

    // wan/kind (ip-router.click:16)
    table rules373 {
        key = {
            hdr.ethernet.ether_type: exact;
            key373_1: ternary;
        }
        actions = {
            go;
            discard;
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
            go;
            discard;
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
            go;
            discard;
        }
        default_action = discard(16w0x26f);
        size = 3;
    }

    // wan/kind (ip-router.click:16)
    table rules390 {
        key = {
            hdr.ethernet.ether_type: exact;
            key390_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x26f);
        size = 3;
    }

    // wan/kind (ip-router.click:16)
    table rules548 {
        key = {
            hdr.ethernet.ether_type: exact;
            key548_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x26f);
        size = 3;
    }

    // wan/kind (ip-router.click:16)
    table rules578 {
        key = {
            hdr.ethernet.ether_type: exact;
            key578_1: ternary;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x26f);
        size = 3;
    }

    // routes (ip-router.click:34)
    table routes411 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(16w0x2a5, 12w0xa8);
        size = 5;
    }

    // routes (ip-router.click:34)
    table routes410 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x268);
        size = 5;
    }

    // routes (ip-router.click:34)
    table routes562 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x268);
        size = 5;
    }

    // wan/ARPResponder@3 (ip-router.click:17)
    table rules582 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            discard;
            leave;
        }
        default_action = discard(16w0x248);
        size = 1;
    }

    // routes (ip-router.click:34)
    table routes600 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0x268);
        size = 5;
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
            if (standard_metadata.packet_length >= 32w0x22) {
                // lan/HostEtherFilter@1 (ip-router.click:15)
                if (hdr.ethernet.dst == 48w0x20000001001) {
                    // lan/kind (ip-router.click:16)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        // lan/kind (ip-router.click:16)
                        key3_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                        rules3.apply();
                    } else {
                        hand_off(16w0x14c, 12w0x4e);
                    }
                } else {
                    // lan/HostEtherFilter@1 (ip-router.click:15)
                    if (hdr.ethernet.dst == 48w0xffffffffffff) {
                        // lan/kind (ip-router.click:16)
                        if (hdr.ethernet.ether_type == 16w0x800) {
                            // lan/kind (ip-router.click:16)
                            key10_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                            rules10.apply();
                        } else {
                            hand_off(16w0x14d, 12w0x4f);
                        }
                    } else {
                        // lan/HostEtherFilter@1 (ip-router.click:15)
                        if (hdr.ethernet.dst[40:40] == 1w0x1) {
                            // lan/kind (ip-router.click:16)
                            if (hdr.ethernet.ether_type == 16w0x800) {
                                // lan/kind (ip-router.click:16)
                                key13_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                rules13.apply();
                            } else {
                                hand_off(16w0x14e, 12w0x50);
                            }
                        } else {
                            discard(16w0xfe);
                        }
                    }
                }
            } else {
                // lan/HostEtherFilter@1 (ip-router.click:15)
                if (standard_metadata.packet_length <= 32w0xd) {
                    discard(16w0xf);
                } else {
                    // lan/HostEtherFilter@1 (ip-router.click:15)
                    if (hdr.ethernet.dst == 48w0x20000001001) {
                        // lan/kind (ip-router.click:16)
                        if (standard_metadata.packet_length >= 32w0x16) {
                            // lan/kind (ip-router.click:16)
                            if (standard_metadata.packet_length >= 32w0x22) {
                                // lan/kind (ip-router.click:16)
                                if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                    // lan/kind (ip-router.click:16)
                                    if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                        key20_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                        rules20.apply();
                                    } else {
                                        discard(16w0xfd);
                                    }
                                } else {
                                    hand_off(16w0x14f, 12w0x51);
                                }
                            } else {
                                hand_off(16w0x14f, 12w0x51);
                            }
                        } else {
                            meta.arm = 16w0xfa;
                        }
                    } else {
                        // lan/HostEtherFilter@1 (ip-router.click:15)
                        if (hdr.ethernet.dst == 48w0xffffffffffff) {
                            // lan/kind (ip-router.click:16)
                            if (standard_metadata.packet_length >= 32w0x16) {
                                // lan/kind (ip-router.click:16)
                                if (standard_metadata.packet_length >= 32w0x22) {
                                    // lan/kind (ip-router.click:16)
                                    if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                        // lan/kind (ip-router.click:16)
                                        if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                            key178_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                            rules178.apply();
                                        } else {
                                            discard(16w0xfd);
                                        }
                                    } else {
                                        hand_off(16w0x168, 12w0x6a);
                                    }
                                } else {
                                    hand_off(16w0x168, 12w0x6a);
                                }
                            } else {
                                meta.arm = 16w0xfa;
                            }
                        } else {
                            // lan/HostEtherFilter@1 (ip-router.click:15)
                            if (hdr.ethernet.dst[40:40] == 1w0x1) {
                                // lan/kind (ip-router.click:16)
                                if (standard_metadata.packet_length >= 32w0x16) {
                                    // lan/kind (ip-router.click:16)
                                    if (standard_metadata.packet_length >= 32w0x22) {
                                        // lan/kind (ip-router.click:16)
                                        if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                            // lan/kind (ip-router.click:16)
                                            if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                                key208_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                                rules208.apply();
                                            } else {
                                                discard(16w0xfd);
                                            }
                                        } else {
                                            hand_off(16w0x16d, 12w0x6f);
                                        }
                                    } else {
                                        hand_off(16w0x16d, 12w0x6f);
                                    }
                                } else {
                                    meta.arm = 16w0xfa;
                                }
                            } else {
                                discard(16w0xfe);
                            }
                        }
                    }
                }
            }
            if (meta.arm == 16w0x4) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.ihl == 4w0x5) {
                        // lan/CheckIPHeader@7 (ip-router.click:20)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // lan/CheckIPHeader@7 (ip-router.click:20)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                meta.arm = 16w0x22;
                            } else {
                                discard(16w0xf8);
                            }
                        } else {
                            discard(16w0xf8);
                        }
                    } else {
                        // lan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.ihl <= 4w0x4) {
                            discard(16w0xdf);
                        } else {
                            // lan/CheckIPHeader@7 (ip-router.click:20)
                            if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                                // lan/CheckIPHeader@7 (ip-router.click:20)
                                if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                    // lan/CheckIPHeader@7 (ip-router.click:20)
                                    if (hdr.ipv4.ihl == 4w0x5) {
                                        meta.arm = 16w0x22;
                                    } else {
                                        hand_off(16w0x167, 12w0x69);
                                    }
                                } else {
                                    discard(16w0xf8);
                                }
                            } else {
                                discard(16w0xf8);
                            }
                        }
                    }
                } else {
                    discard(16w0xf9);
                }
            } else if (meta.arm == 16w0x15) {
                // lan/arp (ip-router.click:18)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0xdb);
                } else {
                    // lan/arp (ip-router.click:18)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // lan/arp (ip-router.click:18)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // lan/arp (ip-router.click:18)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0x150, 12w0x52);
                            } else {
                                discard(16w0xdb);
                            }
                        } else {
                            discard(16w0xdb);
                        }
                    } else {
                        discard(16w0xdb);
                    }
                }
            } else if (meta.arm == 16w0x19) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0xfc);
                } else {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl <= 4w0x4) {
                        hand_off(16w0x130, 12w0x32);
                    } else {
                        // lan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.isValid() && (((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // lan/CheckIPHeader@7 (ip-router.click:20)
                            if (hdr.ipv4.isValid() && (((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // lan/CheckIPHeader@7 (ip-router.click:20)
                                if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                    // lan/CheckIPHeader@7 (ip-router.click:20)
                                    if (hdr.ipv4.isValid() && standard_metadata.checksum_error == 1w0) {
                                        // lan/CheckIPHeader@7 (ip-router.click:20)
                                        if (hdr.ipv4.isValid() && !((hdr.ipv4.src >= 32w0x1 && hdr.ipv4.src <= 32w0xa0000fe) || (hdr.ipv4.src >= 32w0xa000100 && hdr.ipv4.src <= 32w0x140000fe) || (hdr.ipv4.src >= 32w0x14000100 && hdr.ipv4.src <= 32w0xfffffffe))) {
                                            // lan/CheckIPHeader@7 (ip-router.click:20)
                                            if (hdr.ipv4.isValid() && (hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                                                meta.arm = 16w0x55;
                                            } else {
                                                hand_off(16w0x131, 12w0x33);
                                            }
                                        } else {
                                            // routes (ip-router.click:34)
                                            if (hdr.ipv4.isValid()) {
                                                routes41.apply();
                                            } else {
                                                hand_off(16w0x133, 12w0x35);
                                            }
                                        }
                                    } else {
                                        hand_off(16w0x134, 12w0x36);
                                    }
                                } else {
                                    hand_off(16w0x12f, 12w0x31);
                                }
                            } else {
                                hand_off(16w0x135, 12w0x37);
                            }
                        } else {
                            hand_off(16w0x135, 12w0x37);
                        }
                    }
                }
            } else if (meta.arm == 16w0xb3) {
                // lan/arp (ip-router.click:18)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0xdb);
                } else {
                    // lan/arp (ip-router.click:18)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // lan/arp (ip-router.click:18)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // lan/arp (ip-router.click:18)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0x169, 12w0x6b);
                            } else {
                                discard(16w0xdb);
                            }
                        } else {
                            discard(16w0xdb);
                        }
                    } else {
                        discard(16w0xdb);
                    }
                }
            } else if (meta.arm == 16w0xb7) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0xfc);
                } else {
                    meta.arm = 16w0xb8;
                }
            } else if (meta.arm == 16w0xd1) {
                // lan/ARPResponder@3 (ip-router.click:17)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0xd6);
                } else {
                    // lan/ARPResponder@3 (ip-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // lan/ARPResponder@3 (ip-router.click:17)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // lan/ARPResponder@3 (ip-router.click:17)
                            if (hdr.arp.isValid()) {
                                rules212.apply();
                            } else {
                                discard(16w0xd6);
                            }
                        } else {
                            discard(16w0xd6);
                        }
                    } else {
                        discard(16w0xd6);
                    }
                }
            } else if (meta.arm == 16w0xd7) {
                // lan/arp (ip-router.click:18)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0xdb);
                } else {
                    // lan/arp (ip-router.click:18)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // lan/arp (ip-router.click:18)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // lan/arp (ip-router.click:18)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0x16e, 12w0x70);
                            } else {
                                discard(16w0xdb);
                            }
                        } else {
                            discard(16w0xdb);
                        }
                    } else {
                        discard(16w0xdb);
                    }
                }
            } else if (meta.arm == 16w0xdc) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0xfc);
                } else {
                    meta.arm = 16w0xdd;
                }
            } else if (meta.arm == 16w0xfa) {
                // lan/kind (ip-router.click:16)
                if (hdr.ethernet.ether_type == 16w0x806) {
                    discard(16w0xfd);
                } else {
                    // lan/kind (ip-router.click:16)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        discard(16w0xfc);
                    } else {
                        discard(16w0xfd);
                    }
                }
            }
            if (meta.arm == 16w0x22) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (standard_metadata.checksum_error == 1w0) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (!((hdr.ipv4.src >= 32w0x1 && hdr.ipv4.src <= 32w0xa0000fe) || (hdr.ipv4.src >= 32w0xa000100 && hdr.ipv4.src <= 32w0x140000fe) || (hdr.ipv4.src >= 32w0x14000100 && hdr.ipv4.src <= 32w0xfffffffe))) {
                        // lan/CheckIPHeader@7 (ip-router.click:20)
                        if ((hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                            meta.arm = 16w0x54;
                        } else {
                            discard(16w0xf2);
                        }
                    } else {
                        // routes (ip-router.click:34)
                        routes40.apply();
                    }
                } else {
                    discard(16w0xf7);
                }
            } else if (meta.arm == 16w0x2f) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.ttl <= 8w0x1) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            hand_off(16w0x119, 12w0x1b);
                        } else {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // lan/ICMPError@18 (ip-router.click:27)
                                if (hdr.transport.isValid() && ((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    hand_off(16w0x119, 12w0x1b);
                                } else {
                                    meta.arm = 16w0x39;
                                }
                            } else {
                                hand_off(16w0x111, 12w0x13);
                            }
                        }
                    } else {
                        meta.arm = 16w0x39;
                    }
                } else {
                    // lan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && hdr.ipv4.len <= 16w0x5dc) {
                        hand_off(16w0x114, 12w0x16);
                    } else {
                        // lan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            // lan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                // lan/ICMPError@19 (ip-router.click:28)
                                if (standard_metadata.packet_length >= 32w0x26) {
                                    // lan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.transport.isValid() && ((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                        hand_off(16w0x11c, 12w0x1e);
                                    } else {
                                        meta.arm = 16w0x49;
                                    }
                                } else {
                                    hand_off(16w0x115, 12w0x17);
                                }
                            } else {
                                meta.arm = 16w0x49;
                            }
                        } else {
                            hand_off(16w0x118, 12w0x1a);
                        }
                    }
                }
            } else if (meta.arm == 16w0x4f) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.ttl <= 8w0x1) {
                    meta.arm = 16w0x81;
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && hdr.ipv4.len <= 16w0x240) {
                        hand_off(16w0x11f, 12w0x21);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            meta.arm = 16w0x94;
                        } else {
                            hand_off(16w0x120, 12w0x22);
                        }
                    }
                }
            } else if (meta.arm == 16w0x55) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        hand_off(16w0x132, 12w0x34);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@4 (ip-router.click:45)
                            if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                                hand_off(16w0x122, 12w0x24);
                            } else {
                                hand_off(16w0x132, 12w0x34);
                            }
                        } else {
                            hand_off(16w0x121, 12w0x23);
                        }
                    }
                } else {
                    hand_off(16w0x132, 12w0x34);
                }
            } else if (meta.arm == 16w0x7e) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.ttl <= 8w0x1) {
                    meta.arm = 16w0x81;
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && hdr.ipv4.len <= 16w0x240) {
                        hand_off(16w0x10d, 12w0xf);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            meta.arm = 16w0x94;
                        } else {
                            hand_off(16w0x10e, 12w0x10);
                        }
                    }
                }
            } else if (meta.arm == 16w0xb8) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.ihl <= 4w0x4) {
                        discard(16w0xdf);
                    } else {
                        // lan/CheckIPHeader@7 (ip-router.click:20)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // lan/CheckIPHeader@7 (ip-router.click:20)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // lan/CheckIPHeader@7 (ip-router.click:20)
                                if (hdr.ipv4.ihl == 4w0x5) {
                                    // lan/CheckIPHeader@7 (ip-router.click:20)
                                    if (standard_metadata.checksum_error == 1w0) {
                                        // lan/CheckIPHeader@7 (ip-router.click:20)
                                        if (!((hdr.ipv4.src >= 32w0x1 && hdr.ipv4.src <= 32w0xa0000fe) || (hdr.ipv4.src >= 32w0xa000100 && hdr.ipv4.src <= 32w0x140000fe) || (hdr.ipv4.src >= 32w0x14000100 && hdr.ipv4.src <= 32w0xfffffffe))) {
                                            // lan/CheckIPHeader@7 (ip-router.click:20)
                                            if ((hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                                                meta.arm = 16w0xc3;
                                            } else {
                                                discard(16w0xf2);
                                            }
                                        } else {
                                            // routes (ip-router.click:34)
                                            routes192.apply();
                                        }
                                    } else {
                                        discard(16w0xf7);
                                    }
                                } else {
                                    hand_off(16w0x16c, 12w0x6e);
                                }
                            } else {
                                discard(16w0xf8);
                            }
                        } else {
                            discard(16w0xf8);
                        }
                    }
                } else {
                    discard(16w0xf9);
                }
            } else if (meta.arm == 16w0xdd) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.ihl <= 4w0x4) {
                        discard(16w0xdf);
                    } else {
                        // lan/CheckIPHeader@7 (ip-router.click:20)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // lan/CheckIPHeader@7 (ip-router.click:20)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // lan/CheckIPHeader@7 (ip-router.click:20)
                                if (hdr.ipv4.ihl == 4w0x5) {
                                    // lan/CheckIPHeader@7 (ip-router.click:20)
                                    if (standard_metadata.checksum_error == 1w0) {
                                        // lan/CheckIPHeader@7 (ip-router.click:20)
                                        if (!((hdr.ipv4.src >= 32w0x1 && hdr.ipv4.src <= 32w0xa0000fe) || (hdr.ipv4.src >= 32w0xa000100 && hdr.ipv4.src <= 32w0x140000fe) || (hdr.ipv4.src >= 32w0x14000100 && hdr.ipv4.src <= 32w0xfffffffe))) {
                                            // lan/CheckIPHeader@7 (ip-router.click:20)
                                            if ((hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                                                meta.arm = 16w0xe9;
                                            } else {
                                                discard(16w0xf2);
                                            }
                                        } else {
                                            // routes (ip-router.click:34)
                                            routes230.apply();
                                        }
                                    } else {
                                        discard(16w0xf7);
                                    }
                                } else {
                                    hand_off(16w0x171, 12w0x73);
                                }
                            } else {
                                discard(16w0xf8);
                            }
                        } else {
                            discard(16w0xf8);
                        }
                    }
                } else {
                    discard(16w0xf9);
                }
            }
            if (meta.arm == 16w0x2e) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.ttl <= 8w0x1) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            hand_off(16w0x159, 12w0x5b);
                        } else {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // lan/ICMPError@18 (ip-router.click:27)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    hand_off(16w0x159, 12w0x5b);
                                } else {
                                    meta.arm = 16w0x38;
                                }
                            } else {
                                hand_off(16w0x151, 12w0x53);
                            }
                        }
                    } else {
                        meta.arm = 16w0x38;
                    }
                } else {
                    // lan/fragment (ip-router.click:24)
                    if (hdr.ipv4.len <= 16w0x5dc) {
                        hand_off(16w0x154, 12w0x56);
                    } else {
                        // lan/fragment (ip-router.click:24)
                        if (hdr.ipv4.flags[1:1] == 1w0x1) {
                            // lan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.protocol == 8w0x1) {
                                // lan/ICMPError@19 (ip-router.click:28)
                                if (standard_metadata.packet_length >= 32w0x26) {
                                    // lan/ICMPError@19 (ip-router.click:28)
                                    if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                        hand_off(16w0x15c, 12w0x5e);
                                    } else {
                                        meta.arm = 16w0x48;
                                    }
                                } else {
                                    hand_off(16w0x155, 12w0x57);
                                }
                            } else {
                                meta.arm = 16w0x48;
                            }
                        } else {
                            hand_off(16w0x158, 12w0x5a);
                        }
                    }
                }
            } else if (meta.arm == 16w0x39) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x112, 12w0x14);
                        } else {
                            hand_off(16w0x11a, 12w0x1c);
                        }
                    } else {
                        hand_off(16w0x113, 12w0x15);
                    }
                } else {
                    hand_off(16w0x11b, 12w0x1d);
                }
            } else if (meta.arm == 16w0x49) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x116, 12w0x18);
                        } else {
                            hand_off(16w0x11d, 12w0x1f);
                        }
                    } else {
                        hand_off(16w0x117, 12w0x19);
                    }
                } else {
                    hand_off(16w0x11e, 12w0x20);
                }
            } else if (meta.arm == 16w0x4e) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.ttl <= 8w0x1) {
                    meta.arm = 16w0x80;
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.len <= 16w0x240) {
                        hand_off(16w0x15f, 12w0x61);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.flags[1:1] == 1w0x1) {
                            meta.arm = 16w0x93;
                        } else {
                            hand_off(16w0x160, 12w0x62);
                        }
                    }
                }
            } else if (meta.arm == 16w0x54) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0xf5);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@4 (ip-router.click:45)
                            if (hdr.transport.sport[15:8] == 8w0x8) {
                                hand_off(16w0x162, 12w0x64);
                            } else {
                                discard(16w0xf5);
                            }
                        } else {
                            hand_off(16w0x161, 12w0x63);
                        }
                    }
                } else {
                    discard(16w0xf5);
                }
            } else if (meta.arm == 16w0x7f) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.ttl <= 8w0x1) {
                    meta.arm = 16w0x80;
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.len <= 16w0x240) {
                        hand_off(16w0x144, 12w0x46);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.flags[1:1] == 1w0x1) {
                            meta.arm = 16w0x93;
                        } else {
                            hand_off(16w0x145, 12w0x47);
                        }
                    }
                }
            } else if (meta.arm == 16w0x81) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                        hand_off(16w0x129, 12w0x2b);
                    } else {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.transport.isValid() && ((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                hand_off(16w0x129, 12w0x2b);
                            } else {
                                meta.arm = 16w0x89;
                            }
                        } else {
                            hand_off(16w0x123, 12w0x25);
                        }
                    }
                } else {
                    meta.arm = 16w0x89;
                }
            } else if (meta.arm == 16w0x94) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (standard_metadata.packet_length >= 32w0x26) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.transport.isValid() && ((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                            hand_off(16w0x12c, 12w0x2e);
                        } else {
                            meta.arm = 16w0x9a;
                        }
                    } else {
                        hand_off(16w0x126, 12w0x28);
                    }
                } else {
                    meta.arm = 16w0x9a;
                }
            } else if (meta.arm == 16w0xc3) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0xf5);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@4 (ip-router.click:45)
                            if (hdr.transport.sport[15:8] == 8w0x8) {
                                hand_off(16w0x16b, 12w0x6d);
                            } else {
                                discard(16w0xf5);
                            }
                        } else {
                            hand_off(16w0x16a, 12w0x6c);
                        }
                    }
                } else {
                    discard(16w0xf5);
                }
            } else if (meta.arm == 16w0xe9) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0xf5);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@4 (ip-router.click:45)
                            if (hdr.transport.sport[15:8] == 8w0x8) {
                                hand_off(16w0x170, 12w0x72);
                            } else {
                                discard(16w0xf5);
                            }
                        } else {
                            hand_off(16w0x16f, 12w0x71);
                        }
                    }
                } else {
                    discard(16w0xf5);
                }
            }
            if (meta.arm == 16w0x38) {
                // lan/ICMPError@18 (ip-router.click:27)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x152, 12w0x54);
                        } else {
                            hand_off(16w0x15a, 12w0x5c);
                        }
                    } else {
                        hand_off(16w0x153, 12w0x55);
                    }
                } else {
                    hand_off(16w0x15b, 12w0x5d);
                }
            } else if (meta.arm == 16w0x48) {
                // lan/ICMPError@19 (ip-router.click:28)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x156, 12w0x58);
                        } else {
                            hand_off(16w0x15d, 12w0x5f);
                        }
                    } else {
                        hand_off(16w0x157, 12w0x59);
                    }
                } else {
                    hand_off(16w0x15e, 12w0x60);
                }
            } else if (meta.arm == 16w0x80) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                        discard(16w0xa0);
                    } else {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                discard(16w0xa0);
                            } else {
                                meta.arm = 16w0x88;
                            }
                        } else {
                            hand_off(16w0x163, 12w0x65);
                        }
                    }
                } else {
                    meta.arm = 16w0x88;
                }
            } else if (meta.arm == 16w0x89) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x124, 12w0x26);
                        } else {
                            hand_off(16w0x12a, 12w0x2c);
                        }
                    } else {
                        hand_off(16w0x125, 12w0x27);
                    }
                } else {
                    hand_off(16w0x12b, 12w0x2d);
                }
            } else if (meta.arm == 16w0x93) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (standard_metadata.packet_length >= 32w0x26) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                            discard(16w0xa3);
                        } else {
                            meta.arm = 16w0x99;
                        }
                    } else {
                        hand_off(16w0x165, 12w0x67);
                    }
                } else {
                    meta.arm = 16w0x99;
                }
            } else if (meta.arm == 16w0x9a) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x127, 12w0x29);
                        } else {
                            hand_off(16w0x12d, 12w0x2f);
                        }
                    } else {
                        hand_off(16w0x128, 12w0x2a);
                    }
                } else {
                    hand_off(16w0x12e, 12w0x30);
                }
            }
            if (meta.arm == 16w0x88) {
                // wan/ICMPError@18 (ip-router.click:27)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x164, 12w0x66);
                        } else {
                            discard(16w0xa1);
                        }
                    } else {
                        discard(16w0x8e);
                    }
                } else {
                    discard(16w0xa2);
                }
            } else if (meta.arm == 16w0x99) {
                // wan/ICMPError@19 (ip-router.click:28)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x166, 12w0x68);
                        } else {
                            discard(16w0xa4);
                        }
                    } else {
                        discard(16w0x9f);
                    }
                } else {
                    discard(16w0xa5);
                }
            }
        } else if (standard_metadata.ingress_port == 9w0x4) {
            // wan/HostEtherFilter@1 (ip-router.click:15)
            if (standard_metadata.packet_length >= 32w0x22) {
                // wan/HostEtherFilter@1 (ip-router.click:15)
                if (hdr.ethernet.dst == 48w0x20000002001) {
                    // wan/kind (ip-router.click:16)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        // wan/kind (ip-router.click:16)
                        key373_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                        rules373.apply();
                    } else {
                        hand_off(16w0x2be, 12w0xc1);
                    }
                } else {
                    // wan/HostEtherFilter@1 (ip-router.click:15)
                    if (hdr.ethernet.dst == 48w0xffffffffffff) {
                        // wan/kind (ip-router.click:16)
                        if (hdr.ethernet.ether_type == 16w0x800) {
                            // wan/kind (ip-router.click:16)
                            key380_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                            rules380.apply();
                        } else {
                            hand_off(16w0x2bf, 12w0xc2);
                        }
                    } else {
                        // wan/HostEtherFilter@1 (ip-router.click:15)
                        if (hdr.ethernet.dst[40:40] == 1w0x1) {
                            // wan/kind (ip-router.click:16)
                            if (hdr.ethernet.ether_type == 16w0x800) {
                                // wan/kind (ip-router.click:16)
                                key383_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                rules383.apply();
                            } else {
                                hand_off(16w0x2c0, 12w0xc3);
                            }
                        } else {
                            discard(16w0x270);
                        }
                    }
                }
            } else {
                // wan/HostEtherFilter@1 (ip-router.click:15)
                if (standard_metadata.packet_length <= 32w0xd) {
                    discard(16w0x181);
                } else {
                    // wan/HostEtherFilter@1 (ip-router.click:15)
                    if (hdr.ethernet.dst == 48w0x20000002001) {
                        // wan/kind (ip-router.click:16)
                        if (standard_metadata.packet_length >= 32w0x16) {
                            // wan/kind (ip-router.click:16)
                            if (standard_metadata.packet_length >= 32w0x22) {
                                // wan/kind (ip-router.click:16)
                                if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                    // wan/kind (ip-router.click:16)
                                    if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                        key390_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                        rules390.apply();
                                    } else {
                                        discard(16w0x26f);
                                    }
                                } else {
                                    hand_off(16w0x2c1, 12w0xc4);
                                }
                            } else {
                                hand_off(16w0x2c1, 12w0xc4);
                            }
                        } else {
                            meta.arm = 16w0x26c;
                        }
                    } else {
                        // wan/HostEtherFilter@1 (ip-router.click:15)
                        if (hdr.ethernet.dst == 48w0xffffffffffff) {
                            // wan/kind (ip-router.click:16)
                            if (standard_metadata.packet_length >= 32w0x16) {
                                // wan/kind (ip-router.click:16)
                                if (standard_metadata.packet_length >= 32w0x22) {
                                    // wan/kind (ip-router.click:16)
                                    if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                        // wan/kind (ip-router.click:16)
                                        if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                            key548_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                            rules548.apply();
                                        } else {
                                            discard(16w0x26f);
                                        }
                                    } else {
                                        hand_off(16w0x2da, 12w0xdd);
                                    }
                                } else {
                                    hand_off(16w0x2da, 12w0xdd);
                                }
                            } else {
                                meta.arm = 16w0x26c;
                            }
                        } else {
                            // wan/HostEtherFilter@1 (ip-router.click:15)
                            if (hdr.ethernet.dst[40:40] == 1w0x1) {
                                // wan/kind (ip-router.click:16)
                                if (standard_metadata.packet_length >= 32w0x16) {
                                    // wan/kind (ip-router.click:16)
                                    if (standard_metadata.packet_length >= 32w0x22) {
                                        // wan/kind (ip-router.click:16)
                                        if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == 16w0x800) {
                                            // wan/kind (ip-router.click:16)
                                            if (hdr.ethernet.isValid() && hdr.ipv4.isValid()) {
                                                key578_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                                                rules578.apply();
                                            } else {
                                                discard(16w0x26f);
                                            }
                                        } else {
                                            hand_off(16w0x2df, 12w0xe2);
                                        }
                                    } else {
                                        hand_off(16w0x2df, 12w0xe2);
                                    }
                                } else {
                                    meta.arm = 16w0x26c;
                                }
                            } else {
                                discard(16w0x270);
                            }
                        }
                    }
                }
            }
            if (meta.arm == 16w0x176) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.ihl == 4w0x5) {
                        // wan/CheckIPHeader@7 (ip-router.click:20)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // wan/CheckIPHeader@7 (ip-router.click:20)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                meta.arm = 16w0x194;
                            } else {
                                discard(16w0x26a);
                            }
                        } else {
                            discard(16w0x26a);
                        }
                    } else {
                        // wan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.ihl <= 4w0x4) {
                            discard(16w0x251);
                        } else {
                            // wan/CheckIPHeader@7 (ip-router.click:20)
                            if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                                // wan/CheckIPHeader@7 (ip-router.click:20)
                                if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                    // wan/CheckIPHeader@7 (ip-router.click:20)
                                    if (hdr.ipv4.ihl == 4w0x5) {
                                        meta.arm = 16w0x194;
                                    } else {
                                        hand_off(16w0x2d9, 12w0xdc);
                                    }
                                } else {
                                    discard(16w0x26a);
                                }
                            } else {
                                discard(16w0x26a);
                            }
                        }
                    }
                } else {
                    discard(16w0x26b);
                }
            } else if (meta.arm == 16w0x187) {
                // wan/arp (ip-router.click:18)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x24d);
                } else {
                    // wan/arp (ip-router.click:18)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // wan/arp (ip-router.click:18)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // wan/arp (ip-router.click:18)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0x2c2, 12w0xc5);
                            } else {
                                discard(16w0x24d);
                            }
                        } else {
                            discard(16w0x24d);
                        }
                    } else {
                        discard(16w0x24d);
                    }
                }
            } else if (meta.arm == 16w0x18b) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0x26e);
                } else {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl <= 4w0x4) {
                        hand_off(16w0x2a2, 12w0xa5);
                    } else {
                        // wan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.isValid() && (((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // wan/CheckIPHeader@7 (ip-router.click:20)
                            if (hdr.ipv4.isValid() && (((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // wan/CheckIPHeader@7 (ip-router.click:20)
                                if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                    // wan/CheckIPHeader@7 (ip-router.click:20)
                                    if (hdr.ipv4.isValid() && standard_metadata.checksum_error == 1w0) {
                                        // wan/CheckIPHeader@7 (ip-router.click:20)
                                        if (hdr.ipv4.isValid() && !((hdr.ipv4.src >= 32w0x1 && hdr.ipv4.src <= 32w0xa0000fe) || (hdr.ipv4.src >= 32w0xa000100 && hdr.ipv4.src <= 32w0x140000fe) || (hdr.ipv4.src >= 32w0x14000100 && hdr.ipv4.src <= 32w0xfffffffe))) {
                                            // wan/CheckIPHeader@7 (ip-router.click:20)
                                            if (hdr.ipv4.isValid() && (hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                                                meta.arm = 16w0x1c7;
                                            } else {
                                                hand_off(16w0x2a3, 12w0xa6);
                                            }
                                        } else {
                                            // routes (ip-router.click:34)
                                            if (hdr.ipv4.isValid()) {
                                                routes411.apply();
                                            } else {
                                                hand_off(16w0x2a5, 12w0xa8);
                                            }
                                        }
                                    } else {
                                        hand_off(16w0x2a6, 12w0xa9);
                                    }
                                } else {
                                    hand_off(16w0x2a1, 12w0xa4);
                                }
                            } else {
                                hand_off(16w0x2a7, 12w0xaa);
                            }
                        } else {
                            hand_off(16w0x2a7, 12w0xaa);
                        }
                    }
                }
            } else if (meta.arm == 16w0x225) {
                // wan/arp (ip-router.click:18)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x24d);
                } else {
                    // wan/arp (ip-router.click:18)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // wan/arp (ip-router.click:18)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // wan/arp (ip-router.click:18)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0x2db, 12w0xde);
                            } else {
                                discard(16w0x24d);
                            }
                        } else {
                            discard(16w0x24d);
                        }
                    } else {
                        discard(16w0x24d);
                    }
                }
            } else if (meta.arm == 16w0x229) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0x26e);
                } else {
                    meta.arm = 16w0x22a;
                }
            } else if (meta.arm == 16w0x243) {
                // wan/ARPResponder@3 (ip-router.click:17)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x248);
                } else {
                    // wan/ARPResponder@3 (ip-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // wan/ARPResponder@3 (ip-router.click:17)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // wan/ARPResponder@3 (ip-router.click:17)
                            if (hdr.arp.isValid()) {
                                rules582.apply();
                            } else {
                                discard(16w0x248);
                            }
                        } else {
                            discard(16w0x248);
                        }
                    } else {
                        discard(16w0x248);
                    }
                }
            } else if (meta.arm == 16w0x249) {
                // wan/arp (ip-router.click:18)
                if (standard_metadata.packet_length <= 32w0x29) {
                    discard(16w0x24d);
                } else {
                    // wan/arp (ip-router.click:18)
                    if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                        // wan/arp (ip-router.click:18)
                        if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                            // wan/arp (ip-router.click:18)
                            if (hdr.arp.isValid() && hdr.arp.sha[40:40] == 1w0x0) {
                                hand_off(16w0x2e0, 12w0xe3);
                            } else {
                                discard(16w0x24d);
                            }
                        } else {
                            discard(16w0x24d);
                        }
                    } else {
                        discard(16w0x24d);
                    }
                }
            } else if (meta.arm == 16w0x24e) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0x26e);
                } else {
                    meta.arm = 16w0x24f;
                }
            } else if (meta.arm == 16w0x26c) {
                // wan/kind (ip-router.click:16)
                if (hdr.ethernet.ether_type == 16w0x806) {
                    discard(16w0x26f);
                } else {
                    // wan/kind (ip-router.click:16)
                    if (hdr.ethernet.ether_type == 16w0x800) {
                        discard(16w0x26e);
                    } else {
                        discard(16w0x26f);
                    }
                }
            }
            if (meta.arm == 16w0x194) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (standard_metadata.checksum_error == 1w0) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (!((hdr.ipv4.src >= 32w0x1 && hdr.ipv4.src <= 32w0xa0000fe) || (hdr.ipv4.src >= 32w0xa000100 && hdr.ipv4.src <= 32w0x140000fe) || (hdr.ipv4.src >= 32w0x14000100 && hdr.ipv4.src <= 32w0xfffffffe))) {
                        // wan/CheckIPHeader@7 (ip-router.click:20)
                        if ((hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                            meta.arm = 16w0x1c6;
                        } else {
                            discard(16w0x264);
                        }
                    } else {
                        // routes (ip-router.click:34)
                        routes410.apply();
                    }
                } else {
                    discard(16w0x269);
                }
            } else if (meta.arm == 16w0x1a1) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.ttl <= 8w0x1) {
                    meta.arm = 16w0x1d3;
                } else {
                    // lan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && hdr.ipv4.len <= 16w0x5dc) {
                        hand_off(16w0x283, 12w0x86);
                    } else {
                        // lan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            meta.arm = 16w0x1e6;
                        } else {
                            hand_off(16w0x284, 12w0x87);
                        }
                    }
                }
            } else if (meta.arm == 16w0x1a7) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.ttl <= 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            hand_off(16w0x28d, 12w0x90);
                        } else {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.transport.isValid() && ((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    hand_off(16w0x28d, 12w0x90);
                                } else {
                                    meta.arm = 16w0x1b1;
                                }
                            } else {
                                hand_off(16w0x285, 12w0x88);
                            }
                        }
                    } else {
                        meta.arm = 16w0x1b1;
                    }
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && hdr.ipv4.len <= 16w0x240) {
                        hand_off(16w0x288, 12w0x8b);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (standard_metadata.packet_length >= 32w0x26) {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.transport.isValid() && ((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                        hand_off(16w0x290, 12w0x93);
                                    } else {
                                        meta.arm = 16w0x1c1;
                                    }
                                } else {
                                    hand_off(16w0x289, 12w0x8c);
                                }
                            } else {
                                meta.arm = 16w0x1c1;
                            }
                        } else {
                            hand_off(16w0x28c, 12w0x8f);
                        }
                    }
                }
            } else if (meta.arm == 16w0x1c7) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        hand_off(16w0x2a4, 12w0xa7);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@4 (ip-router.click:45)
                            if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                                hand_off(16w0x294, 12w0x97);
                            } else {
                                hand_off(16w0x2a4, 12w0xa7);
                            }
                        } else {
                            hand_off(16w0x293, 12w0x96);
                        }
                    }
                } else {
                    hand_off(16w0x2a4, 12w0xa7);
                }
            } else if (meta.arm == 16w0x1f8) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.ttl <= 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            hand_off(16w0x27b, 12w0x7e);
                        } else {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.transport.isValid() && ((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    hand_off(16w0x27b, 12w0x7e);
                                } else {
                                    meta.arm = 16w0x202;
                                }
                            } else {
                                hand_off(16w0x273, 12w0x76);
                            }
                        }
                    } else {
                        meta.arm = 16w0x202;
                    }
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && hdr.ipv4.len <= 16w0x240) {
                        hand_off(16w0x276, 12w0x79);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (standard_metadata.packet_length >= 32w0x26) {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.transport.isValid() && ((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                        hand_off(16w0x27e, 12w0x81);
                                    } else {
                                        meta.arm = 16w0x212;
                                    }
                                } else {
                                    hand_off(16w0x277, 12w0x7a);
                                }
                            } else {
                                meta.arm = 16w0x212;
                            }
                        } else {
                            hand_off(16w0x27a, 12w0x7d);
                        }
                    }
                }
            } else if (meta.arm == 16w0x22a) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.ihl <= 4w0x4) {
                        discard(16w0x251);
                    } else {
                        // wan/CheckIPHeader@7 (ip-router.click:20)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // wan/CheckIPHeader@7 (ip-router.click:20)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // wan/CheckIPHeader@7 (ip-router.click:20)
                                if (hdr.ipv4.ihl == 4w0x5) {
                                    // wan/CheckIPHeader@7 (ip-router.click:20)
                                    if (standard_metadata.checksum_error == 1w0) {
                                        // wan/CheckIPHeader@7 (ip-router.click:20)
                                        if (!((hdr.ipv4.src >= 32w0x1 && hdr.ipv4.src <= 32w0xa0000fe) || (hdr.ipv4.src >= 32w0xa000100 && hdr.ipv4.src <= 32w0x140000fe) || (hdr.ipv4.src >= 32w0x14000100 && hdr.ipv4.src <= 32w0xfffffffe))) {
                                            // wan/CheckIPHeader@7 (ip-router.click:20)
                                            if ((hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                                                meta.arm = 16w0x235;
                                            } else {
                                                discard(16w0x264);
                                            }
                                        } else {
                                            // routes (ip-router.click:34)
                                            routes562.apply();
                                        }
                                    } else {
                                        discard(16w0x269);
                                    }
                                } else {
                                    hand_off(16w0x2de, 12w0xe1);
                                }
                            } else {
                                discard(16w0x26a);
                            }
                        } else {
                            discard(16w0x26a);
                        }
                    }
                } else {
                    discard(16w0x26b);
                }
            } else if (meta.arm == 16w0x24f) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.ihl <= 4w0x4) {
                        discard(16w0x251);
                    } else {
                        // wan/CheckIPHeader@7 (ip-router.click:20)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // wan/CheckIPHeader@7 (ip-router.click:20)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // wan/CheckIPHeader@7 (ip-router.click:20)
                                if (hdr.ipv4.ihl == 4w0x5) {
                                    // wan/CheckIPHeader@7 (ip-router.click:20)
                                    if (standard_metadata.checksum_error == 1w0) {
                                        // wan/CheckIPHeader@7 (ip-router.click:20)
                                        if (!((hdr.ipv4.src >= 32w0x1 && hdr.ipv4.src <= 32w0xa0000fe) || (hdr.ipv4.src >= 32w0xa000100 && hdr.ipv4.src <= 32w0x140000fe) || (hdr.ipv4.src >= 32w0x14000100 && hdr.ipv4.src <= 32w0xfffffffe))) {
                                            // wan/CheckIPHeader@7 (ip-router.click:20)
                                            if ((hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                                                meta.arm = 16w0x25b;
                                            } else {
                                                discard(16w0x264);
                                            }
                                        } else {
                                            // routes (ip-router.click:34)
                                            routes600.apply();
                                        }
                                    } else {
                                        discard(16w0x269);
                                    }
                                } else {
                                    hand_off(16w0x2e3, 12w0xe6);
                                }
                            } else {
                                discard(16w0x26a);
                            }
                        } else {
                            discard(16w0x26a);
                        }
                    }
                } else {
                    discard(16w0x26b);
                }
            }
            if (meta.arm == 16w0x1a0) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.ttl <= 8w0x1) {
                    meta.arm = 16w0x1d2;
                } else {
                    // lan/fragment (ip-router.click:24)
                    if (hdr.ipv4.len <= 16w0x5dc) {
                        hand_off(16w0x2c3, 12w0xc6);
                    } else {
                        // lan/fragment (ip-router.click:24)
                        if (hdr.ipv4.flags[1:1] == 1w0x1) {
                            meta.arm = 16w0x1e5;
                        } else {
                            hand_off(16w0x2c4, 12w0xc7);
                        }
                    }
                }
            } else if (meta.arm == 16w0x1a6) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.ttl <= 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            hand_off(16w0x2cd, 12w0xd0);
                        } else {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    hand_off(16w0x2cd, 12w0xd0);
                                } else {
                                    meta.arm = 16w0x1b0;
                                }
                            } else {
                                hand_off(16w0x2c5, 12w0xc8);
                            }
                        }
                    } else {
                        meta.arm = 16w0x1b0;
                    }
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.len <= 16w0x240) {
                        hand_off(16w0x2c8, 12w0xcb);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.flags[1:1] == 1w0x1) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.protocol == 8w0x1) {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (standard_metadata.packet_length >= 32w0x26) {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                        hand_off(16w0x2d0, 12w0xd3);
                                    } else {
                                        meta.arm = 16w0x1c0;
                                    }
                                } else {
                                    hand_off(16w0x2c9, 12w0xcc);
                                }
                            } else {
                                meta.arm = 16w0x1c0;
                            }
                        } else {
                            hand_off(16w0x2cc, 12w0xcf);
                        }
                    }
                }
            } else if (meta.arm == 16w0x1b1) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x286, 12w0x89);
                        } else {
                            hand_off(16w0x28e, 12w0x91);
                        }
                    } else {
                        hand_off(16w0x287, 12w0x8a);
                    }
                } else {
                    hand_off(16w0x28f, 12w0x92);
                }
            } else if (meta.arm == 16w0x1c1) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x28a, 12w0x8d);
                        } else {
                            hand_off(16w0x291, 12w0x94);
                        }
                    } else {
                        hand_off(16w0x28b, 12w0x8e);
                    }
                } else {
                    hand_off(16w0x292, 12w0x95);
                }
            } else if (meta.arm == 16w0x1c6) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0x267);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@4 (ip-router.click:45)
                            if (hdr.transport.sport[15:8] == 8w0x8) {
                                hand_off(16w0x2d4, 12w0xd7);
                            } else {
                                discard(16w0x267);
                            }
                        } else {
                            hand_off(16w0x2d3, 12w0xd6);
                        }
                    }
                } else {
                    discard(16w0x267);
                }
            } else if (meta.arm == 16w0x1d3) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                        hand_off(16w0x29b, 12w0x9e);
                    } else {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (hdr.transport.isValid() && ((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                hand_off(16w0x29b, 12w0x9e);
                            } else {
                                meta.arm = 16w0x1db;
                            }
                        } else {
                            hand_off(16w0x295, 12w0x98);
                        }
                    }
                } else {
                    meta.arm = 16w0x1db;
                }
            } else if (meta.arm == 16w0x1e6) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (standard_metadata.packet_length >= 32w0x26) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.transport.isValid() && ((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                            hand_off(16w0x29e, 12w0xa1);
                        } else {
                            meta.arm = 16w0x1ec;
                        }
                    } else {
                        hand_off(16w0x298, 12w0x9b);
                    }
                } else {
                    meta.arm = 16w0x1ec;
                }
            } else if (meta.arm == 16w0x1f9) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.ttl <= 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            hand_off(16w0x2b2, 12w0xb5);
                        } else {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    hand_off(16w0x2b2, 12w0xb5);
                                } else {
                                    meta.arm = 16w0x203;
                                }
                            } else {
                                hand_off(16w0x2aa, 12w0xad);
                            }
                        }
                    } else {
                        meta.arm = 16w0x203;
                    }
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.len <= 16w0x240) {
                        hand_off(16w0x2ad, 12w0xb0);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.flags[1:1] == 1w0x1) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.protocol == 8w0x1) {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (standard_metadata.packet_length >= 32w0x26) {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                        hand_off(16w0x2b5, 12w0xb8);
                                    } else {
                                        meta.arm = 16w0x213;
                                    }
                                } else {
                                    hand_off(16w0x2ae, 12w0xb1);
                                }
                            } else {
                                meta.arm = 16w0x213;
                            }
                        } else {
                            hand_off(16w0x2b1, 12w0xb4);
                        }
                    }
                }
            } else if (meta.arm == 16w0x202) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x274, 12w0x77);
                        } else {
                            hand_off(16w0x27c, 12w0x7f);
                        }
                    } else {
                        hand_off(16w0x275, 12w0x78);
                    }
                } else {
                    hand_off(16w0x27d, 12w0x80);
                }
            } else if (meta.arm == 16w0x212) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x278, 12w0x7b);
                        } else {
                            hand_off(16w0x27f, 12w0x82);
                        }
                    } else {
                        hand_off(16w0x279, 12w0x7c);
                    }
                } else {
                    hand_off(16w0x280, 12w0x83);
                }
            } else if (meta.arm == 16w0x235) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0x267);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@4 (ip-router.click:45)
                            if (hdr.transport.sport[15:8] == 8w0x8) {
                                hand_off(16w0x2dd, 12w0xe0);
                            } else {
                                discard(16w0x267);
                            }
                        } else {
                            hand_off(16w0x2dc, 12w0xdf);
                        }
                    }
                } else {
                    discard(16w0x267);
                }
            } else if (meta.arm == 16w0x25b) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x1b)) {
                        discard(16w0x267);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // ICMPPingResponder@4 (ip-router.click:45)
                            if (hdr.transport.sport[15:8] == 8w0x8) {
                                hand_off(16w0x2e2, 12w0xe5);
                            } else {
                                discard(16w0x267);
                            }
                        } else {
                            hand_off(16w0x2e1, 12w0xe4);
                        }
                    }
                } else {
                    discard(16w0x267);
                }
            }
            if (meta.arm == 16w0x1b0) {
                // wan/ICMPError@18 (ip-router.click:27)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x2c6, 12w0xc9);
                        } else {
                            hand_off(16w0x2ce, 12w0xd1);
                        }
                    } else {
                        hand_off(16w0x2c7, 12w0xca);
                    }
                } else {
                    hand_off(16w0x2cf, 12w0xd2);
                }
            } else if (meta.arm == 16w0x1c0) {
                // wan/ICMPError@19 (ip-router.click:28)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x2ca, 12w0xcd);
                        } else {
                            hand_off(16w0x2d1, 12w0xd4);
                        }
                    } else {
                        hand_off(16w0x2cb, 12w0xce);
                    }
                } else {
                    hand_off(16w0x2d2, 12w0xd5);
                }
            } else if (meta.arm == 16w0x1d2) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                        discard(16w0x1f2);
                    } else {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                discard(16w0x1f2);
                            } else {
                                meta.arm = 16w0x1da;
                            }
                        } else {
                            hand_off(16w0x2d5, 12w0xd8);
                        }
                    }
                } else {
                    meta.arm = 16w0x1da;
                }
            } else if (meta.arm == 16w0x1db) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x296, 12w0x99);
                        } else {
                            hand_off(16w0x29c, 12w0x9f);
                        }
                    } else {
                        hand_off(16w0x297, 12w0x9a);
                    }
                } else {
                    hand_off(16w0x29d, 12w0xa0);
                }
            } else if (meta.arm == 16w0x1e5) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (standard_metadata.packet_length >= 32w0x26) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                            discard(16w0x1f5);
                        } else {
                            meta.arm = 16w0x1eb;
                        }
                    } else {
                        hand_off(16w0x2d7, 12w0xda);
                    }
                } else {
                    meta.arm = 16w0x1eb;
                }
            } else if (meta.arm == 16w0x1ec) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && (hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x299, 12w0x9c);
                        } else {
                            hand_off(16w0x29f, 12w0xa2);
                        }
                    } else {
                        hand_off(16w0x29a, 12w0x9d);
                    }
                } else {
                    hand_off(16w0x2a0, 12w0xa3);
                }
            } else if (meta.arm == 16w0x203) {
                // wan/ICMPError@18 (ip-router.click:27)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x2ab, 12w0xae);
                        } else {
                            hand_off(16w0x2b3, 12w0xb6);
                        }
                    } else {
                        hand_off(16w0x2ac, 12w0xaf);
                    }
                } else {
                    hand_off(16w0x2b4, 12w0xb7);
                }
            } else if (meta.arm == 16w0x213) {
                // wan/ICMPError@19 (ip-router.click:28)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x2af, 12w0xb2);
                        } else {
                            hand_off(16w0x2b6, 12w0xb9);
                        }
                    } else {
                        hand_off(16w0x2b0, 12w0xb3);
                    }
                } else {
                    hand_off(16w0x2b7, 12w0xba);
                }
            }
            if (meta.arm == 16w0x1da) {
                // lan/ICMPError@18 (ip-router.click:27)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x2d6, 12w0xd9);
                        } else {
                            discard(16w0x1f3);
                        }
                    } else {
                        discard(16w0x1e0);
                    }
                } else {
                    discard(16w0x1f4);
                }
            } else if (meta.arm == 16w0x1eb) {
                // lan/ICMPError@19 (ip-router.click:28)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x2d8, 12w0xdb);
                        } else {
                            discard(16w0x1f6);
                        }
                    } else {
                        discard(16w0x1f1);
                    }
                } else {
                    discard(16w0x1f7);
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
