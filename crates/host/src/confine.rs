//! What an NF may ask the kernel for: one list, for processes of this host and for containers.
//!
//! Everything else is refused with EPERM, so also what a later kernel has.

use std::sync::atomic::{AtomicU64, Ordering};

use libc::c_long;
use rustix::process::Resource;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};
use serde_json::{Value, json};

use crate::Failure;

/// What an NF may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory of its own: packets are not counted.
    pub memory: u64,
    /// Its threads.
    pub threads: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: 512 << 20, threads: 1 }
    }
}

/// Descriptors of an NF at most.
pub(crate) const DESCRIPTORS: u64 = 256;

/// Descriptors at most of one that has interfaces, and so sockets.
pub(crate) const DESCRIPTORS_OF_PROGRAMS: u64 = 65_536;

macro_rules! calls {
    ($($name:ident)*) => { &[$((stringify!($name), libc::$name)),*] };
}

/// System calls by name and number.
type Calls = &'static [(&'static str, c_long)];

/// What programs in C, Rust, Go and Python need to start, to wait for their turn, to read files and to count time. No sockets are made,
/// no processes, namespaces or programs for the kernel; nobody is traced; no core, class or priority is changed.
const ALLOWED: Calls = calls! {
    SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_lseek SYS_sendmsg SYS_recvmsg SYS_sendto SYS_recvfrom
    SYS_getsockopt SYS_getsockname SYS_getpeername SYS_shutdown SYS_ppoll SYS_pselect6 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait
    SYS_eventfd2 SYS_pipe2 SYS_timerfd_create SYS_timerfd_settime SYS_timerfd_gettime SYS_signalfd4
    SYS_openat SYS_close SYS_close_range SYS_dup SYS_dup3 SYS_fcntl SYS_flock SYS_ioctl SYS_statx SYS_fstat SYS_newfstatat SYS_fstatfs
    SYS_statfs SYS_faccessat SYS_faccessat2 SYS_getcwd SYS_chdir SYS_getdents64 SYS_readlinkat SYS_ftruncate SYS_fsync SYS_fdatasync
    SYS_fallocate SYS_fadvise64 SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_umask SYS_fchmod
    SYS_brk SYS_mmap SYS_munmap SYS_mremap SYS_mprotect SYS_madvise SYS_mincore SYS_msync SYS_mlock SYS_mlock2 SYS_munlock SYS_membarrier
    SYS_execve SYS_exit SYS_exit_group SYS_futex SYS_set_robust_list SYS_get_robust_list SYS_set_tid_address SYS_rseq SYS_prctl
    SYS_gettid SYS_getpid SYS_getppid SYS_getpgid SYS_getsid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid
    SYS_getgroups SYS_capget SYS_sched_yield SYS_sched_getaffinity SYS_sched_getscheduler SYS_sched_getparam SYS_getcpu
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_rt_sigsuspend SYS_rt_sigpending SYS_rt_sigtimedwait SYS_sigaltstack
    SYS_kill SYS_tkill SYS_tgkill SYS_restart_syscall SYS_wait4 SYS_waitid
    SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday SYS_times SYS_getitimer SYS_setitimer
    SYS_timer_create SYS_timer_settime SYS_timer_gettime SYS_timer_delete
    SYS_getrandom SYS_getrusage SYS_prlimit64 SYS_sysinfo SYS_uname
};

/// The same under the names that they had before.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: Calls = calls! {
    SYS_open SYS_stat SYS_lstat SYS_access SYS_readlink SYS_poll SYS_select SYS_epoll_create SYS_epoll_wait SYS_eventfd SYS_pipe SYS_dup2
    SYS_mkdir SYS_rmdir SYS_unlink SYS_rename SYS_getdents SYS_getpgrp SYS_time SYS_alarm SYS_pause SYS_getrlimit SYS_arch_prctl
};
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: Calls = &[];

/// A thread that is made shares everything: it is no process, and in no namespace of its own.
const THREAD: u64 = libc::CLONE_THREAD as u64;
const THREAD_OR_APART: u64 = {
    let (mut all, mut at) = (THREAD, 0);
    while at < APART.len() {
        all |= APART[at] as u64;
        at += 1;
    }
    all
};

/// What no program may ask for that has interfaces, whatever its privileges: it traces nobody, reaches no other namespace, loads nothing
/// into the kernel, and takes no core, class or priority. What needs privileges that it does not have is refused by the kernel.
const REFUSED: Calls = calls! {
    SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_pidfd_getfd SYS_kcmp
    SYS_mount SYS_umount2 SYS_pivot_root SYS_move_mount SYS_open_tree SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_mount_setattr
    SYS_unshare SYS_setns SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register
    SYS_init_module SYS_finit_module SYS_delete_module SYS_kexec_load SYS_reboot SYS_swapon SYS_swapoff SYS_acct SYS_quotactl SYS_syslog
    SYS_sched_setaffinity SYS_sched_setscheduler SYS_sched_setattr SYS_sched_setparam SYS_setpriority SYS_ioprio_set
    SYS_keyctl SYS_add_key SYS_request_key SYS_open_by_handle_at SYS_name_to_handle_at SYS_settimeofday SYS_clock_settime
    SYS_clock_adjtime SYS_adjtimex SYS_personality
};

/// What has a process that is made be in namespaces of its own.
const APART: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Filters for a process that is started and has interfaces: what they refuse is named, and everything else goes.
pub(crate) fn filters_of_programs() -> Result<[BpfProgram; 2], BackendError> {
    let mut rules: std::collections::BTreeMap<c_long, Vec<SeccompRule>> =
        REFUSED.iter().map(|(_, number)| (*number, Vec::new())).collect();
    let mut apart = Vec::new();
    for flag in APART {
        let flag = flag as u64;
        let masked = SeccompCmpOp::MaskedEq(flag);
        apart.push(SeccompRule::new(vec![SeccompCondition::new(
            0,
            SeccompCmpArgLen::Qword,
            masked,
            flag,
        )?])?);
    }
    rules.insert(libc::SYS_clone, apart);
    let architecture = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture)?;
    Ok([without_clone3()?, filter.try_into()?])
}

/// Has C libraries that make threads take the call whose flags a filter can see.
fn without_clone3() -> Result<BpfProgram, BackendError> {
    let unknown = SeccompFilter::new(
        [(libc::SYS_clone3, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS as u32),
        std::env::consts::ARCH.try_into()?,
    )?;
    unknown.try_into()
}

/// Filters for a process that is started: each is applied, in this order.
pub(crate) fn filters(limits: Limits) -> Result<[BpfProgram; 2], BackendError> {
    let all = ALLOWED.iter().chain(ALLOWED_HERE);
    let mut rules: std::collections::BTreeMap<c_long, Vec<SeccompRule>> =
        all.map(|(_, number)| (*number, Vec::new())).collect();
    rules.insert(libc::SYS_clone3, Vec::new());
    if limits.threads > 1 {
        let masked = SeccompCmpOp::MaskedEq(THREAD_OR_APART);
        let flags = SeccompCondition::new(0, SeccompCmpArgLen::Qword, masked, THREAD)?;
        rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![flags])?]);
    }
    let architecture = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let allowed = SeccompFilter::new(rules, refused, SeccompAction::Allow, architecture)?;
    Ok([without_clone3()?, allowed.try_into()?])
}

/// Resource limits of a process: which, and how much.
pub(crate) fn limits(limits: Limits, descriptors: u64, has_own_user: bool) -> Vec<(Resource, u64)> {
    let mut all = vec![
        (Resource::Core, 0),
        (Resource::Nofile, descriptors),
        // What it may write to, and shares with nobody. Control groups count the rest.
        (Resource::Data, limits.memory),
    ];
    if has_own_user {
        all.push((Resource::Nproc, u64::from(limits.threads)));
    }
    all
}

/// Names as a container runtime has them.
fn names<'a>(calls: impl Iterator<Item = &'a (&'static str, c_long)>) -> Vec<&'static str> {
    calls.map(|(name, _)| name.trim_start_matches("SYS_")).collect()
}

const ARCHITECTURE: &str = match cfg!(target_arch = "aarch64") {
    true => "SCMP_ARCH_AARCH64",
    false => "SCMP_ARCH_X86_64",
};

/// The filters of programs with interfaces as a container runtime reads them.
pub(crate) fn oci_of_programs() -> Value {
    let refused = "SCMP_ACT_ERRNO";
    let mut calls = vec![
        json!({ "names": names(REFUSED.iter()), "action": refused, "errnoRet": libc::EPERM }),
        json!({ "names": ["clone3"], "action": refused, "errnoRet": libc::ENOSYS }),
    ];
    calls.extend(APART.map(|flag| {
        json!({
            "names": ["clone"],
            "action": refused,
            "errnoRet": libc::EPERM,
            "args": [{ "index": 0, "value": flag, "valueTwo": flag, "op": "SCMP_CMP_MASKED_EQ" }],
        })
    }));
    json!({ "defaultAction": "SCMP_ACT_ALLOW", "architectures": [ARCHITECTURE], "syscalls": calls })
}

/// The same as a container runtime reads it.
pub(crate) fn oci(limits: Limits) -> Value {
    let mut calls = vec![
        json!({ "names": names(ALLOWED.iter().chain(ALLOWED_HERE)), "action": "SCMP_ACT_ALLOW" }),
        json!({ "names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS }),
    ];
    if limits.threads > 1 {
        calls.push(json!({
            "names": ["clone"],
            "action": "SCMP_ACT_ALLOW",
            "args": [{ "index": 0, "value": THREAD_OR_APART, "valueTwo": THREAD, "op": "SCMP_CMP_MASKED_EQ" }],
        }));
    }
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": libc::EPERM,
        "architectures": [ARCHITECTURE],
        "syscalls": calls,
    })
}

/// A user that an NF runs as, and nobody else on this host: its number has 22 bits of this process and 6 bits of the NF.
#[derive(Debug)]
pub(crate) struct User(u32);

/// The users of this process that NFs run as now: a bit each.
static TAKEN: AtomicU64 = AtomicU64::new(0);

impl User {
    /// One that nobody is, until it is dropped.
    pub(crate) fn take() -> Result<Self, Failure> {
        let free = |taken: u64| (taken != u64::MAX).then(|| taken | 1 << taken.trailing_ones());
        let before = TAKEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, free);
        let before = before.map_err(|_| {
            Failure::Impossible(
                "64 NFs have users of their own: there are no more in this process".into(),
            )
        })?;
        Ok(Self(before.trailing_ones()))
    }

    /// Its number.
    pub(crate) fn number(&self) -> u32 {
        0x7000_0000 | (std::process::id() & 0x3f_ffff) << 6 | self.0
    }
}

impl Drop for User {
    fn drop(&mut self) {
        TAKEN.fetch_and(!(1 << self.0), Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_differ_and_are_given_back() {
        let all: Vec<User> = std::iter::from_fn(|| User::take().ok()).collect();
        let mut numbers: Vec<u32> = all.iter().map(User::number).collect();
        assert!(numbers.iter().all(|of| (0x7000_0000..0x8000_0000).contains(of)));
        numbers.dedup();
        assert_eq!(numbers.len(), 64);
        assert!(User::take().is_err());
        drop(all);
        assert!(User::take().is_ok());
    }

    #[test]
    fn what_must_be_refused_is_in_no_list() {
        let refused = [
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_getfd,
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setscheduler,
            libc::SYS_sched_setattr,
            libc::SYS_sched_setparam,
            libc::SYS_setpriority,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_socket,
            libc::SYS_bpf,
            libc::SYS_mount,
            libc::SYS_memfd_create,
            libc::SYS_userfaultfd,
            libc::SYS_io_uring_setup,
            libc::SYS_perf_event_open,
        ];
        let all: Vec<c_long> =
            ALLOWED.iter().chain(ALLOWED_HERE).map(|(_, number)| *number).collect();
        assert!(refused.iter().all(|number| !all.contains(number)));
    }
}
