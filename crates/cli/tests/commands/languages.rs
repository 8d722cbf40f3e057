//! `catena nf` for functions in Go and Python.

use std::path::Path;
use std::process::Command;

use crate::host::{CATENA, Folder, example, text};

/// A folder in which anybody can read, as functions have users of their own.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&folder.0, all).unwrap();
    folder
}

/// Builds a function in Go. Nothing is loaded.
fn go(folder: &Path) {
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(folder.file_name().unwrap()).arg(".").current_dir(folder);
    let built = go
        .env("GOPROXY", "off")
        .env("GOFLAGS", "-buildvcs=false")
        .env("GOTOOLCHAIN", "local")
        .output();
    let built = built.expect("Go: Debian's package golang-go");
    assert!(built.status.success(), "{}", text(&built.stderr));
}

/// The first address of IPv4 in the capture.
fn source() -> String {
    let bytes = std::fs::read(example("lan.pcap.gz")).unwrap();
    let mut reader = net::pcap::Reader::in_memory(bytes).unwrap();
    loop {
        let frame = reader.next().unwrap().expect("one of IPv4").data;
        if frame[12..14] == [8, 0] {
            return std::net::Ipv4Addr::new(frame[26], frame[27], frame[28], frame[29]).to_string();
        }
    }
}

#[test]
fn functions_in_every_language_are_begun_and_do_the_same() {
    let folder = folder("begun");
    let deny = format!("deny {}", source());
    let mut outputs = Vec::new();
    for (language, name) in [("c", "in-c"), ("go", "in-go"), ("python", "in-python")] {
        folder.ok(&["nf", "init", "--lang", language, name]);
        match language {
            "c" => {
                let make = Command::new("make").arg("-s").current_dir(folder.0.join(name)).status();
                assert!(make.expect("make").success());
            }
            "go" => go(&folder.0.join(name)),
            _ => {}
        }
        let to = format!("{name}.pcap");
        let input = example("lan.pcap.gz");
        let run = ["nf", "run", name, "--pcap", &input, "-w", &to, "--config"];
        let shown = folder.ok(&[&run[..], &[&deny, "--read-only"]].concat());
        let counts = shown.lines().find(|line| line.trim_start().starts_with("nf ")).unwrap();
        let words: Vec<&str> = counts.split_whitespace().collect();
        // Packets, passed, and what follows the times: dropped and counters.
        let counted = [&words[1..3], &words[5..]].concat().join(" ");
        outputs.push((counted, std::fs::read(folder.0.join(&to)).unwrap()));
        let why = folder.refused(&[&run[..], &["permit all"]].concat());
        assert!(why.contains("the NF 'nf' refuses to start: expected `deny ADDRESS`"), "{why}");
    }
    assert!(outputs[0].0.contains("denied"), "{}", outputs[0].0);
    for other in &outputs[1..] {
        assert_eq!(outputs[0].0, other.0);
        assert!(outputs[0].1 == other.1);
    }
    for language in ["c", "rust", "go", "python"] {
        let why = folder.refused(&["nf", "init", "--lang", language, "catena_nf"]);
        assert!(why.contains("and not catena_nf"), "{why}");
    }
}

#[test]
fn functions_in_go_and_python_are_packed_and_run_in_containers() {
    let folder = folder("packed");
    folder.ok(&["nf", "init", "--lang", "go", "in-go"]);
    folder.ok(&["nf", "init", "--lang", "python", "in-python"]);
    go(&folder.0.join("in-go"));
    let in_go = folder.ok(&["nf", "pack", "in-go", "-o", "go.oci"]);
    assert!(in_go.contains("/usr/bin/in-go") && !in_go.contains("libc"), "{in_go}");
    // Its own modules and files go along.
    std::fs::create_dir(folder.0.join("in-python/lists")).unwrap();
    folder.write("in-python/lists/__init__.py", "NAME = 'denied'\n");
    folder.write("in-python/lists/names.txt", "denied\n");
    folder.write("in-python/.hidden", "");
    let script = std::fs::read_to_string(folder.0.join("in-python/main.py")).unwrap();
    let script = script.replace(
        "import catena_nf\n",
        "import catena_nf\nimport lists\nimport ctypes, json, ssl, sqlite3\n",
    );
    folder.write(
        "in-python/main.py",
        &script.replace("\"denied\"", "open(lists.__path__[0] + '/names.txt').read().strip()"),
    );
    let in_python = folder.ok(&["nf", "pack", "in-python", "-o", "python.oci"]);
    for part in ["/opt/in-python/main.py", "/opt/in-python/lists/names.txt", "libc.so", "files"] {
        assert!(in_python.contains(part), "{part}: {in_python}");
    }
    assert!(!in_python.contains(".hidden") && in_python.lines().count() < 80, "{in_python}");
    let size = std::fs::metadata(folder.0.join("python.oci")).unwrap().len();
    assert!(size < 64 << 20, "{size}");
    folder.ok(&["nf", "pack", "in-python", "-o", "again.oci"]);
    let bytes = |name: &str| std::fs::read(folder.0.join(name)).unwrap();
    assert!(bytes("python.oci") == bytes("again.oci"));
    let manifest = format!("p{}.yaml", std::process::id());
    let text = format!(
        "kind: HostChain\nnfs:\n  - {{name: go, image: go.oci, threads: 16, writes: none}}\n  \
         - {{name: python, image: python.oci, config: 'deny {}', writes: none}}\n  \
         - {{name: here, program: in-python/main.py}}\nchain: go -> python -> here\n\
         io: {{in: {}, out: ./out.pcap}}\nschedule: {{policy: other}}\n",
        source(),
        example("lan.pcap.gz")
    );
    folder.write(&manifest, &text);
    let shown = folder.ok(&["host", "up", &manifest]);
    assert!(shown.contains("denied"), "{shown}");
    let deny = format!("deny {}", source());
    let input = example("lan.pcap.gz");
    folder.ok(&["nf", "run", "in-go", "--pcap", &input, "-w", "alone.pcap", "--config", &deny]);
    assert!(bytes("out.pcap") == bytes("alone.pcap"));
    // Go's own runtime starts threads.
    folder.write(&manifest, &text.replace(", threads: 16", ""));
    let why = folder.refused(&["host", "up", &manifest]);
    assert!(why.contains("the NF 'go' ended") && why.contains("`threads: 16`"), "{why}");
    // Packages that are not in the folder are not in the image.
    folder.write("in-python/main.py", &script.replace("import lists", "import no_such_package"));
    let why = folder.refused(&["nf", "pack", "in-python", "-o", "odd.oci"]);
    assert!(
        why.contains("No module named 'no_such_package'")
            && why.contains("ended before it was ready"),
        "{why}"
    );
    assert!(!folder.0.join("odd.oci").exists());
}

/// Passes packets, or does what its configuration says.
const ODD: &str = "#!/usr/bin/env python3
import catena_nf

class Odd:
    def init(self, config):
        self.config = config
        if config == 'raise':
            {}['why']

    def process(self, batch):
        while self.config == 'loop':
            pass
        while self.config == 'print':
            print('x' * 1000)
        if self.config == 'error':
            {}['why']

if __name__ == '__main__':
    catena_nf.main(Odd())
";

#[test]
fn what_is_wrong_with_a_function_in_python_is_said() {
    let folder = folder("odd");
    folder.ok(&["nf", "init", "--lang", "python", "odd"]);
    folder.write("odd/main.py", ODD);
    let input = example("lan.pcap.gz");
    let run = ["nf", "run", "odd", "--pcap", &input, "-w", "out.pcap", "--config"];
    for (config, expected) in [
        (
            "raise",
            &["the NF 'nf' refuses to start: init raised KeyError: 'why'", "main.py\", line 8"][..],
        ),
        (
            "error",
            &[
                "KeyError: 'why'",
                "main.py\", line 16",
                "the NF 'nf' ended: it exited with status 1",
            ],
        ),
        ("loop", &["has kept a batch for more than 100 ms: it is ended"]),
    ] {
        let why = folder.refused(&[&run[..], &[config]].concat());
        assert!(expected.iter().all(|of| why.contains(of)), "{config}: {why}");
    }
    // In a chain, what it prints is in its log, whose end is shown; the log has bounds.
    let manifest = format!("o{}.yaml", std::process::id());
    let chain = |config: &str| {
        let text = format!(
            "kind: HostChain\nnfs:\n  - {{name: odd, program: odd/main.py, config: {config}}}\nchain: odd\n\
             io: {{in: {input}, out: ./out.pcap}}\nschedule: {{policy: other}}\n"
        );
        folder.write(&manifest, &text);
        folder.refused(&["host", "up", &manifest])
    };
    let why = chain("error");
    assert!(why.contains("it printed:") && why.contains("KeyError: 'why'"), "{why}");
    let why = chain("print");
    assert!(why.contains("has kept a batch") && why.len() < 10_000, "{why}");
    folder.write("odd/main.py", &format!("{ODD}def (\n"));
    let why = chain("none");
    assert!(why.contains("ended before it was ready") && why.contains("SyntaxError"), "{why}");
    let why = folder.refused(&[&run[..], &["none"]].concat());
    assert!(why.contains("SyntaxError") && why.contains("main.py\", line "), "{why}");
    // An interpreter that is not there.
    folder.write("odd/main.py", &ODD.replace("python3", "python3.0"));
    for why in [
        chain("none"),
        folder.refused(&[&run[..], &["none"]].concat()),
        folder.refused(&["nf", "pack", "odd", "-o", "odd.oci"]),
    ] {
        assert!(
            why.contains("there is no 'python3.0' in") && why.contains("apt-get install python3"),
            "{why}"
        );
    }
    // One that is no Python of today.
    folder.write("odd/main.py", &ODD.replace("/usr/bin/env python3", "/bin/true"));
    let why = folder.refused(&[&run[..], &["none"]].concat());
    assert!(why.contains("ended before it was ready: it exited with status 0"), "{why}");
    // It is a function, and no program for people.
    folder.write("odd/main.py", ODD);
    let alone =
        Command::new(folder.0.join("odd/main.py")).stdin(std::process::Stdio::null()).output();
    let alone = alone.unwrap();
    assert!(!alone.status.success() && text(&alone.stderr).contains("catena nf run"));
    // Root's functions have users of their own, who cannot read everywhere.
    if rustix::process::geteuid().is_root() {
        let own = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(folder.0.join("odd"), own).unwrap();
        for why in [
            folder.refused(&[&run[..], &["none"]].concat()),
            folder.refused(&["nf", "pack", "odd", "-o", "odd.oci"]),
        ] {
            assert!(why.contains("not everybody can read") && why.contains("/odd"), "{why}");
        }
    }
}

#[test]
fn what_builds_a_function_is_named_where_it_is_not_there() {
    let folder = folder("unbuilt");
    for (language, name, build, tool, mend) in [
        ("c", "in-c", "`make`", "`make`", "make and gcc"),
        ("rust", "in-rust", "`cargo build --release`", "`cargo`", "rustup.rs"),
        ("go", "in-go", "`go build -o in-go .`", "`go`", "golang-go"),
    ] {
        folder.ok(&["nf", "init", "--lang", language, name]);
        let mut run = Command::new(CATENA);
        run.args(["nf", "run", name, "--pcap", &example("lan.pcap.gz"), "-w", "out.pcap"]);
        let output = run.current_dir(&folder.0).env("PATH", "/nonexistent").output().unwrap();
        let why = text(&output.stderr);
        assert!(
            !output.status.success() && why.contains(&format!("no program '{name}' yet: {build}")),
            "{why}"
        );
        assert!(
            why.contains(&format!("There is no {tool} on the PATH")) && why.contains(mend),
            "{why}"
        );
    }
    let mut init = Command::new(CATENA);
    init.args(["nf", "init", "--lang", "python", "in-python"]).current_dir(&folder.0);
    let shown = text(&init.env("PATH", "/nonexistent").output().unwrap().stdout);
    assert!(
        shown.contains("There is no `python3` on the PATH") && !shown.contains("build it"),
        "{shown}"
    );
}
