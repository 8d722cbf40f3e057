//! Flows as models declare them.

use ir::state::{Flow as DeclaredFlow, Flows};

use super::{Addresses, Class, Era, FlowKey, FlowOf, MAX_CAPACITY, Table};

impl<A: Addresses> Table<A> {
    /// The flows as declared, of a group of traffic classes or all.
    pub(crate) fn export(&self, group: Option<u16>) -> Flows {
        let mut flows = Flows::new(self.capacity);
        let is_meant = |number: u32| group.is_none_or(|group| self.group(number) == group);
        for (number, _) in self.in_order().into_iter().filter(|(number, _)| is_meant(*number)) {
            let flow = self.flows.get(number);
            let side = |side: usize| {
                let [_, value @ ..] = flow.rewritten(side).numbers();
                let more = [u128::from(flow.output(side)), side as u128];
                [&value[..], &more[..]].concat()
            };
            let declared = DeclaredFlow {
                keys: [flow.key(0).numbers().to_vec(), flow.key(1).numbers().to_vec()],
                values: [side(0), side(1)],
                common: vec![
                    flow.state.into(),
                    flow.input.into(),
                    flow.protocol.into(),
                    flow.annotation.into(),
                ],
                expiry: flow.expiry,
                guarantee: self.classes[usize::from(flow.class)].guarantee_of(flow),
            };
            flows.insert(declared, self.clock);
        }
        flows.expire(self.clock);
        flows
    }

    /// Takes over flows as declared; those that are not of this table's kind are left out.
    /// `class_of` gives a flow's class, and `deltas` what rewriting it adds to checksums. A flow
    /// whose expiry does not fit its class (timeouts were changed) keeps it, as far as the class
    /// allows.
    pub(crate) fn import(
        &mut self,
        flows: &Flows,
        class_of: impl Fn(&FlowOf<A>) -> Option<u16>,
        deltas: impl Fn(&FlowOf<A>) -> [u16; 2],
    ) {
        self.clear();
        self.capacity = flows.capacity().min(MAX_CAPACITY);
        self.clock = flows.clock();
        let native = |declared: &DeclaredFlow| -> Option<FlowOf<A>> {
            let from = FlowKey::from_numbers(&declared.keys[0])?;
            let reply = FlowKey::from_numbers(&declared.keys[1])?;
            let &[state, input, protocol, annotation] = &declared.common[..] else { return None };
            let mut flow = FlowOf::new(from, reply);
            let output = |side: usize| u16::try_from(*declared.values[side].get(4)?).ok();
            flow.set_outputs([output(0)?, output(1)?]);
            flow.state = state.try_into().ok()?;
            flow.input = input.try_into().ok()?;
            flow.protocol = protocol.try_into().ok()?;
            flow.annotation = annotation.try_into().ok()?;
            flow.deltas = deltas(&flow);
            flow.expiry = declared.expiry;
            let usual = class_of(&flow)?;
            let fits = |class: &Class| class.guarantee_of(&flow) == declared.guarantee;
            let class = match self.classes.get(usize::from(usual))? {
                class if fits(class) => usual,
                // A rewriter that answers for another may have other timeouts.
                _ => {
                    let now = |class: &Class| class.era == Era::Now && fits(class);
                    self.classes.iter().position(now).map_or(usual, |c| c as u16)
                }
            };
            Some(self.classed(flow, class))
        };
        let all: Vec<FlowOf<A>> = flows.iter().filter_map(native).collect();
        self.add_all(all);
    }

    /// A flow in a class, which it does not outlive.
    fn classed(&self, flow: FlowOf<A>, class: u16) -> FlowOf<A> {
        let timeout = self.classes[usize::from(class)].timeout;
        // 0 is none's.
        let expiry = flow.expiry.clamp(1, self.tick_end(self.clock).saturating_add(timeout));
        FlowOf { class, expiry, ..flow }
    }

    /// Adds flows that have their classes and expiries, in the order in which they were touched.
    fn add_all(&mut self, mut all: Vec<FlowOf<A>>) {
        // Classes are lists in the order of expiry.
        let mut ascending = vec![0; self.classes.len()];
        let sorted = all
            .iter()
            .all(|f| std::mem::replace(&mut ascending[usize::from(f.class)], f.expiry) <= f.expiry);
        if !sorted {
            all.sort_by_key(|f| f.expiry);
        }
        for flow in all {
            if let Some(number) = self.insert(flow, flow.class, self.clock) {
                self.flows.get_mut(number).expiry = flow.expiry;
                let class = &mut self.classes[usize::from(flow.class)];
                class.earliest = class.earliest.min(flow.expiry);
            }
        }
    }
}
