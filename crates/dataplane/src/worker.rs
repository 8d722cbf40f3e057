//! Workers: threads that each run a router to completion, share nothing, and do between two
//! rounds what they are told.
//!
//! A router cannot go to another thread. So whatever is to happen with it is sent to its worker's
//! mailbox, which costs a look at a flag a round; and a chain is changed by starting a thread
//! that makes the new router aside. When that is ready, the old thread finishes its round, hands
//! over everything that is to go on ([`crate::change`]) and leaves; the devices stay open. What
//! packets wait for is that hand-over alone.

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use elements::configure::WorkerShare;

use crate::change::{Handover, Plan, TakenOver};
use crate::router::{Rest, Router};
use crate::stats::Holding;
use crate::thread_owned;
use crate::threads::{SPARE, Spare, be_punctual, pin};
pub use crate::threads::{aside, cpus};
use crate::wake::Mailbox;

/// Something to do with a router between two rounds.
type Call = Box<dyn FnOnce(&mut Router) + Send>;

enum Command {
    Call(Call),
    /// Another thread goes on. Once nobody could say anything any more, all have begun.
    HandOver(Successor, Receiver<()>),
    /// The thread ends.
    Quit,
}

/// Who goes on, and how.
struct Successor {
    next: SyncSender<Start>,
    plan: Arc<Plan>,
    done: Sender<(usize, Swapped)>,
}

/// How a new router begins.
enum Start {
    /// Afresh.
    Fresh(Arc<Slot>),
    /// Not yet, but soon, on this CPU.
    Soon(usize, SyncSender<()>),
    /// Where another ended, whose last round was over at that time.
    After(Arc<Slot>, Box<Handover>, u64, Successor),
}

/// What changing the chain of a worker came to.
#[derive(Clone, Copy, Debug)]
pub struct Swapped {
    /// From the end of the old router's last round to the beginning of the new one's first.
    pub standstill: Duration,
    /// What went over.
    pub taken: TakenOver,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It carries packets, or waits for some.
    Running,
    /// Nothing to do unless somebody writes a handler.
    Idle,
    /// An element told the driver to stop.
    Stopped,
    /// It stands by: no packets come to it, and it runs no rounds until it is told to.
    Parked,
    /// Its thread is gone.
    Dead,
}

struct Slot {
    index: usize,
    /// The CPU that its thread is bound to.
    cpu: Option<usize>,
    /// Where its thread is to be once it is not the worker's any more.
    spare: Option<Spare>,
    mailbox: Mailbox<Command>,
    status: AtomicU8,
    /// Whether it stands by.
    parked: AtomicBool,
    /// Told whenever the status changes to one in which there is nothing to do.
    rested: Sender<()>,
}

impl Slot {
    fn status(&self) -> Status {
        match self.status.load(Ordering::Acquire) {
            0 => Status::Running,
            1 => Status::Idle,
            2 => Status::Stopped,
            3 => Status::Parked,
            _ => Status::Dead,
        }
    }

    /// There is something to do, unless the worker stands by.
    fn wake(&self) {
        if !self.parked.load(Ordering::Acquire) {
            self.set(Status::Running);
        }
    }

    fn set(&self, status: Status) {
        let before = self.status.swap(status as u8, Ordering::AcqRel);
        if before != status as u8 && status != Status::Running {
            let _ = self.rested.send(());
        }
    }
}

/// Reports when a worker's thread ends, however it does.
struct Ending<'a>(&'a Slot);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.mailbox.close();
        self.0.set(Status::Dead);
    }
}

/// Runs a router until its thread is told to end. `Some` if another goes on, and when all have.
fn work(router: &mut Router, slot: &Slot) -> Option<(Successor, Receiver<()>)> {
    let bell = slot.mailbox.signal().as_raw_fd();
    thread_owned::keep(true);
    loop {
        thread_owned::yield_wanted();
        if slot.mailbox.is_waiting() {
            let mut commands = slot.mailbox.take().into_iter();
            while let Some(command) = commands.next() {
                match command {
                    Command::Call(call) => call(router),
                    Command::HandOver(next, begun) => {
                        // What comes after is for the one who goes on.
                        commands.for_each(|command| slot.mailbox.post(command));
                        return Some((next, begun));
                    }
                    Command::Quit => return None,
                }
            }
            slot.wake();
        }
        if slot.parked.load(Ordering::Acquire) {
            slot.set(Status::Parked);
            router.sleep(bell);
            continue;
        }
        match router.round() {
            Rest::Busy => router.worked(),
            Rest::Until(time) => router.wait(Some(time), Some(bell)),
            Rest::Idle if router.awaits() => router.wait(None, Some(bell)),
            Rest::IdleUntil(time) => {
                slot.set(Status::Idle);
                router.wait(Some(time), Some(bell));
                slot.wake();
            }
            rest => {
                slot.set(if rest == Rest::Idle { Status::Idle } else { Status::Stopped });
                while !slot.mailbox.is_waiting() {
                    router.sleep(bell);
                }
            }
        }
    }
}

/// A thread's whole life once its router is made.
fn live(mut router: Router, starts: &Receiver<Start>) {
    be_punctual();
    let mut start = starts.recv();
    // It waits where it is to run: to wake a thread is faster than to move one that runs.
    if let Ok(Start::Soon(cpu, ready)) = start {
        pin(cpu);
        drop(ready);
        start = starts.recv();
    }
    let (slot, before) = match start {
        Ok(Start::Fresh(slot)) => (slot, None),
        Ok(Start::After(slot, handover, since, successor)) => {
            (slot, Some((handover, since, successor)))
        }
        _ => return,
    };
    let ending = Ending(&slot);
    match before {
        Some((handover, since, Successor { plan, done, .. })) => {
            let taken = router.take_over(*handover, &plan);
            let standstill = Duration::from_nanos(router.time().saturating_sub(since));
            let _ = done.send((slot.index, Swapped { standstill, taken }));
        }
        None => slot.cpu.into_iter().for_each(pin),
    }
    SPARE.set(slot.spare);
    slot.wake();
    let ended = work(&mut router, &slot);
    thread_owned::keep(false);
    if let Some((successor, begun)) = ended {
        let since = router.time();
        let handover = Box::new(router.hand_over());
        let next = successor.next.clone();
        let start = Start::After(Arc::clone(&slot), handover, since, successor);
        if next.send(start).is_ok() {
            // The worker lives on.
            std::mem::forget(ending);
        }
        // Taking a large chain apart takes long, and its core has work to do: the sooner this thread
        // sleeps, the sooner the next one runs.
        let _ = begun.recv();
        if let Some(spare) = &slot.spare {
            spare.enter();
            if spare.shared {
                crate::io::run_when_idle();
            }
        }
    }
}

/// Routers that are made and wait to begin, a thread each.
pub struct Prepared<R> {
    threads: Vec<(SyncSender<Start>, JoinHandle<()>)>,
    /// What there is to tell of each.
    pub reports: Vec<R>,
}

/// Why routers could not be made.
#[derive(Debug)]
pub enum Refused<R> {
    /// What there is to tell of the first that could not.
    Not(Box<R>),
    /// The system gives no thread, or making a router ended in a panic.
    Broken(String),
}

/// Makes a router for each of the workers that are to run on these CPUs, aside, between which so many
/// groups of traffic classes can go. `make` is called in the thread in which the router is to run;
/// threads that it starts by [`aside`] leave these CPUs to the workers.
///
/// # Errors
/// If one could not be made; none of them is left then.
pub fn prepare<R: Send + 'static>(
    cpus: &[Option<usize>],
    groups: usize,
    make: impl Fn(WorkerShare) -> Result<(Router, R), Box<R>> + Send + Sync + 'static,
) -> Result<Prepared<R>, Refused<R>> {
    let make = Arc::new(make);
    let (mut threads, mut made) = (Vec::new(), Vec::new());
    let (workers, spare) = (cpus.len(), Spare::of_bound(cpus));
    for index in 0..workers {
        let (begin, start) = sync_channel(1);
        let (ready, answer) = sync_channel(1);
        let (make, part) = (Arc::clone(&make), WorkerShare { index, count: workers, groups });
        let thread = std::thread::Builder::new().name(format!("worker {index}")).spawn(move || {
            SPARE.set(spare);
            match make(part) {
                Ok((router, report)) => {
                    let _ = ready.send(Ok(report));
                    live(router, &start);
                }
                Err(report) => {
                    let _ = ready.send(Err(report));
                }
            }
        });
        threads.push((begin, thread.map_err(|e| Refused::Broken(e.to_string()))?));
        made.push(answer);
    }
    let mut reports = Vec::new();
    let mut refused = None;
    for answer in made {
        match answer.recv() {
            Ok(Ok(report)) => reports.push(report),
            Ok(Err(report)) => refused = refused.or(Some(Refused::Not(report))),
            Err(_) => {
                let why = "making the router ended in a panic".to_string();
                refused = refused.or(Some(Refused::Broken(why)));
            }
        }
    }
    match refused {
        None => Ok(Prepared { threads, reports }),
        Some(why) => {
            for (begin, thread) in threads {
                drop(begin);
                let _ = thread.join();
            }
            Err(why)
        }
    }
}

impl<R> Prepared<R> {
    /// Ends without having begun.
    pub fn dismiss(self) -> Vec<R> {
        let (begins, threads): (Vec<_>, Vec<_>) = self.threads.into_iter().unzip();
        drop(begins);
        for thread in threads {
            let _ = thread.join();
        }
        self.reports
    }

    /// Starts the workers, each bound to its CPU if it has one; those from `running` on stand by. The receiver
    /// hears of every worker that comes to have nothing to do.
    ///
    /// # Errors
    /// If the system gives no sockets.
    pub fn start(
        self,
        cpus: &[Option<usize>],
        running: usize,
    ) -> std::io::Result<(Fleet, Receiver<()>)> {
        crate::io::keep_memory();
        let (rested, rests) = channel();
        let spare = Spare::of_bound(cpus);
        let mut slots = Vec::new();
        for index in 0..self.threads.len() {
            let parked = index >= running;
            let status = if parked { Status::Parked } else { Status::Running };
            slots.push(Arc::new(Slot {
                index,
                cpu: cpus.get(index).copied().flatten(),
                spare,
                mailbox: Mailbox::new()?,
                status: AtomicU8::new(status as u8),
                parked: AtomicBool::new(parked),
                rested: rested.clone(),
            }));
        }
        // What makes routers must not take the workers' time: threads inherit this.
        spare.iter().for_each(Spare::enter);
        let mut threads = Vec::new();
        for ((begin, thread), slot) in self.threads.into_iter().zip(&slots) {
            let _ = begin.send(Start::Fresh(Arc::clone(slot)));
            threads.push(thread);
        }
        let fleet = Fleet { slots, threads: Mutex::new(threads), swapping: RwLock::new(()) };
        Ok((fleet, rests))
    }
}

/// The workers of a chain. Any thread may tell them something.
pub struct Fleet {
    slots: Vec<Arc<Slot>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Written by one swap at a time.
    swapping: RwLock<()>,
}

impl Fleet {
    /// Number of workers.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The CPU that a worker is bound to.
    pub fn cpu(&self, worker: usize) -> Option<usize> {
        self.slots.get(worker)?.cpu
    }

    /// How a worker is.
    pub fn status(&self, worker: usize) -> Status {
        self.slots.get(worker).map_or(Status::Dead, |slot| slot.status())
    }

    /// Has a worker run no further rounds, until it is told to.
    pub fn park(&self, worker: usize) {
        self.set_parked(worker, true);
    }

    /// Has a worker that stood by run again.
    pub fn unpark(&self, worker: usize) {
        self.set_parked(worker, false);
    }

    fn set_parked(&self, worker: usize, parked: bool) {
        let Some(slot) = self.slots.get(worker) else { return };
        slot.parked.store(parked, Ordering::Release);
        // It looks when it has read its mail.
        self.call(worker, |_| ());
    }

    /// Has something done with a worker's router between two rounds, and waits for it. `None` if
    /// the worker is dead.
    pub fn call<T: Send + 'static>(
        &self,
        worker: usize,
        work: impl FnOnce(&mut Router) -> T + Send + 'static,
    ) -> Option<T> {
        self.post(worker, work)?.recv().ok()
    }

    /// The same with all workers at once; of those that are not dead the answers, by worker.
    pub fn call_all<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Router) -> T + Clone + Send + 'static,
    ) -> Vec<(usize, T)> {
        let posted: Vec<_> =
            (0..self.len()).filter_map(|i| Some((i, self.post(i, work.clone())?))).collect();
        posted.into_iter().filter_map(|(i, answer)| Some((i, answer.recv().ok()?))).collect()
    }

    fn post<T: Send + 'static>(
        &self,
        worker: usize,
        work: impl FnOnce(&mut Router) -> T + Send + 'static,
    ) -> Option<Receiver<T>> {
        let (answer, answered) = sync_channel(1);
        let call = move |router: &mut Router| {
            let _ = answer.send(work(router));
        };
        self.slots.get(worker)?.mailbox.post(Command::Call(Box::new(call)));
        Some(answered)
    }

    /// Keeps swaps waiting: several calls are to meet one chain.
    pub(crate) fn keep_chain(&self) -> RwLockReadGuard<'_, ()> {
        self.swapping.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the elements of each worker hold now, added up.
    pub fn holdings(&self) -> HashMap<String, Holding> {
        let mut all: HashMap<String, Holding> = HashMap::new();
        for (_, held) in self.call_all(|router| router.holdings()) {
            for (name, holding) in held {
                let sum = all.entry(name).or_default();
                sum.packets += holding.packets;
                sum.flows += holding.flows;
            }
        }
        all
    }

    /// Replaces the routers that run with prepared ones, as planned; what it came to, by
    /// worker, and what there is to report of each new router.
    ///
    /// # Errors
    /// If a worker is dead; the others have changed then.
    pub fn swap<R>(
        &self,
        prepared: Prepared<R>,
        plan: &Arc<Plan>,
    ) -> Result<(Vec<Swapped>, Vec<R>), String> {
        let _one = self.swapping.write().unwrap_or_else(PoisonError::into_inner);
        if prepared.threads.len() != self.len() {
            return Err("the number of workers cannot change".to_string());
        }
        let (ready, all_ready) = sync_channel(1);
        for ((next, _), slot) in prepared.threads.iter().zip(&self.slots) {
            if let Some(cpu) = slot.cpu {
                let _ = next.send(Start::Soon(cpu, ready.clone()));
            }
        }
        drop(ready);
        // Nobody says anything; all are ready when nobody could any more.
        let _ = all_ready.recv();
        let (done, results) = channel();
        let (mut threads, mut all_begun) = (Vec::new(), Vec::new());
        for ((next, thread), slot) in prepared.threads.into_iter().zip(&self.slots) {
            let (plan, done) = (Arc::clone(plan), done.clone());
            let (begun, leaving) = sync_channel(0);
            slot.mailbox.post(Command::HandOver(Successor { next, plan, done }, leaving));
            threads.push(thread);
            all_begun.push(begun);
        }
        drop(done);
        let mut swapped: Vec<Option<Swapped>> = vec![None; self.len()];
        while let Ok((worker, result)) = results.recv() {
            swapped[worker] = Some(result);
        }
        drop(all_begun);
        // The old threads are taking their routers apart; nobody waits for that but the end.
        let mut all = lock(&self.threads);
        all.retain(|thread| !thread.is_finished());
        all.append(&mut threads);
        drop(all);
        let all: Option<Vec<Swapped>> = swapped.into_iter().collect();
        Ok((all.ok_or("a worker is dead")?, prepared.reports))
    }

    /// Ends all workers.
    pub fn quit(&self) {
        for slot in &self.slots {
            slot.mailbox.post(Command::Quit);
        }
        for thread in lock(&self.threads).drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.quit();
    }
}
