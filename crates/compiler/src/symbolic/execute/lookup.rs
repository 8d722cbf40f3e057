//! Lookups: in tables of prefixes, in lists of rules and in flows.

use super::*;

impl<'a> Machine<'a> {
    pub(super) fn lookup(
        &mut self,
        path: &mut Path<'a>,
        table: &'a Arc<PrefixTable>,
        key: TermId,
        regs: &[Reg],
        miss: &'a Block,
    ) -> Result<Next<'a>, Stop> {
        if self.chain.tables {
            return self.lookup_whole(path, table, key, regs, miss);
        }
        let table = self.cache.table(table);
        let possible = path.facts.set(&self.terms, key);
        let Some(rows) = table.rows_of(&possible, MAX_ROWS) else {
            let (keys, columns) = table.columns();
            let hit = self.terms.test(key, keys);
            match path.facts.resolve(&mut self.terms, &hit) {
                Some(true) => {}
                Some(false) => return Ok(Next::Enter(miss)),
                None => return Err(Stop::Split(hit)),
            }
            for (&reg, column) in regs.iter().zip(columns) {
                let number = self.terms.map(key, column);
                bind(path, reg, number);
            }
            return Ok(Next::Go);
        };
        let fitting: Vec<(usize, IntervalSet)> =
            rows.into_iter().map(|row| (row, table.keys(row))).collect();
        if let [(row, keys)] = &fitting[..]
            && possible.is_subset(keys)
        {
            self.bind_row(path, regs, table.numbers(*row));
            return Ok(Next::Go);
        }
        if fitting.is_empty() {
            return Ok(Next::Enter(miss));
        }
        let rest = possible.subtract(&IntervalSet::union_of(fitting.iter().map(|(_, keys)| keys)));
        let mut cases = Vec::with_capacity(fitting.len());
        for (row, keys) in fitting {
            let mut hit = path.clone();
            self.assume_in(&mut hit, key, &keys.intersect(&possible));
            self.bind_row(&mut hit, regs, table.numbers(row));
            cases.push((keys, self.later(hit)));
        }
        let element = path.at.node;
        let otherwise = match (rest.is_empty(), cases.pop()) {
            (true, Some((_, last))) => last,
            (_, last) => {
                cases.extend(last);
                let mut missed = path.clone();
                self.assume_in(&mut missed, key, &rest);
                missed.stack.push(Frame { block: miss, next: 0 });
                self.later(missed)
            }
        };
        Ok(Next::Forked(Step::Switch { on: key, cases, otherwise, element }))
    }

    /// Looks a number up in a table that stays whole.
    fn lookup_whole(
        &mut self,
        path: &mut Path<'a>,
        prefixes: &'a Arc<PrefixTable>,
        key: TermId,
        regs: &[Reg],
        miss: &'a Block,
    ) -> Result<Next<'a>, Stop> {
        let rows = self.cache.table(prefixes);
        let possible = path.facts.set(&self.terms, key);
        match rows.rows_of(&possible, 1).as_deref() {
            Some([]) => return Ok(Next::Enter(miss)),
            Some([row]) if possible.is_subset(&rows.keys(*row)) => {
                self.bind_row(path, regs, rows.numbers(*row));
                return Ok(Next::Go);
            }
            _ => {}
        }
        let entries = Entries::Prefixes(Arc::clone(prefixes));
        let table = self.table(path.at.node, vec![prefixes.width()], entries);
        let (lookup, known) = self.look_up(path, table, vec![key], [regs.len() as u8, 0])?;
        match known {
            Some(true) => {
                self.bind_columns(path, lookup, regs, &rows);
                return Ok(Next::Go);
            }
            Some(false) => return Ok(Next::Enter(miss)),
            None => {}
        }
        let (mut hit, mut missed) = (path.clone(), path.clone());
        hit.found.push(lookup);
        self.bind_columns(&mut hit, lookup, regs, &rows);
        missed.missed.push(lookup);
        missed.stack.push(Frame { block: miss, next: 0 });
        let (hit, miss) = (self.later(hit), self.later(missed));
        Ok(Next::Forked(Step::Lookup { lookup, hit, miss }))
    }

    /// Binds the numbers of a row, of which the table tells what they can be.
    fn bind_columns(
        &mut self,
        path: &mut Path<'a>,
        lookup: LookupId,
        regs: &[Reg],
        rows: &PrefixRows,
    ) {
        for (at, &reg) in regs.iter().enumerate() {
            let numbers = rows.column(at);
            let most = IntervalSet::max(&numbers).unwrap_or(0);
            let width = (128 - most.leading_zeros()).max(1) as u16;
            let number = self.terms.bound(lookup, at as u8, width);
            if numbers.intervals().len() <= MAX_ROWS {
                path.facts.restrict(number, numbers);
            }
            bind(path, reg, number);
        }
    }

    /// The lookup of a key, and whether it was made on this path and found something.
    pub(super) fn look_up(
        &mut self,
        path: &Path<'a>,
        table: TableId,
        key: Vec<TermId>,
        [values, common]: [u8; 2],
    ) -> Result<(LookupId, Option<bool>), Stop> {
        let is_same =
            |l: &Lookup| (l.table, &l.key, l.values, l.common) == (table, &key, values, common);
        let of = |l: &&LookupId| is_same(&self.lookups[usize::from(l.0)]);
        if let Some(&found) = path.found.iter().find(of) {
            return Ok((found, Some(true)));
        }
        if let Some(&missed) = path.missed.iter().find(of) {
            return Ok((missed, Some(false)));
        }
        let element = path.at.node;
        // The same lookup on another path binds the same numbers.
        let known = self.lookups.iter().position(|l| is_same(l) && l.element == element);
        let lookup = LookupId(known.unwrap_or(self.lookups.len()) as u16);
        if known.is_none() {
            self.lookups.push(Lookup { table, key, values, common, element });
        }
        if lookup.0 >= MAX_LOOKUPS {
            return Err(Stop::Unsupported(Barrier::TooManyLookups));
        }
        Ok((lookup, None))
    }

    /// The table of an element's entries, which is the same on every path.
    fn table(&mut self, element: NodeId, widths: Vec<u16>, entries: Entries) -> TableId {
        let is_same = |t: &Table| match (&t.entries, &entries) {
            (Entries::Flows(a), Entries::Flows(b)) => a == b,
            (Entries::Prefixes(a), Entries::Prefixes(b)) => {
                t.element == element && Arc::ptr_eq(a, b)
            }
            (Entries::Rules(a), Entries::Rules(b)) => t.element == element && Arc::ptr_eq(a, b),
            _ => false,
        };
        let known = self.tables.iter().position(is_same);
        let at = known.unwrap_or_else(|| {
            self.tables.push(Table { element, widths: widths.clone(), entries });
            self.tables.len() - 1
        });
        let table = &mut self.tables[at];
        table.widths.iter_mut().zip(widths).for_each(|(known, new)| *known = (*known).max(new));
        TableId(at as u16)
    }

    /// The table of declared flows.
    pub(super) fn flows(&mut self, path: &Path<'a>, state: StateRef, key: &[TermId]) -> TableId {
        let state = self.state(path, state);
        let widths = key.iter().map(|&term| self.terms.width(term)).collect();
        self.table(path.at.node, widths, Entries::Flows(state))
    }

    fn bind_row(&mut self, path: &mut Path<'a>, regs: &[Reg], row: &[u128]) {
        for (&reg, &number) in regs.iter().zip(row) {
            let number = self.terms.constant(number);
            bind(path, reg, number);
        }
    }

    pub(super) fn bind_flow(
        &mut self,
        path: &mut Path<'a>,
        lookup: LookupId,
        regs: impl Iterator<Item = Reg>,
    ) {
        let table = &self.tables[usize::from(self.lookups[usize::from(lookup.0)].table.0)];
        let Entries::Flows(state) = table.entries else { return };
        let kind = &self.state[usize::from(state.0)].kind;
        for (i, reg) in regs.enumerate() {
            let number = self.terms.bound(lookup, i as u8, kind.width(i));
            bind(path, reg, number);
        }
    }

    pub(super) fn matches(
        &mut self,
        path: &mut Path<'a>,
        rules: &'a Arc<[Rule]>,
        arms: &'a [Block],
        otherwise: &'a Block,
    ) -> Result<Next<'a>, Stop> {
        let element = path.at.node;
        let table = self.cache.rules(element, rules);
        let few = rules.len() <= MAX_ROWS;
        if let Some(table) =
            table.as_ref().filter(|t| self.chain.tables && !t.of_headers().keys.is_empty())
        {
            match self.match_whole(path, rules, table, arms, otherwise) {
                // Not all that rules ask can be computed of all packets that come here.
                Err(Stop::Unsupported(_)) if few => {}
                next => return next,
            }
        }
        let few = table.as_ref().is_none_or(|t| {
            self.chain.tables && few || t.are_few() || few && t.exprs.len() > MAX_DIMENSIONS
        });
        if few {
            self.cache.ask(element, rules, RuleDependence::InTurn);
            // One after the other, each telling something of the next.
            if rules.len() > MAX_ROWS {
                return Err(Stop::Unsupported(Barrier::RulesNotConjunctions));
            }
            if rules.iter().map(|rule| tests(&rule.when)).sum::<usize>() > MAX_TESTS {
                return Err(Stop::Unsupported(Barrier::TooManyAlternatives));
            }
            for rule in rules.iter() {
                if self.cond(path, &rule.when)? {
                    let arm = arms.get(rule.arm as usize);
                    return Ok(Next::Enter(arm.ok_or(Stop::Unsupported(Barrier::NoArm))?));
                }
            }
            return Ok(Next::Enter(otherwise));
        }
        let Some(table) = table else { return Ok(Next::Enter(otherwise)) };
        let mut keys = Vec::with_capacity(table.exprs.len());
        for expr in &table.exprs {
            // Nothing is computed where nothing is asked.
            let key = self.expr(path, expr.as_ref().unwrap_or(&Expr::Const(0)))?;
            if path.facts.bounds(&self.terms, key).1 > u32::MAX.into() {
                return Err(Stop::Unsupported(Barrier::WideKeys));
            }
            keys.push(key);
        }
        // What is known of each key beside how wide it is, if anything is.
        let known: Vec<IntervalSet> =
            keys.iter().map(|&key| path.facts.set(&self.terms, key)).collect();
        let possible = table.exprs.iter().zip(&keys).zip(&known).map(|((expr, &key), known)| {
            let is_free = match expr {
                None => true,
                Some(Expr::Field(field)) => known.is_full(field.width),
                Some(_) => {
                    let (low, high) = self.terms.bounds(key);
                    low < high && IntervalSet::range(low, high).is_subset(known)
                }
            };
            (!is_free).then(|| known.clone())
        });
        let possible: Known = possible.collect();
        let fit = || self.cache.all_fit(element, rules, &table, &possible);
        let whole = keys.len() <= MAX_DIMENSIONS && fit();
        let split = match whole {
            true => Split::Keys((0..keys.len()).collect(), Arc::clone(&table.rules)),
            false => split(&table, &known, MAX_DIMENSIONS),
        };
        let now =
            if whole { RuleDependence::Whole(vec![possible]) } else { RuleDependence::InPart };
        self.cache.ask(element, rules, now);
        let (asked, fitting) = match split {
            Split::One(arm) => {
                let block = arm.map_or(Some(otherwise), |arm| arms.get(arm as usize));
                return Ok(Next::Enter(block.ok_or(Stop::Unsupported(Barrier::NoArm))?));
            }
            Split::Keys(asked, rules) => (asked, rules),
            Split::Cases(key, cases) if self.splits < MAX_SPLITS => {
                self.splits += 1;
                return Ok(Next::Forked(self.switch(path, keys[key], cases)));
            }
            _ => return Err(Stop::Unsupported(Barrier::TooManyKeys)),
        };
        let (arms, otherwise) = self.follow(path, &table, &keys, &fitting, arms, otherwise)?;
        let keys = asked.into_iter().map(|key| keys[key]).collect();
        Ok(Next::Forked(Step::Classify {
            table: None,
            keys,
            rules: fitting,
            arms,
            otherwise,
            element,
        }))
    }

    /// Matches the rules of a table that stays whole.
    fn match_whole(
        &mut self,
        path: &mut Path<'a>,
        rules: &'a Arc<[Rule]>,
        table: &Rules,
        arms: &'a [Block],
        otherwise: &'a Block,
    ) -> Result<Next<'a>, Stop> {
        // What is known may tell.
        if rules.len() <= MAX_ROWS {
            let mut known = Some(otherwise);
            for rule in rules.iter() {
                match self.cond(path, &rule.when) {
                    Ok(false) => continue,
                    Ok(true) => known = arms.get(rule.arm as usize),
                    Err(_) => known = None,
                }
                break;
            }
            if let Some(block) = known {
                return Ok(Next::Enter(block));
            }
        }
        let mut all = Vec::with_capacity(table.exprs.len());
        for expr in &table.exprs {
            all.push(self.expr(path, expr.as_ref().unwrap_or(&Expr::Const(0)))?);
        }
        // Whether the headers are there is asked once, not by each rule.
        let of_headers = table.of_headers();
        for (at, enough) in &of_headers.needed {
            let there = self.terms.test(all[*at], enough);
            match path.facts.resolve(&mut self.terms, &there) {
                Some(true) => {}
                Some(false) => return Err(Stop::Unsupported(Barrier::MissingHeader)),
                None => return Err(Stop::Split(there)),
            }
        }
        let keys: Vec<TermId> = of_headers.keys.iter().map(|&at| all[at]).collect();
        let width = |&at: &usize| match &table.exprs[at] {
            Some(Expr::Field(field)) => field.width,
            Some(_) => self.terms.width(all[at]),
            None => 1,
        };
        let widths = of_headers.keys.iter().map(width).collect();
        let rules = Arc::clone(&of_headers.rules);
        let element = path.at.node;
        let id = self.table(element, widths, Entries::Rules(Arc::clone(&rules)));
        let (arms, otherwise) = self.follow(path, table, &all, &rules, arms, otherwise)?;
        Ok(Next::Forked(Step::Classify { table: Some(id), keys, rules, arms, otherwise, element }))
    }

    /// Follows the arms of rules: the step of each arm, and where packets go that no rule is for.
    fn follow(
        &mut self,
        path: &Path<'a>,
        table: &Rules,
        keys: &[TermId],
        fitting: &[ClassifyRule],
        arms: &'a [Block],
        otherwise: &'a Block,
    ) -> Result<(Vec<StepId>, StepId), Stop> {
        let mut used = vec![false; arms.len()];
        let mut takes_all = None;
        for rule in fitting.iter() {
            if let Some(used) = used.get_mut(rule.arm as usize) {
                *used = true;
            }
            if rule.takes_all() {
                takes_all = Some(rule.arm as usize);
                break;
            }
        }
        let mut missed = None;
        if takes_all.is_none() {
            let mut path = path.clone();
            path.stack.push(Frame { block: otherwise, next: 0 });
            missed = Some(self.later(path));
        }
        let mut steps = vec![None; arms.len()];
        for (arm, block) in arms.iter().enumerate().filter(|(arm, _)| used[*arm]) {
            let mut path = path.clone();
            if let Some(hulls) = table.hulls.get(&(arm as u32)) {
                for (&key, hull) in keys.iter().zip(hulls) {
                    if let Some(hull) = hull {
                        let narrowed = path.facts.set(&self.terms, key).intersect(hull);
                        self.assume_in(&mut path, key, &narrowed);
                    }
                }
            }
            path.stack.push(Frame { block, next: 0 });
            steps[arm] = Some(self.later(path));
        }
        // Whoever no rule is for goes where the rule leads that is for all.
        let otherwise = takes_all.and_then(|arm| steps.get(arm).copied().flatten()).or(missed);
        let otherwise = otherwise.ok_or(Stop::Unsupported(Barrier::NoArm))?;
        Ok((steps.into_iter().map(|step| step.unwrap_or(otherwise)).collect(), otherwise))
    }
}
