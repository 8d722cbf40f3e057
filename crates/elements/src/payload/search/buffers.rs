//! The parts of a payload, and whether they are as rules demand.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::super::http::{self, Message};
use super::super::snort::detection::{Buffer, Content, Detection, Number, Variables};

/// The parts of a payload.
pub(super) struct Buffers<'a> {
    payload: &'a [u8],
    http: Option<Message<'a>>,
    uri: Cow<'a, [u8]>,
    /// Whether headers count only once all are there.
    is_stream: bool,
    lower: [OnceCell<Vec<u8>>; Buffer::COUNT],
}

/// What was found of what a rule demands, for what follows.
#[derive(Clone, Copy)]
struct Place {
    /// Where the match before ended.
    end: i64,
    read: Variables,
}

impl<'a> Buffers<'a> {
    /// The parts of a payload, which begins with a message of HTTP, if any.
    pub(super) fn new(payload: &'a [u8], http: Option<Message<'a>>, is_stream: bool) -> Self {
        let uri = http.as_ref().map_or(Cow::Borrowed(&[][..]), |m| http::decoded(m.target));
        Self { payload, http, uri, is_stream, lower: Default::default() }
    }

    /// What a request asks for, with percent-encoded bytes decoded.
    pub(super) fn uri(&self) -> Option<&Cow<'a, [u8]>> {
        self.http.as_ref().map(|_| &self.uri)
    }

    /// A part of the payload; none if it has no such part.
    fn get(&self, buffer: Buffer) -> Option<&[u8]> {
        if buffer == Buffer::Payload {
            return Some(self.payload);
        }
        let message = self.http.as_ref()?;
        let is_request = !message.method.is_empty();
        let part = match buffer {
            Buffer::Payload => self.payload,
            Buffer::Method => message.method,
            Buffer::Uri => &self.uri,
            Buffer::RawUri => message.target,
            Buffer::StatusCode => message.status,
            Buffer::StatusMessage => message.reason,
            Buffer::Header => message.headers,
            Buffer::Cookie => message.header(if is_request { "cookie" } else { "set-cookie" })?,
            Buffer::ClientBody if is_request => message.body,
            Buffer::FileData if !is_request => message.body,
            Buffer::ClientBody | Buffer::FileData => return None,
        };
        Some(part)
    }

    /// Whether it is not known yet what a part has, or whether there is one.
    fn is_open(&self, buffer: Buffer) -> bool {
        let is_behind = matches!(
            buffer,
            Buffer::Header | Buffer::Cookie | Buffer::ClientBody | Buffer::FileData
        );
        is_behind && self.is_stream && self.http.as_ref().is_some_and(|http| !http.is_whole)
    }

    fn lower(&self, buffer: Buffer) -> Option<&[u8]> {
        let part = self.get(buffer)?;
        Some(self.lower[buffer as usize].get_or_init(|| part.to_ascii_lowercase()))
    }

    /// Whether all that is demanded is there, one after the other where it says so, as far as that is found out in so
    /// many steps.
    pub(super) fn have(&self, detections: &[Detection], steps: &mut u32) -> bool {
        self.have_behind(detections, Place { end: 0, read: Variables::default() }, steps)
    }

    fn have_behind(&self, detections: &[Detection], mut place: Place, steps: &mut u32) -> bool {
        let Some((detection, rest)) = detections.split_first() else { return true };
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        if self.is_open(detection.buffer()) {
            return false;
        }
        let part = self.get(detection.buffer());
        let holds = match (detection, part) {
            (Detection::Content(content), _) => {
                return self.have_content(content, rest, place, steps);
            }
            (Detection::Expression(expression), Some(part)) => {
                let from = if expression.is_relative { place.end } else { 0 };
                let from = usize::try_from(from).unwrap_or(0).min(part.len());
                return match expression.negated {
                    true => {
                        !expression.regex.is_match(&part[from..])
                            && self.have_behind(rest, place, steps)
                    }
                    false => self.have_matches(
                        |from| {
                            let found = expression.regex.find(&part[from..])?;
                            Some((from + found.start(), from + found.end()))
                        },
                        (from, part.len()),
                        (rest, place),
                        steps,
                    ),
                };
            }
            (Detection::Expression(expression), None) => expression.negated,
            (Detection::Test(test), part) => {
                part.is_some_and(|part| test.holds(part, place.end, &place.read))
            }
            (Detection::DataAt(data), part) => match part {
                Some(part) => data.holds(part, place.end, &place.read),
                None => data.negated,
            },
            (Detection::Jump(jump), part) => {
                let end = part.and_then(|part| jump.end(part, place.end, &place.read));
                place.end = end.unwrap_or(0);
                end.is_some()
            }
            (Detection::Extract(extract), part) => {
                let found = part.and_then(|part| extract.read(part, place.end, &place.read));
                let (number, end) = found.unwrap_or((0, 0));
                place.read[usize::from(extract.variable)] = number;
                place.end = end;
                found.is_some()
            }
        };
        holds && self.have_behind(rest, place, steps)
    }

    fn have_content(
        &self,
        content: &Content,
        rest: &[Detection],
        place: Place,
        steps: &mut u32,
    ) -> bool {
        let part = match content.any_case {
            true => self.lower(content.buffer),
            false => self.get(content.buffer),
        };
        let Some(part) = part else {
            return content.negated && self.have_behind(rest, place, steps);
        };
        let value = |number: Option<Number>| number.map(|number| number.value(&place.read));
        let (from, length) = match content.distance.is_some() || content.within.is_some() {
            true => (place.end + value(content.distance).unwrap_or(0), value(content.within)),
            false => (content.offset.value(&place.read), value(content.depth)),
        };
        let all = part.len() as i64;
        let end = length.map_or(all, |length| from.saturating_add(length).min(all));
        let within = |at: i64| usize::try_from(at).unwrap_or(0).min(part.len());
        let (from, end) = (within(from), within(end));
        let find = |from: usize| {
            let window = part.get(from..end).unwrap_or_default();
            let at = from + memchr::memmem::find(window, &content.bytes)?;
            Some((at, at + content.bytes.len()))
        };
        if content.negated {
            return find(from).is_none() && self.have_behind(rest, place, steps);
        }
        self.have_matches(find, (from, end), (rest, place), steps)
    }

    /// Whether one of the matches that are found has behind it what else is demanded.
    fn have_matches(
        &self,
        find: impl Fn(usize) -> Option<(usize, usize)>,
        (mut from, end): (usize, usize),
        (rest, place): (&[Detection], Place),
        steps: &mut u32,
    ) -> bool {
        while let Some((start, after)) = find(from) {
            if self.have_behind(rest, Place { end: after as i64, ..place }, steps) {
                return true;
            }
            // Where nothing depends on this match, another one changes nothing.
            from = start + 1;
            if *steps == 0 || from > end || !rest.iter().any(Detection::is_relative) {
                return false;
            }
            *steps -= 1;
        }
        false
    }
}
