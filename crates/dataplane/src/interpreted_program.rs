//! A program carried out by interpreting it: the reference that faster ways are held to.

use std::cell::RefCell;
use std::rc::Rc;

use ir::program::interp::{Environment, interpret};
use ir::program::{End, Program};
use ir::{NodeId, Port, Reason, Store};
use net::{Batch, Packet};

use crate::router::Taker;
use crate::{Stage, StageContext};

/// A packet was lost to a program that is wrong.
const FAULT: Reason = Reason("program-fault");

/// A stage that interprets a program. It works on the [`Store`] that the chain's elements share
/// if they are [`crate::Interpreted`]; elements that keep their state to themselves would not
/// notice.
///
/// Each packet goes to the end of its way before the next one is looked at, so that the state is
/// always that of packet-by-packet processing.
pub struct InterpretedProgram {
    program: Program,
    store: Rc<RefCell<Store>>,
}

impl InterpretedProgram {
    /// A stage for a program.
    pub fn new(program: Program, store: &Rc<RefCell<Store>>) -> Self {
        Self { program, store: Rc::clone(store) }
    }
}

struct Surroundings<'a, 'b>(&'a mut StageContext<'b>);

impl Environment for Surroundings<'_, '_> {
    fn now(&self) -> u64 {
        self.0.now()
    }

    fn note(&mut self, element: NodeId, reason: Reason) {
        self.0.noted(element, reason, 1);
    }
}

fn push(cx: &mut StageContext<'_>, to: Port, packet: Packet, taker: Taker, laps: u32) {
    let mut single = cx.core.batch();
    single.push(packet);
    cx.push(to, single, taker, laps);
}

impl Stage for InterpretedProgram {
    fn process(&mut self, batch: &mut Batch, cx: &mut StageContext<'_>) {
        let mut rest = cx.core.batch();
        rest.append(batch);
        let mut packets = rest.drain();
        let mut pushed = false;
        for mut packet in packets.by_ref() {
            let store = &mut self.store.borrow_mut();
            let exit = interpret(&self.program, &mut packet, store, &mut Surroundings(cx));
            let bytes = packet.len() as u64;
            if let Ok(exit) = &exit {
                cx.passed(exit, 1);
            }
            match exit.map(|exit| (exit.end, exit)) {
                Ok((End::Push { to, native }, exit)) => {
                    let taker = if native { Taker::Element } else { Taker::Stage };
                    let laps = cx.laps(exit);
                    push(cx, to, packet, taker, laps);
                    pushed = true;
                    break;
                }
                Ok((End::Handoff { to }, _)) => {
                    push(cx, self.program.entry, packet, Taker::Continuation(to), 0);
                    pushed = true;
                    break;
                }
                Ok((End::Drop { element, reason }, _)) => cx.drop(element, packet, reason, bytes),
                Err(fault) => {
                    let entry = self.program.entry.node;
                    cx.error(entry, &fault.to_string());
                    cx.drop(entry, packet, FAULT, bytes);
                }
            }
        }
        packets.for_each(|packet| batch.push(packet));
        if pushed && !batch.is_empty() {
            let mut later = cx.core.batch();
            later.append(batch);
            cx.push(self.program.entry, later, Taker::of(&self.program), 0);
        }
        cx.core.recycle_batch(rest);
    }
}
