//! Shared memory: sealed memfds, and mappings of them.
//!
//! Other processes write to it at any time. Words are read and written as atomics; bytes of packets are for who has the
//! turn, and what is read twice may differ.
#![allow(unsafe_code)]

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// Shared memory of a fixed size, which no path leads to.
#[derive(Debug)]
pub struct Memory {
    file: OwnedFd,
    length: usize,
}

impl Memory {
    /// Makes one of so many bytes, all 0. It can neither shrink nor grow: who maps it meets no end of it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(name: &str, length: usize) -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(name, flags)?;
        // Nobody else opens it anew through /proc.
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::ftruncate(&file, length as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(Self { file, length })
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The descriptor for who writes to it.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// From now on nobody who has not mapped it already can write to it, whoever they are.
    ///
    /// # Errors
    /// The kernel's.
    pub fn close_to_writers(&self) -> Result<()> {
        Ok(rustix::fs::fcntl_add_seals(&self.file, SealFlags::FUTURE_WRITE | SealFlags::SEAL)?)
    }

    /// A descriptor that can only be read.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read_only(&self) -> Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Maps it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn map(&self, writable: bool) -> Result<Mapping> {
        Mapping::new(&self.file, self.length, writable)
    }
}

/// Shared memory in the address space of this process.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
    writable: bool,
}

// SAFETY: it is memory that belongs to no thread; writing to bytes takes `&mut`, and words are atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps so many bytes of a sealed memfd; all pages are there from now on.
    ///
    /// # Errors
    /// If the file is shorter or could become so, or the kernel refuses.
    pub fn new(file: impl AsFd, length: usize, writable: bool) -> Result<Self> {
        let size = rustix::fs::fstat(&file)?.st_size;
        let is_sealed = rustix::fs::fcntl_get_seals(&file)?.contains(SealFlags::SHRINK);
        if length == 0 || !is_sealed || u64::try_from(size).is_ok_and(|size| size < length as u64) {
            return Err(Error::new(
                ErrorKind::InvalidData,
                "memory that is shorter than said, or not sealed",
            ));
        }
        let mut access = ProtFlags::READ;
        access.set(ProtFlags::WRITE, writable);
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses an address where nothing is; the file stays at least as long as this.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, access, flags, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(ErrorKind::OutOfMemory)?;
        Ok(Self { start, length, writable })
    }

    /// Keeps it in memory. Where that is refused, it was populated all the same.
    pub fn lock(&self) {
        // SAFETY: the range is mapped.
        let _ = unsafe { rustix::mm::mlock(self.start.as_ptr().cast(), self.length) };
    }

    /// Whether this process may write to it.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at.checked_add(8).is_some_and(|end| end <= self.length));
        // SAFETY: the range is mapped and aligned, and all access to words is atomic.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// The word at an offset, which is a multiple of 8.
    #[inline]
    pub fn load(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Relaxed)
    }

    /// The same; what was written before it was stored is seen.
    #[inline]
    pub fn acquire(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    /// Stores a word.
    #[inline]
    pub fn store(&self, at: usize, value: u64) {
        assert!(self.writable);
        self.word(at).store(value, Ordering::Relaxed);
    }

    /// Stores a word: who [acquires](Self::acquire) it sees what was written before.
    #[inline]
    pub fn release(&self, at: usize, value: u64) {
        assert!(self.writable);
        self.word(at).store(value, Ordering::Release);
    }

    /// Bytes. The range is inside: the caller has checked that.
    #[inline]
    pub fn bytes(&self, at: usize, length: usize) -> &[u8] {
        assert!(at.checked_add(length).is_some_and(|end| end <= self.length));
        // SAFETY: the range is mapped. Other processes may write to it when it is not their turn; then what is read here is
        // not what was sent, and nothing is decided by reading it twice.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), length) }
    }

    /// Bytes to write to.
    #[inline]
    pub fn bytes_mut(&mut self, at: usize, length: usize) -> &mut [u8] {
        assert!(self.writable && at.checked_add(length).is_some_and(|end| end <= self.length));
        // SAFETY: the range is mapped writable, and this is its only reference in this process. See `bytes`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at), length) }
    }

    /// Has the processor bring what is at an offset.
    #[inline]
    pub fn prefetch(&self, at: usize) {
        #[cfg(target_arch = "x86_64")]
        if at < self.length {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: every x86-64 has it, and it touches nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.start.as_ptr().add(at).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped here, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_closed_to_writers_can_be_read_alone() {
        let memory = Memory::new("test", 4096).unwrap();
        let mut writer = memory.map(true).unwrap();
        memory.close_to_writers().unwrap();
        writer.bytes_mut(10, 3).copy_from_slice(b"abc");
        let reader = Mapping::new(memory.read_only().unwrap(), 4096, false).unwrap();
        assert_eq!(reader.bytes(10, 3), b"abc");
        assert!(!reader.is_writable());
        // Neither by the descriptor that could, nor by one that is opened anew.
        assert!(memory.map(true).is_err());
        assert!(rustix::io::write(memory.file(), b"x").is_err());
        let path = format!("/proc/self/fd/{}", memory.file().as_raw_fd());
        let again = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        assert!(Mapping::new(&again, 4096, true).is_err());
        assert!(again.set_len(1).is_err());
    }

    #[test]
    fn memory_that_may_shrink_is_not_mapped() {
        let file = rustix::fs::memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert!(Mapping::new(&file, 4096, false).is_err());
        let memory = Memory::new("test", 4096).unwrap();
        assert!(Mapping::new(memory.file(), 8192, false).is_err());
    }
}
