//! Flow entries of segments: proven to do what the segments do, and run by Open vSwitch.

mod frames;
mod lists;
mod proof;
mod segments;
mod switch;
