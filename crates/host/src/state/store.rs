//! The state of one NF: what its processes ask of it goes to Redis in one order, whichever process it comes from.
//!
//! A thread for each process takes what it asks, and never waits for Redis. One thread asks Redis, all that there is at a
//! time; so a process that replaces another reads what that one has written. Updates that Redis did not take are kept and
//! written later, within bounds. What the thread that moves packets reads ahead goes the same path.

use std::collections::{HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use nf::{Answer, Asked, Flow, HostEnd, Trouble, Update};

use super::ahead::Ahead;
use super::connection::Connection;
use super::resp::{self, Reply};
use super::server::{self, Account};
use super::{Policy, State, Why};
use crate::Failure;

/// Bytes that wait to be written at most.
const MOST_PENDING: usize = 16 << 20;

/// Commands after which a request holds no more messages.
const MOST_COMMANDS: usize = 1024;

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
    /// Of these, flows that had been read ahead.
    pub(crate) ahead: u64,
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

/// What is asked at a time: all of it is done, or none.
#[derive(Debug)]
enum Asks {
    /// Flows that a process reads, and what is known of them without Redis.
    Read { flows: Vec<Flow>, known: Vec<Option<Answer>>, due: Instant },
    /// Flows that it will read, by the number of the request.
    Ahead { flows: Vec<Flow>, number: u64 },
    /// What it keeps.
    Update(Vec<Update>),
}

#[derive(Debug)]
struct Operation {
    session: Arc<Session>,
    asks: Asks,
    /// Bytes that it takes while it waits.
    size: usize,
    /// Commands for Redis, at most.
    commands: usize,
}

/// Flows whose updates wait.
type Unwritten = HashSet<Flow, RandomState>;

impl Operation {
    fn new(session: &Arc<Session>, asks: Asks) -> Self {
        let value = |update: &Update| 128 + update.value.as_ref().map_or(0, Vec::len);
        let (size, commands) = match &asks {
            Asks::Read { flows, .. } | Asks::Ahead { flows, .. } => {
                (128 + size_of_val(&flows[..]), flows.len())
            }
            Asks::Update(updates) => (updates.iter().map(value).sum(), updates.len()),
        };
        Self { session: Arc::clone(session), asks, size, commands }
    }

    /// Its updates.
    fn updates(&self) -> &[Update] {
        match &self.asks {
            Asks::Update(updates) => updates,
            Asks::Read { .. } | Asks::Ahead { .. } => &[],
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Operation>,
    /// Of what waits, and of what is being asked for.
    bytes: usize,
    counts: Counts,
    ahead: Ahead,
    why: Option<Why>,
    is_started: bool,
    is_over: bool,
}

impl Queue {
    /// Takes what was asked for out of the account; what of it has to be asked for once more comes first.
    fn put_back(&mut self, asked: usize, mut work: VecDeque<Operation>) {
        self.bytes -= asked;
        while let Some(operation) = work.pop_back() {
            self.bytes += operation.size;
            self.waiting.push_front(operation);
        }
    }

    /// Gives up what is read ahead: who needs it asks for it.
    fn drop_ahead(&mut self) {
        self.waiting.retain(|of| !matches!(of.asks, Asks::Ahead { .. }));
        self.bytes = self.waiting.iter().map(|of| of.size).sum();
        self.ahead.give_up();
    }
}

/// The state of one NF.
pub(crate) struct Store {
    name: String,
    state: State,
    account: Account,
    queue: Mutex<Queue>,
    changed: Condvar,
    standing: AtomicU8,
    /// The last request for flows ahead that is done.
    read_ahead: AtomicU64,
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
    /// The fields of the flows that its runtime reads before batches; 0 if that is not known.
    fields: AtomicU8,
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

    /// The fields of the flows that its runtime reads before batches, if that is known.
    pub(super) fn fields(&self) -> Option<u8> {
        Some(self.fields.load(Ordering::Relaxed)).filter(|fields| *fields != 0)
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
            read_ahead: AtomicU64::new(0),
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

    /// Flows that the NF's runtime holds at most.
    pub(super) fn cache(&self) -> usize {
        self.state.cache as usize
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
            fields: AtomicU8::new(0),
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

    /// What a process asks is taken up; whether there is room.
    fn push(&self, operation: Operation) -> bool {
        let mut queue = locked(&self.queue);
        let queue = &mut *queue;
        let counts = &mut queue.counts;
        let has_room = queue.bytes + operation.size <= MOST_PENDING;
        match &operation.asks {
            Asks::Read { flows, .. } if !has_room => counts.unread += flows.len() as u64,
            Asks::Read { .. } | Asks::Ahead { .. } => {}
            Asks::Update(updates) => {
                counts.updates += updates.len() as u64;
                if !has_room {
                    counts.lost += updates.len() as u64;
                }
                // What was read before is old.
                updates.iter().for_each(|update| queue.ahead.forget(&update.flow));
            }
        }
        if has_room {
            queue.bytes += operation.size;
            queue.waiting.push_back(operation);
            self.changed.notify_all();
        }
        has_room
    }

    /// Reads flows that a process will read; the number of the request. None if Redis does not answer, or there is no room.
    pub(super) fn read_ahead(&self, session: &Arc<Session>, flows: &[Flow]) -> Option<u64> {
        let mut queue = locked(&self.queue);
        if self.standing() != Standing::Well || queue.bytes + size_of_val(flows) > MOST_PENDING {
            return None;
        }
        let number = queue.ahead.ask(flows);
        let asks = Asks::Ahead { flows: flows.to_vec(), number };
        let operation = Operation::new(session, asks);
        queue.bytes += operation.size;
        queue.waiting.push_back(operation);
        self.changed.notify_all();
        Some(number)
    }

    /// Whether what was read ahead by a request is there, or given up.
    pub(super) fn has_read(&self, number: u64) -> bool {
        self.read_ahead.load(Ordering::Acquire) >= number
    }

    /// What was read ahead of flows that a process reads now.
    fn take_ahead(&self, flows: &[Flow]) -> Vec<Option<Answer>> {
        let mut queue = locked(&self.queue);
        queue.counts.requests += 1;
        queue.counts.flows += flows.len() as u64;
        let known: Vec<Option<Answer>> = flows.iter().map(|flow| queue.ahead.take(flow)).collect();
        queue.counts.ahead += known.iter().flatten().count() as u64;
        known
    }

    /// The batch for which these requests read ahead is done: what nobody asked for is forgotten. Whether reading ahead helps.
    pub(super) fn forget(&self, number: u64) -> bool {
        locked(&self.queue).ahead.end(number)
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
        if standing != Standing::Well {
            queue.drop_ahead();
            self.read_ahead.store(queue.ahead.asked(), Ordering::Release);
        }
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
            let asked = work.iter().map(|of| of.size).sum();
            let done = match connection.as_mut() {
                Some(connection) => self.ask(connection, &mut work, Unwritten::default()),
                None => server::open(&self.state, &self.account).and_then(|opened| {
                    locked(&self.queue).counts.connections += 1;
                    self.ask(connection.insert(opened), &mut work, Unwritten::default())
                }),
            };
            locked(&self.queue).put_back(asked, work);
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
            let mut commands = 0;
            let is_within = |of: &&Operation| {
                let has_room = commands < MOST_COMMANDS;
                commands += of.commands;
                has_room
            };
            let count = queue.waiting.iter().take_while(is_within).count();
            return Some(queue.waiting.drain(..count).collect());
        }
        let all = std::mem::take(&mut queue.waiting);
        let (reads, rest) = all.into_iter().partition(|of| matches!(of.asks, Asks::Read { .. }));
        queue.waiting = rest;
        Some(reads)
    }

    /// Waits until Redis is to be tried again; whether it goes on. Meanwhile flows are read if that is possible, or not.
    fn rest(&self, again: Instant, mut connection: Option<&mut Connection>) -> bool {
        loop {
            if let Some(connection) = connection.as_deref_mut() {
                let Some(mut reads) = self.work(true) else { return false };
                let asked = reads.iter().map(|of| of.size).sum();
                let done = self.ask(connection, &mut reads, self.unwritten()).is_ok();
                locked(&self.queue).put_back(asked, reads);
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
    fn unwritten(&self) -> Unwritten {
        let queue = locked(&self.queue);
        queue.waiting.iter().flat_map(Operation::updates).map(|update| update.flow).collect()
    }

    /// Answers those that wait to read that they cannot: at once, or when they have waited for long enough.
    fn give_up_reads(&self) {
        let (holds, now) = (self.state.away == Policy::Hold, Instant::now());
        let mut queue = locked(&self.queue);
        let all = std::mem::take(&mut queue.waiting);
        let mut given_up = Vec::new();
        for operation in all {
            match &operation.asks {
                Asks::Read { flows, due, .. } if !holds || *due <= now => {
                    let count = flows.len();
                    queue.counts.unread += count as u64;
                    queue.bytes -= operation.size;
                    given_up.push((operation.session, count));
                }
                _ => queue.waiting.push_back(operation),
            }
        }
        drop(queue);
        for (session, count) in given_up {
            session.answer(&vec![Answer::Away; count]);
        }
    }

    /// Asks for all of this in one request. Reads that were answered are gone after it, and all updates, if none failed; why one did.
    /// Flows that are `unwritten` are not read.
    fn ask(
        &self,
        connection: &mut Connection,
        work: &mut VecDeque<Operation>,
        mut unwritten: Unwritten,
    ) -> Result<(), Why> {
        if work.is_empty() {
            return Ok(());
        }
        let written = written(work);
        connection.send(&self.commands(work, &written))?;
        locked(&self.queue).counts.round_trips += 1;
        let mut written = written.into_iter();
        let mut failed = None;
        let mut stays = VecDeque::new();
        while let Some(operation) = work.front_mut() {
            let mut read = |flow: &Flow| -> std::io::Result<Answer> {
                Ok(match connection.reply()? {
                    _ if unwritten.contains(flow) => Answer::Away,
                    Reply::Nothing => Answer::Absent,
                    Reply::Bytes(value) => Answer::Value(value),
                    // Something else is kept there, which no NF wrote.
                    Reply::Error(text) if text.starts_with("WRONGTYPE") => Answer::Away,
                    Reply::Error(text) => {
                        failed.get_or_insert_with(|| Why::of(&text));
                        Answer::Away
                    }
                    _ => Answer::Away,
                })
            };
            let session = &operation.session;
            let done: std::io::Result<()> = match &mut operation.asks {
                Asks::Read { flows, known, .. } => {
                    let all = flows.iter().zip(known.iter_mut());
                    let answers = all.map(|(flow, known)| match known.take() {
                        Some(answer) => Ok(answer),
                        None => read(flow),
                    });
                    answers.collect::<std::io::Result<Vec<_>>>().map(|answers| {
                        let unread = answers.iter().filter(|of| **of == Answer::Away).count();
                        locked(&self.queue).counts.unread += unread as u64;
                        session.answer(&answers);
                    })
                }
                Asks::Ahead { flows, number } => {
                    let answers: std::io::Result<Vec<_>> = flows.iter().map(read).collect();
                    answers.map(|answers| {
                        locked(&self.queue).ahead.put(*number, flows, answers);
                        self.read_ahead.store(*number, Ordering::Release);
                    })
                }
                Asks::Update(updates) => updates.iter().try_for_each(|update| {
                    if written.next() == Some(true)
                        && let Reply::Error(text) = connection.reply()?
                    {
                        failed.get_or_insert_with(|| Why::of(&text));
                    }
                    if failed.is_some() {
                        unwritten.insert(update.flow);
                    }
                    Ok(())
                }),
            };
            if let Err(why) = done {
                // All of them are written once more: in the end, the last counts.
                stays.append(work);
                *work = stays;
                self.wake();
                return Err(why.into());
            }
            let done = work.pop_front();
            stays.extend(done.filter(|of| matches!(of.asks, Asks::Update(_))));
        }
        match failed {
            Some(_) => *work = stays,
            None => {
                let mut counts = 0;
                for Operation { session, asks, .. } in &stays {
                    if let Asks::Update(updates) = asks
                        && let Some(last) = updates.last()
                    {
                        session.acknowledged.store(last.number, Ordering::Release);
                        counts += updates.len() as u64;
                    }
                }
                locked(&self.queue).counts.acknowledged += counts;
            }
        }
        self.wake();
        failed.map_or(Ok(()), Err)
    }

    /// The commands for what is asked, but for updates that are not written.
    fn commands(&self, work: &VecDeque<Operation>, written: &[bool]) -> Vec<u8> {
        let mut text = Vec::new();
        let mut key = self.account.prefix.clone().into_bytes();
        let prefix = key.len();
        let mut of = |flow: &Flow, command: &mut dyn FnMut(&[u8])| {
            key.truncate(prefix);
            key.extend_from_slice(&flow.0);
            command(&key);
        };
        let expire = self.state.expire.map(|after| after.as_millis().to_string());
        let mut written = written.iter();
        for operation in work {
            match &operation.asks {
                Asks::Read { flows, known, .. } => {
                    let unknown = flows.iter().zip(known).filter(|(_, known)| known.is_none());
                    for (flow, _) in unknown {
                        of(flow, &mut |key| resp::push(&mut text, &[b"GET", key]));
                    }
                }
                Asks::Ahead { flows, .. } => {
                    for flow in flows {
                        of(flow, &mut |key| resp::push(&mut text, &[b"GET", key]));
                    }
                }
                Asks::Update(updates) => {
                    for update in updates.iter().filter(|_| written.next() == Some(&true)) {
                        of(&update.flow, &mut |key| match (&update.value, &expire) {
                            (None, _) => resp::push(&mut text, &[b"DEL", key]),
                            (Some(value), None) => resp::push(&mut text, &[b"SET", key, value]),
                            (Some(value), Some(after)) => {
                                let words = [b"SET", key, value, b"PX", after.as_bytes()];
                                resp::push(&mut text, &words);
                            }
                        });
                    }
                }
            }
        }
        text
    }
}

/// Of each update of this work, whether it is written: it is, unless the flow is updated once more before it is read. Nobody would
/// see it, and no packet leaves before all are acknowledged.
fn written(work: &VecDeque<Operation>) -> Vec<bool> {
    let mut later = Unwritten::default();
    let mut written = Vec::new();
    for operation in work.iter().rev() {
        match &operation.asks {
            Asks::Read { flows, .. } | Asks::Ahead { flows, .. } => {
                for flow in flows {
                    later.remove(flow);
                }
            }
            Asks::Update(updates) => {
                written.extend(updates.iter().rev().map(|update| later.insert(update.flow)));
            }
        }
    }
    written.reverse();
    written
}

impl Session {
    /// Takes what a process asks, until it ends.
    fn listen(self: &Arc<Self>) {
        let store = Arc::clone(&self.store);
        let (mut last, mut has_read) = (0, false);
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
                    // The first that it reads are those of its first batch.
                    if !has_read {
                        has_read = true;
                        self.fields.store(flows[0].0[0], Ordering::Relaxed);
                    }
                    let count = flows.len();
                    let known = store.take_ahead(&flows);
                    if known.iter().all(Option::is_some) {
                        let answers: Vec<Answer> = known.into_iter().flatten().collect();
                        self.answer(&answers);
                        continue;
                    }
                    if store.standing() == Standing::Away && store.state.away != Policy::Hold {
                        locked(&store.queue).counts.unread += count as u64;
                        self.answer(&vec![Answer::Away; count]);
                        continue;
                    }
                    let due = Instant::now() + store.state.wait;
                    let read = Asks::Read { flows, known, due };
                    if !store.push(Operation::new(self, read)) {
                        self.answer(&vec![Answer::Away; count]);
                    }
                }
                Asked::Update(updates) => {
                    let mut numbers = last + 1..;
                    let is_next = |update: &Update| numbers.next() == Some(update.number);
                    if !updates.iter().all(is_next) {
                        return self.refuse();
                    }
                    let first = last + 1;
                    last += updates.len() as u64;
                    if !store.push(Operation::new(self, Asks::Update(updates))) {
                        self.lose(first, last);
                    }
                }
            }
        }
    }

    fn lose(&self, from: u64, to: u64) {
        let [first, last] = &self.lost;
        if last.load(Ordering::Relaxed) == 0 {
            first.store(from, Ordering::Release);
        }
        // Those between were stored, and their packets are gone or dropped: no packet leaves that should not.
        last.store(to, Ordering::Release);
        self.store.wake();
    }
}
