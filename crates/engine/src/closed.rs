//! Devices for chains that are looked at and not run.

use std::path::{Path, PathBuf};

use dataplane::file;
use elements::configure::Devices;
use elements::device::{Device, DeviceRequest, Received};
use net::{Batch, Pool};

/// Devices that are looked at but not opened.
#[derive(Default)]
pub struct Closed {
    /// The configuration's folder: captures that are not in the current one are looked for there.
    beside: PathBuf,
}

impl Closed {
    /// Devices of a configuration that stands in a folder.
    pub fn beside(beside: PathBuf) -> Self {
        Self { beside }
    }
}

impl Devices for Closed {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        match request {
            DeviceRequest::CaptureIn { path } if path != "-" => {
                let (here, beside) = (Path::new(path), self.beside.join(path));
                let found: &Path = if here.exists() || !beside.exists() { here } else { &beside };
                file::open(found).map_err(|e| format!("{path}: {e}"))?;
            }
            DeviceRequest::CaptureOut { path, .. } if path != "-" => {
                let folder = std::path::Path::new(path).parent();
                if let Some(folder) = folder.filter(|f| !f.as_os_str().is_empty() && !f.is_dir()) {
                    return Err(format!("{path}: there is no folder {}", folder.display()));
                }
            }
            _ => {}
        }
        Ok(Box::new(Self::default()))
    }
}

impl Device for Closed {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        batch.drain().for_each(|p| pool.recycle(p));
        Ok(())
    }
}
