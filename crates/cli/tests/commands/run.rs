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
