//! What lies behind the headers.

mod connections;
pub(crate) mod decrypt_payload;
pub(crate) mod dedup_payload;
pub(crate) mod encrypt_payload;
mod http;
mod quic;
mod rates;
mod redundancy;
pub(crate) mod redup_payload;
mod sealed;
mod search;
mod snort;
pub(crate) mod snort_filter;
mod streams;
mod tls;
pub(crate) mod url_filter;
mod window;
