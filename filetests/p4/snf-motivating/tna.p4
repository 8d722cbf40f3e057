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

struct headers_t {
    ethernet_t ethernet;
    vlan_t tag;
    ipv4_t ipv4;
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
        meta.class = 16w0x13;
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
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md, in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md, inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    // Packets and bytes of each exit, by its number; of frames from the cores and elsewhere behind them
    Counter<bit<64>, bit<16>>(20, CounterType_t.PACKETS_AND_BYTES) classes;

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

    // Classifier@5 (snf-motivating.click:40)
    table rules0 {
        key = {
            hdr.ethernet.ether_type: exact;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(16w0x12, 12w0x9);
        size = 1;
    }

    // nat/kind (snf-motivating.click:15)
    table rules3 {
        key = {
            hdr.ipv4.protocol: exact;
        }
        actions = {
            go;
            hand_off;
        }
        default_action = hand_off(16w0xd, 12w0x4);
        size = 2;
    }

    apply {
        if (ig_intr_md.ingress_port == CORES) {
            if (hdr.tag.isValid()) {
                ports.apply();
            } else {
                lost();
            }
        } else if (ig_intr_md.ingress_port == 9w0x1) {
            // Classifier@5 (snf-motivating.click:40)
            rules0.apply();
            if (meta.arm == 16w0x1) {
                // nat/Enter@1/check (snf-motivating.click:8)
                if (hdr.ipv4.isValid() && hdr.ipv4.version == 4w0x4) {
                    // nat/Enter@1/check (snf-motivating.click:8)
                    if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                        // nat/kind (snf-motivating.click:15)
                        if (hdr.ipv4.isValid()) {
                            rules3.apply();
                        } else {
                            hand_off(16w0xd, 12w0x4);
                        }
                    } else {
                        // nat/Enter@1/check (snf-motivating.click:8)
                        if (hdr.ipv4.isValid() && ((hdr.ipv4.ihl & 4w0xc) == 4w0x0 || hdr.ipv4.ihl == 4w0x4)) {
                            hand_off(16w0x10, 12w0x7);
                        } else {
                            // nat/Enter@1/check (snf-motivating.click:8)
                            if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 4w0x5) {
                                hand_off(16w0xe, 12w0x5);
                            } else {
                                hand_off(16w0xf, 12w0x6);
                            }
                        }
                    }
                } else {
                    hand_off(16w0x11, 12w0x8);
                }
            }
            if (meta.arm == 16w0x4) {
                // nat/rw (snf-motivating.click:16)
                if (hdr.ipv4.isValid() && hdr.ipv4.frag == 13w0x0) {
                    // nat/rw (snf-motivating.click:16)
                    if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfffc) == 16w0x18)) {
                        hand_off(16w0xc, 12w0x3);
                    } else {
                        // nat/rw (snf-motivating.click:16)
                        if (hdr.ipv4.isValid() && hdr.ipv4.protocol == 8w0x6) {
                            // nat/rw (snf-motivating.click:16)
                            if (hdr.ipv4.isValid() && ((hdr.ipv4.len & 16w0xfffc) == 16w0x14 || (hdr.ipv4.len & 16w0xfff8) == 16w0x18 || (hdr.ipv4.len & 16w0xfffc) == 16w0x20 || (hdr.ipv4.len & 16w0xfffe) == 16w0x24)) {
                                hand_off(16w0xc, 12w0x3);
                            } else {
                                hand_off(16w0xb, 12w0x2);
                            }
                        } else {
                            hand_off(16w0xa, 12w0x1);
                        }
                    }
                } else {
                    hand_off(16w0xc, 12w0x3);
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
