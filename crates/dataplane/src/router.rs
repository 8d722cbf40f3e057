//! The router: a chain's elements, connected, and the worker that moves packets through them.
//!
//! Packets are pushed depth first: what an element emits first is carried to the end of its way
//! before what it emits next, as in Click. The way is kept on an explicit stack, so that a long
//! or cyclic chain cannot exhaust the thread's.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use elements::Element;
use elements::configure::scopes;
use elements::context::{Context, Core, Outputs, Services, Tally};
use elements::element::{Handler, HandlerContext, Traffic, Work};
use ir::{Graph, NodeId, Port, Reason};
use net::{Batch, Packet};

use crate::clock::Clock;

/// A packet visited too many elements: the chain has a cycle that nothing breaks.
const LOOP: Reason = Reason("loop");
/// An output that nothing is connected to.
const UNCONNECTED: Reason = Reason("unconnected-output");
/// Elements that one burst may visit before it is taken to go round in circles.
const MAX_VISITS: u32 = 1 << 20;

/// An element with what belongs to it while it works.
struct Cell {
    element: Box<dyn Element>,
    outputs: Outputs,
    tally: Tally,
}

struct Node {
    name: String,
    class: String,
    config: String,
    inputs: usize,
    /// Absent while the element works.
    cell: Option<Box<Cell>>,
    /// Where each output leads.
    to: Vec<Option<Port>>,
    /// What each pulled input comes from.
    from: Vec<Option<Port>>,
}

/// Where the router's words go.
pub trait Listener {
    /// A line of output of an element such as Print.
    fn message(&mut self, text: &str);
    /// Something went wrong at an element while the chain ran.
    fn error(&mut self, element: &str, text: &str);
}

/// Collects what is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// Lines of output.
    pub messages: Vec<String>,
    /// Errors, with the element in front.
    pub errors: Vec<String>,
}

impl Listener for Transcript {
    fn message(&mut self, text: &str) {
        self.messages.push(text.to_string());
    }

    fn error(&mut self, element: &str, text: &str) {
        self.errors.push(format!("{element}: {text}"));
    }
}

/// All but the worker's own possessions, so that both can be lent at once.
struct Nodes {
    nodes: Vec<Node>,
    names: HashMap<String, NodeId>,
    /// Batches on their way, the next one last.
    stack: Vec<(Port, Batch)>,
    timers: BinaryHeap<Reverse<(u64, NodeId)>>,
    runcount: i64,
    errors: u64,
    listener: Box<dyn Listener>,
    globals: Vec<(String, String)>,
}

/// A chain, ready to run or running on this thread.
pub struct Router {
    nodes: Nodes,
    core: Core,
    clock: Box<dyn Clock>,
    tasks: Vec<Task>,
    /// Elements that may take a stop over.
    started: bool,
}

struct Task {
    node: NodeId,
    ended: bool,
}

/// Why a run came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// There is more to do at once.
    Busy,
    /// Nothing to do before this time.
    Until(u64),
    /// Nothing to do unless somebody writes a handler.
    Idle,
    /// An element told the driver to stop.
    Stopped,
}

impl Router {
    /// Connects the elements of a graph, which must be in the graph's order. `seed` makes random
    /// choices repeatable.
    pub fn new(
        graph: &Graph,
        elements: Vec<Box<dyn Element>>,
        clock: Box<dyn Clock>,
        seed: u64,
        listener: Box<dyn Listener>,
    ) -> Self {
        assert_eq!(graph.nodes.len(), elements.len());
        let mut nodes: Vec<Node> = graph
            .nodes
            .iter()
            .zip(elements)
            .map(|(n, element)| Node {
                name: n.name.clone(),
                class: n.class.clone(),
                config: n.config.clone(),
                inputs: n.inputs.len(),
                cell: Some(Box::new(Cell {
                    element,
                    outputs: Outputs::new(n.outputs.len()),
                    tally: Tally::default(),
                })),
                to: vec![None; n.outputs.len()],
                from: vec![None; n.inputs.len()],
            })
            .collect();
        for edge in &graph.edges {
            nodes[edge.from.node].to[edge.from.port] = Some(edge.to);
            nodes[edge.to.node].from[edge.to.port] = Some(edge.from);
        }
        let names = nodes.iter().enumerate().map(|(i, n)| (n.name.clone(), i)).collect();
        let tasks = (0..nodes.len())
            .filter(|&n| nodes[n].cell.as_ref().is_some_and(|c| c.element.has_task()))
            .map(|node| Task { node, ended: false })
            .collect();
        let mut core = Core::new(seed);
        let mut clock = clock;
        core.now = clock.now();
        Self {
            nodes: Nodes {
                nodes,
                names,
                stack: Vec::new(),
                timers: BinaryHeap::new(),
                runcount: 1,
                errors: 0,
                listener,
                globals: Vec::new(),
            },
            core,
            clock,
            tasks,
            started: false,
        }
    }

    /// One round: due timers, then every task once, everything they push carried to its end.
    /// `burst` rounds of tasks run before time is read again.
    pub fn round(&mut self) -> Rest {
        if !self.started {
            self.started = true;
            for node in 0..self.nodes.nodes.len() {
                self.nodes.wake(&mut self.core, node);
            }
        }
        self.core.now = self.clock.now();
        let mut worked = self.fire_timers();
        for i in 0..self.tasks.len() {
            if self.tasks[i].ended || self.nodes.runcount <= 0 {
                continue;
            }
            match self.nodes.run(&mut self.core, self.tasks[i].node) {
                Work::Done => worked = true,
                Work::Idle => {}
                Work::Ended => {
                    self.tasks[i].ended = true;
                    worked = true;
                }
            }
        }
        if self.nodes.runcount <= 0 && !self.nodes.take_over_stop(&mut self.core) {
            return Rest::Stopped;
        }
        if worked {
            return Rest::Busy;
        }
        match self.nodes.timers.peek() {
            Some(&Reverse((time, _))) if time <= self.core.now => Rest::Busy,
            Some(&Reverse((time, _))) => Rest::Until(time),
            None => Rest::Idle,
        }
    }

    fn fire_timers(&mut self) -> bool {
        let mut fired = false;
        while let Some(&Reverse((time, node))) = self.nodes.timers.peek()
            && time <= self.core.now
            && self.nodes.runcount > 0
        {
            self.nodes.timers.pop();
            self.nodes.wake(&mut self.core, node);
            fired = true;
        }
        fired
    }

    /// Runs until an element stops the driver, nothing is left to do, or `interrupted` says so;
    /// it is asked once a round.
    pub fn run(&mut self, mut interrupted: impl FnMut(&mut Router, Rest) -> bool) -> Rest {
        loop {
            let rest = self.round();
            if interrupted(self, rest) {
                return rest;
            }
            match rest {
                Rest::Busy => {}
                Rest::Until(time) => self.clock.wait_until(time),
                Rest::Idle | Rest::Stopped => return rest,
            }
        }
    }

    /// Waits a little for something to come from outside.
    pub fn doze(&mut self) {
        let soon = self.clock.now() + 10_000_000;
        self.clock.wait_until(soon);
    }

    /// Lets every element flush what it holds, after the last round.
    pub fn finish(&mut self) {
        for node in 0..self.nodes.nodes.len() {
            self.nodes.lend(&mut self.core, node, |element, cx| element.finish(cx));
            self.nodes.deliver(&mut self.core);
        }
    }

    /// Pushes packets into an input of an element, and carries them to the end of their way.
    pub fn push(&mut self, to: Port, batch: Batch) {
        self.core.now = self.clock.now();
        self.nodes.stack.push((to, batch));
        self.nodes.deliver(&mut self.core);
    }

    /// Pulls a packet out of an output of an element.
    pub fn pull(&mut self, from: Port) -> Option<Packet> {
        self.core.now = self.clock.now();
        let packet = self.nodes.pull_from(&mut self.core, from);
        self.nodes.deliver(&mut self.core);
        packet
    }

    /// The worker's possessions.
    pub fn core(&mut self) -> &mut Core {
        &mut self.core
    }

    /// Tells the driver to stop, as [`Context::stop`] does.
    pub fn stop(&mut self) {
        self.nodes.runcount = 0;
    }

    /// Number of errors that elements met while running.
    pub fn errors(&self) -> u64 {
        self.nodes.errors
    }

    /// Reads `element.handler parameter`, or a global handler without an element.
    ///
    /// # Errors
    /// A message for whoever asked.
    pub fn read_handler(&mut self, handler: &str) -> Result<String, String> {
        self.core.now = self.clock.now();
        let value = self.nodes.read(None, handler, &self.core);
        self.nodes.deliver(&mut self.core);
        value
    }

    /// Writes `element.handler`.
    ///
    /// # Errors
    /// A message for whoever asked.
    pub fn write_handler(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.core.now = self.clock.now();
        let result = self.nodes.write(None, handler, value, &mut self.core);
        // The handler may have given a task something to do again.
        self.tasks.iter_mut().for_each(|t| t.ended = false);
        self.nodes.deliver(&mut self.core);
        result
    }

    /// Sets what a global read handler (`version`, `config` …) answers.
    pub fn set_global(&mut self, name: &str, value: String) {
        self.nodes.globals.retain(|(n, _)| n != name);
        self.nodes.globals.push((name.to_string(), value));
    }

    /// All elements: name, class, what they dropped or noted, and what they took in or gave out.
    pub fn report(&self) -> impl Iterator<Item = (&str, &str, &Tally, Option<Traffic>)> {
        self.nodes.nodes.iter().map(|n| {
            let cell = n.cell.as_ref().expect("no element is at work");
            (n.name.as_str(), n.class.as_str(), &cell.tally, cell.element.traffic())
        })
    }

    /// The handlers of an element, the general ones included; of the router if the name is empty.
    pub fn handlers(&self, element: &str) -> Option<Vec<Handler>> {
        if element.is_empty() {
            return Some(self.nodes.global_handlers());
        }
        let node = &self.nodes.nodes[*self.nodes.names.get(element)?];
        Some(self.nodes.all_handlers(node))
    }

    /// An element by its full name, to look at its model or state.
    pub fn element(&self, name: &str) -> Option<&dyn Element> {
        let node = *self.nodes.names.get(name)?;
        self.nodes.nodes[node].cell.as_ref().map(|c| &*c.element)
    }
}

/// Handlers that every element has.
const GENERAL: [Handler; 5] = [
    Handler::read("name"),
    Handler::read("class"),
    Handler::read("config"),
    Handler::read("ports"),
    Handler::read("handlers"),
];

impl Nodes {
    /// Calls an element in its surroundings and puts what it emitted on the stack; `None` if it
    /// is at work already.
    fn lend<R>(
        &mut self,
        core: &mut Core,
        node: NodeId,
        work: impl FnOnce(&mut dyn Element, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let mut cell = self.nodes[node].cell.take()?;
        let Cell { element, outputs, tally } = &mut *cell;
        let result = work(&mut **element, &mut Context::new(core, tally, outputs, self, node));
        self.collect(core, node, &mut cell);
        self.nodes[node].cell = Some(cell);
        Some(result)
    }

    /// Puts what an element emitted on the stack, the first emitted on top.
    fn collect(&mut self, core: &mut Core, node: NodeId, cell: &mut Cell) {
        if cell.outputs.is_empty() {
            return;
        }
        for (port, batch) in cell.outputs.drain_reversed() {
            match self.nodes[node].to[port] {
                Some(to) => self.stack.push((to, batch)),
                None => drop_all(core, &mut cell.tally, batch, UNCONNECTED),
            }
        }
    }

    fn wake(&mut self, core: &mut Core, node: NodeId) {
        self.lend(core, node, |element, cx| element.wake(cx));
        self.deliver(core);
    }

    fn run(&mut self, core: &mut Core, node: NodeId) -> Work {
        let work = self.lend(core, node, |element, cx| element.run(cx)).unwrap_or(Work::Idle);
        self.deliver(core);
        work
    }

    /// Asks the elements, the last declared first, whether one takes the stop over.
    fn take_over_stop(&mut self, core: &mut Core) -> bool {
        let taken = (0..self.nodes.len())
            .rev()
            .any(|node| self.lend(core, node, |element, cx| element.on_stop(cx)) == Some(true));
        self.deliver(core);
        taken && self.runcount > 0
    }

    /// Carries everything on the stack to the end of its way.
    fn deliver(&mut self, core: &mut Core) {
        let mut visits = 0;
        while let Some((to, batch)) = self.stack.pop() {
            let mut next = Some((to, batch));
            while let Some((to, batch)) = next.take() {
                visits += 1;
                next = self.visit(core, to, batch, visits > MAX_VISITS);
            }
        }
    }

    /// Pushes a batch into an element; what stays and has nothing emitted before it is returned.
    #[inline]
    fn visit(
        &mut self,
        core: &mut Core,
        to: Port,
        mut batch: Batch,
        lost: bool,
    ) -> Option<(Port, Batch)> {
        let node = to.node;
        let mut cell = self.nodes[node].cell.take().expect("elements are visited one at a time");
        let Cell { element, outputs, tally } = &mut *cell;
        if lost {
            for packet in batch.drain() {
                tally.drop(LOOP, packet.len());
                core.pool.recycle(packet);
            }
        } else {
            let mut cx = Context::new(core, tally, outputs, self, node);
            element.push(to.port, &mut batch, &mut cx);
        }
        let mut next = None;
        if batch.is_empty() {
            core.recycle_batch(batch);
        } else {
            match self.nodes[node].to.first().copied().flatten() {
                Some(to) if cell.outputs.is_empty() => next = Some((to, batch)),
                Some(to) => self.stack.push((to, batch)),
                None => drop_all(core, &mut cell.tally, batch, UNCONNECTED),
            }
        }
        self.collect(core, node, &mut cell);
        self.nodes[node].cell = Some(cell);
        next
    }

    fn pull_from(&mut self, core: &mut Core, from: Port) -> Option<Packet> {
        self.lend(core, from.node, |element, cx| element.pull(from.port, cx)).flatten()
    }

    /// The element of a reference, seen from the compound of `node`.
    fn find(&self, node: Option<NodeId>, reference: &str) -> Option<NodeId> {
        let from = node.map_or("", |n| self.nodes[n].name.as_str());
        scopes(from).find_map(|scope| self.names.get(&format!("{scope}{reference}")).copied())
    }

    /// Splits `element.handler parameter` and finds the element; `None` for a global handler.
    fn resolve<'a>(
        &self,
        from: Option<NodeId>,
        handler: &'a str,
    ) -> Result<(Option<NodeId>, &'a str, &'a str), String> {
        let (path, parameter) = match handler.trim().split_once(char::is_whitespace) {
            Some((path, parameter)) => (path, parameter.trim()),
            None => (handler.trim(), ""),
        };
        match path.rsplit_once('.') {
            None | Some(("", _)) => Ok((None, path.trim_start_matches('.'), parameter)),
            Some((element, name)) => match self.find(from, element) {
                Some(node) => Ok((Some(node), name, parameter)),
                None => Err(format!("no element named '{element}'")),
            },
        }
    }

    fn all_handlers(&self, node: &Node) -> Vec<Handler> {
        let own = node.cell.as_ref().map_or(&[][..], |c| c.element.handlers());
        let general = GENERAL.iter().filter(|g| own.iter().all(|h| h.name != g.name));
        own.iter().chain(general).copied().collect()
    }

    fn global_handlers(&self) -> Vec<Handler> {
        ["classes", "config", "flatconfig", "list", "requirements", "version"]
            .into_iter()
            .map(Handler::read)
            .chain([Handler::write("stop"), Handler::read("handlers")])
            .collect()
    }

    fn read(&self, from: Option<NodeId>, handler: &str, core: &Core) -> Result<String, String> {
        let (node, name, parameter) = self.resolve(from, handler)?;
        let Some(node) = node else { return self.read_global(name) };
        let node = &self.nodes[node];
        let Some(cell) = node.cell.as_ref() else {
            return Err(format!("'{}' is at work", node.name));
        };
        if let Some(own) = cell.element.handlers().iter().find(|h| h.name == name) {
            if !own.read {
                return Err(format!("write-only handler '{}.{name}'", node.name));
            }
            return cell.element.read(
                name,
                parameter,
                &HandlerContext { tally: &cell.tally, now: core.now },
            );
        }
        match name {
            "name" => Ok(node.name.clone()),
            "class" => Ok(node.class.clone()),
            "config" => Ok(node.config.clone()),
            "ports" => Ok(self.ports(node)),
            "handlers" => Ok(list_handlers(&self.all_handlers(node))),
            _ => Err(format!("no handler named '{}.{name}'", node.name)),
        }
    }

    fn read_global(&self, name: &str) -> Result<String, String> {
        if let Some((_, value)) = self.globals.iter().find(|(n, _)| n == name) {
            return Ok(value.clone());
        }
        match name {
            "version" => Ok(env!("CARGO_PKG_VERSION").to_string()),
            "list" => {
                let names: String = self.nodes.iter().map(|n| format!("\n{}", n.name)).collect();
                Ok(format!("{}{names}\n", self.nodes.len()))
            }
            "classes" => {
                Ok(elements::registry::CLASSES.iter().map(|c| format!("{}\n", c.name)).collect())
            }
            "handlers" => Ok(list_handlers(&self.global_handlers())),
            "config" | "flatconfig" | "requirements" => Ok(String::new()),
            _ => Err(format!("no global handler named '{name}'")),
        }
    }

    /// Click's `ports` handler: each port with its processing and its peers.
    fn ports(&self, node: &Node) -> String {
        let peer = |p: &Option<Port>, bracket_first: bool| match p {
            None => "-".to_string(),
            Some(p) if bracket_first => format!("[{}] {}", p.port, self.nodes[p.node].name),
            Some(p) => format!("{} [{}]", self.nodes[p.node].name, p.port),
        };
        let mut text =
            format!("{} input{}\n", node.inputs, if node.inputs == 1 { "" } else { "s" });
        for from in &node.from {
            text.push_str(&format!("{}\n", peer(from, false)));
        }
        let n = node.to.len();
        text.push_str(&format!("{n} output{}\n", if n == 1 { "" } else { "s" }));
        for to in &node.to {
            text.push_str(&format!("{}\n", peer(to, true)));
        }
        text
    }

    fn write(
        &mut self,
        from: Option<NodeId>,
        handler: &str,
        value: &str,
        core: &mut Core,
    ) -> Result<(), String> {
        let (node, name, _) = self.resolve(from, handler)?;
        let Some(node) = node else {
            return match name {
                "stop" => {
                    self.runcount = 0;
                    Ok(())
                }
                _ => Err(format!("no global write handler named '{name}'")),
            };
        };
        let own = self.nodes[node]
            .cell
            .as_ref()
            .and_then(|c| c.element.handlers().iter().find(|h| h.name == name).copied());
        let full = || format!("{}.{name}", self.nodes[node].name);
        match own {
            None => Err(format!("no handler named '{}'", full())),
            Some(handler) if !handler.write => Err(format!("read-only handler '{}'", full())),
            Some(_) => self
                .lend(core, node, |element, cx| element.write(name, value, cx))
                .unwrap_or_else(|| Err("the element is at work".to_string())),
        }
    }
}

fn list_handlers(handlers: &[Handler]) -> String {
    let line = |h: &Handler| {
        let (r, w) = (if h.read { "r" } else { "" }, if h.write { "w" } else { "" });
        format!("{}\t{r}{w}\n", h.name)
    };
    handlers.iter().map(line).collect()
}

fn drop_all(core: &mut Core, tally: &mut Tally, mut batch: Batch, reason: Reason) {
    for packet in batch.drain() {
        tally.drop(reason, packet.len());
        core.pool.recycle(packet);
    }
    core.recycle_batch(batch);
}

impl Services for Nodes {
    fn pull(&mut self, core: &mut Core, node: NodeId, input: usize) -> Option<Packet> {
        let from = self.nodes[node].from.get(input).copied().flatten()?;
        self.pull_from(core, from)
    }

    fn wake_at(&mut self, node: NodeId, time: u64) {
        self.timers.push(Reverse((time, node)));
    }

    fn stop(&mut self) {
        self.runcount -= 1;
    }

    fn read_handler(
        &mut self,
        core: &mut Core,
        node: NodeId,
        handler: &str,
    ) -> Result<String, String> {
        self.read(Some(node), handler, core)
    }

    fn write_handler(
        &mut self,
        core: &mut Core,
        node: NodeId,
        handler: &str,
        value: &str,
    ) -> Result<(), String> {
        self.write(Some(node), handler, value, core)
    }

    fn message(&mut self, text: &str) {
        self.listener.message(text);
    }

    fn error(&mut self, node: NodeId, text: &str) {
        self.errors += 1;
        let name = std::mem::take(&mut self.nodes[node].name);
        self.listener.error(&name, text);
        self.nodes[node].name = name;
    }

    fn runcount(&self) -> i64 {
        self.runcount
    }

    fn set_runcount(&mut self, count: i64) {
        self.runcount = count;
    }
}
