//! Address resolution, what ARPQuerier and IP6NDSolicitor have in common: packets get the Ethernet header of their next
//! hop, or wait while its address is asked for.

use std::cell::RefCell;

use ir::field::Field;
use ir::model::{Block, Reg};
use ir::{Expr, Model, Op, Reason};
use net::wire::EtherAddr;
use net::{Batch, Packet, annotation};

use crate::context::Context;
use crate::ethernet::ether_encap;
use crate::ethernet::neighbours::{Answer, NOT_ASKED, Neighbours, Probe};

/// Packets without next hop.
pub(crate) const NO_NEXT_HOP: Reason = Reason("no-next-hop");

/// What becomes of a packet.
pub(crate) enum Hop {
    Known(EtherAddr),
    /// Known, but so long that it is to be asked for again.
    Old(EtherAddr),
    Unknown,
    Unfit(Reason),
}

/// What resolves the addresses of next hops on a link.
pub(crate) struct Link<'a> {
    pub(crate) neighbours: &'a RefCell<Neighbours>,
    /// The station's own address.
    pub(crate) ether: EtherAddr,
    /// After how many nanoseconds known addresses are asked for again; 0 for never.
    pub(crate) poll_timeout: u64,
    pub(crate) outputs: usize,
}

impl Link<'_> {
    fn is_old(&self, since: u64, now: u64) -> bool {
        self.poll_timeout > 0 && now >= since.saturating_add(self.poll_timeout)
    }
}

/// An address that is asked for, and what the query has of the packet that waits for it.
pub(crate) struct Wanted {
    pub(crate) address: u128,
    pub(crate) timestamp: u64,
    pub(crate) vlan_tci: u16,
}

/// A protocol that resolves addresses.
pub(crate) trait Resolver {
    /// Of the packets that get a header.
    const ETHER_TYPE: u16;

    fn link(&self) -> Link<'_>;

    /// Why no packet can be sent, if none can.
    fn unfit(&self) -> Option<Reason> {
        None
    }

    /// A packet's next hop.
    fn next_hop(packet: &Packet) -> u128;

    /// What becomes of packets to an address that is not in the table.
    fn unlisted(&self, to: u128) -> Hop;

    /// A query: of the neighbour alone that had this address, or of all.
    fn query(
        &mut self,
        wanted: &Wanted,
        neighbour: Option<EtherAddr>,
        cx: &mut Context<'_>,
    ) -> Packet;

    /// What a frame answers, or why it is no answer.
    fn answer(&self, frame: &[u8]) -> Result<Answer, Reason>;

    /// Counts an answer that was believed.
    fn answered(&mut self) {}

    #[inline]
    fn hop(&self, to: u128, neighbours: &Neighbours, now: u64) -> Hop {
        if let Some(reason) = self.unfit() {
            return Hop::Unfit(reason);
        }
        match neighbours.lookup(to, now) {
            Some((ether, since)) if self.link().is_old(since, now) => Hop::Old(ether),
            Some((ether, _)) => Hop::Known(ether),
            None => self.unlisted(to),
        }
    }

    #[inline]
    fn encapsulate(&self, packet: &mut Packet, to: EtherAddr) {
        let header = ether_encap::header(to, self.link().ether, Self::ETHER_TYPE);
        ether_encap::encapsulate(packet, &header);
    }

    /// Sends a query out of the last output; `out` is what leaves output 0.
    fn ask(
        &mut self,
        wanted: &Wanted,
        neighbour: Option<EtherAddr>,
        out: &mut Batch,
        cx: &mut Context<'_>,
    ) {
        let query = self.query(wanted, neighbour, cx);
        match self.link().outputs {
            1 => out.push(query),
            n => cx.emit(n - 1, query),
        }
    }

    fn send(&mut self, mut packet: Packet, out: &mut Batch, cx: &mut Context<'_>) {
        let (to, now) = (Self::next_hop(&packet), cx.now());
        let vlan_tci = packet.annotations().u16(annotation::VLAN_TCI);
        let wanted = Wanted { address: to, timestamp: packet.timestamp(), vlan_tci };
        let hop = self.hop(to, &self.link().neighbours.borrow(), now);
        match hop {
            Hop::Known(ether) => {
                self.encapsulate(&mut packet, ether);
                out.push(packet);
            }
            Hop::Old(ether) => {
                let probe = self.link().neighbours.borrow_mut().probe(to, now);
                if let Some(probe) = probe {
                    let neighbour = (probe == Probe::Neighbour).then_some(ether);
                    self.ask(&wanted, neighbour, out, cx);
                }
                self.encapsulate(&mut packet, ether);
                out.push(packet);
            }
            Hop::Unknown => {
                let ask = self.link().neighbours.borrow_mut().wait(to, packet, now, cx);
                if ask {
                    self.ask(&wanted, None, out, cx);
                }
            }
            Hop::Unfit(reason) => cx.drop(packet, reason),
        }
    }

    fn take(&mut self, packet: Packet, out: &mut Batch, cx: &mut Context<'_>) {
        let answer = match self.answer(packet.data()) {
            Ok(answer) => answer,
            Err(reason) => return cx.drop(packet, reason),
        };
        let (link, now) = (self.link(), cx.now());
        let waited = link.neighbours.borrow_mut().answer(answer, link.poll_timeout, now, cx);
        let Some(waited) = waited else {
            return cx.drop(packet, NOT_ASKED);
        };
        self.answered();
        cx.core.pool.recycle(packet);
        for mut packet in waited {
            self.encapsulate(&mut packet, answer.ether);
            out.push(packet);
        }
    }

    /// Takes packets on input 0 and answers on input 1.
    fn resolve(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let mut ready = 0;
        if port == 0 {
            let neighbours = self.link().neighbours.borrow();
            for packet in batch.iter_mut() {
                let hop = self.hop(Self::next_hop(packet), &neighbours, cx.now());
                let Hop::Known(ether) = hop else { break };
                self.encapsulate(packet, ether);
                ready += 1;
            }
        }
        if ready == batch.len() {
            return;
        }
        let mut out = cx.core.batch();
        for (i, packet) in batch.drain().enumerate() {
            match port {
                0 if i < ready => out.push(packet),
                0 => self.send(packet, &mut out, cx),
                _ => self.take(packet, &mut out, cx),
            }
        }
        std::mem::swap(batch, &mut out);
        cx.core.recycle_batch(out);
    }

    /// What that means. `to` is where the next hop stands, and `unlisted` says what [`Resolver::unlisted`] does, of which
    /// packets are sent by what it is given; frames that are no answers leave by `answers`.
    fn model_resolve(
        &self,
        owner: Option<String>,
        to: Field,
        unlisted: impl FnOnce(&dyn Fn(Expr) -> Block) -> Block,
        mut answers: Block,
    ) -> Model {
        const MAC: Reg = Reg(0);
        const SINCE: Reg = Reg(1);
        let Link { neighbours, ether, poll_timeout, .. } = self.link();
        let mut model = Model::default();
        let flows = model.declare_of(owner, Neighbours::STATE, neighbours.borrow().state_kind());
        let send = || {
            let mut block = ether_encap::model_encapsulate(MAC, ether, Self::ETHER_TYPE);
            block.push(Op::emit(0u8));
            block
        };
        let mut miss = unlisted(&|mac| [vec![Op::Let(MAC, mac)], send()].concat());
        miss.push(Op::Opaque("asks for an address"));
        let mut block: Block = self.unfit().map(Op::Drop).into_iter().collect();
        let (key, value, common) = (vec![to.get()], vec![MAC], vec![SINCE]);
        block.push(Op::FlowLookup { flows, key, value, common, miss });
        if poll_timeout > 0 {
            let old = Expr::Now.ge(Expr::from(SINCE) + poll_timeout);
            block.push(Op::when(old, vec![Op::Opaque("asks for an address again")]));
        }
        block.extend(send());
        answers.push(Op::Opaque("learns an address"));
        model.inputs = vec![block, answers];
        model
    }
}
