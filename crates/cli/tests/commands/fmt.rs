//! `catena fmt`.

use crate::program::Folder;

const UGLY: &str = "a::Strip( 14 );Idle->a->Discard;// done\n";
const PRETTY: &str = "a :: Strip(14);\nIdle -> a -> Discard; // done\n";

#[test]
fn files_are_formatted_in_place() {
    let folder = Folder::new();
    assert_eq!(folder.file("a.click", UGLY).run(["fmt", "a.click"]).well(), "");
    assert_eq!(folder.read("a.click"), PRETTY);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn checking_changes_nothing() {
    let folder = Folder::new();
    let ended = folder
        .file("a.click", UGLY)
        .file("b.click", PRETTY)
        .run(["fmt", "--check", "a.click", "b.click"]);
    ended.refused();
    assert_eq!(ended.out, "a.click is not formatted\n");
    assert_eq!(folder.read("a.click"), UGLY);
    assert_eq!(folder.run(["fmt", "--check", "b.click"]).well(), "");
}

#[test]
fn the_result_can_be_printed() {
    let folder = Folder::new();
    assert_eq!(folder.file("a.click", UGLY).run(["fmt", "--stdout", "a.click"]).well(), PRETTY);
    assert_eq!(folder.read("a.click"), UGLY);
    assert_eq!(folder.run_with(["fmt", "-"], UGLY).well(), PRETTY);
}

#[test]
fn what_is_wrong_stays_as_it_is() {
    let folder = Folder::new();
    folder.file("a.click", "a :: Strip(14\n").file("b.click", [b'a', 0xff]).file("c.click", UGLY);
    let ended = folder.run(["fmt", "a.click", "b.click", "c.click", "none.click"]);
    let err = ended.refused();
    assert!(err.contains("a.click:1:11") && err.contains("a.click is left as it is"), "{err}");
    assert!(err.contains("byte 1 is not UTF-8"), "{err}");
    assert!(err.contains("none.click: No such file"), "{err}");
    assert_eq!(
        (folder.read("a.click").as_str(), folder.read("c.click").as_str()),
        ("a :: Strip(14\n", PRETTY)
    );
}
