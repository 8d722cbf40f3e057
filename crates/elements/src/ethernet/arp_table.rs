//! ARPTable.

use std::cell::RefCell;
use std::rc::Rc;

use ir::Model;

use crate::argument::{Ip, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::ethernet::neighbours::{KEYWORDS, Neighbours};
use crate::flow_access::FlowAccess;
use crate::listing::Slice;

element! {
    /// ARPTable([KEYWORDS]) -- keeps the Ethernet addresses of IP addresses
    ///
    /// Takes no packets: ARPQuerier elements that name it with their keyword TABLE share what is
    /// known in it and the packets that wait in it.
    ///
    /// = KEYWORDS
    ///
    /// CAPACITY (number, default 2048): packets that may wait; 0 for any number.
    /// ENTRY_CAPACITY (number, default 65536): known addresses that are kept; 0 for any number.
    /// INCOMPLETE_CAPACITY (number, default 2048): addresses that are asked for and not known yet,
    /// apart from the others; 0 for any number. If there are more, the oldest are given up.
    /// ENTRY_PACKET_CAPACITY (number, default 0): packets that may wait for one address; 0 for
    /// any number.
    /// CAPACITY_SLIM_FACTOR (number, default 2): when CAPACITY is exceeded, one part in so many
    /// is dropped.
    /// TIMEOUT (time, default 5 min): how long an address is believed; 0 for ever.
    /// QUERY_RATE (number, default 1000): how many requests a second are sent for addresses that
    /// are not known, and as many at once; 0 for any number. Packets to further addresses are
    /// dropped. Known addresses are refreshed all the same.
    /// UNSOLICITED_RATE (number, default 100): how many addresses a second are learned without
    /// being asked for, and as many at once; 0 for any number. They make room for others first, and
    /// never take that of addresses that were asked for.
    ///
    /// = HANDLERS
    ///
    /// table (read): IP address, whether its Ethernet address is known, that, and seconds since.
    /// count, length, drops (read): addresses, packets that wait, packets dropped.
    /// insert (write): sets an entry `IP ETH`. delete (write): removes the entry `IP`.
    /// clear (write): removes all entries.
    ///
    /// = SEE ALSO
    ///
    /// ARPQuerier
    ARPTable {
        category: Ethernet, ports: "0/0", processing: "a/a",
        phase: Early,
        samples: []
    }
}

/// See [`ARPTable::CLASS`].
pub(crate) struct ARPTable {
    table: Rc<RefCell<Neighbours>>,
}

impl ARPTable {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&KEYWORDS);
        let table = Neighbours::configure(&mut arguments, 300);
        arguments.finish()?;
        let table = Rc::new(RefCell::new(table));
        cx.share(Rc::clone(&table));
        Ok(Self { table })
    }
}

impl Element for ARPTable {
    fn model(&self) -> Model {
        let mut model = Model::default();
        model.declare(Neighbours::STATE, self.table.borrow().state_kind());
        model
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.table.borrow_mut().export(name, to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.table.borrow_mut().import(name, from);
    }

    fn held(&self) -> usize {
        self.table.borrow().held()
    }

    fn flows(&self) -> Option<Rc<RefCell<dyn FlowAccess>>> {
        Some(Rc::clone(&self.table) as Rc<RefCell<dyn FlowAccess>>)
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("table"),
                Handler::count("count"),
                Handler::count("length"),
                Handler::count("drops"),
                Handler::write("insert"),
                Handler::write("delete"),
                Handler::write("clear"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.table.borrow().read(handler, cx.now, ip_address))
    }

    fn list(&self, handler: &str, from: u64, cx: &HandlerContext<'_>) -> Option<Slice> {
        self.table.borrow().list(handler, from, cx.now, ip_address)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        self.table.borrow_mut().write(handler, value, cx, parse_ip)
    }
}

/// How the table's handlers write an address.
pub(crate) fn ip_address(address: u128) -> String {
    std::net::Ipv4Addr::from_bits(address as u32).to_string()
}

/// How the table's handlers read one.
pub(crate) fn parse_ip(text: &str) -> Result<u128, String> {
    Ok(parse_value::<Ip>(text)?.0.to_bits().into())
}
