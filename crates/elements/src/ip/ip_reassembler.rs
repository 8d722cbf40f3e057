//! IPReassembler.

use std::collections::BTreeMap;

use ir::field::{ip, meta};
use ir::{Model, Op, Reason};
use net::wire::Ipv4;
use net::wire::ipv4::{DF, MF, RF};
use net::{Batch, Header, Packet};

use crate::argument::AnnotationOffset;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::ip::ip_header::{self, NO_HEADER};
use crate::lru_table::LruTable;

element! {
    /// IPReassembler([KEYWORDS HIMEM, MAX_MTU_ANNO]) -- puts fragments of IP packets together
    ///
    /// Expects IP packets with their header marked. Packets that are no fragments pass. Fragments
    /// are kept until all of their packet are there (RFC 791); then the whole packet goes out,
    /// with the header, annotations and what lay before the header of the first fragment, and
    /// the timestamp of the one that came last. Where fragments overlap, later data counts.
    ///
    /// Packets that are still incomplete 30 seconds after their first fragment came are given
    /// up, as are the oldest ones when too much memory is used. If their beginning is there, it
    /// goes to output 1, for an ICMP error, or is dropped if that is not connected.
    ///
    /// = KEYWORDS
    ///
    /// HIMEM (number, default 262144): how many bytes of fragments are kept at the most. Packets of few
    /// bytes take more than these: however many they are, they take no more memory than HIMEM, or
    /// 16 MiB if that is more.
    /// MAX_MTU_ANNO (annotation): receives the length of a packet's longest fragment, 2 bytes.
    ///
    /// = HANDLERS
    ///
    /// dump (read): counts, and the packets that are incomplete.
    ///
    /// = SEE ALSO
    ///
    /// IPFragmenter
    IPReassembler {
        category: Ip, ports: "1/1-2", processing: "h/h",
        samples: [("", 1, 1), ("HIMEM 3000, MAX_MTU_ANNO 40", 1, 2)]
    }
}

/// See [`IPReassembler::CLASS`].
pub(crate) struct IPReassembler {
    /// In one list, the packet whose first fragment came first at its head.
    incomplete: LruTable<Incomplete>,
    high_memory: usize,
    /// Bytes of payload, and [`OVERHEAD`] for each packet.
    memory: usize,
    /// Bytes of memory that is taken.
    taken: usize,
    mtu_annotation: Option<usize>,
    /// When old packets are looked for next, in nanoseconds.
    next_reap: u64,
    /// Packets that were begun before are old.
    old_before: u64,
    fragments: u64,
    whole: u64,
    failed: u64,
}

/// Source, destination, protocol and identification (RFC 791, 2.3).
type Key = u128;

/// A packet of which fragments are missing.
struct Incomplete {
    /// What lies before the payload, and as much of that as reaches to the furthest fragment.
    packet: Packet,
    /// Where the IP header starts in the data.
    header: usize,
    header_length: usize,
    /// Parts of the payload that are there, the end of each by its start: disjoint, not adjacent.
    present: BTreeMap<usize, usize>,
    /// Length of the payload, once the last fragment came.
    total: Option<usize>,
    /// When the first fragment came, in nanoseconds.
    since: u64,
    longest: u16,
}

/// A malformed fragment, or one that contradicts those that came before.
const BAD_FRAGMENT: Reason = Reason("bad-fragment");
/// Fragments of the packet did not arrive in time, or made room for others.
const GIVEN_UP: Reason = Reason("reassembly-given-up");

const TIMEOUT: u64 = 30_000_000_000;
const REAP_INTERVAL: u64 = 10_000_000_000;
/// Old packets that are given up for a fragment at most.
const REAPED_AT_ONCE: usize = 8;
/// What a packet costs besides its payload.
const OVERHEAD: usize = 40;
/// The list of all incomplete packets.
const ALL: usize = 0;
/// So much memory may be taken even if HIMEM is less.
const LEAST_ROOM: usize = 16 << 20;
/// What a part of a payload takes in a tree whose nodes are half full.
const PART: usize = 48;

/// Where a fragment's payload lies in the packet.
struct FragmentSpan {
    key: Key,
    header_length: usize,
    start: usize,
    end: usize,
    more: bool,
}

impl FragmentSpan {
    /// The span of a valid fragment, given its header and the bytes from there on.
    fn of(bytes: &[u8]) -> Option<Self> {
        let ip = Ipv4::new(bytes)?;
        let header_length = ip.header_len();
        let length = usize::from(ip.total_len());
        let payload = length.checked_sub(header_length).filter(|n| *n > 0)?;
        let start = ip.fragment_offset();
        let (end, more) = (start + payload, ip.more_fragments());
        let fits = header_length >= 20
            && length <= bytes.len()
            && end + header_length <= 0xffff
            && (!more || payload.is_multiple_of(8));
        let key = u128::from(ip.src().to_bits()) << 56
            | u128::from(ip.dst().to_bits()) << 24
            | u128::from(ip.protocol()) << 16
            | u128::from(ip.id());
        fits.then_some(Self { key, header_length, start, end, more })
    }
}

impl Incomplete {
    /// Bytes of payload that there is room for.
    fn extent(&self) -> usize {
        self.packet.len() - self.header - self.header_length
    }

    /// Bytes of memory that it takes.
    fn taken(&self) -> usize {
        size_of::<(Key, Self)>() + self.packet.memory() + self.present.len() * PART
    }

    /// Puts a fragment's payload in. `false` if it contradicts what is known of the length.
    fn add(&mut self, span: &FragmentSpan, fragment: &Packet, at: usize) -> bool {
        let ends_differ = match (self.total, span.more) {
            (Some(total), true) => span.end > total,
            (Some(total), false) => span.end != total,
            (None, true) => false,
            (None, false) => span.end < self.extent(),
        };
        let front = at + span.header_length;
        let Some(payload) = fragment.data().get(front..front + span.end - span.start) else {
            return false;
        };
        if ends_differ {
            return false;
        }
        self.packet.put(span.end.saturating_sub(self.extent()));
        if span.start == 0 {
            self.take_front(fragment, at, span.header_length);
        }
        let start = self.header + self.header_length + span.start;
        self.packet.data_mut()[start..start + payload.len()].copy_from_slice(payload);
        if !span.more {
            self.total = Some(span.end);
        }
        self.mark(span.start, span.end);
        true
    }

    /// Takes over all that lies before the payload of the first fragment.
    fn take_front(&mut self, fragment: &Packet, at: usize, header_length: usize) {
        let flags =
            Ipv4::new(&self.packet.data()[self.header..]).map_or(0, |ip| ip.fragment_word());
        let (old, new) = (self.header + self.header_length, at + header_length);
        self.packet.pull(old);
        self.packet.push(new);
        (self.header, self.header_length) = (at, header_length);
        let front = &mut self.packet.data_mut()[..new];
        front.copy_from_slice(&fragment.data()[..new]);
        if let Some(mut ip) = Ipv4::new(&mut front[at..]) {
            ip.set_fragment_word(flags);
        }
        *self.packet.annotations_mut() = *fragment.annotations();
        self.packet.set_packet_type(fragment.packet_type());
        self.packet.set_ip_header(at, header_length);
        let removed = ip_header::removed(fragment);
        let n = self.packet.headroom().min(removed.len());
        self.packet.push(n);
        self.packet.data_mut()[..n].copy_from_slice(&removed[removed.len() - n..]);
        self.packet.pull(n);
        match fragment.header_offset(Header::Mac) {
            Some(mac) => self.packet.set_header_offset(Header::Mac, mac),
            None => self.packet.clear_header(Header::Mac),
        }
    }

    /// Notes that a part of the payload is there.
    fn mark(&mut self, start: usize, end: usize) {
        let (mut low, mut high) = (start, end);
        while let Some((&s, &e)) = self.present.range(..=high).next_back()
            && e >= low
        {
            self.present.remove(&s);
            (low, high) = (low.min(s), high.max(e));
        }
        self.present.insert(low, high);
    }

    /// Makes a packet of the first `payload` bytes.
    fn finish(mut self, payload: usize, more: u16, timestamp: u64) -> Packet {
        let length = self.header_length + payload;
        self.packet.truncate(self.header + length);
        if let Some(mut ip) = Ipv4::new(&mut self.packet.data_mut()[self.header..]) {
            ip.set_total_len(length as u16);
            ip.set_fragment_word(ip.fragment_word() & (RF | DF) | more);
            ip.fill_checksum();
        }
        self.packet.set_timestamp(timestamp);
        self.packet
    }
}

impl IPReassembler {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["HIMEM", "MAX_MTU_ANNO"]);
        let high_memory: u32 = arguments.keyword("HIMEM").unwrap_or(256 * 1024);
        let mtu_annotation = arguments.keyword::<AnnotationOffset<2>>("MAX_MTU_ANNO");
        arguments.finish()?;
        Ok(Self {
            incomplete: LruTable::default(),
            high_memory: high_memory as usize,
            memory: 0,
            taken: 0,
            mtu_annotation: mtu_annotation.map(|a| a.0),
            next_reap: 0,
            old_before: 0,
            fragments: 0,
            whole: 0,
            failed: 0,
        })
    }

    /// Takes a fragment; gives the whole packet if that was its last.
    fn collect(&mut self, fragment: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        let now = match fragment.timestamp() {
            0 => cx.now(),
            time => time,
        };
        self.fragments += 1;
        if now >= self.next_reap {
            self.old_before = now.saturating_sub(TIMEOUT);
            self.next_reap = now.saturating_add(REAP_INTERVAL);
        }
        self.reap(cx);
        let at = fragment.header_offset(Header::Network).and_then(|at| usize::try_from(at).ok());
        let span = fragment.network().and_then(FragmentSpan::of);
        let (Some(span), Some(at)) = (span, at) else {
            cx.drop(fragment, BAD_FRAGMENT);
            return None;
        };
        self.make_room(cx);
        if self.incomplete.get(span.key).is_none() {
            self.begin(&span, &fragment, now, cx);
        }
        let entry = self.incomplete.get_mut(span.key)?;
        let before = (entry.extent(), entry.taken());
        let added = entry.add(&span, &fragment, at);
        self.memory += entry.extent() - before.0;
        // Parts that join take less.
        self.taken = self.taken + entry.taken() - before.1;
        if !added {
            cx.drop(fragment, BAD_FRAGMENT);
            return None;
        }
        entry.longest = entry.longest.max((span.header_length + span.end - span.start) as u16);
        if let Some(mtu) = self.mtu_annotation {
            entry.packet.annotations_mut().set_u16(mtu, entry.longest);
        }
        cx.core.pool.recycle(fragment);
        let total = entry.total.filter(|total| entry.present.get(&0) == Some(total))?;
        let entry = self.remove(span.key)?;
        self.whole += 1;
        Some(entry.finish(total, 0, now))
    }

    fn begin(&mut self, span: &FragmentSpan, fragment: &Packet, now: u64, cx: &mut Context<'_>) {
        let mut packet = cx.core.pool.alloc(20);
        let header = fragment.network().and_then(|n| n.first_chunk());
        let mut ip = Ipv4::of(*header.unwrap_or(&[0; 20]));
        ip.set_header_len(20);
        packet.data_mut().copy_from_slice(ip.bytes());
        packet.set_ip_header(0, 20);
        let entry = Incomplete {
            packet,
            header: 0,
            header_length: 20,
            present: BTreeMap::new(),
            total: None,
            since: now,
            longest: 0,
        };
        self.memory += OVERHEAD;
        self.taken += entry.taken();
        self.incomplete.insert(span.key, entry, ALL);
    }

    fn remove(&mut self, key: Key) -> Option<Incomplete> {
        let entry = self.incomplete.remove(key)?;
        self.memory -= OVERHEAD + entry.extent();
        self.taken -= entry.taken();
        Some(entry)
    }

    /// Gives up some of the packets that are old, oldest first.
    fn reap(&mut self, cx: &mut Context<'_>) {
        for _ in 0..REAPED_AT_ONCE {
            match self.incomplete.oldest(ALL) {
                Some((key, entry)) if entry.since < self.old_before => self.give_up(key, cx),
                _ => return,
            }
        }
    }

    /// Bytes of memory that may be taken.
    fn room(&self) -> usize {
        self.high_memory.max(LEAST_ROOM)
    }

    /// Gives up the oldest packets while more memory is used than may be: as many bytes of theirs
    /// as the last fragment brought.
    fn make_room(&mut self, cx: &mut Context<'_>) {
        while (self.memory > self.high_memory || self.taken > self.room())
            && let Some((key, _)) = self.incomplete.oldest(ALL)
        {
            self.give_up(key, cx);
        }
    }

    fn give_up(&mut self, key: Key, cx: &mut Context<'_>) {
        let Some(entry) = self.remove(key) else { return };
        self.failed += 1;
        let timestamp = entry.packet.timestamp();
        match entry.present.get(&0) {
            Some(&end) => cx.reject(1, entry.finish(end, MF, timestamp), GIVEN_UP),
            _ => cx.drop(entry.packet, GIVEN_UP),
        }
    }
}

/// Whether the packet passes as it is.
fn passes(packet: &Packet) -> bool {
    ip_header::view(packet).is_some_and(|ip| !ip.is_fragment())
}

impl Element for IPReassembler {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if batch.iter().all(passes) {
            return;
        }
        let mut kept = cx.core.batch();
        for packet in batch.drain() {
            if passes(&packet) {
                kept.push(packet);
            } else if ip_header::view(&packet).is_none() {
                cx.drop(packet, NO_HEADER);
            } else {
                kept.extend(self.collect(packet, cx));
            }
        }
        std::mem::swap(batch, &mut kept);
        cx.core.recycle_batch(kept);
    }

    fn model(&self) -> Model {
        let whole = ip::FRAG.eq(0u8).and(ip::MF.eq(0u8));
        Model::from_block(vec![
            Op::when(meta::AVAIL_NET.lt(20u8), vec![Op::Drop(NO_HEADER)]),
            Op::when(whole, vec![Op::emit(0u8)]),
            Op::Opaque("keeps fragments"),
        ])
    }

    fn held(&self) -> usize {
        self.incomplete.len()
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if !to.is_all() {
            return;
        }
        to.native = Some(Box::new(std::mem::take(&mut self.incomplete)));
        to.numbers = vec![
            self.memory as u64,
            self.next_reap,
            self.old_before,
            self.fragments,
            self.whole,
            self.failed,
        ];
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        if let Some([memory, next_reap, old_before, fragments, whole, failed]) = from.counts()
            && let Some(incomplete) = from.take_native::<LruTable<Incomplete>>()
        {
            self.incomplete = *incomplete;
            self.taken = self.incomplete.iter_list(ALL).map(|(_, entry)| entry.taken()).sum();
            (self.memory, self.next_reap) = (memory as usize, next_reap);
            self.old_before = old_before;
            (self.fragments, self.whole, self.failed) = (fragments, whole, failed);
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("dump")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let mut text = format!(
            "fragments seen: {}\npackets reassembled: {}\npackets given up: {}\n",
            self.fragments, self.whole, self.failed
        );
        for (key, entry) in self.incomplete.iter_list(ALL) {
            let address = |shift| std::net::Ipv4Addr::from_bits((key >> shift) as u32);
            let (source, destination) = (address(56), address(24));
            let (protocol, id) = ((key >> 16) as u8, key as u16);
            text += &format!("{source} > {destination} protocol {protocol} id {id}:");
            for (start, end) in &entry.present {
                text += &format!(" {start}-{end}");
            }
            text.push('\n');
        }
        Ok(text)
    }
}
