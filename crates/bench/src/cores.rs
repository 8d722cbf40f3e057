//! A chain in memory on several cores: a worker on each, with the flows that dispatch by a hash would bring to it, as
//! `catena run --workers` has them. Workers share the caches, the memory and the clock of the machine, and nothing else.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use dataplane::clock::Time;
use elements::configure::WorkerShare;
use engine::session::Path as Execution;

use crate::arrivals::Arrivals;
use crate::machine::{Environment, Machine, Meter, bind_thread};
use crate::measure::{
    Failed, Gauges, HEADROOM, ROUNDS, Request, Size, Subject, Traffics, WARM, mean_size, remark,
};
use crate::memory::{Offered, RING};
use crate::report::{AtSize, Cost, Report, Throughput, VERSION};
use crate::search::{Range, Trial};
use crate::statistics::Samples;

/// What all workers do at the same time.
#[derive(Clone, Copy)]
enum Task {
    /// Take so many packets as fast as they can.
    Chain(u64),
    /// The same without the chain.
    Bare(u64),
    /// Take so many packets a second for so many seconds.
    Offer { load: (f64, f64), arrivals: (Arrivals, u64), with_latencies: bool },
}

/// What it came to for a worker.
enum Done {
    /// Packets that were moved, packets that left, and CPU nanoseconds.
    Moved {
        moved: u64,
        left: u64,
        time: u64,
    },
    Offered(Offered),
}

/// What a worker has to say: what was done, and for how many nanoseconds it could not run meanwhile.
type Answer = Result<(Done, u64), Failed>;

/// For how many nanoseconds so far that worker could not run which could run least in each task.
struct Taken {
    time: Cell<u64>,
    /// Cycles of the time stamp counter in a second.
    frequency: Option<f64>,
}

impl Meter for Taken {
    /// Workers take their own.
    fn cpu_time(&self) -> u64 {
        0
    }

    fn cycles(&self) -> Option<u64> {
        None
    }

    fn frequency(&self) -> Option<f64> {
        self.frequency
    }

    fn taken(&self) -> u64 {
        self.time.get()
    }
}

/// Workers that wait for tasks until they are dropped.
struct Team<'t> {
    tasks: Vec<Sender<Task>>,
    answers: Vec<Receiver<Answer>>,
    sources: usize,
    taken: &'t Taken,
}

/// Who measures.
#[derive(Clone, Copy)]
struct Setting<'a> {
    request: &'a Request<'a>,
    cores: &'a [usize],
    time: &'a Arc<dyn Time>,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
}

/// Measures a chain in memory with a worker on each of these cores.
///
/// # Errors
/// What is wrong with the chain or its traffic, or that it was stopped.
pub fn measure_on_cores(
    request: &Request<'_>,
    cores: &[usize],
    time: &Arc<dyn Time>,
    environment: Environment,
    progress: &mut dyn FnMut(&str),
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Report, Failed> {
    progress("reading the chain");
    let keep = |_: &mut _| ();
    let mut library = Traffics::new(request, &keep);
    let subject = Subject::load(request, Execution::Synthesised, time, &mut library)?;
    library.check(&subject)?;
    let (sources, length) = (subject.harness.sources(), subject.length());
    drop(subject);
    if !request.sizes.is_empty() {
        library.check_sizes()?;
    }
    let traffic = library.described();
    let frequency = Machine::unbound().map_err(Failed::Message)?.frequency();
    let taken = Taken { time: Cell::default(), frequency };
    let gauges = Gauges::new(request, (&**time, &taken), is_stopped);
    let setting = Setting { request, cores, time, is_stopped };
    let frames = traffic.iter().map(|source| source.frames as u64).sum::<u64>();

    let mut remarks = library.remarks();
    let mut report = std::thread::scope(|scope| -> Result<Report, Failed> {
        progress("warming up");
        let mut team = Team::new(scope, setting, None, (sources, &taken));
        let forwarded = team.warm_up(frames)?;
        progress("measuring what a packet costs");
        let cost = team.cost(&gauges, request)?;
        progress("searching for the throughput");
        let throughput = team.throughput(&gauges, request, cost.time.median)?;
        let with = (&throughput[..], forwarded);
        let latency = gauges.latencies(with, &mut remarks, progress, |load, arrivals| {
            team.offer(load, arrivals, true)
        })?;
        drop(team);
        let mut sizes = Vec::new();
        for size in &request.sizes {
            progress(&format!("searching for the throughput with frames of {} bytes", size.name));
            let mut team = Team::new(scope, setting, Some(size), (sources, &taken));
            team.warm_up(WARM)?;
            let cost = team.cost(&gauges, request)?;
            let throughput = team.throughput(&gauges, request, cost.time.median)?;
            let resize = |generator: &mut dataplane::io::Generator| {
                generator.sizes.clone_from(&size.frames);
            };
            let mut library = Traffics::new(request, &resize);
            Subject::load(request, Execution::Native, time, &mut library)?;
            sizes.push(AtSize {
                size: size.name.clone(),
                frame_size: mean_size(&library.described()),
                cost: Some(cost),
                throughput,
            });
        }
        Ok(Report {
            bench: VERSION,
            chain: request.chain.to_string(),
            length,
            place: format!("in memory, {} cores, no network card", cores.len()),
            cores: cores.len(),
            environment,
            seed: request.seed,
            frame_size: mean_size(&traffic),
            traffic: traffic.clone(),
            arrivals: request.arrivals.to_string(),
            cost: Some(cost),
            throughput,
            latency,
            sizes,
            functions: Vec::new(),
            programs: Vec::new(),
            peers: Vec::new(),
            forwarded,
            by_tester: false,
            remarks: Vec::new(),
        })
    })?;
    report.remarks = remarks;
    remark(&mut report);
    Ok(report)
}

impl<'t> Team<'t> {
    fn new<'scope, 'a: 'scope>(
        scope: &'scope Scope<'scope, '_>,
        setting: Setting<'a>,
        size: Option<&'a Size>,
        (sources, taken): (usize, &'t Taken),
    ) -> Self {
        let mut team = Self { tasks: Vec::new(), answers: Vec::new(), sources, taken };
        for index in 0..setting.cores.len() {
            let (task, tasks) = channel();
            let (answer, answers) = channel();
            scope.spawn(move || {
                // The other end hears of what went wrong instead of the first answer.
                if let Err(why) = work(setting, index, size, &tasks, &answer) {
                    let _ = answer.send(Err(why));
                }
            });
            team.tasks.push(task);
            team.answers.push(answers);
        }
        team
    }

    /// Has every worker do something, and waits for all.
    fn all(&mut self, task: Task) -> Result<Vec<Done>, Failed> {
        for worker in &self.tasks {
            // Who is gone has left an answer.
            let _ = worker.send(task);
        }
        let gone = || Err(Failed::Message("a worker ended".into()));
        // All are heard, so that no answer is taken for the next task's.
        let answers: Vec<Answer> =
            self.answers.iter().map(|answers| answers.recv().unwrap_or_else(|_| gone())).collect();
        let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
        let most = answers.iter().map(|(_, taken)| *taken).max().unwrap_or(0);
        self.taken.time.set(self.taken.time.get() + most);
        Ok(answers.into_iter().map(|(done, _)| done).collect())
    }

    /// Moves the frames of each worker once at least. How many packets left for each that came in.
    fn warm_up(&mut self, frames: u64) -> Result<f64, Failed> {
        let (mut all, mut out) = (0, 0);
        for done in self.all(Task::Chain(frames.max(WARM)))? {
            if let Done::Moved { moved, left, .. } = done {
                (all, out) = (all + moved, out + left);
            }
        }
        self.all(Task::Bare(WARM))?;
        Ok(out as f64 / all.max(1) as f64)
    }

    /// What a packet takes while all workers work: the mean of the workers, in each round.
    fn cost(&mut self, gauges: &Gauges<'_>, request: &Request<'_>) -> Result<Cost, Failed> {
        let first = self.round(Task::Chain(WARM / 4))?;
        let packets = ((request.effort.trial / 6.0 * 1e9 / first.max(1.0)) as u64).max(1000);
        let (mut times, mut floor) = (Vec::new(), Vec::new());
        let ((), disturbed) = gauges.watched(|| {
            for _ in 0..ROUNDS {
                times.push(self.round(Task::Chain(packets))?);
                floor.push(self.round(Task::Bare(packets))?);
            }
            Ok(())
        })?;
        Ok(gauges.cost_of(Samples::of(times), Samples::of(floor), disturbed))
    }

    /// CPU nanoseconds of a packet.
    fn round(&mut self, task: Task) -> Result<f64, Failed> {
        let mut times = Vec::new();
        for done in self.all(task)? {
            if let Done::Moved { moved, time, .. } = done {
                times.push(time as f64 / moved as f64);
            }
        }
        Ok(times.iter().sum::<f64>() / times.len() as f64)
    }

    /// Offers a load to all workers together.
    fn offer(
        &mut self,
        (rate, seconds): (f64, f64),
        arrivals: (Arrivals, u64),
        with_latencies: bool,
    ) -> Result<Offered, Failed> {
        let load = (rate / self.tasks.len() as f64, seconds);
        let mut sum: Option<Offered> = None;
        for done in self.all(Task::Offer { load, arrivals, with_latencies })? {
            let Done::Offered(Offered { trial, latencies }) = done else { continue };
            match &mut sum {
                None => sum = Some(Offered { trial, latencies }),
                Some(sum) => {
                    sum.trial.offered += trial.offered;
                    sum.trial.lost += trial.lost;
                    sum.latencies.add(latencies).expect("histograms of the same bounds");
                }
            }
        }
        sum.ok_or_else(|| Failed::Message("there are no cores to work on".into()))
    }

    fn throughput(
        &mut self,
        gauges: &Gauges<'_>,
        request: &Request<'_>,
        time: f64,
    ) -> Result<Vec<Throughput>, Failed> {
        let workers = self.tasks.len() as f64;
        let (capacity, seconds) = (workers * 1e9 / time, request.effort.trial);
        let least = 2.0 * RING as f64 * workers * self.sources as f64 / seconds;
        let range = Range { min: least.min(capacity), max: HEADROOM * capacity };
        gauges.search(range, |load| -> Result<Trial, Failed> {
            Ok(self.offer((load, seconds), (Arrivals::Constant, 0), false)?.trial)
        })
    }
}

/// Does something while workers on other cores take packets of the traffic as given through the chain, as fast as they can.
///
/// # Errors
/// What the work fails with, or a worker.
pub(crate) fn beside_workers<T>(
    request: &Request<'_>,
    cores: &[usize],
    time: &Arc<dyn Time>,
    work: impl FnOnce() -> Result<T, Failed>,
) -> Result<T, Failed> {
    let is_done = AtomicBool::new(false);
    let worker = |index: usize, ready: Sender<()>| -> Result<(), Failed> {
        let refused = |why| Failed::Message(format!("CPU {}: {why}", cores[index]));
        bind_thread(cores[index]).map_err(refused)?;
        let mut library = Traffics::new(request, &|_| ());
        library.part = WorkerShare { index, count: cores.len(), groups: 0 };
        let mut chain = Subject::load(request, Execution::Synthesised, time, &mut library)?;
        let mut ready = Some(ready);
        while !is_done.load(Ordering::Relaxed) {
            chain.saturate(WARM / 4, &|| false)?;
            ready.take().into_iter().for_each(|ready| _ = ready.send(()));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let start = |index| {
            let (worker, (ready, is_ready)) = (&worker, channel());
            (scope.spawn(move || worker(index, ready)), is_ready)
        };
        let workers: Vec<_> = (0..cores.len()).map(start).collect();
        // One that fails is never ready.
        let all_work = workers.iter().all(|(_, is_ready)| is_ready.recv().is_ok());
        let done = {
            // Workers end even if the work panics: the scope waits for them.
            let _ended = DoneOnDrop(&is_done);
            all_work.then(work)
        };
        let gone = || Failed::Message("a worker ended".into());
        for (worker, _) in workers {
            worker.join().unwrap_or_else(|_| Err(gone()))?;
        }
        done.unwrap_or_else(|| Err(gone()))
    })
}

/// Says that all is done once it is dropped.
struct DoneOnDrop<'a>(&'a AtomicBool);

impl Drop for DoneOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A worker.
fn work(
    setting: Setting<'_>,
    index: usize,
    size: Option<&Size>,
    tasks: &Receiver<Task>,
    answer: &Sender<Answer>,
) -> Result<(), Failed> {
    let Setting { request, cores, time, is_stopped } = setting;
    let machine = Machine::bind(Some(cores[index])).map_err(Failed::Message)?;
    let resize = |generator: &mut dataplane::io::Generator| {
        size.into_iter().for_each(|size| generator.sizes.clone_from(&size.frames));
    };
    let mut library = Traffics::new(request, &resize);
    library.part = WorkerShare { index, count: cores.len(), groups: 0 };
    let mut chain = Subject::load(request, Execution::Synthesised, time, &mut library)?;
    let mut bare = Subject::bare(request, time, &library)?;
    for task in tasks {
        let taken = machine.taken();
        let done = match task {
            Task::Chain(packets) => saturate(&mut chain, packets, &machine, is_stopped)?,
            Task::Bare(packets) => saturate(&mut bare, packets, &machine, is_stopped)?,
            Task::Offer { load, arrivals: (process, seed), with_latencies } => {
                let arrivals = (process, seed.wrapping_add((index as u64) << 48));
                let Subject { harness, router, .. } = &mut chain;
                Done::Offered(harness.offer(router, load, arrivals, with_latencies, is_stopped)?)
            }
        };
        if answer.send(Ok((done, machine.taken().saturating_sub(taken)))).is_err() {
            break;
        }
    }
    Ok(())
}

fn saturate(
    subject: &mut Subject,
    packets: u64,
    machine: &Machine,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Done, Failed> {
    let (left, time) = (subject.harness.left(), machine.cpu_time());
    let moved = subject.saturate(packets, is_stopped)?;
    Ok(Done::Moved {
        moved,
        left: subject.harness.left() - left,
        time: machine.cpu_time().saturating_sub(time),
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use dataplane::clock::RealClock;

    use super::*;
    use crate::measure::Effort;

    #[test]
    fn workers_end_with_what_is_done_beside_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.click");
        std::fs::write(&file, "FromDevice(in) -> ToDevice(out);").unwrap();
        let request = Request {
            chain: file.to_str().unwrap(),
            variables: Default::default(),
            inputs: Default::default(),
            devices: Vec::new(),
            traffic: None,
            peers: Vec::new(),
            seed: 0,
            sizes: Vec::new(),
            arrivals: Arrivals::Constant,
            effort: Effort { trial: 0.01 },
        };
        let time: Arc<dyn Time> = Arc::new(RealClock::new());
        let cores = &dataplane::worker::cpus()[..1];
        let beside =
            || beside_workers(&request, cores, &time, || -> Result<(), _> { panic!("odd") });
        assert!(catch_unwind(AssertUnwindSafe(beside)).is_err());
        assert_eq!(beside_workers(&request, cores, &time, || Ok(7)).ok(), Some(7));
    }
}
