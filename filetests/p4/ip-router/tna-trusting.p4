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
    bit<16> at;
    bit<16> arm;
    bit<16> next;
    bit<12> list;
    bit<16> class;
}

parser Parse(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        meta.at = 16w0x0;
        meta.arm = 16w0x0;
        meta.next = 16w0x0;
        meta.list = 12w0x0;
        meta.class = 16w0x292;
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
    Counter<bit<64>, bit<16>>(659, CounterType_t.PACKETS_AND_BYTES) classes;
    bit<16> key2_1;
    bit<16> key7_1;
    bit<16> key10_1;
    bit<16> key331_1;
    bit<16> key336_1;
    bit<16> key339_1;

    action go(bit<16> at, bit<16> arm) {
        meta.at = at;
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
    action discard(bit<16> number) {
        meta.class = number;
        ig_dprsr_md.drop_ctl = 3w1;
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
    table decide1 {
        key = {
            hdr.ethernet.dst: ternary;
            hdr.ethernet.ether_type: ternary;
            hdr.ethernet.dst[40:40]: ternary;
        }
        actions = {
            go;
            hand_off;
            discard;
        }
        default_action = discard(16w0xd6);
        size = 6;
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
            discard;
        }
        default_action = discard(16w0xd5);
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
            discard;
        }
        default_action = discard(16w0xd5);
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
            discard;
        }
        default_action = discard(16w0xd5);
        size = 3;
    }

    // ICMPPingResponder@4 (ip-router.click:45)
    table decide5 {
        key = {
            meta.arm: exact;
            hdr.arp.isValid(): ternary;
            hdr.ipv4.isValid(): ternary;
            hdr.transport.isValid(): ternary;
            hdr.ipv4.version: ternary;
            hdr.ipv4.ihl: range;
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.len: range;
            hdr.transport.sport[15:8]: range;
            hdr.ipv4.ttl: ternary;
            hdr.ipv4.frag: ternary;
            hdr.ipv4.flags[1:1]: ternary;
            hdr.arp.ptype: ternary;
            hdr.arp.htype: ternary;
            hdr.arp.tpa: ternary;
        }
        actions = {
            hand_off;
            discard;
        }
        default_action = discard(16w0xd4);
        size = 145;
    }

    // wan/kind (ip-router.click:16)
    table decide6 {
        key = {
            hdr.ethernet.dst: ternary;
            hdr.ethernet.ether_type: ternary;
            hdr.ethernet.dst[40:40]: ternary;
        }
        actions = {
            go;
            hand_off;
            discard;
        }
        default_action = discard(16w0x21f);
        size = 6;
    }

    // wan/kind (ip-router.click:16)
    table rules331 {
        key = {
            hdr.ethernet.ether_type: exact;
            key331_1: ternary;
        }
        actions = {
            go;
            hand_off;
            discard;
        }
        default_action = discard(16w0x21e);
        size = 3;
    }

    // wan/kind (ip-router.click:16)
    table rules336 {
        key = {
            hdr.ethernet.ether_type: exact;
            key336_1: ternary;
        }
        actions = {
            go;
            hand_off;
            discard;
        }
        default_action = discard(16w0x21e);
        size = 3;
    }

    // wan/kind (ip-router.click:16)
    table rules339 {
        key = {
            hdr.ethernet.ether_type: exact;
            key339_1: ternary;
        }
        actions = {
            go;
            hand_off;
            discard;
        }
        default_action = discard(16w0x21e);
        size = 3;
    }

    // ICMPPingResponder@4 (ip-router.click:45)
    table decide10 {
        key = {
            meta.arm: exact;
            hdr.arp.isValid(): ternary;
            hdr.ipv4.isValid(): ternary;
            hdr.transport.isValid(): ternary;
            hdr.ipv4.version: ternary;
            hdr.ipv4.ihl: range;
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.len: range;
            hdr.ipv4.protocol: ternary;
            hdr.transport.sport[15:8]: range;
            hdr.ipv4.ttl: ternary;
            hdr.ipv4.frag: ternary;
            hdr.ipv4.flags[1:1]: ternary;
            hdr.arp.ptype: ternary;
            hdr.arp.htype: ternary;
            hdr.arp.tpa: ternary;
        }
        actions = {
            hand_off;
            discard;
        }
        default_action = discard(16w0x21d);
        size = 145;
    }

    apply {
        if (ig_intr_md.ingress_port == CORES) {
            if (hdr.tag.isValid()) {
                ports.apply();
            } else {
                lost();
            }
        } else if (ig_intr_md.ingress_port == 9w0x3) {
            // lan/kind (ip-router.click:16)
            decide1.apply();
            if (meta.at == 16w0x2) {
                // lan/kind (ip-router.click:16)
                if (hdr.ipv4.isValid()) {
                    key2_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                    rules2.apply();
                } else {
                    discard(16w0xd5);
                }
            } else if (meta.at == 16w0x3) {
                // lan/kind (ip-router.click:16)
                if (hdr.ipv4.isValid()) {
                    key7_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                    rules7.apply();
                } else {
                    discard(16w0xd5);
                }
            } else if (meta.at == 16w0x4) {
                // lan/kind (ip-router.click:16)
                if (hdr.ipv4.isValid()) {
                    key10_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                    rules10.apply();
                } else {
                    discard(16w0xd5);
                }
            }
            if (meta.at == 16w0x5) {
                // ICMPPingResponder@4 (ip-router.click:45)
                decide5.apply();
            }
        } else if (ig_intr_md.ingress_port == 9w0x4) {
            // wan/kind (ip-router.click:16)
            decide6.apply();
            if (meta.at == 16w0x7) {
                // wan/kind (ip-router.click:16)
                if (hdr.ipv4.isValid()) {
                    key331_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                    rules331.apply();
                } else {
                    discard(16w0x21e);
                }
            } else if (meta.at == 16w0x8) {
                // wan/kind (ip-router.click:16)
                if (hdr.ipv4.isValid()) {
                    key336_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                    rules336.apply();
                } else {
                    discard(16w0x21e);
                }
            } else if (meta.at == 16w0x9) {
                // wan/kind (ip-router.click:16)
                if (hdr.ipv4.isValid()) {
                    key339_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                    rules339.apply();
                } else {
                    discard(16w0x21e);
                }
            }
            if (meta.at == 16w0xa) {
                // ICMPPingResponder@4 (ip-router.click:45)
                decide10.apply();
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
