//! `runc` and `crun`: runtimes that take a bundle as the OCI specifies it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Place, Runtime, version_of};
use crate::process::MARK;
use crate::{Failure, launch};

/// A runtime.
pub(super) struct Oci {
    program: &'static str,
    summary: &'static str,
}

/// What applications may do: open raw sockets and sockets for AF_XDP, lock memory for these, choose their CPU.
const CAPABILITIES: [&str; 8] = [
    "CAP_NET_RAW",
    "CAP_NET_ADMIN",
    "CAP_NET_BIND_SERVICE",
    "CAP_IPC_LOCK",
    "CAP_SYS_NICE",
    "CAP_SYS_ADMIN",
    "CAP_BPF",
    "CAP_PERFMON",
];

impl Oci {
    pub(super) const RUNC: Self = Self { program: "runc", summary: "a container by runc" };
    pub(super) const CRUN: Self = Self { program: "crun", summary: "a container by crun" };

    fn tool(&self, at: &Place<'_>) -> Command {
        let mut command = at.journal.marked(Command::new(self.program));
        command.arg("--root").arg(launch::state(at.journal, self.program));
        command
    }
}

/// The container's configuration, as the OCI runtime specification has it.
fn configuration(at: &Place<'_>, arguments: &[String]) -> Result<Value, Failure> {
    let root = at.root()?;
    let words: Vec<&String> = [&root.program].into_iter().chain(arguments).collect();
    let mut environment = root.environment.clone();
    environment.push(format!("{MARK}={}", at.journal.mark()));
    let network = json!({ "type": "network", "path": at.namespace.file() });
    let mut namespaces =
        ["pid", "ipc", "uts", "mount"].map(|kind| json!({ "type": kind })).to_vec();
    namespaces.push(network);
    let mount = |to: &str, kind: &str, options: &[&str]| json!({ "destination": to, "type": kind, "source": kind, "options": options });
    let has = CAPABILITIES;
    Ok(json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 0, "gid": 0 },
            "args": words,
            "env": environment,
            "cwd": "/",
            "capabilities": { "bounding": has, "effective": has, "permitted": has },
            "noNewPrivileges": true,
        },
        "root": { "path": root.path, "readonly": true },
        "hostname": "catena",
        "mounts": [
            mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
            mount("/dev", "tmpfs", &["nosuid", "noexec", "mode=755", "size=64k"]),
            mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
            mount("/tmp", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777", "size=16m"]),
            mount("/run", "tmpfs", &["nosuid", "noexec", "nodev", "mode=755", "size=16m"]),
        ],
        "linux": {
            "cgroupsPath": format!("/{}", at.id()),
            "namespaces": namespaces,
            "resources": { "devices": [{ "allow": false, "access": "rwm" }] },
        },
    }))
}

impl Runtime for Oci {
    fn name(&self) -> &'static str {
        self.program
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn is_tested(&self) -> bool {
        self.program == "runc"
    }

    fn look(&self) -> Result<String, String> {
        version_of(self.program, self.program)
    }

    fn command(&self, at: &Place<'_>, arguments: &[String]) -> Result<Command, Failure> {
        let bundle: PathBuf = at.bundle();
        std::fs::create_dir_all(&bundle).map_err(Failure::at(&bundle))?;
        let path = bundle.join("config.json");
        let text = configuration(at, arguments)?.to_string();
        std::fs::write(&path, text).map_err(Failure::at(&path))?;
        let mut command = self.tool(at);
        command.args(["run", "--bundle"]).arg(&bundle).arg(at.id());
        Ok(command)
    }

    fn end(&self, at: &Place<'_>) {
        let mut command = self.tool(at);
        command.args(["delete", "--force", &at.id()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = command.status();
    }
}
