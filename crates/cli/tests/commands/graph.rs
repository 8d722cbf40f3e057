//! `catena graph` and `catena flatten`.

use serde_json::{Value, json};

use crate::program::Folder;

const NESTED: &str = "\
elementclass Pair { $n | input -> first :: Strip($n) -> Unstrip($n) -> output }
elementclass Box { input[0] -> p :: Pair(4) -> q :: Queue -> [0]output; input[1] -> Discard }
Idle -> b :: Box -> Discard;
Idle -> [1] b;
";

#[test]
fn an_svg_shows_compounds_around_their_elements() {
    let folder = Folder::new();
    folder.file("a.click", NESTED).run(["graph", "a.click", "-o", "a.svg"]).well();
    let svg = folder.read("a.svg");
    assert!(
        svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n")
    );
    assert_eq!(svg.matches("<rect class=\"compound").count(), 2);
    for said in [
        "<title>b/p :: Pair\na.click:2</title>",
        "b/q :: Queue",
        "b/p/first :: Strip(4)\na.click:1",
    ] {
        assert!(svg.contains(said), "{said} is missing in {svg}");
    }
    // Two wires are pulled: from the queue to the compound's output, and on to the sink.
    assert_eq!(svg.matches("<path class=\"wire pull\" d=\"M").count() - 1, 2);
    assert!(svg.contains("prefers-color-scheme:dark"));
    let dark = folder.run(["graph", "a.click", "--theme", "dark"]);
    assert!(dark.well().contains(".page{fill:#0d1117}") && !dark.out.contains("prefers-color"));
}

#[test]
fn dot_has_clusters_and_ports() {
    let folder = Folder::new();
    folder.file("a.click", NESTED).run(["graph", "a.click", "-o", "a.dot"]).well();
    let dot = folder.read("a.dot");
    assert_eq!(dot.matches("subgraph cluster_").count(), 2);
    assert_eq!(dot.matches('{').count(), dot.matches('}').count());
    assert_eq!(dot.matches(" -> n").count(), 5, "{dot}");
    assert_eq!(folder.run(["graph", "a.click", "--format", "dot"]).well(), dot);
}

const CHECKED: &str = "\
elementclass Checks { input -> Strip(14) -> ck :: CheckIPHeader -> output; }
FromDump(in.pcap) -> c :: Checks -> q :: Queue(7) -> Discard;
";

/// What other programs read: each element with its place, and what programs execute.
#[test]
fn json_has_elements_connections_and_programs() {
    let folder = Folder::new();
    let ended = folder.file("a.click", CHECKED).run(["graph", "a.click", "--format", "json"]);
    let json: Value = serde_json::from_str(ended.well()).unwrap();
    assert_eq!((&json["format"], &json["version"]), (&"catena-graph".into(), &1.into()));
    let elements = json["elements"].as_array().unwrap();
    let find = |name: &str| elements.iter().find(|e| e["name"] == name).expect(name);
    let (check, queue) = (find("c/ck"), find("q"));
    let expected = json!({
        "id": check["id"], "name": "c/ck", "class": "CheckIPHeader", "config": "", "file": "a.click", "line": 1,
        "compound": 0, "inputs": ["push"], "outputs": ["push"], "programs": [0],
    });
    assert_eq!(check, &expected);
    assert_eq!((&queue["config"], &queue["line"]), (&"7".into(), &2.into()));
    // Queues are in no program.
    assert_eq!((&queue["programs"], &queue["outputs"]), (&json!([]), &json!(["pull"])));
    let compounds = json["compounds"].as_array().unwrap();
    assert_eq!((&compounds[0]["name"], &compounds[0]["class"]), (&"c".into(), &"Checks".into()));
    let edges = json["edges"].as_array().unwrap();
    let to_queue = json!({ "element": queue["id"], "port": 0 });
    let edge = edges.iter().find(|edge| edge["to"] == to_queue).unwrap();
    assert_eq!(edge["from"], json!({ "element": check["id"], "port": 0 }));
    assert_eq!((edges.len(), &edge["processing"]), (4, &"push".into()));
    let programs = json["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 1);
    assert_eq!(programs[0]["elements"], json!([find("c/Strip@1")["id"], check["id"]]));
    assert!(programs[0]["exits"].as_u64() > Some(1), "{}", programs[0]);
    // The output's name says the format, too.
    folder.run(["graph", "a.click", "-o", "a.json"]).well();
    assert_eq!(folder.read("a.json"), ended.out);
    // What is wrong is reported, and the rest written.
    let ended = folder
        .file("b.click", "Idle -> Strip(x) -> Discard;")
        .run(["graph", "b.click", "-o", "-", "--format", "json"]);
    assert!(ended.refused().contains("Strip"), "{ended:?}");
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&json["programs"], json["elements"].as_array().unwrap().len()), (&Value::Null, 3));
}

#[test]
fn names_that_mean_something_elsewhere_are_escaped() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> Strip(14 /* <&\"> */) -> Discard;");
    let svg = folder.run(["graph", "a.click"]).well().to_string();
    assert!(!svg.contains("<&") && svg.contains("Strip(14"));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> Countr -> Discard;").file("b.click", "(");
    let ended = folder.run(["graph", "a.click"]);
    // An unknown element is drawn nevertheless.
    assert!(ended.refused().contains("unknown-class") && ended.out.contains("Countr"));
    assert_eq!(folder.run(["graph", "b.click"]).refused().matches("error").count(), 1);
    assert!(folder.run(["graph", "none.click"]).refused().contains("none.click: No such file"));
    assert!(folder.run(["graph", "a.click", "-o", "a.png"]).refused().contains("--format"));
    assert!(folder.run(["graph", "a.click", "x"]).refused().contains("VAR=VALUE"));
    let empty = folder.file("c.click", "").run(["graph", "c.click"]);
    assert!(empty.well().contains("</svg>"));
}

#[test]
fn flattening_leaves_no_compounds_and_the_same_chain() {
    let folder = Folder::new();
    let flat = folder.file("a.click", NESTED).run(["flatten", "a.click"]).well().to_string();
    assert!(flat.contains("b/p/first :: Strip(4);") && !flat.contains("elementclass"), "{flat}");
    folder.file("b.click", &flat);
    assert_eq!(folder.run(["flatten", "b.click"]).well(), flat);
    assert!(folder.run(["check", "b.click"]).well().starts_with("ok b.click (7 elements)"));
    let with =
        folder.file("v.click", "Idle -> Strip($N) -> Discard;").run(["flatten", "v.click", "N=7"]);
    assert!(with.well().contains("Strip(7)"));
    folder.file("bad.click", "Idle ->").run(["flatten", "bad.click"]).refused();
}
