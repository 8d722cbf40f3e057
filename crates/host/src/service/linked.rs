//! Chains whose NFs have interfaces: each in a network namespace of its own, between two links. The links are pairs of ports
//! of one switch: what leaves an NF by its second interface comes to the first one of the next (SCC §6.4).
//!
//! NFs are programs as they are, which the kernel gives frames and sockets, or elements that `catena run` runs.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use click::ast::{Endpoint, Node, Statement};
use ir::Sources;

use super::control::{self, NfStatus, Served};
use super::{
    Chosen, MOST_FAILURES, MOST_IN_WINDOW, Orders, Say, Status, WINDOW, count, known, locked,
};
use crate::cgroup::Groups;
use crate::chain::Program;
use crate::fabric::{self, Ends, Joins, Ports};
use crate::launch::{Elements, Environment, Packets, Running, Start, environment};
use crate::manifest::{Function, HostChain, INTERFACES, Interfaces, LINK, Nf};
use crate::{Failure, Journal, Namespace, Process, log, scheduler};

/// How long it is waited until it is looked whether the switch runs.
const LOOK: Duration = Duration::from_secs(1);

/// An NF that ends earlier has not worked.
const LEAST: Duration = Duration::from_secs(1);

/// Such a chain, whose links are there.
pub(super) struct Linked {
    chosen: Chosen,
    places: Vec<Place>,
    switch: fabric::Running,
    state: Arc<State>,
}

/// An NF's namespace, and what runs there.
struct Place {
    nf: Nf,
    namespace: Namespace,
    runs: Runs,
}

enum Runs {
    /// `catena` itself, with the file and the I/O mode of a chain.
    Elements(PathBuf, PathBuf, String),
    Program(Box<dyn Environment>, Interfaces),
}

/// What is asked for while it runs.
struct State {
    orders: Arc<Orders>,
    /// The name and namespace of each NF.
    nfs: Vec<(String, Namespace)>,
    /// Their processes.
    processes: Mutex<Vec<u32>>,
    /// NFs that ended.
    ended: AtomicU64,
    fabric: String,
    chosen: String,
    begin: Instant,
}

impl Linked {
    /// Makes the links and namespaces of a chain.
    pub(super) fn new(
        spec: HostChain,
        kind: &str,
        elements: &Program,
        journal: &mut Journal,
    ) -> Result<Self, Failure> {
        let chosen = Chosen::of(&spec)?;
        crate::sys::keep_descriptors();
        let fabric = fabric::find(kind).map_err(Failure::Impossible)?;
        fabric.look().map_err(|needs| Failure::Impossible(format!("'{kind}' needs {needs}")))?;
        let orders = Orders::new(journal)?;
        let name = journal.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ends = [(0, &spec.input), (2 * spec.nfs.len() + 1, &spec.output)];
        let taken: Vec<(usize, String)> = ends
            .iter()
            .filter(|(_, name)| !name.starts_with(LINK))
            .map(|(port, name)| (*port, (*name).clone()))
            .collect();
        let ports = Ports {
            count: 2 * spec.nfs.len() + 2,
            taken: &taken,
            joins: Joins::Pairs,
            ends: Ends::Interfaces,
            is_huge: false,
        };
        let core = spec.switch_core.map_or(Ok(chosen.core), known)?;
        let go_on = || !orders.is_stopped();
        // No NF has a name with a dot.
        let of = |what: &str| format!("catena-{name}-{what}");
        let switch = fabric::Running::start(
            fabric.as_ref(),
            journal,
            &of("the.switch"),
            &ports,
            &[core],
            &elements.0,
            &go_on,
        )?;
        let groups = Groups::make(journal)?;
        let mut places = Vec::new();
        for (at, nf) in spec.nfs.iter().enumerate() {
            let namespace = journal.namespace(&of(&nf.name))?;
            let nothing = Interfaces::default();
            let interfaces = nf.interfaces.as_ref().unwrap_or(&nothing);
            if interfaces.has_ipv6() {
                namespace.set("ipv6/conf/default/disable_ipv6", "0")?;
            }
            for (side, interface) in INTERFACES.iter().enumerate() {
                switch.connect(journal, 2 * at + 1 + side, &namespace, interface)?;
            }
            set_up(&namespace, interfaces, journal)?;
            let runs = match &nf.function {
                Function::Click(text) => {
                    let file = journal.folder().join(format!("{}.click", nf.name));
                    std::fs::write(&file, between(text)).map_err(Failure::at(&file))?;
                    let io = spec.driver.map_or("auto".into(), |mode| mode.to_string());
                    Runs::Elements(elements.0.clone(), file, io)
                }
                function => {
                    let runs = environment(function, elements, &groups, journal)?;
                    Runs::Program(runs, interfaces.clone())
                }
            };
            places.push(Place { nf: nf.clone(), namespace, runs });
        }
        for (port, name) in ends {
            if let Some(name) = name.strip_prefix(LINK) {
                switch.connect_here(journal, port, name)?;
            }
        }
        let state = Arc::new(State {
            orders,
            nfs: places.iter().map(|of| (of.nf.name.clone(), of.namespace.clone())).collect(),
            processes: Mutex::new(vec![0; places.len()]),
            ended: AtomicU64::new(0),
            fabric: kind.to_string(),
            chosen: chosen.why.clone(),
            begin: Instant::now(),
        });
        Ok(Self { chosen, places, switch, state })
    }

    pub(super) fn orders(&self) -> &Arc<Orders> {
        &self.state.orders
    }

    /// Runs it until it is stopped; then all of it is taken down.
    pub(super) fn run(
        self,
        control: Option<PathBuf>,
        journal: Journal,
        say: Say<'_>,
    ) -> Result<Status, Failure> {
        let mut running: Vec<(Running, Instant)> = Vec::new();
        let mut server = None;
        let ran = (|| {
            for place in &self.places {
                let started = place.start(running.len(), 0, &self.chosen, &journal, &self.state)?;
                running.push((started, Instant::now()));
            }
            self.note(&running);
            say(&format!("{} started: {}", count(running.len(), "NF"), self.chosen.why));
            if let Some(path) = control {
                server = Some(control::serve(&path, Arc::clone(&self.state) as Arc<dyn Served>)?);
            }
            self.watch(&mut running, &journal, say)
        })();
        let status = self.state.status();
        drop(server);
        running.iter().for_each(|(running, _)| running.destroy());
        journal.end_forgotten();
        let taken = journal.take_down().map(drop);
        match ran {
            // It may have been stopped while it started.
            Err(Failure::Interrupted) if self.state.orders.is_stopped() => taken.map(|()| status),
            ran => ran.and(taken).map(|()| status),
        }
    }

    fn note(&self, running: &[(Running, Instant)]) {
        let numbers = running.iter().map(|(running, _)| running.process.number);
        *locked(&self.state.processes) = numbers.collect();
    }

    /// Starts what ends again, until that is given up or it is stopped.
    fn watch(
        &self,
        running: &mut [(Running, Instant)],
        journal: &Journal,
        say: Say<'_>,
    ) -> Result<(), Failure> {
        let orders = &self.state.orders;
        let mut number = 0;
        let (mut at_once, mut ended) = (vec![0; running.len()], Vec::<Instant>::new());
        loop {
            let handles = running.iter().map(|(running, _)| running.process.handle());
            let handles = handles.chain(self.switch.handles());
            let handles: Vec<OwnedFd> =
                handles.filter_map(|handle| handle.try_clone_to_owned().ok()).collect();
            orders.wait(&handles, LOOK);
            if orders.is_stopped() {
                return Ok(());
            }
            self.switch.check()?;
            let all = orders.restart.swap(false, Ordering::Relaxed);
            if all {
                say("all NFs are started anew, as requested");
            }
            for seat in 0..running.len() {
                let (of, since) = &running[seat];
                let name = &self.places[seat].nf.name;
                match of.process.ending() {
                    None if !all => continue,
                    None => {}
                    Some(ending) => {
                        let why = match of.has_used_all_memory() {
                            true => format!("{ending}, as it used all of its memory"),
                            false => ending,
                        };
                        say(&format!("the NF '{name}' ended: {why}; it is started again"));
                        if let Some(printed) = log::tail(journal.folder(), name) {
                            say(&format!("  it printed: {printed}"));
                        }
                        self.state.ended.fetch_add(1, Ordering::Relaxed);
                        ended.push(Instant::now());
                        at_once[seat] = if since.elapsed() < LEAST { at_once[seat] + 1 } else { 0 };
                    }
                }
                if at_once[seat] >= MOST_FAILURES {
                    return Err(Failure::Impossible(format!(
                        "the NF '{name}' ended {MOST_FAILURES} times in a row as soon as it was started: a program has to stay, as `sleep infinity` does"
                    )));
                }
                ended.retain(|at| at.elapsed() < WINDOW);
                if ended.len() >= MOST_IN_WINDOW {
                    let seconds = WINDOW.as_secs();
                    let why = format!("NFs ended {MOST_IN_WINDOW} times within {seconds} s");
                    return Err(Failure::Impossible(why));
                }
                of.destroy();
                number += 1;
                let place = &self.places[seat];
                // What it has started holds its ports, and files.
                Process::end_all(&Process::of_namespaces(&[place.namespace.number]));
                let started = place.start(seat, number, &self.chosen, journal, &self.state)?;
                running[seat] = (started, Instant::now());
                self.note(running);
            }
        }
    }
}

impl Place {
    /// Starts the NF, on its core and with its scheduling class.
    fn start(
        &self,
        seat: usize,
        number: u64,
        chosen: &Chosen,
        journal: &Journal,
        state: &State,
    ) -> Result<Running, Failure> {
        let begin = || -> Result<Running, Failure> {
            match &self.runs {
                Runs::Elements(program, file, io) => {
                    let elements = Elements {
                        program,
                        file,
                        io: &["--io".to_string(), io.clone()],
                        environment: Vec::new(),
                        devices: &INTERFACES.map(|name| (name.into(), format!("dev:{name}"))),
                        cores: &[chosen.core],
                        name: &self.nf.name,
                    };
                    let go_on = || !state.orders.is_stopped();
                    elements.start(&self.namespace, journal, &go_on).map(Running::of)
                }
                Runs::Program(environment, interfaces) => {
                    let packets = Packets::Interfaces(&self.namespace, &interfaces.privileges);
                    let output = log::open(journal.folder(), &self.nf.name)?;
                    let limits = self.nf.limits;
                    environment
                        .start(Start { chain: number, seat, limits, packets, output }, journal)
                }
            }
        };
        // What a program starts at once is on its core, too.
        let on_core = || {
            let pinned = scheduler::pin(None, chosen.core);
            pinned.map_err(|why| Failure::Impossible(format!("core {}: {why}", chosen.core)))?;
            begin()
        };
        let started = std::thread::scope(|scope| scope.spawn(on_core).join());
        let running =
            started.unwrap_or_else(|_| Err(Failure::Impossible("a thread panicked".into())))?;
        let classes = || -> std::io::Result<()> {
            let Some(class) = chosen.class else { return Ok(()) };
            running.process.each_thread(|thread| scheduler::set_class(thread, class))
        };
        // One that ended at once is seen by who watches.
        if let Err(why) = classes()
            && running.process.is_running()
        {
            running.destroy();
            return Err(Failure::Impossible(format!(
                "the NF '{}' cannot be scheduled as it is to be: {why}; `policy: other` needs nothing",
                self.nf.name
            )));
        }
        Ok(running)
    }
}

impl Served for State {
    fn status(&self) -> Status {
        let processes = locked(&self.processes).clone();
        let counted = |of: &Namespace| {
            let counters = INTERFACES.map(|name| of.counters(name).unwrap_or_default());
            (
                counters.iter().map(|of| of.received).sum(),
                counters.iter().map(|of| of.sent).sum(),
                counters,
            )
        };
        let all: Vec<_> = self.nfs.iter().map(|(_, namespace)| counted(namespace)).collect();
        let nfs = self.nfs.iter().zip(&all).zip(processes);
        Status {
            version: control::VERSION,
            process: std::process::id(),
            seconds: self.begin.elapsed().as_secs_f64(),
            fabric: self.fabric.clone(),
            received: all.first().map_or(0, |(.., [first, _])| first.received),
            sent: all.last().map_or(0, |(.., [_, last])| last.sent),
            failures: self.ended.load(Ordering::Relaxed),
            nfs: nfs
                .map(|(((name, _), (received, passed, _)), process)| NfStatus {
                    name: name.clone(),
                    process,
                    received: *received,
                    passed: *passed,
                    ..NfStatus::default()
                })
                .collect(),
            remarks: vec![self.chosen.clone()],
            ..Status::default()
        }
    }

    fn restart(&self) {
        self.orders.restart();
    }
}

/// Gives a namespace its addresses and routes.
fn set_up(
    namespace: &Namespace,
    interfaces: &Interfaces,
    journal: &Journal,
) -> Result<(), Failure> {
    let mut text = String::from("link set dev lo up\n");
    for (name, addresses) in INTERFACES.iter().zip(&interfaces.addresses) {
        for address in addresses {
            // Nobody else has it: it is not looked for first.
            let now = if address.contains(':') { " nodad" } else { "" };
            text += &format!("address add {address} dev {name}{now}\n");
        }
    }
    for route in &interfaces.routes {
        text += &format!("route add {route}\n");
    }
    namespace.ip(journal, &text)?;
    if interfaces.forward {
        namespace.set("ipv4/ip_forward", "1")?;
        if interfaces.has_ipv6() {
            namespace.set("ipv6/conf/all/forwarding", "1")?;
        }
    }
    Ok(())
}

/// A chain between the interfaces: `input` and `output` are for what comes by the first, and `input[1]` and `output[1]` for
/// what comes by the second. One that uses none of them has devices of its own, and is left as it is.
fn between(text: &str) -> String {
    let [first, second] = INTERFACES;
    let (mut has_ports, mut is_bidirectional) = (false, false);
    let mut sources = Sources::new();
    let file = sources.add("elements", text);
    // What is wrong with it is told by who runs it.
    let statements = click::parse(&mut sources, file).0.statements;
    let chains = statements.iter().filter_map(|statement| match statement {
        Statement::Chain(chain) => Some(chain),
        _ => None,
    });
    for Endpoint { inputs, node, outputs, .. } in chains.flat_map(|of| of.stages.iter().flatten()) {
        let ports = match node {
            Node::Input => outputs,
            Node::Output => inputs,
            Node::Name { name, .. } if name.text == "input" => outputs,
            Node::Name { name, .. } if name.text == "output" => inputs,
            _ => continue,
        };
        has_ports = true;
        is_bidirectional |= ports.iter().any(|ports| ports.numbers().any(|port| port == 1));
    }
    match (has_ports, is_bidirectional) {
        (false, _) => text.to_string(),
        (_, false) => format!("FromDevice({first}) -> {{ {text}\n }} -> ToDevice({second});\n"),
        (_, true) => format!(
            "nf :: {{ {text}\n }};\nFromDevice({first}) -> [0] nf [0] -> ToDevice({second});\n\
             FromDevice({second}) -> [1] nf [1] -> ToDevice({first});\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_stand_between_their_interfaces() {
        let (one, two) = ("FromDevice(eth0) -> {", "nf :: {");
        for (text, begins) in [
            ("input -> Null -> output;", one),
            ("// input[1] and FromDevice(eth0)\ninput -> output;", one),
            ("input [0] -> output; input[1] -> [1] output;", two),
            ("input => Null, Null => output; Null -> [1] output;", two),
            ("FromDevice(eth0) -> ToDevice(eth1);", "FromDevice(eth0) -> ToDevice"),
            ("from :: FromDevice(eth0); from -> Discard;", "from ::"),
        ] {
            assert!(between(text).starts_with(begins), "{}", between(text));
        }
    }
}
