//! Logs on standard error: text for people, or JSON for whatever collects logs.

mod writer;

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use dataplane::Listener;
use serde_json::json;
use view::paint::shown;

use crate::terminal::for_output;
use writer::{To, Writer};

/// Writes lines from a thread of its own, once a run asked for it. It is global, as the streams are.
static WRITER: OnceLock<Arc<Writer>> = OnceLock::new();

/// Whether the last line of the terminal shows progress.
static IN_PROGRESS: AtomicBool = AtomicBool::new(false);
/// Goes back to the beginning of the line and wipes it.
const WIPE: &str = "\r\x1b[K";

/// Writes a text now, or has it written after what was logged before.
fn write(to: To, text: &str) {
    wipe_progress();
    match to {
        To::Output => tell(to, &for_output(text)),
        To::Error => tell(to, &shown(text)),
    }
}

fn tell(to: To, text: &str) {
    match WRITER.get() {
        Some(writer) => writer.tell(to, text),
        None => to.write(text),
    }
}

/// Shows progress on a line of the terminal that the next one replaces.
pub(crate) fn progress(line: &str) {
    IN_PROGRESS.store(true, Ordering::Relaxed);
    let text = format!("{WIPE}{line}");
    match WRITER.get() {
        Some(writer) => writer.offer(To::Error, &text),
        None => To::Error.write(&text),
    }
}

/// Shows the steps of a command while they are taken, where the standard error is a terminal.
pub(crate) fn steps(command: &str) -> impl FnMut(&str) {
    let shows = std::io::stderr().is_terminal();
    move |step| {
        if shows {
            progress(&format!("{command}: {step} …"));
        }
    }
}

/// Wipes the line that shows progress.
pub(crate) fn wipe_progress() {
    if IN_PROGRESS.load(Ordering::Relaxed) && IN_PROGRESS.swap(false, Ordering::Relaxed) {
        tell(To::Error, WIPE);
    }
}

/// Waits until all that was logged is written.
pub(crate) fn flush() {
    if let Some(writer) = WRITER.get() {
        writer.flush();
    }
}

/// The format of logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Log {
    /// Text for people
    #[default]
    Text,
    /// A JSON object a line: time (seconds since 1970), level, message, and the element if one says it
    Json,
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Severity.
#[derive(Clone, Copy)]
enum Level {
    Info,
    Warning,
    Error,
}

impl Log {
    fn line(self, level: Level, element: Option<&str>, text: &str, time: f64) -> String {
        match (self, level, element) {
            (Self::Text, Level::Error, Some(element)) => format!("error: {element}: {text}\n"),
            (Self::Text, Level::Error, None) => format!("error: {text}\n"),
            (Self::Text, ..) => format!("{text}\n"),
            (Self::Json, ..) => {
                let level = match level {
                    Level::Info => "info",
                    Level::Warning => "warning",
                    Level::Error => "error",
                };
                let mut line = json!({ "time": time, "level": level });
                element.into_iter().for_each(|element| line["element"] = element.into());
                line["message"] = text.into();
                format!("{line}\n")
            }
        }
    }

    fn tell(self, level: Level, element: Option<&str>, text: &str) {
        let line = self.line(level, element, text, now());
        write(To::Error, &line);
    }

    /// From now on nobody waits until a line is written, as workers of a live chain must
    /// not. What there is no room for is counted, and not written.
    pub(crate) fn write_aside(self) {
        let missing: fn(u64) -> String = match self {
            Self::Text => |count| Self::Text.missing(count),
            Self::Json => |count| Self::Json.missing(count),
        };
        // Without a thread for it, it is written at once.
        if let Ok(writer) = Writer::start(missing, To::write) {
            let _ = WRITER.set(writer);
        }
    }

    fn missing(self, count: u64) -> String {
        let text =
            format!("{count} messages are missing here: they came faster than they were read");
        self.line(Level::Warning, None, &text, now())
    }

    /// What happened.
    pub(crate) fn info(self, text: &str) {
        self.tell(Level::Info, None, text);
    }

    /// What may not be as it was meant, if there is anything.
    pub(crate) fn warn(self, text: &str) {
        let text = text.trim_end();
        if !text.is_empty() {
            self.tell(Level::Warning, None, text);
        }
    }

    /// What went wrong.
    pub(crate) fn error(self, text: &str) {
        self.tell(Level::Error, None, text.trim_end());
    }

    /// What makes a listener that logs in this format.
    pub(crate) fn listener(self) -> fn() -> Box<dyn Listener> {
        match self {
            Self::Text => || Box::new(LogListener(Self::Text)),
            Self::Json => || Box::new(LogListener(Self::Json)),
        }
    }
}

/// Logs what elements report.
struct LogListener(Log);

impl Listener for LogListener {
    fn message(&mut self, text: &str) {
        self.0.info(text);
    }

    fn output(&mut self, text: &str) {
        write(To::Output, text);
    }

    fn error(&mut self, element: &str, text: &str) {
        self.0.tell(Level::Error, Some(element), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_for_people_or_for_programs() {
        let of = |log: Log, level, element| log.line(level, element, "a \"b\"", 1.5);
        assert_eq!(of(Log::Text, Level::Info, None), "a \"b\"\n");
        assert_eq!(of(Log::Text, Level::Error, Some("x")), "error: x: a \"b\"\n");
        let json = of(Log::Json, Level::Error, Some("x"));
        let expected = r#"{"time":1.5,"level":"error","element":"x","message":"a \"b\""}"#;
        assert_eq!(json.trim_end(), expected);
        let json = of(Log::Json, Level::Warning, None);
        assert_eq!(json, "{\"time\":1.5,\"level\":\"warning\",\"message\":\"a \\\"b\\\"\"}\n");
    }
}
