//! Programs for XDP from a target, in the kernel: loading them, and finding them again where they run.

mod link;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use codegen::ebpf::{Map, Object};

use super::bpf::{self, AnyMap, ProgramInfo};
use super::sys;

pub use link::{Links, There, XdpMode};

/// The name of programs that are not attached by one.
const UNNAMED: &str = "catena";

/// An object in the kernel: its maps, with what they hold from the beginning, and its programs. They
/// go when this is dropped, unless they are attached.
#[derive(Debug)]
pub struct Loaded {
    maps: Maps,
    programs: Vec<OwnedFd>,
}

/// Maps, by name.
#[derive(Debug)]
struct Maps(Vec<(String, AnyMap)>);

/// What a program answered to a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// `XDP_DROP` is 1, `XDP_PASS` 2, `XDP_TX` 3, `XDP_REDIRECT` 4.
    pub verdict: u32,
    /// The frame.
    pub frame: Vec<u8>,
    /// Nanoseconds that it took, on average.
    pub nanoseconds: u32,
}

/// Why the kernel did not take an object.
#[derive(Debug)]
pub struct Rejected {
    /// The kernel's error.
    pub error: io::Error,
    /// The program, if it was one.
    pub program: Option<usize>,
    /// The instruction that its verifier came to last.
    pub instruction: Option<usize>,
    /// What the verifier wrote last.
    pub log: String,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.program, self.instruction) {
            (Some(_), Some(instruction)) => {
                write!(
                    f,
                    "the kernel refuses instruction {instruction}: {}: {}",
                    self.error, self.log
                )
            }
            (Some(_), None) => {
                write!(f, "the kernel refuses the program: {}: {}", self.error, self.log)
            }
            (None, _) => write!(f, "the kernel refuses a map: {}", self.error),
        }
    }
}

impl std::error::Error for Rejected {}

impl From<io::Error> for Rejected {
    fn from(error: io::Error) -> Self {
        Self { error, program: None, instruction: None, log: String::new() }
    }
}

/// The last instruction that the verifier names: at the beginning of a line, or behind `insn`.
fn instruction(log: &str) -> Option<usize> {
    // What it says of itself at the end names none.
    let mut lines = log.lines().rev().filter(|line| !line.starts_with("processed"));
    lines.find_map(|line| {
        let begins = line.split_once(':').and_then(|(number, _)| number.parse().ok());
        begins.or_else(|| line.split_once("insn ")?.1.split(' ').next()?.parse().ok())
    })
}

impl Loaded {
    /// Loads an object.
    ///
    /// # Errors
    /// What the kernel does not take.
    pub fn new(object: &Object) -> Result<Self, Rejected> {
        Self::named(object, UNNAMED)
    }

    /// Loads an object whose programs the kernel knows by a name, of at most 15 letters, digits and `_`.
    ///
    /// # Errors
    /// What the kernel does not take.
    pub fn named(object: &Object, name: &str) -> Result<Self, Rejected> {
        let mut maps = Vec::new();
        for map in &object.maps {
            let sizes = (map.key, map.value);
            let made = AnyMap::new(&map.name, map.kind as u32, sizes, map.room, map.flags)?;
            for (key, value) in &map.entries {
                made.set(key, value)?;
            }
            maps.push((map.name.clone(), made));
        }
        let mut programs = Vec::new();
        for (number, code) in object.programs.iter().enumerate() {
            let mut words = code.words.clone();
            for (at, map) in &code.maps {
                let known = words.get_mut(*at).zip(maps.get(*map));
                let (word, (_, map)) =
                    known.ok_or_else(|| io::Error::other("a program names no map"))?;
                *word = *word & 0xffff_ffff | (map.descriptor() as u32 as u64) << 32;
            }
            let program = bpf::load_words(name, &words).map_err(|(error, log)| {
                let last: Vec<&str> =
                    log.lines().rev().filter(|l| !l.starts_with("processed")).take(3).collect();
                let last = last.into_iter().rev().collect::<Vec<_>>().join("; ");
                Rejected { error, program: Some(number), instruction: instruction(&log), log: last }
            })?;
            programs.push(program);
        }
        Ok(Self { maps: Maps(maps), programs })
    }

    /// Runs a program on a frame as if it had come in, so many times.
    ///
    /// # Errors
    /// The kernel's; frames of less than 14 bytes are none.
    ///
    /// # Panics
    /// If there is no such program.
    pub fn test_run(&self, program: usize, frame: &[u8], repeat: u32) -> io::Result<Ran> {
        let (verdict, frame, nanoseconds) = bpf::test_run(&self.programs[program], frame, repeat)?;
        Ok(Ran { verdict, frame, nanoseconds })
    }

    /// Sets an entry of a map.
    ///
    /// # Errors
    /// The kernel's, or of what is not there.
    pub fn set(&self, map: &str, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.maps.map(map)?.set(key, value)
    }

    /// The numbers of 64 bits under a number, added up over all processors.
    ///
    /// # Errors
    /// The kernel's, or of what is not there.
    pub fn counters(&self, map: &str, number: u32) -> io::Result<Vec<u64>> {
        self.maps.counters(map, number)
    }

    /// The kernel's number of a map.
    ///
    /// # Errors
    /// The kernel's, or of what is not there.
    pub fn map_id(&self, map: &str) -> io::Result<u32> {
        self.maps.map(map)?.id()
    }

    /// The kernel's digest of a program's instructions; what maps hold is no part of it.
    ///
    /// # Errors
    /// The kernel's, or of what is not there.
    pub fn tag(&self, program: usize) -> io::Result<[u8; 8]> {
        bpf::program_info(self.program(program)?).map(|info| info.tag)
    }

    fn program(&self, number: usize) -> io::Result<&OwnedFd> {
        self.programs.get(number).ok_or_else(|| io::Error::other("there is no such program"))
    }
}

/// A program that the kernel has, whoever loaded it, and its maps.
#[derive(Debug)]
pub struct KernelProgram {
    program: OwnedFd,
    info: ProgramInfo,
    maps: Maps,
}

impl KernelProgram {
    /// The program that the kernel gave this number.
    ///
    /// # Errors
    /// The kernel's; only root may ask.
    pub fn new(id: u32) -> io::Result<Self> {
        let program = bpf::program_by_id(id)?;
        let info = bpf::program_info(&program)?;
        let maps = info.maps.iter().map(|id| AnyMap::by_id(*id)).collect::<io::Result<_>>()?;
        Ok(Self { program, info, maps: Maps(maps) })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.info.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// The kernel's digest of its instructions.
    pub fn tag(&self) -> [u8; 8] {
        self.info.tag
    }

    /// Maps that it uses: their names, and the kernel's numbers of them.
    pub fn maps(&self) -> impl Iterator<Item = (&str, u32)> {
        self.maps.0.iter().map(|(name, _)| name.as_str()).zip(self.info.maps.iter().copied())
    }

    /// The numbers of 64 bits under a number, added up over all processors.
    ///
    /// # Errors
    /// The kernel's, or of what is not there.
    pub fn counters(&self, map: &str, number: u32) -> io::Result<Vec<u64>> {
        self.maps.counters(map, number)
    }

    /// Entries in which a map that it uses is not as it is at the beginning: other values, and entries more or fewer.
    ///
    /// # Errors
    /// The kernel's, or of what is not there.
    pub fn changed(&self, was: &Map) -> io::Result<usize> {
        let map = self.maps.map(&was.name)?;
        let mut changed = 0;
        for (key, value) in &was.entries {
            let there = match map.get(key) {
                Ok(values) => values.into_iter().next(),
                Err(error) if sys::number(&error) == libc::ENOENT => None,
                Err(error) => return Err(error),
            };
            changed += usize::from(there.as_ref() != Some(value));
        }
        if was.kind.is_keyed() {
            let (mut there, mut last) = (0_usize, None);
            while let Some(key) = map.next(last.as_deref())? {
                // One that changes at the same time need not come to an end.
                if there > was.room as usize {
                    break;
                }
                there += 1;
                last = Some(key);
            }
            changed += there.abs_diff(was.entries.len());
        }
        Ok(changed)
    }
}

impl Maps {
    fn map(&self, name: &str) -> io::Result<&AnyMap> {
        let found = self.0.iter().find(|map| map.0 == name);
        found.map(|map| &map.1).ok_or_else(|| io::Error::other(format!("there is no map {name}")))
    }

    fn counters(&self, map: &str, number: u32) -> io::Result<Vec<u64>> {
        let mut all: Vec<u64> = Vec::new();
        for value in self.map(map)?.get(&number.to_le_bytes())? {
            let words = value.chunks_exact(8).map(|word| {
                word.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
            });
            for (at, word) in words.enumerate() {
                match all.get_mut(at) {
                    Some(sum) => *sum = sum.wrapping_add(word),
                    None => all.push(word),
                }
            }
        }
        Ok(all)
    }
}
