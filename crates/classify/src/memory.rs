//! Memory for tables that are read at random places.
#![allow(unsafe_code, reason = "tells the kernel about memory")]

/// Bytes of a huge page.
const LARGE: usize = 2 << 20;

/// Has memory that was not written yet come in huge pages, where the kernel has them and it is
/// worth it. At random places of a large table, finding small pages costs as much as the memory.
pub fn prefer_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    if size_of_val(memory) >= LARGE {
        const PAGE: usize = 4096;
        let range = memory.as_mut_ptr_range();
        let start = range.start.cast::<u8>().wrapping_add(range.start.addr().wrapping_neg() % PAGE);
        let length = (range.end.addr() - start.addr()) / PAGE * PAGE;
        // SAFETY: the pages lie within memory that is borrowed, and how large they are changes nothing in it. A kernel
        // that does not know of huge pages, or whose pages are of another size, refuses.
        unsafe { libc::madvise(start.cast(), length, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (memory, LARGE);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The flags of the mapping that an address lies in.
    fn flags(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in maps.lines() {
            let ends = line.split(' ').next().and_then(|range| range.split_once('-'));
            let number = |text| usize::from_str_radix(text, 16).ok();
            if let Some((start, end)) = ends.and_then(|(a, b)| number(a).zip(number(b))) {
                inside = (start..end).contains(&address);
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| inside) {
                return flags.to_string();
            }
        }
        String::new()
    }

    #[test]
    fn large_memory_is_asked_for_in_huge_pages() {
        let mut memory = Vec::<[u64; 8]>::with_capacity(16 * LARGE / 64);
        prefer_huge_pages(memory.spare_capacity_mut());
        let middle = memory.as_ptr().addr() + 8 * LARGE;
        // A kernel that was built without them knows no such flag.
        let known = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert_eq!(flags(middle).split(' ').any(|flag| flag == "hg"), known);
    }
}
