//! Dry runs of `catena netbench`, whose lines are run by a shell.

use std::process::Command;

use super::{Catena, Network};

/// What stands in the lines of a switch that no program but Catena can set up.
const OWN: &str = "# catena itself: ";

impl Catena {
    /// The switches that `catena netbench list` finds here.
    #[track_caller]
    pub fn netbench_switches(self) -> Vec<String> {
        let output = Command::new(self.0).args(["netbench", "list"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let rows = text.lines().skip(1).take_while(|line| !line.is_empty());
        let here = rows.filter_map(|row| {
            let mut words = row.split_whitespace();
            let name = words.next()?;
            (words.next() == Some("yes")).then(|| name.to_string())
        });
        let here: Vec<String> = here.collect();
        assert!(here.len() > 1, "{text}");
        here
    }

    /// What a dry run prints, which a shell must be able to read.
    #[track_caller]
    pub fn netbench_dry_run(self, network: &Network, arguments: &[&str]) -> String {
        let mut run = Command::new(self.0);
        run.args(["netbench", "run", "--dry-run", "--size", "64"]).args(arguments);
        let output = run.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}");
        let script = String::from_utf8(output.stdout).unwrap();
        let file = network.file("read", &script);
        let read = Command::new("sh").arg("-n").arg(file).output().unwrap();
        let told = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success(), "{arguments:?}: {told}{script}");
        script
    }

    /// Has a shell run what a dry run prints for a switch: what was sent is what came, and no namespace is left. Switches that Catena
    /// itself sets up in the kernel are left out.
    #[track_caller]
    pub fn netbench_by_hand(self, network: &Network, switch: &str, more: &[&str]) {
        let load = ["--throughput", "--rate", "1k", "--burst", "4", "--seconds", "0.5"];
        let script =
            self.netbench_dry_run(network, &[&load[..], &["--switch", switch], more].concat());
        if script.contains(OWN) {
            return;
        }
        // Other tests run the same lines beside this one.
        let name = format!("{}-", network.namespace("dry"));
        let folder = network.folder().join(switch).display().to_string();
        let script = script.replace("netbench-", &name).replace("/run/catena/by-hand", &folder);
        let file = network.file(switch, &script);
        let output = Command::new("sh").arg("-e").arg(file).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{switch}: {told}{text}{script}");
        for what in ["sent: 500 packets", "received: 500 packets"] {
            assert!(text.contains(what), "{switch}: {told}{text}{script}");
        }
        let left = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let left = left.filter(|of| of.file_name().to_string_lossy().starts_with(&name));
        assert_eq!(left.count(), 0, "{switch}: {told}{text}{script}");
    }
}
