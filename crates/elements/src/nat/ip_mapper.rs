//! RoundRobinIPMapper and SourceIPHashMapper: what chooses patterns for rewriters.

use std::cell::Cell;
use std::rc::Rc;

use click::config::Argument;
use ir::model::StateKind;
use ir::{Diagnostic, Model};

use crate::configure::{Arguments, Configure, Failed};
use crate::element::Element;
use crate::element_state::ElementState;
use crate::nat::rewriter::{
    Choice, Mapped, Mapper, NEXT_STATE, Patterns, Ring, TURN_STATE, parse_mapped,
};

/// A mapper's model: the state that models of rewriters refer to.
pub(super) fn model(mapper: &Mapper) -> Model {
    let mut model = Model::default();
    let initial = vec![0; mapper.own.patterns.len()];
    model.declare(NEXT_STATE, StateKind::Cells { width: 64, initial });
    if let Choice::Turn(_) = mapper.choice {
        model.declare(TURN_STATE, StateKind::Cells { width: 64, initial: vec![0] });
    }
    model
}

/// Parses patterns with outputs, each argument's words taken apart already.
fn patterns(
    written: &[(Argument, Vec<Argument>)],
    arguments: &mut Arguments<'_, '_>,
) -> (Rc<Patterns>, Vec<Mapped>) {
    let mut own = Vec::new();
    let parsed: Vec<_> = written
        .iter()
        .filter_map(|(whole, words)| parse_mapped(words, whole, &mut own, arguments))
        .collect();
    let name = arguments.cx().name();
    if written.len() < 2 {
        let (severity, text) = match written.len() {
            0 => (Diagnostic::error as fn(_, String) -> Diagnostic, "no pattern is given"),
            _ => (Diagnostic::warning as fn(_, String) -> Diagnostic, "only one pattern is given"),
        };
        let span = arguments.cx().span();
        arguments.report(severity("bad-argument", text.to_string()).label(span, ""));
    }
    let own = Rc::new(Patterns::new(name, own));
    let mapped = parsed.into_iter().map(|p| p.resolve(&own)).collect();
    (own, mapped)
}

element! {
    /// RoundRobinIPMapper(PATTERN FOUTPUT ROUTPUT, ...) -- lets rewriters use patterns in turn
    ///
    /// An IPRewriter or one of its kin that has this element as an input specification maps each
    /// new flow by the next of the patterns; one that has no free mapping is passed over. This
    /// balances load among servers.
    ///
    /// = EXAMPLE
    ///
    /// servers :: RoundRobinIPMapper(- - 10.0.0.1 - 0 1, - - 10.0.0.2 - 0 1);
    /// rw :: IPRewriter(servers, drop);
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, SourceIPHashMapper, IPRewriterPatterns
    RoundRobinIPMapper { category: Nat, ports: "0/0", processing: "a/a", samples: [] }
}

/// See [`RoundRobinIPMapper::CLASS`].
pub(crate) struct RoundRobinIPMapper {
    mapper: Rc<Mapper>,
}

impl RoundRobinIPMapper {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let name = cx.name().to_string();
        let mut arguments = cx.arguments(&[]);
        let written: Vec<_> =
            arguments.rest().into_iter().map(|a| (a.clone(), a.words().collect())).collect();
        let (own, mapped) = patterns(&written, &mut arguments);
        arguments.finish()?;
        let mapper = Rc::new(Mapper { name, own, mapped, choice: Choice::Turn(Cell::new(0)) });
        cx.share(Rc::clone(&mapper));
        Ok(Self { mapper })
    }
}

impl Element for RoundRobinIPMapper {
    fn model(&self) -> Model {
        model(&self.mapper)
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        self.mapper.export(to);
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        self.mapper.import(from);
    }
}

element! {
    /// SourceIPHashMapper(POINTS SEED, PATTERN FOUTPUT ROUTPUT ID, ...) -- lets rewriters use patterns by source address
    ///
    /// Like RoundRobinIPMapper, but all flows of a source address are mapped by one pattern. The
    /// choice is by consistent hashing: each pattern owns POINTS points on a circle, which depend
    /// on SEED and on its ID, so that adding or removing a pattern changes the choice for few
    /// addresses. IDs are numbers from 0 to 65535, one each.
    ///
    /// = EXAMPLE
    ///
    /// servers :: SourceIPHashMapper(20 0xbadbeef, - - 10.0.0.1 - 0 1 1, - - 10.0.0.2 - 0 1 2);
    /// rw :: IPRewriter(servers, drop);
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, RoundRobinIPMapper, IPRewriterPatterns
    SourceIPHashMapper { category: Nat, ports: "0/0", processing: "a/a", samples: [] }
}

/// See [`SourceIPHashMapper::CLASS`].
pub(crate) struct SourceIPHashMapper {
    mapper: Rc<Mapper>,
}

/// Points for all identifiers up to the greatest, used or not.
const MOST_POINTS: usize = 1 << 22;

impl SourceIPHashMapper {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let name = cx.name().to_string();
        let span = cx.span();
        let mut arguments = cx.arguments(&[]);
        let (mut points, mut seed) = (1, 0);
        match arguments.next_raw() {
            Some(first) => match &first.words().collect::<Vec<_>>()[..] {
                [points_word, seed_word] => {
                    points = arguments.parse::<usize>("POINTS", points_word).unwrap_or(1);
                    seed = arguments.parse::<i32>("SEED", seed_word).unwrap_or(0);
                    if points == 0 {
                        arguments.error(points_word, "each pattern needs a point");
                    }
                }
                _ => arguments.error(&first, "expected POINTS SEED"),
            },
            None => {
                let error = Diagnostic::error("missing-argument", "POINTS SEED is missing");
                arguments.report(error.label(span, ""));
            }
        }
        let (mut written, mut ids) = (Vec::new(), Vec::new());
        for argument in arguments.rest() {
            let mut words: Vec<Argument> = argument.words().collect();
            let Some(last) = words.pop() else { continue };
            let id = arguments.parse::<u16>("ID", &last).unwrap_or(0);
            if ids.contains(&id) {
                arguments.error(&last, format!("two patterns have the ID {id}"));
            }
            ids.push(id);
            written.push((argument, words));
        }
        let (own, mapped) = patterns(&written, &mut arguments);
        let greatest = usize::from(ids.iter().copied().max().unwrap_or(0)) + 1;
        // Points, and the hashes that each pattern has.
        arguments.claim("POINTS", (points as u64).saturating_mul(64 * ids.len() as u64));
        let too_many = greatest.checked_mul(points).is_none_or(|n| n > MOST_POINTS);
        if too_many {
            let message = format!("POINTS times the greatest ID is more than {MOST_POINTS}");
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        arguments.finish()?;
        let choice = Choice::Source(Ring::new(points, seed, &ids));
        let mapper = Rc::new(Mapper { name, own, mapped, choice });
        cx.share(Rc::clone(&mapper));
        Ok(Self { mapper })
    }
}

impl Element for SourceIPHashMapper {
    fn model(&self) -> Model {
        model(&self.mapper)
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        self.mapper.export(to);
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        self.mapper.import(from);
    }
}
