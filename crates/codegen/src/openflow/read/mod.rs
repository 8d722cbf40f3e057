//! Flow entries as programs: a text is executed as Open vSwitch would, for a packet of which nothing
//! is known but the port where it comes in.
//!
//! Frames are at least as long as their Ethernet header, and fragments are handled as `nx-match` says.
//! For plain OpenFlow, switches are taken to treat malformed headers as Open vSwitch does.

mod back;
mod execute;
mod overlap;
mod sight;
mod text;

use ir::Program;

use super::FLOWS;
use crate::draft::Failure;
use crate::{Device, File, Unread};

/// Reads what [`super::emit`] wrote, or people changed.
pub(super) fn read(files: &[File], device: &Device<'_>) -> Result<Vec<Program>, Unread> {
    let unread = |(line, message): Failure| Unread { file: FLOWS.into(), line, message };
    let file = files.iter().find(|file| file.name == FLOWS);
    let file = file.ok_or_else(|| unread((0, "it is missing".into())))?;
    let text = std::str::from_utf8(&file.contents);
    let text = text.map_err(|_| unread((0, "it is no UTF-8".into())))?;
    let entries = text::entries(text).map_err(unread)?;
    overlap::check(&entries).map_err(unread)?;
    back::check(&entries, device).map_err(unread)?;
    let one = |segment| execute::program(&entries, device, segment).map_err(unread);
    (0..device.segments.len()).map(one).collect()
}
