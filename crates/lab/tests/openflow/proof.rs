//! What is emitted is read back and compared; what is wrong is found.

use codegen::target;

use crate::segments::Made;

/// Chains whose frames go through a switch whole.
pub(crate) const CHAINS: &[&str] = &[
    "FromDevice(eth0) -> c :: Classifier(12/0806 20/0001, 12/0800 23/06, 12/0800 23/11, 12/86dd, -);
     c[0] -> Queue -> ToDevice(eth1); c[1] -> EtherRewrite(2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> ToDevice(eth2);
     c[2] -> Queue -> ToDevice(eth3); c[3] -> Discard; c[4] -> Queue -> ToDevice(eth4);",
    "FromDevice(eth0) -> c :: Classifier(12/0800, -); c[1] -> Discard;
     c[0] -> Strip(14) -> CheckIPHeader
       -> f :: IPFilter(allow tcp dst port 80 or 443, allow udp src port >= 1000, deny src net 10.0.0.0/8 and dst host 1.2.3.4,
            allow dst net 192.168.0.0/16 and ip ttl 5, deny all)
       -> Unstrip(14) -> Queue -> ToDevice(eth1);",
    "FromDevice(eth0) -> c :: Classifier(12/0800, -); c[1] -> Discard;
     c[0] -> Strip(14) -> CheckIPHeader -> GetIPAddress(16)
       -> rt :: RadixIPLookup(10.0.0.0/8 0, 10.1.0.0/16 1, 10.1.2.0/24 0, 20.0.0.0/8 2, 30.0.0.0/8 1);
     rt[0] -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> ToDevice(eth1);
     rt[1] -> DecIPTTL -> SetIPDSCP(3) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:3) -> Queue -> ToDevice(eth2);
     rt[2] -> DecIPTTL -> DecIPTTL -> DecIPTTL -> Unstrip(14) -> Queue -> ToDevice(eth3);",
    "FromDevice(eth0) -> c :: Classifier(12/8100, 12/0800, -); c[2] -> Discard;
     c[0] -> VLANDecap -> EtherRewrite(2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> ToDevice(eth1);
     c[1] -> VLANEncap(VLAN_ID 5, VLAN_PCP 2) -> Queue -> ToDevice(eth2);",
];

#[test]
fn segments_are_proven() {
    let ovs = target("ovs").unwrap();
    for chain in CHAINS {
        let made = Made::of_chain(ovs, chain);
        let (text, _) = made.prove(ovs);
        println!("{text}");
        println!("spared: {:?}", made.spared);
    }
}
