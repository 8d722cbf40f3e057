//! What configurations may take, as command lines say it.

use std::str::FromStr;

use clap::Args;
use engine::Disk;

/// How much text is read, as the command line says it.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TextLimit {
    /// Limit on text that is read, including libraries and rule lists
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    max_source: Size,
}

impl TextLimit {
    /// In bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.max_source.0
    }
}

/// What a configuration may take, as the command line says it.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Limits {
    #[command(flatten)]
    text: TextLimit,
    /// Limit on memory that the elements of a worker allocate at start
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    max_memory: Size,
}

impl Limits {
    /// What is decided outside of the configuration: these limits, and variables.
    pub(crate) fn options(&self, variables: Vec<(String, String)>) -> compiler::Options {
        let limits = compiler::Limits { text: self.text.bytes(), memory: self.max_memory.0 };
        let environment = Some(environment as fn(&str) -> Option<String>);
        compiler::Options { limits, environment, ..compiler::Options::of(variables) }
    }

    /// Reads as much text as these limits allow.
    pub(crate) fn disk(&self) -> Disk {
        Disk::of(&self.options(Vec::new()))
    }
}

/// The value of an environment variable; one that is not UTF-8 counts as absent.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Bytes: a number with an optional suffix k, M or G for powers of 1024.
#[derive(Clone, Copy, Debug)]
struct Size(u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, scale) = match text.char_indices().last() {
            Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
            Some((at, 'M')) => (&text[..at], 1 << 20),
            Some((at, 'G')) => (&text[..at], 1 << 30),
            _ => (text, 1),
        };
        let size = digits.parse().ok().and_then(|number: u64| number.checked_mul(scale));
        size.map(Self).ok_or_else(|| "a size is a number such as 65536, 64k, 64M or 2G".to_string())
    }
}
