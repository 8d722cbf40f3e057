//! Test sets: matrices in a file.

mod written;

use ir::yaml::Reading;
use ir::{Diagnostic, FileId};
use serde_saphyr::Spanned;

use super::matrix::{MOST_CELLS, Matrix, too_many};
use super::{Direction, Peer};
use written::Words;

/// A file of matrices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestSet {
    /// How often each cell is run.
    pub repeat: Option<usize>,
    /// Draws the order of runs.
    pub seed: Option<u64>,
    /// The CPUs to use, as `--cores` has them.
    pub cores: Option<String>,
    /// The file of containers, as it stands in the test set.
    pub containers: Option<String>,
    /// The matrices, with what they have in common.
    pub sets: Vec<Matrix>,
}

/// Runs of each cell at most.
const MOST_RUNS: u64 = 1000;

impl TestSet {
    /// Reads a test set in which a switch has at most so many cores, on this host or on two.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(
        file: FileId,
        text: &str,
        (cores, has_two_hosts): (usize, bool),
    ) -> Result<Self, Vec<Diagnostic>> {
        let help = "a test set begins with `kind: TestSet`, and has `sets:`, a list";
        let (written, mut found) =
            Reading::of::<written::TestSet>(file, text, "test-set", Some(help))
                .map_err(in_words)?;
        if written.kind.value != "TestSet" {
            let kind = &written.kind.value;
            let message = format!("a manifest of kind '{kind}', and not of `kind: TestSet`");
            found.wrong(&written.kind, message, None);
        }
        if let Some(repeat) = &written.repeat
            && !(1..=MOST_RUNS).contains(&repeat.value)
        {
            found.wrong(repeat, format!("`repeat` takes 1 to {MOST_RUNS}"), None);
        }
        if written.sets.value.is_empty() {
            found.wrong(&written.sets, "a test set without sets".into(), None);
        }
        let defaults = written.defaults.as_ref().map(|of| matrix(of, &mut found));
        let defaults = defaults.unwrap_or_default();
        let (mut sets, mut all) = (Vec::new(), 0);
        for set in &written.sets.value {
            let before = found.found.len();
            let of = Matrix { has_two_hosts, ..matrix(&set.value, &mut found).over(&defaults) };
            // What could not be read is not judged.
            if found.found.len() > before {
                continue;
            }
            match of.cells(cores) {
                Ok(cells) => all += cells.len(),
                Err(wrong) => {
                    let at = set.value.place(wrong.parameter);
                    let at = at.or_else(|| written.defaults.as_ref()?.place(wrong.parameter));
                    let message = wrong.to_string();
                    match at {
                        Some(at) => found.wrong(at, message, None),
                        None => found.wrong(set, message, None),
                    }
                }
            }
            if all > MOST_CELLS {
                found.wrong(set, too_many(), None);
                break;
            }
            sets.push(of);
        }
        if !found.found.is_empty() {
            return Err(found.found);
        }
        Ok(Self {
            repeat: written.repeat.map(|of| of.value as usize),
            seed: written.seed,
            cores: written.cores.map(|of| of.0),
            containers: written.containers,
            sets,
        })
    }
}

/// Errors that name types of programs, in words.
fn in_words(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    const TYPES: [(&str, &str); 3] = [
        ("invalid u64", "this is to be a whole number"),
        ("invalid f64", "this is to be a number"),
        ("invalid bool", "this is to be true or false"),
    ];
    for error in &mut found {
        for (of_programs, words) in TYPES {
            error.message = error.message.replace(of_programs, words);
        }
    }
    found
}

/// What a list says, as a type that reads lists has it.
fn list<T: std::str::FromStr<Err = String>>(
    words: Option<&Spanned<Words>>,
    found: &mut Reading,
) -> Option<T> {
    let words = words?;
    words.value.0.parse().map_err(|why| found.wrong(words, why, None)).ok()
}

/// Names with commas between them.
fn names(words: Option<&Spanned<Words>>) -> Option<Vec<String>> {
    Some(words?.value.0.split(',').map(|name| name.trim().to_string()).collect())
}

/// What names with commas between them stand for.
fn parsed<T: std::str::FromStr<Err = String>>(
    words: Option<&Spanned<Words>>,
    found: &mut Reading,
) -> Option<Vec<T>> {
    let words = words?;
    let all = names(Some(words))?.into_iter().map(|name| name.parse());
    all.collect::<Result<_, _>>().map_err(|why| found.wrong(words, why, None)).ok()
}

fn matrix(written: &written::Matrix, found: &mut Reading) -> Matrix {
    let direction = parsed::<Direction>(written.direction.as_ref(), found);
    let peer = parsed::<Peer>(written.peer.as_ref(), found);
    let what = written
        .what
        .as_ref()
        .and_then(|text| text.value.parse().map_err(|why| found.wrong(text, why, None)).ok());
    Matrix {
        switch: names(written.switch.as_ref()),
        pairs: list(written.pairs.as_ref(), found),
        size: list(written.size.as_ref(), found),
        burst: list(written.burst.as_ref(), found),
        latency_burst: list(written.latency_burst.as_ref(), found),
        rate: list(written.rate.as_ref(), found),
        latency_rate: written.latency_rate.as_ref().map(|of| of.value),
        cores_for_switch: list(written.cores_for_switch.as_ref(), found),
        io: names(written.io.as_ref()),
        direction,
        peer,
        touch: written.touch,
        what,
        seconds: written.seconds.as_ref().map(|of| of.value),
        warm_up: written.warm_up.as_ref().map(|of| of.value),
        container: names(written.container.as_ref()),
        has_two_hosts: false,
        is_spoken_of: false,
    }
}

#[cfg(test)]
mod tests {
    use ir::Sources;

    use super::*;
    use crate::netbench::What;

    fn parse(text: &str) -> Result<TestSet, Vec<Diagnostic>> {
        let mut sources = Sources::new();
        let file = sources.add("set.yaml", text);
        TestSet::parse(file, text, (2, false))
    }

    #[test]
    fn sets_have_what_they_do_not_say_from_the_defaults() {
        let text = "\
kind: TestSet
repeat: 5
seed: 7
cores: 0-1
defaults: {switch: catena, seconds: 2, touch: true, what: throughput}
sets:
  - {size: 64..256x2, pairs: [1, 2], rate: '100k,1M'}
  - {size: 1500, io: [udp, udp-mmsg], direction: [there, back], warm-up: 0.5, what: latency}
";
        let set = parse(text).unwrap();
        assert_eq!((set.repeat, set.seed, set.cores.as_deref()), (Some(5), Some(7), Some("0-1")));
        let cells: Vec<_> = set.sets.iter().map(|set| set.cells(2).unwrap()).collect();
        assert_eq!([cells[0].len(), cells[1].len()], [3 * 2 * 2, 4]);
        assert_eq!((cells[0][0].seconds, cells[0][0].touches), (2.0, true));
        assert_eq!(cells[0][1].rate, Some(1_000_000));
        assert_eq!((cells[0][0].what, cells[1][0].what), (What::Throughput, What::Latency));
        assert_eq!((cells[1][1].warm_up, cells[1][1].direction), (0.5, Direction::Back));
        assert_eq!(cells[1][3].io, "udp-mmsg");
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        for (text, expected, at) in [
            ("", "", 0),
            ("kind: TestSet\nsets: []\n", "without sets", 20),
            ("kind: HostChain\nsets: [{switch: catena}]\n", "not of `kind: TestSet`", 6),
            ("kind: TestSet\nrepeat: 0\nsets: [{switch: catena}]\n", "takes 1 to 1000", 22),
            ("kind: TestSet\nsets: [{sise: 64}]\n", "sise", 22),
            ("kind: TestSet\nsets: [{switch: catena, size: 59}]\n", "size 59: takes 60", 44),
            (
                "kind: TestSet\nsets: [{switch: catena, size: small}]\n",
                "'small': takes numbers",
                44,
            ),
            ("kind: TestSet\nsets: [{switch: hub}]\n", "there is no switch 'hub'", 30),
            (
                "kind: TestSet\ndefaults: {io: fast}\nsets: [{switch: catena}]\n",
                "io 'fast' is not an I/O mode",
                29,
            ),
            ("kind: TestSet\nsets: [{switch: catena, what: all}]\n", "'all'", 44),
            ("kind: TestSet\nsets: [{switch: catena, direction: up}]\n", "'up'", 49),
            (
                "kind: TestSet\nsets: [{switch: catena, peer: remote}]\n",
                "peer remote: takes two hosts",
                44,
            ),
            ("kind: TestSet\nsets: [{switch: catena, peer: far}]\n", "'far': takes local", 44),
            ("kind: TestSet\nsets: [{switch: catena, seconds: 0}]\n", "seconds 0: takes", 21),
            ("kind: TestSet\nrepeat: -1\nsets: [{switch: catena}]\n", "a whole number", 22),
            ("kind: TestSet\nrepeat: often\nsets: [{switch: catena}]\n", "a whole number", 22),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found[0].message.contains(expected), "{text}: {found:?}");
            assert_eq!(found[0].span().unwrap().start, at, "{text}: {found:?}");
        }
    }

    #[test]
    fn what_is_huge_is_refused_soon() {
        let sizes = "  - {switch: catena, size: 60..1514+1}\n";
        let found = parse(&format!("kind: TestSet\nsets:\n{}", sizes.repeat(1000))).unwrap_err();
        assert!(found[0].message.contains("more than 100000 combinations"), "{found:?}");
        assert_eq!(found.len(), 1);
        // The set that is one too many.
        let start = found[0].span().unwrap().start as usize;
        assert_eq!((start - "kind: TestSet\nsets:\n".len()) / sizes.len(), 100_000 / 1455);
        for text in ["[".repeat(100_000), "\0\u{1}\u{7f}".repeat(1000), "- ".repeat(100_000)] {
            assert!(parse(&text).is_err());
        }
    }
}
