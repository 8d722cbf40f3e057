//! Real clients reach real servers while floods come.

use crate::CATENA;
use crate::traffic::BOUND;
use lab::live::{Lab, possible, until};

/// A SYN from the clients' side, from an address that nobody has to a port that nobody listens on.
const SYN: &str = "02000000030202000000010208004500002800010000400666580a \
                   0900630a090003138800090000000100000000500203e883f10000";

#[test]
fn servers_are_reached_by_cookies_in_a_flood_of_syns() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg"] {
        let lab = Lab::new(CATENA, 1500);
        let socket = lab.folder().join("control");
        let chain = format!(
            r"require(nf);
            d :: DDoSDetect(SYN_RATE 1000, HOLD 600s);
            RatedSource(DATA \<{SYN}>, RATE 5000) -> [0] d;
            FromDevice(left) -> [0] d [0] -> ToDevice(right);
            FromDevice(right) -> [1] d [1] -> ToDevice(left);"
        );
        let control = socket.to_str().unwrap();
        let running =
            lab.run(&chain, &[&BOUND[..], &["--io", mode, "--control", control]].concat());
        let number = |handler: &str| -> u64 {
            CATENA.ctl(&socket, &["read", handler]).trim().parse().unwrap()
        };
        until("the flood is found", || number("d/floods.count") == 1);
        lab.exchange("10.9.0.3", 1_000_000);
        lab.exchange("10.9.0.3", 100_000);
        assert_eq!(number("d/proxy.accepted"), 2, "by {mode}: connections with cookies");
        assert!(number("d/proxy.cookies") > 2);
        // Only clients that exist are known to anybody.
        assert_eq!(number("d/proxy.count"), 2);
        let floods = CATENA.ctl(&socket, &["read", "d/floods.floods"]);
        assert!(floods.starts_with("syn-flood 10.9.0.3 "), "{floods}");
        running.stop();
    }
}
