//! `catena run` to the end of its input.

use std::io::Read;
use std::path::Path;

use crate::program::Folder;

#[test]
fn what_is_printed_is_complete_however_slowly_it_is_read() {
    let folder = Folder::new();
    folder.file("c.click", "InfiniteSource(LENGTH 1400, LIMIT 2000) -> Print(x, -1) -> Discard;");
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    let mut child = command.args(["run", "c.click"]).spawn().unwrap();
    let (mut said, mut lines) = (child.stderr.take().unwrap(), 0);
    let mut piece = [0; 16];
    loop {
        match said.read(&mut piece).unwrap() {
            0 => break,
            n => lines += piece[..n].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(lines, 2000);
}

#[test]
fn drops_are_told_in_the_same_order_synthesised_or_not() {
    let folder = Folder::new();
    // Each comes to drop for another reason first.
    let chain = "tiny :: CheckIPHeader -> Discard; wrong :: CheckIPHeader -> Discard;
        InfiniteSource(LENGTH 40, LIMIT 3) -> wrong; InfiniteSource(LENGTH 10, LIMIT 2) -> wrong;
        InfiniteSource(LENGTH 10, LIMIT 3) -> tiny; InfiniteSource(LENGTH 40, LIMIT 2) -> tiny;";
    folder.file("c.click", chain);
    let dropped = |more: &[&str]| {
        let ended = folder.run(["run", "c.click", "--json"].iter().chain(more));
        let told: serde_json::Value = serde_json::from_str(ended.well()).unwrap();
        told["dropped"].clone()
    };
    let synthesised = dropped(&[]);
    assert_eq!(synthesised.as_array().unwrap().len(), 4, "{synthesised}");
    assert_eq!(synthesised, dropped(&["--no-synthesis"]));
}
