//! Chains with images: packed, started by each container runtime beside processes of this host, ended, and nothing of them left.

extern crate nf as catena_nf;

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use catena_host::image::{Program, pack};
use catena_host::manifest::{Function, Nf};
use catena_host::{Failure, Journal, Limits};
use support::languages::{What, function};
use support::{Folder, c, in_c, in_order, left, number, run, rust, spec};

/// The image of a program.
fn image(
    folder: &Folder,
    name: &str,
    program: &Path,
    arguments: &[String],
) -> Result<Function, Failure> {
    let to = folder.0.join(format!("{name}.oci"));
    let program = Program {
        name: name.into(),
        path: program.into(),
        arguments: arguments.to_vec(),
        has_runtime: true,
    };
    let journal = Journal::begin(&folder.0.join(format!("{name}.try")))?;
    pack(&program, &to, journal).map(|_| packed(to))
}

/// An image that is run by runc.
fn packed(path: PathBuf) -> Function {
    Function::Image { path, arguments: Vec::new(), runtime: "runc".into() }
}

/// All runtimes of images.
const RUNTIMES: [&str; 3] = ["runc", "crun", "podman"];

/// The same image by another runtime.
fn by(name: &str, function: &Function) -> Function {
    let Function::Image { path, arguments, .. } = function else { panic!("an image") };
    Function::Image { path: path.clone(), arguments: arguments.clone(), runtime: name.into() }
}

fn with(nf: Nf, function: Function) -> Nf {
    Nf { function, ..nf }
}

#[test]
fn containers_and_processes_are_a_chain_and_nothing_of_them_is_left() {
    let folder = Folder::new("images");
    let rust_nf = rust("third", "drop 3");
    let Function::Program(path, arguments) = &rust_nf.function else { panic!("a program") };
    let in_rust = image(&folder, "rust", path, arguments).unwrap();
    let written_in_c = image(&folder, "written-in-c", &in_c(), &[]).unwrap();
    // One runtime for all, and each with the others.
    for [first, second, third] in
        RUNTIMES.map(|name| [name; 3]).into_iter().chain([RUNTIMES, ["podman", "runc", "crun"]])
    {
        let nfs = vec![
            with(rust_nf.clone(), by(first, &in_rust)),
            rust("native", "tag"),
            with(c("middle", "pass"), by(second, &written_in_c)),
            with(rust("out", "untag"), by(third, &in_rust)),
        ];
        let (status, frames, said, mark) = run(&folder, spec(&folder, nfs, 2_000));
        let status = status.unwrap_or_else(|why| panic!("{first}: {why} {said:?}"));
        let expected: Vec<u64> = (0..2_000).filter(|number| number % 3 != 0).collect();
        assert_eq!(frames.iter().map(|of| number(of)).collect::<Vec<_>>(), expected);
        assert_eq!(status.nfs[0].dropped["divided"], 667);
        assert_eq!((status.nfs[2].received, status.failures), (1_333, 0));
        assert_eq!(left(&mark), [""; 0], "{first}");
    }
}

#[test]
fn a_container_that_ends_or_hangs_is_replaced() {
    let folder = Folder::new("replaced");
    let written_in_c = image(&folder, "c", &in_c(), &[]).unwrap();
    let acts = [("crash", "signal 11 ended it"), ("hang", "has kept a batch")];
    let all = RUNTIMES.into_iter().flat_map(|name| acts.map(|(act, said_of)| (name, act, said_of)));
    for (name, act, said_of) in all {
        let nfs = vec![
            rust("first", "pass"),
            with(c("acts", &format!("{act} 40")), by(name, &written_in_c)),
        ];
        let mut spec = spec(&folder, nfs, 100);
        spec.batch = Some(10);
        spec.timeout = std::time::Duration::from_millis(300);
        let (status, frames, said, mark) = run(&folder, spec);
        // Each that takes its place sees fewer packets than it needs to do it again.
        let status = status.unwrap_or_else(|why| panic!("{why} {said:?}"));
        assert!(
            said.iter().any(|line| line.contains("'acts'") && line.contains(said_of)),
            "{said:?}"
        );
        assert!(in_order(&frames));
        let found = (status.failures, status.lost_in_nf, frames.len());
        assert_eq!(found, (2, 20, 80), "{name}: {said:?}");
        assert_eq!(left(&mark), [""; 0], "{name}");
    }
}

#[test]
fn functions_in_go_and_python_run_in_containers_of_every_runtime() {
    let folder = Folder::new("languages");
    let [in_go, in_python] = ["go", "python"].map(|language| {
        let nf = function(What::Same, language, &folder, "pass");
        let Function::Program(path, arguments) = &nf.function else { panic!("a program") };
        with(nf.clone(), image(&folder, language, path, arguments).unwrap())
    });
    for name in RUNTIMES {
        let nfs = vec![
            with(in_python.clone(), by(name, &in_python.function)),
            c("between", "pass"),
            with(in_go.clone(), by(name, &in_go.function)),
        ];
        let (status, frames, said, mark) = run(&folder, spec(&folder, nfs, 1_000));
        let status = status.unwrap_or_else(|why| panic!("{name}: {why} {said:?}"));
        assert!(frames.iter().enumerate().all(|(at, of)| number(of) == at as u64), "{name}");
        assert_eq!((frames.len(), status.failures), (1_000, 0), "{name}: {said:?}");
        assert!(status.nfs.iter().all(|nf| nf.counters["seen"] == 1_000), "{name}");
        assert_eq!(left(&mark), [""; 0], "{name}");
    }
}

#[test]
fn a_program_that_is_no_nf_is_not_packed() {
    let folder = Folder::new("packed");
    for (program, expected) in [
        ("/bin/true", "'x' ended before it was ready: it exited with status 0"),
        ("/usr/bin/ldd", "no program in ELF"),
        ("/nonexistent/x", "/nonexistent/x"),
    ] {
        let why = image(&folder, "x", Path::new(program), &[]).unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
        assert!(!folder.0.join("x.oci").exists() && !folder.0.join("x.try").exists());
    }
    // The same program, the same bytes.
    image(&folder, "c", &in_c(), &[]).unwrap();
    let first = std::fs::read(folder.0.join("c.oci")).unwrap();
    assert!(
        image(&folder, "c", &in_c(), &[]).unwrap_err().to_string().contains("is there already")
    );
    std::fs::remove_file(folder.0.join("c.oci")).unwrap();
    image(&folder, "c", &in_c(), &[]).unwrap();
    assert!(first == std::fs::read(folder.0.join("c.oci")).unwrap());
}

#[test]
fn why_a_container_did_not_start_is_said() {
    let folder = Folder::new("unstarted");
    // A file that the entrypoint names and the image has not.
    image(&folder, "c", &in_c(), &[]).unwrap();
    let unpacked = folder.0.join("unpacked");
    std::fs::create_dir_all(&unpacked).unwrap();
    let tar =
        Command::new("tar").arg("-xf").arg(folder.0.join("c.oci")).current_dir(&unpacked).status();
    assert!(tar.unwrap().success());
    let function = packed(unpacked.clone());
    let (status, ..) =
        run(&folder, spec(&folder, vec![with(c("whole", "pass"), function.clone())], 10));
    assert_eq!(status.unwrap().sent, 10, "a folder is an image, too");
    let (status, ..) = run(&folder, spec(&folder, vec![with(c("odd", "refuse"), function)], 1));
    let why = status.unwrap_err().to_string();
    assert!(why.contains("'odd' refuses to start: as it was told to"), "{why}");
}

#[test]
fn what_a_container_must_not_do_is_refused() {
    let folder = Folder::new("attacks");
    let written_in_c = image(&folder, "c", &in_c(), &[]).unwrap();
    let acts = ["reach", "take", "threads", "map", "share"];
    for (name, act) in RUNTIMES.into_iter().flat_map(|name| acts.map(|act| (name, act))) {
        let mut attacker = with(c("attacker", act), by(name, &written_in_c));
        attacker.limits =
            Limits { memory: 64 << 20, threads: if act == "threads" { 4 } else { 1 } };
        attacker.writes = act != "map";
        let nfs = vec![with(c("first", "pass"), written_in_c.clone()), attacker, c("last", "pass")];
        let (status, frames, said, mark) = run(&folder, spec(&folder, nfs, 200));
        if act == "share" {
            let ended = "'attacker' ended: signal 9 ended it, as it used all of its memory";
            assert!(said.iter().any(|line| line.contains(ended)), "{name}: {said:?}");
        } else {
            let status = status.unwrap_or_else(|why| panic!("{name}: {act}: {why} {said:?}"));
            assert_eq!((frames.len(), status.failures), (200, 0), "{name}: {act}: {said:?}");
            // It sees nobody else.
            assert_eq!(status.nfs[1].counters["tried"], 0);
        }
        assert_eq!(left(&mark), [""; 0]);
    }
}
