//! What the program writes to: terminals with their colours, and pipes.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether to write colours to a stream: on terminals, unless `NO_COLOR` is set, and elsewhere if
/// `CLICOLOR_FORCE` is.
pub(crate) fn colours(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty() && v != "0");
    if set("NO_COLOR") {
        return false;
    }
    set("CLICOLOR_FORCE")
        || stream.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether the standard output could not take what was printed.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Writes to the standard output. A reader that has gone away wants no more; other failures are told
/// once.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && error.kind() != ErrorKind::BrokenPipe
        && !FAILED.swap(true, Ordering::Relaxed)
    {
        print_error(&format!("error: standard output: {error}\n"));
    }
}

/// Whether something that was printed is lost.
pub(crate) fn failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Writes to the standard error.
pub(crate) fn print_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// As much of a text without colours as a terminal of this size shows at once, the cursor's line
/// at its end included; the last line tells how many are missing.
pub(crate) fn fit(text: &str, columns: usize, rows: usize) -> String {
    let (lines, room) = (text.lines().count(), rows.saturating_sub(1).max(1));
    let shown = if lines > room { room.saturating_sub(1) } else { lines };
    let mut out = String::new();
    for line in text.lines().take(shown) {
        out.extend(line.chars().take(columns));
        out.push('\n');
    }
    if lines > shown {
        let missing = format!("  … {} more", count(lines - shown, "line"));
        out.extend(missing.chars().take(columns));
        out.push('\n');
    }
    out
}

/// Columns and rows of the terminal that the standard output is, if it is one that tells.
pub(crate) fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// Text with colours, if there are any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn blue(self, text: &str) -> String {
        self.with("34", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.with("36", text)
    }
}

/// `1 error`, `2 errors`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn what_does_not_fit_is_cut_and_told() {
        assert_eq!(fit("abc\nde\n", 80, 24), "abc\nde\n");
        assert_eq!(fit("µbc\nde\n", 2, 3), "µb\nde\n");
        assert_eq!(fit("a\nb\nc\nd\n", 80, 4), "a\nb\n  … 2 lines more\n");
        assert_eq!(fit("a\nb\n", 80, 1), "  … 2 lines more\n");
        assert_eq!(fit("", 0, 0), "");
    }
}
