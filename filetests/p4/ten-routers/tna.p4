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
    action go(bit<16> at, bit<16> arm) {
        meta.at = at;
        meta.arm = arm;
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

    // r1/routes (ten-routers.click:8)
    table decide1 {
        key = {
            hdr.ipv4.isValid(): ternary;
            hdr.transport.isValid(): ternary;
            hdr.ethernet.ether_type: exact;
            hdr.ipv4.version: ternary;
            hdr.ipv4.ihl: range;
            hdr.ipv4.dst: ternary;
            hdr.ethernet.dst[40:40]: ternary;
            hdr.ipv4.ttl: range;
            hdr.ipv4.len: range;
            hdr.ipv4.protocol: ternary;
            hdr.transport.sport[15:8]: range;
            hdr.ipv4.src: ternary;
            hdr.ipv4.frag: ternary;
            hdr.ipv4.flags[1:1]: ternary;
        }
        actions = {
            hand_off;
            go;
        }
        default_action = hand_off(16w0x142, 12w0x93);
        size = 271;
    }

    // r1/fragment (ten-routers.click:10)
    table test7 {
        key = {
            hdr.ipv4.len: range;
        }
        actions = {
            go;
        }
        default_action = go(16w0x3, 16w0x1b);
        size = 2;
    }

    // r2/routes (ten-routers.click:8)
    table decide3 {
        key = {
            meta.arm: exact;
            hdr.ipv4.isValid(): exact;
            hdr.transport.isValid(): ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.transport.sport[15:8]: range;
            hdr.ipv4.src: ternary;
            hdr.ipv4.frag: ternary;
            hdr.ipv4.len: range;
            hdr.ipv4.flags[1:1]: ternary;
        }
        actions = {
            hand_off;
        }
        default_action = hand_off(16w0xfe, 12w0x4f);
        size = 70;
    }

    apply {
        if (ig_intr_md.ingress_port == CORES) {
            if (hdr.tag.isValid()) {
                ports.apply();
            } else {
                lost();
            }
        } else if (ig_intr_md.ingress_port == 9w0x1) {
            // r1/routes (ten-routers.click:8)
            decide1.apply();
            if (meta.at == 16w0x2) {
                // r1/fragment (ten-routers.click:10)
                if (hdr.ipv4.isValid()) {
                    test7.apply();
                } else {
                    go(16w0x3, 16w0x1b);
                }
            }
            if (meta.at == 16w0x3) {
                // r2/routes (ten-routers.click:8)
                decide3.apply();
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
