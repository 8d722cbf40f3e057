//! Every class that configurations can name.

use crate::element::Class;

/// All classes, sorted by name.
pub static CLASSES: &[&Class] = &[
    &crate::arp_querier::ARPQuerier::CLASS,
    &crate::arp_responder::ARPResponder::CLASS,
    &crate::arp_table::ARPTable::CLASS,
    &crate::address_info::AddressInfo::CLASS,
    &crate::align::Align::CLASS,
    &crate::align::AlignmentInfo::CLASS,
    &crate::average_counter::AverageCounter::CLASS,
    &crate::check_icmp_header::CheckICMPHeader::CLASS,
    &crate::check_ip_header::CheckIPHeader::CLASS,
    &crate::check_ip_header::CheckIPHeader2::CLASS,
    &crate::check_length::CheckLength::CLASS,
    &crate::check_tcp_header::CheckTCPHeader::CLASS,
    &crate::check_udp_header::CheckUDPHeader::CLASS,
    &crate::check_vlan::CheckVLAN::CLASS,
    &crate::classifier::Classifier::CLASS,
    &crate::counter::Counter::CLASS,
    &crate::drr_sched::DRRSched::CLASS,
    &crate::dec_ip_ttl::DecIPTTL::CLASS,
    &crate::discard::Discard::CLASS,
    &crate::drop_broadcasts::DropBroadcasts::CLASS,
    &crate::ether_encap::EtherEncap::CLASS,
    &crate::ether_rewrite::EtherMirror::CLASS,
    &crate::ether_rewrite::EtherRewrite::CLASS,
    &crate::ether_switch::EtherSwitch::CLASS,
    &crate::ether_vlan_encap::EtherVLANEncap::CLASS,
    &crate::fix_ip_src::FixIPSrc::CLASS,
    &crate::from_dump::FromDump::CLASS,
    &crate::queue::FrontDropQueue::CLASS,
    &crate::queue::FullNoteQueue::CLASS,
    &crate::get_ip_address::GetIPAddress::CLASS,
    &crate::host_ether_filter::HostEtherFilter::CLASS,
    &crate::icmp_error::ICMPError::CLASS,
    &crate::icmp_ping_responder::ICMPPingResponder::CLASS,
    &crate::icmp_ping_rewriter::ICMPPingRewriter::CLASS,
    &crate::ip_addr_rewriter::IPAddrPairRewriter::CLASS,
    &crate::ip_addr_rewriter::IPAddrRewriter::CLASS,
    &crate::ip_classifier::IPClassifier::CLASS,
    &crate::ip_encap::IPEncap::CLASS,
    &crate::ip_filter::IPFilter::CLASS,
    &crate::ip_fragmenter::IPFragmenter::CLASS,
    &crate::ip_gw_options::IPGWOptions::CLASS,
    &crate::ip_combo::IPInputCombo::CLASS,
    &crate::ip_mirror::IPMirror::CLASS,
    &crate::ip_combo::IPOutputCombo::CLASS,
    &crate::ip_reassembler::IPReassembler::CLASS,
    &crate::ip_rewriter::IPRewriter::CLASS,
    &crate::ip_rewriter_patterns::IPRewriterPatterns::CLASS,
    &crate::null::Idle::CLASS,
    &crate::set_ip_dscp::MarkIPCE::CLASS,
    &crate::mark_ip_header::MarkIPHeader::CLASS,
    &crate::queue::NotifierQueue::CLASS,
    &crate::null::Null::CLASS,
    &crate::null::Null1::CLASS,
    &crate::null::Null2::CLASS,
    &crate::null::Null3::CLASS,
    &crate::null::Null4::CLASS,
    &crate::null::Null5::CLASS,
    &crate::null::Null6::CLASS,
    &crate::null::Null7::CLASS,
    &crate::null::Null8::CLASS,
    &crate::null::NullElement::CLASS,
    &crate::truncate::Pad::CLASS,
    &crate::address_info::PortInfo::CLASS,
    &crate::round_robin_sched::PrioSched::CLASS,
    &crate::null::PullNull::CLASS,
    &crate::null::PullNullElement::CLASS,
    &crate::null::PushNull::CLASS,
    &crate::null::PushNullElement::CLASS,
    &crate::queue::Queue::CLASS,
    &crate::queue::QuickNoteQueue::CLASS,
    &crate::round_robin_sched::RRSched::CLASS,
    &crate::ip_mapper::RoundRobinIPMapper::CLASS,
    &crate::round_robin_sched::RoundRobinSched::CLASS,
    &crate::schedule_info::ScheduleInfo::CLASS,
    &crate::set_ip_address::SetIPAddress::CLASS,
    &crate::set_ip_checksum::SetIPChecksum::CLASS,
    &crate::set_ip_dscp::SetIPDSCP::CLASS,
    &crate::set_ip_dscp::SetIPECN::CLASS,
    &crate::set_tcp_checksum::SetTCPChecksum::CLASS,
    &crate::set_timestamp::SetTimestamp::CLASS,
    &crate::set_udp_checksum::SetUDPChecksum::CLASS,
    &crate::vlan_tag::SetVLANAnno::CLASS,
    &crate::round_robin_sched::SimplePrioSched::CLASS,
    &crate::queue::SimpleQueue::CLASS,
    &crate::ip_mapper::SourceIPHashMapper::CLASS,
    &crate::schedule_info::StaticThreadSched::CLASS,
    &crate::store_data::StoreData::CLASS,
    &crate::store_ip_address::StoreIPAddress::CLASS,
    &crate::stride_sched::StrideSched::CLASS,
    &crate::strip::Strip::CLASS,
    &crate::ether_vlan_encap::StripEtherVLANHeader::CLASS,
    &crate::strip_ip_header::StripIPHeader::CLASS,
    &crate::strip_ip_header::StripToNetworkHeader::CLASS,
    &crate::ip_rewriter::TCPRewriter::CLASS,
    &crate::tee::Tee::CLASS,
    &crate::queue::ThreadSafeQueue::CLASS,
    &crate::to_dump::ToDump::CLASS,
    &crate::truncate::Truncate::CLASS,
    &crate::udp_ip_encap::UDPIPEncap::CLASS,
    &crate::ip_rewriter::UDPRewriter::CLASS,
    &crate::unqueue::Unqueue::CLASS,
    &crate::strip::Unstrip::CLASS,
    &crate::strip_ip_header::UnstripIPHeader::CLASS,
    &crate::vlan_encap::VLANDecap::CLASS,
    &crate::vlan_encap::VLANEncap::CLASS,
];

/// The class of this name.
pub fn find(name: &str) -> Option<&'static Class> {
    CLASSES.binary_search_by(|c| c.name.cmp(name)).ok().map(|i| CLASSES[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_sorted_and_documented() {
        for pair in CLASSES.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands before {}", pair[0].name, pair[1].name);
        }
        for class in CLASSES {
            let first = class.manual.lines().next().unwrap_or("");
            let titled = first.trim_start().starts_with(class.name) && first.contains(" -- ");
            assert!(titled, "the manual of {} starts with '{first}'", class.name);
        }
    }
}
