//! Programs of others in the middle of a chain.

use rustix::process::{Pid, Signal, kill_process};

use crate::CATENA;
use lab::live::{Lab, possible, until};

const BOUND: [&str; 4] = ["--in", "left=eth0", "--in", "right=eth1"];

/// The kernel's router between two parts of a chain, each of which has annotations to keep.
fn router(more: &str) -> String {
    format!(
        "require(nf);
         box :: ThirdParty(PROGRAM /bin/sleep infinity, FORWARD true, ETH0 10.1.0.1/24, ETH1 10.2.0.1/24,
           KEEPS ip.src ip.dst l4{more});
         from_left :: FromDevice(left) -> Paint(7) -> [0] box [0] -> sort :: PaintSwitch;
         sort[7] -> seven :: Counter -> right :: ToDevice(right);
         sort[0] -> right; sort[1] -> right; sort[2] -> right; sort[3] -> right; sort[4] -> right;
         sort[5] -> right; sort[6] -> right;
         FromDevice(right) -> [1] box [1] -> ToDevice(left);"
    )
}

/// The chains of programs that one process has started, as folders of the host service.
fn folders(process: u32) -> Vec<String> {
    let begin = format!("run-{process}-");
    let all = std::fs::read_dir("/run/catena/host").into_iter().flatten().flatten();
    let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(&begin)).collect();
    names.sort();
    names
}

/// The processes of programs that one run has started.
fn programs(process: u32) -> Vec<u32> {
    let listed = |folder: &String| {
        let told =
            std::process::Command::new(CATENA.0).args(["host", "stats", folder, "--json"]).output();
        let status: serde_json::Value = serde_json::from_slice(&told.unwrap().stdout).unwrap();
        status["nfs"][0]["process"].as_u64().unwrap() as u32
    };
    folders(process).iter().map(listed).collect()
}

/// Whether a process runs; one that nobody waits for stays as a zombie.
fn is_alive(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

fn interfaces(lab: &Lab) -> String {
    lab.ip("middle", &["-o", "link"])
}

#[test]
fn a_program_routes_between_two_parts_of_a_chain_and_nothing_is_left_of_it() {
    if !possible() {
        return;
    }
    for workers in ["1", "2"] {
        let lab = Lab::new(CATENA, 1500);
        let read = ["-h", "seven.count", "-h", "box/kept.unknown", "--workers", workers];
        let running = lab.run(&router(""), &[&BOUND[..], &read].concat());
        let process = running.id();
        lab.ping("left", &["10.2.0.2"]);
        lab.exchange("10.2.0.2", 1 << 20);
        let of = programs(process);
        assert!(matches!(of[..], [one] if is_alive(one)), "{of:?}");
        let printed = running.stop();
        let value = |handler: &str| -> u64 {
            let (_, behind) = printed.split_once(&format!("{handler}:\n")).expect(&printed);
            behind.lines().next().unwrap().parse().unwrap()
        };
        // All of it but ARP, which the program answers and asks itself.
        assert!(value("seven.count") > 20, "{printed}");
        assert_eq!(value("box/kept.unknown"), 0, "{printed}");
        assert_eq!(folders(process), Vec::<String>::new());
        assert!(!of.into_iter().any(is_alive));
        until("its interfaces are gone", || !interfaces(&lab).contains(": ct"));
    }
}

#[test]
fn a_chain_that_replaces_another_goes_on_with_the_same_program() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let socket = lab.file("ctl", "").with_extension("sock");
    let control = ["--control", socket.to_str().unwrap()];
    let running = lab.run(&router(""), &[&BOUND[..], &control].concat());
    let process = running.id();
    let first = programs(process);
    let swap = |name: &str, chain: &str| {
        let file = lab.file(name, chain);
        CATENA.ctl(&socket, &["swap", file.to_str().unwrap()])
    };
    swap("same", &router("").replace("seven :: Counter", "seven :: Counter -> Null"));
    assert_eq!(programs(process), first);
    lab.exchange("10.2.0.2", 100_000);
    // Another one takes its place, and only then the first one ends.
    let told = swap("other", &router(", MEMORY 100000000"));
    assert!(!told.contains("any more"), "{told}");
    until("the first one has ended", || folders(process).len() == 1);
    let second = programs(process);
    assert_ne!(second, first);
    assert!(!is_alive(first[0]));
    lab.exchange("10.2.0.2", 100_000);
    // Nothing of the first one is left in the run, either.
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let name = |task: std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).unwrap_or_default()
    };
    let names: Vec<String> = tasks.map(name).filter(|name| name.trim() == "box").collect();
    assert_eq!(names.len(), 1, "{names:?}");
    // A chain that cannot be has no program left behind.
    let file = lab.file("bad", &router(", CORE 0").replace("ToDevice(left)", "ToDevice(nowhere)"));
    CATENA.refused(&socket, &["swap", file.to_str().unwrap()]);
    until("what was started for it has ended", || folders(process).len() == 1);
    assert_eq!(programs(process), second);
    swap("none", "FromDevice(left) -> ToDevice(right); FromDevice(right) -> ToDevice(left);");
    until("the last one has ended", || folders(process).is_empty());
    assert!(!is_alive(second[0]));
    running.stop();
}

#[test]
fn a_program_that_ends_is_started_again_in_its_place() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let mut running = lab.run(&router(""), &BOUND);
    let process = running.id();
    let [first] = programs(process)[..] else { panic!("one program") };
    kill_process(Pid::from_raw(first as i32).unwrap(), Signal::KILL).unwrap();
    running.wait_for("box/program: the NF 'box' ended: ");
    until("another one runs", || {
        programs(process).iter().any(|now| *now != first && is_alive(*now))
    });
    lab.exchange("10.2.0.2", 100_000);
    running.stop();
}

#[test]
fn what_a_crash_left_is_taken_down_by_the_next_run() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let running = lab.run(&router(""), &BOUND);
    let process = running.id();
    let of = programs(process);
    running.kill();
    assert_eq!(folders(process).len(), 1);
    let mut running = lab.run(&router(""), &BOUND);
    running.wait_for("what a crash left of 'run-");
    assert_eq!(folders(process), Vec::<String>::new());
    assert!(!of.into_iter().any(is_alive));
    lab.ping("left", &["10.2.0.2"]);
    running.stop();
}

/// The processes that were started with these words.
fn with_words(words: &[&str]) -> Vec<u32> {
    let line: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_one = |process: &u32| {
        std::fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|of| of == line)
    };
    numbers.filter(is_one).collect()
}

#[test]
fn all_that_a_program_started_ends_with_it_and_before_it_is_started_again() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    // What it starts forgets where it comes from, and does not end when it is asked to.
    let words = ["sleep", "30317.25"];
    let script = format!(
        "#!/bin/sh\nenv -i setsid {} &\ntrap '' TERM\nexec sleep infinity\n",
        words.join(" ")
    );
    let program = lab.file("forks", &script);
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let chain = format!(
        "require(nf); FromDevice(left) -> ThirdParty(PROGRAM {}) -> ToDevice(right);",
        program.display()
    );
    let running = lab.run(&chain, &["--in", "left=eth0", "--out", "right=eth1"]);
    until("what it starts runs", || with_words(&words).len() == 1);
    let [first] = with_words(&words)[..] else { panic!("one") };
    let [folder] = &folders(running.id())[..] else { panic!("one") };
    let host = |what: &str| {
        let told =
            std::process::Command::new(CATENA.0).args(["host", what, folder]).output().unwrap();
        (told.status.success(), String::from_utf8_lossy(&told.stderr).into_owned())
    };
    let (is_down, told) = host("down");
    assert!(!is_down && told.contains("is a program of a chain that `catena run` runs"), "{told}");
    assert!(host("restart").0);
    until("it runs again", || matches!(with_words(&words)[..], [one] if one != first));
    running.stop();
    assert_eq!(with_words(&words), Vec::<u32>::new());
    assert_eq!(folders(first), Vec::<String>::new());
}

#[test]
fn an_nf_of_the_runtime_stands_between_elements() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let made = std::process::Command::new(CATENA.0)
        .current_dir(lab.folder())
        .args(["nf", "init", "--lang", "c", "acl"])
        .output();
    assert!(made.unwrap().status.success());
    assert!(
        std::process::Command::new("make")
            .arg("-C")
            .arg(lab.folder().join("acl"))
            .output()
            .unwrap()
            .status
            .success()
    );
    let chain = "require(nf);
        FromDevice(left) -> Paint(5)
          -> acl :: ThirdParty(PROGRAM acl/acl, API nf, CONFIG \"deny 10.1.0.2\", KEEPS ip.src ip.dst)
          -> painted :: CheckPaint(5) -> ToDevice(right);
        painted[1] -> ToDevice(right);
        FromDevice(right) -> ToDevice(left);";
    let read = ["-h", "acl/kept.unknown", "--io", "af-packet"];
    let mut running = lab.run(chain, &[&BOUND[..], &read].concat());
    running.wait_for_lines(": af-packet, mtu 1500", 4);
    lab.exchange("10.9.0.3", 1 << 20);
    let denied = lab.try_on(
        "left",
        "ping",
        &["-n", "-c", "3", "-i", "0.01", "-W", "1", "-I", "10.1.0.2", "10.9.0.3"],
    );
    assert!(!denied.status.success());
    let of = folders(running.id());
    let told = std::process::Command::new(CATENA.0)
        .args(["host", "stats", &of[0]])
        .output()
        .unwrap()
        .stdout;
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(told.contains("denied 3"), "{told}");
    let printed = running.stop();
    assert!(printed.contains("acl/kept.unknown:\n0\n"), "{printed}");
    until("its interfaces are gone", || !interfaces(&lab).contains(": ct"));
}

#[test]
fn a_program_that_cannot_run_is_refused_with_the_reason() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let chain = |keywords: &str| {
        format!("require(nf); FromDevice(left) -> ThirdParty({keywords}) -> ToDevice(right);")
    };
    let bound = ["--in", "left=eth0", "--out", "right=eth1"];
    let [plain, user, seccomp]: [&[&str]; 3] = [&[], &["--user", "nobody"], &["--seccomp"]];
    for (keywords, arguments, why) in [
        ("PROGRAM ./none", plain, "there is no program"),
        ("PROGRAM ./middle.click", plain, "is no program that may be run"),
        ("PROGRAM /bin/true", plain, "ended 3 times in a row as soon as it was started"),
        ("IMAGE none.oci", plain, "none.oci"),
        ("IMAGE none.oci, RUNTIME dockr", plain, "dockr"),
        ("PROGRAM /bin/sleep 9, CORE 4000", plain, "there is no core 4000 here"),
        ("PROGRAM /bin/sleep 9, API nf", plain, "is it made with the NF runtime?"),
        ("PROGRAM /bin/sleep 9", user, "with --user nothing is"),
        ("PROGRAM /bin/sleep 9", seccomp, "with --seccomp nothing is"),
    ] {
        let told = lab.refusal(&chain(keywords), &[&bound[..], arguments].concat());
        assert!(told.contains(why), "{keywords}: {told}");
    }
    until("its interfaces are gone", || !interfaces(&lab).contains(": ct"));
}
