//! Commands of testpmd as programs: rules are executed as documents say that cards do, for a packet of which nothing
//! is known but the port where it comes in.
//!
//! What documents say nothing of (headers that are cut off, options, fragments, tags that no pattern mentions) may match
//! or not: a program that is read asks numbers for that which no packet decides, in the annotations, which are zero
//! where packets come in. So a proof holds whatever a card does there.

mod execute;
mod json;
mod overlap;
mod sight;
mod text;

use ir::Program;

use super::{COMMANDS, Driver, JSON};
use crate::draft::Failure;
use crate::{Device, File, Unread};

/// Reads what [`super::emit`] wrote, or people changed.
pub(super) fn read(
    driver: &Driver,
    files: &[File],
    device: &Device<'_>,
) -> Result<Vec<Program>, Unread> {
    let find = |name: &str| {
        let unread = |(line, message): Failure| Unread { file: name.into(), line, message };
        let file = files.iter().find(|file| file.name == name);
        let file = file.ok_or_else(|| unread((0, "it is missing".into())))?;
        let text = std::str::from_utf8(&file.contents);
        text.map_err(|_| unread((0, "it is no UTF-8".into())))
    };
    let unread = |(line, message): Failure| Unread { file: COMMANDS.into(), line, message };
    let entries = text::entries(find(COMMANDS)?).map_err(unread)?;
    json::check(find(JSON)?, &entries).map_err(|(line, message)| Unread {
        file: JSON.into(),
        line,
        message,
    })?;
    overlap::check(&entries).map_err(unread)?;
    let one = |segment| execute::program(driver.name, &entries, device, segment).map_err(unread);
    (0..device.segments.len()).map(one).collect()
}
