//! Random linear programs: what is found is what `glpsol` finds (Debian's glpk-utils).

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use fastrand::Rng;
use placement::linear::{Column, Compare, Program, Solved};

/// A program, as ours and in the format of CPLEX.
struct Both {
    program: Program,
    text: String,
}

fn sum(terms: &[(usize, f64)]) -> String {
    let term = |(at, of): &(usize, f64)| {
        format!(" {} {} x{at}", if *of < 0.0 { '-' } else { '+' }, of.abs())
    };
    terms.iter().map(term).collect()
}

/// A small number, often a round one, so that there are ties and redundant rows.
fn number(random: &mut Rng) -> f64 {
    let of = match random.u8(..4) {
        0 => f64::from(random.u32(1..4)),
        1 => f64::from(random.u32(1..100)) / 8.0,
        2 => random.f64() * 50.0,
        _ => random.f64(),
    };
    if random.u8(..5) == 0 { -of } else { of }
}

/// Some columns and rows, at random.
fn any(random: &mut Rng) -> Both {
    let count = random.usize(1..12);
    let is_most = random.bool();
    let mut program = if is_most { Program::most() } else { Program::least() };
    let mut bounds = String::new();
    let mut objective = Vec::new();
    let mut columns: Vec<Column> = Vec::new();
    let mut point = Vec::new();
    for at in 0..count {
        let low = if random.bool() { 0.0 } else { number(random) };
        let high = low + number(random).abs() * 4.0;
        point.push(low + random.f64() * (high - low));
        let gain = number(random);
        columns.push(program.column(gain, (low, high)));
        objective.push((at, gain));
        let _ = writeln!(bounds, " {low} <= x{at} <= {high}");
    }
    // Most programs have a solution, as their rows hold at a point.
    let mut rows = String::new();
    let has_point = random.u8(..4) > 0;
    for row in 0..random.usize(1..14) {
        let of = (0..count).filter(|_| random.u8(..3) > 0).collect::<Vec<_>>();
        let terms: Vec<(usize, f64)> = of.into_iter().map(|at| (at, number(random))).collect();
        if terms.is_empty() {
            continue;
        }
        let compare = [Compare::Most, Compare::Most, Compare::Least, Compare::Same];
        let compare = random.choice(compare).unwrap_or(Compare::Most);
        let there: f64 = terms.iter().map(|(at, of)| of * point[*at]).sum();
        let more = if random.bool() { 0.0 } else { number(random).abs() };
        let limit = match compare {
            _ if !has_point => number(random) * 8.0,
            Compare::Most => there + more,
            Compare::Least => there - more,
            Compare::Same => there,
        };
        let sign = match compare {
            Compare::Most => "<=",
            Compare::Least => ">=",
            Compare::Same => "=",
        };
        let _ = writeln!(rows, " r{row}:{} {sign} {limit}", sum(&terms));
        program.row(terms.iter().map(|(at, of)| (columns[*at], *of)), compare, limit);
    }
    let _ =
        writeln!(rows, " all:{} <= 1e9", sum(&(0..count).map(|at| (at, 1.0)).collect::<Vec<_>>()));
    let direction = if is_most { "Maximize" } else { "Minimize" };
    let objective = sum(&objective);
    let text = format!("{direction}\n obj:{objective}\nSubject To\n{rows}Bounds\n{bounds}End\n");
    Both { program, text }
}

/// The shape of placement's own: shares of options that add up to 1 for each chain, and what they take together.
fn shares(random: &mut Rng) -> Both {
    let mut program = Program::most();
    let (mut objective, mut rows) = (Vec::new(), String::new());
    let mut room: Vec<Vec<(usize, f64)>> = vec![Vec::new(); 4];
    let mut columns: Vec<Column> = Vec::new();
    for chain in 0..random.usize(1..6) {
        let first = columns.len();
        for at in first..first + random.usize(1..8) {
            let gain = random.f64() * 20.0;
            columns.push(program.column(gain, (0.0, 1.0)));
            objective.push((at, gain));
            for terms in &mut room {
                terms.push((at, f64::from(random.u32(0..12))));
            }
        }
        let one: Vec<(usize, f64)> = (first..columns.len()).map(|at| (at, 1.0)).collect();
        let _ = writeln!(rows, " c{chain}:{} = 1", sum(&one));
        program.row(one.iter().map(|(at, of)| (columns[*at], *of)), Compare::Same, 1.0);
    }
    for (at, terms) in room.iter().enumerate() {
        let limit = f64::from(random.u32(2..40));
        let _ = writeln!(rows, " r{at}:{} <= {limit}", sum(terms));
        program.row(terms.iter().map(|(at, of)| (columns[*at], *of)), Compare::Most, limit);
    }
    let mut bounds = String::new();
    (0..columns.len()).for_each(|at| {
        let _ = writeln!(bounds, " 0 <= x{at} <= 1");
    });
    let objective = sum(&objective);
    let text = format!("Maximize\n obj:{objective}\nSubject To\n{rows}Bounds\n{bounds}End\n");
    Both { program, text }
}

/// What `glpsol` says: the objective; nothing if there is no solution.
fn glpsol(text: &str, folder: &Path) -> Option<f64> {
    let (program, solution) = (folder.join("program.lp"), folder.join("solution.txt"));
    fs::write(&program, text).expect("a file is written");
    let run =
        Command::new("glpsol").arg("--lp").arg(&program).arg("--write").arg(&solution).output();
    let run = run.expect("glpsol starts: it is in Debian's glpk-utils");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}\n{text}");
    let found = fs::read_to_string(&solution).expect("a solution");
    // `s bas ROWS COLUMNS PRIMAL DUAL OBJECTIVE`, with `f` for feasible.
    let line = found.lines().find(|line| line.starts_with("s bas")).expect("its summary");
    let words: Vec<&str> = line.split_whitespace().collect();
    match (words[4], words[5]) {
        ("f", "f") => Some(words[6].parse().expect("a number")),
        _ => None,
    }
}

/// `CASES` asks for more programs, `SEED` for one, or for `fresh` ones.
#[test]
fn programs_have_the_optimum_that_glpsol_finds() {
    let cases = std::env::var("CASES").ok().and_then(|n| n.parse::<u64>().ok()).unwrap_or(60);
    let seeds = match std::env::var("SEED").ok().as_deref() {
        Some("fresh") => {
            let first = fastrand::u32(..).into();
            first..first + cases
        }
        Some(seed) => seed.parse().map_or(0..cases, |seed| seed..seed + 1),
        None => 0..cases,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let ran = seeds.end - seeds.start;
    let (mut best, mut none) = (0, 0);
    for seed in seeds {
        let mut random = Rng::with_seed(seed);
        let Both { program, text } =
            if seed % 3 == 0 { shares(&mut random) } else { any(&mut random) };
        match (program.solve(), glpsol(&text, folder.path())) {
            (Solved::Best(ours), Some(theirs)) => {
                let error = (ours.objective - theirs).abs();
                assert!(
                    error <= 1e-6 * (1.0 + theirs.abs()),
                    "seed {seed}: {} and {theirs}\n{text}",
                    ours.objective
                );
                best += 1;
            }
            (Solved::Infeasible, None) => none += 1,
            (ours, theirs) => panic!("seed {seed}: {ours:?} and {theirs:?}\n{text}"),
        }
    }
    assert!(
        ran < 50 || best > ran / 4 && none > ran / 20,
        "{best} with an optimum, {none} without"
    );
}
