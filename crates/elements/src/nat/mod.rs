//! Translation of addresses and ports.

pub(crate) mod backend_mapper;
pub(crate) mod backend_probe;
pub(crate) mod icmp_ping_rewriter;
pub(crate) mod icmp_rewriter;
pub(crate) mod ip_addr_rewriter;
pub(crate) mod ip_mapper;
pub(crate) mod ip_rewriter;
pub(crate) mod ip_rewriter_patterns;
pub(crate) mod pool_mapper;
pub(crate) mod rewriter;
