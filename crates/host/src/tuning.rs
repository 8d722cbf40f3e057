//! Settings of the host that make measurements repeatable: frequencies that stay, interrupts elsewhere, and huge pages. They are
//! put back, also after a crash.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Failure, Journal};

/// What was set, and what could not be, each with the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuned {
    /// Settings that were changed, or were right.
    pub set: Vec<String>,
    /// Those that could not be.
    pub not_set: Vec<String>,
    /// Whether there are as many huge pages as were asked for.
    #[serde(default)]
    pub has_huge_pages: bool,
}

/// Where frequencies are set.
const CPUS: &str = "/sys/devices/system/cpu";
/// Where interrupts are.
const IRQS: &str = "/proc/irq";

/// Turbo, by driver: the file, and what switches it off.
const TURBO: [(&str, &str); 2] = [("intel_pstate/no_turbo", "1"), ("cpufreq/boost", "0")];

/// CPUs that the kernel's command line keeps other tasks off.
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

/// How many huge pages there are.
pub(crate) const HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";

/// Sets what can be: some CPUs are measured on, and of these some are to have no interrupts; and so many megabytes are to be
/// free in huge pages.
///
/// # Errors
/// If the journal cannot be written.
pub fn tune(
    journal: &mut Journal,
    cpus: &[usize],
    quiet: &[usize],
    megabytes: u64,
) -> Result<Tuned, Failure> {
    let mut tuned = Tuned::default();
    if megabytes > 0 {
        tuned.huge_pages(journal, megabytes)?;
    }
    let governor = |cpu: &usize| PathBuf::from(format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor"));
    let governors: Vec<PathBuf> = cpus.iter().map(governor).filter(|path| path.exists()).collect();
    match governors.is_empty() {
        true => tuned.not_set.push("governor: this kernel does not choose frequencies".into()),
        false => tuned.all(journal, "governor: performance", &governors, "performance")?,
    }
    let turbo = TURBO.iter().map(|(file, off)| (Path::new(CPUS).join(file), *off));
    match turbo.into_iter().find(|(path, _)| path.exists()) {
        Some((path, off)) => tuned.all(journal, "turbo: off", &[path], off)?,
        None => tuned.not_set.push("turbo: this kernel has no switch for it".into()),
    }
    if !quiet.is_empty() {
        tuned.isolation(quiet, &std::fs::read_to_string(ISOLATED).unwrap_or_default());
    }
    let others: Vec<String> =
        cpus.iter().filter(|cpu| !quiet.contains(cpu)).map(usize::to_string).collect();
    if others.is_empty() || quiet.is_empty() {
        tuned.not_set.push("interrupts: there is no CPU that they could go to".into());
        return Ok(tuned);
    }
    let others = others.join(",");
    let mut moved = 0;
    let mut stay = 0;
    for path in interrupts() {
        match journal.set(&path, &others) {
            Ok(()) => moved += 1,
            // Some are of one CPU alone.
            Err(Failure::File(..)) => stay += 1,
            Err(why) => return Err(why),
        }
    }
    let plural = if others.contains(',') { "s" } else { "" };
    tuned.set.push(format!("interrupts: {moved} on CPU{plural} {others} alone"));
    if stay > 0 {
        tuned.not_set.push(format!("interrupts: {stay} cannot be moved"));
    }
    Ok(tuned)
}

/// The files that say which CPUs interrupts go to.
fn interrupts() -> Vec<PathBuf> {
    let all = std::fs::read_dir(IRQS).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = all
        .map(|entry| entry.path().join("smp_affinity_list"))
        .filter(|path| path.exists())
        .collect();
    all.sort();
    all
}

/// Huge pages that are there, and that nobody has; and the kilobytes of one.
fn pages() -> Option<(u64, u64, u64)> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let (all, free, reserved) =
        (of("HugePages_Total:")?, of("HugePages_Free:")?, of("HugePages_Rsvd:")?);
    Some((all, free.saturating_sub(reserved), of("Hugepagesize:")?))
}

/// Whether a list of CPUs, such as `1-3,7`, has one.
fn has(list: &str, cpu: usize) -> bool {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    list.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        number(first).zip(number(last)).is_some_and(|(first, last)| (first..=last).contains(&cpu))
    })
}

impl Tuned {
    /// Whether other tasks are kept off CPUs, by the kernel's list of those.
    fn isolation(&mut self, cpus: &[usize], isolated: &str) {
        let (kept, others): (Vec<usize>, Vec<usize>) =
            cpus.iter().partition(|cpu| has(isolated, **cpu));
        let list = |cpus: &[usize]| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let (kept, others) = (list(&kept), list(&others));
        if !kept.is_empty() {
            self.set.push(format!("isolation: no other tasks run on CPU {kept}"));
        }
        if !others.is_empty() {
            self.not_set.push(format!(
                "isolation: other tasks may run on CPU {others}; only the kernel's command line keeps them off \
                 (isolcpus={others})"
            ));
        }
    }

    /// So many megabytes in huge pages that nobody has.
    fn huge_pages(&mut self, journal: &mut Journal, megabytes: u64) -> Result<(), Failure> {
        let what = format!("huge pages: {megabytes} MB");
        let Some((all, free, size)) = pages() else {
            self.not_set.push(format!("{what}: this kernel has none"));
            return Ok(());
        };
        let needed = (megabytes * 1024).div_ceil(size.max(1));
        if free < needed {
            let wanted = (all + needed - free).to_string();
            match journal.set(Path::new(HUGE_PAGES), &wanted) {
                Ok(()) => {}
                Err(Failure::File(path, why)) => {
                    self.not_set.push(format!("{what}: {}: {why}", path.display()));
                    return Ok(());
                }
                Err(why) => return Err(why),
            }
        }
        // The kernel gives as many as it finds memory for.
        let free = pages().map_or(0, |(_, free, _)| free);
        self.has_huge_pages = free >= needed;
        match self.has_huge_pages {
            true => self.set.push(format!("{what} for DPDK")),
            false => self.not_set.push(format!(
                "{what}: the kernel has {} MB to give, so DPDK has pages of the usual size",
                free * size / 1024
            )),
        }
        Ok(())
    }

    /// The same into each of some files.
    fn all(
        &mut self,
        journal: &mut Journal,
        what: &str,
        files: &[PathBuf],
        value: &str,
    ) -> Result<(), Failure> {
        for file in files {
            match journal.set(file, value) {
                Ok(()) => {}
                Err(Failure::File(path, why)) => {
                    self.not_set.push(format!("{what}: {}: {why}", path.display()));
                    return Ok(());
                }
                Err(why) => return Err(why),
            }
        }
        self.set.push(what.into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolated_cpus_are_reported() {
        let tuned = |cpus: &[usize], isolated: &str| {
            let mut tuned = Tuned::default();
            tuned.isolation(cpus, isolated);
            [tuned.set, tuned.not_set]
        };
        let [set, not_set] = tuned(&[1, 3, 12], "1-3,7\n");
        assert_eq!(set, ["isolation: no other tasks run on CPU 1,3"]);
        assert!(not_set.len() == 1 && not_set[0].contains("isolcpus=12"), "{not_set:?}");
        assert_eq!(tuned(&[7], "1-3,7\n")[1], Vec::<String>::new());
        for nothing in ["", "\n", "none", "3-1"] {
            assert_eq!(tuned(&[1], nothing)[0], Vec::<String>::new(), "{nothing}");
        }
    }
}
