//! A program executed by interpreting it: the reference that faster modes are held to.

use std::cell::RefCell;
use std::rc::Rc;

use ir::program::interp::{Environment, interpret};
use ir::program::{End, Exit, Program};
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
/// Each packet goes to the end of its path before the next one is looked at, so that the state is
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

struct Surroundings<'a, 'b> {
    cx: &'a mut StageContext<'b>,
    /// Copies, with the exits that say where they go.
    copies: Vec<(Exit, Packet)>,
}

impl Environment for Surroundings<'_, '_> {
    fn now(&self) -> u64 {
        self.cx.now()
    }

    fn note(&mut self, element: NodeId, reason: Reason) {
        self.cx.noted(element, reason, 1);
    }

    fn copy(&mut self, packet: &Packet) -> Packet {
        self.cx.core.pool.copy(packet)
    }

    fn copied(&mut self, exit: &Exit, copy: Packet) {
        self.copies.push((exit.clone(), copy));
    }
}

fn push(cx: &mut StageContext<'_>, to: Port, packet: Packet, taker: Taker, loops: u32) {
    let mut single = cx.core.batch();
    single.push(packet);
    cx.push(to, single, taker, loops);
}

impl InterpretedProgram {
    /// Sends a packet, or a copy of one, where its exit says; whether it goes on.
    fn leave(
        &self,
        packet: Packet,
        (exit, leaving): (&Exit, &Exit),
        cx: &mut StageContext<'_>,
    ) -> bool {
        let bytes = packet.len() as u64;
        cx.passed(leaving, 1);
        match leaving.end {
            End::Push { to, native } => {
                let taker = if native { Taker::Element } else { Taker::Stage };
                let loops = cx.loops(exit, leaving);
                push(cx, to, packet, taker, loops);
            }
            End::Handoff { to } => {
                push(cx, self.program.entry, packet, Taker::Continuation(to), 0);
            }
            End::Drop { element, reason } => {
                cx.drop(element, packet, reason, bytes);
                return false;
            }
        }
        true
    }
}

impl Stage for InterpretedProgram {
    fn process(&mut self, batch: &mut Batch, cx: &mut StageContext<'_>) {
        let mut rest = cx.core.batch();
        rest.append(batch);
        let mut packets = rest.drain();
        let mut pushed = false;
        for mut packet in packets.by_ref() {
            let store = &mut self.store.borrow_mut();
            let mut around = Surroundings { cx, copies: Vec::new() };
            let exit = interpret(&self.program, &mut packet, store, &mut around);
            let copies = std::mem::take(&mut around.copies);
            match exit {
                Ok(exit) => {
                    for (leaving, copy) in copies {
                        pushed |= self.leave(copy, (exit, &leaving), cx);
                    }
                    pushed |= self.leave(packet, (exit, exit), cx);
                }
                Err(fault) => {
                    let (entry, bytes) = (self.program.entry.node, packet.len() as u64);
                    cx.error(entry, &fault.to_string());
                    cx.drop(entry, packet, FAULT, bytes);
                }
            }
            if pushed {
                break;
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
