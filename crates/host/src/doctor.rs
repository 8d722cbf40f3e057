//! What this host allows, and the mend for what it does not.

use std::path::Path;

use crate::{cgroup, container, scheduler};

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// Whether it is as one would have it.
    pub is_good: bool,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub mend: Option<String>,
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

fn good(what: &'static str, found: impl Into<String>) -> Finding {
    Finding { what, is_good: true, found: found.into(), mend: None }
}

fn bad(what: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding { what, is_good: false, found: found.into(), mend: Some(mend.into()) }
}

/// Looks at everything.
pub fn look() -> Vec<Finding> {
    vec![
        user(),
        fifo(),
        slices(),
        cgroups(),
        cores(),
        huge_pages(),
        memory(),
        runtime(),
        sched_ext(),
    ]
}

fn user() -> Finding {
    match rustix::process::geteuid().is_root() {
        true => good("user", "root"),
        false => bad(
            "user",
            "not root: NFs run with what you may do, and interfaces cannot be opened",
            "sudo, or only `catena nf run` with captures",
        ),
    }
}

fn fifo() -> Finding {
    let what = "FIFO scheduling";
    let Err(why) = scheduler::may_be_fifo() else {
        return good(what, "allowed: `policy: cooperative` hands on by yield");
    };
    let found =
        format!("refused ({why}): `policy: cooperative` takes SCHED_OTHER and hands on by baton");
    let mend = match cgroup::own("cpu") {
        Some((group, false)) => {
            let at = group.join("cpu.rt_runtime_us").display().to_string();
            match read(&at).as_deref() {
                Some("0") => format!("echo 500000 > {at}, and the same in the groups above it first"),
                _ => "run it with CAP_SYS_NICE".into(),
            }
        }
        Some((_, true)) => "in cgroup version 2 a kernel with CONFIG_RT_GROUP_SCHED refuses it outside of the root group: \
                            use the root group, or a kernel without it; else CAP_SYS_NICE is missing"
            .into(),
        None => "run it with CAP_SYS_NICE".to_string(),
    };
    bad(what, found, mend)
}

fn slices() -> Finding {
    let version = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match number >= (6, 12) {
        true => good(
            "slices",
            format!("Linux {version}: `slice` of other and batch is kept, 0.1 to 100 ms"),
        ),
        false => bad(
            "slices",
            format!("Linux {version} keeps no `slice` of other and batch"),
            "Linux 6.12 or later",
        ),
    }
}

fn cgroups() -> Finding {
    let is_there = |path: &str| Path::new(path).exists();
    match (is_there("/sys/fs/cgroup/cgroup.controllers"), is_there("/sys/fs/cgroup/cpu")) {
        (true, _) => good("cgroups", "version 2"),
        (false, true) if is_there("/sys/fs/cgroup/unified") => {
            good("cgroups", "version 1, with a version 2 tree beside it (hybrid)")
        }
        (false, true) => good("cgroups", "version 1"),
        (false, false) => bad("cgroups", "none", "mount -t cgroup2 none /sys/fs/cgroup"),
    }
}

fn cores() -> Finding {
    let all = scheduler::cores().len();
    match read("/sys/devices/system/cpu/isolated").filter(|text| !text.is_empty()) {
        Some(isolated) => good("cores", format!("{all} to use; isolated: {isolated}")),
        None => bad(
            "cores",
            format!(
                "{all} to use, none isolated: other tasks take up to 50 ms of each second from an NF core"
            ),
            "boot with `isolcpus=` for the cores of NFs, or keep other tasks off them",
        ),
    }
}

fn huge_pages() -> Finding {
    match read("/proc/sys/vm/nr_hugepages").as_deref() {
        Some("0") | None => bad(
            "huge pages",
            "none: packet memory has small pages",
            "echo 64 > /proc/sys/vm/nr_hugepages",
        ),
        Some(count) => good("huge pages", format!("{count}; packet memory does not use them yet")),
    }
}

fn memory() -> Finding {
    let limits = read("/proc/self/limits").unwrap_or_default();
    let line =
        limits.lines().find(|line| line.starts_with("Max locked memory")).unwrap_or_default();
    let limit = line.split_whitespace().nth(3).unwrap_or("unknown");
    match limit.parse::<u64>() {
        Ok(bytes) if bytes < 4 << 20 => bad(
            "locked memory",
            format!("{bytes} bytes: packet memory is populated, and may be swapped out"),
            "ulimit -l unlimited",
        ),
        _ => good("locked memory", limit),
    }
}

fn runtime() -> Finding {
    let all = container::all().into_iter().filter(|runtime| runtime.takes_functions());
    let here: Vec<String> = all.filter_map(|runtime| runtime.look().ok()).collect();
    match here.is_empty() {
        false => good("container runtimes", format!("{}: `image:` can be run", here.join(", "))),
        true => bad("container runtimes", "none: `image:` cannot be run", "apt-get install runc"),
    }
}

fn sched_ext() -> Finding {
    match Path::new("/sys/kernel/sched_ext").exists() {
        true => good("sched_ext", "there; not used yet"),
        false => good("sched_ext", "not in this kernel; not needed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bad_has_a_mend() {
        let all = look();
        assert!(all.len() >= 8);
        for finding in all {
            assert_eq!(finding.is_good, finding.mend.is_none(), "{finding:?}");
            assert!(!finding.found.is_empty());
        }
    }
}
