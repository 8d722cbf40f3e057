//! Search for the contents of many rules at once: one pass of an automaton finds which rules may match, and only these
//! are looked at.

use std::borrow::Cow;
use std::cell::OnceCell;

use aho_corasick::AhoCorasick;

use super::http::{self, Message};
use super::snort::{Action, Buffer, Content, Rule};

/// A packet as rules see it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen<'a> {
    pub protocol: u8,
    pub src: u32,
    pub dst: u32,
    /// 0 without ports.
    pub src_port: u16,
    pub dst_port: u16,
    /// Type and code of ICMP.
    pub icmp: Option<(u8, u8)>,
    /// Whether it is of a connection of TCP that begins or began: it has ACK, and no SYN.
    pub established: bool,
    pub payload: &'a [u8],
}

/// What is found in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadMatch {
    /// What becomes of the packet.
    pub action: Action,
    /// The first rule that matched and says so.
    pub rule: usize,
}

/// Searches of contents for a rule in a packet, at the most: what takes more is taken for no match.
const MOST_STEPS: u32 = 2000;

/// Rules, ready for the search.
pub(crate) struct Engine {
    pub rules: Vec<Rule>,
    automaton: AhoCorasick,
    /// The rules whose pattern in the automaton this is.
    by_pattern: Vec<Vec<u32>>,
    /// Rules without contents that must be there.
    always: Vec<u32>,
    /// By rule, the last payload whose pattern was found, to look at each once.
    noted: Vec<u64>,
    payloads: u64,
    candidates: Vec<u32>,
    /// Rules that were given up in a packet.
    pub given_up: u64,
}

/// The buffers of a payload.
struct Buffers<'a> {
    payload: &'a [u8],
    http: Option<Message<'a>>,
    uri: Cow<'a, [u8]>,
    lower: [OnceCell<Vec<u8>>; Buffer::COUNT],
}

impl<'a> Buffers<'a> {
    fn new(payload: &'a [u8], is_tcp: bool) -> Self {
        let http = if is_tcp { Message::of(payload) } else { None };
        let uri = http.as_ref().map_or(Cow::Borrowed(&[][..]), |m| http::decoded(m.target));
        Self { payload, http, uri, lower: Default::default() }
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
            Buffer::Header => message.headers,
            Buffer::Cookie => message.header(if is_request { "cookie" } else { "set-cookie" })?,
            Buffer::ClientBody if is_request => message.body,
            Buffer::FileData if !is_request => message.body,
            Buffer::StatusCode => message.status,
            Buffer::StatusMessage => message.reason,
            Buffer::ClientBody | Buffer::FileData => return None,
        };
        Some(part)
    }

    fn lower(&self, buffer: Buffer) -> Option<&[u8]> {
        let part = self.get(buffer)?;
        Some(self.lower[buffer as usize].get_or_init(|| part.to_ascii_lowercase()))
    }

    /// Whether contents are all there, one after the other where they say so.
    fn have(&self, contents: &[Content], before: i64, steps: &mut u32) -> bool {
        let Some((content, rest)) = contents.split_first() else { return true };
        let part = match content.any_case {
            true => self.lower(content.buffer),
            false => self.get(content.buffer),
        };
        let Some(part) = part else { return content.negated && self.have(rest, before, steps) };
        let (from, length) = match content.is_relative() {
            true => (before + content.distance.unwrap_or(0), content.within),
            false => (content.offset, content.depth),
        };
        let end = length.map_or(part.len() as i64, |length| (from + length).min(part.len() as i64));
        let place = |at: i64| usize::try_from(at).unwrap_or(0).min(part.len());
        let (mut from, end) = (place(from), place(end));
        loop {
            if *steps == 0 {
                return false;
            }
            *steps -= 1;
            let window = part.get(from..end).unwrap_or_default();
            let found = memchr::memmem::find(window, &content.bytes);
            match found {
                None if content.negated => return self.have(rest, before, steps),
                None => return false,
                Some(_) if content.negated => return false,
                Some(at) => {
                    let after = (from + at + content.bytes.len()) as i64;
                    if self.have(rest, after, steps) {
                        return true;
                    }
                    // Where the next one does not depend on this one, another place changes nothing.
                    if !rest.first().is_some_and(Content::is_relative) {
                        return false;
                    }
                    from += at + 1;
                }
            }
        }
    }
}

/// The content that is looked for first: the longest of those that must be there.
fn first(rule: &Rule) -> Option<&Content> {
    rule.contents.iter().filter(|c| !c.negated).max_by_key(|c| c.bytes.len())
}

impl Engine {
    /// Makes the automaton.
    ///
    /// # Errors
    /// It would be too large.
    pub(crate) fn new(rules: Vec<Rule>) -> Result<Self, String> {
        let mut patterns: Vec<Vec<u8>> = Vec::new();
        let mut by_pattern: Vec<Vec<u32>> = Vec::new();
        let mut known = std::collections::HashMap::new();
        let mut always = Vec::new();
        for (rule, number) in rules.iter().zip(0u32..) {
            match first(rule) {
                None => always.push(number),
                Some(content) => {
                    let pattern = content.bytes.to_ascii_lowercase();
                    let at = *known.entry(pattern.clone()).or_insert_with(|| {
                        patterns.push(pattern);
                        by_pattern.push(Vec::new());
                        by_pattern.len() - 1
                    });
                    by_pattern[at].push(number);
                }
            }
        }
        let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(&patterns);
        let automaton = automaton.map_err(|why| why.to_string())?;
        let noted = vec![0; rules.len()];
        Ok(Self {
            rules,
            automaton,
            by_pattern,
            always,
            noted,
            payloads: 0,
            candidates: Vec::new(),
            given_up: 0,
        })
    }

    /// What the rules say of a packet. `matched` hears of each rule that matches.
    pub(crate) fn look(
        &mut self,
        seen: &Seen<'_>,
        mut matched: impl FnMut(usize),
    ) -> Option<PayloadMatch> {
        self.payloads += 1;
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        candidates.extend_from_slice(&self.always);
        let buffers = Buffers::new(seen.payload, seen.protocol == 6);
        // What is encoded in the payload is only found decoded.
        let decoded = match &buffers.uri {
            Cow::Owned(uri) => &uri[..],
            Cow::Borrowed(_) => &[],
        };
        for text in [seen.payload, decoded] {
            for found in self.automaton.find_overlapping_iter(text) {
                for &rule in &self.by_pattern[found.pattern().as_usize()] {
                    let noted = &mut self.noted[rule as usize];
                    if *noted != self.payloads {
                        *noted = self.payloads;
                        candidates.push(rule);
                    }
                }
            }
        }
        candidates.sort_unstable();
        let mut found: Option<PayloadMatch> = None;
        for &number in &candidates {
            let rule = &self.rules[number as usize];
            if !is_about(rule, seen, &buffers) {
                continue;
            }
            let mut steps = MOST_STEPS;
            if buffers.have(&rule.contents, 0, &mut steps) {
                matched(number as usize);
                if found.is_none_or(|found| rule.action < found.action) {
                    found = Some(PayloadMatch { action: rule.action, rule: number as usize });
                }
            } else if steps == 0 {
                self.given_up += 1;
            }
        }
        self.candidates = candidates;
        found
    }
}

/// Whether a rule is about packets like this one, whatever they hold.
fn is_about(rule: &Rule, seen: &Seen<'_>, buffers: &Buffers<'_>) -> bool {
    let within = |range: Option<(u32, u32)>, n: Option<u32>| {
        range.is_none_or(|(low, high)| n.is_some_and(|n| (low..=high).contains(&n)))
    };
    let ends = |src: u32, src_port: u16, dst: u32, dst_port: u16| {
        rule.src.contains(src.into())
            && rule.dst.contains(dst.into())
            && rule.src_port.contains(src_port.into())
            && rule.dst_port.contains(dst_port.into())
    };
    let Seen { src, src_port, dst, dst_port, .. } = *seen;
    let uri = || buffers.http.as_ref().map(|_| buffers.uri.len() as u32);
    rule.protocol.is_none_or(|protocol| protocol == seen.protocol)
        && (!rule.established || seen.protocol != 6 || seen.established)
        && (ends(src, src_port, dst, dst_port) || rule.both && ends(dst, dst_port, src, src_port))
        && within(rule.size, Some(seen.payload.len() as u32))
        && (rule.uri_size.is_none() || within(rule.uri_size, uri()))
        && within(rule.icmp_type, seen.icmp.map(|(kind, _)| kind.into()))
        && within(rule.icmp_code, seen.icmp.map(|(_, code)| code.into()))
}

#[cfg(test)]
mod tests {
    use super::super::snort::RuleSet;
    use super::*;

    fn engine(rules: &str) -> Engine {
        let mut set = RuleSet::default();
        rules.lines().for_each(|line| set.read(line).unwrap());
        assert!(set.left_out.is_empty(), "{:?}", set.left_out);
        Engine::new(set.rules).unwrap()
    }

    fn finds(options: &str, payload: &[u8]) -> bool {
        let mut engine = engine(&format!("alert tcp any any -> any any ({options} sid:1;)"));
        let seen = Seen { protocol: 6, established: true, payload, ..Seen::default() };
        engine.look(&seen, |_| {}).is_some()
    }

    #[test]
    fn contents_are_where_the_rule_says() {
        assert!(finds(r#"content:"bc";"#, b"abcd") && !finds(r#"content:"bd";"#, b"abcd"));
        assert!(finds(r#"content:"BC"; nocase;"#, b"abcd") && !finds(r#"content:"BC";"#, b"abcd"));
        assert!(finds(r#"content:"b"; offset:1; depth:1;"#, b"ab"));
        assert!(
            !finds(r#"content:"b"; offset:2;"#, b"abc")
                && !finds(r#"content:"b"; depth:1;"#, b"ab")
        );
        assert!(finds(r#"content:"a"; content:"c"; distance:1; within:1;"#, b"abc"));
        assert!(!finds(r#"content:"a"; content:"c"; distance:2;"#, b"abc"));
        assert!(!finds(r#"content:"a"; content:"d"; within:2;"#, b"abcd"));
        assert!(finds(r#"content:"a"; content:!"d"; within:2;"#, b"abcd"));
        assert!(!finds(r#"content:"a"; content:!"d";"#, b"abcd"));
        // The second `a` is the one that has a `b` behind it.
        assert!(finds(r#"content:"a"; content:"b"; within:1;"#, b"a-ab"));
        assert!(finds(r#"content:"b"; content:"a"; distance:-2; within:1;"#, b"ab"));
        assert!(
            finds(r#"content:"abc"; dsize:3;"#, b"abc")
                && !finds(r#"content:"abc"; dsize:>3;"#, b"abc")
        );
    }

    #[test]
    fn parts_of_http_are_searched_apart() {
        let request = b"POST /a%2Fb HTTP/1.1\r\nHost: h\r\nCookie: k=v\r\n\r\nbody /x";
        assert!(finds(r#"content:"/a/b"; http_uri;"#, request));
        assert!(finds(r#"content:"/a%2f"; nocase; http_raw_uri;"#, request));
        assert!(!finds(r#"content:"/x"; http_uri;"#, request));
        assert!(finds(r#"content:"/x"; http_client_body; content:"POST"; http_method;"#, request));
        assert!(finds(r#"content:"k=v"; http_cookie; content:"Host|3A|"; http_header;"#, request));
        assert!(finds(r#"content:"/a"; http_uri; urilen:4;"#, request));
        assert!(!finds(r#"content:"/a"; http_uri; urilen:<4;"#, request));
        let response = b"HTTP/1.0 200 OK\r\n\r\nMZ..";
        assert!(finds(
            r#"content:"200"; http_stat_code; file_data; content:"MZ"; depth:2;"#,
            response
        ));
        assert!(!finds(r#"file_data; content:"MZ";"#, b"MZ"));
    }

    #[test]
    fn rules_that_let_pass_win() {
        let mut engine = engine(concat!(
            "alert tcp any any -> any 80 (content:\"x\"; sid:1;)\n",
            "drop tcp any any -> any any (content:\"xy\"; sid:2;)\n",
            "pass tcp 10.0.0.1 any -> any any (content:\"x\"; sid:3;)\n",
            "alert icmp any any <> any any (itype:8; sid:4;)\n",
        ));
        let mut of = |src, protocol, payload: &[u8]| {
            let icmp = (protocol == 1).then_some((8, 0));
            let seen = Seen { protocol, src, dst_port: 80, icmp, payload, ..Seen::default() };
            let mut all = Vec::new();
            (engine.look(&seen, |rule| all.push(rule)).map(|f| f.action), all)
        };
        assert_eq!(of(1, 6, b"x"), (Some(Action::Alert), vec![0]));
        assert_eq!(of(1, 6, b"xy"), (Some(Action::Drop), vec![0, 1]));
        assert_eq!(of(0x0a00_0001, 6, b"xy"), (Some(Action::Pass), vec![0, 1, 2]));
        assert_eq!(of(1, 17, b"xy"), (None, vec![]));
        assert_eq!(of(1, 1, b""), (Some(Action::Alert), vec![3]));
    }

    #[test]
    fn what_a_rule_costs_is_bounded() {
        let hard = r#"content:"a"; content:"a"; distance:0; content:"a"; distance:0; content:"b"; distance:0;"#;
        let mut engine =
            engine(&format!("alert tcp any any -> any any ({hard} content:\"cc\"; sid:1;)"));
        let payload = [&[b'a'; 3000][..], b"cc"].concat();
        let seen = Seen { protocol: 6, payload: &payload, ..Seen::default() };
        assert_eq!(engine.look(&seen, |_| {}), None);
        assert_eq!(engine.given_up, 1);
    }
}
