//! The state of one NF: what its processes ask of it goes to Redis in one order, whichever process it comes from.
//!
//! A thread for each process takes what it asks, and never waits for Redis. One thread asks Redis, all that there is at a
//! time; so a process that replaces another reads what that one has written. Updates that Redis did not take are kept and
//! written later, within bounds.

use std::collections::{HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nf::{Answer, Asked, Flow, HostEnd, Trouble, Update};

use super::connection::Connection;
use super::resp::{self, Reply};
use super::server::{self, Account};
use super::{Policy, State, Why};
use crate::Failure;

/// Bytes that wait to be written at most.
const MOST_PENDING: usize = 16 << 20;

/// What a request holds at most.
const MOST_OPERATIONS: usize = 512;

/// How long it is before Redis is tried again, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];

/// How long an NF may take to receive what it asked for.
const LONGEST_ANSWER: Duration = Duration::from_secs(1);

/// Tells users what happens.
pub(super) type Lines = Box<dyn Fn(String) + Send + Sync>;

/// Whether Redis answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It does.
    Well,
    /// It can be read alone.
    Full,
    /// It does not.
    Away,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Requests for flows that the NF's runtime did not know, and these flows.
    pub(crate) requests: u64,
    pub(crate) flows: u64,
    /// Flows that could not be read.
    pub(crate) unread: u64,
    /// Updates that came, that are stored, and that found no room to wait.
    pub(crate) updates: u64,
    pub(crate) acknowledged: u64,
    pub(crate) lost: u64,
    /// Requests to Redis, and how often it was connected to.
    pub(crate) round_trips: u64,
    pub(crate) connections: u64,
}

#[derive(Debug)]
enum Operation {
    Read { session: Arc<Session>, flows: Vec<Flow>, due: Instant },
    Update { session: Arc<Session>, update: Update },
}

impl Operation {
    /// The flow whose state is written.
    fn updated(&self) -> Option<Flow> {
        match self {
            Self::Read { .. } => None,
            Self::Update { update, .. } => Some(update.flow),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Read { flows, .. } => 128 + size_of_val(&flows[..]),
            Self::Update { update, .. } => 128 + update.value.as_ref().map_or(0, Vec::len),
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Operation>,
    /// Of what waits, and of what is being asked for.
    bytes: usize,
    counts: Counts,
    why: Option<Why>,
    is_started: bool,
    is_over: bool,
}

/// The state of one NF.
pub(crate) struct Store {
    name: String,
    state: State,
    account: Account,
    queue: Mutex<Queue>,
    changed: Condvar,
    standing: AtomicU8,
    /// The NF's processes that are heard, by chain.
    heard: Mutex<Vec<Arc<Session>>>,
    /// That one is not heard any more.
    unheard: Condvar,
    /// What the thread that moves packets waits for.
    wake: Arc<OwnedFd>,
    lines: Lines,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What became of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// Redis has it.
    Yes,
    /// Not yet.
    NotYet,
    /// It is not written any more.
    Never,
}

/// A process of the NF, and what is known of its updates.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its store.
    pub(crate) store: Arc<Store>,
    chain: u64,
    line: HostEnd,
    acknowledged: AtomicU64,
    /// The first and the last of updates that found no room.
    lost: [AtomicU64; 2],
    /// Whether it waits for an answer, and when it got the last.
    asks: Mutex<(bool, Option<Instant>)>,
    broken: AtomicBool,
}

impl Session {
    /// What became of an update and of all before it.
    pub(crate) fn stored(&self, number: u64) -> Stored {
        if number == 0 {
            return Stored::Yes;
        }
        let [first, last] = [0, 1].map(|at| self.lost[at].load(Ordering::Acquire));
        if last != 0 && (first..=last).contains(&number) {
            return Stored::Never;
        }
        match self.acknowledged.load(Ordering::Acquire) >= number {
            true => Stored::Yes,
            false => Stored::NotYet,
        }
    }

    /// When it last waited for an answer, as it may do with the turn.
    pub(crate) fn waited(&self) -> Option<Instant> {
        let (waits, answered) = *locked(&self.asks);
        if waits { Some(Instant::now()) } else { answered }
    }

    /// Whether it said what it cannot.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// From now on it alone is heard, and chains that are started after it. What the processes before have sent is taken up
    /// first: this one reads what they wrote.
    pub(crate) fn begin(&self) {
        self.store.take_up(self.chain);
    }

    fn answer(&self, answers: &[Answer]) {
        // Before it can ask again.
        *locked(&self.asks) = (false, Some(Instant::now()));
        if self.line.answer(answers).is_err() {
            // It has ended, or does not receive what it asked for.
            self.line.close();
        }
    }

    fn refuse(&self) {
        self.broken.store(true, Ordering::Release);
        self.line.close();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.line.close();
    }
}

/// A process that is heard, until this ends.
struct Heard(Arc<Session>);

impl Drop for Heard {
    fn drop(&mut self) {
        let store = &self.0.store;
        locked(&store.heard).retain(|of| !Arc::ptr_eq(of, &self.0));
        store.unheard.notify_all();
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// That of an NF.
    pub(crate) fn new(
        name: &str,
        (prefix, chain): (&str, &str),
        state: &State,
        wake: Arc<OwnedFd>,
        lines: Lines,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            state: state.clone(),
            account: Account::of(prefix, name, chain),
            queue: Mutex::default(),
            changed: Condvar::new(),
            standing: AtomicU8::new(0),
            heard: Mutex::default(),
            unheard: Condvar::new(),
            wake,
            lines,
            thread: Mutex::default(),
        })
    }

    /// Whether Redis answers.
    pub(crate) fn standing(&self) -> Standing {
        match self.standing.load(Ordering::Acquire) {
            0 => Standing::Well,
            1 => Standing::Full,
            _ => Standing::Away,
        }
    }

    /// What was counted, updates that wait, and what is wrong, if something is.
    pub(crate) fn counts(&self) -> (Counts, usize, Option<String>) {
        let queue = locked(&self.queue);
        let waiting = queue.counts.updates - queue.counts.acknowledged - queue.counts.lost;
        let why = queue.why.as_ref().map(Why::to_string);
        (queue.counts, waiting as usize, why)
    }

    /// Hears a process of the NF from now on, until it ends.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn hear(
        self: &Arc<Self>,
        chain: u64,
        line: HostEnd,
    ) -> Result<Arc<Session>, Failure> {
        let failed = |why: std::io::Error| {
            Failure::Impossible(format!("the system gives no thread for the state of NFs: {why}"))
        };
        line.set_running(LONGEST_ANSWER).map_err(failed)?;
        let session = Arc::new(Session {
            store: Arc::clone(self),
            chain,
            line,
            acknowledged: AtomicU64::new(0),
            lost: Default::default(),
            asks: Mutex::default(),
            broken: AtomicBool::new(false),
        });
        let mut queue = locked(&self.queue);
        if !queue.is_started {
            let store = Arc::clone(self);
            let thread = std::thread::Builder::new().name("state".into());
            let thread = thread.spawn(move || store.serve()).map_err(failed)?;
            *locked(&self.thread) = Some(thread);
            queue.is_started = true;
        }
        drop(queue);
        locked(&self.heard).push(Arc::clone(&session));
        let heard = Heard(Arc::clone(&session));
        let thread = std::thread::Builder::new().name("state-of-nf".into());
        thread.spawn(move || heard.0.listen()).map_err(failed)?;
        Ok(session)
    }

    /// Hears processes of chains before this one no more, once all that they have sent is taken up.
    fn take_up(&self, chain: u64) {
        let mut heard = locked(&self.heard);
        let is_before = |of: &Arc<Session>| of.chain < chain;
        heard.iter().filter(|of| is_before(of)).for_each(|of| of.line.close());
        // What is on a line that is closed is bounded, and who takes it up does not wait for Redis.
        while heard.iter().any(is_before) {
            heard = self.unheard.wait(heard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes what waits, if Redis answers, and removes the NF's user.
    pub(crate) fn end(&self) {
        self.take_up(u64::MAX);
        locked(&self.queue).is_over = true;
        self.changed.notify_all();
        let thread = locked(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
            if self.standing() != Standing::Away {
                let _ = server::remove(&self.state, &self.account);
            }
        }
    }

    /// What a process asks is taken up, or there is no room.
    fn push(&self, operation: Operation) -> Result<(), Operation> {
        let mut queue = locked(&self.queue);
        let size = operation.size();
        match &operation {
            Operation::Read { flows, .. } => {
                queue.counts.requests += 1;
                queue.counts.flows += flows.len() as u64;
            }
            Operation::Update { .. } => queue.counts.updates += 1,
        }
        if queue.bytes + size > MOST_PENDING {
            match &operation {
                Operation::Read { flows, .. } => queue.counts.unread += flows.len() as u64,
                Operation::Update { .. } => queue.counts.lost += 1,
            }
            return Err(operation);
        }
        queue.bytes += size;
        queue.waiting.push_back(operation);
        self.changed.notify_all();
        Ok(())
    }

    fn stand(&self, standing: Standing, why: Option<Why>) {
        let number = match standing {
            Standing::Well => 0,
            Standing::Full => 1,
            Standing::Away => 2,
        };
        self.standing.store(number, Ordering::Release);
        let mut queue = locked(&self.queue);
        let kind = |why: &Option<Why>| why.as_ref().map(std::mem::discriminant);
        if kind(&queue.why) != kind(&why) {
            (self.lines)(match &why {
                Some(why) => format!("the state of the NF '{}': {why}", self.name),
                None => format!("the state of the NF '{}' is read and written again", self.name),
            });
        }
        queue.why = why;
        drop(queue);
        self.wake();
    }

    fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }

    /// The thread that asks Redis.
    fn serve(self: Arc<Self>) {
        let mut connection = None;
        let mut pause = PAUSES[0];
        loop {
            let Some(mut work) = self.work(false) else { return };
            let done = match connection.as_mut() {
                Some(connection) => self.ask(connection, &mut work, HashSet::new()),
                None => server::open(&self.state, &self.account).and_then(|opened| {
                    locked(&self.queue).counts.connections += 1;
                    self.ask(connection.insert(opened), &mut work, HashSet::new())
                }),
            };
            self.put_back(work);
            let Err(why) = done else {
                pause = PAUSES[0];
                if self.standing() != Standing::Well {
                    self.stand(Standing::Well, None);
                }
                continue;
            };
            if why.is_of_writes() && connection.is_some() {
                self.stand(Standing::Full, Some(why));
            } else {
                connection = None;
                self.stand(Standing::Away, Some(why));
            }
            let again = Instant::now() + pause;
            pause = (pause * 2).min(PAUSES[1]);
            if !self.rest(again, connection.as_mut()) {
                return;
            }
        }
    }

    /// What is to be asked for next, or what of it is read alone; none if it is over.
    fn work(&self, reads_alone: bool) -> Option<VecDeque<Operation>> {
        let mut queue = locked(&self.queue);
        while queue.waiting.is_empty() && !queue.is_over && !reads_alone {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.waiting.is_empty() && queue.is_over {
            return None;
        }
        if !reads_alone {
            let count = queue.waiting.len().min(MOST_OPERATIONS);
            return Some(queue.waiting.drain(..count).collect());
        }
        let all = std::mem::take(&mut queue.waiting);
        let (reads, rest) = all.into_iter().partition(|of| matches!(of, Operation::Read { .. }));
        queue.waiting = rest;
        Some(reads)
    }

    /// What was not done is done first the next time.
    fn put_back(&self, mut work: VecDeque<Operation>) {
        let mut queue = locked(&self.queue);
        while let Some(operation) = work.pop_back() {
            queue.waiting.push_front(operation);
        }
        queue.bytes = queue.waiting.iter().map(Operation::size).sum();
    }

    /// Waits until Redis is to be tried again; whether it goes on. Meanwhile flows are read if that is possible, or not.
    fn rest(&self, again: Instant, mut connection: Option<&mut Connection>) -> bool {
        loop {
            if let Some(connection) = connection.as_deref_mut() {
                let Some(mut reads) = self.work(true) else { return false };
                let done =
                    reads.is_empty() || self.ask(connection, &mut reads, self.unwritten()).is_ok();
                self.put_back(reads);
                if !done {
                    return true;
                }
            } else {
                self.give_up_reads();
            }
            let queue = locked(&self.queue);
            if queue.is_over {
                return false;
            }
            let left = again.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            drop(self.changed.wait_timeout(queue, left));
        }
    }

    /// Flows of which updates wait: what Redis has of them is old.
    fn unwritten(&self) -> HashSet<Flow> {
        locked(&self.queue).waiting.iter().filter_map(Operation::updated).collect()
    }

    /// Answers those that wait to read that they cannot: at once, or when they have waited for long enough.
    fn give_up_reads(&self) {
        let (holds, now) = (self.state.away == Policy::Hold, Instant::now());
        let mut queue = locked(&self.queue);
        let all = std::mem::take(&mut queue.waiting);
        let mut given_up = Vec::new();
        for operation in all {
            match operation {
                Operation::Read { session, flows, due } if !holds || due <= now => {
                    queue.counts.unread += flows.len() as u64;
                    given_up.push((session, flows.len()));
                }
                other => queue.waiting.push_back(other),
            }
        }
        queue.bytes = queue.waiting.iter().map(Operation::size).sum();
        drop(queue);
        for (session, count) in given_up {
            session.answer(&vec![Answer::Away; count]);
        }
    }

    /// Asks for all of this in one request. What was not done stays, in its order; why, if that is so.
    /// Flows that are `unwritten` are not read.
    fn ask(
        &self,
        connection: &mut Connection,
        work: &mut VecDeque<Operation>,
        mut unwritten: HashSet<Flow>,
    ) -> Result<(), Why> {
        if work.is_empty() {
            return Ok(());
        }
        let mut text = Vec::new();
        work.iter().for_each(|operation| self.push_commands(&mut text, operation));
        locked(&self.queue).counts.round_trips += 1;
        connection.send(&text)?;
        let mut failed = None;
        let mut stays = VecDeque::new();
        while let Some(operation) = work.front() {
            match operation {
                Operation::Update { session, update } => {
                    match connection.reply() {
                        Ok(Reply::Error(text)) => {
                            failed.get_or_insert_with(|| Why::of(&text));
                        }
                        Ok(_) => {}
                        Err(why) => return Err(self.interrupted(why.into(), stays, work)),
                    }
                    // Those behind one that was refused are written once more: in the end, the last counts.
                    if failed.is_none() {
                        session.acknowledged.store(update.number, Ordering::Release);
                        locked(&self.queue).counts.acknowledged += 1;
                        work.pop_front();
                    } else {
                        unwritten.insert(update.flow);
                        stays.extend(work.pop_front());
                    }
                }
                Operation::Read { session, flows, .. } => {
                    let mut answers = Vec::with_capacity(flows.len());
                    for flow in flows {
                        answers.push(match connection.reply() {
                            Ok(_) if unwritten.contains(flow) => Answer::Away,
                            Ok(Reply::Nothing) => Answer::Absent,
                            Ok(Reply::Bytes(value)) => Answer::Value(value),
                            // Something else is kept there, which no NF wrote.
                            Ok(Reply::Error(text)) if text.starts_with("WRONGTYPE") => Answer::Away,
                            Ok(Reply::Error(text)) => {
                                failed.get_or_insert_with(|| Why::of(&text));
                                Answer::Away
                            }
                            Ok(_) => Answer::Away,
                            Err(why) => return Err(self.interrupted(why.into(), stays, work)),
                        });
                    }
                    let unread = answers.iter().filter(|of| **of == Answer::Away).count();
                    locked(&self.queue).counts.unread += unread as u64;
                    session.answer(&answers);
                    work.pop_front();
                }
            }
        }
        *work = stays;
        self.wake();
        failed.map_or(Ok(()), Err)
    }

    fn interrupted(
        &self,
        why: Why,
        mut stays: VecDeque<Operation>,
        work: &mut VecDeque<Operation>,
    ) -> Why {
        stays.append(work);
        *work = stays;
        self.wake();
        why
    }

    fn push_commands(&self, text: &mut Vec<u8>, operation: &Operation) {
        let key = |flow: &Flow| [self.account.prefix.as_bytes(), &flow.0].concat();
        match operation {
            Operation::Read { flows, .. } => {
                flows.iter().for_each(|flow| resp::push(text, &[b"GET", &key(flow)]));
            }
            Operation::Update { update, .. } => match (&update.value, self.state.expire) {
                (None, _) => resp::push(text, &[b"DEL", &key(&update.flow)]),
                (Some(value), None) => resp::push(text, &[b"SET", &key(&update.flow), value]),
                (Some(value), Some(after)) => {
                    let after = after.as_millis().to_string();
                    let words = [b"SET", &key(&update.flow)[..], value, b"PX", after.as_bytes()];
                    resp::push(text, &words);
                }
            },
        }
    }
}

impl Session {
    /// Takes what a process asks, until it ends.
    fn listen(self: &Arc<Self>) {
        let store = Arc::clone(&self.store);
        let mut last = 0;
        loop {
            let asked = match self.line.asked() {
                Ok(asked) => asked,
                Err(Trouble::Ended | Trouble::System(_)) => return,
                Err(_) => return self.refuse(),
            };
            match asked {
                Asked::Read(flows) => {
                    if std::mem::replace(&mut locked(&self.asks).0, true) {
                        // It has an answer to wait for.
                        return self.refuse();
                    }
                    let count = flows.len();
                    if store.standing() == Standing::Away && store.state.away != Policy::Hold {
                        let counts = &mut locked(&store.queue).counts;
                        counts.requests += 1;
                        counts.flows += count as u64;
                        counts.unread += count as u64;
                        self.answer(&vec![Answer::Away; count]);
                        continue;
                    }
                    let due = Instant::now() + store.state.wait;
                    let session = Arc::clone(self);
                    if store.push(Operation::Read { session, flows, due }).is_err() {
                        self.answer(&vec![Answer::Away; count]);
                    }
                }
                Asked::Update(updates) => {
                    for update in updates {
                        let number = update.number;
                        if number != last + 1 {
                            return self.refuse();
                        }
                        last = number;
                        let session = Arc::clone(self);
                        if store.push(Operation::Update { session, update }).is_err() {
                            self.lose(number);
                        }
                    }
                }
            }
        }
    }

    fn lose(&self, number: u64) {
        let [first, last] = &self.lost;
        if last.load(Ordering::Relaxed) == 0 {
            first.store(number, Ordering::Release);
        }
        // Those between were stored, and their packets are gone or dropped: no packet leaves that should not.
        last.store(number, Ordering::Release);
    }
}
