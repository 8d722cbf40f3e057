//! Whether a program takes less time than the elements in whose place it stands.

use ir::program::{Exit, Program, Step, StepId};

// What things take, in nanoseconds of a packet, about; where they differ from processor to processor, programs are the
// same in relation to elements.

/// An element that only looks at headers or writes some of them.
const ELEMENT: usize = 3;
/// What elements look up in a table of flows or a list of rules.
const LOOKUP: usize = 40;
/// A program.
const PROGRAM: usize = 10;
/// Looking a packet up in the flow cache.
const CACHE: usize = 50;

/// Whether there is a way on which a program takes less time than elements. Without flows, it looks up what they look up.
pub fn pays(program: &Program) -> bool {
    let mut ways = vec![Way::default(); program.steps.len()];
    for (at, step) in program.steps.iter().enumerate() {
        let way = ways[at];
        let mut lead = |to: StepId, more: Way| {
            // Ways lead to later steps only.
            let to = &mut ways[to.0 as usize];
            to.flows = to.flows.max(way.flows + more.flows);
            to.lists = to.lists.max(way.lists + more.lists);
        };
        match step {
            Step::Exit(exit) if way.is_worth(exit) => return true,
            Step::Exit(_) => {}
            Step::Lookup { hit, miss, .. } => {
                lead(*hit, Way { flows: 1, lists: 0 });
                lead(*miss, Way::default());
            }
            Step::Classify { .. } => {
                step.next().for_each(|to| lead(to, Way { flows: 0, lists: 1 }));
            }
            Step::Test { .. } | Step::Switch { .. } => {
                step.next().for_each(|to| lead(to, Way::default()));
            }
        }
    }
    false
}

/// The most that is looked up on the way to a step.
#[derive(Clone, Copy, Default)]
struct Way {
    flows: usize,
    lists: usize,
}

impl Way {
    fn is_worth(self, exit: &Exit) -> bool {
        let elements = exit.visited.len() * ELEMENT;
        match self.flows {
            0 => elements > PROGRAM,
            _ => elements + (self.flows + self.lists) * LOOKUP > PROGRAM + CACHE,
        }
    }
}

#[cfg(test)]
mod tests {
    use ir::program::{ClassifyRule, End, Lookup, LookupId, TableId, Term, TermId};
    use ir::{Port, Reason};

    use super::*;

    /// A program in the place of so many elements, which looks in so many lists and finds so many flows.
    fn program(elements: usize, lists: usize, flows: usize) -> Program {
        let port = Port { node: 0, port: 0 };
        let exit = |visited: usize| {
            Step::Exit(Box::new(Exit {
                effects: vec![],
                writes: Default::default(),
                end: End::Drop { element: 0, reason: Reason("") },
                barrier: None,
                visited: vec![port; visited],
                copies: vec![],
            }))
        };
        let (next, last) = (|at: usize| StepId(at as u32 + 1), StepId((lists + flows) as u32 + 1));
        let list = |at| Step::Classify {
            table: None,
            keys: vec![TermId(0)],
            rules: Vec::<ClassifyRule>::new().into(),
            arms: vec![next(at)],
            otherwise: last,
            element: 0,
        };
        let flow = |at| Step::Lookup { lookup: LookupId(0), hit: next(at), miss: last };
        let lookup = Lookup { table: TableId(0), key: vec![], values: 0, common: 0, element: 0 };
        let steps = (0..lists).map(list).chain((lists..lists + flows).map(flow));
        Program {
            continuation: None,
            entry: port,
            terms: vec![Term::Const(0)],
            state: vec![],
            tables: vec![],
            lookups: vec![lookup],
            steps: steps.chain([exit(elements), exit(0)]).collect(),
        }
    }

    #[test]
    fn what_takes_the_place_of_little_does_not_pay() {
        let pays = |elements, lists, flows| pays(&program(elements, lists, flows));
        assert!(!pays(3, 0, 0) && !pays(3, 1, 0), "it looks up what elements look up");
        assert!(pays(4, 0, 0) && pays(4, 1, 0));
        assert!(!pays(4, 0, 1), "a translator alone looks up as much as the flow cache");
        assert!(pays(4, 1, 1) && pays(4, 0, 2) && pays(10, 0, 1), "of these it saves something");
    }
}
