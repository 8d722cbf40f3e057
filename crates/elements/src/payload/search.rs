//! Search for what many rules demand at once: one pass of an automaton finds which rules may match, and only these are
//! looked at. What a stream says is searched with what came before.

mod automaton;
mod buffers;

use std::borrow::Cow;
use std::net::IpAddr;

use ir::IntervalSet;

use super::http::Message;
use super::rates::Rates;
use super::snort::detection::Detection;
use super::snort::{Action, FlowBits, Rule};
use super::window::{WINDOW, Window};
use crate::transport::segments::Seen;
use automaton::{Automaton, Stopped};
use buffers::Buffers;

/// What is found in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadMatch {
    /// What becomes of the packet.
    pub action: Action,
    /// The first rule that matched and says so.
    pub rule: usize,
    /// Whether it is in no packet alone.
    pub is_in_stream: bool,
}

/// Steps for a rule in a packet, at the most: what takes more is taken for no match.
const MOST_STEPS: u32 = 2000;
/// Rules of a stream whose pattern was found and that do not match yet.
const MOST_PENDING: usize = 64;
/// Bytes of a stream that rules may look at once more, at first, and for each byte that comes.
const CREDIT: usize = 1 << 20;
const CREDIT_PER_BYTE: usize = 64;

/// Where the search of a stream is.
#[derive(Default)]
pub(crate) struct Progress {
    stopped: Option<Stopped>,
    /// Bytes of the window that the automaton has seen.
    searched: usize,
    /// Rules whose pattern was found.
    pending: Vec<u32>,
    /// Rules that matched in this message, or in this window.
    matched: Vec<u32>,
    /// Bytes from the window's start on that belong to a message whose headers are no more there.
    left: u64,
    /// Whether what a request asks for was searched.
    has_uri: bool,
    spent: usize,
    received: usize,
}

impl Progress {
    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        (self.pending.len() + self.matched.len()) * size_of::<u32>()
    }

    /// Has a rule looked at; whether there is room.
    fn pend(&mut self, rule: u32) -> bool {
        if self.matched.contains(&rule) || self.pending.contains(&rule) {
            return true;
        }
        let has_room = self.pending.len() < MOST_PENDING;
        if has_room {
            self.pending.push(rule);
        }
        has_room
    }

    fn note_match(&mut self, rule: u32) {
        if self.matched.len() < MOST_PENDING && !self.matched.contains(&rule) {
            self.matched.push(rule);
        }
    }

    /// Begins with another message.
    fn restart(&mut self) {
        (self.stopped, self.searched, self.left, self.has_uri) = (None, 0, 0, false);
        self.pending.clear();
        self.matched.clear();
    }

    /// Whether so many bytes may be looked at.
    fn may_spend(&mut self, bytes: usize) -> bool {
        let credit = CREDIT.saturating_add(self.received.saturating_mul(CREDIT_PER_BYTE));
        let may = self.spent.saturating_add(bytes) <= credit;
        if may {
            self.spent += bytes;
        }
        may
    }
}

/// The flow of a packet.
pub(crate) struct Flow<'a> {
    /// Whether it is what the client says.
    pub to_server: bool,
    /// Bits that rules set.
    pub bits: &'a mut u128,
    /// What was said before in its direction.
    pub stream: Option<(&'a mut Window, &'a mut Progress)>,
}

/// Rules, ready for the search.
pub(crate) struct Engine {
    pub rules: Vec<Rule>,
    automaton: Automaton,
    /// The rules whose pattern in the automaton this is.
    by_pattern: Vec<Vec<u32>>,
    /// Rules without contents that must be there.
    always: Vec<u32>,
    /// By rule, the last payload whose pattern was found, to look at each once.
    noted: Vec<u64>,
    payloads: u64,
    candidates: Vec<u32>,
    rates: Rates,
    /// Rules that were given up in a packet or stream.
    pub given_up: u64,
}

/// What is looked for first: the longest of the contents that must be there.
fn first(rule: &Rule) -> Option<&[u8]> {
    let contents = rule.detections.iter().filter_map(Detection::content);
    contents.map(|content| &content.bytes[..]).max_by_key(|bytes| bytes.len())
}

/// Whether a rule changes its flow's bits: such rules come first, so that others see it.
fn sets_bits(rule: &Rule) -> bool {
    rule.bits.iter().any(|bits| bits.applied(0) != 0)
}

impl Engine {
    /// Bytes of memory that the automaton of rules takes at the most.
    pub(crate) fn bytes_of(rules: &[Rule]) -> u64 {
        Automaton::bytes_of(rules.iter().filter_map(first).map(<[u8]>::len).sum())
    }

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
                    let pattern = content.to_ascii_lowercase();
                    let at = *known.entry(pattern.clone()).or_insert_with(|| {
                        patterns.push(pattern);
                        by_pattern.push(Vec::new());
                        by_pattern.len() - 1
                    });
                    by_pattern[at].push(number);
                }
            }
        }
        let automaton = Automaton::new(&patterns)?;
        let noted = vec![0; rules.len()];
        Ok(Self {
            rules,
            automaton,
            by_pattern,
            always,
            noted,
            payloads: 0,
            candidates: Vec::new(),
            rates: Rates::new(),
            given_up: 0,
        })
    }

    /// Whether any rule asks who the client is, or for bits of a flow.
    pub(crate) fn asks_for_flows(&self) -> bool {
        self.rules.iter().any(|rule| rule.to_server.is_some() || !rule.bits.is_empty())
    }

    /// What the rules say of a packet, and of what its stream holds with it. `matched` hears of each rule that matches.
    pub(crate) fn look(
        &mut self,
        seen: &Seen<'_>,
        mut flow: Option<Flow<'_>>,
        now: u64,
        mut matched: impl FnMut(usize),
    ) -> Option<PayloadMatch> {
        self.payloads += 1;
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        candidates.extend_from_slice(&self.always);
        let mut stream = flow.as_mut().and_then(|flow| flow.stream.take());
        // A segment that follows on what came is searched once for both.
        let follows = self.take_in(seen, &mut stream);
        let from = match &stream {
            Some((_, progress)) if follows => progress.stopped,
            _ => None,
        };
        let Self { automaton, by_pattern, noted, payloads, rules, given_up, .. } = self;
        let mut note = |rule: u32| {
            let noted = &mut noted[rule as usize];
            if *noted != *payloads {
                *noted = *payloads;
                candidates.push(rule);
            }
        };
        let stopped = automaton.find(from, seen.payload, |pattern, start| {
            for &rule in &by_pattern[pattern] {
                if start >= 0 {
                    note(rule);
                }
                if let Some((_, progress)) = stream.as_mut().filter(|_| follows)
                    && rules[rule as usize].in_streams
                    && !progress.pend(rule)
                {
                    *given_up += 1;
                }
            }
        });
        let http = if seen.protocol == 6 { Message::of(seen.payload) } else { None };
        let buffers = Buffers::new(seen.payload, http, stream.is_some());
        // What is encoded in the payload is only found decoded.
        if let Some(Cow::Owned(uri)) = buffers.uri() {
            automaton
                .find(None, uri, |pattern, _| by_pattern[pattern].iter().for_each(|r| note(*r)));
        }
        let rules = &self.rules;
        candidates.sort_unstable_by_key(|&rule| (!sets_bits(&rules[rule as usize]), rule));
        let mut found = None;
        for &number in &candidates {
            let rule = &self.rules[number as usize];
            let (to_server, bits) =
                flow.as_ref().map_or((None, 0), |f| (Some(f.to_server), *f.bits));
            let fits = rule.size.is_none_or(|size| has(size, seen.payload.len()))
                && is_about(rule, seen, (to_server, bits), &buffers);
            if !fits || !self.holds(number, &buffers) {
                continue;
            }
            if let Some((_, progress)) = &mut stream {
                progress.pending.retain(|rule| *rule != number);
                progress.note_match(number);
            }
            if self.fires(number, seen, flow.as_mut(), now) {
                matched(number as usize);
                self.choose(&mut found, number, false);
            }
        }
        self.candidates = candidates;
        if let (Some((window, progress)), Some(flow)) = (stream, &mut flow) {
            if follows {
                (progress.stopped, progress.searched) = (Some(stopped), window.ready().len());
            }
            let is_packet = follows && window.ready().len() == seen.payload.len();
            let mut in_stream = Vec::new();
            self.look_at_stream((window, progress), is_packet, seen, flow, now, &mut in_stream);
            for number in in_stream {
                matched(number as usize);
                self.choose(&mut found, number, true);
            }
        }
        found
    }

    /// Puts a segment into its stream; whether it follows on what was there.
    fn take_in(
        &mut self,
        seen: &Seen<'_>,
        stream: &mut Option<(&mut Window, &mut Progress)>,
    ) -> bool {
        let (Some((window, progress)), Some(tcp)) = (stream, seen.tcp) else { return false };
        if window.restart_if_beyond(tcp.sequence) {
            progress.restart();
        }
        let before = window.ready().len();
        let follows = window.is_next(tcp.sequence) && progress.searched == before;
        window.add(tcp.sequence, seen.payload);
        let came = window.ready().len() - before;
        progress.received = progress.received.saturating_add(came);
        follows && came == seen.payload.len()
    }

    /// Looks at what a stream has in order. `is_packet` is whether that is one packet, which was looked at.
    fn look_at_stream(
        &mut self,
        (window, progress): (&mut Window, &mut Progress),
        mut is_packet: bool,
        seen: &Seen<'_>,
        flow: &mut Flow<'_>,
        now: u64,
        matched: &mut Vec<u32>,
    ) {
        loop {
            let ready = window.ready();
            let is_all = ready.len() <= WINDOW;
            let text = &ready[..ready.len().min(WINDOW)];
            if progress.searched < text.len() {
                let Self { automaton, by_pattern, rules, given_up, .. } = self;
                let (from, fresh) = (progress.stopped, &text[progress.searched..]);
                let stopped = automaton.find(from, fresh, |pattern, _| {
                    let rules =
                        by_pattern[pattern].iter().filter(|r| rules[**r as usize].in_streams);
                    *given_up += rules.filter(|rule| !progress.pend(**rule)).count() as u64;
                });
                (progress.stopped, progress.searched) = (Some(stopped), text.len());
            }
            let in_body = progress.left > 0;
            let http = if in_body { None } else { Message::of(text) };
            let end = match &http {
                _ if in_body => Some(progress.left),
                Some(http) if http.is_whole => {
                    let head = (text.len() - http.body.len()) as u64;
                    http.body_length().map(|length| head + length)
                }
                _ => None,
            };
            let within = end.map_or(text.len(), |end| text.len().min(end as usize));
            if !is_packet {
                let text = &text[..within];
                let http = if in_body { None } else { Message::of(text) };
                self.judge(text, http, progress, seen, flow, now, matched);
            }
            match end {
                Some(end) if end <= text.len() as u64 && end > 0 => {
                    let rest = ready.len() > end as usize;
                    window.consume(end as u32);
                    progress.restart();
                    is_packet = false;
                    if !rest {
                        return;
                    }
                }
                _ if text.len() == WINDOW => {
                    let gone = WINDOW / 2;
                    progress.left = end.map_or(0, |end| end - gone as u64);
                    window.consume(gone as u32);
                    progress.searched = progress.searched.saturating_sub(gone);
                    progress.matched.clear();
                    is_packet = false;
                    if is_all {
                        return;
                    }
                }
                _ => return,
            }
        }
    }

    /// Looks at the rules whose pattern a stream holds.
    #[expect(clippy::too_many_arguments, reason = "all of one stream")]
    fn judge(
        &mut self,
        text: &[u8],
        http: Option<Message<'_>>,
        progress: &mut Progress,
        seen: &Seen<'_>,
        flow: &mut Flow<'_>,
        now: u64,
        matched: &mut Vec<u32>,
    ) {
        let buffers = Buffers::new(text, http, true);
        if let Some(uri) = buffers.uri().filter(|_| !progress.has_uri) {
            progress.has_uri = true;
            if let Cow::Owned(uri) = uri {
                self.automaton.find(None, uri, |pattern, _| {
                    let rules = self.by_pattern[pattern].iter();
                    self.given_up += rules.filter(|rule| !progress.pend(**rule)).count() as u64;
                });
            }
        }
        let mut pending = std::mem::take(&mut progress.pending);
        pending.sort_unstable_by_key(|&rule| (!sets_bits(&self.rules[rule as usize]), rule));
        pending.retain(|&number| {
            let rule = &self.rules[number as usize];
            let of_flow = (Some(flow.to_server), *flow.bits);
            if rule.size.is_some() || !is_about(rule, seen, of_flow, &buffers) {
                return true;
            }
            if !progress.may_spend(text.len()) {
                self.given_up += 1;
                return true;
            }
            let holds = self.holds(number, &buffers);
            if holds {
                progress.note_match(number);
                if self.fires(number, seen, Some(flow), now) {
                    matched.push(number);
                }
            }
            !holds
        });
        progress.pending = pending;
    }

    /// Whether what a rule demands is there.
    fn holds(&mut self, number: u32, buffers: &Buffers<'_>) -> bool {
        let mut steps = MOST_STEPS;
        let holds = buffers.have(&self.rules[number as usize].detections, &mut steps);
        if !holds && steps == 0 {
            self.given_up += 1;
        }
        holds
    }

    /// Has a rule that matches change its flow's bits; whether it says something of the packet.
    fn fires(
        &mut self,
        number: u32,
        seen: &Seen<'_>,
        flow: Option<&mut Flow<'_>>,
        now: u64,
    ) -> bool {
        let Self { rules, rates, .. } = self;
        let rule = &rules[number as usize];
        let counts = |rate| rates.counts(number, rate, (seen.src, seen.dst), now);
        if !rule.rate.as_ref().is_none_or(counts) {
            return false;
        }
        if let Some(flow) = flow {
            *flow.bits = rule.bits.iter().fold(*flow.bits, |bits, of| of.applied(bits));
        }
        !rule.is_silent
    }

    /// Of rules that match, the one whose action counts: the first of those that let pass, or drop, or alert.
    fn choose(&self, found: &mut Option<PayloadMatch>, number: u32, is_in_stream: bool) {
        let (action, rule) = (self.rules[number as usize].action, number as usize);
        if found.is_none_or(|found| (action, rule) < (found.action, found.rule)) {
            *found = Some(PayloadMatch { action, rule, is_in_stream });
        }
    }
}

fn has((low, high): (u32, u32), number: usize) -> bool {
    (low as usize..=high as usize).contains(&number)
}

/// Whether a rule is about packets like this one, whatever they hold.
fn is_about(
    rule: &Rule,
    seen: &Seen<'_>,
    (to_server, bits): (Option<bool>, u128),
    buffers: &Buffers<'_>,
) -> bool {
    let within = |range: Option<(u32, u32)>, n: Option<u8>| {
        range.is_none_or(|range| n.is_some_and(|n| has(range, n.into())))
    };
    // Rules name IPv4 addresses: with IPv6 they mean any, or not this one.
    let holds = |set: &IntervalSet, address: IpAddr| match address {
        IpAddr::V4(of) => set.contains(of.to_bits().into()),
        IpAddr::V6(_) => *set == IntervalSet::full(32),
    };
    let ends = |src: IpAddr, src_port: u16, dst: IpAddr, dst_port: u16| {
        holds(&rule.src, src)
            && holds(&rule.dst, dst)
            && rule.src_port.contains(src_port.into())
            && rule.dst_port.contains(dst_port.into())
    };
    let Seen { src, src_port, dst, dst_port, .. } = *seen;
    let is_icmp = |protocol| protocol == 1 && seen.icmp.is_some();
    rule.protocol.is_none_or(|protocol| protocol == seen.protocol || is_icmp(protocol))
        && (!rule.established || seen.protocol != 6 || seen.is_established())
        && (rule.to_server.is_none() || to_server.is_none() || rule.to_server == to_server)
        && rule.bits.iter().all(|of: &FlowBits| of.holds(bits))
        && (ends(src, src_port, dst, dst_port) || rule.both && ends(dst, dst_port, src, src_port))
        && rule.uri_size.is_none_or(|size| buffers.uri().is_some_and(|uri| has(size, uri.len())))
        && within(rule.icmp_type, seen.icmp.map(|(kind, _)| kind))
        && within(rule.icmp_code, seen.icmp.map(|(_, code)| code))
}

#[cfg(test)]
mod tests {
    use super::super::snort::RuleSet;
    use super::*;
    use crate::transport::segments::Segment;
    use net::wire::tcp::flag::ACK;

    fn engine(rules: &str) -> Engine {
        let mut set = RuleSet::default();
        rules.lines().for_each(|line| set.read(line).unwrap());
        assert!(set.left_out.is_empty(), "{:?}", set.left_out);
        Engine::new(set.rules).unwrap()
    }

    fn segment(sequence: u32) -> Segment {
        Segment { sequence, acknowledged: 0, flags: ACK }
    }

    fn seen(protocol: u8, src: u32, dst_port: u16, payload: &[u8]) -> Seen<'_> {
        let address = |of: u32| std::net::Ipv4Addr::from_bits(of).into();
        let icmp = (protocol == 1).then_some((8, 0));
        let tcp = (protocol == 6).then_some(segment(0));
        let (src, dst) = (address(src), address(2));
        Seen {
            protocol,
            src,
            dst,
            src_port: 9,
            dst_port,
            icmp,
            tcp,
            at: 0,
            is_fragment: false,
            payload,
        }
    }

    fn finds(options: &str, payload: &[u8]) -> bool {
        let mut engine = engine(&format!("alert tcp any any -> any any ({options} sid:1;)"));
        engine.look(&seen(6, 1, 80, payload), None, 0, |_| {}).is_some()
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
            let (seen, mut all) = (seen(protocol, src, 80, payload), Vec::new());
            (engine.look(&seen, None, 0, |rule| all.push(rule)).map(|f| f.action), all)
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
        assert_eq!(engine.look(&seen(6, 1, 80, &payload), None, 0, |_| {}), None);
        assert_eq!(engine.given_up, 1);
    }

    #[test]
    fn expressions_and_numbers_are_looked_for() {
        assert!(finds(r#"content:"a"; pcre:"/^b\d+/R";"#, b"ab12"));
        assert!(!finds(r#"content:"a"; pcre:"/^b\d+/R";"#, b"a-b12"));
        assert!(finds(r#"content:"a"; pcre:"/^b\d+/R";"#, b"a-ab12"), "the second a");
        assert!(finds(r#"pcre:"/b(.)d/"; content:"e"; within:1;"#, b"bcd-bcde"));
        assert!(finds(r#"content:"a"; pcre:!"/c/";"#, b"ab"));
        assert!(!finds(r#"content:"a"; pcre:!"/c/";"#, b"abc"));
        let request = b"GET /x?id=1%20or%201 HTTP/1.1\r\nHost: h\r\n\r\n";
        assert!(finds(r#"content:"id="; http_uri; pcre:"/id=\d+ or/Ui";"#, request));
        assert!(!finds(r#"content:"id="; http_uri; pcre:"/or/P";"#, request));
        let bytes = b"\x00\x05abcde-\x10\x0012 x";
        for (options, found) in [
            ("byte_test:2,=,5,0;", true),
            ("byte_test:2,!=,5,0;", false),
            ("byte_test:2,<,0x10,8,little;", false),
            ("byte_test:2,=,16,8,little;", true),
            ("byte_test:2,&,0x1000,8;", true),
            ("byte_test:1,^,16,8;", false),
            ("byte_test:2,=,12,10,string,dec;", true),
            ("byte_test:4,=,0x12,10,string,hex;", true),
            ("byte_test:2,=,5,9,string;", false),
            ("byte_test:4,>,0,20;", false),
            ("byte_test:2,=,1,8,bitmask 0x1000;", true),
            ("content:\"a\"; byte_test:1,=,98,0,relative;", true),
            ("byte_jump:2,0; content:\"-\"; within:1;", true),
            ("byte_jump:2,0,align; content:\"\\|10\\|\"; within:1;", false),
            ("byte_jump:1,1,multiplier 2; isdataat:3,relative; isdataat:!4,relative;", false),
            ("byte_jump:1,1,multiplier 2; isdataat:1,relative; isdataat:!2,relative;", true),
            ("byte_jump:1,1,from_end,post_offset -6; content:\"x\"; within:1;", true),
            ("byte_jump:1,2;", false),
            ("byte_extract:1,1,n; content:\"bcde\"; offset:3; depth:n;", true),
            ("byte_extract:1,1,n; content:\"bcde-\"; offset:2; depth:n;", false),
            ("byte_extract:1,1,n; isdataat:n,relative; byte_test:1,=,n,1;", true),
        ] {
            assert_eq!(finds(options, bytes), found, "{options}");
        }
    }

    #[test]
    fn bits_of_flows_lead_from_rule_to_rule() {
        let mut engine = engine(concat!(
            "alert tcp any any -> any any (content:\"pass\"; flowbits:isset,user; sid:1;)\n",
            "alert tcp any any -> any any (content:\"user\"; flowbits:set,user; flowbits:noalert; sid:2;)\n",
            "alert tcp any any -> any any (content:\"quit\"; flowbits:unset,user; flowbits:isset,user; sid:3;)\n",
            "alert tcp any any -> any any (content:\"x\"; flow:to_client; sid:4;)\n",
        ));
        let mut bits = 0;
        let mut of = |payload: &[u8], to_server| {
            let flow = Flow { to_server, bits: &mut bits, stream: None };
            let mut all = Vec::new();
            engine.look(&seen(6, 1, 80, payload), Some(flow), 0, |rule| all.push(rule + 1));
            all
        };
        assert!(of(b"pass", true).is_empty() && of(b"user", true).is_empty());
        assert_eq!(of(b"pass", true), [1]);
        assert_eq!(of(b"quit", true), [3]);
        assert!(of(b"pass", true).is_empty());
        // Who sets a bit comes first in a packet.
        assert_eq!(of(b"user pass", true), [1]);
        assert!(of(b"x", true).is_empty() && of(b"x", false) == [4]);
    }

    /// What rules find in a stream that comes in segments, and in which of them.
    fn in_segments(rules: &str, segments: &[(u32, &[u8])]) -> Vec<(usize, usize)> {
        let mut engine = engine(rules);
        let (mut window, mut progress) = (Window::new(0, 100_000), Progress::default());
        let (mut bits, mut all) = (0, Vec::new());
        for (at, (sequence, payload)) in segments.iter().enumerate() {
            let mut seen = seen(6, 1, 80, payload);
            seen.tcp = Some(segment(*sequence));
            let stream = Some((&mut window, &mut progress));
            let flow = Flow { to_server: true, bits: &mut bits, stream };
            engine.look(&seen, Some(flow), 0, |rule| all.push((at, rule)));
        }
        all
    }

    #[test]
    fn what_is_split_between_segments_is_found_once() {
        let rules = concat!(
            "alert tcp any any -> any any (content:\"attack\"; sid:1;)\n",
            "alert tcp any any -> any any (content:\"an\"; content:\"k!\"; distance:0; sid:2;)\n",
            "alert tcp any any -> any any (content:\"attack\"; flow:no_stream; sid:3;)\n",
            "alert tcp any any -> any any (content:\"attack\"; dsize:>3; sid:4;)\n",
        );
        let text = b"this is an attack!";
        let single: Vec<(u32, &[u8])> = (0..).zip(text.chunks(1)).collect();
        assert_eq!(in_segments(rules, &single), [(16, 0), (17, 1)]);
        let mut reversed = single.clone();
        reversed.reverse();
        assert_eq!(in_segments(rules, &reversed), [(17, 0), (17, 1)]);
        // Each again, and what overlaps with other bytes: those that came first count.
        let twice: Vec<(u32, &[u8])> = single.iter().flat_map(|s| [*s, *s]).collect();
        assert_eq!(in_segments(rules, &twice), [(32, 0), (34, 1)]);
        let other = [(0, &b"this is an att"[..]), (10, b" good friend!"), (14, b"ack!")];
        assert!(in_segments(rules, &other).is_empty());
        assert_eq!(in_segments(rules, &[(0, text)]), [(0, 0), (0, 1), (0, 2), (0, 3)]);
    }

    #[test]
    fn messages_of_a_stream_are_searched_one_by_one() {
        let rules = concat!(
            "alert tcp any any -> any any (content:\"/bad\"; http_uri; content:\"evil\"; http_header; sid:1;)\n",
            "alert tcp any any -> any any (content:\"POST\"; http_method; content:!\"Agent\"; http_header; sid:2;)\n",
            "alert tcp any any -> any any (content:\"xyz\"; http_client_body; sid:3;)\n",
        );
        let text = [
            &b"GET /%62ad HTTP/1.1\r\nHost: evil\r\n\r\n"[..],
            b"POST /bad HTTP/1.1\r\nContent-Length: 5\r\nAgent: x\r\n\r\n_xyz_",
            b"POST /b%61d HTTP/1.1\r\nHost: evil\r\n\r\n",
        ]
        .concat();
        for size in [1, 2, 3, 7, 40, 50, 1000] {
            let mut at = 0;
            let segments = text.chunks(size).map(|part| {
                at += part.len() as u32;
                (at - part.len() as u32, part)
            });
            let found = in_segments(rules, &segments.collect::<Vec<_>>());
            let rules: Vec<usize> = found.iter().map(|(_, rule)| *rule).collect();
            match size {
                // All in one packet: rules that match twice in it are told once.
                1000 => assert_eq!(rules[..1], [0], "{found:?}"),
                _ => assert_eq!(rules, [0, 2, 0, 1], "{size}: {found:?}"),
            }
        }
    }

    #[test]
    fn long_streams_are_searched_to_their_end() {
        let rules = "alert tcp any any -> any any (content:\"needle\"; sid:1;)\n";
        let mut text = vec![b'.'; 100_000];
        for at in [16_380, 16_384 * 2 - 3, 65_534, 99_994] {
            text[at..at + 6].copy_from_slice(b"needle");
        }
        for (size, count) in [(7, 4), (100, 4), (1460, 4), (40_000, 3)] {
            let mut at = 0;
            let mut segments: Vec<(u32, &[u8])> = text
                .chunks(size)
                .map(|part| {
                    at += part.len() as u32;
                    (at - part.len() as u32, part)
                })
                .collect();
            assert_eq!(in_segments(rules, &segments).len(), count, "{size}");
            if size == 1460 {
                // A segment is lost, and comes once more after sixteen others.
                let lost = segments.remove(10);
                segments.insert(26, lost);
                // What was found in a packet before it was its turn is found in the stream, too.
                assert_eq!(in_segments(rules, &segments).len(), 6);
            }
        }
        // What is never seen is passed over.
        let tail = [(0, &b"nee"[..]), (3_000_000, b"need"), (3_000_004, b"le")];
        assert_eq!(in_segments(rules, &tail), [(2, 0)]);
    }

    #[test]
    fn what_a_stream_costs_is_bounded() {
        let rules: String = (0..200)
            .map(|n| {
                format!(
                    "alert tcp any any -> any any (content:\"a{n:03}\"; content:\"no\"; sid:{n};)\n"
                )
            })
            .collect();
        let mut engine = engine(&rules);
        let (mut window, mut progress) = (Window::new(0, 100_000), Progress::default());
        let mut bits = 0;
        let text: Vec<u8> =
            (0..30_000).flat_map(|n| format!("a{:03}", n % 200).into_bytes()).collect();
        for (at, byte) in text.chunks(1).enumerate() {
            let mut seen = seen(6, 1, 80, byte);
            seen.tcp = Some(segment(at as u32));
            let stream = Some((&mut window, &mut progress));
            engine.look(&seen, Some(Flow { to_server: true, bits: &mut bits, stream }), 0, |_| {});
        }
        assert!(progress.spent <= CREDIT + CREDIT_PER_BYTE * text.len());
        assert!(engine.given_up > 0 && progress.pending.len() <= MOST_PENDING);
    }

    #[test]
    fn however_a_stream_is_split_it_is_searched_as_a_whole() {
        let mut random = fastrand::Rng::with_seed(1);
        let letters = |random: &mut fastrand::Rng, length: usize| -> Vec<u8> {
            (0..length).map(|_| random.u8(b'a'..=b'c')).collect()
        };
        for case in 0..300 {
            let mut rules = String::new();
            for sid in 0..10 {
                let mut options = String::new();
                for at in 0..random.usize(1..4) {
                    let length = random.usize(1..5);
                    let text = String::from_utf8(letters(&mut random, length)).unwrap();
                    options += &match random.u8(..4) {
                        0 if at > 0 => format!("pcre:\"/^.{{0,2}}{text}/R\"; "),
                        1 if at > 0 => format!("content:\"{text}\"; distance:1; "),
                        2 if at > 0 => format!("content:\"{text}\"; within:6; "),
                        _ => format!("content:\"{text}\"; "),
                    };
                }
                rules += &format!("alert tcp any any -> any any ({options}sid:{sid};)\n");
            }
            let length = random.usize(1..80);
            let text = letters(&mut random, length);
            let mut whole: Vec<usize> =
                in_segments(&rules, &[(0, &text)]).iter().map(|(_, rule)| *rule).collect();
            let (mut segments, mut at) = (Vec::new(), 0);
            while at < text.len() {
                let end = (at + random.usize(1..12)).min(text.len());
                // Some bytes come twice.
                let start = at.saturating_sub(random.usize(..3));
                segments.push((start as u32, &text[start..end]));
                at = end;
            }
            if case % 2 == 0 {
                random.shuffle(&mut segments);
            }
            let found = in_segments(&rules, &segments);
            let mut parts: Vec<usize> = found.iter().map(|(_, rule)| *rule).collect();
            whole.sort_unstable();
            parts.sort_unstable();
            parts.dedup();
            assert_eq!(parts, whole, "{rules}{segments:?}");
        }
    }
}
