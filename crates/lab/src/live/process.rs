//! Programs that run beside a test or bench and end with it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, ChildStdout, Command};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long anything may take before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until a condition holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::yield_now();
    }
}

/// A program that runs until it ends or this is dropped.
pub struct Process {
    child: Child,
    /// Its standard input, if the command has it piped.
    pub input: Option<ChildStdin>,
    /// Its standard output, if the command has it piped.
    pub output: Option<BufReader<ChildStdout>>,
    /// What it writes to a piped standard error, line by line.
    errors: Receiver<String>,
    lines: Vec<String>,
    /// While this is locked, nobody reads its standard error.
    pub reading: Arc<Mutex<()>>,
}

impl Process {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let (to, errors) = channel();
        let reading = Arc::new(Mutex::new(()));
        if let Some(errors) = child.stderr.take() {
            // The program shall never wait for somebody to read, unless a test says so.
            let may_read = Arc::clone(&reading);
            std::thread::spawn(move || {
                BufReader::new(errors).lines().map_while(Result::ok).try_for_each(|line| {
                    drop(may_read.lock());
                    to.send(line + "\n")
                })
            });
        }
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, input, output, errors, lines: Vec::new(), reading }
    }

    /// Waits for a line on the standard error; `false` if there is none any more.
    fn next_line(&mut self) -> bool {
        let line = self.errors.recv();
        let is_one = line.is_ok();
        self.lines.extend(line);
        is_one
    }

    /// Waits until a line on the standard error contains a text.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        self.wait_for_lines(text, 1);
    }

    /// Waits until so many lines on the standard error contain a text.
    #[track_caller]
    pub fn wait_for_lines(&mut self, text: &str, count: usize) {
        while self.lines.iter().filter(|line| line.contains(text)).count() < count {
            assert!(self.next_line(), "it never said '{text}': {}", self.told());
        }
    }

    /// What it wrote to the standard error so far.
    pub fn told(&self) -> String {
        self.lines.concat()
    }

    /// Waits for this line on the standard output.
    #[track_caller]
    pub fn wait_for_output(&mut self, text: &str) {
        let output = self.output.as_mut().expect("its output is piped");
        let mut line = String::new();
        while line.trim_end() != text {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "it never printed '{text}'");
        }
    }

    /// The processor time that its threads have used.
    pub fn processor_time(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let used = |thread: std::fs::DirEntry| -> Option<u64> {
            let schedule = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            schedule.split(' ').next()?.parse().ok()
        };
        Duration::from_nanos(threads.filter_map(|thread| used(thread.ok()?)).sum())
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Kills it: it has no time to give back anything.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end: whether it went well, what it wrote to the standard output and error.
    pub fn end(self) -> (bool, String, String) {
        let (status, text, told) = self.ended();
        (status == Some(0), text, told)
    }

    /// Waits for its end: its exit status, what it wrote to the standard output and error.
    pub fn ended(mut self) -> (Option<i32>, String, String) {
        let mut text = String::new();
        if let Some(output) = &mut self.output {
            output.read_to_string(&mut text).unwrap();
        }
        while self.next_line() {}
        let status = self.child.wait().unwrap();
        (status.code(), text, self.told())
    }

    /// Presses Ctrl-C and waits for its end; what it printed.
    #[track_caller]
    pub fn stop(self) -> String {
        self.interrupt();
        let (well, text, errors) = self.end();
        assert!(well, "{errors}{text}");
        text
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let has_ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        if has_ended(&mut self.child) {
            return;
        }
        // It may have to give back what it took, such as interfaces.
        self.signal(Signal::TERM);
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if has_ended(&mut self.child) {
                return;
            }
            std::thread::yield_now();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
