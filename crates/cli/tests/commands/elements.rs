//! `catena elements`.

use crate::program::Folder;

#[test]
fn every_element_is_listed_once() {
    let out = Folder::new().run(["elements"]).well().to_string();
    for class in elements::registry::CLASSES {
        let line = format!("  {} ", class.name);
        assert_eq!(out.lines().filter(|l| l.starts_with(&line)).count(), 1, "{}", class.name);
    }
}

#[test]
fn a_manual_is_printed() {
    let ended = Folder::new().run(["elements", "Strip"]);
    let out = ended.well();
    assert!(out.starts_with("Strip(LENGTH)\n    removes bytes"), "{out}");
    assert!(out.contains("PORTS\n    1 input and 1 output, agnostic (a/a)\n"), "{out}");
    assert!(out.contains("SEE ALSO\n    "), "{out}");
}

#[test]
fn a_name_that_is_not_there_brings_the_nearest() {
    let folder = Folder::new();
    assert_eq!(
        folder.run(["elements", "DecIPTTTL"]).refused(),
        "error: there is no element 'DecIPTTTL'; did you mean DecIPTTL?\n"
    );
    assert!(folder.run(["elements", "Zebra"]).refused().contains("lists all"));
}

#[test]
fn the_reference_is_complete_in_every_form() {
    let folder = Folder::new();
    let markdown = folder.run(["elements", "--markdown"]).well().to_string();
    let json: serde_json::Value =
        serde_json::from_str(folder.run(["elements", "--json"]).well()).unwrap();
    for (class, value) in elements::registry::CLASSES.iter().zip(json.as_array().unwrap()) {
        assert!(
            markdown.contains(&format!("\n### {}\n\n`{}", class.name, class.name)),
            "{}",
            class.name
        );
        assert_eq!(value["name"], class.name);
        assert_eq!(value["ports"], class.ports);
    }
    let one: serde_json::Value =
        serde_json::from_str(folder.run(["elements", "--json", "Strip"]).well()).unwrap();
    assert_eq!(one["signature"], "Strip(LENGTH)");
}
