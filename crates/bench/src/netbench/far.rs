//! A host that is reached by SSH: this program is copied there, and its agent does what is asked for.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::agent::{Hello, Message};
use super::side::{Answer, Ask, Broken, Hear, last};

/// How a host is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// As `ssh` takes it.
    pub host: String,
    /// The configuration of `ssh`, if it is not the user's.
    pub configuration: Option<PathBuf>,
    /// The program on that host; if there is none, this one is copied there.
    pub program: Option<String>,
    /// This program.
    pub own: PathBuf,
}

/// A host whose agent runs.
pub(super) struct Far {
    host: String,
    ssh: Child,
    asks: Option<ChildStdin>,
    answers: Receiver<Result<Answer, Broken>>,
    /// Reads what `ssh` prints on its standard error.
    errors: Option<JoinHandle<String>>,
    pub(super) hello: Hello,
    /// Why it is no longer there.
    lost: Option<String>,
}

/// How long a host may take to answer.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time between looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How long an agent may take to take down what it made.
const END: Duration = Duration::from_secs(20);

/// A line of a shell that makes a file of what it reads, for this kind of machine alone, and prints its name.
fn copy() -> String {
    let machine = std::env::consts::ARCH;
    format!(
        "test \"$(uname -sm)\" = \"Linux {machine}\" || {{ echo \"it is $(uname -sm), and this program is for Linux {machine}: \
         name one that is there by --remote-program\" >&2; exit 3; }}; \
         d=$(mktemp -d /var/tmp/catena-XXXXXXXX) && cat >\"$d/catena\" && chmod 700 \"$d/catena\" && echo \"$d/catena\""
    )
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

impl Reach {
    fn ssh(&self, line: &str) -> Command {
        let mut command = Command::new("ssh");
        command.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
        command.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]);
        if let Some(file) = &self.configuration {
            command.arg("-F").arg(file);
        }
        // Whatever shell the user has there.
        command.arg("--").arg(&self.host).arg(format!("exec sh -c {}", quoted(line)));
        // Ctrl-C is for this process, which has the agent take all down.
        command.process_group(0);
        command
    }

    fn failed(&self, why: &str) -> Broken {
        Broken::Failed(format!("host {}: {why}", self.host))
    }

    /// Copies this program; its file there.
    fn copied(&self, is_stopped: &dyn Fn() -> bool) -> Result<String, Broken> {
        let own = File::open(&self.own)
            .map_err(|why| Broken::Failed(format!("{}: {why}", self.own.display())))?;
        let mut command = self.ssh(&copy());
        command.stdin(own).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut ssh = command.spawn().map_err(|why| self.failed(&absent(&why)))?;
        let (give, take) = channel();
        let (output, errors) = (read(ssh.stdout.take()), read(ssh.stderr.take()));
        std::thread::spawn(move || {
            let errors = std::thread::spawn(errors);
            let _ = give.send((output(), errors.join().unwrap_or_default()));
        });
        let (output, errors) = loop {
            match take.recv_timeout(LOOK) {
                Ok(said) => break said,
                Err(RecvTimeoutError::Disconnected) => break Default::default(),
                Err(RecvTimeoutError::Timeout) if is_stopped() => {
                    let _ = ssh.kill();
                    let _ = ssh.wait();
                    return Err(Broken::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let status = ssh.wait().map_err(|why| self.failed(&why.to_string()))?;
        let path = output.lines().last().map(str::trim).filter(|path| path.starts_with('/'));
        match (status.success(), path) {
            (true, Some(path)) => Ok(path.to_string()),
            _ => Err(self.failed(&last(&errors))),
        }
    }

    /// Starts the agent there.
    pub(super) fn connect(&self, is_stopped: &dyn Fn() -> bool, hear: Hear) -> Result<Far, Broken> {
        let line = match &self.program {
            Some(program) => format!("exec {} netbench agent", quoted(program)),
            None => format!("exec {} netbench agent --remove", quoted(&self.copied(is_stopped)?)),
        };
        let mut command = self.ssh(&line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut ssh = command.spawn().map_err(|why| self.failed(&absent(&why)))?;
        let asks = ssh.stdin.take();
        let errors = Some(std::thread::spawn(read(ssh.stderr.take())));
        let (give, answers) = channel();
        let (greet, hello) = channel();
        if let Some(output) = ssh.stdout.take() {
            std::thread::spawn(move || listen(output, &greet, &give, &hear));
        }
        let begin = Instant::now();
        let greeted = loop {
            match hello.recv_timeout(LOOK) {
                Ok(greeted) => break Ok(greeted),
                Err(RecvTimeoutError::Disconnected) => break Err(None),
                Err(RecvTimeoutError::Timeout) if is_stopped() => {
                    break Err(Some(Broken::Interrupted));
                }
                Err(RecvTimeoutError::Timeout) if begin.elapsed() > PATIENCE => {
                    break Err(Some(self.failed("its agent says nothing")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let own = Hello::own().map_err(Broken::Failed)?;
        let mut far = Far {
            host: self.host.clone(),
            ssh,
            asks,
            answers,
            errors,
            hello: own.clone(),
            lost: None,
        };
        match greeted {
            Err(None) => Err(far.lose()),
            Err(Some(why)) => Err(why),
            Ok(Greeted::Other(version, commit)) => {
                let of = |version: &str, commit: Option<&str>| match commit {
                    Some(commit) => format!("{version} ({commit})"),
                    None => version.to_string(),
                };
                let why = format!(
                    "{} there is Catena {}, and this program {}: without --remote-program, this one is copied",
                    self.program.as_deref().unwrap_or("the program"),
                    of(&version, commit.as_deref()),
                    of(&own.version, own.commit.as_deref()),
                );
                Err(self.failed(&why))
            }
            Ok(Greeted::Same(hello)) => {
                far.hello = *hello;
                Ok(far)
            }
        }
    }
}

/// Why `ssh` does not start.
fn absent(why: &std::io::Error) -> String {
    match why.kind() {
        std::io::ErrorKind::NotFound => {
            "there is no program 'ssh': install Debian's package openssh-client".into()
        }
        _ => format!("ssh: {why}"),
    }
}

/// Reads all that comes.
fn read(from: Option<impl Read + Send + 'static>) -> impl FnOnce() -> String + Send + 'static {
    move || {
        let mut bytes = Vec::new();
        from.into_iter().for_each(|mut from| _ = from.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Who said hello.
enum Greeted {
    Same(Box<Hello>),
    /// A program of another version: which, and the commit that it was built from.
    Other(String, Option<String>),
}

/// The version of an agent, whatever else it says.
#[derive(Deserialize)]
struct Versioned {
    hello: Version,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    commit: Option<String>,
}

/// Hears an agent to its end.
fn listen(
    from: impl Read,
    greet: &std::sync::mpsc::Sender<Greeted>,
    give: &std::sync::mpsc::Sender<Result<Answer, Broken>>,
    hear: &Hear,
) {
    let own = (env!("CARGO_PKG_VERSION"), option_env!("CATENA_COMMIT"));
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        if let Ok(Versioned { hello: Version { version, commit } }) = serde_json::from_str(&line)
            && (version.as_str(), commit.as_deref()) != own
        {
            let _ = greet.send(Greeted::Other(version, commit));
            return;
        }
        // Shells may print what they like before.
        match serde_json::from_str(&line) {
            Ok(Message::Hello(hello)) => _ = greet.send(Greeted::Same(hello)),
            Ok(Message::Said(port, said)) => hear(port, said),
            Ok(Message::Answer(answer)) => _ = give.send(answer),
            Err(_) => {}
        }
    }
}

impl Far {
    /// Whether its agent is there no more.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// That the connection ended: why, as far as `ssh` says.
    fn lose(&mut self) -> Broken {
        drop(self.asks.take());
        let _ = self.ssh.kill();
        let status = self.ssh.wait().map_or_else(|why| why.to_string(), |of| of.to_string());
        let said = self.errors.take().and_then(|of| of.join().ok()).unwrap_or_default();
        let why = format!("host {}: the connection ended ({status}): {}", self.host, last(&said));
        self.lost = Some(why.clone());
        Broken::Failed(why)
    }

    /// Asks, and waits for the answer.
    pub(super) fn ask(
        &mut self,
        ask: &Ask,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Answer, Broken> {
        if let Some(why) = &self.lost {
            return Err(Broken::Failed(why.clone()));
        }
        let line = serde_json::to_string(ask).map_err(|why| Broken::Failed(why.to_string()))?;
        let sent = self.asks.as_mut().map(|asks| asks.write_all((line + "\n").as_bytes()));
        if !matches!(sent, Some(Ok(()))) {
            return Err(self.lose());
        }
        let begin = Instant::now();
        loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(Broken::Failed(why))) => {
                    return Err(Broken::Failed(format!("host {}: {why}", self.host)));
                }
                Ok(Err(Broken::Interrupted)) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.lose());
                }
                // It has no answer for what is asked next.
                Err(RecvTimeoutError::Timeout) if is_stopped() => {
                    self.lose();
                    return Err(Broken::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if begin.elapsed() > PATIENCE => {
                    return Err(self.lose());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // The agent ends when nobody asks any more.
        drop(self.asks.take());
        let begin = Instant::now();
        while begin.elapsed() < END
            && !matches!(self.answers.recv_timeout(LOOK), Err(RecvTimeoutError::Disconnected))
        {
        }
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}
