//! What is read ahead: packets that have come wait for the turn, and the state of the flows that the NF's runtime will ask for is
//! read meanwhile.
//!
//! It is a guess, by the fields of the flows that the runtime read first: who reads a flow that was not guessed waits for Redis.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use nf::{Answer, Flow};

/// Flows after which it is looked whether reading ahead helps.
const LOOK: u64 = 4096;

/// A flow that is read ahead: by which request, and what is kept of it, once that is known.
#[derive(Debug)]
struct Entry {
    number: u64,
    answer: Option<Answer>,
}

/// Flows that were read ahead for batches that are not done.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    entries: HashMap<Flow, Entry, RandomState>,
    /// The flows of each request.
    requests: VecDeque<(u64, Vec<Flow>)>,
    /// The last request.
    last: u64,
    /// Flows that were asked for, and those that nobody read in the end.
    counts: [u64; 2],
}

impl Ahead {
    /// Begins to read flows; the number of the request.
    pub(super) fn ask(&mut self, flows: &[Flow]) -> u64 {
        self.last += 1;
        let number = self.last;
        self.entries.extend(flows.iter().map(|flow| (*flow, Entry { number, answer: None })));
        self.requests.push_back((number, flows.to_vec()));
        number
    }

    /// The last request.
    pub(super) fn asked(&self) -> u64 {
        self.last
    }

    /// What is kept of the flows of a request. Those that were updated since, or asked for once more, are others'.
    pub(super) fn put(&mut self, number: u64, flows: &[Flow], answers: Vec<Answer>) {
        for (flow, answer) in flows.iter().zip(answers) {
            if let Some(entry) = self.entries.get_mut(flow).filter(|of| of.number == number) {
                entry.answer = Some(answer);
            }
        }
    }

    /// What is kept of a flow that is read now, if that was read ahead.
    pub(super) fn take(&mut self, flow: &Flow) -> Option<Answer> {
        self.entries.remove(flow)?.answer.filter(|answer| *answer != Answer::Away)
    }

    /// What is known of a flow is old.
    pub(super) fn forget(&mut self, flow: &Flow) {
        if !self.entries.is_empty() {
            self.entries.remove(flow);
        }
    }

    /// Nothing is known.
    pub(super) fn give_up(&mut self) {
        self.entries.clear();
        self.requests.clear();
    }

    /// Forgets what requests up to this one have read: it is as old as its batch. Whether most flows of late were of use.
    pub(super) fn end(&mut self, number: u64) -> bool {
        while let Some((_, flows)) = self.requests.pop_front_if(|of| of.0 <= number) {
            self.counts[0] += flows.len() as u64;
            for flow in flows {
                if self.entries.get(&flow).is_some_and(|of| of.number <= number) {
                    self.entries.remove(&flow);
                    self.counts[1] += 1;
                }
            }
        }
        let [all, unread] = self.counts;
        if all >= LOOK {
            self.counts = [0; 2];
        }
        all < LOOK || unread <= all / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(number: u8) -> Flow {
        Flow([number; nf::FLOW])
    }

    #[test]
    fn what_was_updated_since_is_not_known() {
        let mut ahead = Ahead::default();
        let value = |of: u8| Answer::Value(vec![of]);
        let first = ahead.ask(&[flow(1), flow(2), flow(3)]);
        ahead.forget(&flow(1));
        // What is asked for once more is not what was asked for before.
        ahead.forget(&flow(2));
        let second = ahead.ask(&[flow(2)]);
        ahead.put(first, &[flow(1), flow(2), flow(3)], vec![value(1), value(2), Answer::Absent]);
        assert_eq!([1, 2, 3].map(|of| ahead.take(&flow(of))), [None, None, Some(Answer::Absent)]);
        ahead.put(second, &[flow(2)], vec![value(4)]);
        assert_eq!(ahead.take(&flow(2)), None);
        // Nor is what the batch did not read, or could not be read.
        let third = ahead.ask(&[flow(5), flow(6)]);
        ahead.put(third, &[flow(5), flow(6)], vec![value(5), Answer::Away]);
        assert_eq!(ahead.take(&flow(6)), None);
        assert!(ahead.end(third) && ahead.entries.is_empty() && ahead.requests.is_empty());
        assert_eq!(ahead.take(&flow(5)), None);
    }

    #[test]
    fn it_is_seen_whether_reading_ahead_helps() {
        for (reads, helps) in [(true, true), (false, false)] {
            let mut ahead = Ahead::default();
            let flows = vec![flow(1)];
            let all = (0..LOOK).map(|_| {
                let number = ahead.ask(&flows);
                ahead.put(number, &flows, vec![Answer::Absent]);
                if reads {
                    assert_eq!(ahead.take(&flow(1)), Some(Answer::Absent));
                }
                ahead.end(number)
            });
            assert_eq!(all.filter(|helps| !helps).count(), usize::from(!helps));
        }
    }
}
