//! Functions of the files that a process has mapped, by their addresses.
//!
//! The files are the process's own, and may be anything, and become anything while they are read: they are read, but not
//! mapped, and only regular ones; of all together so many bytes. A file that is malformed has no functions, and names are
//! cut and escaped.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::rc::Rc;

use blazesym::symbolize::{
    FindSymOpts, ProcessMemberInfo, ProcessMemberType, Reason, Resolve, ResolvedSym, SrcLang,
    Symbolize, Symbolizer, TranslateFileOffset,
};
use object::elf::{
    FileHeader32, FileHeader64, PT_LOAD, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC,
};
use object::pod::{from_bytes, slice_from_all_bytes};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{NativeEndian, Pod};
use rustix::fs::OFlags;
use view::paint::plain;

/// Bytes of tables that are read of all files.
const MOST: u64 = 1 << 29;
/// Bytes that are read of the list of what is mapped.
const MAPS: u64 = 16 << 20;
/// Bytes of a name in a file: longer ones are none.
const RAW: usize = 1 << 12;
/// Characters that are kept of a name.
const NAME: usize = 500;

/// A name from outside as it can be shown: in one line, without control characters, and not too long.
pub(super) fn printable(name: &str) -> String {
    let cut: String = name.chars().take(NAME).collect();
    plain(&cut.replace(['\n', '\t'], " ")).into_owned()
}

/// Finds symbols in what a process has mapped, and nowhere else.
pub(super) fn symbolizer(files: &Rc<Files>) -> Symbolizer {
    let files = Rc::clone(files);
    let dispatch = move |member: ProcessMemberInfo<'_>| match member.member_entry {
        ProcessMemberType::Path(path) => {
            // What is mapped can be opened as such only with a right; else by its name.
            let file = regular(&path.maps_file).or_else(|| regular(&path.symbolic_path));
            let functions = file.map_or_else(Rc::default, |file| files.functions(&file));
            Ok(Some(Box::new(Mapped(functions)) as Box<dyn Resolve>))
        }
        _ => Ok(None),
    };
    let builder = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false);
    builder.set_process_dispatcher(dispatch).build()
}

/// Opens a file if it is a regular one; never waits for it.
fn regular(path: &Path) -> Option<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    // What is no regular file is not even opened, unless it changes meanwhile.
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// Files whose functions are known, each read once for all processes.
pub(super) struct Files {
    known: RefCell<HashMap<(u64, u64), Rc<Functions>>>,
    /// Bytes that may still be read.
    left: Cell<u64>,
    /// Files that had more.
    left_out: Cell<u64>,
}

impl Default for Files {
    fn default() -> Self {
        Self { known: RefCell::default(), left: Cell::new(MOST), left_out: Cell::new(0) }
    }
}

impl Files {
    /// What a reader must know of them.
    pub(super) fn remark(&self) -> Option<String> {
        let left_out = self.left_out.get();
        (left_out > 0).then(|| {
            format!("functions of {left_out} files have no names: their symbols are too many")
        })
    }

    fn functions(&self, file: &File) -> Rc<Functions> {
        let Ok(metadata) = file.metadata() else { return Rc::default() };
        let mut known = self.known.borrow_mut();
        let read = || {
            let found = self.read::<FileHeader64<NativeEndian>>(file);
            found.or_else(|| self.read::<FileHeader32<NativeEndian>>(file)).unwrap_or_default()
        };
        known.entry((metadata.dev(), metadata.ino())).or_insert_with(|| Rc::new(read())).clone()
    }

    fn read<H: FileHeader<Endian = NativeEndian>>(&self, file: &File) -> Option<Functions> {
        let e = NativeEndian;
        let bytes = self.bytes(file, 0, size_of::<H>() as u64)?;
        let (header, _) = from_bytes::<H>(&bytes).ok()?;
        if !header.is_supported() || header.endian().is_err() {
            return None;
        }
        let at = (header.e_phoff(e).into(), header.e_phnum(e), header.e_phentsize(e));
        let bytes = self.table::<H::ProgramHeader>(file, at)?;
        let parts = slice_from_all_bytes::<H::ProgramHeader>(&bytes).ok()?;
        let parts = parts.iter().filter(|part| part.p_type(e) == PT_LOAD);
        let of = |part: &H::ProgramHeader| {
            (part.p_offset(e).into(), part.p_filesz(e).into(), part.p_vaddr(e).into())
        };
        let parts = parts.map(of).collect();
        let at = (header.e_shoff(e).into(), header.e_shnum(e), header.e_shentsize(e));
        let bytes = self.table::<H::SectionHeader>(file, at)?;
        let sections = slice_from_all_bytes::<H::SectionHeader>(&bytes).ok()?;
        let section = |of| sections.iter().find(|section| section.sh_type(e) == of);
        let all = section(SHT_SYMTAB);
        let Some(symbols) = all.or_else(|| section(SHT_DYNSYM)) else {
            return Some(Functions { parts, ..Functions::default() });
        };
        let names = sections.get(usize::try_from(symbols.sh_link(e)).ok()?)?;
        let read = |section: &H::SectionHeader| {
            self.bytes(file, section.sh_offset(e).into(), section.sh_size(e).into())
        };
        let (symbols, names) = (read(symbols)?, read(names)?);
        let symbols = slice_from_all_bytes::<<H as FileHeader>::Sym>(&symbols).ok()?;
        let symbols = symbols.iter().filter(|symbol| {
            // Between those that a library exports there is other code.
            let is_code = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC);
            let has_end = all.is_some() || symbol.st_size(e).into() > 0;
            is_code && has_end && symbol.st_shndx(e) != SHN_UNDEF
        });
        let of = |symbol: &<H as FileHeader>::Sym| Function {
            start: symbol.st_value(e).into(),
            length: symbol.st_size(e).into(),
            name: symbol.st_name(e),
        };
        Some(Functions::new(parts, symbols.map(of).collect(), names))
    }

    /// A table by its place, the number of its entries, and their size.
    fn table<T: Pod>(&self, file: &File, (at, count, size): (u64, u16, u16)) -> Option<Vec<u8>> {
        if count > 0 && usize::from(size) != size_of::<T>() {
            return None;
        }
        self.bytes(file, at, u64::from(count) * u64::from(size))
    }

    fn bytes(&self, file: &File, at: u64, length: u64) -> Option<Vec<u8>> {
        if at.checked_add(length)? > file.metadata().ok()?.len() {
            return None;
        }
        let Some(left) = self.left.get().checked_sub(length) else {
            self.left_out.set(self.left_out.get() + 1);
            return None;
        };
        self.left.set(left);
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }
}

/// A function of a file, and where its name begins.
#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    length: u64,
    name: u32,
}

/// Functions of a file.
#[derive(Debug, Default)]
struct Functions {
    /// Places and lengths in the file of what is loaded, and its addresses.
    parts: Vec<(u64, u64, u64)>,
    /// By their addresses.
    functions: Vec<Function>,
    names: Vec<u8>,
}

impl Functions {
    fn new(parts: Vec<(u64, u64, u64)>, mut functions: Vec<Function>, names: Vec<u8>) -> Self {
        functions.sort_by_key(|of| (of.start, of.length == 0));
        functions.dedup_by_key(|of| of.start);
        // One without a length goes on until the next.
        let mut next = u64::MAX;
        for function in functions.iter_mut().rev() {
            if function.length == 0 {
                function.length = next - function.start;
            }
            next = function.start;
        }
        Self { parts, functions, names }
    }

    fn find(&self, address: u64) -> Option<(&Function, &str)> {
        let behind = self.functions.partition_point(|of| of.start <= address);
        let function = self.functions.get(behind.checked_sub(1)?)?;
        if address - function.start >= function.length {
            return None;
        }
        let name = self.names.get(usize::try_from(function.name).ok()?..)?;
        let length = name.iter().take(RAW).position(|byte| *byte == 0).filter(|n| *n > 0)?;
        Some((function, std::str::from_utf8(&name[..length]).ok()?))
    }

    /// The address of a place in the file.
    fn address(&self, place: u64) -> Option<u64> {
        self.parts.iter().find_map(|(at, length, address)| {
            let into = place.checked_sub(*at).filter(|into| into < length)?;
            address.checked_add(into)
        })
    }
}

/// A file that a process has mapped.
#[derive(Debug)]
struct Mapped(Rc<Functions>);

impl Symbolize for Mapped {
    fn find_sym(
        &self,
        address: u64,
        _: &FindSymOpts,
    ) -> blazesym::Result<Result<ResolvedSym<'_>, Reason>> {
        let found = self.0.find(address).map(|(function, name)| ResolvedSym {
            name,
            module: None,
            addr: function.start,
            size: usize::try_from(function.length).ok(),
            lang: SrcLang::Unknown,
            code_info: None,
            inlined: Box::default(),
            _non_exhaustive: (),
        });
        Ok(found.ok_or(Reason::UnknownAddr))
    }
}

impl TranslateFileOffset for Mapped {
    fn file_offset_to_virt_offset(&self, offset: u64) -> blazesym::Result<Option<u64>> {
        Ok(self.0.address(offset))
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
        let [fifo, file] = ["fifo", "file"].map(|name| folder.path().join(name));
        // Opening it would wait for a writer.
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        std::fs::write(&file, "no program").unwrap();
        assert!(regular(&fifo).is_none() && regular(Path::new("/dev/zero")).is_none());
        // A file that is no program has no functions.
        let none = Files::default().functions(&regular(&file).unwrap());
        assert!(none.address(4).is_none() && none.find(4).is_none());
    }

    /// A program of two functions, the second without a length, that is loaded at 0x1000.
    fn program() -> Vec<u8> {
        let mut program = vec![0; 312];
        program[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let mut put = |values: &[(usize, u64)], size: usize| {
            for (at, value) in values {
                program[*at..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
            }
        };
        // Places, sizes and numbers of program and section headers.
        put(&[(32, 64), (40, 120)], 8);
        put(&[(54, 56), (56, 1), (58, 64), (60, 3)], 2);
        // What is loaded; symbols, and their names in the section behind.
        put(&[(64, 1), (188, 2), (224, 2), (252, 3)], 4);
        put(&[(80, 0x1000), (96, 400), (208, 312), (216, 48), (272, 360), (280, 11)], 8);
        for (name, start, length) in [(1_u32, 0x1010_u64, 0x10_u64), (6, 0x1040, 0)] {
            program.extend(name.to_le_bytes());
            program.extend([2, 0, 1, 0]);
            program.extend(start.to_le_bytes());
            program.extend(length.to_le_bytes());
        }
        program.extend(b"\0main\0last\0");
        program
    }

    #[test]
    fn functions_are_found_by_address() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&program(), 0).unwrap();
        let files = Files::default();
        let functions = files.functions(&file);
        // What becomes of the file does not matter any more.
        file.set_len(0).unwrap();
        let found = [0x100f, 0x1010, 0x101f, 0x1020, 0x103f, 0x1040, 0x9000]
            .map(|address| functions.find(address).map(|(_, name)| name));
        let (main, last) = (Some("main"), Some("last"));
        assert_eq!(found, [None, main, main, None, None, last, last]);
        assert_eq!(
            [0, 399, 400].map(|at| functions.address(at)),
            [Some(0x1000), Some(0x118f), None]
        );
        assert!(files.functions(&file).find(0x1010).is_some() && files.remark().is_none());
    }

    #[test]
    fn too_many_symbols_are_left_out() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&program(), 0).unwrap();
        // Names without an end, in a file that takes no room on the disk.
        file.write_all_at(&MOST.to_le_bytes(), 280).unwrap();
        file.set_len(2 * MOST).unwrap();
        let files = Files::default();
        assert!(files.functions(&file).find(0x1010).is_none());
        assert!(files.remark().unwrap().contains("functions of 1 files"));
    }

    #[test]
    fn malformed_programs_have_what_can_be_read() {
        let program = program();
        let look = |program: &[u8]| {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(program, 0).unwrap();
            let functions = Files::default().functions(&file);
            let addresses = [0, 0x1010, 0x1040, u64::MAX];
            addresses.map(|at| (functions.find(at).is_some(), functions.address(at))).len()
        };
        for at in 0..program.len() {
            look(&program[..at]);
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut odd = program.clone();
                odd[at] = byte;
                look(&odd);
            }
        }
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
