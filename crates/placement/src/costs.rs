//! What functions cost: from profiles that were measured, the greatest cost of each.

use ir::costs::{Cost, CostProfile, FunctionCost, HopCost, Processor, VERSION};
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

/// What it takes a packet to get from one process to another over a switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// Cycles of who sends, who receives, and of the switch.
    pub cycles: f64,
    /// Cycles of a packet at the greatest rate that came: a core cannot have more packets than that.
    pub least_cycles: f64,
    /// Seconds that it takes beyond these cycles.
    pub waits: f64,
}

/// Packets of a batch of functions, which hops are measured with in bursts.
const BURST: usize = 32;

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
        for hop in &profile.hops {
            let costs = [hop.throughput, hop.send, hop.receive, hop.forward];
            if costs.into_iter().flatten().any(|of| !(0.0..=1e12).contains(&of)) {
                wrong(format!("a hop over {}: its figures are 0 to 10^12", hop.switch));
            }
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

    /// A hop of packets of so many bytes. `words` name the switch, and perhaps the I/O mode. Of what was measured on one host, what
    /// is nearest counts: by size, larger ones first, then by bursts, pairs and cores of the switch; of several I/O modes what costs
    /// least, and of several profiles the last.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn hop(&self, words: &str, bytes: f64) -> Result<Hop, String> {
        let (switch, io) =
            words.split_once(' ').map_or((words, None), |(switch, io)| (switch, Some(io.trim())));
        let all = || {
            let profiles = self.0.iter().rev().map(|(_, profile)| profile);
            profiles.flat_map(|of| of.hops.iter().map(move |hop| (hop, of.processor.frequency)))
        };
        let is_it = |hop: &HopCost| {
            hop.hosts == 1 && hop.switch == switch && io.is_none_or(|io| hop.io == io)
        };
        let distance = |hop: &HopCost| {
            let size = hop.size as f64;
            (size - bytes).abs() + if size < bytes { 0.5 } else { 0.0 }
        };
        let here = || all().filter(|(hop, _)| is_it(hop));
        let cycles = |hop: &HopCost| Some(hop.send? + hop.receive? + hop.forward.unwrap_or(0.0));
        let moved = here().filter_map(|(hop, frequency)| {
            let cycles = cycles(hop)?;
            let least_cycles = frequency / hop.throughput.filter(|rate| *rate > 0.0)?;
            let load = (hop.bursts[0].abs_diff(BURST), hop.pairs, hop.cores);
            Some(((distance(hop), load, cycles), (hop, cycles, least_cycles, frequency)))
        });
        let nearest = moved.reduce(|a, b| if b.0 < a.0 { b } else { a });
        let Some((_, (of, cycles, least_cycles, frequency))) = nearest else {
            let names = all().map(|(hop, _)| hop.switch.as_str());
            let near = ir::nearest(switch, names).filter(|near| *near != switch);
            let near = near.map_or(String::new(), |near| format!(": did you mean '{near}'?"));
            return Err(format!(
                "no cost profile has hops over '{words}'{near}; `catena netbench run --profile-out FILE` measures them"
            ));
        };
        // Round trips may have been measured by themselves.
        let trips = here().filter(|(hop, _)| hop.io == of.io).filter_map(|(hop, _)| {
            let load = (hop.bursts[1], hop.pairs, hop.cores);
            Some(((distance(hop), load), hop.round_trip?[0] as f64 / 1e9))
        });
        let trip = trips.reduce(|a, b| if b.0 < a.0 { b } else { a }).map_or(0.0, |(_, trip)| trip);
        let waits = (trip / 2.0 - cycles / frequency).max(0.0);
        Ok(Hop { cycles, least_cycles, waits })
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
    fn the_nearest_hop_counts() {
        let hop = |more: &str| {
            format!(
                "  - {{switch: bridge, version: x, io: af-xdp, pairs: 1, size: 64, bursts: [32, 1], cores: 1, {more}}}\n"
            )
        };
        let text = PROFILE.to_string()
            + "hops:\n"
            + &hop(
                "throughput: 1.0e6, round_trip: [20000, 90000], send: 1000, receive: 800, forward: null",
            )
            + &hop("throughput: 1.0e6, round_trip: null, send: 900, receive: 700, forward: 600")
            + &hop("throughput: 5.0e5, round_trip: null, send: 1500, receive: 800, forward: null")
                .replace("size: 64", "size: 1500")
            + &hop("throughput: 9.0e6, round_trip: [1, 1], send: 1, receive: 1, forward: null")
                .replace("pairs: 1", "pairs: 1, hosts: 2");
        let mut costs = Costs::default();
        costs.read(FileId(0), &text).expect("it is right");
        let hop = costs.hop("bridge", 64.0).unwrap();
        assert_eq!((hop.cycles, hop.least_cycles), (1800.0, 2100.0));
        // 10 us in one direction, of which 1,800 cycles are 0.857.
        assert!((hop.waits - (10e-6 - 1800.0 / 2.1e9)).abs() < 1e-12, "{hop:?}");
        assert_eq!(costs.hop("bridge af-xdp", 1000.0).unwrap().cycles, 2300.0);
        for (words, expected) in
            [("brigde", "did you mean 'bridge'?"), ("bridge udp", "netbench run --profile-out")]
        {
            let why = costs.hop(words, 64.0).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
        let wrong = text.replace("send: 1500", "send: -1");
        assert!(Costs::default().read(FileId(0), &wrong).is_err());
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
