//! EtherSwitch.

use ir::field::{eth, meta};
use ir::model::{Block, FlowSide, Reg, StateKind, StateRef};
use ir::state::{Flow, Flows};
use ir::{Expr, IntervalSet, Model, Op, Reason, StateValue, Store};
use net::Batch;
use net::wire::EtherAddr;

use crate::argument::{Nanoseconds, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::lru_table::LruTable;

element! {
    /// EtherSwitch([KEYWORDS TIMEOUT]) -- a learning Ethernet switch
    ///
    /// Expects Ethernet frames and has as many inputs as outputs. Learns on which port each
    /// source address was seen last. A frame to an address seen in the last TIMEOUT goes to its
    /// port, or is dropped if it came in there; any other frame goes to all ports but its own.
    ///
    /// = KEYWORDS
    ///
    /// TIMEOUT (time, default 5 min): how long addresses are remembered; 0 to learn nothing.
    ///
    /// = HANDLERS
    ///
    /// table (read): addresses and their ports.
    /// timeout (read, write): seconds that addresses are remembered.
    /// port_forwarding (read): the outputs that frames of each input may leave on.
    /// remove_port_forwarding (write): `INPUT OUTPUT...`, several separated by commas: frames
    /// of the input no longer leave on these outputs.
    /// reset_port_forwarding (write): frames leave on all outputs but their own again.
    ///
    /// = SEE ALSO
    ///
    /// HostEtherFilter, ARPResponder
    EtherSwitch {
        category: Ethernet, ports: "1-/=", processing: "h/h",
        samples: [("", 3, 3), ("TIMEOUT 1", 2, 2), ("TIMEOUT 0", 3, 3), ("", 1, 1)]
    }
}

/// See [`EtherSwitch::CLASS`].
pub(crate) struct EtherSwitch {
    timeout: u64,
    /// For each input, whether frames may leave on each output.
    allowed: Vec<Vec<bool>>,
    learned: Learned,
}

const TOO_SHORT: Reason = Reason("too-short");
/// There is no other port that the frame may be sent to.
const NOWHERE: Reason = Reason("no-other-port");

/// How many addresses are remembered; further ones take the place of the oldest.
const CAPACITY: usize = 1 << 16;

/// Name of the state that holds what was learned: address to port.
const STATE: &str = "addresses";

const SECOND: u64 = 1_000_000_000;

/// Addresses with their ports.
///
/// All of a list live equally long after their last frame, so that the order of last frames is
/// that of expiry.
#[derive(Default)]
struct Learned {
    ports: LruTable<Seen>,
    /// The timeout of each list; `None` for addresses that came in the order of their expiry.
    timeouts: Vec<Option<u64>>,
    /// Counts frames, to tell of addresses that expire together which was seen first.
    next: u64,
}

#[derive(Clone, Copy)]
struct Seen {
    port: usize,
    expiry: u64,
    order: u64,
}

impl Learned {
    fn find(&self, address: u64, now: u64) -> Option<usize> {
        let seen = self.ports.get(address.into())?;
        (seen.expiry > now).then_some(seen.port)
    }

    fn learn(&mut self, address: u64, port: usize, timeout: u64, now: u64) {
        let list = self.list(Some(timeout));
        self.add(address, port, now.saturating_add(timeout), list);
    }

    /// The list of a timeout, instead of one that became empty if it is new.
    fn list(&mut self, timeout: Option<u64>) -> usize {
        if let Some(list) = self.timeouts.iter().position(|&of| of == timeout) {
            return list;
        }
        let empty = (0..self.timeouts.len()).find(|&list| self.ports.list_len(list) == 0);
        let list = empty.unwrap_or(self.timeouts.len());
        self.timeouts.resize(self.timeouts.len().max(list + 1), None);
        self.timeouts[list] = timeout;
        list
    }

    fn add(&mut self, address: u64, port: usize, expiry: u64, list: usize) {
        let seen = Seen { port, expiry, order: self.next };
        self.next += 1;
        if let Some(known) = self.ports.get_mut(address.into()) {
            *known = seen;
            return self.ports.renew(address.into(), list);
        }
        if self.ports.len() >= CAPACITY {
            let oldest = (0..self.timeouts.len()).filter_map(|list| self.ports.oldest(list));
            let first = oldest.min_by_key(|(_, seen)| (seen.expiry, seen.order));
            if let Some((first, _)) = first {
                self.ports.remove(first);
            }
        }
        self.ports.insert(address.into(), seen, list);
    }
}

/// The outputs that frames of each input may leave on at first: all but their own.
fn all_but_own(ports: usize) -> Vec<Vec<bool>> {
    (0..ports).map(|input| (0..ports).map(|output| input != output).collect()).collect()
}

impl EtherSwitch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let ports = cx.outputs();
        let mut arguments = cx.arguments(&["TIMEOUT"]);
        let timeout = arguments.keyword("TIMEOUT").unwrap_or(Nanoseconds(300 * SECOND));
        arguments.finish()?;
        let allowed = all_but_own(ports);
        Ok(Self { timeout: timeout.0, allowed, learned: Learned::default() })
    }

    fn flood(&self, input: usize) -> Block {
        let mut ports = (0..self.allowed.len()).rev().filter(|&port| self.allowed[input][port]);
        let Some(last) = ports.next() else { return vec![Op::Drop(NOWHERE)] };
        let copies = ports.rev().map(|port| Op::EmitCopy(port.into()));
        copies.chain([Op::emit(last)]).collect()
    }

    fn block(&self, input: usize, learned: StateRef) -> Block {
        const PORT: Reg = Reg(0);
        let mut block = vec![Op::when(meta::LEN.lt(14u8), vec![Op::Drop(TOO_SHORT)])];
        if self.timeout > 0 {
            let side = |key| FlowSide { key, value: vec![input.into()] };
            block.push(Op::FlowInsert {
                flows: learned,
                forward: side(vec![eth::SRC.get()]),
                reverse: side(vec![eth::SRC.get(), 0u8.into()]),
                common: Vec::new(),
                expiry: Expr::Now + self.timeout,
                guarantee: 0u8.into(),
                full: Vec::new(),
            });
            let allowed = (0..self.allowed.len()).filter(|&port| self.allowed[input][port]);
            let allowed = allowed.map(|port| (port as u128, port as u128)).collect();
            let known = vec![
                Op::FlowLookup {
                    flows: learned,
                    key: vec![eth::DST.get()],
                    value: vec![PORT],
                    common: Vec::new(),
                    miss: self.flood(input),
                },
                Op::If(
                    Expr::from(PORT).is_in(IntervalSet::from_intervals(allowed)),
                    vec![Op::Emit(PORT.into())],
                    vec![Op::Drop(NOWHERE)],
                ),
            ];
            let is_group = ((eth::DST.get() >> 40u8) & 1u8).eq(1u8);
            block.push(Op::when(is_group.not(), known));
        }
        block.extend(self.flood(input));
        block
    }

    fn forbid(&mut self, value: &str) -> Result<(), String> {
        let mut allowed = self.allowed.clone();
        for rule in value.split(',') {
            let mut words = rule.split_whitespace().map(parse_value::<usize>);
            let input = words.next().ok_or("an input is missing")??;
            let outputs = allowed.get_mut(input).ok_or(format!("there is no input {input}"))?;
            for output in words {
                let output = output?;
                let place = outputs.get_mut(output);
                *place.ok_or(format!("there is no output {output}"))? = false;
            }
        }
        self.allowed = allowed;
        Ok(())
    }
}

fn number(address: &[u8]) -> u64 {
    address.iter().fold(0, |n, &b| n << 8 | u64::from(b))
}

impl Element for EtherSwitch {
    fn push(&mut self, input: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        let Self { timeout, allowed, learned } = self;
        let Some(allowed) = allowed.get(input) else { return };
        let last = allowed.iter().rposition(|allowed| *allowed);
        // Copies and packets of one output must stay in order, so none stays in the batch.
        for packet in batch.drain() {
            let Some(frame) = packet.data().first_chunk::<14>() else {
                cx.drop(packet, TOO_SHORT);
                continue;
            };
            if *timeout > 0 {
                learned.learn(number(&frame[6..12]), input, *timeout, now);
                let port = learned.find(number(&frame[..6]), now).filter(|_| frame[0] & 1 == 0);
                if let Some(port) = port {
                    match allowed.get(port) {
                        Some(true) => cx.emit(port, packet),
                        _ => cx.drop(packet, NOWHERE),
                    }
                    continue;
                }
            }
            let Some(last) = last else {
                cx.drop(packet, NOWHERE);
                continue;
            };
            for port in (0..last).filter(|&port| allowed[port]) {
                let copy = cx.core.pool.copy(&packet);
                cx.emit(port, copy);
            }
            cx.emit(last, packet);
        }
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let learned =
            model.declare(STATE, StateKind::Flows { capacity: CAPACITY as u64, widths: vec![16] });
        model.inputs = (0..self.allowed.len()).map(|input| self.block(input, learned)).collect();
        model
    }

    fn export(&self, name: &str, store: &mut Store) {
        let mut flows = Flows::new(CAPACITY as u64);
        let mut all: Vec<_> = self.learned.ports.iter().collect();
        all.sort_unstable_by_key(|(_, seen)| seen.order);
        for (address, seen) in all {
            let flow = Flow {
                keys: [vec![address], vec![address, 0]],
                values: [vec![seen.port as u128], vec![seen.port as u128]],
                common: Vec::new(),
                expiry: seen.expiry,
                guarantee: 0,
            };
            flows.insert(flow, 0);
        }
        store.set(name, STATE, StateValue::Flows(flows));
    }

    fn import(&mut self, name: &str, store: &Store) {
        let Some(StateValue::Flows(flows)) = store.get(name, STATE) else { return };
        self.learned = Learned::default();
        let list = self.learned.list(None);
        let mut all: Vec<&Flow> = flows.iter().collect();
        // Stable, so that of those that expire together the order stays.
        all.sort_by_key(|flow| flow.expiry);
        for flow in all {
            if let (Some(&address), Some(&port)) = (flow.keys[0].first(), flow.values[0].first()) {
                self.learned.add(address as u64, port as usize, flow.expiry, list);
            }
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("table"),
                Handler::both("timeout"),
                Handler::read("port_forwarding"),
                Handler::write("remove_port_forwarding"),
                Handler::write("reset_port_forwarding"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "timeout" => (self.timeout / SECOND).to_string(),
            "table" => {
                let known = self.learned.ports.iter().filter(|(_, seen)| seen.expiry > cx.now);
                let mut all: Vec<_> = known.collect();
                all.sort_unstable_by_key(|(address, _)| *address);
                let line = |(address, seen): (u128, &Seen)| {
                    let [_, _, a, b, c, d, e, f] = (address as u64).to_be_bytes();
                    format!("{:#} {}\n", EtherAddr([a, b, c, d, e, f]), seen.port)
                };
                all.into_iter().map(line).collect()
            }
            _ => {
                let line = |(input, allowed): (usize, &Vec<bool>)| {
                    let bits: String = allowed.iter().map(|a| if *a { '1' } else { '0' }).collect();
                    let weight = allowed.iter().filter(|a| **a).count();
                    format!("weight: {weight}\t{input}: {bits}\n")
                };
                self.allowed.iter().enumerate().map(line).collect()
            }
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "timeout" => self.timeout = parse_value::<Nanoseconds>(value)?.0,
            "remove_port_forwarding" => self.forbid(value)?,
            _ => self.allowed = all_but_own(self.allowed.len()),
        }
        Ok(())
    }
}
