//! `click`: Click's own command line, for scripts and drivers that know it.

use std::io::stderr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use dataplane::clock::RealClock;
use dataplane::control_socket::{ControlServer, SocketFiles};
use dataplane::io::Bindings;
use dataplane::{ProgramUse, Rest, Router, guarded_path};
use elements::configure::WorkerShare;
use elements::device::ControlSocketRequest;
use engine::Disk;
use engine::session::{self, Path, Setup};
use engine::supervision::Handle;
use ir::{Severity, Sources, has_errors};
use view::diagnostics;

use crate::log::{self, Log};
use crate::signals::Signals;
use crate::terminal::{colours, print, print_error};
use crate::{drive, variables};

const USAGE: &str = "\
Runs a Click configuration until it is told to stop, as the program 'click' does.

Usage: click [OPTION]... [ROUTERFILE] [VAR=VALUE]...

  -f, --file FILE               Read the configuration from FILE; '-' is the standard input.
  -e, --expression EXPR         Take EXPR as the configuration.
  -h, --handler ELEMENT.H       Read handler H after the run and print it; ELEMENT may be a
                                pattern such as 'c*', or a class.
  -x, --exit-handler ELEMENT.H  Take the value of handler H for the exit status.
  -o, --output FILE             Write the configuration without compounds to FILE.
  -q, --quit                    Do not run.
  -t, --time                    Print how long the run took.
  -w, --no-warnings             Print no warnings.
      --warnings                Print warnings.
  -j, --threads N               Accepted; one worker runs.
  -a, --affinity[=N]            Accepted, without effect.
  -p, --port PORT               Offer the ControlSocket protocol on a TCP port of this host.
  -u, --unix-socket FILE        Offer the ControlSocket protocol on a UNIX socket.
  -C, --clickpath PATH          Accepted; files are looked for beside the one that names them.
      --help                    Print this and exit.
  -v, --version                 Print the version and exit.

Not offered yet: a control socket by file descriptor (--socket), hot configuration (-R), simulated time.
";

/// What the command line says.
#[derive(Debug, Default)]
struct Options {
    file: Option<String>,
    expression: Option<String>,
    handlers: Vec<String>,
    exit_handler: Option<String>,
    output: Option<String>,
    variables: Vec<(String, String)>,
    sockets: Vec<ControlSocketRequest>,
    quit: bool,
    time: bool,
    no_warnings: bool,
    threads: usize,
    /// Text to print instead of running.
    only_print: Option<String>,
}

/// Options that take a value: short, long.
const VALUED: [(char, &str); 10] = [
    ('f', "file"),
    ('e', "expression"),
    ('h', "handler"),
    ('x', "exit-handler"),
    ('o', "output"),
    ('j', "threads"),
    ('C', "clickpath"),
    ('p', "port"),
    ('u', "unix-socket"),
    ('\0', "socket"),
];

/// Options that take none.
const FLAGS: [(char, &str); 10] = [
    ('q', "quit"),
    ('t', "time"),
    ('w', "no-warnings"),
    ('\0', "warnings"),
    ('a', "affinity"),
    ('a', "cpu"),
    ('R', "allow-reconfigure"),
    ('\0', "help"),
    ('v', "version"),
    ('\0', "simtime"),
];

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        let mut plain = false;
        while let Some(argument) = rest.next() {
            let mut value_of = |name: &str| {
                rest.next().cloned().ok_or_else(|| format!("option '{name}' takes a value"))
            };
            if let Some(long) = argument.strip_prefix("--").filter(|_| !plain) {
                if long.is_empty() {
                    plain = true;
                    continue;
                }
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_string())),
                    None => (long, None),
                };
                if VALUED.iter().any(|(_, l)| *l == name) {
                    let value = value.map_or_else(|| value_of(argument), Ok)?;
                    options.set(name, value)?;
                } else if FLAGS.iter().any(|(_, l)| *l == name) {
                    options.flag(name)?;
                } else {
                    return Err(format!("there is no option '--{name}'"));
                }
            } else if argument.len() > 1 && argument.starts_with('-') && !plain {
                for (i, letter) in argument[1..].char_indices() {
                    if let Some((_, name)) = VALUED.iter().find(|(s, _)| *s == letter) {
                        let own = &argument[1 + i + letter.len_utf8()..];
                        let value = match own.is_empty() {
                            true => value_of(&format!("-{letter}"))?,
                            false => own.to_string(),
                        };
                        options.set(name, value)?;
                        break;
                    }
                    match FLAGS.iter().find(|(s, _)| *s == letter && letter != '\0') {
                        Some((_, name)) => options.flag(name)?,
                        None => return Err(format!("there is no option '-{letter}'")),
                    }
                }
            } else if let Some(variable) = variables::assignment(argument) {
                if options.variables.iter().any(|(name, _)| *name == variable.0) {
                    return Err(format!("parameter '{}' is defined twice", variable.0));
                }
                options.variables.push(variable);
            } else {
                options.set("file", argument.clone())?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let once = |slot: &mut Option<String>, what: &str, value: String| match slot.replace(value)
        {
            None => Ok(()),
            Some(_) => Err(format!("{what} is given twice")),
        };
        match name {
            "file" | "expression" if self.file.is_some() || self.expression.is_some() => {
                Err("the configuration is given twice".to_string())
            }
            "file" => once(&mut self.file, "", value),
            "expression" => once(&mut self.expression, "", value),
            "exit-handler" => once(&mut self.exit_handler, "the exit handler", value),
            "output" => once(&mut self.output, "the output file", value),
            "handler" => {
                self.handlers.push(value);
                Ok(())
            }
            "threads" => {
                let threads = value.parse();
                self.threads = threads.map_err(|_| format!("'{value}' is no number of threads"))?;
                Ok(())
            }
            "clickpath" => Ok(()),
            "port" => {
                self.sockets.push(drive::tcp(&value)?);
                Ok(())
            }
            "unix-socket" => {
                self.sockets.push(drive::unix(std::path::Path::new(&value)));
                Ok(())
            }
            _ => Err(format!("--{name} is not offered yet")),
        }
    }

    fn flag(&mut self, name: &str) -> Result<(), String> {
        match name {
            "quit" => self.quit = true,
            "time" => self.time = true,
            "no-warnings" => self.no_warnings = true,
            "warnings" => self.no_warnings = false,
            "help" => self.only_print = Some(USAGE.to_string()),
            "version" => {
                self.only_print = Some(format!("click (Catena) {}\n", env!("CARGO_PKG_VERSION")));
            }
            "allow-reconfigure" | "simtime" => return Err(format!("--{name} is not offered yet")),
            _ => {}
        }
        Ok(())
    }
}

/// Runs the command with the arguments behind the program's name.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(why) => {
            print_error(&format!("click: {why}\nTry 'click --help' for more information.\n"));
            return ExitCode::FAILURE;
        }
    };
    if let Some(text) = &options.only_print {
        print(text);
        return ExitCode::SUCCESS;
    }
    run(&options).unwrap_or_else(|why| {
        print_error(&format!("click: {why}\n"));
        ExitCode::FAILURE
    })
}

fn run(options: &Options) -> Result<ExitCode, String> {
    let mut sources = Sources::new();
    let mut files = Disk::default();
    let file = match &options.expression {
        Some(text) => sources.add("config", text.as_str()),
        None => files.configuration(&mut sources, options.file.as_deref().unwrap_or("-"))?,
    };
    if options.threads > 1 && !options.no_warnings {
        print_error("click: warning: one worker runs, -j is ignored\n");
    }
    let mut found = Vec::new();
    let mut bindings = Bindings { direct: true, ..Bindings::default() };
    let interfaces = bindings.interfaces.clone();
    let socket_files = SocketFiles::default();
    let left = socket_files.clone();
    let handle = Handle::default();
    let signals = Signals::catch(handle.clone(), true, move || {
        interfaces.leave();
        left.remove_all();
    });
    let setup = Setup {
        part: WorkerShare::default(),
        files: &mut files,
        devices: &mut bindings,
        clock: Box::new(RealClock::new()),
        listener: Log::Text.listener()(),
        seed: 0,
        path: Path::Synthesised,
        background: None,
        program_use: ProgramUse::Always,
        cut: None,
        unproven: false,
    };
    let variables = options.variables.clone();
    let started = session::start(&mut sources, file, variables, setup, &mut found);
    if options.no_warnings {
        found.retain(|d| d.severity == Severity::Error);
    }
    print_error(&diagnostics::render(&found, &sources, colours(&stderr())));
    let Some((chain, mut router)) = started.filter(|_| !has_errors(&found)) else {
        return Ok(ExitCode::FAILURE);
    };
    signals.started();
    let lines = bindings.take_lines();
    lines.iter().for_each(|line| print_error(&format!("{line}\n")));
    if !lines.is_empty() {
        // There are interfaces.
        router.core().rng.seed(session::system_seed());
        router.programs().set_use(ProgramUse::WhereFaster);
        Log::Text.write_aside();
    }
    let flat = compiler::flatten(&chain);
    let mut failed = false;
    match options.output.as_deref() {
        None => {}
        Some("-") => print(&flat),
        Some(path) => {
            if let Err(why) = guarded_path::write(std::path::Path::new(path), &flat) {
                print_error(&format!("click: {path}: {why}\n"));
                failed = true;
            }
        }
    }
    router.set_global("config", sources.text(file).to_string());
    router.set_global("flatconfig", flat);
    let start = Instant::now();
    if chain.graph.nodes.is_empty() {
        if !options.quit && !options.no_warnings {
            print_error("click: warning: configuration has no elements, exiting\n");
        }
    } else if !options.quit {
        let mut server =
            ControlServer::open(router.control_sockets(), options.sockets.clone(), &socket_files)?;
        run_until_stopped(&mut router, &mut server, &handle);
        router.finish();
        log::flush();
    }
    if options.time {
        print(&format!("{:.3} s\n", Duration::as_secs_f64(&start.elapsed())));
    }
    failed |= !read_handlers(&mut router, &options.handlers);
    if let Some(handler) = &options.exit_handler {
        let value = router.read_handler(handler).map_err(|why| format!("-x {handler}: {why}"))?;
        let value = value.trim();
        let status = match (value.parse::<i32>(), value) {
            (Ok(status), _) => status,
            (_, "true" | "yes") => 0,
            (_, "false" | "no") => 1,
            _ => return Err(format!("-x {handler}: '{value}' is not a number")),
        };
        return Ok(ExitCode::from(status as u8));
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs until an element or a signal says stop.
fn run_until_stopped(router: &mut Router, server: &mut ControlServer, handle: &Handle) {
    let mut stopped = false;
    while !stopped {
        drive::drive(router, server, |_, rest| {
            stopped = rest == Rest::Stopped || handle.is_stopped() || handle.take_reload();
            stopped
        });
        if !stopped {
            router.doze();
        }
    }
}

/// Prints the values of handlers; whether all could be read.
fn read_handlers(router: &mut Router, handlers: &[String]) -> bool {
    let mut well = true;
    for asked in handlers {
        let names = expand(router, asked);
        let named = handlers.len() > 1 || names.len() > 1;
        for name in names {
            match router.read_handler(&name) {
                Ok(mut value) => {
                    if !value.is_empty() && !value.ends_with('\n') {
                        value.push('\n');
                    }
                    print(&if named { format!("{name}:\n{value}\n") } else { value });
                }
                Err(why) => {
                    print_error(&format!("click: {why}\n"));
                    well = false;
                }
            }
        }
    }
    well
}

/// The handlers that `PATTERN.H` or `CLASS.H` means; what is neither stays as it is.
fn expand(router: &mut Router, asked: &str) -> Vec<String> {
    let Some((element, handler)) = asked.split_once('.') else { return vec![asked.to_string()] };
    if router.element(element).is_some() {
        return vec![asked.to_string()];
    }
    let is_pattern = element.contains(['*', '?']);
    let meant = router.report().filter(|(name, class, ..)| match is_pattern {
        true => matches(element.as_bytes(), name.as_bytes()),
        false => *class == element,
    });
    let names: Vec<String> = meant.map(|(name, ..)| format!("{name}.{handler}")).collect();
    let readable: Vec<String> =
        names.into_iter().filter(|name| router.has_handler(name, false)).collect();
    if readable.is_empty() { vec![asked.to_string()] } else { readable }
}

/// Whether a name fits a pattern: `*` is any text, `?` any character.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// Whether the program was started under the name `click`.
pub(crate) fn is_meant(program: &std::ffi::OsStr) -> bool {
    PathBuf::from(program).file_stem().is_some_and(|name| name == "click")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, fits) in [
            ("c*", "c1", true),
            ("*1", "c1", true),
            ("c?", "c", false),
            ("a*b*c", "axbyc", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), fits, "{pattern} {name}");
        }
    }
}
