//! What an NF's runtime knows of flows: the state of those that it used last, and what is still to be sent.
//!
//! With a store behind it, what it does not know is read there. Without, it is all that there is.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;

use foldhash::fast::RandomState;

use crate::abi::{LONGEST_MESSAGE, LONGEST_VALUE, kind};
use crate::channel::{expect, send};
use crate::flow::Flow;
use crate::store::{Answer, LONGEST_UPDATE, MOST_READ, parse_answers, push_update, read_text};

/// That state cannot be read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away;

#[derive(Debug)]
struct Entry {
    flow: Flow,
    value: Option<Box<[u8]>>,
    /// The last update of it; 0 if there was none.
    update: u64,
    used: bool,
}

/// The state of flows.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// By which fields packets have flows, if the NF keeps state.
    pub(crate) fields: Option<u8>,
    /// Where the store is asked.
    pub(crate) socket: Option<OwnedFd>,
    /// Flows that it holds at most.
    capacity: usize,
    entries: Vec<Entry>,
    /// Where each flow's entry is.
    places: HashMap<Flow, usize, RandomState>,
    /// The entry that leaves next, unless it was used since it was last here.
    hand: usize,
    /// The number of the last update.
    last: u64,
    /// Updates that are to be sent.
    updates: Vec<u8>,
}

impl Cache {
    pub(crate) fn new(fields: Option<u8>, socket: Option<OwnedFd>, capacity: usize) -> Self {
        Self { fields, socket, capacity, ..Self::default() }
    }

    pub(crate) fn has(&self, flow: &Flow) -> bool {
        self.places.contains_key(flow)
    }

    fn insert(&mut self, flow: Flow, value: Option<Box<[u8]>>, update: u64) {
        if let Some(&place) = self.places.get(&flow) {
            self.entries[place] = Entry { flow, value, update, used: true };
            return;
        }
        let entry = Entry { flow, value, update, used: false };
        let place = if self.entries.len() < self.capacity.max(1) {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let place = self.leaving();
            self.places.remove(&self.entries[place].flow);
            self.entries[place] = entry;
            place
        };
        self.places.insert(flow, place);
    }

    /// The entry that is replaced next.
    fn leaving(&mut self) -> usize {
        loop {
            let place = self.hand;
            self.hand = (place + 1) % self.entries.len();
            if !std::mem::take(&mut self.entries[place].used) {
                return place;
            }
        }
    }

    /// Reads flows from the store, in one request; those that cannot be read now.
    pub(crate) fn fetch(&mut self, flows: &[Flow]) -> Result<Vec<Flow>> {
        let mut away = Vec::new();
        let Some(socket) = &self.socket else { return Ok(away) };
        let mut all = Vec::with_capacity(flows.len());
        for some in flows.chunks(MOST_READ) {
            send(socket, kind::READ, &read_text(some), &[])?;
            let mut answers = Vec::with_capacity(some.len());
            while answers.len() < some.len() {
                let (body, _) = expect(socket, kind::VALUES)?;
                let some = parse_answers(&body).filter(|some| !some.is_empty());
                answers.extend(some.ok_or_else(|| Error::from(ErrorKind::InvalidData))?);
            }
            all.extend(some.iter().copied().zip(answers));
        }
        for (flow, answer) in all {
            match answer {
                Answer::Absent => self.insert(flow, None, 0),
                Answer::Value(value) => self.insert(flow, Some(value.into()), 0),
                Answer::Away => away.push(flow),
            }
        }
        Ok(away)
    }

    /// What is kept of a flow, and its last update.
    pub(crate) fn read(&mut self, flow: &Flow) -> std::result::Result<(Option<&[u8]>, u64), Away> {
        let mut place = self.places.get(flow).copied();
        if place.is_none() && self.socket.is_some() {
            // What was updated before it left the cache is written before it is read.
            let read = self.flush().and_then(|()| self.fetch(&[*flow]));
            if read.map_or(true, |away| !away.is_empty()) {
                return Err(Away);
            }
            place = self.places.get(flow).copied();
        }
        Ok(match place.map(|place| &mut self.entries[place]) {
            Some(entry) => {
                entry.used = true;
                (entry.value.as_deref(), entry.update)
            }
            None => (None, 0),
        })
    }

    /// Keeps a value, or removes it; the number of the update, 0 if nobody is told. None if it is too long.
    pub(crate) fn update(&mut self, flow: &Flow, value: Option<&[u8]>) -> Option<u64> {
        if value.is_some_and(|value| value.len() > LONGEST_VALUE) {
            return None;
        }
        let mut number = 0;
        if self.socket.is_some() {
            self.last += 1;
            number = self.last;
            if self.updates.len() + LONGEST_UPDATE > LONGEST_MESSAGE {
                let _ = self.flush();
            }
            push_update(&mut self.updates, number, flow, value);
        }
        self.insert(*flow, value.map(Into::into), number);
        Some(number)
    }

    /// Sends what was updated.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if let Some(socket) = self.socket.as_ref().filter(|_| !self.updates.is_empty()) {
            send(socket, kind::UPDATE, &self.updates, &[])?;
            self.updates.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::FLOW;

    #[test]
    fn what_is_used_stays() {
        let mut cache = Cache::new(None, None, 3);
        let flow = |number: u8| Flow([number; FLOW]);
        for number in 1..=3 {
            assert_eq!(cache.update(&flow(number), Some(&[number])), Some(0));
        }
        assert_eq!(cache.read(&flow(1)), Ok((Some(&[1][..]), 0)));
        cache.update(&flow(4), Some(&[4]));
        assert!(cache.has(&flow(1)) && !cache.has(&flow(2)) && cache.has(&flow(4)));
        cache.update(&flow(1), None);
        assert_eq!(cache.read(&flow(1)), Ok((None, 0)));
        assert_eq!(cache.update(&flow(1), Some(&[0; LONGEST_VALUE + 1])), None);
        for number in 5..200 {
            cache.update(&flow(number), Some(&[number]));
        }
        assert_eq!((cache.entries.len(), cache.places.len()), (3, 3));
    }
}
