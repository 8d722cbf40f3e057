//! What elements that look routes up have in common: routes and their text, a table of them with
//! its handlers, and its model.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Display};
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use classify::lpm::{Address, PrefixMap};
use click::config::Argument;
use ipnet::Ipv6Net;
use ir::field::Field;
use ir::model::{Block, Reg};
use ir::{Diagnostic, Expr, Op, PrefixEntry, PrefixTable, Reason, Span};

use crate::argument::{FromArgument, IpMask, parse_integer, parse_ip_mask, parse_ipv4};
use crate::configure::{Arguments, Failed};
use crate::listing::Slice;
use crate::names::Names;

/// No route leads to the destination.
pub(crate) const NO_ROUTE: Reason = Reason("no-route");

/// Addresses that routes are for.
pub(crate) trait RouteAddress: Address + Hash + Into<u128> {
    /// Parses an address or a name for one.
    fn parse(text: &str, names: &Names, element: &str) -> Option<Self>;
    /// Parses a network: address and prefix length.
    fn parse_network(text: &str, names: &Names, element: &str) -> Option<(Self, u8)>;
    /// Writes the address.
    fn show(self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl RouteAddress for u32 {
    fn parse(text: &str, names: &Names, element: &str) -> Option<Self> {
        let address = parse_ipv4(text).or_else(|| names.find(element, text, |m| m.ip));
        address.map(Ipv4Addr::to_bits)
    }

    fn parse_network(text: &str, names: &Names, element: &str) -> Option<(Self, u8)> {
        let network: IpMask = parse_ip_mask(text, names, element)?;
        Some((network.address, network.prefix()?.prefix_len()))
    }

    fn show(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv4Addr::from_bits(self).fmt(f)
    }
}

impl RouteAddress for u128 {
    fn parse(text: &str, names: &Names, element: &str) -> Option<Self> {
        let address: Option<Ipv6Addr> = text.parse().ok();
        address.or_else(|| names.find(element, text, |m| m.ip6)).map(Ipv6Addr::to_bits)
    }

    fn parse_network(text: &str, names: &Names, element: &str) -> Option<(Self, u8)> {
        let network = Ipv6Net::from_argument(&Argument::bare(text), names, element).ok()?;
        Some((network.addr().to_bits(), network.prefix_len()))
    }

    fn show(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from_bits(self).fmt(f)
    }
}

/// Where packets go from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hop<A> {
    /// The next router; 0 if the destination is a neighbour.
    pub(crate) gateway: A,
    /// The output.
    pub(crate) port: usize,
}

/// A network and where packets for it go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route<A> {
    address: A,
    length: u8,
    hop: Hop<A>,
}

struct Shown<A>(A);

impl<A: RouteAddress> Display for Shown<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(f)
    }
}

impl<A: RouteAddress> Route<A> {
    fn network(&self) -> String {
        format!("{}/{}", Shown(self.address), self.length)
    }

    fn gateway(&self) -> String {
        if self.hop.gateway == A::ZERO {
            "-".to_string()
        } else {
            Shown(self.hop.gateway).to_string()
        }
    }

    /// In columns, as the handler `table` shows it.
    fn line(&self) -> String {
        let column = |text: String, width: usize| {
            let more = if text.len() + 1 < width { "\t" } else { "" };
            text + "\t" + more
        };
        let (network, gateway) = (column(self.network(), 17), column(self.gateway(), 9));
        format!("{network}{gateway}{}", self.hop.port)
    }
}

/// What is wrong with a route, and with which of its words.
struct Wrong {
    message: String,
    help: Option<&'static str>,
    word: usize,
}

/// A route in words: network, gateway (`-` for none, or nothing), output. What a removal does not
/// say is `None`.
struct Request<A> {
    address: A,
    length: u8,
    gateway: A,
    port: Option<usize>,
}

fn parse<A: RouteAddress>(
    words: &[&str],
    outputs: usize,
    names: &Names,
    element: &str,
    removal: bool,
) -> Result<Request<A>, Wrong> {
    const FORM: &str = "a route is ADDR/LENGTH [GATEWAY] OUTPUT";
    let wrong = |word, message| Err(Wrong { message, help: Some(FORM), word });
    let Some(&network) = words.first() else {
        return wrong(0, "a route is missing".to_string());
    };
    let Some((address, length)) = A::parse_network(network, names, element) else {
        return wrong(
            0,
            format!("'{network}' is not a network such as 10.0.0.0/8 or 2001:db8::/32"),
        );
    };
    let (gateway, used) = match words.get(1) {
        Some(&"-") => (A::ZERO, 2),
        Some(word) => match A::parse(word, names, element) {
            Some(gateway) => (gateway, 2),
            None => (A::ZERO, 1),
        },
        None => (A::ZERO, 1),
    };
    let port = match words.get(used) {
        None if removal => None,
        None => return wrong(words.len() - 1, "the route has no output".to_string()),
        Some(word) => match parse_integer(word) {
            None if used == 1 && words.len() > 2 => {
                return wrong(1, format!("'{word}' is not a gateway's address"));
            }
            None => return wrong(used, format!("'{word}' is not an output's number")),
            Some(-1) if removal => None,
            Some(port) => match usize::try_from(port).ok().filter(|p| *p < outputs) {
                Some(port) => Some(port),
                None => {
                    let message = format!("there is no output {port}: {outputs} are connected");
                    return Err(Wrong { message, help: None, word: used });
                }
            },
        },
    };
    if words.len() > used + 1 {
        return wrong(used + 1, format!("'{}' is one word too many", words[used + 1]));
    }
    Ok(Request { address: address.first(length), length, gateway, port })
}

/// A table of routes.
#[derive(Clone, Debug)]
pub(crate) struct RouteTable<A: Address> {
    outputs: usize,
    /// In the order in which they were added; a removed one leaves room for the next.
    routes: Vec<Option<Route<A>>>,
    /// Where the route for each network stands, and where there is room.
    places: HashMap<(A, u8), usize>,
    room: BTreeSet<usize>,
    /// Where routes lead, each hop once, and the same as a row of the model's table.
    hops: Vec<Hop<A>>,
    rows: Vec<Arc<[u128]>>,
    /// Hops to where they stand in `hops`.
    numbers: HashMap<Hop<A>, u32>,
    /// Prefixes to indices of `hops`.
    index: PrefixMap<A>,
    /// The table of the model.
    of_model: Arc<PrefixTable>,
}

/// What stood for a network before a change, and where it was written.
struct Before<A> {
    address: A,
    length: u8,
    route: Option<Route<A>>,
    span: Option<Span>,
}

impl<A: RouteAddress> RouteTable<A> {
    /// An empty table.
    pub(crate) fn new(outputs: usize) -> Self {
        Self {
            outputs,
            routes: Vec::new(),
            places: HashMap::new(),
            room: BTreeSet::new(),
            hops: Vec::new(),
            rows: Vec::new(),
            numbers: HashMap::new(),
            index: PrefixMap::default(),
            of_model: Arc::new(PrefixTable::new(A::BITS.into(), [])),
        }
    }

    /// The table that all arguments make, each of them a route. Of several routes for one
    /// network, the first counts.
    pub(crate) fn configure(mut arguments: Arguments<'_, '_>) -> Result<Self, Failed> {
        let outputs = arguments.cx().outputs();
        let mut table = Self::new(outputs);
        let mut prefixes = Vec::new();
        let mut spans = Vec::new();
        for argument in arguments.rest() {
            let words: Vec<&str> = click::config::words(&argument.text).collect();
            let cx = arguments.cx();
            match parse::<A>(&words, outputs, cx.names(), cx.name(), false) {
                Ok(Request { address, length, gateway, port }) => {
                    if let Some(&first) = table.places.get(&(address, length)) {
                        let text = "this route has no effect: there is one for its network before";
                        let warning = Diagnostic::warning("repeated-route", text);
                        arguments.report(
                            warning.label(argument.span, "").label(spans[first], "the one before"),
                        );
                        continue;
                    }
                    table.places.insert((address, length), spans.len());
                    spans.push(argument.span);
                    let hop = Hop { gateway, port: port.unwrap_or(0) };
                    prefixes.push(((address, length), table.hop(hop)));
                    table.routes.push(Some(Route { address, length, hop }));
                }
                Err(Wrong { message, help, word }) => {
                    let span = argument.words().nth(word).map_or(argument.span, |w| w.span);
                    let error = Diagnostic::error("bad-route", message).label(span, "");
                    arguments.report(match help {
                        Some(help) => error.help(help),
                        None => error,
                    });
                }
            }
        }
        arguments.finish()?;
        let entry = |(&((address, length), hop), &span): (&_, _)| {
            table.entry(address, length, hop, Some(span))
        };
        let entries = prefixes.iter().zip(&spans).map(entry);
        table.of_model = PrefixTable::new(A::BITS.into(), entries).into();
        table.index = prefixes.into_iter().collect();
        Ok(table)
    }

    /// The index of a hop.
    fn hop(&mut self, hop: Hop<A>) -> u32 {
        *self.numbers.entry(hop).or_insert_with(|| {
            self.hops.push(hop);
            self.rows.push([hop.gateway.into(), hop.port as u128].into());
            self.hops.len() as u32 - 1
        })
    }

    /// What a route to a hop is in the model's table, and where that was written.
    fn entry(&self, address: A, length: u8, hop: u32, span: Option<Span>) -> PrefixEntry {
        let row = Arc::clone(&self.rows[hop as usize]);
        PrefixEntry { prefix: address.into(), length: length.into(), row, span }
    }

    /// Where packets for an address go.
    #[inline]
    pub(crate) fn lookup(&self, address: A) -> Option<&Hop<A>> {
        self.hops.get(self.index.lookup(address)? as usize)
    }

    /// Looks several addresses up at once: what is found is for [`RouteTable::found`].
    pub(crate) fn lookup_batch(&self, addresses: &[A], found: &mut [Option<u32>]) {
        self.index.lookup_batch(addresses, found);
    }

    /// Where packets for an address go that was looked up with others.
    #[inline]
    pub(crate) fn found(&self, found: Option<u32>) -> Option<&Hop<A>> {
        self.hops.get(found? as usize)
    }

    /// Routes packets by `key`, leaving the gateway there if the route has one.
    pub(crate) fn model(&self, key: Field) -> Block {
        let (gateway, port) = (Reg(0), Reg(1));
        vec![
            Op::Lookup {
                table: Arc::clone(&self.of_model),
                key: key.get(),
                bind: vec![gateway, port],
                miss: vec![Op::Drop(NO_ROUTE)],
            },
            Op::when(Expr::from(gateway).ne(0u8), vec![key.set(gateway)]),
            Op::Emit(port.into()),
        ]
    }

    /// A slice of what the handler `table` lists: routes, in columns.
    pub(crate) fn list(&self, handler: &str, from: u64) -> Option<Slice> {
        if handler != "table" {
            return None;
        }
        let line = |at: usize| {
            self.routes[at].as_ref().map_or_else(String::new, |route| route.line() + "\n")
        };
        Some(Slice::of_parts(self.routes.len(), from, line))
    }

    /// Answers the handler `lookup`: output and gateway, or -1.
    pub(crate) fn lookup_text(&self, address: &str) -> Result<String, String> {
        let address = A::parse(address.trim(), &Names::default(), "")
            .ok_or_else(|| format!("'{address}' is not an address"))?;
        Ok(match self.lookup(address) {
            None => "-1".to_string(),
            Some(hop) if hop.gateway == A::ZERO => hop.port.to_string(),
            Some(hop) => format!("{} {}", hop.port, Shown(hop.gateway)),
        })
    }

    /// Carries a handler out: `add`, `set`, `remove`, `flush`, or `ctrl` with one of these a line,
    /// of which all are done or none.
    pub(crate) fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        match handler {
            "flush" => {
                *self = Self::new(self.outputs);
                Ok(())
            }
            "ctrl" => {
                let mut done = Vec::new();
                for line in value.lines() {
                    let line = line.trim();
                    if line.is_empty() {
                        continue;
                    }
                    let (command, route) =
                        line.split_once(char::is_whitespace).unwrap_or((line, ""));
                    match self.change(command, route) {
                        Ok(change) => done.push(change),
                        Err(why) => {
                            done.into_iter().rev().for_each(|before| self.restore(before));
                            return Err(why);
                        }
                    }
                }
                Ok(())
            }
            command => self.change(command, value).map(|_| ()),
        }
    }

    fn change(&mut self, command: &str, text: &str) -> Result<Before<A>, String> {
        if !["add", "set", "remove"].contains(&command) {
            return Err(format!("'{command}' is neither add, set nor remove"));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let removal = command == "remove";
        let request = parse::<A>(&words, self.outputs, &Names::default(), "", removal)
            .map_err(|wrong| wrong.message)?;
        let Request { address, length, gateway, port } = request;
        let span = self.of_model.get(address.into(), length.into()).and_then(|entry| entry.span);
        let before = Before { address, length, route: self.find(address, length), span };
        let hop = port.map(|port| Hop { gateway, port });
        match (&before.route, hop) {
            (None, _) if removal => {
                return Err(format!("there is no route for {}/{length}", Shown(address)));
            }
            (Some(old), Some(hop)) if removal && old.hop != hop => {
                return Err(format!("the route for {} leads elsewhere", old.network()));
            }
            (Some(old), _) if command == "add" => {
                let line = old.line().split_whitespace().collect::<Vec<_>>().join(" ");
                return Err(format!("there is a route already: {line}"));
            }
            (_, Some(hop)) if !removal => self.put(Route { address, length, hop }, None),
            _ => self.take(address, length),
        }
        Ok(before)
    }

    fn restore(&mut self, Before { address, length, route, span }: Before<A>) {
        match route {
            Some(route) => self.put(route, span),
            None => self.take(address, length),
        }
    }

    fn find(&self, address: A, length: u8) -> Option<Route<A>> {
        self.routes[*self.places.get(&(address, length))?]
    }

    /// Adds a route or replaces the one for its network.
    fn put(&mut self, route: Route<A>, span: Option<Span>) {
        let (routes, room) = (&mut self.routes, &mut self.room);
        let place = self.places.entry((route.address, route.length)).or_insert_with(|| {
            room.pop_first().unwrap_or_else(|| {
                routes.push(None);
                routes.len() - 1
            })
        });
        routes[*place] = Some(route);
        let hop = self.hop(route.hop);
        let entry = self.entry(route.address, route.length, hop, span);
        Arc::make_mut(&mut self.of_model).insert(entry);
        self.index.insert(route.address, route.length, hop);
    }

    fn take(&mut self, address: A, length: u8) {
        if let Some(place) = self.places.remove(&(address, length)) {
            self.routes[place] = None;
            self.room.insert(place);
            Arc::make_mut(&mut self.of_model).remove(address.into(), length.into());
            self.index.remove(address, length);
        }
    }
}
