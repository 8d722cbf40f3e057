//! Routing tables.

pub(crate) mod ip_lookup;
pub(crate) mod lookup_ip6_route;
pub(crate) mod route_table;
