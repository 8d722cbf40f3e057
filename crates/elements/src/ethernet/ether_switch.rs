//! EtherSwitch.

mod learned;

use std::cell::RefCell;
use std::rc::Rc;

use ir::field::{eth, meta};
use ir::model::{Block, FlowSide, Reg, StateKind, StateRef};
use ir::{Expr, IntervalSet, Model, Op, Reason, StateValue};
use net::Batch;
use net::wire::Ethernet;

use crate::argument::{Nanoseconds, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::flow_access::FlowAccess;
use crate::flow_table;
use crate::listing::{self, Slice};
use learned::{CAPACITY, Learned};

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
    /// For each input, whether frames may leave on each output.
    allowed: Vec<Vec<bool>>,
    /// Shared with the programs that look addresses up in it.
    learned: Rc<RefCell<Learned>>,
}

const TOO_SHORT: Reason = Reason("too-short");
/// There is no other port that the frame may be sent to.
const NOWHERE: Reason = Reason("no-other-port");

/// Name of the state that holds what was learned: address to port.
const STATE: &str = "addresses";

const SECOND: u64 = 1_000_000_000;

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
        Ok(Self { allowed, learned: Rc::new(RefCell::new(Learned::new(timeout.0))) })
    }

    fn flood(&self, input: usize) -> Block {
        let mut ports = (0..self.allowed.len()).rev().filter(|&port| self.allowed[input][port]);
        let Some(last) = ports.next() else { return vec![Op::Drop(NOWHERE)] };
        let copies = ports.rev().map(|port| Op::EmitCopy(port.into()));
        copies.chain([Op::emit(last)]).collect()
    }

    fn block(&self, input: usize, learned: StateRef) -> Block {
        let mut block = vec![Op::when(meta::LEN.lt(14u8), vec![Op::Drop(TOO_SHORT)])];
        let timeout = self.learned.borrow().timeout;
        if timeout == 0 {
            block.extend(self.flood(input));
            return block;
        }
        const SEEN_AT: Reg = Reg(0);
        let expiry = || (Expr::Now | flow_table::tick(timeout)) + timeout;
        let side = |key| FlowSide { key, value: vec![input.into()] };
        let learn = || Op::FlowInsert {
            flows: learned,
            forward: side(vec![eth::SRC.get()]),
            reverse: side(vec![eth::SRC.get(), 0u8.into()]),
            common: Vec::new(),
            expiry: expiry(),
            guarantee: 0u8.into(),
            full: Vec::new(),
        };
        let renew = Op::FlowUpdate {
            flows: learned,
            key: vec![eth::SRC.get()],
            common: Vec::new(),
            expiry: expiry(),
            guarantee: 0u8.into(),
        };
        // What comes from a known address on its port renews what is known, and makes nothing new.
        block.push(Op::FlowLookup {
            flows: learned,
            key: vec![eth::SRC.get()],
            value: vec![SEEN_AT],
            common: Vec::new(),
            miss: [vec![learn()], self.forward(input, learned, &[])].concat(),
        });
        let moved = [vec![learn()], self.forward(input, learned, &[])].concat();
        block.push(Op::when(Expr::from(SEEN_AT).ne(input), moved));
        block.extend(self.forward(input, learned, &[renew]));
        block
    }

    /// Sends a frame where its destination was seen, or everywhere, after some operations.
    fn forward(&self, input: usize, learned: StateRef, first: &[Op]) -> Block {
        const PORT: Reg = Reg(1);
        let first = || first.iter().cloned();
        let flood: Block = first().chain(self.flood(input)).collect();
        let allowed = (0..self.allowed.len()).filter(|&port| self.allowed[input][port]);
        let allowed = allowed.map(|port| (port as u128, port as u128)).collect();
        let is_group = ((eth::DST.get() >> 40u8) & 1u8).eq(1u8);
        let mut block = vec![
            Op::when(is_group, flood.clone()),
            Op::FlowLookup {
                flows: learned,
                key: vec![eth::DST.get()],
                value: vec![PORT],
                common: Vec::new(),
                miss: flood,
            },
        ];
        block.extend(first());
        block.push(Op::If(
            Expr::from(PORT).is_in(IntervalSet::from_intervals(allowed)),
            vec![Op::Emit(PORT.into())],
            vec![Op::Drop(NOWHERE)],
        ));
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

impl Element for EtherSwitch {
    fn push(&mut self, input: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        let Self { allowed, learned } = self;
        let mut learned = learned.borrow_mut();
        let Some(allowed) = allowed.get(input) else { return };
        let last = allowed.iter().rposition(|allowed| *allowed);
        // Copies and packets of one output must stay in order, so none stays in the batch.
        for packet in batch.drain() {
            let Some(frame) = Ethernet::new(packet.data()) else {
                cx.drop(packet, TOO_SHORT);
                continue;
            };
            if learned.timeout > 0 {
                learned.learn(frame.src().to_bits(), input, now);
                let to = frame.dst();
                let port = learned.port(to.to_bits(), now).filter(|_| !to.is_multicast());
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

    fn export(&mut self, name: &str, to: &mut ElementState) {
        to.set(name, STATE, StateValue::Flows(self.learned.borrow().export()));
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        if let Some(StateValue::Flows(flows)) = from.declared.get(name, STATE) {
            self.learned.borrow_mut().import(flows);
        }
    }

    fn flows(&self) -> Option<Rc<RefCell<dyn FlowAccess>>> {
        Some(Rc::clone(&self.learned) as Rc<RefCell<dyn FlowAccess>>)
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
            "timeout" => (self.learned.borrow().timeout / SECOND).to_string(),
            "table" => listing::whole(|from| self.list(handler, from, cx)),
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

    fn list(&self, handler: &str, from: u64, cx: &HandlerContext<'_>) -> Option<Slice> {
        (handler == "table").then(|| self.learned.borrow().part(from, cx.now))
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "timeout" => self.learned.borrow_mut().timeout = parse_value::<Nanoseconds>(value)?.0,
            "remove_port_forwarding" => self.forbid(value)?,
            _ => self.allowed = all_but_own(self.allowed.len()),
        }
        Ok(())
    }
}
