#![allow(missing_docs, clippy::print_stdout)]
#[path = "../tests/shape/mod.rs"]
mod shape;
fn main() {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut std::io::stdin(), &mut text).unwrap();
    for case in text.split("\n---\n") {
        let t = std::time::Instant::now();
        let (chain, said) = shape::chain(case);
        println!(
            "{:?} {:?} {:?}",
            t.elapsed(),
            said.iter().take(3).collect::<Vec<_>>(),
            chain.map(|c| c.graph.nodes.len())
        );
    }
}
