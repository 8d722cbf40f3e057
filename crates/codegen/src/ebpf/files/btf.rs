//! Types of maps in the kernel's type format (BTF): every map is a variable in the section `.maps`
//! whose members are pointers to arrays of as many elements as the member's number says.

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;
const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const VAR: u32 = 14;
const DATASEC: u32 = 15;

/// A map: its name, and members by name.
pub(super) type Declared = (String, Vec<(String, u32)>);

#[derive(Default)]
struct Writer {
    types: Vec<u8>,
    count: u32,
    strings: Vec<u8>,
}

impl Writer {
    fn string(&mut self, text: &str) -> u32 {
        let at = self.strings.len() as u32;
        self.strings.extend(text.as_bytes());
        self.strings.push(0);
        at
    }

    fn words(&mut self, words: &[u32]) {
        self.types.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn add(&mut self, name: u32, kind: u32, length: u32, rest: &[u32]) -> u32 {
        self.words(&[name, kind << 24 | length]);
        self.words(rest);
        self.count += 1;
        self.count
    }
}

/// The types of maps.
pub(super) fn write(maps: &[Declared]) -> Vec<u8> {
    let mut to = Writer::default();
    to.string("");
    let name = to.string("int");
    let int = to.add(name, INT, 0, &[4, 1 << 24 | 32]);
    let mut section = Vec::new();
    for (offset, (map, members)) in (0..).zip(maps) {
        let mut all = Vec::new();
        for (number, (member, value)) in (0..).zip(members) {
            let array = to.add(0, ARRAY, 0, &[0, int, int, *value]);
            let pointer = to.add(0, PTR, 0, &[array]);
            all.extend([to.string(member), pointer, 64 * number]);
        }
        let size = 8 * members.len() as u32;
        let of = to.add(0, STRUCT, members.len() as u32, &[&[size], &all[..]].concat());
        let name = to.string(map);
        let var = to.add(name, VAR, 0, &[of, 1]);
        section.extend([var, offset * super::write::MAP, size]);
    }
    if !maps.is_empty() {
        let name = to.string(super::MAPS);
        let size = super::write::MAP * maps.len() as u32;
        to.add(name, DATASEC, maps.len() as u32, &[&[size], &section[..]].concat());
    }
    let (types, strings) = (to.types.len() as u32, to.strings.len() as u32);
    let mut all = Vec::new();
    all.extend(MAGIC.to_le_bytes());
    all.extend([1, 0]);
    for word in [HEADER as u32, 0, types, types, strings] {
        all.extend(word.to_le_bytes());
    }
    all.extend(to.types);
    all.extend(to.strings);
    all
}

/// A type as it is read: its name, kind, and words behind these.
struct Type {
    name: u32,
    kind: u32,
    rest: Vec<u32>,
}

struct Types<'a> {
    all: Vec<Type>,
    strings: &'a [u8],
}

impl Types<'_> {
    fn get(&self, number: u32) -> Option<&Type> {
        self.all.get((number as usize).checked_sub(1)?)
    }

    fn string(&self, at: u32) -> Option<String> {
        let from = self.strings.get(at as usize..)?;
        let end = from.iter().position(|byte| *byte == 0)?;
        String::from_utf8(from[..end].to_vec()).ok()
    }

    /// The number that a member stands for.
    fn number(&self, member: u32) -> Option<u32> {
        let pointer = self.get(member).filter(|of| of.kind == PTR)?;
        let array = self.get(*pointer.rest.first()?).filter(|of| of.kind == ARRAY)?;
        array.rest.get(3).copied()
    }
}

/// The maps that types declare; `None` if they are no such types.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Declared>> {
    let word = |at: usize| {
        let bytes = bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    if word(0)? & 0xffff != u32::from(MAGIC) {
        return None;
    }
    let header = word(4)? as usize;
    let part = |offset: u32, length: u32| {
        let from = header.checked_add(offset as usize)?;
        bytes.get(from..from.checked_add(length as usize)?)
    };
    let types = part(word(8)?, word(12)?)?;
    let strings = part(word(16)?, word(20)?)?;
    let mut words = types
        .chunks_exact(4)
        .map(|chunk| chunk.iter().rev().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)));
    let mut all = Vec::new();
    while let Some(name) = words.next() {
        let info = words.next()?;
        let (kind, length) = (info >> 24 & 0x1f, info & 0xffff);
        let count = match kind {
            INT => 2,
            PTR => 1,
            ARRAY => 4,
            VAR => 2,
            STRUCT | DATASEC => 1 + 3 * length as usize,
            _ => return None,
        };
        let rest: Vec<u32> = words.by_ref().take(count).collect();
        if rest.len() != count {
            return None;
        }
        all.push(Type { name, kind, rest });
    }
    let types = Types { all, strings };
    let mut maps = Vec::new();
    for of in types.all.iter().filter(|of| of.kind == VAR) {
        let (name, held) = (types.string(of.name)?, types.get(of.rest[0])?);
        if held.kind != STRUCT {
            return None;
        }
        let mut members = Vec::new();
        for member in held.rest.get(1..)?.chunks_exact(3) {
            members.push((types.string(member[0])?, types.number(member[1])?));
        }
        maps.push((name, members));
    }
    Some(maps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let map = |name: &str, kind| {
            (name.to_string(), vec![("type".to_string(), kind), ("key_size".to_string(), 4)])
        };
        let maps = vec![map("counters0", 6), map("ports", 14)];
        let bytes = write(&maps);
        assert_eq!(read(&bytes), Some(maps));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), None, "{end} bytes");
        }
    }
}
