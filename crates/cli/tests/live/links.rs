//! `catena host up` with NFs between interfaces: programs as they are, and elements.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::live::network::run;
use lab::live::{Network, Process, possible, until};
use rustix::process::Signal;

use crate::CATENA;

/// A client and a server, and between them a gate, on which chains run.
fn network() -> Network {
    let network = Network::new(&["client", "gate", "server"]);
    network.link([("client", "eth0"), ("gate", "west")], "02:00:00:00:01:00", &[]);
    network.link([("server", "eth0"), ("gate", "east")], "02:00:00:00:02:00", &[]);
    network.ip("client", &["address", "add", "10.1.0.9/24", "dev", "eth0"]);
    network.ip("client", &["route", "add", "default", "via", "10.1.0.1"]);
    network.ip("server", &["address", "add", "10.2.0.9/24", "dev", "eth0"]);
    network
}

fn program(folder: &Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The kernel's NAT, whose rules a script makes.
const NAT: &str = "#!/bin/sh\nset -e\nnft -f - <<'EOF'\nflush ruleset\ntable ip nat {\n  \
    chain post { type nat hook postrouting priority srcnat; oifname \"eth1\" masquerade; }\n}\nEOF\n\
    echo has rules\nexec sleep infinity\n";

/// Elements that look at both directions, and drop UDP to port 9.
const FIREWALL: &str = "input[0] -> c :: Classifier(12/0800 23/11 36/0009, -); c[0] -> Discard; c[1] -> [0]output; input[1] -> [1]output;";

fn manifest(network: &Network, name: &str, fabric: &str, nfs: &str, chain: &str) -> PathBuf {
    let folder = network.folder();
    program(folder, "nat.sh", NAT);
    std::fs::write(folder.join("fw.click"), FIREWALL).unwrap();
    let path = folder.join(format!("c{}{name}.yaml", std::process::id()));
    let text = format!(
        "kind: HostChain\nnfs:\n{nfs}chain: {chain}\nfabric: {fabric}\nio: {{in: west, out: east, driver: af-packet}}\n\
         schedule: {{core: 0}}\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

const BOTH: &str = "  - {name: fw, click: fw.click}\n  - {name: nat, program: nat.sh, api: veth, \
    addresses: {eth0: 10.1.0.1/24, eth1: 10.2.0.1/24}, forward: true, privileges: [net-admin]}\n";

fn host(network: &Network, words: &[&str]) -> Command {
    // Without the other mounts that `ip netns exec` makes: containers look for control groups.
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{}", network.namespace("gate")));
    command.arg(CATENA.0).arg("host").args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a chain, and waits until the program in it has said something.
#[track_caller]
fn up(network: &Network, manifest: &Path, says: &str) -> Process {
    let path = manifest.to_str().unwrap();
    let mut chain = Process::start(&mut host(network, &["up", path]));
    chain.wait_for("started");
    until(says, || {
        let logs = host(network, &["logs", path, "nat"]).output().unwrap();
        String::from_utf8_lossy(&logs.stdout).contains(says)
    });
    chain
}

/// Sends bytes from the client to the server and back; who the server saw, and what came back.
fn talk(network: &Network, bytes: usize) -> (String, usize) {
    let (told, listens) = std::sync::mpsc::channel();
    let server = network.at("server", move || {
        let listener = TcpListener::bind("10.2.0.9:5000").unwrap();
        told.send(()).unwrap();
        let (mut stream, peer) = listener.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
        peer.ip().to_string()
    });
    listens.recv().unwrap();
    let client = network.at("client", move || {
        let mut stream = TcpStream::connect("10.2.0.9:5000").unwrap();
        let mut reading = stream.try_clone().unwrap();
        let back = std::thread::spawn(move || {
            let mut all = Vec::new();
            reading.read_to_end(&mut all).unwrap();
            all.iter().filter(|byte| **byte == 7).count()
        });
        stream.write_all(&vec![7; bytes]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        back.join().unwrap()
    });
    (server.join().unwrap(), client.join().unwrap())
}

/// Whether the interfaces of the gate are where they were, and no namespace of a chain is left.
#[track_caller]
fn is_as_before(network: &Network, manifest: &Path) {
    for interface in ["west", "east"] {
        assert!(network.ip("gate", &["link", "show", "dev", interface]).contains("UP"));
    }
    let name = manifest.file_stem().unwrap().to_string_lossy().into_owned();
    let all = std::fs::read_dir("/run/netns").unwrap().flatten();
    let left: Vec<_> = all
        .map(|of| of.file_name().to_string_lossy().into_owned())
        .filter(|of| of.contains(&name))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn programs_and_elements_are_a_chain_over_every_fabric() {
    if !possible() {
        return;
    }
    let network = network();
    for fabric in ["b2b", "bridge", "ovs", "catena-af-packet"] {
        let path = manifest(&network, fabric, fabric, BOTH, "fw -> nat");
        let chain = up(&network, &path, "has rules");
        assert_eq!(talk(&network, 1 << 20), ("10.2.0.1".to_string(), 1 << 20), "{fabric}");
        // What the elements drop does not come.
        let (told, listens) = std::sync::mpsc::channel();
        let server = network.at("server", move || {
            let sockets = [9, 10].map(|port| UdpSocket::bind(("10.2.0.9", port)).unwrap());
            told.send(()).unwrap();
            let mut bytes = [0; 8];
            let length = sockets[1].recv(&mut bytes).unwrap();
            sockets[0].set_nonblocking(true).unwrap();
            assert!(sockets[0].recv(&mut [0; 8]).is_err());
            length
        });
        listens.recv().unwrap();
        let send = || {
            let socket = UdpSocket::bind("10.1.0.9:0").unwrap();
            socket.send_to(b"nine", "10.2.0.9:9").unwrap();
            socket.send_to(b"ten", "10.2.0.9:10").unwrap();
        };
        network.at("client", send).join().unwrap();
        assert_eq!(server.join().unwrap(), 3, "{fabric}");
        let shown = run(&mut host(&network, &["stats", path.to_str().unwrap(), "--json"]));
        let status: serde_json::Value = serde_json::from_str(&shown).unwrap();
        // Segments that cards join are one frame for the kernel, and many for elements.
        let frames = |of: &str| status["nfs"][1][of].as_u64().unwrap();
        assert!(frames("received") >= 4 && frames("passed") >= 4, "{fabric}: {status}");
        chain.interrupt();
        let (is_good, _, said) = chain.end();
        assert!(is_good, "{fabric}: {said}");
        is_as_before(&network, &path);
    }
}

#[test]
fn an_nf_that_ends_is_started_again_where_it_was() {
    if !possible() {
        return;
    }
    let network = network();
    let path = manifest(&network, "again", "b2b", BOTH, "fw -> nat");
    let mut chain = up(&network, &path, "has rules");
    let before = talk(&network, 1000);
    let number = |of: usize| {
        let shown = run(&mut host(&network, &["stats", path.to_str().unwrap(), "--json"]));
        let status: serde_json::Value = serde_json::from_str(&shown).unwrap();
        status["nfs"][of]["process"].as_i64().unwrap() as i32
    };
    for nf in [0, 1] {
        let first = number(nf);
        let process = rustix::process::Pid::from_raw(first).unwrap();
        rustix::process::kill_process(process, Signal::KILL).unwrap();
        chain.wait_for_lines("is started again", nf + 1);
        until("another process", || ![0, first].contains(&number(nf)));
    }
    assert_eq!(talk(&network, 1000), before);
    chain.interrupt();
    assert!(chain.end().0);
}

/// The kernel forwards in a container whose program only waits.
#[test]
fn an_image_is_a_program_like_any_other() {
    if !possible() {
        return;
    }
    let network = network();
    let image = network.folder().join("wait.oci");
    let mut pack = Command::new(CATENA.0);
    pack.args(["nf", "pack", "--api", "veth", "/usr/bin/sleep", "-o"]).arg(&image);
    run(pack.args(["--", "infinity"]));
    network.ip("server", &["route", "add", "10.1.0.0/24", "via", "10.2.0.1"]);
    for runtime in ["runc", "crun", "podman"] {
        let nfs = format!(
            "  - {{name: fw, click: fw.click}}\n  - {{name: router, image: wait.oci, runtime: {runtime}, api: veth, \
             addresses: {{eth0: 10.1.0.1/24, eth1: 10.2.0.1/24}}, forward: true}}\n"
        );
        let path = manifest(&network, runtime, "bridge", &nfs, "fw -> router");
        let mut chain = Process::start(&mut host(&network, &["up", path.to_str().unwrap()]));
        chain.wait_for("started");
        assert_eq!(talk(&network, 1000), ("10.1.0.9".to_string(), 1000), "{runtime}");
        let mark = mark(&path);
        assert!(!marked(&mark).is_empty());
        chain.interrupt();
        assert!(chain.end().0);
        is_as_before(&network, &path);
        assert_eq!(marked(&mark), [""; 0], "{runtime}");
        // After a crash, its container is there until the chain is taken down.
        let mut chain = Process::start(&mut host(&network, &["up", path.to_str().unwrap()]));
        chain.wait_for("started");
        let mark = self::mark(&path);
        chain.kill();
        assert!(!marked(&mark).is_empty());
        run(&mut host(&network, &["down", path.to_str().unwrap()]));
        is_as_before(&network, &path);
        assert_eq!(marked(&mark), [""; 0], "{runtime}");
    }
}

/// The mark of the journal of a chain that runs.
#[track_caller]
fn mark(manifest: &Path) -> String {
    let name = manifest.file_stem().unwrap().to_string_lossy().into_owned();
    let journal = std::fs::read_to_string(format!("/run/catena/host/{name}/journal")).unwrap();
    journal.lines().find_map(|line| line.strip_prefix("mark ")).unwrap().to_string()
}

/// Processes, control groups, files and mounts that carry a mark.
fn marked(mark: &str) -> Vec<String> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
        all.map(|of| of.path()).collect()
    };
    let carries = |process: &PathBuf| {
        let variables = std::fs::read(process.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&variables).contains(mark)
    };
    let mut found: Vec<PathBuf> = below(Path::new("/proc")).into_iter().filter(carries).collect();
    let mut groups = below(Path::new("/sys/fs/cgroup"));
    groups.extend(["/sys/fs/cgroup", "/tmp"].map(PathBuf::from));
    let own = groups.iter().map(|of| of.join(format!("catena-{mark}")));
    let images = Path::new("/var/lib/catena/images").join(mark);
    found.extend(own.chain([images]).filter(|path| path.exists()));
    let mut found: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    found.extend(mounts.lines().filter(|line| line.contains(mark)).map(str::to_string));
    found
}

/// After a crash, interfaces that were taken are given back, and nothing else is left.
#[test]
fn what_a_crash_leaves_is_taken_down() {
    if !possible() {
        return;
    }
    let network = network();
    let path = manifest(&network, "crash", "bridge", BOTH, "fw -> nat");
    up(&network, &path, "has rules").kill();
    assert!(!network.try_on("gate", "ip", &["link", "show", "dev", "west"]).status.success());
    run(&mut host(&network, &["down", path.to_str().unwrap()]));
    is_as_before(&network, &path);
    // One that somebody uses is not taken.
    network.ip("gate", &["address", "add", "192.0.2.1/24", "dev", "east"]);
    let refused = host(&network, &["up", path.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("'east' has the address 192.0.2.1, which it would lose"), "{said}");
    is_as_before(&network, &path);
}

const ATTACK: &str = "#!/bin/sh\ntry() { if \"$@\" >/dev/null 2>&1; then echo \"allowed: $*\"; fi; }\n\
    try ip link set dev eth0 down\ntry ip address add 192.0.2.7/24 dev eth1\ntry unshare --net true\n\
    try unshare --user true\ntry mount -t tmpfs none /mnt\ntry nsenter --net=/proc/1/ns/net true\n\
    try ip netns exec GATE true\ntry chrt -f 1 true\ntry renice -n -5 $$\ntry taskset -p 1 $$\n\
    try cat /proc/$PPID/environ\ntry kill -0 $PPID\ntry nft list ruleset\ntry touch /etc/catena-was-here\n\
    ip -o link show | grep -q west && echo allowed: west\n[ $(id -u) -ge 1879048192 ] || echo allowed: user\n\
    sh -c 'echo a child' || echo refused: child\necho has tried\nexec sleep infinity\n";

#[test]
fn what_a_program_must_not_do_is_refused() {
    if !possible() {
        return;
    }
    let network = network();
    program(network.folder(), "attack.sh", &ATTACK.replace("GATE", &network.namespace("gate")));
    let nfs = "  - {name: nat, program: attack.sh, api: veth}\n";
    let path = manifest(&network, "attack", "b2b", nfs, "nat");
    let chain = up(&network, &path, "has tried");
    let logs = run(&mut host(&network, &["logs", path.to_str().unwrap(), "nat"]));
    assert_eq!(logs, "a child\nhas tried\n");
    chain.interrupt();
    assert!(chain.end().0);
}
