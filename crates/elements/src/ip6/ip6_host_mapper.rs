//! IP6HostMapper: what has protocol translators take hosts with any IPv6 address.

use std::cell::RefCell;
use std::rc::Rc;

use ipnet::Ipv4Net;
use ir::{Diagnostic, Model};

use crate::argument::{IpMask, Nanoseconds};
use crate::configure::{Configure, Failed};
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::flow_access::FlowAccess;
use crate::ip6::embedding::Embedding;
use crate::ip6::host_table::{HostTable, Options};
use crate::listing::{self, Slice};

/// 240.0.0.0/4: addresses that no host has (RFC 1112, 4).
const POOL: Ipv4Net = Ipv4Net::new_assert(std::net::Ipv4Addr::new(240, 0, 0, 0), 4);
/// The longest that flows of TCP have to live (RFC 5382, REQ-5), in nanoseconds.
const TIMEOUT: Nanoseconds = Nanoseconds(7440 * 1_000_000_000);
/// More than flows live longer by the coarseness of their clocks.
const MARGIN: u64 = 60 * 1_000_000_000;

element! {
    /// IP6HostMapper([HOSTS, KEYWORDS]) -- lets protocol translators take hosts with any IPv6 address
    ///
    /// Binds each IPv6 host to an IPv4 address that stands for it between a ProtocolTranslator64
    /// and a ProtocolTranslator46 which have this element in the place of the hosts' prefix. An
    /// IPRewriter between them gives flows their public address: that is stateful NAT64 (RFC
    /// 6146). Nobody else may use the addresses of POOL, and no packet leaves with one.
    ///
    /// The first packet from a host binds it. A host that sent again after it got an answer keeps
    /// its stand-in until there was no packet for TIMEOUT; others for six minutes at the most. When
    /// CAPACITY hosts are bound, a new one replaces the one of these others whose last packet
    /// is the oldest, or its packets are dropped if there is none. No other host gets a stand-in
    /// before all flows of its last host are over.
    ///
    /// All packets have to come to one worker.
    ///
    /// HOSTS is `any`, or a prefix of RFC 6052: then translators go by this, and nothing is bound.
    ///
    /// = KEYWORDS
    ///
    /// POOL (IPv4 network, default 240.0.0.0/4): addresses that stand for hosts.
    /// CAPACITY (number, default 65536): hosts that are bound at once.
    /// NETWORK_HOSTS (number, default 4096): those of one network of 64 bits.
    /// TIMEOUT (time, default 2 h 4 min): the longest timeout of any flow. Bindings live a minute longer.
    ///
    /// = HANDLERS
    ///
    /// table (read): hosts and their stand-ins.
    /// count (read): how many hosts are bound.
    /// evicted (read): bindings that made room for others.
    ///
    /// = EXAMPLE
    ///
    /// hosts :: IP6HostMapper;
    /// rw :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop);
    /// from6 -> ProtocolTranslator64(hosts, 64:ff9b::/96) -> [0] rw [0] -> to4;
    /// from4 -> [1] rw [1] -> ProtocolTranslator46(64:ff9b::/96, hosts) -> to6;
    ///
    /// = SEE ALSO
    ///
    /// ProtocolTranslator64, ProtocolTranslator46, PoolMapper
    IP6HostMapper { category: Ip6, ports: "0/0", processing: "a/a", phase: Early, samples: [] }
}

/// See [`IP6HostMapper::CLASS`].
pub(crate) struct IP6HostMapper {
    table: Rc<RefCell<HostTable>>,
}

impl IP6HostMapper {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (span, part) = (cx.span(), cx.part());
        let mut arguments = cx.arguments(&["POOL", "CAPACITY", "NETWORK_HOSTS", "TIMEOUT"]);
        let word = arguments.keyword_argument("POOL");
        let given = word.as_ref().and_then(|word| arguments.parse::<IpMask>("POOL", word));
        let pool = given.map_or(Some(POOL), |mask| mask.prefix().map(|network| network.trunc()));
        let pool = pool.filter(|pool| pool.prefix_len() > 1 && !pool.addr().is_unspecified());
        if let Some(word) = word.filter(|_| given.is_some() && pool.is_none()) {
            arguments.error(&word, format!("'{}' is not a network of hosts", word.text));
        }
        let pool = pool.unwrap_or(POOL);
        let capacity = arguments.keyword::<u32>("CAPACITY").unwrap_or(1 << 16).into();
        let network_hosts = arguments.keyword("NETWORK_HOSTS").unwrap_or(4096);
        let timeout = arguments.keyword("TIMEOUT").unwrap_or(TIMEOUT).0.saturating_add(MARGIN);
        let hosts = arguments.next_plain().filter(|word| word.text != "any");
        let prefix = hosts.as_ref().and_then(|word| arguments.parse::<Embedding>("HOSTS", word));
        if hosts.is_none() && part.shares() > 1 {
            let message = "hosts with any address need all packets on one worker";
            let error = Diagnostic::error("bad-argument", message).label(span, "");
            arguments.report(error.help("run it with one worker, or give a prefix of hosts"));
        }
        arguments.finish()?;
        let options = Options { pool, capacity, network_hosts, timeout };
        let table = Rc::new(RefCell::new(HostTable::new(options)));
        match prefix {
            Some(prefix) => cx.share(Rc::new(prefix)),
            None => cx.share(Rc::clone(&table)),
        }
        Ok(Self { table })
    }
}

impl Element for IP6HostMapper {
    fn model(&self) -> Model {
        let mut model = Model::default();
        model.declare(HostTable::STATE, self.table.borrow().state_kind());
        model
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.table.borrow_mut().export(name, to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, now: u64) {
        self.table.borrow_mut().import(name, from, now);
    }

    fn flows(&self) -> Option<Rc<RefCell<dyn FlowAccess>>> {
        Some(Rc::clone(&self.table) as Rc<RefCell<dyn FlowAccess>>)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("table"), Handler::count("count"), Handler::count("evicted")] }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "table" => listing::whole(|from| self.list(handler, from, cx)),
            _ => self.table.borrow().read(handler),
        })
    }

    fn list(&self, handler: &str, from: u64, cx: &HandlerContext<'_>) -> Option<Slice> {
        (handler == "table").then(|| self.table.borrow().list(from, cx.now))
    }
}
