// Compile with p4c-bm2-ss, or check with p4test.
// What tables hold is in entries.json, in the terms of P4Runtime; commands.txt holds the same for simple_switch_CLI.
#include <core.p4>
#include <v1model.p4>

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
    bit<16> class;
    bit<16> zero;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        meta.arm = 16w0x0;
        meta.class = 16w0x116;
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

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w5, { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.checksum, hdr.ipv4.src, hdr.ipv4.dst }, meta.zero, HashAlgorithm.csum16);
    }
}

control Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Packets and bytes of each exit, by its number; of frames from the cores and elsewhere behind them
    counter(279, CounterType.packets_and_bytes) classes;

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
    action leave(bit<16> number, bit<9> port, bit<48> ethernet_dst, bit<48> ethernet_src, bit<16> ethernet_ether_type) {
        meta.class = number;
        truncate((((bit<32>)hdr.ipv4.len) + 32w0xe));
        bit<32> sum0 = (bit<32>)(~hdr.ipv4.checksum) + 32w0xf5ff;
        sum0 = (sum0 & 32w0xffff) + (sum0 >> 16);
        sum0 = (sum0 & 32w0xffff) + (sum0 >> 16);
        hdr.ethernet.dst = ethernet_dst;
        hdr.ethernet.src = ethernet_src;
        hdr.ethernet.ether_type = ethernet_ether_type;
        hdr.ipv4.ttl = (hdr.ipv4.ttl - 8w0xa);
        hdr.ipv4.checksum = (~sum0[15:0]);
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

    // Classifier@2 (ten-routers.click:20)
    table rules1 {
        key = {
            hdr.ethernet.ether_type: exact;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xf8);
        size = 1;
    }

    // Classifier@2 (ten-routers.click:20)
    table rules51 {
        key = {
            hdr.ethernet.ether_type: exact;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xf8);
        size = 1;
    }

    // r1/routes (ten-routers.click:8)
    table routes7 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xf4);
        size = 4;
    }

    // r2/routes (ten-routers.click:8)
    table routes12 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xed);
        size = 4;
    }

    // r2/routes (ten-routers.click:8)
    table routes32 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xed);
        size = 4;
    }

    // r2/routes (ten-routers.click:8)
    table routes73 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xed);
        size = 4;
    }

    // r3/routes (ten-routers.click:8)
    table routes14 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xea);
        size = 4;
    }

    // r4/routes (ten-routers.click:8)
    table routes16 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xe7);
        size = 4;
    }

    // r5/routes (ten-routers.click:8)
    table routes18 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xe4);
        size = 4;
    }

    // r6/routes (ten-routers.click:8)
    table routes20 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xe1);
        size = 4;
    }

    // r7/routes (ten-routers.click:8)
    table routes22 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xde);
        size = 4;
    }

    // r8/routes (ten-routers.click:8)
    table routes24 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xdb);
        size = 4;
    }

    // r9/routes (ten-routers.click:8)
    table routes26 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xd8);
        size = 4;
    }

    // r10/routes (ten-routers.click:8)
    table routes28 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xd5);
        size = 4;
    }

    // r3/routes (ten-routers.click:8)
    table routes34 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xea);
        size = 4;
    }

    // r4/routes (ten-routers.click:8)
    table routes36 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xe7);
        size = 4;
    }

    // r5/routes (ten-routers.click:8)
    table routes38 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xe4);
        size = 4;
    }

    // r6/routes (ten-routers.click:8)
    table routes40 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xe1);
        size = 4;
    }

    // r7/routes (ten-routers.click:8)
    table routes42 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xde);
        size = 4;
    }

    // r8/routes (ten-routers.click:8)
    table routes44 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xdb);
        size = 4;
    }

    // r9/routes (ten-routers.click:8)
    table routes46 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xd8);
        size = 4;
    }

    // r10/routes (ten-routers.click:8)
    table routes48 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xd5);
        size = 4;
    }

    // r3/routes (ten-routers.click:8)
    table routes84 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xea);
        size = 4;
    }

    // r4/routes (ten-routers.click:8)
    table routes95 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xe7);
        size = 4;
    }

    // r5/routes (ten-routers.click:8)
    table routes106 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xe4);
        size = 4;
    }

    // r6/routes (ten-routers.click:8)
    table routes117 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xe1);
        size = 4;
    }

    // r7/routes (ten-routers.click:8)
    table routes128 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xde);
        size = 4;
    }

    // r8/routes (ten-routers.click:8)
    table routes139 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xdb);
        size = 4;
    }

    // r9/routes (ten-routers.click:8)
    table routes150 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xd8);
        size = 4;
    }

    // r10/routes (ten-routers.click:8)
    table routes161 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            discard;
        }
        default_action = discard(16w0xd5);
        size = 4;
    }

    apply {
        if (standard_metadata.ingress_port == CORES) {
            if (hdr.tag.isValid()) {
                ports.apply();
            } else {
                lost();
            }
        } else if (standard_metadata.ingress_port == 9w0x1) {
            // Classifier@2 (ten-routers.click:20)
            if (standard_metadata.packet_length >= 32w0x22) {
                // Classifier@2 (ten-routers.click:20)
                rules1.apply();
            } else {
                // Classifier@2 (ten-routers.click:20)
                if (standard_metadata.packet_length >= 32w0xe) {
                    // Classifier@2 (ten-routers.click:20)
                    rules51.apply();
                } else {
                    discard(16w0xf8);
                }
            }
            if (meta.arm == 16w0x2) {
                // r1/CheckIPHeader@2 (ten-routers.click:7)
                if (hdr.ipv4.version == 4w0x4) {
                    // r1/CheckIPHeader@2 (ten-routers.click:7)
                    if (hdr.ipv4.ihl == 4w0x5) {
                        // r1/CheckIPHeader@2 (ten-routers.click:7)
                        if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // r1/CheckIPHeader@2 (ten-routers.click:7)
                            if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // r1/CheckIPHeader@2 (ten-routers.click:7)
                                if (standard_metadata.checksum_error == 1w0) {
                                    // r1/routes (ten-routers.click:8)
                                    routes7.apply();
                                } else {
                                    discard(16w0xf5);
                                }
                            } else {
                                discard(16w0xf6);
                            }
                        } else {
                            discard(16w0xf6);
                        }
                    } else {
                        // r1/CheckIPHeader@2 (ten-routers.click:7)
                        if (hdr.ipv4.ihl <= 4w0x4) {
                            discard(16w0x38);
                        } else {
                            // r1/CheckIPHeader@2 (ten-routers.click:7)
                            if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                                // r1/CheckIPHeader@2 (ten-routers.click:7)
                                if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                    // r1/CheckIPHeader@2 (ten-routers.click:7)
                                    if (hdr.ipv4.ihl == 4w0x5) {
                                        hand_off(16w0xfd, 12w0x5);
                                    } else {
                                        hand_off(16w0x115, 12w0x1d);
                                    }
                                } else {
                                    discard(16w0xf6);
                                }
                            } else {
                                discard(16w0xf6);
                            }
                        }
                    }
                } else {
                    discard(16w0xf7);
                }
            } else if (meta.arm == 16w0x34) {
                // r1/CheckIPHeader@2 (ten-routers.click:7)
                if ((standard_metadata.packet_length >= 32w0xe && standard_metadata.packet_length <= 32w0x21)) {
                    discard(16w0x35);
                } else {
                    // r1/CheckIPHeader@2 (ten-routers.click:7)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl <= 4w0x4) {
                        hand_off(16w0xfa, 12w0x2);
                    } else {
                        // r1/CheckIPHeader@2 (ten-routers.click:7)
                        if (hdr.ipv4.isValid() && (((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                            // r1/CheckIPHeader@2 (ten-routers.click:7)
                            if (hdr.ipv4.isValid() && (((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                                // r1/CheckIPHeader@2 (ten-routers.click:7)
                                if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                    hand_off(16w0xf9, 12w0x1);
                                } else {
                                    hand_off(16w0xfb, 12w0x3);
                                }
                            } else {
                                hand_off(16w0xfc, 12w0x4);
                            }
                        } else {
                            hand_off(16w0xfc, 12w0x4);
                        }
                    }
                }
            }
            if (meta.arm == 16w0x9) {
                // r1/DropBroadcasts@5 (ten-routers.click:9)
                if (hdr.ethernet.dst[40:40] == 1w0x1) {
                    discard(16w0xf1);
                } else {
                    // r1/ttl (ten-routers.click:9)
                    if (hdr.ipv4.ttl == 8w0xa) {
                        // r1/fragment (ten-routers.click:10)
                        if ((hdr.ipv4.len <= 16w0x13 || (hdr.ipv4.len >= 16w0x18 && hdr.ipv4.len <= 16w0x5dc))) {
                            // r2/routes (ten-routers.click:8)
                            routes12.apply();
                        } else {
                            // r1/fragment (ten-routers.click:10)
                            if (hdr.ipv4.len <= 16w0x5dc) {
                                // r2/routes (ten-routers.click:8)
                                routes32.apply();
                            } else {
                                meta.arm = 16w0xad;
                            }
                        }
                    } else {
                        // r1/ttl (ten-routers.click:9)
                        if (hdr.ipv4.ttl <= 8w0x1) {
                            // r1/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.protocol == 8w0x1) {
                                // r1/ICMPError@18 (ten-routers.click:15)
                                if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                                    discard(16w0xb5);
                                } else {
                                    // r1/ICMPError@18 (ten-routers.click:15)
                                    if (standard_metadata.packet_length >= 32w0x26) {
                                        // r1/ICMPError@18 (ten-routers.click:15)
                                        if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                            discard(16w0xb5);
                                        } else {
                                            meta.arm = 16w0x44;
                                        }
                                    } else {
                                        hand_off(16w0xfe, 12w0x6);
                                    }
                                }
                            } else {
                                meta.arm = 16w0x44;
                            }
                        } else {
                            // r1/fragment (ten-routers.click:10)
                            if (hdr.ipv4.len <= 16w0x5dc) {
                                // r2/routes (ten-routers.click:8)
                                routes73.apply();
                            } else {
                                meta.arm = 16w0xad;
                            }
                        }
                    }
                }
            }
            if (meta.arm == 16w0xe) {
                // r3/routes (ten-routers.click:8)
                routes14.apply();
            } else if (meta.arm == 16w0x22) {
                // r3/routes (ten-routers.click:8)
                routes34.apply();
            } else if (meta.arm == 16w0x44) {
                // r1/ICMPError@18 (ten-routers.click:15)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r1/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r1/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0xff, 12w0x7);
                        } else {
                            discard(16w0xb6);
                        }
                    } else {
                        discard(16w0x47);
                    }
                } else {
                    discard(16w0xb7);
                }
            } else if (meta.arm == 16w0x4b) {
                // r2/ttl (ten-routers.click:9)
                if ((hdr.ipv4.ttl >= 8w0x1 && hdr.ipv4.ttl <= 8w0x2)) {
                    // r2/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // r2/ICMPError@18 (ten-routers.click:15)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            discard(16w0xb8);
                        } else {
                            // r2/ICMPError@18 (ten-routers.click:15)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // r2/ICMPError@18 (ten-routers.click:15)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    discard(16w0xb8);
                                } else {
                                    meta.arm = 16w0x50;
                                }
                            } else {
                                hand_off(16w0x100, 12w0x8);
                            }
                        }
                    } else {
                        meta.arm = 16w0x50;
                    }
                } else {
                    // r3/routes (ten-routers.click:8)
                    routes84.apply();
                }
            } else if (meta.arm == 16w0xad) {
                // r1/fragment (ten-routers.click:10)
                if (hdr.ipv4.flags[1:1] == 1w0x1) {
                    // r1/ICMPError@19 (ten-routers.click:16)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // r1/ICMPError@19 (ten-routers.click:16)
                        if (standard_metadata.packet_length >= 32w0x26) {
                            // r1/ICMPError@19 (ten-routers.click:16)
                            if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                discard(16w0xee);
                            } else {
                                meta.arm = 16w0xb1;
                            }
                        } else {
                            hand_off(16w0x112, 12w0x1a);
                        }
                    } else {
                        meta.arm = 16w0xb1;
                    }
                } else {
                    hand_off(16w0x114, 12w0x1c);
                }
            }
            if (meta.arm == 16w0x10) {
                // r4/routes (ten-routers.click:8)
                routes16.apply();
            } else if (meta.arm == 16w0x24) {
                // r4/routes (ten-routers.click:8)
                routes36.apply();
            } else if (meta.arm == 16w0x50) {
                // r2/ICMPError@18 (ten-routers.click:15)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r2/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r2/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x101, 12w0x9);
                        } else {
                            discard(16w0xb9);
                        }
                    } else {
                        discard(16w0x53);
                    }
                } else {
                    discard(16w0xba);
                }
            } else if (meta.arm == 16w0x56) {
                // r3/ttl (ten-routers.click:9)
                if ((hdr.ipv4.ttl >= 8w0x2 && hdr.ipv4.ttl <= 8w0x3)) {
                    // r3/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // r3/ICMPError@18 (ten-routers.click:15)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            discard(16w0xbb);
                        } else {
                            // r3/ICMPError@18 (ten-routers.click:15)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // r3/ICMPError@18 (ten-routers.click:15)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    discard(16w0xbb);
                                } else {
                                    meta.arm = 16w0x5b;
                                }
                            } else {
                                hand_off(16w0x102, 12w0xa);
                            }
                        }
                    } else {
                        meta.arm = 16w0x5b;
                    }
                } else {
                    // r4/routes (ten-routers.click:8)
                    routes95.apply();
                }
            } else if (meta.arm == 16w0xb1) {
                // r1/ICMPError@19 (ten-routers.click:16)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r1/ICMPError@19 (ten-routers.click:16)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r1/ICMPError@19 (ten-routers.click:16)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x113, 12w0x1b);
                        } else {
                            discard(16w0xef);
                        }
                    } else {
                        discard(16w0xb4);
                    }
                } else {
                    discard(16w0xf0);
                }
            }
            if (meta.arm == 16w0x12) {
                // r5/routes (ten-routers.click:8)
                routes18.apply();
            } else if (meta.arm == 16w0x26) {
                // r5/routes (ten-routers.click:8)
                routes38.apply();
            } else if (meta.arm == 16w0x5b) {
                // r3/ICMPError@18 (ten-routers.click:15)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r3/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r3/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x103, 12w0xb);
                        } else {
                            discard(16w0xbc);
                        }
                    } else {
                        discard(16w0x5e);
                    }
                } else {
                    discard(16w0xbd);
                }
            } else if (meta.arm == 16w0x61) {
                // r4/ttl (ten-routers.click:9)
                if ((hdr.ipv4.ttl >= 8w0x3 && hdr.ipv4.ttl <= 8w0x4)) {
                    // r4/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // r4/ICMPError@18 (ten-routers.click:15)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            discard(16w0xbe);
                        } else {
                            // r4/ICMPError@18 (ten-routers.click:15)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // r4/ICMPError@18 (ten-routers.click:15)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    discard(16w0xbe);
                                } else {
                                    meta.arm = 16w0x66;
                                }
                            } else {
                                hand_off(16w0x104, 12w0xc);
                            }
                        }
                    } else {
                        meta.arm = 16w0x66;
                    }
                } else {
                    // r5/routes (ten-routers.click:8)
                    routes106.apply();
                }
            }
            if (meta.arm == 16w0x14) {
                // r6/routes (ten-routers.click:8)
                routes20.apply();
            } else if (meta.arm == 16w0x28) {
                // r6/routes (ten-routers.click:8)
                routes40.apply();
            } else if (meta.arm == 16w0x66) {
                // r4/ICMPError@18 (ten-routers.click:15)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r4/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r4/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x105, 12w0xd);
                        } else {
                            discard(16w0xbf);
                        }
                    } else {
                        discard(16w0x69);
                    }
                } else {
                    discard(16w0xc0);
                }
            } else if (meta.arm == 16w0x6c) {
                // r5/ttl (ten-routers.click:9)
                if ((hdr.ipv4.ttl >= 8w0x4 && hdr.ipv4.ttl <= 8w0x5)) {
                    // r5/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // r5/ICMPError@18 (ten-routers.click:15)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            discard(16w0xc1);
                        } else {
                            // r5/ICMPError@18 (ten-routers.click:15)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // r5/ICMPError@18 (ten-routers.click:15)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    discard(16w0xc1);
                                } else {
                                    meta.arm = 16w0x71;
                                }
                            } else {
                                hand_off(16w0x106, 12w0xe);
                            }
                        }
                    } else {
                        meta.arm = 16w0x71;
                    }
                } else {
                    // r6/routes (ten-routers.click:8)
                    routes117.apply();
                }
            }
            if (meta.arm == 16w0x16) {
                // r7/routes (ten-routers.click:8)
                routes22.apply();
            } else if (meta.arm == 16w0x2a) {
                // r7/routes (ten-routers.click:8)
                routes42.apply();
            } else if (meta.arm == 16w0x71) {
                // r5/ICMPError@18 (ten-routers.click:15)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r5/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r5/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x107, 12w0xf);
                        } else {
                            discard(16w0xc2);
                        }
                    } else {
                        discard(16w0x74);
                    }
                } else {
                    discard(16w0xc3);
                }
            } else if (meta.arm == 16w0x77) {
                // r6/ttl (ten-routers.click:9)
                if ((hdr.ipv4.ttl >= 8w0x5 && hdr.ipv4.ttl <= 8w0x6)) {
                    // r6/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // r6/ICMPError@18 (ten-routers.click:15)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            discard(16w0xc4);
                        } else {
                            // r6/ICMPError@18 (ten-routers.click:15)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // r6/ICMPError@18 (ten-routers.click:15)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    discard(16w0xc4);
                                } else {
                                    meta.arm = 16w0x7c;
                                }
                            } else {
                                hand_off(16w0x108, 12w0x10);
                            }
                        }
                    } else {
                        meta.arm = 16w0x7c;
                    }
                } else {
                    // r7/routes (ten-routers.click:8)
                    routes128.apply();
                }
            }
            if (meta.arm == 16w0x18) {
                // r8/routes (ten-routers.click:8)
                routes24.apply();
            } else if (meta.arm == 16w0x2c) {
                // r8/routes (ten-routers.click:8)
                routes44.apply();
            } else if (meta.arm == 16w0x7c) {
                // r6/ICMPError@18 (ten-routers.click:15)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r6/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r6/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x109, 12w0x11);
                        } else {
                            discard(16w0xc5);
                        }
                    } else {
                        discard(16w0x7f);
                    }
                } else {
                    discard(16w0xc6);
                }
            } else if (meta.arm == 16w0x82) {
                // r7/ttl (ten-routers.click:9)
                if ((hdr.ipv4.ttl >= 8w0x6 && hdr.ipv4.ttl <= 8w0x7)) {
                    // r7/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // r7/ICMPError@18 (ten-routers.click:15)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            discard(16w0xc7);
                        } else {
                            // r7/ICMPError@18 (ten-routers.click:15)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // r7/ICMPError@18 (ten-routers.click:15)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    discard(16w0xc7);
                                } else {
                                    meta.arm = 16w0x87;
                                }
                            } else {
                                hand_off(16w0x10a, 12w0x12);
                            }
                        }
                    } else {
                        meta.arm = 16w0x87;
                    }
                } else {
                    // r8/routes (ten-routers.click:8)
                    routes139.apply();
                }
            }
            if (meta.arm == 16w0x1a) {
                // r9/routes (ten-routers.click:8)
                routes26.apply();
            } else if (meta.arm == 16w0x2e) {
                // r9/routes (ten-routers.click:8)
                routes46.apply();
            } else if (meta.arm == 16w0x87) {
                // r7/ICMPError@18 (ten-routers.click:15)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r7/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r7/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x10b, 12w0x13);
                        } else {
                            discard(16w0xc8);
                        }
                    } else {
                        discard(16w0x8a);
                    }
                } else {
                    discard(16w0xc9);
                }
            } else if (meta.arm == 16w0x8d) {
                // r8/ttl (ten-routers.click:9)
                if ((hdr.ipv4.ttl >= 8w0x7 && hdr.ipv4.ttl <= 8w0x8)) {
                    // r8/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // r8/ICMPError@18 (ten-routers.click:15)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            discard(16w0xca);
                        } else {
                            // r8/ICMPError@18 (ten-routers.click:15)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // r8/ICMPError@18 (ten-routers.click:15)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    discard(16w0xca);
                                } else {
                                    meta.arm = 16w0x92;
                                }
                            } else {
                                hand_off(16w0x10c, 12w0x14);
                            }
                        }
                    } else {
                        meta.arm = 16w0x92;
                    }
                } else {
                    // r9/routes (ten-routers.click:8)
                    routes150.apply();
                }
            }
            if (meta.arm == 16w0x1c) {
                // r10/routes (ten-routers.click:8)
                routes28.apply();
            } else if (meta.arm == 16w0x30) {
                // r10/routes (ten-routers.click:8)
                routes48.apply();
            } else if (meta.arm == 16w0x92) {
                // r8/ICMPError@18 (ten-routers.click:15)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r8/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r8/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x10d, 12w0x15);
                        } else {
                            discard(16w0xcb);
                        }
                    } else {
                        discard(16w0x95);
                    }
                } else {
                    discard(16w0xcc);
                }
            } else if (meta.arm == 16w0x98) {
                // r9/ttl (ten-routers.click:9)
                if ((hdr.ipv4.ttl >= 8w0x8 && hdr.ipv4.ttl <= 8w0x9)) {
                    // r9/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.protocol == 8w0x1) {
                        // r9/ICMPError@18 (ten-routers.click:15)
                        if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                            discard(16w0xcd);
                        } else {
                            // r9/ICMPError@18 (ten-routers.click:15)
                            if (standard_metadata.packet_length >= 32w0x26) {
                                // r9/ICMPError@18 (ten-routers.click:15)
                                if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                                    discard(16w0xcd);
                                } else {
                                    meta.arm = 16w0x9d;
                                }
                            } else {
                                hand_off(16w0x10e, 12w0x16);
                            }
                        }
                    } else {
                        meta.arm = 16w0x9d;
                    }
                } else {
                    // r10/routes (ten-routers.click:8)
                    routes161.apply();
                }
            }
            if (meta.arm == 16w0x1e) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.protocol == 8w0x1) {
                    meta.arm = 16w0xa6;
                } else {
                    meta.arm = 16w0xa8;
                }
            } else if (meta.arm == 16w0x9d) {
                // r9/ICMPError@18 (ten-routers.click:15)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r9/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r9/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x10f, 12w0x17);
                        } else {
                            discard(16w0xce);
                        }
                    } else {
                        discard(16w0xa0);
                    }
                } else {
                    discard(16w0xcf);
                }
            } else if (meta.arm == 16w0xa3) {
                // r10/ttl (ten-routers.click:9)
                if ((hdr.ipv4.ttl >= 8w0x9 && hdr.ipv4.ttl <= 8w0xa)) {
                    meta.arm = 16w0xa4;
                } else {
                    leave(16w0xac, 9w0x3, 48w0x20000000102, 48w0x20000000101, 16w0x800);
                }
            }
            if (meta.arm == 16w0xa4) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.protocol == 8w0x1) {
                    // r10/ICMPError@18 (ten-routers.click:15)
                    if ((hdr.ipv4.len >= 16w0x14 && hdr.ipv4.len <= 16w0x17)) {
                        discard(16w0xd0);
                    } else {
                        meta.arm = 16w0xa6;
                    }
                } else {
                    meta.arm = 16w0xa8;
                }
            }
            if (meta.arm == 16w0xa6) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (standard_metadata.packet_length >= 32w0x26) {
                    // r10/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.transport.sport[15:8] >= 8w0x3 && hdr.transport.sport[15:8] <= 8w0x5) || (hdr.transport.sport[15:8] >= 8w0xb && hdr.transport.sport[15:8] <= 8w0xc))) {
                        discard(16w0xd0);
                    } else {
                        meta.arm = 16w0xa8;
                    }
                } else {
                    hand_off(16w0x110, 12w0x18);
                }
            }
            if (meta.arm == 16w0xa8) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if ((hdr.ipv4.dst <= 32w0xdfffffff || (hdr.ipv4.dst >= 32w0xf0000000 && hdr.ipv4.dst <= 32w0xfffffffe))) {
                    // r10/ICMPError@18 (ten-routers.click:15)
                    if (((hdr.ipv4.src >= 32w0x1000000 && hdr.ipv4.src <= 32w0x7effffff) || (hdr.ipv4.src >= 32w0x80000000 && hdr.ipv4.src <= 32w0xdfffffff))) {
                        // r10/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0x111, 12w0x19);
                        } else {
                            discard(16w0xd1);
                        }
                    } else {
                        discard(16w0xab);
                    }
                } else {
                    discard(16w0xd2);
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
        packet.emit(hdr.ipv4);
        packet.emit(hdr.transport);
    }
}

V1Switch(Parse(), Verify(), Ingress(), Egress(), Update(), Deparse()) main;
