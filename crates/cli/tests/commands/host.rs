//! `catena nf` and `catena host`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) const CATENA: &str = env!("CARGO_BIN_EXE_catena");

/// A folder that goes with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("catena-cli-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn catena(&self, words: &[&str]) -> Output {
        let mut command = Command::new(CATENA);
        // Who is not root has a place of their own.
        command.args(words).current_dir(&self.0).env("XDG_RUNTIME_DIR", &self.0);
        command.output().unwrap()
    }

    /// What it printed; it succeeded.
    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let output = self.catena(words);
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{words:?}: {out}{errors}");
        out
    }

    pub(crate) fn refused(&self, words: &[&str]) -> String {
        let output = self.catena(words);
        assert!(!output.status.success(), "{words:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).display().to_string()
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_function_is_begun_built_and_tried() {
    let folder = Folder::new("nf");
    folder.ok(&["nf", "init", "--lang", "c", "acl"]);
    let make = Command::new("make").arg("-s").current_dir(folder.0.join("acl")).status();
    assert!(make.expect("make").success());
    let input = example("lan.pcap.gz");
    let run = ["nf", "run", "acl", "--pcap", &input, "-w", "out.pcap"];
    let all = folder.ok(&run);
    assert!(all.contains("packets came"), "{all}");
    let bytes = std::fs::read(folder.0.join("out.pcap")).unwrap();
    let mut reader = net::pcap::Reader::in_memory(bytes).unwrap();
    let source = loop {
        let frame = reader.next().unwrap().expect("one of IPv4").data;
        if frame[12..14] == [8, 0] {
            break [frame[26], frame[27], frame[28], frame[29]];
        }
    };
    let deny = format!("deny {}", std::net::Ipv4Addr::from(source));
    let some = folder.ok(&[&run[..], &["--config", &deny]].concat());
    assert!(some.contains("denied"), "{some}");
    let output = folder.catena(&[&run[..], &["--config", "permit all"]].concat());
    let why = text(&output.stderr);
    assert!(why.contains("the NF 'nf' refuses to start: expected `deny ADDRESS`"), "{why}");
    // Nothing that is there is touched.
    assert!(folder.refused(&["nf", "init", "--lang", "c", "acl"]).contains("is there already"));
    folder.ok(&["nf", "init", "--lang", "rust", "racl"]);
    assert!(
        folder
            .refused(&["nf", "run", "racl", "--pcap", &input, "-w", "o"])
            .contains("has no program 'racl' yet")
    );
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "-q", "--offline"]).current_dir(folder.0.join("racl"));
    let checked = cargo.env("CARGO_TARGET_DIR", folder.0.join("target")).output().unwrap();
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn elements_and_programs_are_a_chain() {
    let folder = Folder::new("chain");
    folder.ok(&["nf", "init", "--lang", "c", "acl"]);
    assert!(
        Command::new("make")
            .arg("-s")
            .current_dir(folder.0.join("acl"))
            .status()
            .unwrap()
            .success()
    );
    let name = format!("chain{}.yaml", std::process::id());
    folder.write(
        "fw.click",
        "input -> Strip(14) -> CheckIPHeader -> DecIPTTL -> Unstrip(14) -> output;",
    );
    let manifest = format!(
        "kind: HostChain\nnfs:\n  - {{name: fw, click: fw.click}}\n  - {{name: acl, program: acl/acl, writes: none}}\n\
         chain: acl -> fw\nio: {{in: {}, out: ./out.pcap}}\nschedule: {{policy: other}}\n",
        example("lan.pcap.gz")
    );
    folder.write(&name, &manifest);
    let output = folder.catena(&["host", "up", &name]);
    let (shown, said) = (squeezed(&text(&output.stdout)), text(&output.stderr));
    assert!(output.status.success() && !said.contains("not proven"), "{said}");
    // As in one process.
    folder.write(
        "one.click",
        "FromDevice(in) -> Strip(14) -> CheckIPHeader -> DecIPTTL -> Unstrip(14) -> ToDevice(out);",
    );
    let input = format!("in={}", example("lan.pcap.gz"));
    folder.ok(&["run", "one.click", "--in", &input, "--out", "out=./one.pcap"]);
    let (by_processes, by_one) =
        (std::fs::read(folder.0.join("out.pcap")), std::fs::read(folder.0.join("one.pcap")));
    assert!(by_processes.unwrap() == by_one.unwrap(), "{shown}");
    assert!(shown.contains("hand-off by baton"), "{shown}");
    // Errors have a line and a caret.
    folder.write(&name, &manifest.replace("acl -> fw", "acl -> fv"));
    let why = folder.refused(&["host", "up", &name]);
    assert!(
        why.contains("there is no NF 'fv'")
            && why.contains("^")
            && why.contains(&format!("{name}:5:")),
        "{why}"
    );
}

#[test]
fn a_function_is_packed_and_run_in_a_container() {
    let folder = Folder::new("pack");
    folder.ok(&["nf", "init", "--lang", "c", "acl"]);
    assert!(
        folder
            .refused(&["nf", "pack", "acl", "-o", "acl.oci"])
            .contains("has no program 'acl' yet")
    );
    let make = Command::new("make").arg("-s").current_dir(folder.0.join("acl")).status();
    assert!(make.expect("make").success());
    let packed = folder.ok(&["nf", "pack", "acl", "-o", "acl.oci"]);
    assert!(packed.contains("/usr/bin/acl") && packed.contains("libc.so"), "{packed}");
    assert!(folder.refused(&["nf", "pack", "acl", "-o", "acl.oci"]).contains("is there already"));
    let name = format!("p{}.yaml", std::process::id());
    let manifest = format!(
        "kind: HostChain\nnfs:\n  - {{name: acl, image: acl.oci, writes: none}}\nchain: acl\n\
         io: {{in: {}, out: ./out.pcap}}\nschedule: {{policy: other}}\n",
        example("lan.pcap.gz")
    );
    folder.write(&name, &manifest);
    folder.ok(&["host", "up", &name]);
    folder.ok(&["nf", "run", "acl", "--pcap", &example("lan.pcap.gz"), "-w", "alone.pcap"]);
    let bytes = |name: &str| std::fs::read(folder.0.join(name)).unwrap();
    assert!(bytes("out.pcap") == bytes("alone.pcap"));
    folder.write(&name, &manifest.replace("acl.oci", "none.oci"));
    let why = folder.refused(&["host", "up", &name]);
    assert!(why.contains("there is no image") && why.contains("^"), "{why}");
}

/// A user without root's rights runs an image by podman, and no other runtime.
#[test]
fn a_user_runs_an_image_by_podman() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = Folder::new("user");
    let is_root = std::fs::metadata("/proc/self")
        .is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0);
    folder.ok(&["nf", "init", "--lang", "c", "acl"]);
    let make = Command::new("make").arg("-s").current_dir(folder.0.join("acl")).status();
    assert!(make.expect("make").success());
    folder.ok(&["nf", "pack", "acl", "-o", "acl.oci"]);
    folder.ok(&["nf", "run", "acl", "--pcap", &example("lan.pcap.gz"), "-w", "alone.pcap"]);
    // What a user can reach, and may write to.
    std::fs::copy(CATENA, folder.0.join("catena")).unwrap();
    std::fs::copy(example("lan.pcap.gz"), folder.0.join("lan.pcap.gz")).unwrap();
    const USER: u32 = 54_321;
    let own = folder.0.join("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::set_permissions(&folder.0, PermissionsExt::from_mode(0o755)).unwrap();
    if is_root {
        chown(&own, Some(USER), Some(USER)).unwrap();
    }
    let name = format!("u{}.yaml", std::process::id());
    let up = |runtime: &str| {
        let manifest = format!(
            "kind: HostChain\nruntime: {runtime}\nnfs:\n  - {{name: acl, image: acl.oci}}\nchain: acl\n\
             io: {{in: lan.pcap.gz, out: own/out.pcap}}\nschedule: {{policy: other}}\n"
        );
        folder.write(&name, &manifest);
        let mut command = Command::new("setpriv");
        if is_root {
            let [user, group] = ["--reuid", "--regid"].map(|of| format!("{of}={USER}"));
            command.args([&user, &group]).arg("--clear-groups");
        }
        command.arg(folder.0.join("catena")).args(["host", "up", &name]).current_dir(&folder.0);
        command.env("XDG_RUNTIME_DIR", &own).env("HOME", &own).output().unwrap()
    };
    let output = up("podman");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let bytes = |name: &str| std::fs::read(folder.0.join(name)).unwrap();
    assert!(bytes("own/out.pcap") == bytes("alone.pcap"));
    // Nothing of it is left: no files, and no process that has the folder in its environment.
    let left = std::fs::read_dir(own.join("catena/host")).into_iter().flatten().count();
    assert_eq!(left, 0);
    let own_text = own.display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|of| of.path());
    let is_own = |process: &PathBuf| {
        let variables = std::fs::read(process.join("environ")).unwrap_or_default();
        text(&variables).contains(&own_text)
    };
    assert_eq!(processes.filter(is_own).collect::<Vec<_>>(), Vec::<PathBuf>::new());
    for runtime in ["runc", "crun"] {
        let why = text(&up(runtime).stderr);
        assert!(
            why.contains("are started by root here") && why.contains("runtime: podman"),
            "{why}"
        );
    }
}

#[test]
fn a_chain_in_the_background_is_watched_replaced_and_taken_down() {
    let folder = Folder::new("background");
    let name = format!("b{}", std::process::id());
    let file = format!("{name}.yaml");
    folder.write(
        &file,
        "kind: HostChain\nnfs:\n  - {name: seen, click: Counter}\n  - {name: ttl, click: Counter}\nchain: seen -> ttl\n\
         io: {in: 'gen:count=0', out: /dev/null}\nschedule: {policy: other}\n",
    );
    assert!(folder.refused(&["host", "down", &name]).contains("no chain"));
    assert!(folder.refused(&["host", "stats", &name]).contains("no chain"));
    folder.ok(&["host", "up", &file, "--detach"]);
    let status = || -> serde_json::Value {
        serde_json::from_str(&folder.ok(&["host", "stats", &name, "--json"])).unwrap()
    };
    let before = status();
    assert!(folder.refused(&["host", "up", &file]).contains("runs already"));
    assert!(folder.ok(&["host", "ps"]).contains(&name));
    let number = |status: &serde_json::Value, key: &str| status[key].as_u64().unwrap();
    folder.ok(&["host", "restart", &name]);
    while number(&status(), "generation") == number(&before, "generation") {}
    let nf = number(&status()["nfs"][0], "process");
    // Its host is killed: what is left goes with the next command.
    let host = rustix::process::Pid::from_raw(number(&before, "process") as i32).unwrap();
    rustix::process::kill_process(host, rustix::process::Signal::KILL).unwrap();
    while Path::new(&format!("/proc/{host}/fd/0")).exists() {}
    let said = folder.ok(&["host", "down", &name]);
    assert!(said.contains("taken down") || said.contains("has ended"), "{said}");
    assert!(!Path::new(&format!("/proc/{nf}/fd/0")).exists());
    assert!(folder.refused(&["host", "down", &name]).contains("no chain"));
    // What happened is in its log, also when it has ended; that of the run before is not.
    let logged = || folder.ok(&["host", "logs", &name]);
    assert!(logged().contains("2 NFs started") && logged().contains("the chain is replaced"));
    folder.ok(&["host", "up", &file, "--detach"]);
    assert!(!logged().contains("the chain is replaced"));
    folder.ok(&["host", "down", &name]);
    assert!(logged().contains("it has ended"), "{}", logged());
    assert!(folder.refused(&["host", "down", &name]).contains("no chain"));
    assert!(!folder.ok(&["host", "ps"]).contains(&name));
    let base = match rustix::process::geteuid().is_root() {
        true => PathBuf::from("/run/catena/host"),
        false => folder.0.join("catena/host"),
    };
    std::fs::remove_file(base.join(format!("{name}.log"))).unwrap();
}

#[test]
fn the_doctor_looks_at_this_host() {
    let folder = Folder::new("doctor");
    let shown = folder.ok(&["host", "doctor"]);
    assert!(shown.contains("FIFO scheduling") && shown.contains("cgroups"), "{shown}");
    let all: serde_json::Value =
        serde_json::from_str(&folder.ok(&["host", "doctor", "--json"])).unwrap();
    assert!(all.as_array().unwrap().iter().all(|of| of["good"] == true || of["mend"].is_string()));
}
