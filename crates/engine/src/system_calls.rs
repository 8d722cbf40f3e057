//! Giving up the system calls that a run does not need: `catena run --seccomp`.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// What a run needs: to carry packets, and later to open interfaces that come back, read another
/// configuration, write captures and answer clients.
const NEEDED: &[libc::c_long] = &[
    // Packets.
    libc::SYS_recvmmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    // Interfaces.
    libc::SYS_bind,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_getsockname,
    libc::SYS_ioctl,
    libc::SYS_bpf,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    // Whoever asks.
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_socketpair,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
    // Files.
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_statx,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_readlinkat,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_fstatfs,
    libc::SYS_fchmod,
    // Memory.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    // Threads.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_membarrier,
    libc::SYS_prctl,
    libc::SYS_rseq,
    libc::SYS_set_robust_list,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
    // Signals.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    // Time, chance and limits.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_prlimit64,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_geteuid,
    libc::SYS_getuid,
    libc::SYS_getegid,
    libc::SYS_getgid,
];

/// The same under the names that they had before.
#[cfg(target_arch = "x86_64")]
const NEEDED_HERE: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_dup2,
    libc::SYS_mkdir,
    libc::SYS_unlink,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const NEEDED_HERE: &[libc::c_long] = &[];

/// What sockets are needed for: clients and interfaces.
const FAMILIES: [libc::c_int; 6] =
    [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_XDP];

/// A thread that is made shares everything: it is no process, and in no namespace of its own.
const THREAD: u64 = libc::CLONE_THREAD as u64;
const APART: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

type Error = seccompiler::BackendError;

/// A filter that does one thing with calls that have rules, of which one holds, and another with
/// all others. A call without rules is one with any arguments.
fn filter(
    calls: impl IntoIterator<Item = (libc::c_long, Vec<SeccompRule>)>,
    then: SeccompAction,
    otherwise: SeccompAction,
) -> Result<BpfProgram, Error> {
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(calls.into_iter().collect(), otherwise, then, architecture)?.try_into()
}

/// Says that there is no clone3(2), whose arguments no filter can look at: clone(2) is called then.
fn without_clone3() -> Result<BpfProgram, Error> {
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    filter([(libc::SYS_clone3, Vec::new())], absent, SeccompAction::Allow)
}

fn only_needed() -> Result<BpfProgram, Error> {
    let first = |op: SeccompCmpOp, value: u64, length: SeccompCmpArgLen| {
        SeccompRule::new(vec![SeccompCondition::new(0, length, op, value)?])
    };
    let dword = |value: u64| first(SeccompCmpOp::Eq, value, SeccompCmpArgLen::Dword);
    let sockets =
        FAMILIES.into_iter().map(|family| dword(family as u64)).collect::<Result<_, _>>()?;
    let flags = SeccompCmpOp::MaskedEq(THREAD | APART);
    let threads = vec![first(flags, THREAD, SeccompCmpArgLen::Qword)?];
    let own = || Ok::<_, Error>(vec![dword(std::process::id().into())?]);
    let calls = NEEDED.iter().chain(NEEDED_HERE).map(|call| (*call, Vec::new())).chain([
        (libc::SYS_socket, sockets),
        (libc::SYS_clone, threads),
        // The filter before this one says that it is not there.
        (libc::SYS_clone3, Vec::new()),
        (libc::SYS_kill, own()?),
        (libc::SYS_tgkill, own()?),
    ]);
    filter(calls, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32))
}

/// Has all other calls, and those with other arguments, fail with "operation not permitted" from now on, for good: in this thread
/// and in those that it starts. A call that should be needed after all is an error then, and no
/// end of the run.
///
/// # Errors
/// Why not.
pub fn keep_needed() -> Result<(), String> {
    let explain = |why: &dyn std::fmt::Display| format!("giving up system calls: {why}");
    for program in [without_clone3, only_needed] {
        let program = program().map_err(|e| explain(&e))?;
        apply_filter(&program).map_err(|e| explain(&e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, UdpSocket};
    use std::process::Command;

    use rustix::process::{getpid, getppid, test_kill_process};

    use super::*;

    #[test]
    fn what_is_not_needed_is_refused() {
        let parent = getppid().unwrap();
        assert!(test_kill_process(parent).is_ok());
        // A filter is its thread's.
        let thread = std::thread::spawn(move || {
            keep_needed().unwrap();
            let ran = Command::new("true").status();
            assert_eq!(ran.unwrap_err().kind(), ErrorKind::PermissionDenied);
            let linked = std::os::unix::fs::symlink("a", std::env::temp_dir().join("never"));
            assert_eq!(linked.unwrap_err().kind(), ErrorKind::PermissionDenied);
            assert!(UdpSocket::bind("127.0.0.1:0").is_ok());
            assert!(TcpListener::bind("127.0.0.1:0").is_ok());
            assert!(std::fs::read_dir("/").unwrap().count() > 0);
            std::thread::spawn(|| ()).join().unwrap();
            assert!(test_kill_process(getpid()).is_ok());
            assert_eq!(test_kill_process(parent), Err(rustix::io::Errno::PERM));
        });
        thread.join().unwrap();
    }
}
