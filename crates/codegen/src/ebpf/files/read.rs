//! Reading files, which may hold anything.

use std::collections::BTreeMap;

use object::read::elf::ElfFile64;
use object::{
    Endianness, Object as _, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
};

use super::super::object::{Code, Map, MapKind, Object};
use super::{ENTRIES, MAPS, OBJECT, R_BPF_64_64, TYPES, XDP, btf};
use crate::{File, Unread};

/// Entries of a map, and instructions of a program.
const MOST: usize = 1_000_000;

fn unread(file: &str, line: usize, message: impl Into<String>) -> Unread {
    Unread { file: file.into(), line, message: message.into() }
}

fn named<'a>(files: &'a [File], name: &str) -> Result<&'a File, Unread> {
    let found = files.iter().find(|file| file.name == name);
    found.ok_or_else(|| unread(name, 0, "there is no such file"))
}

/// An object from its files.
pub(in crate::ebpf) fn read(files: &[File]) -> Result<Object, Unread> {
    let mut object = elf(&named(files, OBJECT)?.contents).map_err(|why| unread(OBJECT, 0, why))?;
    let text = &named(files, ENTRIES)?.contents;
    let text = std::str::from_utf8(text).map_err(|_| unread(ENTRIES, 0, "it is no text"))?;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            entry(&mut object, line).map_err(|why| unread(ENTRIES, number, why))?;
        }
    }
    for map in &mut object.maps {
        // The last of equal keys counts.
        let all: BTreeMap<Vec<u8>, Vec<u8>> = map.entries.drain(..).collect();
        if all.len() > map.room as usize {
            return Err(unread(ENTRIES, 0, format!("{} has no room for so many", map.name)));
        }
        map.entries = all.into_iter().collect();
    }
    Ok(object)
}

fn entry(object: &mut Object, line: &str) -> Result<(), String> {
    let mut words = line.split_ascii_whitespace();
    let mut expect = |text: &str| match words.next() {
        Some(word) if word == text => Ok(()),
        _ => Err(format!("'{text}' is expected")),
    };
    for word in ["map", "update", "name"] {
        expect(word)?;
    }
    let mut words = line.split_ascii_whitespace().skip(3);
    let name = words.next().ok_or("a map's name is expected")?;
    let map = object.maps.iter_mut().find(|map| map.name == name);
    let map = map.ok_or_else(|| format!("there is no map {name}"))?;
    let mut bytes = |word: &str, count: u32| -> Result<Vec<u8>, String> {
        if words.next() != Some(word) || words.next() != Some("hex") {
            return Err(format!("'{word} hex' is expected"));
        }
        let byte = |_| {
            let word = words.next().filter(|word| word.len() <= 2);
            let byte = word.and_then(|word| u8::from_str_radix(word, 16).ok());
            byte.ok_or_else(|| format!("{count} bytes are expected"))
        };
        (0..count).map(byte).collect()
    };
    let (key, value) = (bytes("key", map.key)?, bytes("value", map.value)?);
    if words.next().is_some() {
        return Err("the line's end is expected".into());
    }
    if map.entries.len() >= MOST {
        return Err("too many entries".into());
    }
    map.entries.push((key, value));
    Ok(())
}

/// What is said of a map.
fn map(name: &str, members: &[(String, u32)]) -> Result<Map, String> {
    let member = |name: &str| members.iter().find(|m| m.0 == name).map_or(0, |m| m.1);
    let kind = MapKind::ALL.into_iter().find(|kind| *kind as u32 == member("type"));
    let kind = kind.ok_or_else(|| format!("{name} is of no kind that is known here"))?;
    let map = Map {
        name: name.into(),
        kind,
        key: member("key_size"),
        value: member("value_size"),
        room: member("max_entries"),
        flags: member("map_flags"),
        entries: Vec::new(),
    };
    // The kernel's limits are wider.
    match map.key <= 512 && map.value <= 4096 {
        true => Ok(map),
        false => Err(format!("{name} has entries that are too long")),
    }
}

fn elf(bytes: &[u8]) -> Result<Object, String> {
    let file: ElfFile64<'_, Endianness> =
        ElfFile64::parse(bytes).map_err(|error| error.to_string())?;
    let types = match file.section_by_name(TYPES) {
        Some(section) => section.data().map_err(|error| error.to_string())?,
        None => return Err("it has no types".into()),
    };
    let declared = btf::read(types).ok_or("its types are none of maps")?;
    let mut maps = Vec::new();
    for (name, members) in &declared {
        maps.push(map(name, members)?);
    }
    let mut programs = Vec::new();
    for section in file.sections() {
        let name = section.name().unwrap_or_default();
        if name != XDP && !name.starts_with("xdp/") {
            continue;
        }
        let data = section.data().map_err(|error| error.to_string())?;
        if data.len() % 8 != 0 || data.len() / 8 > MOST {
            return Err(format!("{name} is no program"));
        }
        let words = data.chunks_exact(8);
        let word = |word: &[u8]| word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let mut of = Vec::new();
        for (at, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                return Err("a relocation of an unknown kind".into());
            };
            let is_map = matches!(relocation.flags(), RelocationFlags::Elf { r_type } if r_type.0 == R_BPF_64_64);
            let symbol = file.symbol_by_index(symbol).map_err(|error| error.to_string())?;
            let section = symbol.section_index().and_then(|at| file.section_by_index(at).ok());
            let in_maps = section.is_some_and(|section| section.name() == Ok(MAPS));
            let symbol = symbol.name().unwrap_or_default();
            let map = maps.iter().position(|map: &Map| map.name == symbol);
            match (map, usize::try_from(at / 8)) {
                (Some(map), Ok(word)) if is_map && in_maps && at % 8 == 0 => of.push((word, map)),
                _ => return Err(format!("a relocation of {name} by no map")),
            }
        }
        of.sort_unstable();
        let symbols =
            file.symbols().filter(|symbol| symbol.section_index() == Some(section.index()));
        let mut names = symbols.filter_map(|symbol| symbol.name().ok()).filter(|n| !n.is_empty());
        programs.push(Code {
            name: names.next().unwrap_or_default().into(),
            section: name.into(),
            words: words.map(word).collect(),
            maps: of,
        });
    }
    Ok(Object { maps, programs })
}
