//! BackendMapper: what spreads the new flows of rewriters over servers.

use std::rc::Rc;

use click::config::Argument;
use ir::{Diagnostic, Model};

use crate::configure::{Arguments, Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::nat::rewriter::{
    Backend, Backends, Choice, Mapper, Patterns, Policy, Weighted, parse_mapped,
};

/// Slots of the table: for up to 160 backends, their shares differ by 1 % at the most.
const SIZE: usize = 16_381;
const MOST_SLOTS: usize = 1 << 20;

element! {
    /// BackendMapper(PATTERN FOUTPUT ROUTPUT, BACKENDS ADDR[:PORT][*WEIGHT] ... [, KEYWORDS]) -- lets rewriters spread flows over servers
    ///
    /// An IPRewriter, TCPRewriter, UDPRewriter or ICMPPingRewriter that has this element as an
    /// input specification sends each new flow to one of the backends: it becomes the destination,
    /// and its port the destination port if one is written. PATTERN changes the source; `- - - -`
    /// leaves it. A flow keeps its backend, whatever happens to others.
    ///
    /// Without an active backend, packets that would begin a flow are dropped as `no-backend`, or leave on an output of
    /// the rewriter.
    ///
    /// = KEYWORDS
    ///
    /// BACKENDS (words): the servers. With `*3` behind it, one takes three times the flows of one without; weights
    /// are at most 1000.
    /// POLICY (word, default maglev): how a flow's backend is chosen.
    /// maglev: by a hash of addresses, ports and protocol, in the table of Google's Maglev. If one
    /// backend of 100 leaves, fewer than 2 % of the others' hashes move.
    /// source-hash: in the same table, by the source address alone.
    /// round-robin: in turn.
    /// least-connections: the one that has the fewest flows in the rewriter's table, divided by its weight.
    /// SIZE (number, default 16381): slots of the table, a prime; the weights of all backends are at most so many. Shares
    /// are within 5 % of what weights say while SIZE is 100 times the sum of all weights.
    /// NO_BACKEND (`drop` or `reject`, and an output, default drop): what becomes of packets that would begin a flow
    /// while no backend is active. With `reject 2` they leave unchanged on the rewriter's output 2, where TCPReset and
    /// ICMPError can answer them.
    ///
    /// = HANDLERS
    ///
    /// backends (read): a line for each backend: address, `active` or `drained`, number of flows.
    /// add (write): has backends take new flows, new or drained ones, or changes their weights.
    /// drain (write): has backends keep their flows and take no new ones.
    /// remove (write): forgets backends and their flows, whose next packets begin new ones.
    ///
    /// When a chain replaces another, changes by handlers stay if BACKENDS are the same.
    ///
    /// = EXAMPLE
    ///
    /// servers :: BackendMapper(- - - - 0 1, BACKENDS 10.0.0.1 10.0.0.2:8080, POLICY round-robin);
    /// rw :: IPRewriter(servers, pass 1);
    ///
    /// = SEE ALSO
    ///
    /// BackendProbe, IPRewriter, TCPReset, ICMPError, RoundRobinIPMapper, SourceIPHashMapper
    BackendMapper { category: Nat, ports: "0/0", processing: "a/a", samples: [] }
}

/// See [`BackendMapper::CLASS`].
pub(crate) struct BackendMapper {
    mapper: Rc<Mapper>,
}

fn is_prime(n: usize) -> bool {
    n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

/// The backends of a list, none of them twice.
fn backends(list: Option<&Argument>, arguments: &mut Arguments<'_, '_>) -> Vec<Weighted> {
    let mut backends = Vec::<Weighted>::new();
    for word in list.iter().flat_map(|list| list.words()) {
        match Weighted::parse(&word.text) {
            Some((Weighted { backend, .. }, _))
                if backends.iter().any(|of| of.backend == backend) =>
            {
                arguments.error(&word, format!("{backend} stands there twice"));
            }
            Some((backend, _)) => backends.push(backend),
            None => {
                let message =
                    format!("'{}' is not a backend such as 10.0.0.1:8080 or 10.0.0.1*3", word.text);
                arguments.error(&word, message);
            }
        }
    }
    if list.is_none_or(|list| list.words().next().is_none()) {
        let span = list.map_or(arguments.cx().span(), |list| list.span);
        let error = Diagnostic::error("bad-argument", "no backend is given").label(span, "");
        arguments.report(
            error.help("write BACKENDS and addresses, such as BACKENDS 10.0.0.1 10.0.0.2:8080"),
        );
    }
    backends
}

/// The output of packets without a backend that NO_BACKEND names, if they are not dropped.
fn rejects_to(argument: &Argument, arguments: &mut Arguments<'_, '_>) -> Option<u16> {
    let words: Vec<Argument> = argument.words().collect();
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    match words[..] {
        // A compound hands on the user's word with its own output behind it.
        ["drop"] => return None,
        ["drop", output] if output.parse::<u16>().is_ok() => return None,
        ["reject", output] if output.parse::<u16>().is_ok() => return output.parse().ok(),
        _ => {}
    }
    let word = words.first().unwrap_or(&"");
    let message = match *word {
        "drop" | "reject" => format!("'{}' names no output of the rewriter", argument.text),
        _ => format!("'{word}' is not what becomes of packets: drop or reject"),
    };
    arguments.error(argument, message);
    None
}

impl BackendMapper {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (name, span) = (cx.name().to_string(), cx.span());
        let mut arguments = cx.arguments(&["BACKENDS", "POLICY", "SIZE", "NO_BACKEND"]);
        let list = arguments.keyword_argument("BACKENDS");
        let backends = backends(list.as_ref(), &mut arguments);
        let mut policy = Policy::Maglev;
        if let Some(word) = arguments.keyword_argument("POLICY") {
            match Policy::ALL.iter().find(|(name, _)| *name == word.text) {
                Some((_, known)) => policy = *known,
                None => {
                    let names = Policy::ALL.map(|(name, _)| name).join(", ");
                    arguments.error(&word, format!("'{}' is not a policy: {names}", word.text));
                }
            }
        }
        let mut size = SIZE;
        if let Some(word) = arguments.keyword_argument("SIZE") {
            size = arguments.parse::<usize>("SIZE", &word).unwrap_or(SIZE);
            if !(3..=MOST_SLOTS).contains(&size) || !is_prime(size) {
                let message = format!("'{size}' is not a prime from 3 to {MOST_SLOTS}");
                arguments.error(&word, message);
                size = SIZE;
            }
        }
        let rejects_to = arguments
            .keyword_argument("NO_BACKEND")
            .and_then(|argument| rejects_to(&argument, &mut arguments));
        arguments.claim("SIZE", 2 * size as u64);
        let mut own = Vec::new();
        let pattern = arguments.next_raw();
        let parsed = pattern.as_ref().and_then(|whole| {
            let words: Vec<Argument> = whole.words().collect();
            parse_mapped(&words, whole, &mut own, &mut arguments)
        });
        if pattern.is_none() {
            let error = Diagnostic::error("missing-argument", "PATTERN FOUTPUT ROUTPUT is missing");
            arguments.report(error.label(span, "").help("write - - - - 0 1 to keep the source"));
        }
        let own = Rc::new(Patterns::new(&name, own));
        let mapped = Vec::from_iter(parsed.map(|parsed| parsed.resolve(&own)));
        let mut all = Backends::new(policy, size, &backends);
        all.rejects_to = rejects_to;
        let weight: usize = backends.iter().map(|of| usize::from(of.weight)).sum();
        if let (Some(list), true) = (&list, weight > all.most()) {
            let message = format!("the weights of all are {} at the most; see SIZE", all.most());
            arguments.error(list, message);
        }
        arguments.finish()?;
        let mapper = Rc::new(Mapper { name, own, mapped, choice: Choice::Backends(all) });
        cx.share(Rc::clone(&mapper));
        Ok(Self { mapper })
    }

    fn backends(&self) -> Option<&Backends> {
        match &self.mapper.choice {
            Choice::Backends(backends) => Some(backends),
            _ => None,
        }
    }
}

impl Element for BackendMapper {
    fn model(&self) -> Model {
        let mut model = super::ip_mapper::model(&self.mapper);
        if let Some(backends) = self.backends() {
            backends.declare(&mut model);
        }
        model
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        self.mapper.export(to);
        if let Some(backends) = self.backends() {
            backends.users().export_flows(to);
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        self.mapper.import(from);
        if let Some(backends) = self.backends() {
            backends.users().import_flows(from);
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("backends"),
                Handler::write("add"),
                Handler::write("drain"),
                Handler::write("remove"),
            ]
        }
    }

    fn read(&self, _: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.backends().map_or_else(String::new, |backends| backends.describe(cx.now)))
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        let Some(backends) = self.backends() else { return Ok(()) };
        let expected = |word: &str| format!("'{word}' is not a backend such as 10.0.0.1:8080");
        let words: Vec<&str> = value.split_whitespace().collect();
        if words.is_empty() {
            return Err("no backend is named: write ADDR or ADDR:PORT".to_string());
        }
        if handler == "add" {
            let parse = |word: &&str| Weighted::parse(word).ok_or_else(|| expected(word));
            let named = words.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
            return named.into_iter().try_for_each(|of| backends.add(of));
        }
        let parse = |word: &&str| Backend::parse(word).ok_or_else(|| expected(word));
        let named = words.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        named.into_iter().try_for_each(|backend| match handler {
            "drain" => backends.drain(backend),
            _ => backends.remove(backend),
        })
    }
}
