//! LookupIP6Route.

use ir::Model;
use ir::field::anno;
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::listing::{self, Slice};
use crate::lookup::route_table::{NO_ROUTE, RouteTable};

element! {
    /// LookupIP6Route(ADDR/LENGTH [GATEWAY] OUTPUT, ...) -- looks up IPv6 routes
    ///
    /// Takes the route with the longest prefix of the IPv6 destination annotation. If it has a
    /// gateway, the annotation becomes the gateway's address. The packet leaves on the route's
    /// output; a packet for which there is no route is dropped. Of several routes for one network
    /// the first counts.
    ///
    /// = HANDLERS
    ///
    /// table (read): all routes.
    /// lookup ADDR (read): the output and gateway for an address, -1 if there is no route.
    /// add, set, remove, ctrl (write): change routes, as RadixIPLookup has them.
    ///
    /// = EXAMPLE
    ///
    /// LookupIP6Route(2001:db8:1::/48 0, ::/0 2001:db8::1 1)
    ///
    /// = SEE ALSO
    ///
    /// GetIP6Address, RadixIPLookup
    LookupIP6Route {
        category: Lookup, ports: "1/-", processing: "h/h",
        samples: [
            ("::/0 2001:db8::9 0, 2001:db8::/32 1, 2001:db8::1/128 2", 1, 3),
            ("a00::/8 0, 800::/6 a00::1 1, 0:1::/64 0", 1, 2)
        ]
    }
}

/// See [`LookupIP6Route::CLASS`].
pub(crate) struct LookupIP6Route {
    table: RouteTable<u128>,
}

impl LookupIP6Route {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Ok(Self { table: RouteTable::configure(cx.arguments(&[]))? })
    }
}

impl Element for LookupIP6Route {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let table = &self.table;
        cx.each(batch, |packet, _| {
            let annotations = packet.annotations_mut();
            match table.lookup(annotations.dst_ip6().to_bits()) {
                Some(hop) => {
                    if hop.gateway != 0 {
                        annotations.set_dst_ip6(hop.gateway.into());
                    }
                    Verdict::To(hop.port)
                }
                None => Verdict::Drop(NO_ROUTE),
            }
        });
    }

    fn model(&self) -> Model {
        Model::from_block(self.table.model(anno::DST_IP6))
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("table"),
                Handler::read("lookup"),
                Handler::write("add"),
                Handler::write("set"),
                Handler::write("remove"),
                Handler::write("ctrl"),
            ]
        }
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
