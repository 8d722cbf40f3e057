//! The caches of a CPU, as the kernel describes them.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// A cache for data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is next to the core.
    pub level: u32,
    /// Its size in bytes.
    pub size: usize,
    /// The size of a cache line in bytes.
    pub line: usize,
    /// CPUs that share it, as the kernel lists them.
    pub shared: String,
}

/// The data caches of a CPU, the first level first; none where the kernel does not know them.
pub fn of_cpu(cpu: usize) -> Vec<Cache> {
    read(Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}/cache")))
}

/// The data caches that a folder of sysfs describes.
fn read(folder: &Path) -> Vec<Cache> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut caches: Vec<Cache> = entries.filter_map(|entry| read_one(&entry.path())).collect();
    caches.sort_by_key(|cache| cache.level);
    caches.dedup_by_key(|cache| cache.level);
    caches
}

fn read_one(folder: &Path) -> Option<Cache> {
    let field = |name| {
        let text = std::fs::read_to_string(folder.join(name)).ok()?;
        Some(text.trim().to_string())
    };
    if !matches!(field("type")?.as_str(), "Data" | "Unified") {
        return None;
    }
    Some(Cache {
        level: field("level")?.parse().ok()?,
        size: parse_size(&field("size")?)?,
        line: field("coherency_line_size").and_then(|size| size.parse().ok()).unwrap_or(64),
        shared: field("shared_cpu_list").unwrap_or_default(),
    })
}

/// Bytes of a size such as `32K`.
fn parse_size(text: &str) -> Option<usize> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<usize>().ok()?.checked_shl(shift).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_caches_are_read_in_order() {
        let folder = std::env::temp_dir().join(format!("catena-caches-{}", std::process::id()));
        let all = [
            ("index3", "3", "Unified", "20M"),
            ("index0", "1", "Data", "32K"),
            ("index1", "1", "Instruction", "64K"),
            ("index2", "2", "Unified", "nonsense"),
        ];
        for (name, level, kind, size) in all {
            let index = folder.join(name);
            std::fs::create_dir_all(&index).unwrap();
            for (file, text) in [("level", level), ("type", kind), ("size", size)] {
                std::fs::write(index.join(file), format!("{text}\n")).unwrap();
            }
        }
        std::fs::write(folder.join("index3/shared_cpu_list"), "0-7\n").unwrap();
        let found = read(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        let cache =
            |level, size, shared: &str| Cache { level, size, line: 64, shared: shared.into() };
        assert_eq!(found, [cache(1, 32 << 10, ""), cache(3, 20 << 20, "0-7")]);
        assert_eq!(read(&folder), []);
    }

    #[test]
    fn sizes_have_units() {
        let sizes = ["512K", "8M", "1G", "4096", "0K", "K", ""].map(parse_size);
        let expected =
            [Some(512 << 10), Some(8 << 20), Some(1 << 30), Some(4096), None, None, None];
        assert_eq!(sizes, expected);
    }
}
