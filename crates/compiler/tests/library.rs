//! The library of network functions: its texts are sound, and what is said about their use points to both.

mod shape;

use catena_compiler::library::{FUNCTIONS, find};
use click::ast::{Class, Statement};
use ir::{FileId, Sources};
use shape::chain;

/// The names behind `$` and `${` in a text.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('$').skip(1).map(|rest| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[test]
fn every_file_defines_the_class_that_it_is_listed_under() {
    let mut names: Vec<&str> = FUNCTIONS.iter().map(|of| of.name).collect();
    names.sort_unstable_by_key(|name| name.to_lowercase());
    names.dedup();
    assert_eq!(names, FUNCTIONS.iter().map(|of| of.name).collect::<Vec<_>>());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../nf");
    let files = std::fs::read_dir(folder).unwrap().count();
    assert_eq!(files, FUNCTIONS.len(), "files in {folder} that are not listed");
    for of in FUNCTIONS {
        let mut sources = Sources::new();
        let file = sources.add(of.file, of.text);
        let (parsed, said) = click::parse(&mut sources, file);
        assert!(said.is_empty(), "{}: {said:#?}", of.name);
        let [Statement::ElementClass(class)] = &parsed.statements[..] else {
            panic!("{} is not one elementclass", of.file)
        };
        assert_eq!(class.name.text, of.name);
        assert!(elements::registry::find(of.name).is_none(), "{} is an element", of.name);
        let Class::Compound(compound) = &class.class else { panic!("{} is a synonym", of.name) };
        // What a body does not define would be that of the file that requires it.
        let body = sources.slice(compound.span);
        let mut defined: Vec<&str> =
            compound.bodies.iter().flat_map(|b| &b.parameters).map(|p| &*p.variable.text).collect();
        let inner = compound.bodies.iter().flat_map(|b| &b.statements).filter_map(|s| match s {
            Statement::ElementClass(inner) => Some(&inner.class),
            _ => None,
        });
        for class in inner {
            let Class::Compound(inner) = class else { continue };
            let parameters = inner.bodies.iter().flat_map(|b| &b.parameters);
            defined.extend(parameters.map(|p| &*p.variable.text));
        }
        for variable in variables(body) {
            assert!(defined.contains(&variable), "{}: ${variable} is not defined", of.name);
        }
    }
}

#[test]
fn every_manual_states_what_becomes_of_ipv6_and_has_an_example() {
    for of in FUNCTIONS {
        for section in ["\n// = IPV6\n", "\n// = EXAMPLE\n", "\n// = SEE ALSO\n"] {
            assert!(of.text.contains(section), "{} has no {section:?}", of.file);
        }
        assert!(of.text.starts_with(&format!("// {}", of.name)), "{}", of.file);
    }
    assert!(find("acl").is_none() && find("ACL").is_some());
}

/// Texts by name.
struct Shelf<'a>(&'a [(&'a str, &'a str)]);

impl elements::configure::Files for Shelf<'_> {
    fn read(&mut self, sources: &mut Sources, from: FileId, path: &str) -> Result<FileId, String> {
        assert_eq!(sources.name(from), "test.click", "{path} is named there");
        let found = self.0.iter().find(|(name, _)| *name == path);
        found.map(|(name, text)| sources.add(*name, *text)).ok_or("not there".into())
    }
}

/// What is said about a chain when its elements are made, with every place.
fn said(text: &str, files: &[(&str, &str)]) -> Vec<String> {
    let mut sources = Sources::new();
    let file = sources.add("test.click", text);
    let mut shelf = Shelf(files);
    let options = catena_compiler::Options::default();
    let (chain, mut said) = catena_compiler::elaborate(&mut sources, file, &options, &mut shelf);
    let chain = chain.expect("a chain");
    catena_compiler::instantiate(&chain, &mut sources, &mut shelf, &mut said);
    let place =
        |of: &ir::Label| format!("{} '{}'", sources.landmark(of.span), sources.slice(of.span));
    said.iter()
        .map(|d| {
            format!("{}: {}", d.message, d.labels.iter().map(place).collect::<Vec<_>>().join(", "))
        })
        .collect()
}

#[test]
fn what_is_wrong_with_an_argument_points_to_the_argument() {
    assert_eq!(
        said(
            "require(nf);\nIdle -> ACL(a.rules) -> Discard",
            &[("a.rules", "allow tcp\nallow sctpx\n")]
        ),
        ["'sctpx' has no place here: a.rules:2 'sctpx'"]
    );
    assert_eq!(
        said("require(nf); Idle ->\nACL(none.rules) -> Discard", &[]),
        ["'none.rules' cannot be read: not there: test.click:2 'none.rules'"]
    );
    assert_eq!(
        said("require(nf); Idle -> Limiter(1Mbps, BURST 3) -> Discard", &[]),
        ["FlowRatedSplitter has no keyword argument BURST: test.click:1 'BURST 3'"]
    );
}

#[test]
fn what_is_wrong_inside_is_shown_there_and_where_it_is_used() {
    let found = said("require(nf);\nIdle -> nat :: NAPT(x) -> Discard", &[]);
    let inside = found.iter().find(|said| said.starts_with("the test is not complete"));
    let inside = inside.unwrap_or_else(|| panic!("{found:#?}"));
    assert!(inside.contains("<nf>/napt.click:"), "{inside}");
    assert!(inside.ends_with("test.click:2 'nat :: NAPT'"), "{inside}");
}

#[test]
fn nothing_is_said_about_the_library_itself() {
    let (_, said) = chain("require(nf); Idle -> Discard");
    assert!(said.is_empty(), "{said:#?}");
}

#[test]
fn a_function_is_known_by_what_it_takes() {
    let (_, said) = chain("require(nf); Idle -> VXLANTunnel(1, 10.0.0.1) -> Discard");
    assert!(said[0].contains("VXLANTunnel is missing its argument $dst"), "{said:#?}");
    let (_, said) = chain("elementclass A { require(nf); input -> output } Idle -> A -> Discard");
    assert!(said[0].contains("at file scope only"), "{said:#?}");
    let (_, said) = chain("require(nfs); Idle -> Discard");
    assert!(said[0].contains("did you mean 'nf'?"), "{said:#?}");
}
