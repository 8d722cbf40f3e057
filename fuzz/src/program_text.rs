//! The text of programs.

use ir::FileId;
use ir::program::verify;
use ir::text::parse_programs;

/// The parser of programs: what it reads is well formed, is lowered to what is, and reads back from
/// its own text as it was.
pub fn program(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = match parse_programs(FileId(0), &text) {
        Ok(read) => read,
        Err(errors) => {
            assert!(!errors.is_empty(), "nothing is said against it");
            return;
        }
    };
    let text = read.programs.iter().map(|program| program.text_by(&read.names).to_string());
    let again = parse_programs(FileId(0), &text.collect::<String>());
    assert_eq!(again.as_ref(), Ok(&read));
    for program in read.programs {
        let lowered = program.lower();
        assert!(verify::is_well_formed(&lowered), "{lowered}");
    }
}
