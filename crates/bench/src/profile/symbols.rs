//! Symbols of the files that a process has mapped.
//!
//! The files are the process's own, and may be anything: only regular files up to a size are read, a file that is
//! malformed has no symbols, and names are cut and escaped.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use blazesym::helper::ElfResolver;
use blazesym::symbolize::{
    FindSymOpts, ProcessMemberInfo, ProcessMemberType, Reason, Resolve, ResolvedSym, Symbolize,
    Symbolizer, TranslateFileOffset,
};
use rustix::fs::OFlags;
use view::paint::plain;

/// Bytes of a file whose symbols are read.
const MOST: u64 = 1 << 30;
/// Bytes that are read of the list of what is mapped.
const MAPS: u64 = 16 << 20;
/// Characters that are kept of a name.
const NAME: usize = 500;

/// A name from outside as it can be shown: in one line, without control characters, and not too long.
pub(super) fn printable(name: &str) -> String {
    let cut: String = name.chars().take(NAME).collect();
    plain(&cut.replace(['\n', '\t'], " ")).into_owned()
}

/// Finds symbols in what a process has mapped, and nowhere else.
pub(super) fn symbolizer() -> Symbolizer {
    let dispatch = |member: ProcessMemberInfo<'_>| match member.member_entry {
        ProcessMemberType::Path(path) => {
            // What is mapped can be opened as such only with a right; else by its name.
            let file = regular(&path.maps_file).or_else(|| regular(&path.symbolic_path));
            let file = file.and_then(|file| {
                ElfResolver::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
            });
            Ok(Some(Box::new(Mapped(file)) as Box<dyn Resolve>))
        }
        _ => Ok(None),
    };
    let builder = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false);
    builder.set_process_dispatcher(dispatch).build()
}

/// Opens a file if it is a regular one and not too large; never waits for it.
fn regular(path: &Path) -> Option<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    // What is no regular file is not even opened, unless it changes meanwhile.
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    (metadata.is_file() && metadata.len() <= MOST).then_some(file)
}

/// A file that is mapped; nothing if it cannot be read.
#[derive(Debug)]
struct Mapped(Option<ElfResolver>);

impl Symbolize for Mapped {
    fn find_sym(
        &self,
        address: u64,
        options: &FindSymOpts,
    ) -> blazesym::Result<Result<ResolvedSym<'_>, Reason>> {
        let found = self.0.as_ref().and_then(|file| file.find_sym(address, options).ok());
        Ok(found.unwrap_or(Err(Reason::UnknownAddr)))
    }
}

impl TranslateFileOffset for Mapped {
    fn file_offset_to_virt_offset(&self, offset: u64) -> blazesym::Result<Option<u64>> {
        let file = self.0.as_ref();
        Ok(file.and_then(|file| file.file_offset_to_virt_offset(offset).ok().flatten()))
    }
}

/// What a process has mapped, after `/proc/PID/maps`: starts, ends and names of files.
#[derive(Default)]
pub(super) struct Maps(Vec<(u64, u64, String)>);

impl Maps {
    /// Of a process, or of this one; empty if that is not known.
    pub(super) fn read(pid: Option<u32>) -> Self {
        let own = pid.map_or("self".into(), |pid| pid.to_string());
        let mut text = Vec::new();
        // What was read before an error counts.
        let _ = File::open(format!("/proc/{own}/maps"))
            .and_then(|file| file.take(MAPS).read_to_end(&mut text));
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Self {
        let entry = |line: &str| {
            let (bounds, mut rest) = line.split_once(' ')?;
            let (start, end) = bounds.split_once('-')?;
            let address = |hex| u64::from_str_radix(hex, 16).ok();
            // Permissions, offset, device and inode; names may have spaces.
            for _ in 0..4 {
                rest = rest.trim_start().split_once(' ')?.1;
            }
            let path = rest.trim();
            let path = path.strip_suffix(" (deleted)").unwrap_or(path);
            let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
            Some((address(start)?, address(end)?, printable(name)))
        };
        let mut entries: Vec<_> = text.lines().filter_map(entry).collect();
        entries.sort_unstable();
        Self(entries)
    }

    /// The name of what is mapped at an address; nothing if that has none.
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let behind = self.0.partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.0.get(behind.checked_sub(1)?)?;
        (address < *end).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn code_without_symbols_has_its_files_name() {
        let maps = "00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus-daemon\n\
                    00500000-00501000 r-xp 00000000 08:02 17 /opt/my app/an odd\u{1b}name (deleted)\n\
                    7ffe0000-7ffe2000 r-xp 00000000 00:00 0 [vdso]\n7fff0000-7fff1000 rw-p 0 0:0 0\nnonsense\n";
        let maps = Maps::parse(maps);
        let found = [0x400000, 0x451fff, 0x452000, 0x7ffe1000, 0x7fff0800].map(|a| maps.name(a));
        let daemon = Some("dbus-daemon");
        assert_eq!(found, [daemon, daemon, None, Some("[vdso]"), None]);
        let odd = maps.name(0x500000).unwrap();
        assert!(odd.starts_with("an odd") && !odd.contains('\u{1b}'), "{odd}");
        assert!(Maps::read(None).0.len() > 3 && Maps::read(Some(u32::MAX)).0.is_empty());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [fifo, huge, file] = ["fifo", "huge", "file"].map(|name| folder.path().join(name));
        // Opening it would wait for a writer.
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        File::create(&huge).unwrap().set_len(MOST + 1).unwrap();
        std::fs::write(&file, "no program").unwrap();
        assert!([&fifo, &huge].iter().all(|path| regular(path).is_none()));
        assert!(regular(Path::new("/dev/zero")).is_none() && regular(&file).is_some());
        // A file that is no program has no symbols.
        let none = Mapped(ElfResolver::open(&file).ok());
        assert!(none.file_offset_to_virt_offset(4).unwrap().is_none());
    }

    #[test]
    fn names_are_shown_in_one_line() {
        let shown = printable("a\u{1b}[2J\n\tb\u{202e}");
        assert!(
            !shown.contains(['\u{1b}', '\n', '\t', '\u{202e}']) && shown.contains('b'),
            "{shown}"
        );
        assert!(printable(&"x".repeat(9999)).len() == NAME && printable("größe<T>") == "größe<T>");
    }
}
