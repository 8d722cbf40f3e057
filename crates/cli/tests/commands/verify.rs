//! `catena verify`.

use crate::program::Folder;

const FILTER: &str = "\
FromDump(in.pcap) -> Strip(14) -> CheckIPHeader
  -> f :: IPFilter(allow tcp && dst port 80, allow udp, drop all)
  -> DecIPTTL -> Unstrip(14) -> ToDump(out.pcap);
";

#[test]
fn a_chain_equals_what_it_becomes() {
    let folder = Folder::new();
    let ended = folder.file("a.click", FILTER).run(["verify", "a.click", "--packets", "500"]);
    let text = ended.well();
    assert!(text.starts_with("equal a.click"), "{text}");
    assert!(text.contains("1 of 1 program"), "{text}");
}

#[test]
fn a_chain_written_otherwise_is_equal() {
    let folder = Folder::new();
    // Rules that exclude each other in another order, and an element that does nothing.
    let other = FILTER
        .replace("allow tcp && dst port 80, allow udp", "allow udp, allow tcp && dst port 80")
        .replace("-> DecIPTTL", "-> Null -> DecIPTTL")
        .replace("in.pcap", "in.pcap, BURST 8");
    folder.file("a.click", FILTER).file("b.click", other);
    let ended = folder.run(["verify", "a.click", "b.click", "--packets", "500"]);
    assert!(ended.well().starts_with("equal a.click and b.click"), "{}", ended.out);
}

#[test]
fn a_difference_is_shown_by_a_packet() {
    let folder = Folder::new();
    let other = FILTER.replace("allow udp", "allow udp && dst port 53");
    folder.file("a.click", FILTER).file("b.click", other);
    let ended = folder.run(["verify", "a.click", "b.click", "--pcap", "d.pcap"]);
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    assert!(ended.out.starts_with("different a.click and b.click"), "{}", ended.out);
    assert!(ended.out.contains("the second: drops"), "{}", ended.out);
    // The packet shows it when it is sent through the chains.
    for (file, came) in [("a.click", 1), ("b.click", 0)] {
        let text = folder
            .read(file)
            .replace("in.pcap", "d.pcap")
            .replace("ToDump(out.pcap)", "c :: Counter -> Discard");
        folder.file("run.click", text);
        let ran = folder.run(["run", "run.click", "-h", "c.count"]);
        assert!(ran.well().contains(&came.to_string()), "{file}: {}", ran.out);
    }
    let json = folder.run(["verify", "a.click", "b.click", "--json"]);
    assert_eq!(json.code, Some(1));
    assert!(json.out.contains("\"verdict\": \"different\"") && json.out.contains("\"hex\""));
}

#[test]
fn what_cannot_be_asked_ends_with_another_status() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> Countr -> Discard;");
    assert_eq!(folder.run(["verify", "a.click"]).code, Some(2));
    assert_eq!(folder.run(["verify", "missing.click"]).code, Some(2));
    folder.file("b.click", FILTER).file("c.click", "Idle -> Discard;");
    let ended = folder.run(["verify", "b.click", "c.click"]);
    assert_eq!(ended.code, Some(2), "{}", ended.out);
    assert!(ended.out.starts_with("undecided"), "{}", ended.out);
}
