//! What is read of a program in ELF: the machine it is made for, and the loader of its shared libraries.

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elf {
    /// The architecture, as OCI calls it.
    pub(super) architecture: String,
    /// What loads its shared libraries; none if it has none.
    pub(super) loader: Option<String>,
}

/// Bytes of a loader's path at most.
const LONGEST: usize = 4096;

impl Elf {
    /// Reads the beginning of a file.
    ///
    /// # Errors
    /// If it is no program of a machine with 64 bits and little-endian numbers.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err("it is no program in ELF");
        }
        if bytes.get(4..6) != Some(&[2, 1]) {
            return Err("it is made for a machine with 32 bits or big-endian numbers");
        }
        let cut = "its ELF header is cut off";
        let number = |at: usize, length: usize| {
            let bytes = bytes.get(at..at.checked_add(length)?)?;
            Some(bytes.iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte)))
        };
        let architecture = match number(18, 2).ok_or(cut)? {
            62 => "amd64".into(),
            183 => "arm64".into(),
            243 => "riscv64".into(),
            other => format!("machine {other}"),
        };
        let table = number(32, 8).ok_or(cut)?;
        let (size, count) = (number(54, 2).ok_or(cut)?, number(56, 2).ok_or(cut)?);
        let mut loader = None;
        for of in 0..count {
            let at = table.checked_add(of * size).and_then(|at| usize::try_from(at).ok());
            let at = at.ok_or(cut)?;
            const INTERPRETER: u64 = 3;
            if number(at, 4).ok_or(cut)? != INTERPRETER {
                continue;
            }
            let field = |offset: usize| {
                usize::try_from(at.checked_add(offset).and_then(|at| number(at, 8))?).ok()
            };
            let (from, length) = (field(8).ok_or(cut)?, field(32).ok_or(cut)?);
            let path = from.checked_add(length.min(LONGEST)).and_then(|end| bytes.get(from..end));
            let path = path.ok_or(cut)?.split(|byte| *byte == 0).next().unwrap_or_default();
            loader = Some(String::from_utf8_lossy(path).into_owned());
        }
        Ok(Self { architecture, loader })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_read_and_a_damaged_one_refused() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::parse(&own).unwrap();
        assert_eq!(elf.architecture, super::super::ARCHITECTURE);
        assert!(std::path::Path::new(&elf.loader.unwrap()).exists());
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let mut some = own[..random.usize(..4096)].to_vec();
            for _ in 0..8.min(some.len()) {
                let at = random.usize(..some.len().min(256));
                some[at] = random.u8(..);
            }
            let _ = Elf::parse(&some);
        }
        assert!(Elf::parse(b"#!/bin/sh\n").is_err());
        assert!(Elf::parse(&own[..60]).is_err());
    }
}
