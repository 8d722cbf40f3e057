//! Names that are read from text live for ever; alone in its process, since it uses them up.

use catena_ir as ir;
use ir::{FileId, text};

#[test]
fn names_are_kept_up_to_a_bound() {
    let one = |i: usize| {
        let source = format!("input 0 {{ drop x{i}-{} }}", "y".repeat(1000));
        text::parse_model(FileId(0), &source)
    };
    let first = one(0);
    assert!(first.is_ok());
    let refused = (0..=text::MAX_INTERNED / 1000).find_map(|i| one(i).err());
    assert_eq!(refused.expect("a bound")[0].code, "too-many-names");
    assert_eq!(one(0), first, "a known name costs nothing");
}
