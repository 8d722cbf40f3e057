//! Installs on running devices what chains become there, and says what they have.
//!
//! A device that speaks OpenFlow is an [`openflow::Switch`]. It is changed by one bundle: all of it, or nothing. What is there of
//! others is left alone.
#![forbid(unsafe_code)]

pub mod openflow;
