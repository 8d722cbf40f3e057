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
    bit<16> class;
}

parser Parse(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        meta.arm = 16w0x0;
        meta.class = 16w0x143;
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
    // Packets and bytes of each exit, by its number; of frames from the cores and elsewhere behind them
    Counter<bit<64>, bit<16>>(324, CounterType_t.PACKETS_AND_BYTES) classes;

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

    // Classifier@2 (ten-routers.click:20)
    table rules0 {
        key = {
            hdr.ethernet.ether_type: exact;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(16w0x142, 12w0x93);
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
        default_action = hand_off(16w0x13d, 12w0x8e);
        size = 4;
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
    table routes8 {
        key = {
            hdr.ipv4.dst: lpm;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(16w0x137, 12w0x88);
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
        default_action = hand_off(16w0x134, 12w0x85);
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
        default_action = hand_off(16w0x131, 12w0x82);
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
        default_action = hand_off(16w0x12e, 12w0x7f);
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
        default_action = hand_off(16w0x12b, 12w0x7c);
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
        default_action = hand_off(16w0x128, 12w0x79);
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
        default_action = hand_off(16w0x125, 12w0x76);
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
        default_action = hand_off(16w0x122, 12w0x73);
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
        default_action = hand_off(16w0x11f, 12w0x70);
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
        default_action = hand_off(16w0x137, 12w0x88);
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
        default_action = hand_off(16w0x134, 12w0x85);
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
        default_action = hand_off(16w0x131, 12w0x82);
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
        default_action = hand_off(16w0x12e, 12w0x7f);
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
        default_action = hand_off(16w0x12b, 12w0x7c);
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
        default_action = hand_off(16w0x128, 12w0x79);
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
        default_action = hand_off(16w0x125, 12w0x76);
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
        default_action = hand_off(16w0x122, 12w0x73);
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
        default_action = hand_off(16w0x11f, 12w0x70);
        size = 4;
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
        default_action = hand_off(16w0x137, 12w0x88);
        size = 4;
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
        default_action = hand_off(16w0x134, 12w0x85);
        size = 4;
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
        default_action = hand_off(16w0x131, 12w0x82);
        size = 4;
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
        default_action = hand_off(16w0x12e, 12w0x7f);
        size = 4;
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
        default_action = hand_off(16w0x12b, 12w0x7c);
        size = 4;
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
        default_action = hand_off(16w0x128, 12w0x79);
        size = 4;
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
        default_action = hand_off(16w0x125, 12w0x76);
        size = 4;
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
        default_action = hand_off(16w0x122, 12w0x73);
        size = 4;
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
        default_action = hand_off(16w0x11f, 12w0x70);
        size = 4;
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
                            hand_off(16w0x13d, 12w0x8e);
                        }
                    } else {
                        // r1/CheckIPHeader@2 (ten-routers.click:7)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                            hand_off(16w0x140, 12w0x91);
                        } else {
                            // r1/CheckIPHeader@2 (ten-routers.click:7)
                            if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                hand_off(16w0x13e, 12w0x8f);
                            } else {
                                hand_off(16w0x13f, 12w0x90);
                            }
                        }
                    }
                } else {
                    hand_off(16w0x141, 12w0x92);
                }
            }
            if (meta.arm == 16w0x5) {
                // r1/DropBroadcasts@5 (ten-routers.click:9)
                if (hdr.ethernet.dst[40:40] == 1w0x1) {
                    hand_off(16w0x13a, 12w0x8b);
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
                        if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                            // r1/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                // r1/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                                    hand_off(16w0xff, 12w0x50);
                                } else {
                                    // r1/ICMPError@18 (ten-routers.click:15)
                                    if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                        hand_off(16w0xb2, 12w0x3);
                                    } else {
                                        // r1/ICMPError@18 (ten-routers.click:15)
                                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                            // r1/ICMPError@18 (ten-routers.click:15)
                                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                                // r1/ICMPError@18 (ten-routers.click:15)
                                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                                    hand_off(16w0xb0, 12w0x1);
                                                } else {
                                                    hand_off(16w0xb3, 12w0x4);
                                                }
                                            } else {
                                                hand_off(16w0xb1, 12w0x2);
                                            }
                                        } else {
                                            hand_off(16w0xb4, 12w0x5);
                                        }
                                    }
                                }
                            } else {
                                // r1/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // r1/ICMPError@18 (ten-routers.click:15)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // r1/ICMPError@18 (ten-routers.click:15)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xe7, 12w0x38);
                                        } else {
                                            hand_off(16w0x100, 12w0x51);
                                        }
                                    } else {
                                        hand_off(16w0xe8, 12w0x39);
                                    }
                                } else {
                                    hand_off(16w0x101, 12w0x52);
                                }
                            }
                        } else {
                            // r1/fragment (ten-routers.click:10)
                            if (hdr.ipv4.isValid()) {
                                test58.apply();
                            } else {
                                go(16w0xa7);
                            }
                        }
                    }
                }
            }
            if (meta.arm == 16w0x8) {
                // r2/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes8.apply();
                } else {
                    hand_off(16w0x137, 12w0x88);
                }
            } else if (meta.arm == 16w0x1b) {
                // r1/fragment (ten-routers.click:10)
                if (hdr.ipv4.isValid()) {
                    test27.apply();
                } else {
                    go(16w0xa7);
                }
            } else if (meta.arm == 16w0x3b) {
                // r2/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes59.apply();
                } else {
                    hand_off(16w0x137, 12w0x88);
                }
            }
            if (meta.arm == 16w0xa) {
                // r3/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes10.apply();
                } else {
                    hand_off(16w0x134, 12w0x85);
                }
            } else if (meta.arm == 16w0x1c) {
                // r2/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes28.apply();
                } else {
                    hand_off(16w0x137, 12w0x88);
                }
            } else if (meta.arm == 16w0x3d) {
                // r2/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl == 8w0x1 || hdr.ipv4.ttl == 8w0x2)) {
                    // r2/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // r2/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x102, 12w0x53);
                        } else {
                            // r2/ICMPError@18 (ten-routers.click:15)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0xb7, 12w0x8);
                            } else {
                                // r2/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // r2/ICMPError@18 (ten-routers.click:15)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // r2/ICMPError@18 (ten-routers.click:15)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xb5, 12w0x6);
                                        } else {
                                            hand_off(16w0xb8, 12w0x9);
                                        }
                                    } else {
                                        hand_off(16w0xb6, 12w0x7);
                                    }
                                } else {
                                    hand_off(16w0xb9, 12w0xa);
                                }
                            }
                        }
                    } else {
                        // r2/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // r2/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // r2/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xe9, 12w0x3a);
                                } else {
                                    hand_off(16w0x103, 12w0x54);
                                }
                            } else {
                                hand_off(16w0xea, 12w0x3b);
                            }
                        } else {
                            hand_off(16w0x104, 12w0x55);
                        }
                    }
                } else {
                    // r3/routes (ten-routers.click:8)
                    if (hdr.ipv4.isValid()) {
                        routes71.apply();
                    } else {
                        hand_off(16w0x134, 12w0x85);
                    }
                }
            } else if (meta.arm == 16w0xa7) {
                // r1/fragment (ten-routers.click:10)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    // r1/ICMPError@19 (ten-routers.click:16)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // r1/ICMPError@19 (ten-routers.click:16)
                        if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                            hand_off(16w0xe4, 12w0x35);
                        } else {
                            // r1/ICMPError@19 (ten-routers.click:16)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                // r1/ICMPError@19 (ten-routers.click:16)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                    // r1/ICMPError@19 (ten-routers.click:16)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                        hand_off(16w0xe2, 12w0x33);
                                    } else {
                                        hand_off(16w0xe5, 12w0x36);
                                    }
                                } else {
                                    hand_off(16w0xe3, 12w0x34);
                                }
                            } else {
                                hand_off(16w0xe6, 12w0x37);
                            }
                        }
                    } else {
                        // r1/ICMPError@19 (ten-routers.click:16)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // r1/ICMPError@19 (ten-routers.click:16)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // r1/ICMPError@19 (ten-routers.click:16)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xfc, 12w0x4d);
                                } else {
                                    hand_off(16w0x138, 12w0x89);
                                }
                            } else {
                                hand_off(16w0xfd, 12w0x4e);
                            }
                        } else {
                            hand_off(16w0x139, 12w0x8a);
                        }
                    }
                } else {
                    hand_off(16w0xfe, 12w0x4f);
                }
            }
            if (meta.arm == 16w0xc) {
                // r4/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes12.apply();
                } else {
                    hand_off(16w0x131, 12w0x82);
                }
            } else if (meta.arm == 16w0x1e) {
                // r3/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes30.apply();
                } else {
                    hand_off(16w0x134, 12w0x85);
                }
            } else if (meta.arm == 16w0x49) {
                // r3/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x2) {
                    // r3/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // r3/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x105, 12w0x56);
                        } else {
                            // r3/ICMPError@18 (ten-routers.click:15)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0xbc, 12w0xd);
                            } else {
                                // r3/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // r3/ICMPError@18 (ten-routers.click:15)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // r3/ICMPError@18 (ten-routers.click:15)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xba, 12w0xb);
                                        } else {
                                            hand_off(16w0xbd, 12w0xe);
                                        }
                                    } else {
                                        hand_off(16w0xbb, 12w0xc);
                                    }
                                } else {
                                    hand_off(16w0xbe, 12w0xf);
                                }
                            }
                        }
                    } else {
                        // r3/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // r3/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // r3/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xeb, 12w0x3c);
                                } else {
                                    hand_off(16w0x106, 12w0x57);
                                }
                            } else {
                                hand_off(16w0xec, 12w0x3d);
                            }
                        } else {
                            hand_off(16w0x107, 12w0x58);
                        }
                    }
                } else {
                    // r4/routes (ten-routers.click:8)
                    if (hdr.ipv4.isValid()) {
                        routes83.apply();
                    } else {
                        hand_off(16w0x131, 12w0x82);
                    }
                }
            }
            if (meta.arm == 16w0xe) {
                // r5/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes14.apply();
                } else {
                    hand_off(16w0x12e, 12w0x7f);
                }
            } else if (meta.arm == 16w0x20) {
                // r4/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes32.apply();
                } else {
                    hand_off(16w0x131, 12w0x82);
                }
            } else if (meta.arm == 16w0x55) {
                // r4/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl == 8w0x3 || hdr.ipv4.ttl == 8w0x4)) {
                    // r4/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // r4/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x108, 12w0x59);
                        } else {
                            // r4/ICMPError@18 (ten-routers.click:15)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0xc1, 12w0x12);
                            } else {
                                // r4/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // r4/ICMPError@18 (ten-routers.click:15)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // r4/ICMPError@18 (ten-routers.click:15)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xbf, 12w0x10);
                                        } else {
                                            hand_off(16w0xc2, 12w0x13);
                                        }
                                    } else {
                                        hand_off(16w0xc0, 12w0x11);
                                    }
                                } else {
                                    hand_off(16w0xc3, 12w0x14);
                                }
                            }
                        }
                    } else {
                        // r4/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // r4/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // r4/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xed, 12w0x3e);
                                } else {
                                    hand_off(16w0x109, 12w0x5a);
                                }
                            } else {
                                hand_off(16w0xee, 12w0x3f);
                            }
                        } else {
                            hand_off(16w0x10a, 12w0x5b);
                        }
                    }
                } else {
                    // r5/routes (ten-routers.click:8)
                    if (hdr.ipv4.isValid()) {
                        routes95.apply();
                    } else {
                        hand_off(16w0x12e, 12w0x7f);
                    }
                }
            }
            if (meta.arm == 16w0x10) {
                // r6/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes16.apply();
                } else {
                    hand_off(16w0x12b, 12w0x7c);
                }
            } else if (meta.arm == 16w0x22) {
                // r5/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes34.apply();
                } else {
                    hand_off(16w0x12e, 12w0x7f);
                }
            } else if (meta.arm == 16w0x61) {
                // r5/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x4) {
                    // r5/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // r5/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x10b, 12w0x5c);
                        } else {
                            // r5/ICMPError@18 (ten-routers.click:15)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0xc6, 12w0x17);
                            } else {
                                // r5/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // r5/ICMPError@18 (ten-routers.click:15)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // r5/ICMPError@18 (ten-routers.click:15)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xc4, 12w0x15);
                                        } else {
                                            hand_off(16w0xc7, 12w0x18);
                                        }
                                    } else {
                                        hand_off(16w0xc5, 12w0x16);
                                    }
                                } else {
                                    hand_off(16w0xc8, 12w0x19);
                                }
                            }
                        }
                    } else {
                        // r5/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // r5/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // r5/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xef, 12w0x40);
                                } else {
                                    hand_off(16w0x10c, 12w0x5d);
                                }
                            } else {
                                hand_off(16w0xf0, 12w0x41);
                            }
                        } else {
                            hand_off(16w0x10d, 12w0x5e);
                        }
                    }
                } else {
                    // r6/routes (ten-routers.click:8)
                    if (hdr.ipv4.isValid()) {
                        routes107.apply();
                    } else {
                        hand_off(16w0x12b, 12w0x7c);
                    }
                }
            }
            if (meta.arm == 16w0x12) {
                // r7/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes18.apply();
                } else {
                    hand_off(16w0x128, 12w0x79);
                }
            } else if (meta.arm == 16w0x24) {
                // r6/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes36.apply();
                } else {
                    hand_off(16w0x12b, 12w0x7c);
                }
            } else if (meta.arm == 16w0x6d) {
                // r6/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl == 8w0x5 || hdr.ipv4.ttl == 8w0x6)) {
                    // r6/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // r6/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x10e, 12w0x5f);
                        } else {
                            // r6/ICMPError@18 (ten-routers.click:15)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0xcb, 12w0x1c);
                            } else {
                                // r6/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // r6/ICMPError@18 (ten-routers.click:15)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // r6/ICMPError@18 (ten-routers.click:15)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xc9, 12w0x1a);
                                        } else {
                                            hand_off(16w0xcc, 12w0x1d);
                                        }
                                    } else {
                                        hand_off(16w0xca, 12w0x1b);
                                    }
                                } else {
                                    hand_off(16w0xcd, 12w0x1e);
                                }
                            }
                        }
                    } else {
                        // r6/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // r6/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // r6/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xf1, 12w0x42);
                                } else {
                                    hand_off(16w0x10f, 12w0x60);
                                }
                            } else {
                                hand_off(16w0xf2, 12w0x43);
                            }
                        } else {
                            hand_off(16w0x110, 12w0x61);
                        }
                    }
                } else {
                    // r7/routes (ten-routers.click:8)
                    if (hdr.ipv4.isValid()) {
                        routes119.apply();
                    } else {
                        hand_off(16w0x128, 12w0x79);
                    }
                }
            }
            if (meta.arm == 16w0x14) {
                // r8/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes20.apply();
                } else {
                    hand_off(16w0x125, 12w0x76);
                }
            } else if (meta.arm == 16w0x26) {
                // r7/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes38.apply();
                } else {
                    hand_off(16w0x128, 12w0x79);
                }
            } else if (meta.arm == 16w0x79) {
                // r7/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x6) {
                    // r7/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // r7/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x111, 12w0x62);
                        } else {
                            // r7/ICMPError@18 (ten-routers.click:15)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0xd0, 12w0x21);
                            } else {
                                // r7/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // r7/ICMPError@18 (ten-routers.click:15)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // r7/ICMPError@18 (ten-routers.click:15)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xce, 12w0x1f);
                                        } else {
                                            hand_off(16w0xd1, 12w0x22);
                                        }
                                    } else {
                                        hand_off(16w0xcf, 12w0x20);
                                    }
                                } else {
                                    hand_off(16w0xd2, 12w0x23);
                                }
                            }
                        }
                    } else {
                        // r7/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // r7/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // r7/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xf3, 12w0x44);
                                } else {
                                    hand_off(16w0x112, 12w0x63);
                                }
                            } else {
                                hand_off(16w0xf4, 12w0x45);
                            }
                        } else {
                            hand_off(16w0x113, 12w0x64);
                        }
                    }
                } else {
                    // r8/routes (ten-routers.click:8)
                    if (hdr.ipv4.isValid()) {
                        routes131.apply();
                    } else {
                        hand_off(16w0x125, 12w0x76);
                    }
                }
            }
            if (meta.arm == 16w0x16) {
                // r9/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes22.apply();
                } else {
                    hand_off(16w0x122, 12w0x73);
                }
            } else if (meta.arm == 16w0x28) {
                // r8/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes40.apply();
                } else {
                    hand_off(16w0x125, 12w0x76);
                }
            } else if (meta.arm == 16w0x85) {
                // r8/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl == 8w0x7 || hdr.ipv4.ttl == 8w0x8)) {
                    // r8/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // r8/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x114, 12w0x65);
                        } else {
                            // r8/ICMPError@18 (ten-routers.click:15)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0xd5, 12w0x26);
                            } else {
                                // r8/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // r8/ICMPError@18 (ten-routers.click:15)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // r8/ICMPError@18 (ten-routers.click:15)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xd3, 12w0x24);
                                        } else {
                                            hand_off(16w0xd6, 12w0x27);
                                        }
                                    } else {
                                        hand_off(16w0xd4, 12w0x25);
                                    }
                                } else {
                                    hand_off(16w0xd7, 12w0x28);
                                }
                            }
                        }
                    } else {
                        // r8/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // r8/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // r8/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xf5, 12w0x46);
                                } else {
                                    hand_off(16w0x115, 12w0x66);
                                }
                            } else {
                                hand_off(16w0xf6, 12w0x47);
                            }
                        } else {
                            hand_off(16w0x116, 12w0x67);
                        }
                    }
                } else {
                    // r9/routes (ten-routers.click:8)
                    if (hdr.ipv4.isValid()) {
                        routes143.apply();
                    } else {
                        hand_off(16w0x122, 12w0x73);
                    }
                }
            }
            if (meta.arm == 16w0x18) {
                // r10/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes24.apply();
                } else {
                    hand_off(16w0x11f, 12w0x70);
                }
            } else if (meta.arm == 16w0x2a) {
                // r9/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes42.apply();
                } else {
                    hand_off(16w0x122, 12w0x73);
                }
            } else if (meta.arm == 16w0x91) {
                // r9/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x8) {
                    // r9/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // r9/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x117, 12w0x68);
                        } else {
                            // r9/ICMPError@18 (ten-routers.click:15)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0xda, 12w0x2b);
                            } else {
                                // r9/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // r9/ICMPError@18 (ten-routers.click:15)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // r9/ICMPError@18 (ten-routers.click:15)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xd8, 12w0x29);
                                        } else {
                                            hand_off(16w0xdb, 12w0x2c);
                                        }
                                    } else {
                                        hand_off(16w0xd9, 12w0x2a);
                                    }
                                } else {
                                    hand_off(16w0xdc, 12w0x2d);
                                }
                            }
                        }
                    } else {
                        // r9/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // r9/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // r9/ICMPError@18 (ten-routers.click:15)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xf7, 12w0x48);
                                } else {
                                    hand_off(16w0x118, 12w0x69);
                                }
                            } else {
                                hand_off(16w0xf8, 12w0x49);
                            }
                        } else {
                            hand_off(16w0x119, 12w0x6a);
                        }
                    }
                } else {
                    // r10/routes (ten-routers.click:8)
                    if (hdr.ipv4.isValid()) {
                        routes155.apply();
                    } else {
                        hand_off(16w0x11f, 12w0x70);
                    }
                }
            }
            if (meta.arm == 16w0x1a) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    meta.arm = 16w0xa0;
                } else {
                    meta.arm = 16w0xa1;
                }
            } else if (meta.arm == 16w0x2c) {
                // r10/routes (ten-routers.click:8)
                if (hdr.ipv4.isValid()) {
                    routes44.apply();
                } else {
                    hand_off(16w0x11f, 12w0x70);
                }
            } else if (meta.arm == 16w0x9d) {
                // r10/ttl (ten-routers.click:9)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl == 8w0x9 || hdr.ipv4.ttl == 8w0xa)) {
                    meta.arm = 16w0x9e;
                } else {
                    hand_off(16w0xfb, 12w0x4c);
                }
            }
            if (meta.arm == 16w0x9e) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // r10/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                        hand_off(16w0x11a, 12w0x6b);
                    } else {
                        meta.arm = 16w0xa0;
                    }
                } else {
                    meta.arm = 16w0xa1;
                }
            }
            if (meta.arm == 16w0xa0) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                    hand_off(16w0xdf, 12w0x30);
                } else {
                    // r10/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                        // r10/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                            // r10/ICMPError@18 (ten-routers.click:15)
                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                hand_off(16w0xdd, 12w0x2e);
                            } else {
                                hand_off(16w0xe0, 12w0x31);
                            }
                        } else {
                            hand_off(16w0xde, 12w0x2f);
                        }
                    } else {
                        hand_off(16w0xe1, 12w0x32);
                    }
                }
            } else if (meta.arm == 16w0xa1) {
                // r10/ICMPError@18 (ten-routers.click:15)
                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                    // r10/ICMPError@18 (ten-routers.click:15)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                        // r10/ICMPError@18 (ten-routers.click:15)
                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                            hand_off(16w0xf9, 12w0x4a);
                        } else {
                            hand_off(16w0x11b, 12w0x6c);
                        }
                    } else {
                        hand_off(16w0xfa, 12w0x4b);
                    }
                } else {
                    hand_off(16w0x11c, 12w0x6d);
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
