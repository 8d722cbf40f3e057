//! Every class that configurations can name.

use crate::element::Class;

/// Hands the paths of all classes, sorted by name, to a macro.
#[macro_export]
macro_rules! classes {
    ($to:ident) => {
        $to! {
            ethernet::arp_querier::ARPQuerier,
            ethernet::arp_responder::ARPResponder,
            ethernet::arp_table::ARPTable,
            control::address_info::AddressInfo,
            plumbing::align::Align,
            control::schedule_info::AlignmentInfo,
            control::annotation_info::AnnotationInfo,
            plumbing::average_counter::AverageCounter,
            nat::backend_mapper::BackendMapper,
            control::schedule_info::BalancedThreadSched,
            queue::meter::BandwidthMeter,
            queue::shaper::BandwidthRatedSplitter,
            queue::shaper::BandwidthRatedUnqueue,
            queue::shaper::BandwidthShaper,
            ip::check_icmp_header::CheckICMPHeader,
            ip6::check_ip6_header::CheckIP6Header,
            ip::check_ip_header::CheckIPHeader,
            ip::check_ip_header::CheckIPHeader2,
            plumbing::check_length::CheckLength,
            switch::paint::CheckPaint,
            transport::check_tcp_header::CheckTCPHeader,
            transport::check_udp_header::CheckUDPHeader,
            ethernet::check_vlan::CheckVLAN,
            classify::classifier::Classifier,
            control::control_socket::ControlSocket,
            plumbing::counter::Counter,
            queue::drr_sched::DRRSched,
            ip6::dec_ip6_hlim::DecIP6HLIM,
            ip::dec_ip_ttl::DecIPTTL,
            queue::delay::DelayShaper,
            queue::delay::DelayUnqueue,
            lookup::ip_lookup::DirectIPLookup,
            plumbing::discard::Discard,
            control::script::DriverManager,
            ethernet::drop_broadcasts::DropBroadcasts,
            ethernet::ether_encap::EtherEncap,
            ethernet::ether_rewrite::EtherMirror,
            ethernet::ether_rewrite::EtherRewrite,
            ethernet::ether_switch::EtherSwitch,
            ethernet::ether_vlan_encap::EtherVLANEncap,
            ip::fix_ip_src::FixIPSrc,
            io::from_device::FromDevice,
            io::from_dump::FromDump,
            io::ip_summary_dump::FromIPSummaryDump,
            queue::queues::FrontDropQueue,
            queue::queues::FullNoteQueue,
            tunnel::gre_decap::GREDecap,
            tunnel::gre_encap::GREEncap,
            ip6::get_ip6_address::GetIP6Address,
            ip::get_ip_address::GetIPAddress,
            switch::switches::HashSwitch,
            ethernet::host_ether_filter::HostEtherFilter,
            ip6::icmp6_error::ICMP6Error,
            ip::icmp_error::ICMPError,
            ip::icmp_ping_responder::ICMPPingResponder,
            nat::icmp_ping_rewriter::ICMPPingRewriter,
            nat::icmp_rewriter::ICMPRewriter,
            ip6::ip6_encap::IP6Encap,
            ip6::dec_ip6_hlim::IP6Fragmenter,
            ip6::dec_ip6_hlim::IP6Mirror,
            ip6::ip6_nd_advertiser::IP6NDAdvertiser,
            ip6::ip6_nd_solicitor::IP6NDSolicitor,
            nat::ip_addr_rewriter::IPAddrPairRewriter,
            nat::ip_addr_rewriter::IPAddrRewriter,
            classify::ip_classifier::IPClassifier,
            ip::ip_encap::IPEncap,
            classify::ip_filter::IPFilter,
            ip::ip_fragmenter::IPFragmenter,
            ip::ip_gw_options::IPGWOptions,
            ip::ip_combo::IPInputCombo,
            ip::ip_mirror::IPMirror,
            ip::ip_combo::IPOutputCombo,
            plumbing::ip_print::IPPrint,
            switch::ip_rr_switch::IPRRSwitch,
            ip::ip_reassembler::IPReassembler,
            nat::ip_rewriter::IPRewriter,
            nat::ip_rewriter_patterns::IPRewriterPatterns,
            plumbing::null::Idle,
            io::source::InfiniteSource,
            lookup::ip_lookup::LinearIPLookup,
            lookup::lookup_ip6_route::LookupIP6Route,
            ip6::check_ip6_header::MarkIP6Header,
            ip::set_ip_dscp::MarkIPCE,
            ip::mark_ip_header::MarkIPHeader,
            queue::meter::Meter,
            queue::queues::NotifierQueue,
            plumbing::null::Null,
            plumbing::null::Null1,
            plumbing::null::Null2,
            plumbing::null::Null3,
            plumbing::null::Null4,
            plumbing::null::Null5,
            plumbing::null::Null6,
            plumbing::null::Null7,
            plumbing::null::Null8,
            plumbing::null::NullElement,
            plumbing::truncate::Pad,
            switch::paint::Paint,
            switch::paint::PaintSwitch,
            switch::paint::PaintTee,
            control::address_info::PortInfo,
            plumbing::print::Print,
            queue::round_robin_sched::PrioSched,
            plumbing::null::PullNull,
            plumbing::null::PullNullElement,
            switch::switches::PullSwitch,
            plumbing::null::PushNull,
            plumbing::null::PushNullElement,
            queue::queues::Queue,
            queue::queues::QuickNoteQueue,
            queue::round_robin_sched::RRSched,
            lookup::ip_lookup::RadixIPLookup,
            switch::random::RandomSample,
            switch::random::RandomSwitch,
            lookup::ip_lookup::RangeIPLookup,
            io::source::RatedSource,
            queue::shaper::RatedSplitter,
            queue::shaper::RatedUnqueue,
            nat::ip_mapper::RoundRobinIPMapper,
            queue::round_robin_sched::RoundRobinSched,
            switch::switches::RoundRobinSwitch,
            control::schedule_info::ScheduleInfo,
            control::script::Script,
            switch::paint::SetAnnoByte,
            ip6::get_ip6_address::SetIP6Address,
            ip6::dec_ip6_hlim::SetIP6DSCP,
            ip::set_ip_address::SetIPAddress,
            ip::set_ip_checksum::SetIPChecksum,
            ip::set_ip_dscp::SetIPDSCP,
            ip::set_ip_dscp::SetIPECN,
            transport::set_tcp_checksum::SetTCPChecksum,
            plumbing::set_timestamp::SetTimestamp,
            transport::set_udp_checksum::SetUDPChecksum,
            ethernet::vlan_tag::SetVLANAnno,
            queue::shaper::Shaper,
            queue::round_robin_sched::SimplePrioSched,
            queue::queues::SimpleQueue,
            payload::snort_filter::SnortFilter,
            lookup::ip_lookup::SortedIPLookup,
            nat::ip_mapper::SourceIPHashMapper,
            lookup::ip_lookup::StaticIPLookup,
            switch::switches::StaticPullSwitch,
            switch::switches::StaticSwitch,
            control::schedule_info::StaticThreadSched,
            plumbing::store_data::StoreData,
            ip::store_ip_address::StoreIPAddress,
            queue::stride_sched::StrideSched,
            switch::stride_switch::StrideSwitch,
            plumbing::strip::Strip,
            ethernet::ether_vlan_encap::StripEtherVLANHeader,
            ip::strip_ip_header::StripIPHeader,
            ip::strip_ip_header::StripToNetworkHeader,
            queue::suppressor::Suppressor,
            switch::switches::Switch,
            nat::ip_rewriter::TCPRewriter,
            plumbing::tee::Tee,
            queue::queues::ThreadSafeQueue,
            io::source::TimedSource,
            io::from_device::ToDevice,
            io::to_dump::ToDump,
            io::ip_summary_dump::ToIPSummaryDump,
            plumbing::truncate::Truncate,
            transport::udp_ip_encap::UDPIPEncap,
            nat::ip_rewriter::UDPRewriter,
            payload::url_filter::URLFilter,
            queue::unqueue::Unqueue,
            plumbing::strip::Unstrip,
            ip::strip_ip_header::UnstripIPHeader,
            ethernet::vlan_encap::VLANDecap,
            ethernet::vlan_encap::VLANEncap,
            tunnel::vxlan_decap::VXLANDecap,
            tunnel::vxlan_encap::VXLANEncap,
        }
    };
}

macro_rules! table {
    ($($folder:ident::$file:ident::$name:ident,)*) => {
        /// All classes, sorted by name.
        pub static CLASSES: &[&Class] = &[$(&crate::$folder::$file::$name::CLASS),*];
    };
}
classes!(table);

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
