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
const THREAD_OR_APART: u64 = THREAD
    | (libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET) as u64;

/// Filters for a process that is started: each is applied, in this order. The first has C libraries that make threads take the call whose
/// flags a filter can see.
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
    let refused = |with: i32| SeccompAction::Errno(with as u32);
    let allowed =
        SeccompFilter::new(rules, refused(libc::EPERM), SeccompAction::Allow, architecture)?;
    let unknown = SeccompFilter::new(
        [(libc::SYS_clone3, Vec::new())].into(),
        SeccompAction::Allow,
        refused(libc::ENOSYS),
        architecture,
    )?;
    Ok([unknown.try_into()?, allowed.try_into()?])
}

/// Resource limits of a process: which, and how much.
pub(crate) fn limits(limits: Limits, has_own_user: bool) -> Vec<(Resource, u64)> {
    let mut all = vec![
        (Resource::Core, 0),
        (Resource::Nofile, DESCRIPTORS),
        // What it may write to, and shares with nobody. Control groups count the rest.
        (Resource::Data, limits.memory),
    ];
    if has_own_user {
        all.push((Resource::Nproc, u64::from(limits.threads)));
    }
    all
}

/// The same as a container runtime reads it.
pub(crate) fn oci(limits: Limits) -> Value {
    let names = ALLOWED.iter().chain(ALLOWED_HERE).map(|(name, _)| name.trim_start_matches("SYS_"));
    let mut calls = vec![
        json!({ "names": names.collect::<Vec<_>>(), "action": "SCMP_ACT_ALLOW" }),
        json!({ "names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS }),
    ];
    if limits.threads > 1 {
        calls.push(json!({
            "names": ["clone"],
            "action": "SCMP_ACT_ALLOW",
            "args": [{ "index": 0, "value": THREAD_OR_APART, "valueTwo": THREAD, "op": "SCMP_CMP_MASKED_EQ" }],
        }));
    }
    let architecture = match std::env::consts::ARCH {
        "aarch64" => "SCMP_ARCH_AARCH64",
        _ => "SCMP_ARCH_X86_64",
    };
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": libc::EPERM,
        "architectures": [architecture],
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
