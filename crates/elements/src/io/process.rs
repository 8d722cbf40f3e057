//! Process: a program between two interfaces of a chain.

use std::any::Any;
use std::rc::Rc;

use click::config::Argument;
use ir::{Diagnostic, Model, Span};

use crate::configure::{Arguments, Configure, Failed, Initialize};
use crate::element::{Element, Handler, HandlerContext};
use crate::process::{self, Api, Command, INTERFACES, PRIVILEGES, ProcessSpec};

element! {
    /// Process(KEYWORDS) -- runs a program that packets of the chain go through
    ///
    /// Starts a program of the host, or an image, in a process and a network namespace of its own, with two interfaces:
    /// `eth0` and `eth1`. FromDevice and ToDevice of the same compound, or of the whole chain, have their other ends: for an
    /// element `p`, `ToDevice(p.eth0)` sends what the program receives from `eth0`, and `FromDevice(p.eth1)` receives what it
    /// sends by `eth1`. ThirdParty has both.
    ///
    /// The program is started before the chain runs, and again whenever it ends; one that ends again and again is given
    /// up. It is ended with the chain. A chain that replaces this one goes on with the same process if its element has the
    /// same name and arguments. `catena host ps` lists it, `catena host logs` shows what it prints.
    ///
    /// It runs as a user of its own, without privileges but those that PRIVILEGES names. `catena run` starts programs,
    /// as root, without --user and --seccomp.
    ///
    /// = KEYWORDS
    ///
    /// PROGRAM (text): the program's path, from the configuration's folder, and its arguments. It has to stay: a script that
    /// makes rules ends with `exec sleep infinity`.
    /// IMAGE (text): instead of a program, an OCI layout (a tar file or a folder), and arguments in the place of its own.
    /// RUNTIME (word, default runc): the container runtime that starts the image: runc, crun or podman.
    /// API (word, default veth): veth, a program between two interfaces; or nf, one that is made with the NF runtime in C, Rust, Go
    /// or Python: packets come to it as from `eth0`, in shared memory, and leave it by `eth1`.
    /// CONFIG (text), WRITES (none, payload or all, the default): the configuration of an NF of the runtime, and whether it may
    /// write to packets.
    /// ETH0, ETH1 (addresses): of the interfaces, such as `ETH0 10.1.0.1/24 2001:db8::1/64`.
    /// ROUTES (routes): such as `ROUTES default via 10.2.0.254 10.9.0.0/16 dev eth0`.
    /// FORWARD (bool, default false): whether the kernel forwards between the interfaces.
    /// PRIVILEGES (words): net-admin (addresses, routes, rules, bridges), net-raw (packet sockets), net-bind (ports below
    /// 1024), in its namespace.
    /// MEMORY (number, default 536870912): bytes of memory at most.
    /// THREADS (number, default 64; 1 with API nf): threads and processes at most.
    /// CORE (number): the core that it runs on; without it, the last of the host.
    ///
    /// = HANDLERS
    ///
    /// device (read): what the names of its devices begin with, in `catena top` and messages.
    ///
    /// = SEE ALSO
    ///
    /// ThirdParty, FromDevice, ToDevice
    Process { category: Io, ports: "0/0", processing: "a/a", phase: Early, samples: [] }
}

/// See [`Process::CLASS`].
pub(crate) struct Process {
    spec: ProcessSpec,
    span: Span,
    /// Kept as long as the program is to run.
    running: Option<Box<dyn Any>>,
}

/// What the names of a program's devices begin with.
pub(crate) struct ProcessDevices {
    name: String,
    /// Whether packets only go from its first interface to its second.
    is_one_way: bool,
}

/// The device that an element names as `PROCESS.eth0` or `PROCESS.eth1`, to receive from it or to send to it.
pub(super) fn device(
    argument: &Argument,
    name: &str,
    receives: bool,
    arguments: &mut Arguments<'_, '_>,
) -> Option<String> {
    let (element, interface) = name.rsplit_once('.')?;
    let cx = arguments.cx();
    let devices = cx.shared::<ProcessDevices>(&cx.resolve(element)?)?;
    let side = INTERFACES.iter().position(|known| *known == interface)?;
    if devices.is_one_way && (side == 0) == receives {
        let why =
            "packets go through an NF of the runtime in one direction: to eth0, and from eth1";
        arguments.error(argument, why);
    }
    Some(format!("{}.{interface}", devices.name))
}

fn words(argument: &Argument, arguments: &mut Arguments<'_, '_>) -> Vec<String> {
    let text: Option<String> = arguments.parse("", argument);
    text.unwrap_or_default().split_whitespace().map(str::to_string).collect()
}

/// The words of a keyword, if it is there.
fn listed(
    arguments: &mut Arguments<'_, '_>,
    name: &'static str,
) -> Option<(Argument, Vec<String>)> {
    let argument = arguments.keyword_argument(name)?;
    let words = words(&argument, arguments);
    if words.is_empty() {
        arguments.error(&argument, format!("{name} is empty"));
    }
    Some((argument, words))
}

/// A path and arguments; the path as seen from where the chain runs.
fn located(
    arguments: &mut Arguments<'_, '_>,
    name: &'static str,
) -> Option<(Argument, Vec<String>)> {
    let (argument, mut words) = listed(arguments, name)?;
    if let Some(path) = words.first_mut() {
        *path = arguments.cx().path(&argument, path);
    }
    Some((argument, words))
}

fn addresses(arguments: &mut Arguments<'_, '_>, name: &'static str) -> Vec<String> {
    let Some((argument, words)) = listed(arguments, name) else { return Vec::new() };
    let mut all = Vec::new();
    for word in words {
        match process::prefix(&word) {
            Some(address) => all.push(address),
            None => {
                let why = format!("'{word}' is no address with its prefix, such as 192.0.2.1/24");
                arguments.error(&argument, why);
            }
        }
    }
    all
}

fn routes(arguments: &mut Arguments<'_, '_>) -> Vec<String> {
    let Some((argument, words)) = listed(arguments, "ROUTES") else { return Vec::new() };
    let mut all = Vec::new();
    for three in words.chunks(3) {
        let text = three.join(" ");
        match process::route(&text) {
            Some(route) => all.push(route),
            None => {
                let why = format!(
                    "'{text}' is no route: 'default via 192.0.2.1', '10.0.0.0/8 via 192.0.2.1' or '10.0.0.0/8 dev eth1'"
                );
                arguments.error(&argument, why);
            }
        }
    }
    all
}

fn privileges(arguments: &mut Arguments<'_, '_>) -> Vec<String> {
    let Some((argument, words)) = listed(arguments, "PRIVILEGES") else { return Vec::new() };
    for word in words.iter().filter(|word| !PRIVILEGES.contains(&word.as_str())) {
        let why = format!("'{word}' is no privilege: {}", PRIVILEGES.join(", "));
        arguments.error(&argument, why);
    }
    words
}

fn command(arguments: &mut Arguments<'_, '_>) -> Command {
    let program = located(arguments, "PROGRAM");
    let image = located(arguments, "IMAGE");
    let runtime = arguments.keyword_argument("RUNTIME");
    let named = runtime.as_ref().and_then(|of| arguments.parse("RUNTIME", of));
    match (program, image, runtime) {
        (Some((_, program)), None, None) => Command::Program(program),
        (None, Some((_, image)), _) => Command::Image(image, named),
        (Some(_), None, Some(runtime)) => {
            arguments.error(&runtime, "RUNTIME is of images");
            Command::Program(Vec::new())
        }
        (Some((both, _)), Some(_), _) => {
            arguments.error(&both, "PROGRAM and IMAGE are both there: one is what runs");
            Command::Program(Vec::new())
        }
        (None, None, _) => {
            let span = arguments.cx().span();
            let error =
                Diagnostic::error("missing-argument", "a process without PROGRAM and IMAGE");
            let help = "PROGRAM names a program of this host, IMAGE an OCI layout";
            arguments.report(error.label(span, "").help(help));
            Command::Program(Vec::new())
        }
    }
}

/// How packets reach the program, by keywords that other programs do not have.
fn api(arguments: &mut Arguments<'_, '_>) -> Api {
    let named = arguments.keyword_argument("API");
    let config = arguments.keyword_argument("CONFIG");
    let writes = arguments.keyword_argument("WRITES");
    let is_runtime = match named.as_ref().map(|of| of.text.as_str()) {
        None | Some("veth") => false,
        Some("nf") => true,
        Some(other) => {
            let why = format!("'{other}' is no interface between programs and packets: veth, nf");
            named.iter().for_each(|of| arguments.error(of, why.clone()));
            false
        }
    };
    if is_runtime {
        for name in OF_INTERFACES {
            if let Some(of) = arguments.keyword_argument(name) {
                arguments.error(&of, format!("{name} is of programs between interfaces: API veth"));
            }
        }
        let writes = writes.is_none_or(|of| match of.text.as_str() {
            "none" => false,
            "payload" | "all" => true,
            other => {
                arguments
                    .error(&of, format!("'{other}' is not what is written: none, payload, all"));
                true
            }
        });
        let config = config.and_then(|of| arguments.parse("CONFIG", &of)).unwrap_or_default();
        return Api::Runtime { config, writes };
    }
    for of in config.iter().chain(&writes) {
        arguments.error(of, "CONFIG and WRITES are of NFs of the runtime: API nf");
    }
    Api::Interfaces {
        addresses: [addresses(arguments, "ETH0"), addresses(arguments, "ETH1")],
        routes: routes(arguments),
        forwards: arguments.keyword("FORWARD").unwrap_or(false),
        privileges: privileges(arguments),
    }
}

/// Bytes of memory that a program has at least, and threads at most.
const LEAST_MEMORY: u64 = 16 << 20;
const MOST_THREADS: u32 = 1024;

/// Keywords of programs between interfaces alone.
const OF_INTERFACES: [&str; 5] = ["ETH0", "ETH1", "ROUTES", "FORWARD", "PRIVILEGES"];

impl Process {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (element, span) = (cx.name().to_string(), cx.span());
        let mut arguments = cx.arguments(&[
            "PROGRAM",
            "IMAGE",
            "RUNTIME",
            "API",
            "ETH0",
            "ETH1",
            "ROUTES",
            "FORWARD",
            "PRIVILEGES",
            "CONFIG",
            "WRITES",
            "MEMORY",
            "THREADS",
            "CORE",
        ]);
        let spec = ProcessSpec {
            element,
            command: command(&mut arguments),
            api: api(&mut arguments),
            memory: arguments.keyword("MEMORY"),
            threads: arguments.keyword("THREADS"),
            core: arguments.keyword("CORE"),
        };
        if spec.memory.is_some_and(|memory| memory < LEAST_MEMORY) {
            arguments.report(
                Diagnostic::error("bad-argument", format!("MEMORY is at least {LEAST_MEMORY}"))
                    .label(span, ""),
            );
        }
        if spec.threads.is_some_and(|threads| !(1..=MOST_THREADS).contains(&threads)) {
            arguments.report(
                Diagnostic::error("bad-argument", format!("THREADS are 1 to {MOST_THREADS}"))
                    .label(span, ""),
            );
        }
        arguments.finish()?;
        let is_one_way = matches!(spec.api, Api::Runtime { .. });
        cx.share(Rc::new(ProcessDevices { name: spec.name(), is_one_way }));
        Ok(Self { spec, span, running: None })
    }
}

impl Element for Process {
    fn model(&self) -> Model {
        Model::default()
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        self.running = Some(cx.start(&self.spec, self.span)?);
        Ok(())
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("device")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.spec.name())
    }
}
