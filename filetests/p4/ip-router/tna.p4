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
    bit<16> class;
}

parser Parse(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        meta.arm = 16w0x0;
        meta.class = 16w0x28a;
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
    Counter<bit<64>, bit<16>>(651, CounterType_t.PACKETS_AND_BYTES) classes;
    bit<16> key2_1;
    bit<16> key7_1;
    bit<16> key10_1;
    bit<16> key327_1;
    bit<16> key332_1;
    bit<16> key335_1;

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
        default_action = hand_off(16w0x143, 12w0x9c);
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
        default_action = hand_off(16w0x143, 12w0x9c);
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
        default_action = hand_off(16w0x143, 12w0x9c);
        size = 3;
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
        default_action = hand_off(16w0x11c, 12w0x75);
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
        default_action = hand_off(16w0x135, 12w0x8e);
        size = 5;
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

    // lan/ARPResponder@3 (ip-router.click:17)
    table rules165 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(16w0x138, 12w0x91);
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
        default_action = hand_off(16w0x288, 12w0x139);
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
        default_action = hand_off(16w0x288, 12w0x139);
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
        default_action = hand_off(16w0x288, 12w0x139);
        size = 3;
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
        default_action = hand_off(16w0x261, 12w0x112);
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
        default_action = hand_off(16w0x27a, 12w0x12b);
        size = 5;
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

    // wan/ARPResponder@3 (ip-router.click:17)
    table rules490 {
        key = {
            hdr.arp.tpa: exact;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(16w0x27d, 12w0x12e);
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
                        hand_off(16w0x143, 12w0x9c);
                    }
                } else {
                    hand_off(16w0x139, 12w0x92);
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
                            hand_off(16w0x143, 12w0x9c);
                        }
                    } else {
                        hand_off(16w0x13a, 12w0x93);
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
                                hand_off(16w0x143, 12w0x9c);
                            }
                        } else {
                            hand_off(16w0x13b, 12w0x94);
                        }
                    } else {
                        hand_off(16w0x144, 12w0x9d);
                    }
                }
            }
            if (meta.arm == 16w0x3) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                        // lan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.src == 32w0x0 || hdr.ipv4.src == 32w0xa0000ff || hdr.ipv4.src == 32w0x140000ff || hdr.ipv4.src == 32w0xffffffff)) {
                            // lan/CheckIPHeader@7 (ip-router.click:20)
                            if (hdr.ipv4.isValid() && (hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                                meta.arm = 16w0x45;
                            } else {
                                hand_off(16w0x11a, 12w0x73);
                            }
                        } else {
                            // routes (ip-router.click:34)
                            if (hdr.ipv4.isValid()) {
                                routes17.apply();
                            } else {
                                hand_off(16w0x11c, 12w0x75);
                            }
                        }
                    } else {
                        // lan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                            hand_off(16w0x140, 12w0x99);
                        } else {
                            // lan/CheckIPHeader@7 (ip-router.click:20)
                            if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                // lan/CheckIPHeader@7 (ip-router.click:20)
                                if (hdr.ipv4.isValid() && (hdr.ipv4.src == 32w0x0 || hdr.ipv4.src == 32w0xa0000ff || hdr.ipv4.src == 32w0x140000ff || hdr.ipv4.src == 32w0xffffffff)) {
                                    // lan/CheckIPHeader@7 (ip-router.click:20)
                                    if (hdr.ipv4.isValid() && (hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                                        meta.arm = 16w0x46;
                                    } else {
                                        hand_off(16w0x133, 12w0x8c);
                                    }
                                } else {
                                    // routes (ip-router.click:34)
                                    if (hdr.ipv4.isValid()) {
                                        routes18.apply();
                                    } else {
                                        hand_off(16w0x135, 12w0x8e);
                                    }
                                }
                            } else {
                                hand_off(16w0x136, 12w0x8f);
                            }
                        }
                    }
                } else {
                    hand_off(16w0x142, 12w0x9b);
                }
            } else if (meta.arm == 16w0xa1) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                        hand_off(16w0x140, 12w0x99);
                    } else {
                        hand_off(16w0x13e, 12w0x97);
                    }
                } else {
                    hand_off(16w0x142, 12w0x9b);
                }
            } else if (meta.arm == 16w0xa3) {
                // lan/ARPResponder@3 (ip-router.click:17)
                if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                    // lan/ARPResponder@3 (ip-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                        // lan/ARPResponder@3 (ip-router.click:17)
                        if (hdr.arp.isValid()) {
                            rules165.apply();
                        } else {
                            hand_off(16w0x138, 12w0x91);
                        }
                    } else {
                        hand_off(16w0x138, 12w0x91);
                    }
                } else {
                    hand_off(16w0x138, 12w0x91);
                }
            } else if (meta.arm == 16w0xa6) {
                // lan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // lan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                        hand_off(16w0x140, 12w0x99);
                    } else {
                        hand_off(16w0x141, 12w0x9a);
                    }
                } else {
                    hand_off(16w0x142, 12w0x9b);
                }
            }
            if (meta.arm == 16w0x17) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x10a, 12w0x63);
                        } else {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0xcc, 12w0x25);
                            } else {
                                // lan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // lan/ICMPError@18 (ip-router.click:27)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // lan/ICMPError@18 (ip-router.click:27)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xca, 12w0x23);
                                        } else {
                                            hand_off(16w0xcd, 12w0x26);
                                        }
                                    } else {
                                        hand_off(16w0xcb, 12w0x24);
                                    }
                                } else {
                                    hand_off(16w0xce, 12w0x27);
                                }
                            }
                        }
                    } else {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // lan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0x104, 12w0x5d);
                                } else {
                                    hand_off(16w0x10b, 12w0x64);
                                }
                            } else {
                                hand_off(16w0x105, 12w0x5e);
                            }
                        } else {
                            hand_off(16w0x10c, 12w0x65);
                        }
                    }
                } else {
                    // lan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid()) {
                        test43.apply();
                    } else {
                        go(16w0x2d);
                    }
                }
            } else if (meta.arm == 16w0x18) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x123, 12w0x7c);
                        } else {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0xf0, 12w0x49);
                            } else {
                                // lan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // lan/ICMPError@18 (ip-router.click:27)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // lan/ICMPError@18 (ip-router.click:27)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0xee, 12w0x47);
                                        } else {
                                            hand_off(16w0xf1, 12w0x4a);
                                        }
                                    } else {
                                        hand_off(16w0xef, 12w0x48);
                                    }
                                } else {
                                    hand_off(16w0xf2, 12w0x4b);
                                }
                            }
                        }
                    } else {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // lan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0x11d, 12w0x76);
                                } else {
                                    hand_off(16w0x124, 12w0x7d);
                                }
                            } else {
                                hand_off(16w0x11e, 12w0x77);
                            }
                        } else {
                            hand_off(16w0x125, 12w0x7e);
                        }
                    }
                } else {
                    // lan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid()) {
                        test44.apply();
                    } else {
                        go(16w0x2e);
                    }
                }
            } else if (meta.arm == 16w0x3f) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    meta.arm = 16w0x77;
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfe00) == 16w0x0 || (hdr.ipv4.len & 16w0xffc0) == 16w0x200 || hdr.ipv4.len == 16w0x240)) {
                        hand_off(16w0x10f, 12w0x68);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            meta.arm = 16w0x8d;
                        } else {
                            hand_off(16w0x110, 12w0x69);
                        }
                    }
                }
            } else if (meta.arm == 16w0x40) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    meta.arm = 16w0x78;
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfe00) == 16w0x0 || (hdr.ipv4.len & 16w0xffc0) == 16w0x200 || hdr.ipv4.len == 16w0x240)) {
                        hand_off(16w0x128, 12w0x81);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            meta.arm = 16w0x8e;
                        } else {
                            hand_off(16w0x129, 12w0x82);
                        }
                    }
                }
            } else if (meta.arm == 16w0x45) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0x11b, 12w0x74);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                            hand_off(16w0xd4, 12w0x2d);
                        } else {
                            hand_off(16w0xd5, 12w0x2e);
                        }
                    }
                } else {
                    hand_off(16w0x11b, 12w0x74);
                }
            } else if (meta.arm == 16w0x46) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0x134, 12w0x8d);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                            hand_off(16w0xf8, 12w0x51);
                        } else {
                            hand_off(16w0xf9, 12w0x52);
                        }
                    }
                } else {
                    hand_off(16w0x134, 12w0x8d);
                }
            } else if (meta.arm == 16w0x75) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    meta.arm = 16w0x77;
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfe00) == 16w0x0 || (hdr.ipv4.len & 16w0xffc0) == 16w0x200 || hdr.ipv4.len == 16w0x240)) {
                        hand_off(16w0xc7, 12w0x20);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            meta.arm = 16w0x8d;
                        } else {
                            hand_off(16w0xc8, 12w0x21);
                        }
                    }
                }
            } else if (meta.arm == 16w0x76) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    meta.arm = 16w0x78;
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfe00) == 16w0x0 || (hdr.ipv4.len & 16w0xffc0) == 16w0x200 || hdr.ipv4.len == 16w0x240)) {
                        hand_off(16w0xeb, 12w0x44);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            meta.arm = 16w0x8e;
                        } else {
                            hand_off(16w0xec, 12w0x45);
                        }
                    }
                }
            }
            if (meta.arm == 16w0x2d) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                            hand_off(16w0xd1, 12w0x2a);
                        } else {
                            // lan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                // lan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                    // lan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                        hand_off(16w0xcf, 12w0x28);
                                    } else {
                                        hand_off(16w0xd2, 12w0x2b);
                                    }
                                } else {
                                    hand_off(16w0xd0, 12w0x29);
                                }
                            } else {
                                hand_off(16w0xd3, 12w0x2c);
                            }
                        }
                    } else {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // lan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // lan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0x107, 12w0x60);
                                } else {
                                    hand_off(16w0x10d, 12w0x66);
                                }
                            } else {
                                hand_off(16w0x108, 12w0x61);
                            }
                        } else {
                            hand_off(16w0x10e, 12w0x67);
                        }
                    }
                } else {
                    hand_off(16w0x109, 12w0x62);
                }
            } else if (meta.arm == 16w0x2e) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                            hand_off(16w0xf5, 12w0x4e);
                        } else {
                            // lan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                // lan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                    // lan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                        hand_off(16w0xf3, 12w0x4c);
                                    } else {
                                        hand_off(16w0xf6, 12w0x4f);
                                    }
                                } else {
                                    hand_off(16w0xf4, 12w0x4d);
                                }
                            } else {
                                hand_off(16w0xf7, 12w0x50);
                            }
                        }
                    } else {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // lan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // lan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0x120, 12w0x79);
                                } else {
                                    hand_off(16w0x126, 12w0x7f);
                                }
                            } else {
                                hand_off(16w0x121, 12w0x7a);
                            }
                        } else {
                            hand_off(16w0x127, 12w0x80);
                        }
                    }
                } else {
                    hand_off(16w0x122, 12w0x7b);
                }
            } else if (meta.arm == 16w0x77) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                        hand_off(16w0x115, 12w0x6e);
                    } else {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                            hand_off(16w0xd8, 12w0x31);
                        } else {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                    // wan/ICMPError@18 (ip-router.click:27)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                        hand_off(16w0xd6, 12w0x2f);
                                    } else {
                                        hand_off(16w0xd9, 12w0x32);
                                    }
                                } else {
                                    hand_off(16w0xd7, 12w0x30);
                                }
                            } else {
                                hand_off(16w0xda, 12w0x33);
                            }
                        }
                    }
                } else {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                hand_off(16w0x111, 12w0x6a);
                            } else {
                                hand_off(16w0x116, 12w0x6f);
                            }
                        } else {
                            hand_off(16w0x112, 12w0x6b);
                        }
                    } else {
                        hand_off(16w0x117, 12w0x70);
                    }
                }
            } else if (meta.arm == 16w0x78) {
                // wan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                        hand_off(16w0x12e, 12w0x87);
                    } else {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                            hand_off(16w0xfc, 12w0x55);
                        } else {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                    // wan/ICMPError@18 (ip-router.click:27)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                        hand_off(16w0xfa, 12w0x53);
                                    } else {
                                        hand_off(16w0xfd, 12w0x56);
                                    }
                                } else {
                                    hand_off(16w0xfb, 12w0x54);
                                }
                            } else {
                                hand_off(16w0xfe, 12w0x57);
                            }
                        }
                    }
                } else {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                hand_off(16w0x12a, 12w0x83);
                            } else {
                                hand_off(16w0x12f, 12w0x88);
                            }
                        } else {
                            hand_off(16w0x12b, 12w0x84);
                        }
                    } else {
                        hand_off(16w0x130, 12w0x89);
                    }
                }
            } else if (meta.arm == 16w0x8d) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                        hand_off(16w0xdd, 12w0x36);
                    } else {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xdb, 12w0x34);
                                } else {
                                    hand_off(16w0xde, 12w0x37);
                                }
                            } else {
                                hand_off(16w0xdc, 12w0x35);
                            }
                        } else {
                            hand_off(16w0xdf, 12w0x38);
                        }
                    }
                } else {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                hand_off(16w0x113, 12w0x6c);
                            } else {
                                hand_off(16w0x118, 12w0x71);
                            }
                        } else {
                            hand_off(16w0x114, 12w0x6d);
                        }
                    } else {
                        hand_off(16w0x119, 12w0x72);
                    }
                }
            } else if (meta.arm == 16w0x8e) {
                // wan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                        hand_off(16w0x101, 12w0x5a);
                    } else {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0xff, 12w0x58);
                                } else {
                                    hand_off(16w0x102, 12w0x5b);
                                }
                            } else {
                                hand_off(16w0x100, 12w0x59);
                            }
                        } else {
                            hand_off(16w0x103, 12w0x5c);
                        }
                    }
                } else {
                    // wan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                        // wan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                hand_off(16w0x12c, 12w0x85);
                            } else {
                                hand_off(16w0x131, 12w0x8a);
                            }
                        } else {
                            hand_off(16w0x12d, 12w0x86);
                        }
                    } else {
                        hand_off(16w0x132, 12w0x8b);
                    }
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
                        hand_off(16w0x288, 12w0x139);
                    }
                } else {
                    hand_off(16w0x27e, 12w0x12f);
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
                            hand_off(16w0x288, 12w0x139);
                        }
                    } else {
                        hand_off(16w0x27f, 12w0x130);
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
                                hand_off(16w0x288, 12w0x139);
                            }
                        } else {
                            hand_off(16w0x280, 12w0x131);
                        }
                    } else {
                        hand_off(16w0x289, 12w0x13a);
                    }
                }
            }
            if (meta.arm == 16w0x148) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                        // wan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.src == 32w0x0 || hdr.ipv4.src == 32w0xa0000ff || hdr.ipv4.src == 32w0x140000ff || hdr.ipv4.src == 32w0xffffffff)) {
                            // wan/CheckIPHeader@7 (ip-router.click:20)
                            if (hdr.ipv4.isValid() && (hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                                meta.arm = 16w0x18a;
                            } else {
                                hand_off(16w0x25f, 12w0x110);
                            }
                        } else {
                            // routes (ip-router.click:34)
                            if (hdr.ipv4.isValid()) {
                                routes342.apply();
                            } else {
                                hand_off(16w0x261, 12w0x112);
                            }
                        }
                    } else {
                        // wan/CheckIPHeader@7 (ip-router.click:20)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                            hand_off(16w0x285, 12w0x136);
                        } else {
                            // wan/CheckIPHeader@7 (ip-router.click:20)
                            if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                // wan/CheckIPHeader@7 (ip-router.click:20)
                                if (hdr.ipv4.isValid() && (hdr.ipv4.src == 32w0x0 || hdr.ipv4.src == 32w0xa0000ff || hdr.ipv4.src == 32w0x140000ff || hdr.ipv4.src == 32w0xffffffff)) {
                                    // wan/CheckIPHeader@7 (ip-router.click:20)
                                    if (hdr.ipv4.isValid() && (hdr.ipv4.dst == 32w0xa000001 || hdr.ipv4.dst == 32w0x14000001)) {
                                        meta.arm = 16w0x18b;
                                    } else {
                                        hand_off(16w0x278, 12w0x129);
                                    }
                                } else {
                                    // routes (ip-router.click:34)
                                    if (hdr.ipv4.isValid()) {
                                        routes343.apply();
                                    } else {
                                        hand_off(16w0x27a, 12w0x12b);
                                    }
                                }
                            } else {
                                hand_off(16w0x27b, 12w0x12c);
                            }
                        }
                    }
                } else {
                    hand_off(16w0x287, 12w0x138);
                }
            } else if (meta.arm == 16w0x1e6) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                        hand_off(16w0x285, 12w0x136);
                    } else {
                        hand_off(16w0x283, 12w0x134);
                    }
                } else {
                    hand_off(16w0x287, 12w0x138);
                }
            } else if (meta.arm == 16w0x1e8) {
                // wan/ARPResponder@3 (ip-router.click:17)
                if (hdr.arp.isValid() && hdr.arp.htype == 16w0x1) {
                    // wan/ARPResponder@3 (ip-router.click:17)
                    if (hdr.arp.isValid() && hdr.arp.ptype == 16w0x800) {
                        // wan/ARPResponder@3 (ip-router.click:17)
                        if (hdr.arp.isValid()) {
                            rules490.apply();
                        } else {
                            hand_off(16w0x27d, 12w0x12e);
                        }
                    } else {
                        hand_off(16w0x27d, 12w0x12e);
                    }
                } else {
                    hand_off(16w0x27d, 12w0x12e);
                }
            } else if (meta.arm == 16w0x1eb) {
                // wan/CheckIPHeader@7 (ip-router.click:20)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // wan/CheckIPHeader@7 (ip-router.click:20)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                        hand_off(16w0x285, 12w0x136);
                    } else {
                        hand_off(16w0x286, 12w0x137);
                    }
                } else {
                    hand_off(16w0x287, 12w0x138);
                }
            }
            if (meta.arm == 16w0x15c) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    meta.arm = 16w0x194;
                } else {
                    // lan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid()) {
                        test350.apply();
                    } else {
                        go(16w0x160);
                    }
                }
            } else if (meta.arm == 16w0x15d) {
                // lan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    meta.arm = 16w0x195;
                } else {
                    // lan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid()) {
                        test351.apply();
                    } else {
                        go(16w0x161);
                    }
                }
            } else if (meta.arm == 16w0x162) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x251, 12w0x102);
                        } else {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0x211, 12w0xc2);
                            } else {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // wan/ICMPError@18 (ip-router.click:27)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // wan/ICMPError@18 (ip-router.click:27)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0x20f, 12w0xc0);
                                        } else {
                                            hand_off(16w0x212, 12w0xc3);
                                        }
                                    } else {
                                        hand_off(16w0x210, 12w0xc1);
                                    }
                                } else {
                                    hand_off(16w0x213, 12w0xc4);
                                }
                            }
                        }
                    } else {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0x24b, 12w0xfc);
                                } else {
                                    hand_off(16w0x252, 12w0x103);
                                }
                            } else {
                                hand_off(16w0x24c, 12w0xfd);
                            }
                        } else {
                            hand_off(16w0x253, 12w0x104);
                        }
                    }
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfe00) == 16w0x0 || (hdr.ipv4.len & 16w0xffc0) == 16w0x200 || hdr.ipv4.len == 16w0x240)) {
                        hand_off(16w0x24d, 12w0xfe);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                    hand_off(16w0x216, 12w0xc7);
                                } else {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                        // wan/ICMPError@19 (ip-router.click:28)
                                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                            // wan/ICMPError@19 (ip-router.click:28)
                                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                                hand_off(16w0x214, 12w0xc5);
                                            } else {
                                                hand_off(16w0x217, 12w0xc8);
                                            }
                                        } else {
                                            hand_off(16w0x215, 12w0xc6);
                                        }
                                    } else {
                                        hand_off(16w0x218, 12w0xc9);
                                    }
                                }
                            } else {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // wan/ICMPError@19 (ip-router.click:28)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0x24e, 12w0xff);
                                        } else {
                                            hand_off(16w0x254, 12w0x105);
                                        }
                                    } else {
                                        hand_off(16w0x24f, 12w0x100);
                                    }
                                } else {
                                    hand_off(16w0x255, 12w0x106);
                                }
                            }
                        } else {
                            hand_off(16w0x250, 12w0x101);
                        }
                    }
                }
            } else if (meta.arm == 16w0x163) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x26a, 12w0x11b);
                        } else {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0x235, 12w0xe6);
                            } else {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // wan/ICMPError@18 (ip-router.click:27)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // wan/ICMPError@18 (ip-router.click:27)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0x233, 12w0xe4);
                                        } else {
                                            hand_off(16w0x236, 12w0xe7);
                                        }
                                    } else {
                                        hand_off(16w0x234, 12w0xe5);
                                    }
                                } else {
                                    hand_off(16w0x237, 12w0xe8);
                                }
                            }
                        }
                    } else {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0x264, 12w0x115);
                                } else {
                                    hand_off(16w0x26b, 12w0x11c);
                                }
                            } else {
                                hand_off(16w0x265, 12w0x116);
                            }
                        } else {
                            hand_off(16w0x26c, 12w0x11d);
                        }
                    }
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfe00) == 16w0x0 || (hdr.ipv4.len & 16w0xffc0) == 16w0x200 || hdr.ipv4.len == 16w0x240)) {
                        hand_off(16w0x266, 12w0x117);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                    hand_off(16w0x23a, 12w0xeb);
                                } else {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                        // wan/ICMPError@19 (ip-router.click:28)
                                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                            // wan/ICMPError@19 (ip-router.click:28)
                                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                                hand_off(16w0x238, 12w0xe9);
                                            } else {
                                                hand_off(16w0x23b, 12w0xec);
                                            }
                                        } else {
                                            hand_off(16w0x239, 12w0xea);
                                        }
                                    } else {
                                        hand_off(16w0x23c, 12w0xed);
                                    }
                                }
                            } else {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // wan/ICMPError@19 (ip-router.click:28)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0x267, 12w0x118);
                                        } else {
                                            hand_off(16w0x26d, 12w0x11e);
                                        }
                                    } else {
                                        hand_off(16w0x268, 12w0x119);
                                    }
                                } else {
                                    hand_off(16w0x26e, 12w0x11f);
                                }
                            }
                        } else {
                            hand_off(16w0x269, 12w0x11a);
                        }
                    }
                }
            } else if (meta.arm == 16w0x18a) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0x260, 12w0x111);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                            hand_off(16w0x219, 12w0xca);
                        } else {
                            hand_off(16w0x21a, 12w0xcb);
                        }
                    }
                } else {
                    hand_off(16w0x260, 12w0x111);
                }
            } else if (meta.arm == 16w0x18b) {
                // ICMPPingResponder@4 (ip-router.click:45)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // ICMPPingResponder@4 (ip-router.click:45)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0x279, 12w0x12a);
                    } else {
                        // ICMPPingResponder@4 (ip-router.click:45)
                        if (hdr.transport.isValid() && hdr.transport.sport[15:8] == 8w0x8) {
                            hand_off(16w0x23d, 12w0xee);
                        } else {
                            hand_off(16w0x23e, 12w0xef);
                        }
                    }
                } else {
                    hand_off(16w0x279, 12w0x12a);
                }
            } else if (meta.arm == 16w0x1ba) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x209, 12w0xba);
                        } else {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0x1ef, 12w0xa0);
                            } else {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // wan/ICMPError@18 (ip-router.click:27)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // wan/ICMPError@18 (ip-router.click:27)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0x1ed, 12w0x9e);
                                        } else {
                                            hand_off(16w0x1f0, 12w0xa1);
                                        }
                                    } else {
                                        hand_off(16w0x1ee, 12w0x9f);
                                    }
                                } else {
                                    hand_off(16w0x1f1, 12w0xa2);
                                }
                            }
                        }
                    } else {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0x203, 12w0xb4);
                                } else {
                                    hand_off(16w0x20a, 12w0xbb);
                                }
                            } else {
                                hand_off(16w0x204, 12w0xb5);
                            }
                        } else {
                            hand_off(16w0x20b, 12w0xbc);
                        }
                    }
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfe00) == 16w0x0 || (hdr.ipv4.len & 16w0xffc0) == 16w0x200 || hdr.ipv4.len == 16w0x240)) {
                        hand_off(16w0x205, 12w0xb6);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                    hand_off(16w0x1f4, 12w0xa5);
                                } else {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                        // wan/ICMPError@19 (ip-router.click:28)
                                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                            // wan/ICMPError@19 (ip-router.click:28)
                                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                                hand_off(16w0x1f2, 12w0xa3);
                                            } else {
                                                hand_off(16w0x1f5, 12w0xa6);
                                            }
                                        } else {
                                            hand_off(16w0x1f3, 12w0xa4);
                                        }
                                    } else {
                                        hand_off(16w0x1f6, 12w0xa7);
                                    }
                                }
                            } else {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // wan/ICMPError@19 (ip-router.click:28)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0x206, 12w0xb7);
                                        } else {
                                            hand_off(16w0x20c, 12w0xbd);
                                        }
                                    } else {
                                        hand_off(16w0x207, 12w0xb8);
                                    }
                                } else {
                                    hand_off(16w0x20d, 12w0xbe);
                                }
                            }
                        } else {
                            hand_off(16w0x208, 12w0xb9);
                        }
                    }
                }
            } else if (meta.arm == 16w0x1bb) {
                // wan/ttl (ip-router.click:24)
                if (hdr.ipv4.isValid() && (hdr.ipv4.ttl & 8w0xfe) == 8w0x0) {
                    // wan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                            hand_off(16w0x22d, 12w0xde);
                        } else {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                hand_off(16w0x1f9, 12w0xaa);
                            } else {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // wan/ICMPError@18 (ip-router.click:27)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // wan/ICMPError@18 (ip-router.click:27)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0x1f7, 12w0xa8);
                                        } else {
                                            hand_off(16w0x1fa, 12w0xab);
                                        }
                                    } else {
                                        hand_off(16w0x1f8, 12w0xa9);
                                    }
                                } else {
                                    hand_off(16w0x1fb, 12w0xac);
                                }
                            }
                        }
                    } else {
                        // wan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // wan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // wan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0x227, 12w0xd8);
                                } else {
                                    hand_off(16w0x22e, 12w0xdf);
                                }
                            } else {
                                hand_off(16w0x228, 12w0xd9);
                            }
                        } else {
                            hand_off(16w0x22f, 12w0xe0);
                        }
                    }
                } else {
                    // wan/fragment (ip-router.click:24)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfe00) == 16w0x0 || (hdr.ipv4.len & 16w0xffc0) == 16w0x200 || hdr.ipv4.len == 16w0x240)) {
                        hand_off(16w0x229, 12w0xda);
                    } else {
                        // wan/fragment (ip-router.click:24)
                        if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                            // wan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                                    hand_off(16w0x1fe, 12w0xaf);
                                } else {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                        // wan/ICMPError@19 (ip-router.click:28)
                                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                            // wan/ICMPError@19 (ip-router.click:28)
                                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                                hand_off(16w0x1fc, 12w0xad);
                                            } else {
                                                hand_off(16w0x1ff, 12w0xb0);
                                            }
                                        } else {
                                            hand_off(16w0x1fd, 12w0xae);
                                        }
                                    } else {
                                        hand_off(16w0x200, 12w0xb1);
                                    }
                                }
                            } else {
                                // wan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                    // wan/ICMPError@19 (ip-router.click:28)
                                    if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                        // wan/ICMPError@19 (ip-router.click:28)
                                        if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                            hand_off(16w0x22a, 12w0xdb);
                                        } else {
                                            hand_off(16w0x230, 12w0xe1);
                                        }
                                    } else {
                                        hand_off(16w0x22b, 12w0xdc);
                                    }
                                } else {
                                    hand_off(16w0x231, 12w0xe2);
                                }
                            }
                        } else {
                            hand_off(16w0x22c, 12w0xdd);
                        }
                    }
                }
            }
            if (meta.arm == 16w0x160) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    meta.arm = 16w0x1aa;
                } else {
                    hand_off(16w0x24a, 12w0xfb);
                }
            } else if (meta.arm == 16w0x161) {
                // lan/fragment (ip-router.click:24)
                if (hdr.ipv4.isValid() && hdr.ipv4.flags[1:1] == 1w0x1) {
                    meta.arm = 16w0x1ab;
                } else {
                    hand_off(16w0x263, 12w0x114);
                }
            } else if (meta.arm == 16w0x194) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                        hand_off(16w0x25a, 12w0x10b);
                    } else {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                            hand_off(16w0x21d, 12w0xce);
                        } else {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                // lan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                    // lan/ICMPError@18 (ip-router.click:27)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                        hand_off(16w0x21b, 12w0xcc);
                                    } else {
                                        hand_off(16w0x21e, 12w0xcf);
                                    }
                                } else {
                                    hand_off(16w0x21c, 12w0xcd);
                                }
                            } else {
                                hand_off(16w0x21f, 12w0xd0);
                            }
                        }
                    }
                } else {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                hand_off(16w0x256, 12w0x107);
                            } else {
                                hand_off(16w0x25b, 12w0x10c);
                            }
                        } else {
                            hand_off(16w0x257, 12w0x108);
                        }
                    } else {
                        hand_off(16w0x25c, 12w0x10d);
                    }
                }
            } else if (meta.arm == 16w0x195) {
                // lan/ICMPError@18 (ip-router.click:27)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && (hdr.ipv4.len & 16w0xfffc) == 16w0x14) {
                        hand_off(16w0x273, 12w0x124);
                    } else {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                            hand_off(16w0x241, 12w0xf2);
                        } else {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                                // lan/ICMPError@18 (ip-router.click:27)
                                if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                    // lan/ICMPError@18 (ip-router.click:27)
                                    if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                        hand_off(16w0x23f, 12w0xf0);
                                    } else {
                                        hand_off(16w0x242, 12w0xf3);
                                    }
                                } else {
                                    hand_off(16w0x240, 12w0xf1);
                                }
                            } else {
                                hand_off(16w0x243, 12w0xf4);
                            }
                        }
                    }
                } else {
                    // lan/ICMPError@18 (ip-router.click:27)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                        // lan/ICMPError@18 (ip-router.click:27)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                            // lan/ICMPError@18 (ip-router.click:27)
                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                hand_off(16w0x26f, 12w0x120);
                            } else {
                                hand_off(16w0x274, 12w0x125);
                            }
                        } else {
                            hand_off(16w0x270, 12w0x121);
                        }
                    } else {
                        hand_off(16w0x275, 12w0x126);
                    }
                }
            }
            if (meta.arm == 16w0x1aa) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                        hand_off(16w0x222, 12w0xd3);
                    } else {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // lan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // lan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0x220, 12w0xd1);
                                } else {
                                    hand_off(16w0x223, 12w0xd4);
                                }
                            } else {
                                hand_off(16w0x221, 12w0xd2);
                            }
                        } else {
                            hand_off(16w0x224, 12w0xd5);
                        }
                    }
                } else {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                            // lan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                hand_off(16w0x258, 12w0x109);
                            } else {
                                hand_off(16w0x25d, 12w0x10e);
                            }
                        } else {
                            hand_off(16w0x259, 12w0x10a);
                        }
                    } else {
                        hand_off(16w0x25e, 12w0x10f);
                    }
                }
            } else if (meta.arm == 16w0x1ab) {
                // lan/ICMPError@19 (ip-router.click:28)
                if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x1) {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.transport.isValid() && (hdr.transport.sport[15:8] == 8w0x3 || (hdr.transport.sport[15:8] & 8w0xfe) == 8w0x4 || hdr.transport.sport[15:8] == 8w0xb || hdr.transport.sport[15:8] == 8w0xc)) {
                        hand_off(16w0x246, 12w0xf7);
                    } else {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                            // lan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                                // lan/ICMPError@19 (ip-router.click:28)
                                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                    hand_off(16w0x244, 12w0xf5);
                                } else {
                                    hand_off(16w0x247, 12w0xf8);
                                }
                            } else {
                                hand_off(16w0x245, 12w0xf6);
                            }
                        } else {
                            hand_off(16w0x248, 12w0xf9);
                        }
                    }
                } else {
                    // lan/ICMPError@19 (ip-router.click:28)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.dst & 32w0xf0000000) != 32w0xe0000000 && hdr.ipv4.dst != 32w0xffffffff)) {
                        // lan/ICMPError@19 (ip-router.click:28)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.src & 32w0xff000000) != 32w0x0 && (hdr.ipv4.src & 32w0xff000000) != 32w0x7f000000 && (hdr.ipv4.src & 32w0xe0000000) != 32w0xe0000000)) {
                            // lan/ICMPError@19 (ip-router.click:28)
                            if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                                hand_off(16w0x271, 12w0x122);
                            } else {
                                hand_off(16w0x276, 12w0x127);
                            }
                        } else {
                            hand_off(16w0x272, 12w0x123);
                        }
                    } else {
                        hand_off(16w0x277, 12w0x128);
                    }
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
