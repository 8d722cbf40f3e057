//! Linear programs, without integers. Each answer is checked: its bounds, its rows, and its objective are computed anew.

use microlp::{
    ComparisonOp, Error, OptimizationDirection, Problem, SolutionStatus, SolveOutcome, Variable,
};

/// How a row's sum compares with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// At most.
    Most,
    /// At least.
    Least,
    /// The same.
    Same,
}

/// A column of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column(usize);

/// What is known of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Solved {
    /// The best values, and the objective.
    Best(Values),
    /// No values meet all rows.
    Infeasible,
    /// Nothing: it has no optimum, or the answer did not pass the check.
    Unknown,
}

impl Solved {
    /// The best values, if they were found.
    pub(crate) fn best(self) -> Option<Values> {
        match self {
            Solved::Best(values) => Some(values),
            Solved::Infeasible | Solved::Unknown => None,
        }
    }
}

/// Values of columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    values: Vec<f64>,
    /// The objective.
    pub objective: f64,
}

impl Values {
    /// Of a column.
    pub fn of(&self, column: Column) -> f64 {
        self.values[column.0]
    }
}

/// A row: its terms, and what their sum is compared with.
type Row = (Vec<(Column, f64)>, Compare, f64);

/// A linear program.
#[derive(Clone, Debug)]
pub struct Program {
    is_most: bool,
    /// By column: what it adds to the objective, and its bounds.
    columns: Vec<(f64, (f64, f64))>,
    rows: Vec<Row>,
}

/// How far an answer may be off, as a share of the numbers that are added up.
const ERROR: f64 = 1e-6;

impl Program {
    /// One whose objective is to be as great as possible.
    pub fn most() -> Self {
        Self { is_most: true, columns: Vec::new(), rows: Vec::new() }
    }

    /// One whose objective is to be as small as possible.
    pub fn least() -> Self {
        Self { is_most: false, ..Self::most() }
    }

    /// A new column.
    pub fn column(&mut self, objective: f64, bounds: (f64, f64)) -> Column {
        self.columns.push((objective, bounds));
        Column(self.columns.len() - 1)
    }

    /// A new row.
    pub fn row(
        &mut self,
        terms: impl IntoIterator<Item = (Column, f64)>,
        compare: Compare,
        limit: f64,
    ) {
        self.rows.push((terms.into_iter().collect(), compare, limit));
    }

    /// Solves it.
    pub fn solve(&self) -> Solved {
        let mut linear = Problem::new(match self.is_most {
            true => OptimizationDirection::Maximize,
            false => OptimizationDirection::Minimize,
        });
        let variables: Vec<Variable> = self
            .columns
            .iter()
            .map(|(objective, bounds)| linear.add_var(*objective, *bounds))
            .collect();
        for (terms, compare, limit) in &self.rows {
            let terms: Vec<(Variable, f64)> =
                terms.iter().map(|(column, of)| (variables[column.0], *of)).collect();
            let compare = match compare {
                Compare::Most => ComparisonOp::Le,
                Compare::Least => ComparisonOp::Ge,
                Compare::Same => ComparisonOp::Eq,
            };
            linear.add_constraint(terms, compare, *limit);
        }
        match linear.solve() {
            Ok(SolveOutcome::Solution(found)) if found.status() == SolutionStatus::Optimal => {
                let values = variables.iter().map(|of| found[*of]).collect();
                let values = Values { values, objective: found.objective() };
                if self.holds(&values) { Solved::Best(values) } else { Solved::Unknown }
            }
            Err(Error::Infeasible) => Solved::Infeasible,
            _ => Solved::Unknown,
        }
    }

    /// Whether values meet all bounds and rows, and the objective is theirs.
    fn holds(&self, found: &Values) -> bool {
        let sum = |terms: &mut dyn Iterator<Item = (f64, f64)>| {
            let add = |(sum, size): (f64, f64), (of, value): (f64, f64)| {
                (sum + of * value, size + (of * value).abs())
            };
            terms.fold((0.0, 0.0), add)
        };
        let bounds = self.columns.iter().zip(&found.values).all(|((_, (low, high)), value)| {
            let error = ERROR * (1.0 + value.abs());
            *value >= low - error && *value <= high + error
        });
        let rows = self.rows.iter().all(|(terms, compare, limit)| {
            let (sum, size) = sum(&mut terms.iter().map(|(column, of)| (*of, found.of(*column))));
            let error = ERROR * (1.0 + size + limit.abs());
            let (most, least) = (sum <= limit + error, sum >= limit - error);
            match compare {
                Compare::Most => most,
                Compare::Least => least,
                Compare::Same => most && least,
            }
        });
        let objectives = self.columns.iter().map(|(objective, _)| *objective);
        let (objective, size) = sum(&mut objectives.zip(found.values.iter().copied()));
        bounds && rows && (objective - found.objective).abs() <= ERROR * (1.0 + size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_wrong_do_not_pass() {
        let mut program = Program::most();
        let (x, y) = (program.column(1.0, (0.0, 4.0)), program.column(2.0, (0.0, 9.0)));
        program.row([(x, 1.0), (y, 1.0)], Compare::Most, 10.0);
        let right = program.solve().best().expect("it has an optimum");
        assert_eq!(right, Values { values: vec![1.0, 9.0], objective: 19.0 });
        for (values, objective) in
            [(vec![2.0, 9.0], 20.0), (vec![-1.0, 9.0], 17.0), (vec![1.0, 9.0], 20.0)]
        {
            assert!(!program.holds(&Values { values, objective }));
        }
        program.row([(x, 1.0)], Compare::Least, 5.0);
        assert_eq!(program.solve(), Solved::Infeasible);
    }
}
