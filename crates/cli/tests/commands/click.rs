//! The program under the name `click`.

use crate::program::{Ended, Folder};

fn click(folder: &Folder, arguments: &[&str]) -> Ended {
    let link = folder.path().join("click");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_catena"), &link).unwrap();
    }
    folder.command(&link).args(arguments).output().unwrap().into()
}

const STOP: &str = "c :: Counter; Idle -> c -> Discard; DriverManager(stop);";

#[test]
fn handlers_are_printed_as_click_prints_them() {
    let folder = Folder::new();
    assert_eq!(click(&folder, &["-e", STOP, "-h", "c.count"]).well(), "0\n");
    let two = click(&folder, &["-e", STOP, "-h", "c.count", "-hc.class"]);
    assert_eq!(two.well(), "c.count:\n0\n\nc.class:\nCounter\n\n");
    folder.file("a.click", STOP);
    assert_eq!(click(&folder, &["a.click", "--handler=c.count"]).well(), "0\n");
    assert!(
        click(&folder, &["a.click", "-h", "d.count"]).refused().contains("no element named 'd'")
    );
    assert_eq!(folder.run(["click", "a.click", "-h", "c.count"]).well(), "0\n");
}

#[test]
fn configurations_are_flattened_and_variables_set() {
    let folder = Folder::new();
    let text = "Idle -> Strip($N) -> Discard;";
    let flat = click(&folder, &["-q", "-o", "-", "-e", text, "N=7"]);
    assert!(flat.well().contains(":: Strip(7);"), "{}", flat.out);
}

#[test]
fn what_is_wrong_fails() {
    let folder = Folder::new();
    assert!(click(&folder, &["-e", "Nonesuch;"]).refused().contains("unknown-class"));
    assert!(click(&folder, &["-e", "", "-f", "x"]).refused().contains("given twice"));
    assert!(click(&folder, &["--zebra"]).refused().contains("there is no option '--zebra'"));
    assert!(click(&folder, &["-h"]).refused().contains("takes a value"));
    assert!(click(&folder, &["none.click"]).refused().contains("none.click: No such file"));
    assert!(click(&folder, &["--version"]).well().starts_with("click (Catena) "));
}

#[test]
fn the_exit_handler_is_the_status() {
    let folder = Folder::new();
    let arguments = ["-q", "-e", "q :: Queue(7); Idle -> q -> Idle;", "-x", "q.capacity"];
    assert_eq!(click(&folder, &arguments).code, Some(7));
}
