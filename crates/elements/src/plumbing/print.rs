//! Print.

use std::fmt::Write;

use click::config::Argument;
use ir::Model;
use net::{Batch, Packet};

use crate::configure::{Arguments, Configure, Failed};
use crate::context::Context;
use crate::element::Element;
use crate::names::Names;

element! {
    /// Print([LABEL, MAXLENGTH, KEYWORDS]) -- prints what packets hold
    ///
    /// Shows a line for each packet: LABEL, the packet's length, and its first MAXLENGTH bytes.
    ///
    /// = KEYWORDS
    ///
    /// LABEL (string): what the line begins with.
    /// MAXLENGTH (number, default 24): bytes that are shown; a negative number shows all. LENGTH
    /// and NBYTES are older names.
    /// CONTENTS (NONE, HEX, ASCII, true or false, default HEX): how bytes are shown.
    /// TIMESTAMP (bool, default false): whether the timestamp is shown.
    /// PRINTANNO (bool, default false): whether the annotations are shown.
    /// HEADROOM (bool, default false): whether the space around the packet is shown.
    /// ACTIVE (bool, default true): whether anything is shown.
    /// CPU is accepted and means nothing.
    ///
    /// = HANDLERS
    ///
    /// active (read, write): whether anything is shown.
    ///
    /// = SEE ALSO
    ///
    /// IPPrint
    Print {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("x, -1, CONTENTS ASCII, PRINTANNO true", 1, 1)]
    }
}

/// See [`Print::CLASS`].
pub(crate) struct Print {
    label: String,
    length: i64,
    contents: Contents,
    timestamp: bool,
    annotations: bool,
    headroom: bool,
    active: bool,
}

/// How bytes are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contents {
    #[default]
    None,
    Hex,
    Ascii,
}

impl crate::argument::FromArgument for Contents {
    const EXPECTED: &'static str = "NONE, HEX or ASCII";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        match argument.text.to_ascii_uppercase().as_str() {
            "NONE" | "FALSE" | "NO" | "0" => Ok(Self::None),
            "HEX" | "TRUE" | "YES" | "1" => Ok(Self::Hex),
            "ASCII" => Ok(Self::Ascii),
            _ => Err(format!("'{}' is not {}", argument.text, Self::EXPECTED)),
        }
    }
}

impl Contents {
    /// Adds bytes to a line: a `gap` before every group of them, and a `turn` before every
    /// `groups` groups.
    pub(crate) fn show(self, line: &mut String, bytes: &[u8], groups: usize, turn: &str) {
        let size = match self {
            Contents::None => return,
            Contents::Hex => 4,
            Contents::Ascii => 8,
        };
        for (i, group) in bytes.chunks(size).enumerate() {
            if i % groups == 0 {
                line.push_str(turn);
            } else {
                line.push(' ');
            }
            for byte in group {
                match self {
                    Contents::Hex => {
                        let _ = write!(line, "{byte:02x}");
                    }
                    _ if byte.is_ascii_graphic() || *byte == b' ' => line.push(char::from(*byte)),
                    _ => line.push('.'),
                }
            }
        }
    }
}

/// The arguments that say how many bytes are shown.
pub(crate) fn max_length(arguments: &mut Arguments<'_, '_>, default: i64) -> i64 {
    let older = ["LENGTH", "NBYTES"].map(|name| arguments.keyword::<i64>(name));
    let length = arguments.optional("MAXLENGTH");
    length.or(older[0]).or(older[1]).unwrap_or(default)
}

/// A timestamp as seconds with their fraction: microseconds, or nanoseconds if there are any.
pub(crate) fn show_time(nanoseconds: u64) -> String {
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    match rest % 1000 {
        0 => format!("{seconds}.{:06}", rest / 1000),
        _ => format!("{seconds}.{rest:09}"),
    }
}

/// The first `length` bytes, or all if it is negative.
pub(crate) fn first(bytes: &[u8], length: i64) -> &[u8] {
    &bytes[..usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len())]
}

impl Print {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[
            "LABEL",
            "MAXLENGTH",
            "LENGTH",
            "NBYTES",
            "CONTENTS",
            "TIMESTAMP",
            "PRINTANNO",
            "ACTIVE",
            "HEADROOM",
            "CPU",
        ]);
        let label = arguments.optional("LABEL").unwrap_or_default();
        let length = max_length(&mut arguments, 24);
        let contents = arguments.keyword("CONTENTS").unwrap_or(Contents::Hex);
        let timestamp = arguments.keyword("TIMESTAMP").unwrap_or(false);
        let annotations = arguments.keyword("PRINTANNO").unwrap_or(false);
        let headroom = arguments.keyword("HEADROOM").unwrap_or(false);
        let active = arguments.keyword("ACTIVE").unwrap_or(true);
        let _: Option<bool> = arguments.keyword("CPU");
        arguments.finish()?;
        Ok(Self { label, length, contents, timestamp, annotations, headroom, active })
    }

    fn line(&self, packet: &Packet) -> String {
        let mut line = self.label.clone();
        let mut gap = if line.is_empty() { "" } else { ": " };
        if self.timestamp {
            line += gap;
            line += &show_time(packet.timestamp());
            gap = ": ";
        }
        let _ = write!(line, "{gap}{:4}", packet.len());
        if self.headroom {
            let _ = write!(line, " (h{} t{})", packet.headroom(), packet.tailroom());
        }
        if self.annotations {
            line += " | ";
            for byte in packet.annotations().bytes() {
                let _ = write!(line, "{byte:02x}");
            }
        }
        let bytes = first(packet.data(), self.length);
        if self.contents != Contents::None && !bytes.is_empty() {
            // Click puts a second space in front of characters.
            line += if self.contents == Contents::Ascii { " |  " } else { " | " };
            self.contents.show(&mut line, bytes, usize::MAX, "");
        }
        line
    }
}

impl Element for Print {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if self.active {
            for packet in batch.iter() {
                cx.message(&self.line(packet));
            }
        }
    }

    fn model(&self) -> Model {
        Model::opaque("prints")
    }

    value_handler!("active", active);
}
