//! What functions cost: from profiles that were measured, the greatest cost of each.

use ir::costs::{Cost, CostProfile, FunctionCost, Processor, VERSION};
use ir::yaml::Reading;
use ir::{Diagnostic, FileId};

/// What is taken of a function of which nothing is known, in cycles: more than most take (Lemur §2.6.1).
pub const GUESS: f64 = 20_000.0;

/// Cost profiles.
#[derive(Clone, Debug, Default)]
pub struct Costs(Vec<(FileId, CostProfile)>);

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The chain's file.
    pub chain: Option<&'a str>,
    /// Names that the function has, and that of its class.
    pub names: [&'a str; 3],
    /// How many rules or routes its longest list has.
    pub rules: Option<u64>,
    /// How many flows it has, if that is known.
    pub flows: Option<u64>,
}

/// What a function costs, and how that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Known<'a> {
    /// Cycles that placement counts with: the greatest, with as many rules and flows.
    pub cycles: f64,
    /// What was measured.
    pub measured: &'a Cost,
    /// The file that says so.
    pub file: FileId,
    /// Where it was measured.
    pub processor: &'a Processor,
    /// When, in seconds since 1970.
    pub unix_time: u64,
    /// Rules and flows for which it was extended along a line.
    pub extended: bool,
}

/// Flows of the traffic with most flows that profiles are measured with.
const MOST_FLOWS: f64 = 1e5;

impl Costs {
    /// Reads a profile as JSON or YAML, and adds it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(&mut self, file: FileId, text: &str) -> Result<(), Vec<Diagnostic>> {
        let help = "`catena bench CHAIN --costs FILE` writes cost profiles";
        let (profile, mut reading) = Reading::of::<CostProfile>(file, text, "costs", Some(help))?;
        let mut wrong = |message: String| reading.found.push(Diagnostic::error("costs", message));
        if profile.costs != VERSION {
            wrong(format!("the profile is of version {}, this reads {VERSION}", profile.costs));
        }
        for function in &profile.functions {
            let Cost { min, mean, max, .. } = function.cost;
            let is_cost = |cycles: f64| (0.0..=1e12).contains(&cycles);
            if ![min, mean, max].into_iter().all(is_cost) || min > mean || mean > max {
                wrong(format!(
                    "{} takes {min}, {mean} and {max} cycles: least, mean and most are 0 to 10^12, and in that order",
                    function.name
                ));
            }
        }
        match reading.found.is_empty() {
            true => {
                self.0.push((file, profile));
                Ok(())
            }
            false => Err(reading.found),
        }
    }

    /// What a function costs; of several profiles, one of the chain's file goes before others, and a later one before an
    /// earlier.
    pub fn of(&self, wanted: &Wanted<'_>) -> Option<Known<'_>> {
        let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
        let is_of = |(_, profile): &&(FileId, CostProfile)| {
            wanted.chain.is_some_and(|chain| file(chain) == file(&profile.chain))
        };
        let (own, others): (Vec<_>, Vec<_>) = self.0.iter().rev().partition(is_of);
        let all = || own.iter().chain(&others);
        let named = |name: &str| {
            all().find_map(|(file, profile)| {
                let function = profile.functions.iter().find(|of| of.name == name)?;
                Some((*file, profile, function))
            })
        };
        let (file, profile, function) = wanted.names.into_iter().find_map(named)?;
        Some(Known::of((file, profile), function, wanted))
    }
}

impl<'a> Known<'a> {
    fn of(
        (file, profile): (FileId, &'a CostProfile),
        function: &'a FunctionCost,
        wanted: &Wanted<'_>,
    ) -> Self {
        let mut cycles = function.cost.max;
        let mut extended = false;
        let mut along = |slope: f64, more: f64| {
            if more != 0.0 {
                extended = true;
                cycles += slope * more;
            }
        };
        if let (Some(line), Some(measured), Some(rules)) =
            (function.per_rule, function.rules, wanted.rules)
        {
            along(line.slope, rules as f64 - measured as f64);
        }
        if let (Some(line), Some(flows)) = (function.per_flow, wanted.flows) {
            along(line.slope, (flows as f64 - MOST_FLOWS).max(0.0));
        }
        Self {
            cycles: cycles.max(function.cost.min),
            measured: &function.cost,
            file,
            processor: &profile.processor,
            unix_time: profile.unix_time,
            extended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "
costs: 1
chain: examples/edge.click
processor: { name: A processor, frequency: 2.1e9, is_virtual: false, kernel: '6' }
unix_time: 1764000000
method: by hand
traffic: [as given]
functions:
  - name: fw
    cost: { min: 100, mean: 150, max: 300, samples: [] }
    rules: 1000
    per_rule: { base: 50, slope: 0.25 }
  - name: NAT
    cost: { min: 500, mean: 510, max: 520, samples: [] }
programs: []
io: []
hand_off: null
";

    fn wanted<'a>(name: &'a str, rules: Option<u64>) -> Wanted<'a> {
        Wanted { chain: Some("edge.click"), names: [name, name, "NAT"], rules, flows: None }
    }

    #[test]
    fn the_greatest_cost_counts_and_grows_with_rules() {
        let mut costs = Costs::default();
        costs.read(FileId(0), PROFILE).expect("it is right");
        let of = |wanted| costs.of(&wanted).map(|known| (known.cycles, known.extended));
        assert_eq!(of(wanted("fw", None)), Some((300.0, false)));
        assert_eq!(of(wanted("fw", Some(3000))), Some((800.0, true)));
        // Never below the least.
        assert_eq!(of(wanted("fw", Some(0))), Some((100.0, true)));
        // By its class.
        assert_eq!(of(wanted("nat", None)), Some((520.0, false)));
        let none = Wanted { chain: None, names: ["x"; 3], rules: None, flows: None };
        assert_eq!(of(none), None);
    }

    #[test]
    fn what_is_wrong_with_a_profile_is_told() {
        for (from, to, expected) in [
            ("costs: 1", "costs: 2", "version 2"),
            ("max: 300", "max: 120", "in that order"),
            ("max: 300", "max: .inf", "10^12"),
            ("min: 500", "min: -1", "10^12"),
            ("name: fw", "nam: fw", "nam"),
        ] {
            let found = Costs::default().read(FileId(0), &PROFILE.replace(from, to));
            let found = found.expect_err(to);
            assert!(found[0].message.contains(expected), "{to}: {}", found[0].message);
        }
    }
}
