//! Elements that look up routes by the destination annotation: RadixIPLookup and its like.
//!
//! They differ in the structure that Click gives them. Here all have the one that suits their
//! routes, so that they differ in their handlers only.

use ir::Model;
use ir::field::anno;
use net::{Batch, annotation};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::listing::{self, Slice};
use crate::lookup::route_table::{NO_ROUTE, RouteTable};

element! {
    /// RadixIPLookup(ADDR/LENGTH [GATEWAY] OUTPUT, ...) -- looks up routes
    ///
    /// Takes the route with the longest prefix of the destination address annotation. If it has a
    /// gateway, the annotation becomes the gateway's address. The packet leaves on the route's
    /// output; a packet for which there is no route is dropped. `ADDR/MASK`, `ADDR` alone (a
    /// route for one host), and `-` for no gateway can be written too. Of several routes for one
    /// network the first counts.
    ///
    /// Lookups take about the same time whether there are ten routes or a million.
    ///
    /// = HANDLERS
    ///
    /// table (read): all routes.
    /// lookup ADDR (read): the output and gateway for an address, -1 if there is no route.
    /// add ROUTE (write): adds a route; an error if there is one for its network.
    /// set ROUTE (write): adds or replaces a route.
    /// remove ADDR/LENGTH [[GATEWAY] OUTPUT] (write): removes a route.
    /// ctrl (write): several of add, set and remove, one a line; all are done or none.
    ///
    /// = EXAMPLE
    ///
    /// RadixIPLookup(18.26.4.0/24 0, 18.0.0.0/8 18.26.4.1 0, 0.0.0.0/0 18.26.7.1 1)
    ///
    /// = SEE ALSO
    ///
    /// GetIPAddress, StaticIPLookup, LinearIPLookup, SortedIPLookup, DirectIPLookup,
    /// RangeIPLookup, LookupIP6Route
    RadixIPLookup {
        category: Lookup, ports: "1/-", processing: "h/h",
        samples: [
            ("10.0.0.0/8 1", 1, 2),
            ("0.0.0.0/0 18.26.4.9 0, 10.0.0.0/8 1, 10.0.0.1 - 2, 10.0.0.0/30 10.0.0.2 1, 224.0.0.0/4 0", 1, 3),
            ("0/1 0, 128/1 9.9.9.9 1, 10.0.0.0/31 1, 10.0.0.2/31 0, 10.0.0.0/29 1, 10.0.0.0/28 0, \
              10.0.0.0/27 1, 10.0.0.0/26 0, 10.0.0.0/25 1, 10.0.0.0/24 0, 10.0.0.0/23 1, 10.0.0.0/22 0, \
              10.0.0.0/21 1, 10.0.0.0/20 0, 10.0.0.0/19 1, 10.0.0.0/18 0, 10.0.0.0/17 1, 10.0.0.0/16 0, \
              8.8.8.8 1, 8.8.8.0/24 0, 192.168.0.0/16 1, 192.168.1.0/24 0, 192.168.1.1 1, 224/8 0, \
              255.255.255.255 1, 0.0.0.0 1", 1, 2)
        ]
    }
}

/// See [`RadixIPLookup::CLASS`].
pub(crate) struct RadixIPLookup {
    table: RouteTable<u32>,
    handlers: &'static [Handler],
    /// The addresses of a batch and what was found for each, kept for their storage.
    addresses: Vec<u32>,
    found: Vec<Option<u32>>,
}

const FIXED: &[Handler] = &[Handler::read("table"), Handler::read("lookup")];

const CHANGED: &[Handler] = &[
    Handler::read("table"),
    Handler::read("lookup"),
    Handler::write("add"),
    Handler::write("set"),
    Handler::write("remove"),
    Handler::write("ctrl"),
];

const FLUSHED: &[Handler] = &[
    Handler::read("table"),
    Handler::read("lookup"),
    Handler::write("add"),
    Handler::write("set"),
    Handler::write("remove"),
    Handler::write("ctrl"),
    Handler::write("flush"),
];

impl RadixIPLookup {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Self::with_handlers(cx, CHANGED)
    }

    fn with_handlers(cx: &mut Configure<'_>, handlers: &'static [Handler]) -> Result<Self, Failed> {
        let table = RouteTable::configure(cx.arguments(&[]))?;
        Ok(Self { table, handlers, addresses: Vec::new(), found: Vec::new() })
    }
}

impl Element for RadixIPLookup {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let Self { table, addresses, found, .. } = self;
        addresses.clear();
        addresses.extend(batch.iter().map(|p| p.annotations().u32(annotation::DST_IP)));
        found.resize(addresses.len(), None);
        table.lookup_batch(addresses, found);
        let mut found = found.iter();
        cx.each(batch, |packet, _| match table.found(found.next().copied().flatten()) {
            Some(hop) => {
                if hop.gateway != 0 {
                    packet.annotations_mut().set_u32(annotation::DST_IP, hop.gateway);
                }
                Verdict::To(hop.port)
            }
            None => Verdict::Drop(NO_ROUTE),
        });
    }

    fn model(&self) -> Model {
        Model::from_block(self.table.model(anno::DST_IP))
    }

    fn handlers(&self) -> &'static [Handler] {
        self.handlers
    }

    fn read(&self, handler: &str, value: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        match handler {
            "lookup" => self.table.lookup_text(value),
            _ => Ok(listing::whole(|from| self.table.list(handler, from))),
        }
    }

    fn list(&self, handler: &str, from: u64, _: &HandlerContext<'_>) -> Option<Slice> {
        self.table.list(handler, from)
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.table.write(handler, value)
    }
}

/// A class that differs from RadixIPLookup in its name and handlers.
macro_rules! like_radix {
    ($handlers:ident; $(#[doc = $manual:literal])+ $name:ident) => {
        element! {
            $(#[doc = $manual])+
            $name {
                category: Lookup, ports: "1/-", processing: "h/h",
                samples: [("0.0.0.0/0 18.26.4.9 0, 10.0.0.0/8 1, 10.0.0.1/32 10.0.0.2 0", 1, 2)]
            }
        }

        /// Makes a [`RadixIPLookup`].
        pub(crate) struct $name;

        impl $name {
            fn configure(cx: &mut Configure<'_>) -> Result<RadixIPLookup, Failed> {
                RadixIPLookup::with_handlers(cx, $handlers)
            }
        }
    };
}

like_radix! {
    FIXED;
    /// StaticIPLookup(ADDR/LENGTH [GATEWAY] OUTPUT, ...) -- looks up routes that do not change
    ///
    /// Does what RadixIPLookup does; its routes cannot be changed while it runs.
    ///
    /// = HANDLERS
    ///
    /// table (read): all routes.
    /// lookup ADDR (read): the output and gateway for an address, -1 if there is no route.
    ///
    /// = SEE ALSO
    ///
    /// RadixIPLookup
    StaticIPLookup
}

like_radix! {
    CHANGED;
    /// LinearIPLookup(ADDR/LENGTH [GATEWAY] OUTPUT, ...) -- looks up routes
    ///
    /// Does what RadixIPLookup does.
    ///
    /// = HANDLERS
    ///
    /// table, lookup, add, set, remove, ctrl: as RadixIPLookup has them.
    ///
    /// = SEE ALSO
    ///
    /// RadixIPLookup
    LinearIPLookup
}

like_radix! {
    CHANGED;
    /// SortedIPLookup(ADDR/LENGTH [GATEWAY] OUTPUT, ...) -- looks up routes
    ///
    /// Does what RadixIPLookup does.
    ///
    /// = HANDLERS
    ///
    /// table, lookup, add, set, remove, ctrl: as RadixIPLookup has them.
    ///
    /// = SEE ALSO
    ///
    /// RadixIPLookup
    SortedIPLookup
}

like_radix! {
    FLUSHED;
    /// DirectIPLookup(ADDR/LENGTH [GATEWAY] OUTPUT, ...) -- looks up routes
    ///
    /// Does what RadixIPLookup does.
    ///
    /// = HANDLERS
    ///
    /// table, lookup, add, set, remove, ctrl: as RadixIPLookup has them.
    /// flush (write): removes all routes.
    ///
    /// = SEE ALSO
    ///
    /// RadixIPLookup
    DirectIPLookup
}

like_radix! {
    FLUSHED;
    /// RangeIPLookup(ADDR/LENGTH [GATEWAY] OUTPUT, ...) -- looks up routes
    ///
    /// Does what RadixIPLookup does.
    ///
    /// = HANDLERS
    ///
    /// table, lookup, add, set, remove, ctrl: as RadixIPLookup has them.
    /// flush (write): removes all routes.
    ///
    /// = SEE ALSO
    ///
    /// RadixIPLookup
    RangeIPLookup
}
