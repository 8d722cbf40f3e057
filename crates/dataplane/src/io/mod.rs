//! Devices: where frames come from and go to. Each kind has its own file; [`Bindings`] is the one
//! place that chooses among them.

mod capture;
mod generator;
mod replay;
mod sys;
mod wait;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use elements::configure::Devices;
use elements::device::{Device, DeviceRequest};
use net::pcap::{Format, LinkType, Options};

pub use generator::Generator;
pub use replay::Replay;
pub use wait::{Polling, Waiter};

/// What an interface's name is bound to.
#[derive(Clone, Debug)]
pub enum Binding {
    /// A capture file.
    Capture(PathBuf),
    /// The built-in traffic generator (receive only).
    Generator(Generator),
    /// A capture replayed from memory (receive only).
    Replay(Replay),
}

/// Opens what elements ask for: capture files by their path, interfaces by their binding.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// What `FromDevice(NAME)` reads.
    pub inputs: HashMap<String, Binding>,
    /// What `ToDevice(NAME)` writes.
    pub outputs: HashMap<String, Binding>,
    /// Folder that relative paths of captures count from; the current one if empty.
    pub folder: PathBuf,
    /// The configuration's folder: captures to read that are not in `folder` are looked for here.
    pub beside: PathBuf,
}

impl Binding {
    /// What a source's name is bound to: `gen:…`, `replay:…` or a capture file.
    ///
    /// # Errors
    /// What is not understood.
    pub fn source(text: &str) -> Result<Self, String> {
        Ok(match text.split_once(':') {
            _ if text == "gen" => Self::Generator(Generator::default()),
            Some(("gen", spec)) => Self::Generator(spec.parse()?),
            Some(("replay", spec)) => Self::Replay(spec.parse()?),
            _ => Self::Capture(text.into()),
        })
    }
}

impl Bindings {
    /// Where a capture to read is.
    fn find(&self, path: &str) -> PathBuf {
        let (here, beside) = (self.folder.join(path), self.beside.join(path));
        if path != "-" && !here.exists() && beside.exists() { beside } else { here }
    }

    /// Opens what an element asks for, so that it can go on in the hands of another thread.
    ///
    /// # Errors
    /// A message that says why not.
    pub fn open_device(
        &mut self,
        request: &DeviceRequest,
    ) -> Result<Box<dyn Device + Send>, String> {
        match request {
            DeviceRequest::CaptureIn { path } => capture::Input::open(&self.find(path)),
            DeviceRequest::CaptureOut { path, snap_length, link_type, nanoseconds, unbuffered } => {
                let path = self.folder.join(path);
                let mut options = Options::for_file_name(&path);
                options.snap_length = *snap_length;
                options.link_type = LinkType(*link_type);
                if *nanoseconds && options.format == Format::PcapMicroseconds {
                    options.format = Format::PcapNanoseconds;
                }
                capture::Output::create(&path, &options, *unbuffered)
            }
            DeviceRequest::Interface { name, receive } => {
                let bindings = if *receive { &self.inputs } else { &self.outputs };
                match (bindings.get(name), receive) {
                    (Some(Binding::Capture(path)), true) => capture::Input::open(path),
                    (Some(Binding::Capture(path)), false) => {
                        capture::Output::create(path, &Options::for_file_name(path), false)
                    }
                    (Some(Binding::Generator(generator)), true) => Ok(generator.start()),
                    (Some(Binding::Replay(replay)), true) => replay.start(),
                    (Some(Binding::Generator(_) | Binding::Replay(_)), false) => {
                        Err(format!("'{name}' is bound to a source, which cannot be written to"))
                    }
                    (None, true) => Err(format!(
                        "nothing is bound to '{name}': bind it with --in {name}=FILE or --in {name}=gen:…"
                    )),
                    (None, false) => {
                        Err(format!("nothing is bound to '{name}': bind it with --out {name}=FILE"))
                    }
                }
            }
        }
    }
}

impl Devices for Bindings {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        Ok(self.open_device(request)?)
    }

    fn create(&mut self, path: &str) -> Result<Box<dyn Write>, String> {
        if path == "-" {
            return Ok(Box::new(std::io::stdout()));
        }
        let file = File::create(self.folder.join(path)).map_err(|e| e.to_string())?;
        Ok(Box::new(BufWriter::new(file)))
    }
}
