//! Messages about state between an NF and its host: what is read, what it is, and what is updated.
//!
//! Both sides read them: neither trusts the other's lengths.

use crate::abi::{ABSENT, AWAY, FLOW, LONGEST_MESSAGE, LONGEST_VALUE};
use crate::flow::Flow;

/// What the host answers of a flow that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing is kept of it.
    Absent,
    /// This is kept.
    Value(Vec<u8>),
    /// It cannot be read now.
    Away,
}

/// An update of a flow's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Its number: one more than that of the update before.
    pub number: u64,
    /// The flow.
    pub flow: Flow,
    /// What is kept of it from now on; nothing if it is removed.
    pub value: Option<Vec<u8>>,
}

/// Flows of one message that are read at most.
pub const MOST_READ: usize = LONGEST_MESSAGE / FLOW;

pub(crate) fn read_text(flows: &[Flow]) -> Vec<u8> {
    flows.iter().flat_map(|flow| flow.0).collect()
}

/// The flows that an NF reads.
pub(crate) fn read_flows(body: &[u8]) -> Option<Vec<Flow>> {
    let (flows, rest) = body.as_chunks::<FLOW>();
    (!flows.is_empty() && rest.is_empty()).then(|| flows.iter().copied().map(Flow).collect())
}

/// Answers as messages, each as long as it may be.
pub(crate) fn answer_texts(answers: &[Answer]) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for answer in answers {
        let (word, value): (u16, &[u8]) = match answer {
            Answer::Absent => (ABSENT, &[]),
            Answer::Away => (AWAY, &[]),
            Answer::Value(value) if value.len() <= LONGEST_VALUE => (value.len() as u16, value),
            // No NF wrote it.
            Answer::Value(_) => (AWAY, &[]),
        };
        if all.last().is_none_or(|of| of.len() + 2 + value.len() > LONGEST_MESSAGE) {
            all.push(Vec::new());
        }
        if let Some(last) = all.last_mut() {
            last.extend(word.to_le_bytes());
            last.extend(value);
        }
    }
    all
}

/// Reads the answers of one message.
pub(crate) fn parse_answers(mut body: &[u8]) -> Option<Vec<Answer>> {
    let mut all = Vec::new();
    while !body.is_empty() {
        let word = u16::from_le_bytes(take(&mut body, 2)?.try_into().ok()?);
        all.push(match word {
            ABSENT => Answer::Absent,
            AWAY => Answer::Away,
            length => {
                let length = usize::from(length);
                let value = take(&mut body, length).filter(|_| length <= LONGEST_VALUE)?;
                Answer::Value(value.to_vec())
            }
        });
    }
    Some(all)
}

/// Appends an update to a message.
pub(crate) fn push_update(to: &mut Vec<u8>, number: u64, flow: &Flow, value: Option<&[u8]>) {
    to.extend(number.to_le_bytes());
    to.extend(flow.0);
    to.extend(value.map_or(ABSENT, |value| value.len() as u16).to_le_bytes());
    to.extend(value.unwrap_or_default());
}

/// Bytes of an update at most.
pub(crate) const LONGEST_UPDATE: usize = 8 + FLOW + 2 + LONGEST_VALUE;

/// Reads the updates of one message.
pub(crate) fn parse_updates(mut body: &[u8]) -> Option<Vec<Update>> {
    let mut all = Vec::new();
    while !body.is_empty() {
        let number = u64::from_le_bytes(take(&mut body, 8)?.try_into().ok()?);
        let flow = Flow(take(&mut body, FLOW)?.try_into().ok()?);
        let value = match u16::from_le_bytes(take(&mut body, 2)?.try_into().ok()?) {
            ABSENT => None,
            length if usize::from(length) <= LONGEST_VALUE => {
                Some(take(&mut body, usize::from(length))?.to_vec())
            }
            _ => return None,
        };
        all.push(Update { number, flow, value });
    }
    (!all.is_empty()).then_some(all)
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back() {
        let flows = [Flow([1; FLOW]), Flow([2; FLOW])];
        assert_eq!(read_flows(&read_text(&flows)).as_deref(), Some(&flows[..]));
        let large = Answer::Value(vec![7; LONGEST_VALUE]);
        let answers: Vec<Answer> =
            [Answer::Absent, large, Answer::Away].into_iter().cycle().take(300).collect();
        let texts = answer_texts(&answers);
        assert!(texts.len() > 1 && texts.iter().all(|text| text.len() <= LONGEST_MESSAGE));
        let back: Vec<Answer> =
            texts.iter().flat_map(|text| parse_answers(text).unwrap()).collect();
        assert_eq!(back, answers);
        let mut text = Vec::new();
        push_update(&mut text, 1, &flows[0], Some(b"abc"));
        push_update(&mut text, 2, &flows[1], None);
        let updates = parse_updates(&text).unwrap();
        assert_eq!(updates[0].value.as_deref(), Some(&b"abc"[..]));
        assert_eq!((updates[1].number, updates[1].flow, &updates[1].value), (2, flows[1], &None));
        // Cut short, they are refused.
        let ends = [8 + FLOW + 2 + 3, text.len()];
        for length in 0..=text.len() {
            assert_eq!(parse_updates(&text[..length]).is_some(), ends.contains(&length));
        }
    }

    #[test]
    fn whatever_comes_is_read_or_refused() {
        let mut random = 1u64;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as usize
        };
        for _ in 0..2_000 {
            let length = next() % 300;
            let body: Vec<u8> =
                (0..length).map(|_| [0, 0xff, 3, next() as u8][next() % 4]).collect();
            let _ = (parse_updates(&body), parse_answers(&body), read_flows(&body));
        }
    }
}
