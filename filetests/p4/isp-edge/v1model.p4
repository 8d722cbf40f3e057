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
        meta.class = 16w0x107;
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
    counter(264, CounterType.packets_and_bytes) classes;
    bit<16> key2_1;

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

    // kind (isp-edge.click:66)
    table decide1 {
        key = {
            standard_metadata.packet_length: range;
            hdr.ethernet.ether_type: ternary;
        }
        actions = {
            discard;
            hand_off;
            go;
        }
        default_action = hand_off(16w0xf8, 12w0x3f);
        size = 5;
    }

    // kind (isp-edge.click:66)
    table rules2 {
        key = {
            hdr.ethernet.ether_type: exact;
            key2_1: ternary;
        }
        actions = {
            discard;
            go;
        }
        default_action = discard(16w0xb9);
        size = 2;
    }

    // fw/CheckIPHeader@2 (isp-edge.click:16)
    table decide3 {
        key = {
            meta.arm: exact;
            hdr.arp.isValid(): ternary;
            hdr.ipv4.version: ternary;
            hdr.ipv4.ihl: range;
            standard_metadata.packet_length: range;
            hdr.arp.ptype: ternary;
            hdr.arp.htype: ternary;
            hdr.arp.tpa: ternary;
        }
        actions = {
            discard;
            go;
            leave;
        }
        default_action = discard(16w0xb5);
        size = 6;
    }

    // fw/acl (isp-edge.click:16)
    table decide6 {
        key = {
            meta.arm: exact;
            hdr.ipv4.isValid(): ternary;
            standard_metadata.packet_length: range;
            hdr.ipv4.ihl: ternary;
            hdr.ipv4.len: range;
        }
        actions = {
            hand_off;
            go;
        }
        default_action = go(16w0x8, 16w0x2a);
        size = 8;
    }

    // fw/acl (isp-edge.click:16)
    table rules10 {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.dport: range;
        }
        actions = {
            discard;
            go;
        }
        default_action = discard(16w0xac);
        size = 8549;
    }

    // fw/acl (isp-edge.click:16)
    table rules42 {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.dport: range;
        }
        actions = {
            discard;
            go;
        }
        default_action = discard(16w0xac);
        size = 8549;
    }

    // fw/acl (isp-edge.click:16)
    table rules44 {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: exact;
            hdr.ipv4.frag: ternary;
            hdr.transport.dport: range;
        }
        actions = {
            hand_off;
            go;
        }
        default_action = hand_off(16w0xf5, 12w0x3c);
        size = 8549;
    }

    // router/CheckIPHeader@2 (isp-edge.click:22)
    table decide10 {
        key = {
            meta.arm: exact;
            hdr.ethernet.isValid(): ternary;
            hdr.ipv4.isValid(): ternary;
            hdr.transport.isValid(): ternary;
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ethernet.dst[40:40]: ternary;
            standard_metadata.packet_length: range;
            hdr.ipv4.protocol: ternary;
            hdr.ipv4.ttl: ternary;
            hdr.transport.sport[15:8]: range;
            hdr.ipv4.frag: ternary;
            hdr.ipv4.len: range;
            hdr.ipv4.flags[1:1]: ternary;
        }
        actions = {
            discard;
            hand_off;
        }
        default_action = hand_off(16w0xd7, 12w0x1e);
        size = 161;
    }

    apply {
        if (standard_metadata.ingress_port == CORES) {
            if (hdr.tag.isValid()) {
                ports.apply();
            } else {
                lost();
            }
        } else if (standard_metadata.ingress_port == 9w0x1) {
            // kind (isp-edge.click:66)
            decide1.apply();
            if (meta.at == 16w0x2) {
                // kind (isp-edge.click:66)
                key2_1 = (hdr.ipv4.flags ++ hdr.ipv4.frag);
                rules2.apply();
            }
            if (meta.at == 16w0x3) {
                // fw/CheckIPHeader@2 (isp-edge.click:16)
                decide3.apply();
            }
            if (meta.at == 16w0x4) {
                // fw/CheckIPHeader@2 (isp-edge.click:16)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // fw/CheckIPHeader@2 (isp-edge.click:16)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        // fw/CheckIPHeader@2 (isp-edge.click:16)
                        if (standard_metadata.checksum_error == 1w0) {
                            // fw/acl (isp-edge.click:16)
                            if ((hdr.ipv4.len >= 16w0x1a && hdr.ipv4.len <= 16w0x5dc)) {
                                go(16w0x6, 16w0x9);
                            } else {
                                go(16w0x6, 16w0x24);
                            }
                        } else {
                            discard(16w0xad);
                        }
                    } else {
                        discard(16w0xae);
                    }
                } else {
                    discard(16w0xae);
                }
            } else if (meta.at == 16w0x5) {
                // fw/CheckIPHeader@2 (isp-edge.click:16)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // fw/CheckIPHeader@2 (isp-edge.click:16)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        go(16w0x6, 16w0x22);
                    } else {
                        discard(16w0xae);
                    }
                } else {
                    discard(16w0xae);
                }
            }
            if (meta.at == 16w0x6) {
                // fw/acl (isp-edge.click:16)
                decide6.apply();
            }
            if (meta.at == 16w0x7) {
                // fw/acl (isp-edge.click:16)
                rules10.apply();
            } else if (meta.at == 16w0x8) {
                // fw/acl (isp-edge.click:16)
                rules42.apply();
            } else if (meta.at == 16w0x9) {
                // fw/acl (isp-edge.click:16)
                if (hdr.ipv4.isValid() && hdr.transport.isValid()) {
                    rules44.apply();
                } else {
                    hand_off(16w0xf5, 12w0x3c);
                }
            }
            if (meta.at == 16w0xa) {
                // router/CheckIPHeader@2 (isp-edge.click:22)
                decide10.apply();
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
