//! What a device is given: programs, and the maps that they use.

/// The name of the map with the interfaces of the device's ports, by their numbers.
pub const PORTS_MAP: &str = "ports";

/// The name of the map with what is counted at the exits of a segment.
pub fn counters_map(segment: usize) -> String {
    format!("counters{segment}")
}

/// Programs and maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Maps, by the numbers that programs name them by.
    pub maps: Vec<Map>,
    /// Programs.
    pub programs: Vec<Code>,
}

/// A kind of map, as the kernel numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// `BPF_MAP_TYPE_HASH`
    Hash = 1,
    /// `BPF_MAP_TYPE_ARRAY`
    Array = 2,
    /// `BPF_MAP_TYPE_PERCPU_ARRAY`
    PerCpuArray = 6,
    /// `BPF_MAP_TYPE_LPM_TRIE`
    LpmTrie = 11,
    /// `BPF_MAP_TYPE_DEVMAP`
    DevMap = 14,
}

impl MapKind {
    /// Those that there are.
    pub const ALL: [Self; 5] =
        [Self::Hash, Self::Array, Self::PerCpuArray, Self::LpmTrie, Self::DevMap];

    /// Whether only what was put there in the beginning is there; others hold something under every number, or what comes
    /// and goes.
    pub fn is_keyed(self) -> bool {
        matches!(self, Self::LpmTrie)
    }
}

/// A map, and what it holds from the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Its name, of at most 15 letters, digits and `_`.
    pub name: String,
    /// What it is.
    pub kind: MapKind,
    /// Bytes of a key.
    pub key: u32,
    /// Bytes of a value.
    pub value: u32,
    /// Most entries.
    pub room: u32,
    /// Flags of its creation.
    pub flags: u32,
    /// Keys and values.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its name.
    pub name: String,
    /// Its section's name.
    pub section: String,
    /// Instructions.
    pub words: Vec<u64>,
    /// Instructions of two words that load a map, by their first word, and the map.
    pub maps: Vec<(usize, usize)>,
}
