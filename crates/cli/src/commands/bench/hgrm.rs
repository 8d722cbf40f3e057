//! Latencies as files that HdrHistogram's tools read.

use std::ffi::OsString;
use std::path::Path;

use bench::percentile_distribution;
use bench::report::Latency;

use crate::outputs;

/// What the names of the files begin with: `to`, or the chain's name in the folder `to`.
pub(super) fn start_of_names(to: &Path, chain: &str) -> Result<OsString, String> {
    let shown = to.display();
    if to.is_dir() {
        let name = Path::new(chain).file_stem().filter(|_| chain != "-");
        return Ok(to.join(name.unwrap_or("chain".as_ref())).into());
    }
    match to.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => Err(format!("--hgrm {shown}: there is no folder {}", folder.display())),
        None if to.file_name().is_none() => Err(format!("--hgrm {shown}: there is no such folder")),
        None if to.extension().is_some_and(|e| e == "hgrm") => Ok(to.with_extension("").into()),
        None => Ok(to.into()),
    }
}

/// Checks that files whose names begin so can be written.
pub(super) fn check(start: &OsString) -> Result<(), String> {
    let mut path = start.clone();
    path.push("-0.hgrm");
    outputs::check(Path::new(&path)).map_err(|why| format!("--hgrm: {why}"))
}

/// Writes a file for each load.
pub(super) fn write(loads: &[Latency], start: &OsString) -> Result<(), String> {
    if loads.is_empty() {
        return Err("--hgrm: no latencies were taken".into());
    }
    for load in loads {
        let Some(latencies) = &load.histogram else { continue };
        let mut path = start.clone();
        path.push(format!("-{}.hgrm", load.percent));
        outputs::write(Path::new(&path), percentile_distribution(latencies))
            .map_err(|why| format!("--hgrm: {why}"))?;
    }
    Ok(())
}
