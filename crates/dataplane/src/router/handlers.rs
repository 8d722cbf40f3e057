//! Handlers: named values of elements, and of the router itself, that are read and written while
//! the chain runs.

use std::sync::Arc;

use elements::configure::scopes;
use elements::context::WorkerResources;
use elements::element::{Handler, HandlerCalls, HandlerContext};
use elements::listing::{FlowRecord, Slice};
use ir::NodeId;

use super::{Node, Nodes, Port, Router, Task};

/// Handlers that every element has.
const GENERAL: [Handler; 5] = [
    Handler::read("name"),
    Handler::read("class"),
    Handler::read("config"),
    Handler::read("ports"),
    Handler::read("handlers"),
];

/// The router's own handlers.
const GLOBAL: [Handler; 8] = [
    Handler::read("classes"),
    Handler::read("config"),
    Handler::read("flatconfig"),
    Handler::read("handlers"),
    Handler::read("list"),
    Handler::read("requirements"),
    Handler::write("stop"),
    Handler::read("version"),
];

/// What a handler's full name means.
struct Resolved<'a> {
    /// `None` for a handler of the router.
    node: Option<NodeId>,
    name: &'a str,
    parameter: &'a str,
}

/// What reading a handler came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Its value.
    Whole(String),
    /// A part of what it lists.
    Slice(Slice),
}

impl Router {
    /// Reads a handler as [`Router::read_handler`] does; of one that lists, a slice that is read in
    /// bounded time, from where the slice before says, 0 at first.
    ///
    /// # Errors
    /// A message for whoever asked.
    pub fn read_slice(&mut self, handler: &str, from: u64) -> Result<Reading, String> {
        self.core.now = self.clock.now();
        match self.nodes.list(handler, from, &mut self.core) {
            Some(slice) => Ok(Reading::Slice(slice)),
            None => self.read_handler(handler).map(Reading::Whole),
        }
    }

    /// Removes a flow that an element listed; whether it was still there.
    pub fn remove_flow(&mut self, element: &str, flow: &FlowRecord) -> bool {
        self.core.now = self.clock.now();
        self.nodes.remove_flow(element, flow, &mut self.core)
    }
}

impl Nodes {
    /// The element of a reference, seen from the compound of `node`. From outside of the chain,
    /// an element can also be meant by its number, from 1 on.
    fn find(&self, from: Option<NodeId>, reference: &str) -> Option<NodeId> {
        let name = from.map_or("", |n| self.nodes[n].name.as_str());
        let scoped = |scope| self.names.get(&format!("{scope}{reference}")).copied();
        scopes(name).find_map(scoped).or_else(|| {
            let number: usize = reference.parse().ok().filter(|_| from.is_none())?;
            number.checked_sub(1).filter(|n| *n < self.elements)
        })
    }

    /// Splits `element.handler parameter` and finds the element. A name without an element is a
    /// handler of `from` if it has one of that name, and one of the router otherwise.
    fn resolve<'a>(&self, from: Option<NodeId>, handler: &'a str) -> Result<Resolved<'a>, String> {
        let (path, parameter) = match handler.trim().split_once(char::is_whitespace) {
            Some((path, parameter)) => (path, parameter.trim_start()),
            None => (handler.trim(), ""),
        };
        let (node, name) = match path.rsplit_once('.') {
            None => (from.filter(|&n| self.access(from, n, path).is_some()), path),
            Some(("", name)) => (None, name),
            Some((element, name)) => match self.find(from, element) {
                Some(node) => (Some(node), name),
                None => return Err(format!("no element named '{element}'")),
            },
        };
        Ok(Resolved { node, name, parameter })
    }

    /// Whether `from` can read and write an element's handler; `None` if there is none for it. A
    /// private handler is none for those outside of the chain, whatever they come by: every read
    /// and write passes here.
    fn access(&self, from: Option<NodeId>, node: NodeId, name: &str) -> Option<(bool, bool)> {
        let node = &self.nodes[node];
        if let Some(fixed) = node.handlers.iter().chain(&GENERAL).find(|h| h.name == name) {
            return (from.is_some() || !fixed.private).then_some((fixed.read, fixed.write));
        }
        let named = node.cell.as_ref()?.element.named_handlers();
        let handler = named
            .iter()
            .find(|h| h.name == name)
            .or_else(|| named.iter().find(|h| h.name == "*"))?;
        Some((handler.read, handler.write))
    }

    pub(super) fn handler_exists(&self, from: Option<NodeId>, handler: &str, write: bool) -> bool {
        let choose = |(readable, writable)| if write { writable } else { readable };
        match self.resolve(from, handler) {
            Ok(Resolved { node: Some(node), name, .. }) => {
                self.access(from, node, name).is_some_and(choose)
            }
            Ok(Resolved { node: None, name, .. }) => {
                let own = GLOBAL.iter().find(|h| h.name == name);
                own.is_some_and(|h| choose((h.read, h.write)))
                    || !write && self.globals.iter().any(|(n, _)| n == name)
            }
            Err(_) => false,
        }
    }

    /// Whether a handler counts something.
    pub(super) fn adds_up(&self, handler: &str) -> bool {
        match self.resolve(None, handler) {
            Ok(Resolved { node: Some(node), name, .. }) => {
                self.nodes[node].handlers.iter().any(|h| h.name == name && h.adds_up)
            }
            _ => false,
        }
    }

    /// The handlers that are not private.
    pub(super) fn all_handlers(&self, node: Option<NodeId>) -> Vec<Handler> {
        let Some(node) = node else { return GLOBAL.to_vec() };
        let own = self.nodes[node].handlers;
        let general = GENERAL.iter().filter(|g| own.iter().all(|h| h.name != g.name));
        own.iter().chain(general).filter(|h| !h.private).copied().collect()
    }

    fn list_handlers(&self, node: Option<NodeId>) -> String {
        let line = |name: &str, read: bool, write: bool| {
            let (r, w) = (if read { "r" } else { "" }, if write { "w" } else { "" });
            format!("{name}\t{r}{w}\n")
        };
        let fixed = self.all_handlers(node);
        let mut text: String = fixed.iter().map(|h| line(h.name, h.read, h.write)).collect();
        if let Some(cell) = node.and_then(|n| self.nodes[n].cell.as_ref()) {
            let named = cell.element.named_handlers();
            text.extend(named.iter().map(|h| line(&h.name, h.read, h.write)));
        }
        text
    }

    pub(super) fn read(
        &mut self,
        from: Option<NodeId>,
        handler: &str,
        core: &mut WorkerResources,
    ) -> Result<String, String> {
        let Resolved { node, name, parameter } = self.resolve(from, handler)?;
        let Some(node) = node else { return self.read_global(name) };
        let full = || format!("{}.{name}", self.nodes[node].name);
        match self.access(from, node, name) {
            None => return Err(format!("no handler named '{}'", full())),
            Some((false, _)) => return Err(format!("write-only handler '{}'", full())),
            Some((true, _)) => {}
        }
        let general = self.has_general(node, name);
        let Node { name: element, class, config, .. } = &self.nodes[node];
        match name {
            "name" if general => return Ok(element.clone()),
            "class" if general => return Ok(class.clone()),
            "config" if general => return Ok(config.to_string()),
            "ports" if general => return Ok(self.ports(&self.nodes[node])),
            "handlers" if general => return Ok(self.list_handlers(Some(node))),
            _ => {}
        }
        self.settle(core);
        self.lend(core, node, |element, cx| element.call(name, parameter, cx))
            .unwrap_or_else(|| Err(self.busy(node)))
    }

    /// A slice of what a handler lists; none if it lists nothing, or cannot be read.
    pub(super) fn list(
        &mut self,
        handler: &str,
        from: u64,
        core: &mut WorkerResources,
    ) -> Option<Slice> {
        let Resolved { node, name, .. } = self.resolve(None, handler).ok()?;
        let Some(node) = node else {
            let (_, value) = self.globals.iter().find(|(global, _)| global == name)?;
            return Some(Slice::of_text(Arc::clone(value)));
        };
        self.access(None, node, name).filter(|(readable, _)| *readable)?;
        if name == "config" && self.has_general(node, name) {
            return Some(Slice::of_text(Arc::clone(&self.nodes[node].config)));
        }
        self.settle(core);
        let cell = self.nodes[node].cell.as_ref()?;
        let cx = HandlerContext { tally: &cell.tally, now: core.now };
        cell.element.list(name, from, &cx)
    }

    /// Removes a flow that an element listed; whether it was still there.
    pub(super) fn remove_flow(
        &mut self,
        name: &str,
        flow: &FlowRecord,
        core: &mut WorkerResources,
    ) -> bool {
        self.settle(core);
        let node = self.names.get(name).copied();
        let Some(cell) = node.and_then(|node| self.nodes[node].cell.as_mut()) else {
            return false;
        };
        let cx = HandlerContext { tally: &cell.tally, now: core.now };
        cell.element.remove_flow(flow, &cx)
    }

    /// Whether a handler that every element has is not an element's own.
    fn has_general(&self, node: NodeId, name: &str) -> bool {
        self.nodes[node].handlers.iter().all(|handler| handler.name != name)
    }

    fn busy(&self, node: NodeId) -> String {
        format!("'{}' is at work", self.nodes[node].name)
    }

    fn read_global(&self, name: &str) -> Result<String, String> {
        if let Some((_, value)) = self.globals.iter().find(|(n, _)| n == name) {
            return Ok(value.to_string());
        }
        match name {
            "version" => Ok(env!("CARGO_PKG_VERSION").to_string()),
            "list" => {
                let all = self.elements();
                let names: String = all.iter().map(|n| format!("\n{}", n.name)).collect();
                Ok(format!("{}{names}\n", all.len()))
            }
            "classes" => {
                Ok(elements::registry::CLASSES.iter().map(|c| format!("{}\n", c.name)).collect())
            }
            "handlers" => Ok(self.list_handlers(None)),
            "config" | "flatconfig" | "requirements" => Ok(String::new()),
            "stop" => Err("write-only handler 'stop'".to_string()),
            _ => Err(format!("no global handler named '{name}'")),
        }
    }

    /// Click's `ports` handler: each port with its processing and its peers.
    fn ports(&self, node: &Node) -> String {
        let peer = |p: &Option<Port>, bracket_first: bool| match p {
            None => "-".to_string(),
            Some(p) if bracket_first => {
                let p = self.behind_taps(*p);
                format!("[{}] {}", p.port, self.nodes[p.node].name)
            }
            Some(p) => {
                let p = self.before_taps(*p);
                format!("{} [{}]", self.nodes[p.node].name, p.port)
            }
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

    pub(super) fn write(
        &mut self,
        from: Option<NodeId>,
        handler: &str,
        value: &str,
        core: &mut WorkerResources,
    ) -> Result<(), String> {
        let Resolved { node, name, .. } = self.resolve(from, handler)?;
        let Some(node) = node else { return self.write_global(name, value) };
        let full = || format!("{}.{name}", self.nodes[node].name);
        match self.access(from, node, name) {
            None => return Err(format!("no handler named '{}'", full())),
            Some((_, false)) => return Err(format!("read-only handler '{}'", full())),
            Some((_, true)) => {}
        }
        // What is written may give a task something to do again.
        if self.nodes[node].task == Task::Ended {
            self.nodes[node].task = Task::Running;
        }
        self.settle(core);
        let before = self.model_in_use(node);
        let result = self.lend(core, node, |element, cx| {
            let result = element.write(name, value, cx);
            (result, element.handler_calls() != HandlerCalls::None)
        });
        let result = result.map(|(result, calls)| {
            self.nodes[node].calls = calls;
            result
        });
        if before.is_some() && before != self.model_in_use(node) {
            self.uninstall(core, node);
        }
        result.unwrap_or_else(|| Err(self.busy(node)))
    }

    fn write_global(&mut self, name: &str, value: &str) -> Result<(), String> {
        if name != "stop" {
            return Err(match GLOBAL.iter().any(|h| h.name == name) {
                true => format!("read-only handler '{name}'"),
                false => format!("no global handler named '{name}'"),
            });
        }
        let times = match value.trim() {
            "" | "true" => 1,
            times => times.parse::<u32>().map_err(|_| "stop takes a number".to_string())?,
        };
        self.runcount -= i64::from(times);
        Ok(())
    }
}
