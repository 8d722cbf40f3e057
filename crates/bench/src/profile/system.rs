//! What the operating system takes: system calls, and context switches by scheduling policy.

use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::net::UnixDatagram;

use dataplane::clock::Time;
use serde::{Deserialize, Serialize};
use thread_priority::{
    Error, NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ScheduleParams,
    ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};

use crate::machine::Meter;
use crate::statistics::Samples;

/// How the kernel chooses among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The default: fair shares.
    Other,
    /// Fair shares for threads that compute.
    Batch,
    /// Real time: threads of a priority take turns.
    RoundRobin,
    /// Real time: threads of a priority run until they block.
    Fifo,
}

impl Policy {
    /// All that are measured.
    pub const ALL: [Self; 4] = [Self::Other, Self::Batch, Self::RoundRobin, Self::Fifo];

    /// Its name in the kernel.
    pub fn title(self) -> &'static str {
        match self {
            Self::Other => "SCHED_OTHER",
            Self::Batch => "SCHED_BATCH",
            Self::RoundRobin => "SCHED_RR",
            Self::Fifo => "SCHED_FIFO",
        }
    }

    /// Sets it for this thread.
    fn set(self) -> Result<(), String> {
        let (policy, priority) = match self {
            Self::Other => return Ok(()),
            Self::Batch => (ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch), NICE),
            Self::RoundRobin => {
                (ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin), 1)
            }
            Self::Fifo => (ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo), 1),
        };
        let priority = ThreadPriority::from_posix(ScheduleParams { sched_priority: priority });
        set_thread_priority_and_policy(thread_native_id(), priority, policy).map_err(
            |why| match why {
                Error::OS(code) => match io::Error::from_raw_os_error(code) {
                    refused if refused.kind() == io::ErrorKind::PermissionDenied => {
                        "not permitted: it takes CAP_SYS_NICE, or a limit RLIMIT_RTPRIO above 0"
                            .into()
                    }
                    other => other.to_string(),
                },
                other => format!("{other:?}"),
            },
        )
    }
}

/// What a context switch takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Switch {
    /// The policy of both threads.
    pub policy: Policy,
    /// Nanoseconds, without the system calls that cause it.
    pub time: Option<Samples>,
    /// Why it was not measured.
    pub missing: Option<String>,
}

/// What the operating system takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Nanoseconds of a system call that does nothing (`getppid`).
    pub system_call: Samples,
    /// Nanoseconds of a system call that sends or receives 64 bytes on a local socket.
    pub io_call: Samples,
    /// By scheduling policy.
    pub switches: Vec<Switch>,
}

impl Costs {
    /// Nanoseconds of a context switch under the default policy.
    pub fn switch(&self) -> Option<f64> {
        let switch = self.switches.iter().find(|switch| switch.policy == Policy::Other)?;
        Some(switch.time.as_ref()?.median)
    }
}

/// What the library makes a nice value of 0 of.
const NICE: i32 = 49;
/// Samples of each figure.
const SAMPLES: usize = 15;
/// System calls of a sample.
const CALLS: u32 = 2000;
/// Round trips of a sample.
const TRIPS: u32 = 200;

/// Measures what the operating system takes, on the CPU that this thread is bound to.
///
/// # Errors
/// If there are no sockets or threads.
pub fn measure(time: &dyn Time, meter: &dyn Meter) -> Result<Costs, String> {
    let call = || {
        black_box(rustix::process::getppid());
        Ok(())
    };
    let system_call = calls(meter, CALLS, call).map_err(|e| format!("getppid: {e}"))?;
    let (from, to) = UnixDatagram::pair().map_err(|e| format!("a local socket: {e}"))?;
    let mut frame = [0; 64];
    let mut exchange = || {
        from.send(&frame)?;
        to.recv(&mut frame).map(|_| ())
    };
    let io_call =
        calls(meter, CALLS / 2, &mut exchange).map_err(|e| format!("a local socket: {e}"))?;
    let io_call = Samples::of(io_call.values.iter().map(|pair| pair / 2.0).collect());
    let switches = Policy::ALL.map(|policy| {
        let (time, missing) = match switches(policy, time) {
            Ok(time) => (Some(time), None),
            Err(why) => (None, Some(why)),
        };
        Switch { policy, time, missing }
    });
    Ok(Costs { system_call, io_call, switches: switches.to_vec() })
}

/// Nanoseconds of a call.
fn calls(
    meter: &dyn Meter,
    count: u32,
    mut call: impl FnMut() -> io::Result<()>,
) -> io::Result<Samples> {
    let mut values = Vec::new();
    for _ in 0..=SAMPLES {
        let begin = meter.cpu_time();
        for _ in 0..count {
            call()?;
        }
        values.push(meter.cpu_time().saturating_sub(begin) as f64 / f64::from(count));
    }
    // The first one warms up.
    Ok(Samples::of(values.split_off(1)))
}

/// Two threads hand a byte to and fro by pipes: each time the CPU switches from the one to the other. What the system
/// calls take of it is measured by a thread that hands the byte to itself.
fn switches(policy: Policy, time: &dyn Time) -> Result<Samples, String> {
    let pipe = || io::pipe().map_err(|e| format!("a pipe: {e}"));
    let (requests, mut request) = pipe()?;
    let (mut replies, reply) = pipe()?;
    std::thread::scope(|scope| {
        let peer = scope.spawn(move || -> Result<(), String> {
            policy.set()?;
            let (mut requests, mut reply) = (requests, reply);
            // Until the other end of the pipe is closed.
            while pass(&mut requests, &mut reply).is_ok() {}
            Ok(())
        });
        let measuring = std::thread::Builder::new().spawn_scoped(scope, move || {
            policy.set()?;
            let samples = |trip: &mut dyn FnMut() -> io::Result<()>| {
                let mut values = Vec::new();
                for _ in 0..=SAMPLES {
                    let begin = time.now();
                    for _ in 0..TRIPS {
                        trip().map_err(|e| format!("the other thread is gone: {e}"))?;
                    }
                    values.push(time.now().saturating_sub(begin) as f64 / f64::from(TRIPS));
                }
                Ok::<_, String>(values.split_off(1))
            };
            let trips = samples(&mut || {
                request.write_all(&[0])?;
                replies.read_exact(&mut [0])
            })?;
            let (mut read, mut write) = pipe()?;
            write.write_all(&[0]).map_err(|e| format!("a pipe: {e}"))?;
            let calls = Samples::of(samples(&mut || pass(&mut read, &mut write))?).median;
            // A round trip is two switches, and each has the system calls of one pass.
            Ok(Samples::of(trips.iter().map(|trip| (trip / 2.0 - calls).max(0.0)).collect()))
        });
        let measured = match measuring {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err("the thread panicked".into())),
            Err(why) => Err(format!("a thread: {why}")),
        };
        // Why the peer failed says more than that it is gone.
        peer.join().unwrap_or_else(|_| Err("the thread panicked".into())).and(measured)
    })
}

fn pass(from: &mut PipeReader, to: &mut PipeWriter) -> io::Result<()> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    to.write_all(&byte)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Each look at the CPU time takes as long as all of these calls.
    struct Ticking(Cell<u64>, u64);

    impl Meter for Ticking {
        fn frequency(&self) -> Option<f64> {
            None
        }

        fn cpu_time(&self) -> u64 {
            self.0.set(self.0.get() + self.1);
            self.0.get()
        }

        fn cycles(&self) -> Option<u64> {
            None
        }

        fn taken(&self) -> u64 {
            0
        }
    }

    #[test]
    fn calls_are_counted_and_timed() {
        let made = Cell::new(0);
        let meter = Ticking(Cell::new(0), 50_000);
        let found = calls(&meter, 100, || {
            made.set(made.get() + 1);
            Ok(())
        });
        let found = found.unwrap();
        assert_eq!((found.median, found.values.len()), (500.0, SAMPLES));
        assert_eq!(made.get(), 100 * (SAMPLES + 1));
        assert!(calls(&meter, 1, || Err(io::ErrorKind::Other.into())).is_err());
    }

    #[test]
    fn every_policy_is_measured_or_says_why_not() {
        let time = dataplane::clock::RealClock::new();
        let costs = measure(&time, &Ticking(Cell::new(0), 4_000_000)).unwrap();
        assert_eq!((costs.system_call.median, costs.io_call.median), (2000.0, 2000.0));
        assert!(costs.switch().is_some());
        for switch in &costs.switches {
            match (&switch.time, &switch.missing) {
                (Some(time), None) => assert_eq!(time.values.len(), SAMPLES),
                (None, Some(why)) => {
                    assert_ne!(switch.policy, Policy::Other);
                    assert!(why.contains("not permitted"), "{why}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
