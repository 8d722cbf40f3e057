//! What the program writes to: terminals, and pipes.
//!
//! Names, handlers' values and configurations are other people's text. None of it reaches a terminal, or the
//! standard error, but through [`shown`].

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use view::paint::shown;

/// Whether to write colours to a stream: on terminals, unless `NO_COLOR` is set, and elsewhere if
/// `CLICOLOR_FORCE` is.
pub(crate) fn colours(stream: &impl IsTerminal) -> bool {
    if is_set("NO_COLOR") {
        return false;
    }
    is_forced()
        || stream.is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Whether everything is written as for a terminal.
fn is_forced() -> bool {
    is_set("CLICOLOR_FORCE")
}

/// Whether the standard output could not take what was printed.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Writes to the standard output: to a terminal what it may get, elsewhere all as it is.
pub(crate) fn print(text: &str) {
    print_as_it_is(&for_output(text));
}

/// A text as the standard output gets it.
pub(crate) fn for_output(text: &str) -> Cow<'_, str> {
    match is_forced() || std::io::stdout().is_terminal() {
        true => shown(text),
        false => Cow::Borrowed(text),
    }
}

/// Writes to the standard output what may go there. Whether it was written: a reader that has gone
/// away wants no more; other failures are reported once.
pub(crate) fn print_as_it_is(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = &written
        && error.kind() != ErrorKind::BrokenPipe
        && !FAILED.swap(true, Ordering::Relaxed)
    {
        print_error(&format!("error: standard output: {error}\n"));
    }
    written.is_ok()
}

/// Whether something that was printed is lost.
pub(crate) fn failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Writes to the standard error what terminals may get: what is logged is looked at on one sooner or later.
pub(crate) fn print_error(text: &str) {
    print_error_as_it_is(&shown(text));
}

/// Writes to the standard error what may go there.
pub(crate) fn print_error_as_it_is(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Columns and rows of the terminal that the standard output is, if it is one that reports them.
pub(crate) fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}
