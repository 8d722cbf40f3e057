//! The connections that a SYN proxy stands between.

use std::net::SocketAddr;

use net::Packet;
use net::wire::tcp::flag::{FIN, RST};

use super::cookie::Ends;
use super::options::{Change, Offer};
use crate::lru_table::LruTable;
use crate::transport::new_segment::NewSegment;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The client is there, the server did not answer yet.
    Opening,
    Open,
    /// Both ends said FIN, or one RST.
    Closed,
}

/// A connection between two ends that number the server's bytes differently.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    pub ends: Ends,
    pub state: State,
    /// The client's initial sequence number, and the one that it was given as the server's.
    pub sequence: u32,
    pub cookie: u32,
    /// What is added to the server's numbers.
    pub delta: u32,
    /// What both offered. The client's times are its own and the one that it echoed.
    pub client: Offer,
    pub server: Offer,
    /// The shift of windows that the client was told.
    pub scale: u8,
    /// The client's first window, as it stood in the header.
    pub window: u16,
    /// Whether the client, and the server, said FIN.
    pub ended: [bool; 2],
    /// Whether the client was given another cookie since.
    pub is_asked_again: bool,
    pub group: u16,
    /// When the last packet came.
    pub last: u64,
}

/// After how many nanoseconds connections are forgotten that nobody uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub opening: u64,
    pub open: u64,
    pub closed: u64,
}

/// Those whose lists are the states, in order.
const STATES: [State; 3] = [State::Opening, State::Open, State::Closed];

pub(super) struct Connections {
    table: LruTable<Connection>,
    capacity: usize,
    timeouts: Timeouts,
}

impl Connection {
    /// What the server added to its times so that they go on from the one that the client was told.
    fn time_delta(&self) -> u32 {
        match (self.client.times, self.server.times) {
            (Some((_, told)), Some((server, _))) => told.wrapping_sub(server),
            _ => 0,
        }
    }

    /// How the client's segments change.
    pub(super) fn toward_server(&self) -> Change {
        // Without the server's option nobody shifts windows on its side.
        let comes = self.client.scale.filter(|_| self.server.scale.is_none()).unwrap_or(0);
        Change {
            acknowledged: 0u32.wrapping_sub(self.delta),
            without_sack: !self.server.sack,
            echoed: 0u32.wrapping_sub(self.time_delta()),
            scale: [comes, 0],
            ..Change::default()
        }
    }

    /// How the server's segments change.
    pub(super) fn toward_client(&self) -> Change {
        let leaves = if self.client.scale.is_some() { self.scale } else { 0 };
        Change {
            sequence: self.delta,
            time: self.time_delta(),
            scale: [self.server.scale.unwrap_or(0), leaves],
            ..Change::default()
        }
    }

    /// The client's first window without a shift.
    pub(super) fn first_window(&self) -> u32 {
        u32::from(self.window) << self.client.scale.unwrap_or(0)
    }

    /// Takes in flags of the client (0) or the server (1). Who goes on after a reset did not believe it.
    pub(super) fn saw(&mut self, side: usize, flags: u8) {
        self.ended[side] |= flags & FIN != 0;
        let is_over = flags & RST != 0 || self.ended == [true; 2];
        self.state = if is_over { State::Closed } else { State::Open };
    }

    /// Turns a packet into the acknowledgment of the server's SYN, in the client's place.
    pub(super) fn acknowledge(&self, sequence: u32, packet: &mut Packet) {
        let window = match self.server.scale {
            Some(_) => self.window.into(),
            None => self.first_window(),
        };
        let times = self.client.times.zip(self.server.times);
        let times = times.map(|((client, _), (server, _))| (client, server));
        let options = Offer { times, ..Offer::default() }.write();
        let segment = NewSegment {
            from: self.ends.client,
            to: self.ends.server,
            sequence: self.sequence.wrapping_add(1),
            acknowledged: Some(sequence),
            flags: 0,
            window: window.min(0xffff) as u16,
            options: options.bytes(),
        };
        segment.write(packet);
    }

    /// Turns a packet into one that opens the client's window as the server's SYN does.
    pub(super) fn open_window(&self, window: u16, packet: &mut Packet) {
        let times = self.client.times.zip(self.server.times);
        let times = times.map(|((client, told), _)| (told, client));
        let options = Offer { times, ..Offer::default() }.write();
        let segment = NewSegment {
            from: self.ends.server,
            to: self.ends.client,
            sequence: self.cookie.wrapping_add(1),
            acknowledged: Some(self.sequence.wrapping_add(1)),
            flags: 0,
            window: window >> self.client.scale.map_or(0, |_| self.scale),
            options: options.bytes(),
        };
        segment.write(packet);
    }

    /// A line that shows it.
    pub(super) fn line(&self) -> String {
        let [client, server] = [self.ends.client, self.ends.server].map(SocketAddr::from);
        let state = match self.state {
            State::Opening => "opening",
            State::Open => "open",
            State::Closed => "closed",
        };
        format!("{client} > {server} {state}")
    }
}

impl Connections {
    pub(super) fn new(capacity: usize, timeouts: Timeouts) -> Self {
        Self { table: LruTable::default(), capacity: capacity.max(1), timeouts }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn get(&self, key: u128) -> Option<&Connection> {
        self.table.get(key)
    }

    fn timeout(&self, state: State) -> u64 {
        match state {
            State::Opening => self.timeouts.opening,
            State::Open => self.timeouts.open,
            State::Closed => self.timeouts.closed,
        }
    }

    /// Forgets those that nobody used for long, a few at a time.
    pub(super) fn expire(&mut self, now: u64) {
        const MOST: usize = 64;
        for state in STATES {
            for _ in 0..MOST {
                let oldest = self.table.oldest(state as usize);
                let is_over = |of: &Connection| now.saturating_sub(of.last) > self.timeout(state);
                let Some((key, _)) = oldest.filter(|(_, of)| is_over(of)) else { break };
                self.table.remove(key);
            }
        }
    }

    /// Adds one. If there is no room, one goes that is closed, or else one that is not open yet.
    ///
    /// Gives whether there was room.
    pub(super) fn add(&mut self, key: u128, connection: Connection) -> bool {
        if self.table.len() >= self.capacity && self.table.get(key).is_none() {
            let lists = [State::Closed, State::Opening];
            let gone = lists.into_iter().find_map(|state| self.table.oldest(state as usize));
            let Some((gone, _)) = gone else { return false };
            self.table.remove(gone);
        }
        self.table.insert(key, connection, connection.state as usize);
        true
    }

    pub(super) fn remove(&mut self, key: u128) {
        self.table.remove(key);
    }

    /// Changes one.
    pub(super) fn change(&mut self, key: u128, now: u64, change: impl FnOnce(&mut Connection)) {
        if let Some(connection) = self.table.get_mut(key) {
            change(connection);
            connection.last = now;
            let list = connection.state as usize;
            self.table.renew(key, list);
        }
    }

    /// Some of them, from a place on, and the next place.
    pub(super) fn part(
        &self,
        from: u64,
        most: usize,
    ) -> (impl Iterator<Item = &Connection>, Option<u64>) {
        let (part, next) = self.table.part(from, most);
        (part.map(|(_, connection)| connection), next)
    }

    /// Takes those of a group out, or all.
    pub(super) fn take(&mut self, group: Option<u16>) -> Vec<Connection> {
        let is_of = |of: &Connection| group.is_none_or(|group| group == of.group);
        let keys: Vec<u128> =
            self.table.iter().filter(|(_, of)| is_of(of)).map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| self.table.remove(key)).collect()
    }
}
