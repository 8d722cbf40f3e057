//! A TCP connection as somebody between its ends sees it: its state, and the windows that segments must fit.
//!
//! The windows are those of Guido van Rooij's "Real Stateful TCP Packet Filtering in IP Filter": each end's
//! last byte, and how far its peer lets it send, bound what it may send and acknowledge next. Answers to
//! segments that may be forged follow RFC 5961: of resets only those with the exact number end a connection.

use ir::Reason;

use super::segment::{Kind, MOST_SCALE, Segment};

/// The segment does not belong to what its sender may send or acknowledge now.
pub(super) const OUT_OF_WINDOW: Reason = Reason("out-of-window");
/// A reset whose number does not fit.
pub(super) const BAD_RST: Reason = Reason("bad-rst");
/// The connection is not in a state in which such a segment comes.
pub(super) const BAD_STATE: Reason = Reason("bad-state");

/// Bytes that an acknowledgment may be late, if windows are smaller.
const LEAST_LATE: u32 = 66_000;

/// Which end sent the first SYN.
pub(super) const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Whether a number is after another, of which half of all are (RFC 9293, 3.4).
#[inline]
pub(super) fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// The client sent a SYN.
    #[default]
    SynSent,
    /// Both did (RFC 9293, 3.5: simultaneous open).
    BothSent,
    /// A SYN was acknowledged by a SYN.
    SynReceived,
    Established,
    /// One end will send no more.
    HalfClosed,
    /// Neither will.
    Closed,
    /// A reset ended it.
    Reset,
}

impl State {
    const ALL: [Self; 7] = [
        Self::SynSent,
        Self::BothSent,
        Self::SynReceived,
        Self::Established,
        Self::HalfClosed,
        Self::Closed,
        Self::Reset,
    ];

    /// The state of this number.
    pub(super) fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SynSent => "syn-sent",
            Self::BothSent => "both-sent-syn",
            Self::SynReceived => "syn-received",
            Self::Established => "established",
            Self::HalfClosed => "half-closed",
            Self::Closed => "closed",
            Self::Reset => "reset",
        }
    }
}

/// What is known of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct End {
    /// Behind the last byte that it sent.
    end: u32,
    /// Behind the last byte that its peer lets it send.
    limit: u32,
    /// The largest window that it offered.
    window: u32,
    /// The furthest that it acknowledged.
    acknowledged: u32,
    /// How far its windows are shifted.
    scale: u8,
    /// Whether it offered to shift them.
    scales: bool,
    /// Whether [`End::acknowledged`] counts.
    has_acknowledged: bool,
    has_finished: bool,
}

impl End {
    /// What a SYN tells.
    fn begin(syn: &Segment) -> Self {
        Self {
            end: syn.end,
            limit: syn.end,
            window: syn.window.max(1),
            acknowledged: syn.ack,
            scale: syn.scale.unwrap_or(0),
            scales: syn.scale.is_some(),
            has_acknowledged: syn.acknowledges,
            has_finished: false,
        }
    }

    fn numbers(&self) -> [u32; 5] {
        let bits = [self.scales, self.has_acknowledged, self.has_finished];
        let bits = bits.into_iter().fold(0, |bits, bit| bits << 1 | u32::from(bit));
        [self.end, self.limit, self.window, self.acknowledged, bits << 8 | u32::from(self.scale)]
    }

    fn from_numbers([end, limit, window, acknowledged, more]: [u32; 5]) -> Self {
        let bit = |at: u32| more >> (8 + at) & 1 != 0;
        Self {
            end,
            limit,
            window,
            acknowledged,
            scale: (more as u8).min(MOST_SCALE),
            scales: bit(2),
            has_acknowledged: bit(1),
            has_finished: bit(0),
        }
    }
}

/// What another SYN of the client tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Again {
    /// How many numbers it takes, its own among them.
    length: u16,
    window: u16,
    scale: Option<u8>,
}

/// A connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub(super) struct Connection {
    pub(super) state: State,
    /// Whether it was found after it had begun, so that its windows are not known.
    is_loose: bool,
    ends: [End; 2],
    /// The client's last SYN: its number, and what it tells. The server may have forgotten the connection.
    syn: u32,
    again: Option<Again>,
}

const _: () = assert!(size_of::<Connection>() == 64);

/// How many numbers a connection is written as.
pub(super) const NUMBERS: usize = 15;

impl Again {
    fn of(syn: &Segment) -> Self {
        let length = syn.end.wrapping_sub(syn.seq) as u16;
        Self { length, window: syn.window as u16, scale: syn.scale }
    }

    /// The end that sent it, with this number.
    fn end(self, seq: u32) -> End {
        let end = seq.wrapping_add(self.length.into());
        End {
            end,
            limit: end,
            window: u32::from(self.window).max(1),
            scale: self.scale.unwrap_or(0),
            scales: self.scale.is_some(),
            ..End::default()
        }
    }

    fn numbers(self) -> [u32; 2] {
        let scale = self.scale.map_or(0, |scale| 0x100 | u32::from(scale));
        [u32::from(self.length) << 16 | u32::from(self.window), scale]
    }

    fn from_numbers([length_window, scale]: [u32; 2]) -> Self {
        let (length, window) = ((length_window >> 16) as u16, length_window as u16);
        let scale = (scale & 0x100 != 0).then_some((scale as u8).min(MOST_SCALE));
        Self { length, window, scale }
    }
}

impl Connection {
    /// One that a SYN begins.
    pub(super) fn begin(syn: &Segment) -> Self {
        let ends = [End::begin(syn), End::default()];
        Self { ends, syn: syn.seq, ..Self::default() }
    }

    /// One that was found after it had begun.
    pub(super) fn found() -> Self {
        Self { state: State::Established, is_loose: true, ..Self::default() }
    }

    /// Takes a SYN of an end in.
    fn add_syn(&mut self, from: usize, syn: &Segment) {
        match (self.state, from) {
            (State::SynSent | State::Closed | State::Reset, CLIENT) => *self = Self::begin(syn),
            (_, CLIENT) if syn.seq == self.syn && self.again.is_none() => {}
            (_, CLIENT) => (self.syn, self.again) = (syn.seq, Some(Again::of(syn))),
            (State::SynSent, _) => {
                self.state = State::BothSent;
                self.open(SERVER, syn);
            }
            _ => {}
        }
    }

    /// Checks a segment of an end, and takes it in if it is valid.
    ///
    /// # Errors
    /// Why it is invalid.
    pub(super) fn check(&mut self, from: usize, segment: &Segment) -> Result<(), Reason> {
        match segment.kind {
            Kind::Syn => {
                let opens = matches!(self.state, State::SynSent | State::BothSent);
                if from != CLIENT && !opens && !self.is_loose {
                    return Err(BAD_STATE);
                }
                self.add_syn(from, segment);
                Ok(())
            }
            Kind::SynAck => self.syn_ack(from, segment),
            Kind::Rst => self.rst(from, segment),
            Kind::Ack => self.ack(from, segment),
        }
    }

    /// Checks an ICMP error about a segment with this number, which an end is said to have sent: who forges one must guess
    /// the number (RFC 5927, 4.1).
    ///
    /// # Errors
    /// That the end did not send it, or that it was acknowledged long ago.
    pub(super) fn quoted(&self, from: usize, seq: u32) -> Result<(), Reason> {
        let [sender, peer] = [self.ends[from], self.ends[1 - from]];
        let earliest = sender.end.wrapping_sub(peer.window.max(LEAST_LATE));
        let fits = !after(seq, sender.end) && !after(earliest, seq);
        let is_again = from == CLIENT && self.again.is_some() && seq == self.syn;
        let has_sent = from == CLIENT || self.state > State::SynSent;
        (self.is_loose || is_again || has_sent && fits).then_some(()).ok_or(OUT_OF_WINDOW)
    }

    /// Whether it is over, so that a SYN of its client begins another.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Closed | State::Reset)
    }

    /// Takes in what an end tells with the SYN that answers or crosses that of its peer.
    fn open(&mut self, from: usize, syn: &Segment) {
        let peer = &mut self.ends[1 - from];
        let mut end = End::begin(syn);
        // Its peer's SYN says how much it may send.
        end.limit = end.end.wrapping_add(peer.window);
        // Windows are shifted if both ends offer it (RFC 7323, 2.2).
        if !(end.scales && peer.scales) {
            (end.scale, peer.scale) = (0, 0);
        }
        if syn.acknowledges {
            peer.limit = syn.ack.wrapping_add(syn.window);
        }
        self.ends[from] = end;
    }

    /// Whether a number acknowledges the client's last SYN.
    fn acknowledges_syn(&self, ack: u32) -> bool {
        let end = self.again.map_or(self.ends[CLIENT].end, |again| again.end(self.syn).end);
        (1..=end.wrapping_sub(self.syn)).contains(&ack.wrapping_sub(self.syn))
    }

    fn syn_ack(&mut self, from: usize, segment: &Segment) -> Result<(), Reason> {
        match (self.state, from) {
            (State::SynSent, SERVER) => {
                if !self.acknowledges_syn(segment.ack) {
                    return Err(OUT_OF_WINDOW);
                }
                self.open(SERVER, segment);
                self.state = State::SynReceived;
            }
            (State::BothSent, _) => {
                self.fit(from, segment)?;
                self.state = State::SynReceived;
            }
            (State::SynReceived, CLIENT) => self.fit(from, segment)?,
            (State::SynSent, _) | (_, CLIENT) => return Err(BAD_STATE),
            // The server knew nothing of the connection, and answers the client's new SYN.
            (_, _) => match self.again {
                Some(again) if self.acknowledges_syn(segment.ack) => {
                    let syn = self.syn;
                    *self = Self { syn, ends: [again.end(syn), End::default()], ..Self::default() };
                    self.open(SERVER, segment);
                    self.state = State::SynReceived;
                }
                _ => self.fit(from, segment)?,
            },
        }
        Ok(())
    }

    fn rst(&mut self, from: usize, segment: &Segment) -> Result<(), Reason> {
        let [sender, peer] = [self.ends[from], self.ends[1 - from]];
        let refuses = from == SERVER && segment.acknowledges && self.acknowledges_syn(segment.ack);
        let is_exact =
            segment.seq == sender.end || peer.has_acknowledged && segment.seq == peer.acknowledged;
        let ends = match self.state {
            // The server has sent nothing: only the SYN tells who knows of the connection (RFC 9293, 3.10.7.3).
            State::SynSent if from == SERVER => refuses,
            State::SynSent => is_exact,
            _ if refuses && self.again.is_some() || self.is_loose => true,
            _ => {
                let oldest = match peer.has_acknowledged {
                    true => peer.acknowledged,
                    false => sender.end.wrapping_sub(peer.window),
                };
                if after(segment.seq, sender.limit) || after(oldest, segment.seq) {
                    return Err(BAD_RST);
                }
                // The receiver asks whether such a one is meant (RFC 5961, 3.2).
                if !is_exact && self.state >= State::Established {
                    return Ok(());
                }
                true
            }
        };
        if !ends {
            return Err(BAD_RST);
        }
        self.state = State::Reset;
        Ok(())
    }

    fn ack(&mut self, from: usize, segment: &Segment) -> Result<(), Reason> {
        match self.state {
            State::SynSent if from == SERVER && !segment.fin => {
                // The server has another connection yet, which the client resets at this number (RFC 9293, 3.5.1).
                let server = &mut self.ends[SERVER];
                (server.acknowledged, server.has_acknowledged) = (segment.ack, true);
                return Ok(());
            }
            State::SynSent | State::BothSent => return Err(BAD_STATE),
            _ => self.fit(from, segment)?,
        }
        if self.state == State::SynReceived && from == CLIENT {
            self.state = State::Established;
        }
        if segment.fin {
            self.ends[from].has_finished = true;
            if self.state < State::HalfClosed {
                self.state = State::HalfClosed;
            }
            if self.state == State::HalfClosed && self.ends[1 - from].has_finished {
                self.state = State::Closed;
            }
        }
        Ok(())
    }

    /// Checks a segment against the windows, and moves them.
    fn fit(&mut self, from: usize, segment: &Segment) -> Result<(), Reason> {
        if self.is_loose {
            return Ok(());
        }
        let [mut sender, mut peer] = [self.ends[from], self.ends[1 - from]];
        let Segment { ack, sack, .. } = *segment;
        // Without data it may be of long ago, but not beyond what its sender may send (RFC 9293, 3.10.7.4) or has sent: a
        // FIN or a probe takes a number behind a full window.
        let has_data = segment.seq != segment.end;
        let end = if has_data { segment.end } else { sender.end };
        let is_late = after(sender.end.wrapping_sub(peer.window), segment.end);
        let latest = peer.end;
        let earliest = latest.wrapping_sub(sender.window.max(LEAST_LATE));
        let is_beyond =
            after(segment.seq, sender.limit) && (has_data || after(segment.seq, sender.end));
        if is_beyond || has_data && is_late || after(sack, latest) || after(earliest, ack) {
            return Err(OUT_OF_WINDOW);
        }
        let shift = if segment.kind == Kind::SynAck { 0 } else { sender.scale };
        let window = segment.window << shift;
        sender.window = sender.window.max(window.wrapping_add(sack.wrapping_sub(ack)));
        if after(end, sender.limit) && after(end, sender.end) {
            // A probe of a closed window; the receiver may take it.
            peer.window = peer.window.saturating_add(end.wrapping_sub(sender.limit));
        }
        if after(end, sender.end) {
            sender.end = end;
        }
        if !sender.has_acknowledged || after(ack, sender.acknowledged) {
            (sender.acknowledged, sender.has_acknowledged) = (ack, true);
        }
        // A closed window is probed with one byte (RFC 9293, 3.8.6.1).
        let limit = sack.wrapping_add(window.max(1));
        if after(limit, peer.limit) {
            peer.limit = limit;
        }
        (self.ends[from], self.ends[1 - from]) = (sender, peer);
        Ok(())
    }

    /// All of it as numbers.
    pub(super) fn numbers(&self) -> [u32; NUMBERS] {
        let [client, server] = self.ends.map(|end| end.numbers());
        let again = self.again.unwrap_or_default().numbers();
        let bits = u32::from(self.is_loose) << 1 | u32::from(self.again.is_some());
        let mut numbers = [0; NUMBERS];
        let all = [self.state as u32, bits, self.syn].into_iter();
        let all = all.chain(client).chain(server).chain(again);
        numbers.iter_mut().zip(all).for_each(|(number, value)| *number = value);
        numbers
    }

    /// From its numbers, if they are those of one.
    pub(super) fn from_numbers(numbers: &[u32; NUMBERS]) -> Option<Self> {
        let [state, bits, syn, rest @ ..] = *numbers;
        let end = |at: usize| Some(End::from_numbers(*rest.get(5 * at..)?.first_chunk()?));
        let again = Again::from_numbers(*rest.last_chunk()?);
        Some(Self {
            state: State::of(u8::try_from(state).ok()?)?,
            is_loose: bits >> 1 & 1 != 0,
            ends: [end(0)?, end(1)?],
            syn,
            again: (bits & 1 != 0).then_some(again),
        })
    }
}

#[cfg(test)]
mod tests;
