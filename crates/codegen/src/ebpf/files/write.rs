//! Writing files.

use std::fmt::Write;

use object::write::{Object as Elf, Relocation, StandardSegment, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope,
};

use super::super::object::{Map, Object};
use super::{ENTRIES, MAPS, OBJECT, R_BPF_64_64, TYPES, btf};
use crate::File;

/// Bytes of a map in the section of maps: five members of eight.
pub(super) const MAP: u32 = 40;

fn members(map: &Map) -> Vec<(String, u32)> {
    let all = [
        ("type", map.kind as u32),
        ("key_size", map.key),
        ("value_size", map.value),
        ("max_entries", map.room),
        ("map_flags", map.flags),
    ];
    all.map(|(name, value)| (name.to_string(), value)).to_vec()
}

/// The object, and what its maps hold.
pub(in crate::ebpf) fn write(object: &Object) -> Result<Vec<File>, object::write::Error> {
    let contents = elf(object)?;
    Ok(vec![
        File { name: OBJECT.into(), contents },
        File { name: ENTRIES.into(), contents: entries(object).into_bytes() },
    ])
}

fn elf(from: &Object) -> Result<Vec<u8>, object::write::Error> {
    let mut elf = Elf::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
    let segment = elf.segment_name(StandardSegment::Data).to_vec();
    let symbol = |name: &str, value: u64, size: u64, kind, section| Symbol {
        name: name.as_bytes().to_vec(),
        value,
        size,
        kind,
        scope: SymbolScope::Dynamic,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    };
    let license = elf.add_section(segment.clone(), b"license".to_vec(), SectionKind::Data);
    elf.append_section_data(license, b"Apache-2.0\0", 1);
    let maps = elf.add_section(segment.clone(), MAPS.into(), SectionKind::Data);
    elf.append_section_data(maps, &vec![0; from.maps.len() * MAP as usize], 8);
    let mut symbols = Vec::new();
    for (number, map) in (0..).zip(&from.maps) {
        let at = u64::from(MAP) * number;
        symbols.push(elf.add_symbol(symbol(&map.name, at, MAP.into(), SymbolKind::Data, maps)));
    }
    let types: Vec<btf::Declared> =
        from.maps.iter().map(|map| (map.name.clone(), members(map))).collect();
    let section = elf.add_section(segment.clone(), TYPES.into(), SectionKind::Metadata);
    elf.append_section_data(section, &btf::write(&types), 4);
    for code in &from.programs {
        let bytes: Vec<u8> = code.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let section =
            elf.add_section(segment.clone(), code.section.clone().into(), SectionKind::Text);
        elf.append_section_data(section, &bytes, 8);
        elf.add_symbol(symbol(&code.name, 0, bytes.len() as u64, SymbolKind::Text, section));
        for (at, map) in &code.maps {
            let relocation = Relocation {
                offset: 8 * *at as u64,
                symbol: symbols[*map],
                addend: 0,
                flags: RelocationFlags::Elf { r_type: object::elf::RelocationType(R_BPF_64_64) },
            };
            elf.add_relocation(section, relocation)?;
        }
    }
    elf.write()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!(" {byte:02x}")).collect()
}

fn entries(object: &Object) -> String {
    let mut text = String::from(
        "# What maps hold: bpftool batch file catena.maps, once catena.o is loaded.\n",
    );
    for map in &object.maps {
        if map.kind == super::super::object::MapKind::DevMap {
            let _ = writeln!(
                text,
                "# Each port's interface, by numbers of 4 bytes, the lowest first:\n\
                 # map update name {} key hex PORT value hex INTERFACE",
                map.name
            );
        }
        for (key, value) in &map.entries {
            let (key, value) = (hex(key), hex(value));
            let _ = writeln!(text, "map update name {} key hex{key} value hex{value}", map.name);
        }
    }
    text
}
