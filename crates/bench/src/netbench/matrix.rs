//! A matrix: the values that each parameter of a cell has. Each combination is a cell.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use host::container;
use host::fabric::{self, Ends, Fabric};

use super::values::{Rates, Values};
use super::{Carrier, Cell, Direction, Peer, SIZES, What};

/// Values of the parameters. What is not said is as in [`Matrix::default`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// Switches; all that are here and tested.
    pub switch: Option<Vec<String>>,
    /// Pairs of applications; 1.
    pub pairs: Option<Values>,
    /// Bytes of a frame; 64 and 1500.
    pub size: Option<Values>,
    /// Packets of a burst of senders; 32.
    pub burst: Option<Values>,
    /// Packets of a burst of clients; those of senders if these were said, else 1.
    pub latency_burst: Option<Values>,
    /// Packets per second of each sender; as many as it can.
    pub rate: Option<Rates>,
    /// Packets per second of each client; 10,000.
    pub latency_rate: Option<u64>,
    /// Cores of the switch; 1.
    pub cores_for_switch: Option<Values>,
    /// How packets are carried; raw sockets, many frames in a system call.
    pub io: Option<Vec<String>>,
    /// Who sends; the first of a pair.
    pub direction: Option<Vec<Direction>>,
    /// Which host the second of a pair is on; the other, where there are two.
    pub peer: Option<Vec<Peer>>,
    /// Whether payloads are touched; no.
    pub touch: Option<bool>,
    /// What is measured; both.
    pub what: Option<What>,
    /// Seconds of each measurement; 1.
    pub seconds: Option<f64>,
    /// Seconds before each; none.
    pub warm_up: Option<f64>,
    /// What applications run in; namespaces alone.
    pub container: Option<Vec<String>>,
    /// Whether it is measured on two hosts.
    pub has_two_hosts: bool,
    /// Whether switches need not be here: they are only spoken of.
    pub is_spoken_of: bool,
}

/// The switches between two hosts, if none is named.
const ELSEWHERE: [&str; 2] = ["linux-bridge", "catena"];

/// Cells that a run may have at most.
pub const MOST_CELLS: usize = 100_000;
/// Pairs at most.
const MOST_PAIRS: usize = 64;
/// Packets of a burst at most.
const MOST_BURST: usize = 4096;
/// Packets per second of a client at most.
const MOST_RATE: u64 = 10_000_000;

/// What is wrong with a matrix: the parameter's name, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The parameter, as the command line and test sets have it; empty if it is the matrix as a whole.
    pub parameter: &'static str,
    /// The value, if one of several is wrong, and why.
    pub why: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parameter {
            "" => f.write_str(&self.why),
            parameter => write!(f, "{parameter} {}", self.why),
        }
    }
}

fn wrong<T>(parameter: &'static str, why: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { parameter, why: why.into() })
}

/// That there are more cells than a run may have.
pub(super) fn too_many() -> String {
    format!("there are more than {MOST_CELLS} combinations: take fewer values, or fewer sets")
}

/// The switch of a name.
fn switch(name: &str) -> Result<Box<dyn Fabric>, Wrong> {
    let why = |why: String| Wrong { parameter: "switch", why: format!("{name}: {why}") };
    fabric::find(name).map_err(why)
}

/// What a switch or container needs to run here, if it cannot. Looking starts programs, so each is looked for once: a test set may
/// name it in thousands of sets.
fn needs(name: &str, look: impl FnOnce() -> Result<String, String>) -> Option<String> {
    static FOUND: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.entry(name.into()).or_insert_with(|| look().err()).clone()
}

fn within(
    parameter: &'static str,
    values: Option<&Values>,
    default: &[usize],
    (least, most): (usize, usize),
) -> Result<Vec<usize>, Wrong> {
    let Some(values) = values else { return Ok(default.into()) };
    let all: Vec<usize> = values.0.iter().map(|value| *value as usize).collect();
    match all.iter().find(|value| !(least..=most).contains(*value)) {
        Some(value) => wrong(parameter, format!("{value}: takes {least} to {most}")),
        None => Ok(all),
    }
}

/// A time in seconds that is in bounds.
fn seconds(parameter: &'static str, value: f64, least: f64) -> Result<f64, Wrong> {
    match (least..=1e5).contains(&value) {
        true => Ok(value),
        false => wrong(parameter, format!("{value}: takes seconds from {least} to 100000")),
    }
}

impl Matrix {
    /// This one; what it does not say is as in another.
    #[must_use]
    pub fn over(self, other: &Self) -> Self {
        let other = other.clone();
        // Bursts of clients follow those of senders that are said with them.
        let latency_burst = match &self.burst {
            Some(_) => self.latency_burst,
            None => self.latency_burst.or(other.latency_burst),
        };
        Self {
            switch: self.switch.or(other.switch),
            pairs: self.pairs.or(other.pairs),
            size: self.size.or(other.size),
            burst: self.burst.or(other.burst),
            latency_burst,
            rate: self.rate.or(other.rate),
            latency_rate: self.latency_rate.or(other.latency_rate),
            cores_for_switch: self.cores_for_switch.or(other.cores_for_switch),
            io: self.io.or(other.io),
            direction: self.direction.or(other.direction),
            peer: self.peer.or(other.peer),
            touch: self.touch.or(other.touch),
            what: self.what.or(other.what),
            seconds: self.seconds.or(other.seconds),
            warm_up: self.warm_up.or(other.warm_up),
            container: self.container.or(other.container),
            has_two_hosts: self.has_two_hosts || other.has_two_hosts,
            is_spoken_of: self.is_spoken_of || other.is_spoken_of,
        }
    }

    /// How packets are to be carried, if that is chosen.
    fn carriers(&self) -> Result<Vec<Carrier>, Wrong> {
        let parse = |io: &String| {
            let carrier: Carrier = io.parse()?;
            if !self.is_elsewhere() {
                carrier.look()?;
            }
            Ok(carrier)
        };
        let all = self.io.iter().flatten().map(parse);
        all.collect::<Result<_, String>>().map_err(|why| Wrong { parameter: "io", why })
    }

    /// What is left out of all combinations, and why: carriers that switches have no ports for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn left_out(&self) -> Result<Vec<String>, Wrong> {
        let mut all = Vec::new();
        for name in self.switches()? {
            let fabric = switch(&name)?;
            let none =
                self.carriers()?.into_iter().filter(|io| !fabric.ends().contains(&io.ends()));
            all.extend(none.map(|io| unfit(&*fabric, &io)));
        }
        Ok(all)
    }

    /// Whether this host need not have what it takes.
    fn is_elsewhere(&self) -> bool {
        self.has_two_hosts || self.is_spoken_of
    }

    fn switches(&self) -> Result<Vec<String>, Wrong> {
        let Some(names) = &self.switch else {
            if self.has_two_hosts {
                return Ok(ELSEWHERE.map(str::to_string).into());
            }
            let ios = self.carriers()?;
            // Without a choice, what is measured by all of them is comparable.
            let mut wanted: Vec<Ends> = ios.iter().map(Carrier::ends).collect();
            if wanted.is_empty() {
                wanted.push(Ends::Interfaces);
            }
            let here = fabric::all().into_iter().filter(|fabric| {
                let takes = fabric.ends().iter().any(|of| wanted.contains(of));
                takes && fabric.is_tested() && needs(&fabric.name(), || fabric.look()).is_none()
            });
            let here: Vec<String> = here.map(|fabric| fabric.name()).collect();
            return match here.is_empty() {
                true => wrong(
                    "switch",
                    "none can run here: `catena netbench list` shows what they need",
                ),
                false => Ok(here),
            };
        };
        for name in names {
            let found = switch(name)?;
            if self.is_elsewhere() {
                continue;
            }
            if let Some(needs) = needs(name, || found.look()) {
                return wrong("switch", format!("{name}: it needs {needs}"));
            }
        }
        Ok(names.clone())
    }

    /// All combinations, of which a switch has at most so many cores.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn cells(&self, cores: usize) -> Result<Vec<Cell>, Wrong> {
        let switches = self.switches()?;
        let pairs = within("pairs", self.pairs.as_ref(), &[1], (1, MOST_PAIRS))?;
        let sizes =
            within("size", self.size.as_ref(), &[64, 1500], (*SIZES.start(), *SIZES.end()))?;
        let bursts = within("burst", self.burst.as_ref(), &[32], (1, MOST_BURST))?;
        let latency_bursts = match (&self.latency_burst, &self.burst) {
            (None, Some(_)) => None,
            (given, _) => Some(within("latency-burst", given.as_ref(), &[1], (1, MOST_BURST))?),
        };
        let rates: Vec<Option<u64>> = match &self.rate {
            Some(rates) => rates.0.iter().copied().map(Some).collect(),
            None => vec![None],
        };
        let latency_rate = self.latency_rate.unwrap_or(10_000);
        if !(1..=MOST_RATE).contains(&latency_rate) {
            return wrong("latency-rate", format!("{latency_rate}: takes 1 to {MOST_RATE}"));
        }
        let cores = within("cores-for-switch", self.cores_for_switch.as_ref(), &[1], (1, cores))?;
        let ios = self.carriers()?;
        let mut pairings = Vec::new();
        for name in &switches {
            let fabric = switch(name)?;
            let fits = ios.iter().filter(|io| fabric.ends().contains(&io.ends()));
            pairings.extend(fits.map(|io| (name.clone(), io.to_string())));
            if ios.is_empty() {
                pairings.push((name.clone(), Carrier::usual(&*fabric).into()));
            }
        }
        if pairings.is_empty() {
            return wrong("io", self.left_out()?.join("; "));
        }
        let containers = self.container.clone().unwrap_or_else(|| vec![super::plain()]);
        for name in &containers {
            let why = |why| Wrong { parameter: "container", why: format!("{name}: {why}") };
            let found = container::find(name).map_err(why)?;
            if !self.is_elsewhere()
                && let Some(needs) = needs(name, || found.look())
            {
                return wrong("container", format!("{name}: it needs {needs}"));
            }
            let outside =
                pairings.iter().map(|(_, io)| io).find(|io| found.has_root() && !is_inside(io));
            if let Some(io) = outside {
                let why = "needs files of the host, which are not in it; takes --container plain";
                return wrong("container", format!("{name}: --io {io} {why}"));
            }
        }
        let directions = self.direction.clone().unwrap_or_else(|| vec![Direction::There]);
        let default = if self.has_two_hosts { Peer::Remote } else { Peer::Local };
        let peers = self.peer.clone().unwrap_or_else(|| vec![default]);
        if !self.has_two_hosts && peers.contains(&Peer::Remote) {
            return wrong("peer", "remote: takes two hosts, which --hosts names");
        }
        let whole = self.seconds.map_or(Ok(1.0), |value| seconds("seconds", value, 0.01))?;
        let warm_up = self.warm_up.map_or(Ok(0.0), |value| seconds("warm-up", value, 0.0))?;
        let lengths = [
            pairings.len(),
            directions.len(),
            peers.len(),
            pairs.len(),
            sizes.len(),
            bursts.len(),
            latency_bursts.as_ref().map_or(1, Vec::len),
            rates.len(),
            cores.len(),
            containers.len(),
        ];
        let count = lengths.into_iter().fold(1, usize::saturating_mul);
        if count > MOST_CELLS {
            return wrong("", too_many());
        }
        let mut cells = vec![Cell {
            switch: String::new(),
            pairs: 1,
            size: 64,
            burst: 32,
            latency_burst: 1,
            rate: None,
            latency_rate,
            cores: 1,
            io: String::new(),
            direction: Direction::There,
            peer: default,
            touches: self.touch.unwrap_or(false),
            what: self.what.unwrap_or(What::Both),
            seconds: whole,
            warm_up,
            container: super::plain(),
        }];
        each(&mut cells, &pairings, |cell, of| (cell.switch, cell.io) = of);
        each(&mut cells, &directions, |cell, of| cell.direction = of);
        each(&mut cells, &peers, |cell, of| cell.peer = of);
        each(&mut cells, &pairs, |cell, of| cell.pairs = of);
        each(&mut cells, &sizes, |cell, of| cell.size = of);
        each(&mut cells, &bursts, |cell, of| (cell.burst, cell.latency_burst) = (of, of));
        if let Some(bursts) = &latency_bursts {
            each(&mut cells, bursts, |cell, of| cell.latency_burst = of);
        }
        each(&mut cells, &rates, |cell, of| cell.rate = of);
        each(&mut cells, &cores, |cell, of| cell.cores = of);
        each(&mut cells, &containers, |cell, of| cell.container = of);
        Ok(cells)
    }
}

/// Whether applications can be in containers with files of their own.
fn is_inside(io: &str) -> bool {
    io.parse::<Carrier>().is_ok_and(|io| io.is_in_containers())
}

/// That a switch has no ports for a carrier, and what it takes.
fn unfit(fabric: &dyn Fabric, io: &Carrier) -> String {
    let has: Vec<&str> = fabric.ends().iter().map(|of| of.describe()).collect();
    let (name, has, wants) = (fabric.name(), has.join(" or "), io.ends().describe());
    let usual = Carrier::usual(fabric);
    format!(
        "{name} is not measured with --io {io}: its ports are {has}, not {wants}; it takes --io {usual}"
    )
}

/// Each cell with each of some values.
fn each<T: Clone>(cells: &mut Vec<Cell>, values: &[T], set: impl Fn(&mut Cell, T)) {
    let all = cells.iter().flat_map(|cell| {
        values.iter().map(|value| {
            let mut cell = cell.clone();
            set(&mut cell, value.clone());
            cell
        })
    });
    *cells = all.collect();
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A cell of a switch that need not be here.
    pub(in super::super) fn cell(switch: &str) -> Cell {
        let matrix = Matrix {
            switch: Some(vec!["catena".into()]),
            size: Some(Values(vec![64])),
            ..Matrix::default()
        };
        let cell = matrix.cells(1).unwrap().swap_remove(0);
        Cell { switch: switch.into(), ..cell }
    }

    fn of(text: &str) -> Option<Values> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn all_combinations_are_cells() {
        let matrix = Matrix {
            switch: Some(vec!["catena".into(), "catena-af-packet".into()]),
            pairs: of("1,2"),
            size: of("64..256x2"),
            io: Some(vec!["udp".into(), "af-packet".into()]),
            direction: Some(vec![Direction::There, Direction::Back]),
            ..Matrix::default()
        };
        let cells = matrix.cells(2).unwrap();
        assert_eq!(cells.len(), 2 * 2 * 3 * 2 * 2);
        let is_new = |(at, cell): (usize, &Cell)| !cells[..at].contains(cell);
        assert!(cells.iter().enumerate().all(is_new));
        assert!(
            cells.iter().all(|cell| (cell.burst, cell.latency_burst, cell.cores) == (32, 1, 1))
        );
    }

    #[test]
    fn bursts_of_clients_follow_those_of_senders_that_are_said() {
        let switch = Some(vec!["catena".into()]);
        let bursts = |matrix: Matrix| -> Vec<(usize, usize)> {
            let matrix = Matrix { switch: switch.clone(), size: of("64"), ..matrix };
            matrix.cells(1).unwrap().iter().map(|c| (c.burst, c.latency_burst)).collect()
        };
        let burst = || Matrix { burst: of("4,8"), ..Matrix::default() };
        assert_eq!(bursts(burst()), [(4, 4), (8, 8)]);
        let both = Matrix { latency_burst: of("1,2"), ..burst() };
        assert_eq!(bursts(both.clone()), [(4, 1), (4, 2), (8, 1), (8, 2)]);
        // A burst that is said over another matrix is not joined with its bursts of clients.
        let over = Matrix { burst: of("16"), ..Matrix::default() }.over(&both);
        assert_eq!(bursts(over), [(16, 16)]);
        let over = Matrix { latency_burst: of("9"), ..Matrix::default() }.over(&both);
        assert_eq!(bursts(over), [(4, 9), (8, 9)]);
    }

    #[test]
    fn values_out_of_bounds_are_named() {
        let catena = || Matrix { switch: Some(vec!["catena".into()]), ..Matrix::default() };
        let wrong = |matrix: Matrix| matrix.cells(2).unwrap_err();
        for (matrix, parameter, expected) in [
            (Matrix { size: of("59"), ..catena() }, "size", "59: takes 60 to 1514"),
            (Matrix { pairs: of("65"), ..catena() }, "pairs", "65: takes 1 to 64"),
            (Matrix { cores_for_switch: of("3"), ..catena() }, "cores-for-switch", "takes 1 to 2"),
            (Matrix { seconds: Some(0.0), ..catena() }, "seconds", "takes seconds from 0.01"),
            (Matrix { warm_up: Some(f64::NAN), ..catena() }, "warm-up", "takes seconds from 0"),
            (Matrix { latency_rate: Some(0), ..catena() }, "latency-rate", "0: takes 1 to"),
            (Matrix { io: Some(vec!["fast".into()]), ..catena() }, "io", "'fast'"),
            (
                Matrix {
                    size: of("60..1514+1"),
                    pairs: of("1..64+1"),
                    burst: of("1,2"),
                    ..catena()
                },
                "",
                "more than 100000 combinations",
            ),
        ] {
            let found = wrong(matrix);
            assert!(found.parameter == parameter && found.why.contains(expected), "{found:?}");
        }
        let hub = Matrix { switch: Some(vec!["hub".into()]), ..Matrix::default() };
        assert_eq!(wrong(hub).parameter, "switch");
    }
}
