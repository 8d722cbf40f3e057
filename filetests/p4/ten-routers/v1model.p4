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

    action discard(bit<16> number) {
        meta.class = number;
        mark_to_drop(standard_metadata);
    }
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
    table decide1 {
        key = {
            standard_metadata.packet_length: range;
            hdr.ethernet.ether_type: ternary;
            hdr.ipv4.version: ternary;
            hdr.ipv4.ihl: range;
        }
        actions = {
            discard;
            go;
        }
        default_action = discard(16w0xf8);
        size = 7;
    }

    // r1/routes (ten-routers.click:8)
    table decide4 {
        key = {
            meta.arm: exact;
            hdr.ipv4.dst: ternary;
            hdr.ethernet.dst[40:40]: ternary;
            hdr.ipv4.ttl: range;
            hdr.ipv4.len: range;
            hdr.ipv4.protocol: ternary;
            standard_metadata.packet_length: range;
            hdr.transport.sport[15:8]: range;
            hdr.ipv4.src: ternary;
            hdr.ipv4.frag: ternary;
            hdr.ipv4.flags[1:1]: ternary;
            hdr.ipv4.ihl: ternary;
        }
        actions = {
            discard;
            go;
            hand_off;
            leave;
        }
        default_action = hand_off(16w0x115, 12w0x1d);
        size = 289;
    }

    // r2/routes (ten-routers.click:8)
    table decide6 {
        key = {
            meta.arm: exact;
            hdr.ipv4.dst: ternary;
            standard_metadata.packet_length: range;
            hdr.ipv4.protocol: ternary;
            hdr.transport.sport[15:8]: range;
            hdr.ipv4.src: ternary;
            hdr.ipv4.frag: ternary;
            hdr.ipv4.len: range;
            hdr.ipv4.flags[1:1]: ternary;
        }
        actions = {
            discard;
            hand_off;
        }
        default_action = hand_off(16w0x114, 12w0x1c);
        size = 75;
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
            decide1.apply();
            if (meta.at == 16w0x2) {
                // r1/CheckIPHeader@2 (ten-routers.click:7)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // r1/CheckIPHeader@2 (ten-routers.click:7)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        // r1/CheckIPHeader@2 (ten-routers.click:7)
                        if (standard_metadata.checksum_error == 1w0) {
                            go(16w0x4, 16w0x7);
                        } else {
                            discard(16w0xf5);
                        }
                    } else {
                        discard(16w0xf6);
                    }
                } else {
                    discard(16w0xf6);
                }
            } else if (meta.at == 16w0x3) {
                // r1/CheckIPHeader@2 (ten-routers.click:7)
                if ((((bit<32>)hdr.ipv4.len) + 32w0xe) <= standard_metadata.packet_length) {
                    // r1/CheckIPHeader@2 (ten-routers.click:7)
                    if ((((bit<16>)hdr.ipv4.ihl) * 16w0x4) <= hdr.ipv4.len) {
                        go(16w0x4, 16w0x3d);
                    } else {
                        discard(16w0xf6);
                    }
                } else {
                    discard(16w0xf6);
                }
            }
            if (meta.at == 16w0x4) {
                // r1/routes (ten-routers.click:8)
                decide4.apply();
            }
            if (meta.at == 16w0x5) {
                // r1/fragment (ten-routers.click:10)
                if ((hdr.ipv4.len <= 16w0x13 || (hdr.ipv4.len >= 16w0x18 && hdr.ipv4.len <= 16w0x5dc))) {
                    go(16w0x6, 16w0xc);
                } else {
                    go(16w0x6, 16w0x1f);
                }
            }
            if (meta.at == 16w0x6) {
                // r2/routes (ten-routers.click:8)
                decide6.apply();
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
