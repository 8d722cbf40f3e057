//! The contract of an element.

use std::cell::RefCell;
use std::rc::Rc;

use ir::{Model, Reason, StateValue, Store};
use net::{Batch, Packet};

use crate::cells::Cells;
use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::device::{ControlSocketRequest, OwnedPorts, Wake};
use crate::element_state::ElementState;
use crate::flow_access::FlowAccess;
use crate::listing::{FlowRecord, Slice};

/// What happens to a packet after an element looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on to output 0.
    Pass,
    /// It goes to this output.
    To(usize),
    /// It goes to this output, counted under the reason, if the element has such an output, and
    /// is dropped otherwise: Click's convention for error outputs.
    Reject(usize, Reason),
    /// It is dropped.
    Drop(Reason),
}

/// A network function, or a piece of one.
///
/// Packets come in through [`Element::push`] in batches, or are asked for through
/// [`Element::pull`] one by one. What an element means is said by [`Element::model`]; pushing
/// packets must do exactly what interpreting the model does, state and counted reasons included.
/// An element may be a model alone.
pub trait Element {
    /// Processes a batch that came in on `port`. Packets that stay in `batch` go on to output 0;
    /// others are emitted, dropped or stored. Packets emitted are delivered before those that
    /// stay, output by output in the order in which each was first emitted to.
    ///
    /// By default the model is interpreted: made anew for each batch, with the state that
    /// [`Element::export`] gives and [`Element::import`] takes back. That is slow where no program
    /// takes the element's place. A model that is opaque, or declares state of other elements,
    /// needs code of its own, unless nothing is pushed to the element.
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        crate::interpreted::push(self, port, batch, cx);
    }

    /// Hands out the next packet of an output that is pulled. By default pulls input 0 and
    /// processes what comes as [`Element::push`] would, until a packet stays.
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        let mut batch = cx.core.batch();
        let mut pulled = None;
        while let Some(packet) = cx.pull(0) {
            batch.push(packet);
            self.push(0, &mut batch, cx);
            pulled = batch.pop();
            if pulled.is_some() {
                break;
            }
        }
        cx.core.recycle_batch(batch);
        pulled
    }

    /// What the element means.
    fn model(&self) -> Model;

    /// Writes what the element keeps of a scope to `to`.
    ///
    /// Of everything that is the state that the model declares, under the element's name; of a group, its flows. If
    /// it moves, it is also what the element keeps beyond, and packets in their order. Declared state may move natively.
    /// An element whose whole state moved is asked for nothing any more; without a group's, it goes on.
    fn export(&mut self, _name: &str, _to: &mut ElementState) {}

    /// Takes what [`Element::export`] of an element of the same class and name wrote; what is absent stays as it is.
    fn import(&mut self, _name: &str, _from: &mut ElementState, _now: u64) {}

    /// How many packets the element holds back now.
    fn held(&self) -> usize {
        0
    }

    /// Shows the packets that the element holds back in queues, whatever else it holds.
    fn queued(&self, _show: &mut dyn FnMut(&Packet)) {}

    /// Whether an element that replaces this one does over again what this one did: reads its
    /// file from the start, or executes its instructions.
    fn starts_over(&self) -> bool {
        false
    }

    /// Whether the packets that the element holds go along with their groups.
    fn parts_packets(&self) -> bool {
        false
    }

    /// The [`ir::model::StateKind::Flows`] that the model refers to, for lookups without the
    /// element.
    fn flows(&self) -> Option<Rc<RefCell<dyn FlowAccess>>> {
        None
    }

    /// The [`ir::model::StateKind::Cells`] of this name that the model declares, for programs in the element's
    /// place. Without them no program can.
    fn cells(&self, _name: &str) -> Option<Cells> {
        None
    }

    /// Adds to a [`ir::model::StateKind::Counter`] that the model declares, for packets that were
    /// not pushed but taken where they would have gone.
    fn credit(&mut self, state: &'static str, packets: u64, bytes: u64) {
        let (p, b) = ElementState::copy_of(self, "").counter("", state);
        let (packets, bytes) = (p.wrapping_add(packets), b.wrapping_add(bytes));
        let mut counted = Store::new();
        counted.set("", state, StateValue::Counter { packets, bytes });
        self.import("", &mut ElementState::declared(counted), 0);
    }

    /// Adds to what a source took in or a sink sent, for packets that a device in front took care of.
    fn credit_traffic(&mut self, _packets: u64, _bytes: u64) {}

    /// Called once, after all elements of the chain are configured: references to others are
    /// resolved and devices opened here.
    ///
    /// # Errors
    /// [`Failed`] after errors were reported.
    fn initialize(&mut self, _cx: &mut Initialize<'_>) -> Result<(), Failed> {
        Ok(())
    }

    /// Whether [`Element::run`] is to be called in turn with other tasks. Asked once, after
    /// [`Element::initialize`].
    fn has_task(&self) -> bool {
        false
    }

    /// Does a round of the element's own work (a source's burst, an active pull).
    fn run(&mut self, _cx: &mut Context<'_>) -> Work {
        Work::Idle
    }

    /// Whether [`Element::run`] makes packets as fast as there is room for them: it has no turn
    /// while nothing that it pushes to has room ([`Element::has_room`]).
    fn waits_for_room(&self) -> bool {
        false
    }

    /// Whether packets that are pushed in would find room, of an element that sources wait for:
    /// Click's full notifier. Paths that end at an element without one always have room.
    fn has_room(&self) -> Option<bool> {
        None
    }

    /// Whether there is anything to pull, of an element at which pulling begins: Click's empty
    /// notifier. A task that found nothing to pull has no turn while nothing upstream has packets.
    fn has_packets(&self) -> Option<bool> {
        None
    }

    /// What tells that [`Element::run`] will have something to do again, for work that comes from
    /// outside of the chain. While there is any such, a chain at rest waits and does
    /// not end.
    fn wait_on(&self) -> Option<Wake> {
        None
    }

    /// Whether the element goes on for ever to have work of its own: it receives from an interface,
    /// or is a source without a limit.
    fn is_endless(&self) -> bool {
        self.wait_on().is_some()
    }

    /// Whether the element stops the driver one day, as its configuration says (`STOP true`).
    fn stops_driver(&self) -> bool {
        false
    }

    /// External addresses and ports that the element allocates, each worker from its share.
    fn owned(&self) -> Vec<OwnedPorts> {
        Vec::new()
    }

    /// Whether answers to every flow that the element makes go to what it allocates
    /// ([`Element::owned`]), and so find the flow's worker whatever they look like else.
    fn owns_all_flows(&self) -> bool {
        false
    }

    /// Steers packets to what elements allocate to the worker whose share it is; for elements
    /// with devices.
    ///
    /// # Errors
    /// A message.
    fn steer(&mut self, _owned: &[OwnedPorts]) -> Result<(), String> {
        Ok(())
    }

    /// Called when the time asked for with [`Context::wake_at`] has come, and once at the start.
    fn wake(&mut self, _cx: &mut Context<'_>) {}

    /// Whether a run goes on as long as the element has asked for a time ([`Context::wake_at`]), though there are no packets
    /// any more. What only looks about, such as probes, does not keep it.
    fn keeps_run(&self) -> bool {
        true
    }

    /// The handlers that the element calls by itself: when packets or time make it, or another call.
    fn handler_calls(&self) -> HandlerCalls {
        HandlerCalls::None
    }

    /// Whether what becomes of packets here depends on nothing but their bytes, length and time, and on the
    /// length that they had on the wire: not on other annotations, marked headers, or whom they were
    /// addressed to. Of elements whose model says what they do, the model says this, too.
    fn sees_frames_only(&self) -> bool {
        false
    }

    /// Whether packets that the element makes have no annotations but the length that they had on
    /// the wire and the address that IP packets are sent to.
    fn makes_bare_packets(&self) -> bool {
        false
    }

    /// Whether the packets that the element makes are frames as an interface receives them: bare, and of headers only
    /// the first is marked.
    fn receives_frames(&self) -> bool {
        false
    }

    /// Called when the driver was told to stop, once for each time it was told; an element that
    /// answers `true` has taken this one over (DriverManager), and the chain runs on.
    fn on_stop(&mut self, _cx: &mut Context<'_>) -> bool {
        false
    }

    /// Called when the chain has stopped: files are flushed here.
    fn finish(&mut self, _cx: &mut Context<'_>) {}

    /// What a source has taken in or a sink sent, for the summary of a run.
    fn traffic(&self) -> Option<Traffic> {
        None
    }

    /// Packets and bytes that an element has counted which is there to count.
    fn counted(&self) -> Option<(u64, u64)> {
        None
    }

    /// The control socket that the element asks to be opened.
    fn control_socket(&self) -> Option<ControlSocketRequest> {
        None
    }

    /// The element's own handlers; `class`, `config`, `name`, `ports` and `handlers` come free.
    fn handlers(&self) -> &'static [Handler] {
        &[]
    }

    /// Handlers beyond [`Element::handlers`] whose names the configuration decides. One named `*`
    /// stands for every name that is not a handler otherwise.
    fn named_handlers(&self) -> Vec<NamedHandler> {
        Vec::new()
    }

    /// Reads a handler, as [`Element::read`] does, for elements whose handlers do more than look
    /// at the element: call others, draw random numbers, change something.
    ///
    /// # Errors
    /// A message for whoever asked.
    fn call(
        &mut self,
        handler: &str,
        parameter: &str,
        cx: &mut Context<'_>,
    ) -> Result<String, String> {
        let now = cx.now();
        self.read(handler, parameter, &HandlerContext { tally: cx.tally, now })
    }

    /// Reads one of [`Element::handlers`]; `parameter` is what stood behind its name.
    ///
    /// # Errors
    /// A message for whoever asked.
    fn read(
        &self,
        handler: &str,
        _parameter: &str,
        _cx: &HandlerContext<'_>,
    ) -> Result<String, String> {
        Err(format!("handler '{handler}' is not readable"))
    }

    /// A slice of what a handler lists that can be read; none of a handler that lists nothing, which
    /// is read at once. `from` is where the slice before says that the next one begins, and 0 at
    /// first. No slice takes longer the more there is to list.
    fn list(&self, _handler: &str, _from: u64, _cx: &HandlerContext<'_>) -> Option<Slice> {
        None
    }

    /// Removes a flow that the element listed; whether it was still there.
    fn remove_flow(&mut self, _flow: &FlowRecord, _cx: &HandlerContext<'_>) -> bool {
        false
    }

    /// Writes one of [`Element::handlers`].
    ///
    /// # Errors
    /// A message for whoever asked.
    fn write(&mut self, handler: &str, _value: &str, _cx: &mut Context<'_>) -> Result<(), String> {
        Err(format!("handler '{handler}' is not writable"))
    }
}

/// The handlers of other elements, and of the driver, that an element calls by itself. Whoever
/// says what a chain does must look at them: such a call may change what other elements do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HandlerCalls {
    /// None.
    #[default]
    None,
    /// Those of the driver, and of the elements of these names, as seen from its compound.
    Of(Vec<String>),
    /// Those of elements whose names it computes.
    Any,
}

/// Packets that came into or went out of the chain through an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Whether the element is a source.
    pub source: bool,
    /// Number of packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a round of a task came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It did something, and may have more to do.
    Done,
    /// There is nothing to do now; a packet, a handler or time may change that.
    Idle,
    /// There will never be anything to do again.
    Ended,
}

/// A handler's name and what may be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Its name.
    pub name: &'static str,
    /// Whether it can be read.
    pub read: bool,
    /// Whether it can be written.
    pub write: bool,
    /// Whether it counts something, so that its values on several cores add up.
    pub adds_up: bool,
    /// Whether only elements of the chain may use it: from outside it is as if it were not there.
    pub private: bool,
}

impl Handler {
    /// A handler to read.
    pub const fn read(name: &'static str) -> Self {
        Self { name, read: true, write: false, adds_up: false, private: false }
    }

    /// A handler that only elements of the chain may read.
    pub const fn private(name: &'static str) -> Self {
        Self { private: true, ..Self::read(name) }
    }

    /// A handler to read, of a number that counts something.
    pub const fn count(name: &'static str) -> Self {
        Self { adds_up: true, ..Self::read(name) }
    }

    /// A handler to write.
    pub const fn write(name: &'static str) -> Self {
        Self { read: false, write: true, ..Self::read(name) }
    }

    /// A handler to read and write.
    pub const fn both(name: &'static str) -> Self {
        Self { write: true, ..Self::read(name) }
    }
}

/// A handler whose name the configuration decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedHandler {
    /// Its name.
    pub name: String,
    /// Whether it can be read.
    pub read: bool,
    /// Whether it can be written.
    pub write: bool,
}

/// What a read handler may look at besides its element.
pub struct HandlerContext<'a> {
    /// What the element dropped and noted.
    pub tally: &'a crate::context::Tally,
    /// Nanoseconds of the worker's clock.
    pub now: u64,
}

/// When an element is configured relative to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before all: names for others to use (AddressInfo).
    Names,
    /// Before most: what others refer to (mappers, patterns).
    Early,
    /// With most.
    #[default]
    Normal,
    /// After most: elements that refer to others.
    Late,
}

/// A configuration under which an element's model conformance is tested: interpreting is pushing.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The element's configuration.
    pub config: &'static str,
    /// Number of inputs that are fed.
    pub inputs: usize,
    /// Number of outputs that are collected.
    pub outputs: usize,
}

/// What an element is mainly about, by which references and drawings group elements. Each
/// category is a folder of this crate and of `filetests`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Interfaces, capture files, generators.
    Io,
    /// Ethernet frames, VLAN tags, ARP.
    Ethernet,
    /// IPv4 and ICMP.
    Ip,
    /// IPv6, ICMPv6 and neighbour discovery.
    Ip6,
    /// TCP and UDP.
    Transport,
    /// VXLAN and GRE.
    Tunnel,
    /// Rules and patterns.
    Classify,
    /// Routing tables.
    Lookup,
    /// Outputs by turn, hash, chance, colour or a handler.
    Switch,
    /// Translation of addresses and ports.
    Nat,
    /// What lies behind the headers.
    Payload,
    /// Queues, schedulers, shapers, meters.
    Queue,
    /// What works on any packet.
    Plumbing,
    /// What concerns the chain rather than packets.
    Control,
}

/// What connects a chain with the world outside: a device or a file. Its first argument names that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Packets come in.
    Ingress,
    /// Packets go out.
    Egress,
}

impl Category {
    /// Its title in a reference.
    pub fn title(self) -> &'static str {
        match self {
            Category::Io => "Sources, sinks and interfaces",
            Category::Ethernet => "Ethernet, VLAN and ARP",
            Category::Ip => "IPv4 and ICMP",
            Category::Ip6 => "IPv6 and ICMPv6",
            Category::Transport => "TCP and UDP",
            Category::Tunnel => "Tunnels",
            Category::Classify => "Classification",
            Category::Lookup => "Routing tables",
            Category::Switch => "Switching",
            Category::Nat => "Address translation",
            Category::Payload => "Payloads",
            Category::Queue => "Queues, scheduling and shaping",
            Category::Plumbing => "Annotations, counters and whole packets",
            Category::Control => "Information and control",
        }
    }
}

/// A class of elements: all that is known without making one. Made by [`crate::element!`].
pub struct Class {
    /// Its name in configurations.
    pub name: &'static str,
    /// Its manual page.
    pub manual: &'static str,
    /// What it is mainly about.
    pub category: Category,
    /// Numbers of ports it can have, in Click's notation: `1/1-2`, `-/=`, `0/1-`.
    pub ports: &'static str,
    /// Processing of its ports, in Click's notation: `a/ah`, `h/l`.
    pub processing: &'static str,
    /// From which inputs packets go to which outputs, in Click's notation: `x/x` (any to any),
    /// `xy/x`, `#/#`. Agnostic ports that packets go between are processed alike.
    pub flow: &'static str,
    /// When it is configured.
    pub phase: Phase,
    /// Whether the chain's packets come in or go out by it.
    pub boundary: Option<Boundary>,
    /// Configurations that its model conformance is tested under; at least one unless the class is
    /// informational, a source or a sink.
    pub samples: &'static [Sample],
    /// Declarations of other elements that the samples refer to.
    pub prelude: &'static str,
    /// Makes an element from its arguments.
    pub configure: fn(&mut Configure<'_>) -> Result<Box<dyn Element>, Failed>,
}

/// Declares an element class: its manual as a doc comment, then what the registry must know.
///
/// ```text
/// element! {
///     /// DecIPTTL([KEYWORDS]) -- decrements the IP time-to-live
///     ///
///     /// Expects IP packets …
///     DecIPTTL { category: Ip, ports: "1/1-2", processing: "a/ah", samples: [("", 1, 2)] }
/// }
/// ```
#[macro_export]
macro_rules! element {
    (
        $(#[doc = $manual:literal])+
        $name:ident {
            category: $category:ident,
            ports: $ports:literal,
            processing: $processing:literal,
            $(flow: $flow:literal,)?
            $(phase: $phase:ident,)?
            $(boundary: $boundary:ident,)?
            samples: [$(($config:literal, $inputs:literal, $outputs:literal)),* $(,)?]
            $(, prelude: $prelude:literal)?
            $(, class: $class:literal)?
            $(,)?
        }
    ) => {
        impl $name {
            /// What the registry knows of the class.
            pub(crate) const CLASS: $crate::element::Class = $crate::element::Class {
                name: $crate::element!(@name $name $($class)?),
                manual: concat!($($manual, "\n"),+),
                category: $crate::element::Category::$category,
                ports: $ports,
                processing: $processing,
                flow: $crate::element!(@flow $($flow)?),
                phase: $crate::element!(@phase $($phase)?),
                boundary: $crate::element!(@boundary $($boundary)?),
                samples: &[$($crate::element::Sample { config: $config, inputs: $inputs, outputs: $outputs }),*],
                prelude: concat!("", $($prelude)?),
                configure: |cx| {
                    <$name>::configure(cx).map(|e| Box::new(e) as Box<dyn $crate::element::Element>)
                },
            };
        }
    };
    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident $class:literal) => { $class };
    (@flow) => { "x/x" };
    (@flow $flow:literal) => { $flow };
    (@phase) => { $crate::element::Phase::Normal };
    (@boundary) => { None };
    (@boundary $boundary:ident) => { Some($crate::element::Boundary::$boundary) };
    (@phase $phase:ident) => { $crate::element::Phase::$phase };
}

/// [`Element::handlers`], [`Element::read`] and [`Element::write`] of an element with one value: the
/// handler's name, and the field, with what of it is shown.
macro_rules! value_handler {
    ($name:literal, $field:ident $(. $shown:tt)?) => {
        fn handlers(&self) -> &'static [$crate::element::Handler] {
            const { &[$crate::element::Handler::both($name)] }
        }

        fn read(
            &self,
            _: &str,
            _: &str,
            _: &$crate::element::HandlerContext<'_>,
        ) -> Result<String, String> {
            Ok(self.$field$(.$shown)?.to_string())
        }

        fn write(
            &mut self,
            _: &str,
            value: &str,
            _: &mut $crate::context::Context<'_>,
        ) -> Result<(), String> {
            self.$field = $crate::argument::parse_value(value)?;
            Ok(())
        }
    };
}
