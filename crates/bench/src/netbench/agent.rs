//! The agent: does on its host what netbench on another one asks for, a line of JSON each, and takes all down when nobody
//! asks any more.

use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use dataplane::worker;
use serde::{Deserialize, Serialize};

use super::clean;
use super::side::{Answer, Ask, Broken, Said, Side};
use crate::machine::{Environment, Machine};

/// What an agent says, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    /// Who it is: the first line.
    Hello(Box<Hello>),
    /// What the application at a port says.
    Said(usize, Said),
    /// The answer to a question, in their order.
    Answer(Result<Answer, Broken>),
}

/// An agent and its host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The version of the program.
    pub(super) version: String,
    /// The commit that it was built from.
    pub(super) commit: Option<String>,
    /// The CPUs that may be used there.
    pub(super) cpus: Vec<usize>,
    pub(super) machine: Environment,
}

impl Hello {
    /// That of this process.
    pub(super) fn own() -> Result<Self, String> {
        let machine = Machine::unbound()?.environment();
        let (version, commit) = (machine.version.clone(), machine.commit.clone());
        Ok(Self { version, commit, cpus: worker::cpus(), machine })
    }
}

/// An agent ends when it has not been asked anything for so long: the connection is cut.
const SILENCE: Duration = Duration::from_secs(60);
/// The time between looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Serves until the input ends, or `is_stopped`. `print` gets lines for who asks; `program` is this program, for applications.
///
/// # Errors
/// If what an earlier run left cannot be taken down.
pub fn serve(
    program: PathBuf,
    input: impl BufRead + Send + 'static,
    print: Arc<dyn Fn(&str) + Send + Sync>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), String> {
    clean().map_err(|why| why.to_string())?;
    let say = {
        let print = Arc::clone(&print);
        move |message: &Message| {
            // Nothing here has a shape that JSON does not have.
            serde_json::to_string(message).into_iter().for_each(|line| print(&(line + "\n")));
        }
    };
    let say = Arc::new(say);
    say(&Message::Hello(Box::new(Hello::own()?)));
    let is_over = Arc::new(AtomicBool::new(false));
    let (give, take) = channel();
    let over = Arc::clone(&is_over);
    std::thread::spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            if give.send(line).is_err() {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    let go_on = || !is_over.load(Ordering::Relaxed) && !is_stopped();
    let heard = Arc::clone(&say);
    let hear = Arc::new(move |port, said| heard(&Message::Said(port, said)));
    let mut side = Side::new(program, &go_on, hear);
    let mut last = Instant::now();
    loop {
        match take.recv_timeout(LOOK) {
            Ok(line) => {
                let answer = match serde_json::from_str::<Ask>(&line) {
                    Ok(ask) => side.ask(ask),
                    Err(why) => Err(Broken::Failed(format!("not understood: {why}: {line}"))),
                };
                say(&Message::Answer(answer));
                last = Instant::now();
            }
            Err(RecvTimeoutError::Timeout) if go_on() && last.elapsed() < SILENCE => {}
            Err(_) => return Ok(()),
        }
    }
}
