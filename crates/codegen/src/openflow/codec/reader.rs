//! Reading bytes that may be too few.

use std::fmt;

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub(super) String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// What is left of some bytes.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    left: &'a [u8],
    /// Of what they are part.
    what: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { left: bytes, what }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(super) fn left(&self) -> usize {
        self.left.len()
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }

    pub(super) fn wrong<T>(&self, why: &str) -> Result<T, Malformed> {
        Err(Malformed(format!("{}: {why}", self.what)))
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        match self.left.split_at_checked(count) {
            Some((bytes, left)) => {
                self.left = left;
                Ok(bytes)
            }
            None => self.wrong("it ends too early"),
        }
    }

    /// So many bytes, as a part to read.
    pub(super) fn part(&mut self, count: usize, what: &'static str) -> Result<Self, Malformed> {
        self.bytes(count).map(|bytes| Self::new(bytes, what))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self.bytes(N)?;
        let mut array = [0; N];
        array.copy_from_slice(bytes);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    /// A name that ends at the first zero, of so many bytes.
    pub(super) fn name(&mut self, bytes: usize) -> Result<String, Malformed> {
        let bytes = self.bytes(bytes)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        // Names are shown on terminals.
        let text = String::from_utf8_lossy(&bytes[..end]);
        Ok(text.chars().filter(|c| !c.is_control()).collect())
    }
}
