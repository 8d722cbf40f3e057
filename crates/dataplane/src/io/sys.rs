//! System calls, each behind a function that is safe to call.

#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::time::Duration;

/// Waits until one of the descriptors is readable or in error; `false` when the time passed or a
/// signal came first.
pub(super) fn wait_readable(on: &[RawFd], longest: Duration) -> bool {
    let mut fds: Vec<libc::pollfd> =
        on.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let timeout = libc::timespec {
        tv_sec: longest.as_secs().min(3600) as libc::time_t,
        tv_nsec: longest.subsec_nanos().into(),
    };
    // SAFETY: `fds` and `timeout` live through the call, the count is that of `fds`, and no
    // signal mask is passed. A number that is no descriptor is reported as such by the kernel.
    let n = unsafe {
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &timeout, std::ptr::null())
    };
    n > 0
}
