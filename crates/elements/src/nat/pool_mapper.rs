//! PoolMapper: what has rewriters share out public addresses and ports among hosts.

use std::rc::Rc;

use click::config::Argument;
use ipnet::Ipv4Net;
use ir::{Diagnostic, Model};

use crate::argument::{FromArgument, IpMask, parse_integer, parse_ipv4};
use crate::configure::{Arguments, Configure, Failed};
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::nat::rewriter::{
    BlockOptions, Choice, Dependence, Mapper, Options, Order, Patterns, Pool, Static, order,
    parse_mapped, port_range,
};

/// Addresses that a pool may have.
const MOST_ADDRESSES: u64 = 4096;
/// Blocks that a host may have if nothing is said.
const BLOCKS: usize = 8;
/// Bytes for an address: the ports that are taken, of three protocols and of blocks.
const ADDRESS_BYTES: u64 = 4 * 8192;

element! {
    /// PoolMapper(ADDRESSES FOUTPUT ROUTPUT [, KEYWORDS]) -- lets rewriters share out public addresses and ports among hosts
    ///
    /// An IPRewriter, TCPRewriter or ICMPPingRewriter has this element as the specification of
    /// the input that packets from inside come in on, and `inbound` with its name as that of
    /// packets from outside. Several rewriters may use one pool. ADDRESSES are addresses, ranges
    /// of them (L-H) and networks, whose first and last address count too; at most 4,096.
    ///
    /// A host inside has one of the addresses for all that it sends as long as it has any flow
    /// (paired, RFC 4787 §4.1). A hash of its own address decides which; if that has no port
    /// left, the next one that has. No two mappings have the same public address and port.
    ///
    /// A mapping begins with its first flow and ends when the last one expired. What hosts inside
    /// send to a public address and port that has a mapping goes to the host that it stands for,
    /// from the sender's own public address and port, and leaves on ROUTPUT (hairpinning).
    ///
    /// With one address and PORTS alone the element is `pattern ADDR PORTS - -`, and `inbound` is
    /// `drop`: ports are then shared by flows to different destinations.
    ///
    /// A pool needs all packets on one worker; with one address and PORTS alone it does not.
    ///
    /// = KEYWORDS
    ///
    /// PORTS (range, default 1024-65535): ports that mappings get, and identifiers of pings: the
    /// host's own if it is free, else one at random. L-H# gives them in turn; L-H? always at random.
    /// MAPPING (word, default address-port): what flows of a host's port share a mapping.
    /// endpoint: all, wherever they go. address: those to one address. address-port: none do.
    /// FILTERING (word, default address-port): which packets from outside that belong to no flow
    /// reach the host of a mapping. endpoint: all. address: those from addresses that it has a flow
    /// with. address-port: none. Hosts inside always reach it.
    /// PARITY (bool, default false): whether even ports get even ports, and odd ones odd ports.
    /// BLOCK (number, default 0): ports of a block. A host gets ports of blocks that it has alone.
    /// BLOCKS (number, default 8): blocks that a host may have at once.
    /// LOG (bool, default true): whether a line is printed for each block given and returned, with
    /// the next new flow, and 32 at once at the most.
    /// STATIC (words, default none): mappings that are always there, as INSIDE:PORT=PUBLIC:PORT/tcp, with /udp, or
    /// without either for both. Packets from anywhere reach the host by them.
    ///
    /// = HANDLERS
    ///
    /// mappings (read): a line for each mapping: protocol, endpoint inside, public endpoint, flows.
    /// hosts (read): a line for each host: its address, the public one, its mappings and blocks.
    /// blocks (read): a line for each block that is given: its ports, the host, its mappings.
    /// block_log (read): the last 4,096 blocks given and returned, each with its time in seconds.
    /// blocks_given, blocks_returned (read): how many were.
    ///
    /// Mappings and blocks go with their flows when another configuration replaces a running one;
    /// `block_log` begins anew then.
    ///
    /// = EXAMPLE
    ///
    /// public :: PoolMapper(203.0.113.0/28 0 1, MAPPING endpoint, FILTERING address, BLOCK 512);
    /// rw :: IPRewriter(public, inbound public);
    /// inside -> [0] rw [0] -> outside; from_outside -> [1] rw [1] -> to_inside;
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, ICMPPingRewriter, BackendMapper
    PoolMapper { category: Nat, ports: "0/0", processing: "a/a", samples: [] }
}

/// See [`PoolMapper::CLASS`].
pub(crate) struct PoolMapper {
    mapper: Rc<Mapper>,
}

/// The addresses that a word means.
fn addresses(word: &Argument, arguments: &mut Arguments<'_, '_>) -> Option<(u32, u32)> {
    let range = match word.text.split_once('-') {
        Some((low, high)) => parse_ipv4(low).zip(parse_ipv4(high)),
        None => {
            let cx = arguments.cx();
            let mask = IpMask::from_argument(word, cx.names(), cx.name()).ok();
            let network: Option<Ipv4Net> = mask.and_then(IpMask::prefix);
            network.map(|network| (network.network(), network.broadcast()))
        }
    };
    let range = range.map(|(low, high)| (low.to_bits(), high.to_bits()));
    let range = range.filter(|(low, high)| low <= high && *low != 0);
    if range.is_none() {
        let message = format!("'{}' is not an address, a range (L-H) or a network", word.text);
        arguments.error(word, message);
    }
    range
}

/// The addresses that words mean, in ascending order, none of them twice.
fn pool(words: &[Argument], arguments: &mut Arguments<'_, '_>) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for word in words {
        let Some((low, high)) = addresses(word, arguments) else { continue };
        if all.iter().any(|&(first, last)| low <= last && first <= high) {
            arguments.error(word, "the pool has addresses of these already");
            continue;
        }
        all.push((low, high));
        let count: u64 = all.iter().map(|(low, high)| u64::from(high - low) + 1).sum();
        if count > MOST_ADDRESSES {
            arguments.error(word, format!("a pool has at most {MOST_ADDRESSES} addresses"));
            all.pop();
        }
    }
    all.sort_unstable();
    all
}

/// An address with a port.
fn endpoint(text: &str) -> Option<(u32, u16)> {
    let (address, port) = text.split_once(':')?;
    Some((parse_ipv4(address)?.to_bits(), port.parse().ok().filter(|&port| port != 0)?))
}

/// The mapping that a word means, for each of its protocols.
fn parse_static(word: &Argument, arguments: &mut Arguments<'_, '_>) -> Vec<Static> {
    let (pair, protocols): (&str, &[u8]) = match word.text.split_once('/') {
        None => (&word.text, &[6, 17]),
        Some((pair, "tcp")) => (pair, &[6]),
        Some((pair, "udp")) => (pair, &[17]),
        Some(_) => ("", &[]),
    };
    let ends = pair.split_once('=').and_then(|(i, p)| endpoint(i).zip(endpoint(p)));
    let Some((inside, public)) = ends else {
        let example = "10.0.0.5:80=203.0.113.1:80/tcp";
        arguments.error(word, format!("'{}' is not a mapping such as {example}", word.text));
        return Vec::new();
    };
    let of = |&protocol| Static { protocol, inside, public };
    protocols.iter().map(of).collect()
}

/// The mappings of STATIC, none of which contradicts another.
fn statics(
    addresses: &[(u32, u32)],
    list: Option<&Argument>,
    arguments: &mut Arguments<'_, '_>,
) -> Vec<Static> {
    let mut all: Vec<Static> = Vec::new();
    let list = list.filter(|list| list.text != "none");
    for word in list.iter().flat_map(|list| list.words()) {
        for one in parse_static(&word, arguments) {
            let is_inside = |address| addresses.iter().any(|r| r.0 <= address && address <= r.1);
            let same = |other: &Static| {
                other.protocol == one.protocol
                    && (other.public == one.public || other.inside == one.inside)
            };
            let message = match one {
                _ if !is_inside(one.public.0) => "the public address is none of the pool",
                _ if is_inside(one.inside.0) => "the address inside is one of the pool",
                _ if all.iter().any(same) => "one of the endpoints has a mapping already",
                _ => {
                    all.push(one);
                    continue;
                }
            };
            arguments.error(&word, message);
            break;
        }
    }
    all
}

/// What a keyword says that mappings or filters depend on.
fn dependence(keyword: &'static str, arguments: &mut Arguments<'_, '_>) -> Dependence {
    let Some(word) = arguments.keyword_argument(keyword) else { return Dependence::AddressPort };
    let known = Dependence::ALL.iter().find(|(name, _)| *name == word.text);
    if known.is_none() {
        let names = Dependence::ALL.map(|(name, _)| name).join(", ");
        arguments.error(&word, format!("'{}' is none of {names}", word.text));
    }
    known.map_or(Dependence::AddressPort, |(_, known)| *known)
}

fn ports(word: &Argument, arguments: &mut Arguments<'_, '_>) -> ((u16, u16), Order) {
    let (range, order) = order(&word.text);
    let single = || parse_integer(range).and_then(|p| u16::try_from(p).ok()).map(|p| (p, p));
    match port_range(range).or_else(single) {
        Some(range) => (range, order),
        None => {
            arguments.error(word, format!("'{}' is not a range of ports (L-H)", word.text));
            ((1024, u16::MAX), order)
        }
    }
}

fn blocks(ports: (u16, u16), arguments: &mut Arguments<'_, '_>) -> Option<BlockOptions> {
    let given = arguments.keyword_argument("BLOCK");
    let most = arguments.keyword_argument("BLOCKS");
    let size = given.as_ref().and_then(|word| arguments.parse::<u16>("BLOCK", word));
    let most_given = most.as_ref().and_then(|word| arguments.parse::<usize>("BLOCKS", word));
    if let (Some(word), Some(0)) = (&most, most_given) {
        arguments.error(word, "a host needs a block");
    }
    let size = size.filter(|&size| size > 0)?;
    let all = u32::from(ports.1 - ports.0) + 1;
    if let Some(word) = given.filter(|_| u32::from(size) > all) {
        arguments.error(&word, format!("there are only {all} ports"));
        return None;
    }
    Some(BlockOptions { size, most: most_given.unwrap_or(BLOCKS) })
}

impl PoolMapper {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (name, span, part) = (cx.name().to_string(), cx.span(), cx.part());
        let keywords =
            &["PORTS", "MAPPING", "FILTERING", "PARITY", "BLOCK", "BLOCKS", "LOG", "STATIC"];
        let mut arguments = cx.arguments(keywords);
        let given = arguments.keyword_argument("PORTS");
        let ports_word = given.unwrap_or_else(|| Argument::bare("1024-65535"));
        let (ports, order) = ports(&ports_word, &mut arguments);
        let mapping = dependence("MAPPING", &mut arguments);
        let filtering = dependence("FILTERING", &mut arguments);
        let keeps_parity = arguments.keyword("PARITY").unwrap_or(false);
        let prints = arguments.keyword("LOG").unwrap_or(true);
        let blocks = blocks(ports, &mut arguments);
        let list = arguments.keyword_argument("STATIC");
        let whole = arguments.next_raw();
        let mut words: Vec<Argument> = whole.iter().flat_map(|w| w.words()).collect();
        let outputs = words.split_off(words.len().saturating_sub(2));
        let addresses = pool(&words, &mut arguments);
        if words.is_empty() {
            let at = whole.as_ref().map_or(span, |w| w.span);
            let error =
                Diagnostic::error("missing-argument", "ADDRESSES FOUTPUT ROUTPUT are missing");
            arguments.report(error.label(at, "").help("write, for example, 203.0.113.0/28 0 1"));
        }
        let statics = statics(&addresses, list.as_ref(), &mut arguments);
        let is_plain = mapping == Dependence::AddressPort
            && filtering == Dependence::AddressPort
            && matches!(addresses[..], [(low, high)] if low == high)
            && !keeps_parity
            && blocks.is_none()
            && statics.is_empty();
        if !is_plain && part.shares() > 1 {
            let message =
                "a pool of several addresses or with keywords needs all packets on one worker";
            let error = Diagnostic::error("bad-argument", message).label(span, "");
            arguments
                .report(error.help("run it with one worker, or write one address and PORTS alone"));
        }
        let dash = || Argument::bare("-");
        let mut pattern = match (&words[..], is_plain) {
            ([address], true) => vec![address.clone(), ports_word, dash(), dash()],
            _ => vec![dash(), dash(), dash(), dash()],
        };
        pattern.extend(outputs);
        let mut own = Vec::new();
        let parsed = whole.as_ref().filter(|_| !words.is_empty());
        let parsed = parsed.and_then(|w| parse_mapped(&pattern, w, &mut own, &mut arguments));
        let count = addresses.iter().map(|(low, high)| u64::from(high - low) + 1).sum::<u64>();
        if !is_plain {
            arguments.cx().claim(None, span, count * ADDRESS_BYTES)?;
        }
        arguments.finish()?;
        let own = Rc::new(Patterns::new(&name, own));
        let mapped = Vec::from_iter(parsed.map(|parsed| parsed.resolve(&own)));
        let choice = match mapped.first() {
            Some(first) if !is_plain => Choice::Pool(Pool::new(Options {
                addresses,
                ports,
                order,
                mapping,
                filtering,
                keeps_parity,
                blocks,
                statics,
                outputs: first.ports,
                prints,
            })),
            _ => Choice::Only,
        };
        let mapper = Rc::new(Mapper { name, own, mapped, choice });
        cx.share(Rc::clone(&mapper));
        Ok(Self { mapper })
    }
}

impl Element for PoolMapper {
    fn model(&self) -> Model {
        super::ip_mapper::model(&self.mapper)
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        self.mapper.export(to);
        if let Some(pool) = self.mapper.pool() {
            pool.users().export_flows(to);
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        self.mapper.import(from);
        if let Some(pool) = self.mapper.pool() {
            pool.set_moving(true);
            pool.users().import_flows(from);
            pool.set_moving(false);
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("mappings"),
                Handler::read("hosts"),
                Handler::read("blocks"),
                Handler::read("block_log"),
                Handler::read("blocks_given"),
                Handler::read("blocks_returned"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.mapper.pool().map_or_else(String::new, |pool| pool.describe(handler)))
    }
}
