//! Bytes: packets, batches, wire formats, checksums, captures.
