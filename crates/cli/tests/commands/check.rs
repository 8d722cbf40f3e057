//! `catena check`.

use crate::program::Folder;

#[test]
fn a_good_file_is_good() {
    let folder = Folder::new();
    let ended = folder.file("a.click", "Idle -> Strip(14) -> Discard;").run(["check", "a.click"]);
    assert_eq!(ended.well(), "ok a.click (3 elements)\n");
    assert_eq!(folder.run(["check", "-q", "a.click"]).well(), "");
    assert_eq!(
        folder.file("empty.click", "").run(["check", "empty.click"]).well(),
        "ok empty.click (0 elements)\n"
    );
}

#[test]
fn all_errors_come_at_once_with_their_places() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> Strip(x)\n  -> Countr -> Discard;\n");
    let ended = folder.run(["check", "a.click"]);
    ended.refused();
    let expected = "\
error[bad-argument]: 'x' is not a number from 0 to 4294967295
 --> a.click:1:15
  |
1 | Idle -> Strip(x)
  |               ^ LENGTH takes a number from 0 to 4294967295

error[unknown-class]: there is no element class 'Countr'
 --> a.click:2:6
  |
2 |   -> Countr -> Discard;
  |      ^^^^^^
  |
  = help: did you mean 'Counter'?

2 errors, 0 warnings (1 file in ";
    assert!(ended.out.starts_with(expected), "{}", ended.out);
}

#[test]
fn labels_in_one_file_are_shown_together_and_far_ones_apart() {
    let folder = Folder::new();
    let padding = "// filler\n".repeat(20_000);
    folder.file("a.click", format!("c :: Counter;\n{padding}c :: Discard;\nIdle -> c;\n"));
    let ended = folder.run(["check", "a.click"]);
    assert!(ended.out.contains("20002 | c :: Discard;"), "{}", ended.out);
    assert!(ended.out.contains("1 | c :: Counter;"), "{}", ended.out);
    assert!(ended.out.len() < 2000, "{}", ended.out.len());
}

#[test]
fn warnings_do_not_fail_unless_they_are_to() {
    let folder = Folder::new();
    folder.file("a.click", "FromDump(missing.pcap) -> Discard;\nIdle -> ToDump(none/out.pcap);\n");
    let ended = folder.run(["check", "a.click"]);
    assert!(ended.well().contains("warning[device]: missing.pcap: No such file"), "{}", ended.out);
    assert!(ended.out.contains("there is no folder none"), "{}", ended.out);
    folder.run(["check", "--strict", "a.click"]).refused();
    assert!(!folder.path().join("none").exists());
}

#[test]
fn nothing_is_written() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> ToDump(out.pcap);").run(["check", "a.click"]).well();
    assert!(!folder.path().join("out.pcap").exists());
}

#[test]
fn json_has_spans() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> Strip(x)\n  -> Discard;\n").file("b.click", "");
    let ended = folder.run(["check", "--json", "a.click", "b.click"]);
    assert_eq!(ended.code, Some(1));
    let value: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(value[0]["file"], "a.click");
    let label = &value[0]["diagnostics"][0]["labels"][0];
    assert_eq!((label["line"].as_u64(), label["column"].as_u64()), (Some(1), Some(15)));
    assert_eq!((label["end_line"].as_u64(), label["end_column"].as_u64()), (Some(1), Some(16)));
    assert_eq!(value[0]["diagnostics"][0]["code"], "bad-argument");
    assert_eq!((value[1]["errors"].as_u64(), value[1]["warnings"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn the_standard_input_and_variables_are_taken() {
    let folder = Folder::new();
    let text = "Idle -> Strip($N) -> Discard;";
    assert!(folder.run_with(["check", "-", "N=14"], text).well().contains("ok <stdin>"));
    assert!(folder.run_with(["check", "-", "N=x"], text).out.contains("is not a number"));
    assert!(folder.run(["check", "N=14"]).refused().contains("no FILE is given"));
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let folder = Folder::new();
    let ended = folder.run(["check", "none.click"]);
    assert!(
        ended.out.contains("error[unreadable-file]: none.click: No such file"),
        "{}",
        ended.out
    );
    ended.refused();
    folder
        .file("bytes.click", [0xff, 0xfe, 0, 1, b'(', b'"'])
        .run(["check", "bytes.click"])
        .refused();
    assert_eq!(folder.run(["check"]).code, Some(2));
}

#[test]
fn a_huge_line_is_not_shown_as_a_whole() {
    let folder = Folder::new();
    let arguments = "x, ".repeat(200_000);
    folder.file("a.click", format!("Idle -> Strip({arguments}14) -> Discard;"));
    let ended = folder.run(["check", "a.click"]);
    ended.refused();
    assert!(ended.out.len() < 2_000_000, "{}", ended.out.len());
}
