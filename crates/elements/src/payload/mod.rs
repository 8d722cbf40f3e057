//! What lies behind the headers.

mod http;
mod search;
mod snort;
pub(crate) mod snort_filter;
mod streams;
mod tls;
mod transport;
pub(crate) mod url_filter;
