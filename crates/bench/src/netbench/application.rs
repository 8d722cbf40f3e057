//! The applications: a sender and a receiver, and a client and a server, which live in a namespace each.
//!
//! Alone, an application starts at once. Under [`Orders`], it first exchanges packets with its peer until both have heard
//! each other, so that switches have learnt where they are, is quiet then, and starts when it is told to.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddrV4;
use std::rc::Rc;
use std::str::FromStr;
use std::sync::mpsc::{Receiver as Channel, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use dataplane::clock::Time;
use dataplane::io::{Bindings, Datagrams, Interfaces, Polling, Waiter};
use elements::device::{Device, DeviceRequest, Wake};
use host::fabric::eal;
use host::manifest::Policy;
use host::scheduler::{Class, set_class};
use net::{Batch, Pool};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::Carrier;
use super::devices::{Counted, Nothing, Totals, Touched};
use super::frame::{Endpoint, PORT, SIZES, is_from, template, turn_back};
use super::trains::{Departed, Load, Trains};
use crate::receive::{Expected, Receipt, Receiver, StreamReport};
use crate::report::Percentiles;
use crate::send::{self, Lost, Step};
use crate::stamp::{HostClock, Stamp, StampClock};
use crate::statistics::latencies;

/// What an application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sends packets to a receiver.
    Send,
    /// Counts packets of a sender.
    Recv,
    /// Sends packets to a server, and takes the time until they are back.
    Client,
    /// Sends packets of a client back.
    Server,
}

impl Role {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 4] = [
        ("send", Self::Send),
        ("recv", Self::Recv),
        ("client", Self::Client),
        ("server", Self::Server),
    ];

    /// What its peer does.
    pub fn peer(self) -> Self {
        match self {
            Self::Send => Self::Recv,
            Self::Recv => Self::Send,
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Whether it sends or asks on its own.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Send | Self::Client)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(_, role)| role == self).map_or("", |(name, _)| name))
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        super::named(text, &Self::ALL)
    }
}

/// How an application is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it does.
    pub role: Role,
    /// Who it is.
    pub local: Endpoint,
    /// Who its peer is.
    pub remote: Endpoint,
    /// How its packets are carried.
    pub carrier: Carrier,
    /// Its interface, where they are carried as frames, or the path of its socket.
    pub interface: Option<String>,
    /// What DPDK is started with, if it carries them; [`eal`] if nothing is said.
    pub eal: Option<String>,
    /// Packets per second; as many as the device takes if nothing is said.
    pub rate: Option<f64>,
    /// Bytes of a frame, without frame check sequence.
    pub size: usize,
    /// Packets that are due at once, and given to the device at a time.
    pub burst: usize,
    /// Whether each byte of a payload is written and read.
    pub touches: bool,
    /// How long it sends, or receives if nobody says when to stop.
    pub seconds: Option<f64>,
    /// How it waits for packets.
    pub polling: Polling,
    /// The stream of its stamps: others are counted by nobody.
    pub stream: u8,
}

/// What an application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// To send nothing any more that is not measured.
    Quiet,
    /// To start.
    Start,
    /// To stop, once so many packets have come or nothing comes any more.
    Stop(u64),
}

/// What an application says of itself, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its interface is open.
    Ready,
    /// It has heard its peer.
    Connected,
    /// It sends nothing.
    Quiet,
    /// It has started.
    Started,
}

/// Who tells an application what to do, and hears of it.
pub struct Orders<'a> {
    /// What it is told; it ends when nobody can tell it anything any more.
    pub orders: Channel<Order>,
    /// What it says.
    pub tell: &'a dyn Fn(State),
    /// What came of it.
    pub done: &'a dyn Fn(&Outcome),
}

/// What an application did in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Packets that it gave to its device.
    pub attempted: u64,
    /// Packets that the device took and has not lost.
    pub sent: u64,
    /// Packets that came, each once.
    pub received: u64,
    /// The mean of the round trips of those, in nanoseconds.
    pub round_trip: Option<f64>,
}

/// What came of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Packets that it gave to its device, or that were due at the rate that was asked for.
    pub attempted: u64,
    /// Packets that the device sent.
    pub sent: u64,
    /// Packets that came, each once.
    pub received: u64,
    /// Packets that came again.
    pub duplicates: u64,
    /// Packets that came after one that was sent later.
    pub reordered: u64,
    /// Packets that its socket lost, as it did not take them in time.
    pub overrun: u64,
    /// Seconds in which it sent, or from the first packet that came to the last.
    pub seconds: f64,
    /// Seconds of processor time that it took meanwhile, the kernel's for it among them.
    pub cpu_seconds: f64,
    /// Round trips in nanoseconds, each with how many packets took it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_trips: Vec<(u64, u64)>,
    /// What its device reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl Outcome {
    /// Of its round trips; nothing if there were none.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let mut all = latencies();
        self.round_trips.iter().for_each(|(value, count)| all.saturating_record_n(*value, *count));
        Percentiles::of(&all)
    }
}

/// More packets per second than any sender sends.
const UNREACHED: f64 = 1e9;
/// The time between packets by which peers find each other.
const CALL: Duration = Duration::from_millis(2);
/// The longest wait, after which it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(5);
/// After packets have come, more are waited for so many nanoseconds.
const IDLE: u64 = 150_000_000;
/// How long a device may take until its link is up, in nanoseconds.
const LINK: u64 = 5_000_000_000;
/// Before a packet is due, a client is awake for so many nanoseconds: waking up takes some of it.
const AWAKE: u64 = 100_000;

/// An application with its interface open.
struct Application<'a> {
    options: &'a Options,
    interfaces: Interfaces,
    input: Box<dyn Device>,
    output: Box<dyn Device>,
    clock: HostClock,
    is_stopped: &'a dyn Fn() -> bool,
    orders: Option<&'a Orders<'a>>,
    each_second: Option<&'a dyn Fn(&Second)>,
    pool: Pool,
    batch: Batch,
}

/// Runs an application to its end. `is_stopped` is whether it is interrupted; `each_second` is told what it did. Under orders, its
/// interface stays open until nobody has any for it: a port may forget its counts with who was connected.
///
/// # Errors
/// If its interface cannot be opened, or fails.
pub fn run(
    options: &Options,
    interfaces: &Interfaces,
    orders: Option<&Orders<'_>>,
    each_second: Option<&dyn Fn(&Second)>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Outcome, String> {
    let (devices, _open) = open(options, interfaces)?;
    let outcome = run_over(options, (devices, interfaces), orders, each_second, is_stopped)?;
    if let Some(orders) = orders {
        (orders.done)(&outcome);
        let is_there =
            || !matches!(orders.orders.recv_timeout(LOOK), Err(RecvTimeoutError::Disconnected));
        while !is_stopped() && is_there() {}
    }
    Ok(outcome)
}

/// Runs an application over what it receives from and sends by, of these interfaces.
///
/// # Errors
/// If a device fails.
pub fn run_over(
    options: &Options,
    ([input, output], interfaces): (Devices, &Interfaces),
    orders: Option<&Orders<'_>>,
    each_second: Option<&dyn Fn(&Second)>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Outcome, String> {
    let mut application = Application {
        options,
        interfaces: interfaces.clone(),
        input,
        output,
        clock: HostClock::new(StampClock::Monotonic),
        is_stopped,
        orders,
        each_second,
        pool: Pool::new(),
        batch: Batch::new(),
    };
    if !application.find_peer()? {
        return Err("it was ended before it started".into());
    }
    let before = cpu_seconds();
    let mut outcome = match options.role {
        Role::Send => application.send(),
        Role::Recv => application.receive(),
        Role::Client => application.ask(),
        Role::Server => application.answer(),
    }?;
    outcome.cpu_seconds = cpu_seconds() - before;
    Ok(outcome)
}

/// Megabytes that DPDK has in an application, if nothing is said.
pub(super) const MEMORY: u32 = 128;

/// The real-time priority of applications that take turns on a CPU.
const TURNS: u32 = 1;
/// The real-time priority of the thread that hears orders for an application that takes turns on a CPU: it is heard at once.
pub const ABOVE_TURNS: u32 = 2;

/// Gives the calling thread a real-time priority (FIFO). Threads of one priority take turns at once when they yield, while the
/// scheduler of normal ones keeps shares of time. It is as well if the kernel refuses: turns are longer then.
pub fn be_real_time(priority: u32) {
    let _ = set_class(0, Class { policy: Policy::Fifo, priority, slice: None });
}

/// The name of the device.
const IO: &str = "io";

/// What it receives from, and sends by.
/// What is received from, and what is sent by.
type Devices = [Box<dyn Device>; 2];

/// The devices of an application, and what keeps them open.
fn open(
    options: &Options,
    interfaces: &Interfaces,
) -> Result<(Devices, Option<Box<dyn Device>>), String> {
    if let Carrier::Udp { many } = &options.carrier {
        let headers = template(&options.remote, &options.local, *SIZES.start())?;
        let headers = *headers.first_chunk().ok_or("a frame without headers")?;
        let [local, remote] =
            [&options.local, &options.remote].map(|of| SocketAddrV4::new(of.ip, PORT));
        let opened = Datagrams::open(local, remote, headers, if *many { BURST } else { 1 });
        let refused = |why: std::io::Error| {
            let mend = match why.kind() {
                ErrorKind::AddrInUse => {
                    "; another program has this address and port: end it, or take another address"
                }
                ErrorKind::AddrNotAvailable => {
                    "; no interface here has this address: `ip address add` gives it to one"
                }
                _ => "",
            };
            format!("UDP socket from {local} to {remote}: {why}{mend}")
        };
        let (input, output) = opened.map_err(refused)?;
        return Ok(([Box::new(input), Box::new(output)], None));
    }
    let eal = Some(options.eal.clone().unwrap_or_else(|| eal(MEMORY, false, false)));
    let mut bindings = Bindings { interfaces: interfaces.clone(), eal, ..Bindings::default() };
    let binding = options.carrier.binding(options.interface.as_deref())?;
    bindings.inputs.insert(IO.into(), binding.clone());
    bindings.outputs.insert(IO.into(), binding);
    if let Carrier::Frames(choice) = &options.carrier {
        let _ = bindings.choose(choice);
    }
    let mut open = |receive| -> Result<Box<dyn Device>, String> {
        Ok(bindings.open_device(&DeviceRequest::Interface { name: IO.into(), receive })?)
    };
    Ok(([open(true)?, open(false)?], Some(open(false)?)))
}

/// Tells what was done in each second.
struct Seconds<'a> {
    tell: Option<&'a dyn Fn(&Second)>,
    next: u64,
    before: Totals,
}

/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

impl<'a> Seconds<'a> {
    fn new(tell: Option<&'a dyn Fn(&Second)>, now: u64) -> Self {
        Self { tell, next: now + SECOND, before: Totals::default() }
    }

    /// It is so late, and so much was done.
    fn pass(&mut self, now: u64, totals: impl FnOnce() -> Totals) {
        let Some(tell) = self.tell.filter(|_| now >= self.next) else { return };
        let (now_done, before) = (totals(), self.before);
        let received = now_done.received - before.received;
        let sum = now_done.round_trips.map(|sum| sum - before.round_trips.unwrap_or_default());
        tell(&Second {
            attempted: now_done.attempted - before.attempted,
            sent: now_done.sent.saturating_sub(before.sent),
            received,
            round_trip: sum.filter(|_| received > 0).map(|sum| sum / received as f64),
        });
        self.before = now_done;
        self.next += SECOND * ((now - self.next) / SECOND + 1);
    }
}

/// The processor time of this process.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Application<'_> {
    fn tell(&self, state: State) {
        self.orders.iter().for_each(|orders| (orders.tell)(state));
    }

    /// Whether it is to end at once; a new order, if there is one.
    fn next_order(&self) -> (bool, Option<Order>) {
        let Some(orders) = &self.orders else { return ((self.is_stopped)(), None) };
        match orders.orders.try_recv() {
            Ok(order) => (false, Some(order)),
            Err(TryRecvError::Disconnected) => (true, None),
            Err(TryRecvError::Empty) => ((self.is_stopped)(), None),
        }
    }

    /// Calls its peer until it is to be quiet, and waits until it is to start; whether it is.
    fn find_peer(&mut self) -> Result<bool, String> {
        if self.orders.is_none() {
            if self.options.carrier.is_dpdk() && self.options.role.is_active() {
                self.await_link()?;
            }
            return Ok(true);
        }
        self.tell(State::Ready);
        let call = self.call()?;
        let Options { local, remote, .. } = self.options;
        let (mut is_connected, mut is_quiet) = (false, false);
        loop {
            let order = match &self.orders {
                Some(Orders { orders, .. }) => orders.recv_timeout(CALL),
                None => Ok(Order::Start),
            };
            match order {
                Ok(Order::Start) => break,
                Ok(Order::Quiet) => {
                    is_quiet = true;
                    // From here on, as one that has the priority would keep its peer from starting.
                    if self.options.polling == Polling::Yield {
                        be_real_time(TURNS);
                    }
                    self.tell(State::Quiet);
                }
                Ok(Order::Stop(_)) | Err(RecvTimeoutError::Disconnected) => return Ok(false),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if (self.is_stopped)() {
                return Ok(false);
            }
            self.input.receive(BURST, &mut self.batch, &mut self.pool)?;
            let hears = self.batch.iter().any(|packet| is_from(packet.data(), remote, local));
            self.pool.recycle_all(&mut self.batch);
            if hears && !is_connected {
                is_connected = true;
                self.tell(State::Connected);
            }
            if !is_quiet {
                self.batch.push(self.pool.packet(&call));
                self.output.send(&mut self.batch, &mut self.pool)?;
                self.pool.recycle_all(&mut self.batch);
            }
        }
        // What was lost until here is not of the load.
        Lost::collect((&mut Vec::new(), &mut Vec::new()), &mut *self.output, true);
        Lost::collect((&mut Vec::new(), &mut Vec::new()), &mut *self.input, false);
        self.tell(State::Started);
        Ok(true)
    }

    /// A frame that is not counted.
    fn call(&self) -> Result<Vec<u8>, String> {
        let Options { local, remote, size, .. } = self.options;
        template(local, remote, *size)
    }

    /// Waits until the device takes a frame: its other end answers a while after it was opened, and until then its link is down.
    fn await_link(&mut self) -> Result<(), String> {
        let call = self.call()?;
        let end = self.clock.now() + LINK;
        loop {
            self.clock.wait_until(self.clock.now() + IDLE);
            self.batch.push(self.pool.packet(&call));
            self.output.send(&mut self.batch, &mut self.pool)?;
            let waits = !self.batch.is_empty();
            self.pool.recycle_all(&mut self.batch);
            let mut lost = Vec::new();
            Lost::collect((&mut lost, &mut Vec::new()), &mut *self.output, true);
            let is_taken = !waits && Lost::sum(&lost) == 0;
            if is_taken || self.clock.now() > end || (self.is_stopped)() {
                return Ok(());
            }
        }
    }

    /// What is sent, and when.
    fn load(&self) -> Result<Load, String> {
        let Options { local, remote, size, touches, rate, burst, seconds, stream, .. } =
            self.options;
        Ok(Load {
            frame: template(local, remote, *size)?,
            stream: *stream,
            rate: rate.unwrap_or(UNREACHED),
            burst: *burst,
            seconds: *seconds,
            touches: *touches,
        })
    }

    /// So many packets of its stream.
    fn expected(&self, packets: u64) -> Expected {
        let streams = BTreeMap::from([(self.options.stream, packets.max(1))]);
        Expected { each: None, streams }
    }

    /// What it sends by, counted.
    fn counted_output(&mut self) -> Counted {
        let device = std::mem::replace(&mut self.output, Box::new(Nothing));
        Counted { device, done: Rc::default(), yields: self.options.polling == Polling::Yield }
    }

    /// What was sent. Packets that were due count as attempted, whether or not there was time for them.
    fn sent(&self, sent: &Departed) -> Outcome {
        let due = self.options.rate.zip(self.options.seconds).map(|(rate, s)| (rate * s) as u64);
        let due = due.filter(|_| !(self.is_stopped)()).unwrap_or(0);
        Outcome {
            attempted: sent.packets.max(due),
            sent: sent.packets.saturating_sub(Lost::sum(&sent.lost)),
            seconds: sent.seconds,
            notices: sent.notices.clone(),
            ..Outcome::default()
        }
    }

    /// The sender.
    fn send(mut self) -> Result<Outcome, String> {
        // Where no rate is asked for, all is due at once, and time decides when it ends.
        let end = self.options.seconds.filter(|_| self.options.rate.is_none());
        let end = end.map(|seconds| self.clock.now() + (seconds * 1e9) as u64);
        let mut output = self.counted_output();
        let done = Rc::clone(&output.done);
        let seconds = RefCell::new(Seconds::new(self.each_second, self.clock.now()));
        let is_over = || {
            if self.each_second.is_some() {
                seconds.borrow_mut().pass(self.clock.now(), || done.get());
            }
            self.next_order().0 || end.is_some_and(|end| self.clock.now() >= end)
        };
        let mut trains = Trains::new(self.load()?, &self.clock);
        let mut steps = 0u32;
        loop {
            steps = steps.wrapping_add(1);
            match trains.step(&mut output)? {
                Step::Sent if !steps.is_multiple_of(STEPS) => continue,
                Step::Sent => {}
                Step::Early(due) => self.clock.wait_until(due.min(self.clock.now() + send::LOOK)),
                Step::Done => break,
            }
            if is_over() || trains.is_far_behind() {
                break;
            }
        }
        let sent = trains.finish(&mut output)?;
        // What the kernel has not sent yet it drops with the socket.
        let begin = self.clock.now();
        while !self.interfaces.is_sent(0) && self.clock.now() - begin < IDLE {
            std::thread::yield_now();
        }
        // A device that wakes nobody does not say either what its other end has still to take, which goes with it.
        if matches!(self.input.wait_on(), Some(Wake::Polled)) {
            self.clock.wait_until(self.clock.now() + IDLE);
        }
        Ok(self.sent(&sent))
    }

    /// The receiver.
    fn receive(mut self) -> Result<Outcome, String> {
        let input = std::mem::replace(&mut self.input, Box::new(Nothing));
        let input: Box<dyn Device> = match self.options.touches {
            true => Box::new(Touched(input)),
            false => input,
        };
        let mut waiting = Waiting::new(&*input, self.options.polling);
        let mut receiver = Receiver::new(input);
        let begin = self.clock.now();
        let end = self.options.seconds.filter(|_| self.orders.is_none());
        let end = end.map(|seconds| begin + (seconds * 1e9) as u64);
        let (mut sent, mut last, mut rounds) = (None, begin, 0u32);
        let mut seconds = Seconds::new(self.each_second, begin);
        let streams = [self.options.stream];
        loop {
            rounds = rounds.wrapping_add(1);
            let (count, _) = receiver.take()?;
            if count > 0 {
                last = self.clock.now();
                waiting.worked();
            }
            if count == 0 || rounds.is_multiple_of(ROUNDS) {
                let now = self.clock.now();
                seconds.pass(now, || Totals {
                    received: receiver.counting().of_streams(&streams),
                    ..Totals::default()
                });
                let (is_over, order) = self.next_order();
                if let Some(Order::Stop(number)) = order {
                    sent = Some(number);
                    last = now;
                }
                // The last may have overtaken others.
                let received = receiver.counting().of_streams(&streams);
                let has_all = sent.is_some_and(|sent| received >= sent);
                let is_idle = sent.is_some() && now >= last + IDLE;
                if is_over || has_all || is_idle || end.is_some_and(|end| now >= end) {
                    break;
                }
                if count == 0 {
                    waiting.wait(LOOK);
                }
            }
        }
        let expected = sent.map(|sent| self.expected(sent)).unwrap_or_default();
        let receipt = receiver.finish(&expected)?;
        Ok(received(receipt, self.options.stream))
    }

    /// The client.
    fn ask(mut self) -> Result<Outcome, String> {
        let input = std::mem::replace(&mut self.input, Box::new(Nothing));
        let mut output = self.counted_output();
        let mut waiting = Waiting::new(&*input, self.options.polling);
        let mut receiver = Receiver::new(input);
        let mut sender = Trains::new(self.load()?, &self.clock);
        let mut last = self.clock.now();
        let (mut is_sent, mut rounds) = (false, 0u32);
        let mut seconds = Seconds::new(self.each_second, last);
        loop {
            rounds = rounds.wrapping_add(1);
            let (count, _) = receiver.take()?;
            let mut due = None;
            if !is_sent {
                match sender.step(&mut output)? {
                    Step::Sent => last = self.clock.now(),
                    Step::Early(at) => due = Some(at),
                    Step::Done => is_sent = true,
                }
            }
            if count > 0 {
                last = self.clock.now();
                waiting.worked();
                continue;
            }
            if rounds.is_multiple_of(ROUNDS) || is_sent {
                let has_all =
                    receiver.counting().of_streams(&[self.options.stream]) >= sender.stamped();
                let is_idle = self.clock.now() >= last + IDLE;
                if self.next_order().0 || is_sent && (has_all || is_idle) {
                    break;
                }
            }
            let now = self.clock.now();
            seconds.pass(now, || {
                let all = receiver.counting();
                let sum = all.latencies().mean() * all.latencies().len() as f64;
                let received = all.of_streams(&[self.options.stream]);
                Totals { received, round_trips: Some(sum), ..output.done.get() }
            });
            // A packet that is due does not wait for one that comes.
            match due.map(|due| due.saturating_sub(now)) {
                Some(left) if left > AWAKE => {
                    waiting.wait(Duration::from_nanos(left - AWAKE).min(LOOK));
                }
                // Others may have the CPU that it shares.
                Some(_) => match self.options.polling {
                    Polling::Sleep | Polling::Yield => std::thread::yield_now(),
                    Polling::Adaptive | Polling::Busy => std::hint::spin_loop(),
                },
                None if is_sent => waiting.wait(LOOK),
                None => {}
            }
        }
        let sent = self.sent(&sender.finish(&mut output)?);
        let receipt = receiver.finish(&self.expected(sent.sent))?;
        let round_trips = receipt.latencies.iter_recorded();
        let round_trips =
            round_trips.map(|of| (of.value_iterated_to(), of.count_at_value())).collect();
        Ok(Outcome {
            attempted: sent.attempted,
            sent: sent.sent,
            seconds: sent.seconds,
            round_trips,
            ..received(receipt, self.options.stream)
        })
    }

    /// The server.
    fn answer(mut self) -> Result<Outcome, String> {
        let mut waiting = Waiting::new(&*self.input, self.options.polling);
        let begin = self.clock.now();
        let end = self.options.seconds.filter(|_| self.orders.is_none());
        let end = end.map(|seconds| begin + (seconds * 1e9) as u64);
        let mut outcome = Outcome::default();
        let mut lost = (Vec::new(), Vec::new());
        let mut rounds = 0u32;
        loop {
            rounds = rounds.wrapping_add(1);
            self.input.receive(BURST, &mut self.batch, &mut self.pool)?;
            let all = self.batch.len();
            if all > 0 {
                waiting.worked();
                let mut answers = Batch::new();
                for mut packet in self.batch.drain() {
                    match Stamp::read(packet.data()) {
                        // Frames for others come where a switch does not know where these are.
                        Some(_)
                            if is_from(
                                packet.data(),
                                &self.options.remote,
                                &self.options.local,
                            ) =>
                        {
                            turn_back(packet.data_mut());
                            answers.push(packet);
                        }
                        _ => self.pool.recycle(packet),
                    }
                }
                outcome.received += answers.len() as u64;
                let mut patience = PATIENCE;
                while !answers.is_empty() && patience > 0 {
                    self.output.send(&mut answers, &mut self.pool)?;
                    patience -= 1;
                }
                outcome.overrun += answers.len() as u64;
                self.pool.recycle_all(&mut answers);
            }
            if all == 0 || rounds.is_multiple_of(ROUNDS) {
                let (is_over, order) = self.next_order();
                let is_late = end.is_some_and(|end| self.clock.now() >= end);
                if is_over || is_late || matches!(order, Some(Order::Stop(_))) {
                    break;
                }
                if all == 0 {
                    waiting.wait(LOOK);
                }
            }
        }
        Lost::collect((&mut lost.0, &mut lost.1), &mut *self.input, false);
        outcome.overrun += Lost::sum(&lost.0);
        outcome.sent = outcome.received;
        outcome.seconds = (self.clock.now() - begin) as f64 / 1e9;
        outcome.notices = lost.1;
        Ok(outcome)
    }
}

/// Packets that are asked for at a time.
const BURST: usize = 256;
/// Rounds with packets after which it is looked whether to stop.
const ROUNDS: u32 = 1024;
/// Trains after which a sender looks whether to stop.
const STEPS: u32 = 16;
/// How often a server tries to send what its device does not take.
const PATIENCE: u32 = 1000;

fn received(receipt: Receipt, stream: u8) -> Outcome {
    let of = |count: fn(&StreamReport) -> u64| -> u64 {
        receipt.streams.iter().filter(|of| of.stream == stream).map(count).sum()
    };
    Outcome {
        received: of(|stream| stream.received),
        duplicates: of(|stream| stream.duplicates),
        reordered: of(|stream| stream.reordered),
        overrun: Lost::sum(&receipt.lost_here),
        seconds: receipt.seconds,
        notices: receipt.remarks,
        ..Outcome::default()
    }
}

/// How packets of a device are waited for.
struct Waiting {
    wake: Option<Wake>,
    waiter: Waiter,
}

impl Waiting {
    fn new(device: &dyn Device, polling: Polling) -> Self {
        Self { wake: device.wait_on(), waiter: Waiter::new(polling) }
    }

    fn worked(&mut self) {
        self.waiter.worked();
    }

    fn wait(&mut self, longest: Duration) {
        match self.wake {
            Some(Wake::Readable(descriptor)) => self.waiter.wait(&[descriptor], false, longest),
            Some(Wake::Polled) => self.waiter.wait(&[], true, longest),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::super::frame::tests::endpoint;
    use super::*;

    /// How long each frame is held, in nanoseconds.
    const HELD: u64 = 200_000;

    /// Frames that come back later.
    #[derive(Default)]
    struct Held {
        /// Each with when it came.
        frames: VecDeque<(Vec<u8>, u64)>,
        /// From when each was due until it was given back.
        away: Vec<u64>,
    }

    struct Holds(Rc<RefCell<Held>>);

    impl Device for Holds {
        fn receive(
            &mut self,
            _: usize,
            batch: &mut Batch,
            pool: &mut Pool,
        ) -> Result<elements::device::Received, String> {
            let Held { frames, away } = &mut *self.0.borrow_mut();
            let now = HostClock::new(StampClock::Monotonic).now();
            while let Some((frame, _)) = frames.pop_front_if(|(_, came)| *came + HELD <= now) {
                away.push(now - Stamp::read(&frame).unwrap().due);
                batch.push(pool.packet(&frame));
            }
            Ok(elements::device::Received::More)
        }

        fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
            let now = HostClock::new(StampClock::Monotonic).now();
            let frames = batch.iter().map(|packet| (packet.data().to_vec(), now));
            self.0.borrow_mut().frames.extend(frames);
            pool.recycle_all(batch);
            Ok(())
        }

        fn wait_on(&self) -> Option<Wake> {
            Some(Wake::Polled)
        }
    }

    #[test]
    fn round_trips_are_as_long_as_frames_are_held() {
        let options = Options {
            role: Role::Client,
            local: endpoint(1),
            remote: endpoint(2),
            carrier: "af-packet-mmsg".parse().unwrap(),
            interface: None,
            eal: None,
            rate: Some(1000.0),
            size: 64,
            burst: 1,
            touches: false,
            seconds: Some(0.2),
            polling: Polling::Busy,
            stream: 0,
        };
        let held = Rc::<RefCell<Held>>::default();
        let devices: Devices = [Box::new(Holds(Rc::clone(&held))), Box::new(Holds(held.clone()))];
        let devices = (devices, &Interfaces::default());
        let outcome = run_over(&options, devices, None, None, &|| false).unwrap();
        assert_eq!((outcome.sent, outcome.received, outcome.duplicates), (200, 200, 0));
        let away = &mut held.borrow_mut().away;
        away.sort_unstable();
        let (known, measured) = (away[away.len() / 2], outcome.percentiles().unwrap().p50);
        assert!(known >= HELD);
        // Within 2 % of how long they were away by the device's own clock, however late it gave them back.
        assert!(measured.abs_diff(known) <= known / 50, "{measured} {known}");
    }
}
