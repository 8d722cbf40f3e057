//! What lies behind the headers.

pub(crate) mod decrypt_payload;
pub(crate) mod encrypt_payload;
mod http;
mod sealed;
mod search;
mod snort;
pub(crate) mod snort_filter;
mod streams;
mod tls;
mod transport;
pub(crate) mod url_filter;
