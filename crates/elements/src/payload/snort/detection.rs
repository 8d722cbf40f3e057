//! What a rule demands of a payload, one after the other.

use std::ops::RangeInclusive;

use regex::bytes::Regex;

/// A part of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    Payload,
    Method,
    /// With percent-encoded bytes decoded.
    Uri,
    RawUri,
    Header,
    Cookie,
    /// What comes behind a request's headers.
    ClientBody,
    StatusCode,
    StatusMessage,
    /// What comes behind a response's headers.
    FileData,
}

impl Buffer {
    /// How many there are.
    pub(crate) const COUNT: usize = Self::FileData as usize + 1;

    /// The one that an option behind a content names.
    pub(super) fn of(option: &str) -> Option<Self> {
        Some(match option {
            "http_method" => Self::Method,
            "http_uri" => Self::Uri,
            "http_raw_uri" => Self::RawUri,
            "http_header" | "http_raw_header" => Self::Header,
            "http_cookie" | "http_raw_cookie" => Self::Cookie,
            "http_client_body" => Self::ClientBody,
            "http_stat_code" => Self::StatusCode,
            "http_stat_msg" => Self::StatusMessage,
            _ => return None,
        })
    }
}

/// A number that a rule tells, or that it reads from the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Known(i64),
    Variable(u8),
}

impl Number {
    /// Its value, with what was read.
    pub(crate) fn value(self, read: &Variables) -> i64 {
        match self {
            Self::Known(number) => number,
            Self::Variable(at) => read[usize::from(at)],
        }
    }
}

/// Numbers that a rule may read from a payload, at the most.
pub(crate) const MOST_VARIABLES: usize = 4;

/// What a rule read.
pub(crate) type Variables = [i64; MOST_VARIABLES];

/// What a rule demands; a rule is about a payload if all that it demands holds, in this order.
#[derive(Clone, Debug)]
pub(crate) enum Detection {
    Content(Content),
    Expression(Expression),
    Test(ByteTest),
    Jump(ByteJump),
    Extract(ByteExtract),
    DataAt(DataAt),
}

impl Detection {
    /// Whether the match before says where it looks.
    pub(crate) fn is_relative(&self) -> bool {
        match self {
            Self::Content(of) => of.distance.is_some() || of.within.is_some(),
            Self::Expression(of) => of.is_relative,
            Self::Test(ByteTest { field, .. })
            | Self::Jump(ByteJump { field, .. })
            | Self::Extract(ByteExtract { field, .. }) => field.is_relative,
            Self::DataAt(of) => of.is_relative,
        }
    }

    /// The part of the payload that it looks at.
    pub(crate) fn buffer(&self) -> Buffer {
        match self {
            Self::Content(of) => of.buffer,
            Self::Expression(of) => of.buffer,
            Self::Test(ByteTest { field, .. })
            | Self::Jump(ByteJump { field, .. })
            | Self::Extract(ByteExtract { field, .. }) => field.buffer,
            Self::DataAt(of) => of.buffer,
        }
    }

    /// The bytes that must be there.
    pub(crate) fn content(&self) -> Option<&Content> {
        match self {
            Self::Content(content) if !content.negated => Some(content),
            _ => None,
        }
    }
}

/// Bytes that are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// In lower case if `any_case`.
    pub bytes: Vec<u8>,
    pub any_case: bool,
    /// Whether they must not be there.
    pub negated: bool,
    pub buffer: Buffer,
    /// From the buffer's start: where the search begins, and how many bytes it may take.
    pub offset: Number,
    pub depth: Option<Number>,
    /// The same from the end of the match before, if any is told.
    pub distance: Option<Number>,
    pub within: Option<Number>,
}

/// A regular expression that is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub regex: Regex,
    pub negated: bool,
    pub buffer: Buffer,
    pub is_relative: bool,
}

/// How a number is written in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Big,
    Little,
    /// In digits, to this base.
    Text(u32),
}

/// A number in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub buffer: Buffer,
    pub bytes: usize,
    pub offset: Number,
    pub is_relative: bool,
    pub encoding: Encoding,
    /// Those of its bits that count, moved down to the lowest of them.
    pub mask: Option<u32>,
}

impl Field {
    /// Bytes that a number has.
    pub(super) const BINARY: RangeInclusive<usize> = 1..=4;
    pub(super) const TEXT: RangeInclusive<usize> = 1..=10;

    /// The number, and where it ends.
    pub(crate) fn read(&self, part: &[u8], before: i64, read: &Variables) -> Option<(i64, i64)> {
        let start = if self.is_relative { before } else { 0 };
        let start = usize::try_from(start + self.offset.value(read)).ok()?;
        let bytes = part.get(start..).filter(|rest| !rest.is_empty())?;
        let (number, length) = match self.encoding {
            Encoding::Text(base) => text(&bytes[..bytes.len().min(self.bytes)], base)?,
            Encoding::Big => {
                let bytes = bytes.get(..self.bytes)?;
                (bytes.iter().fold(0, |all, &b| all << 8 | u64::from(b)), self.bytes)
            }
            Encoding::Little => {
                let bytes = bytes.get(..self.bytes)?;
                (bytes.iter().rev().fold(0, |all, &b| all << 8 | u64::from(b)), self.bytes)
            }
        };
        let number = match self.mask {
            Some(mask) => (number & u64::from(mask)) >> mask.trailing_zeros(),
            None => number,
        };
        Some((i64::try_from(number).ok()?, (start + length) as i64))
    }
}

/// A number in digits, behind spaces, and how many bytes it takes with them.
fn text(bytes: &[u8], base: u32) -> Option<(u64, usize)> {
    let spaces = bytes.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let hex = bytes[spaces..].get(..2).is_some_and(|b| b[0] == b'0' && b[1] | 0x20 == b'x');
    let start = if base == 16 && hex { spaces + 2 } else { spaces };
    let digits = bytes[start..].iter().map_while(|&b| char::from(b).to_digit(base));
    let mut length = 0;
    let number = digits
        .inspect(|_| length += 1)
        .fold(0u64, |all, digit| all.saturating_mul(base.into()).saturating_add(digit.into()));
    (length > 0).then_some((number, start + length))
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Less,
    Greater,
    Equal,
    LessOrEqual,
    GreaterOrEqual,
    And,
    ExclusiveOr,
}

impl Operator {
    fn holds(self, number: i64, value: i64) -> bool {
        match self {
            Self::Less => number < value,
            Self::Greater => number > value,
            Self::Equal => number == value,
            Self::LessOrEqual => number <= value,
            Self::GreaterOrEqual => number >= value,
            Self::And => number & value != 0,
            Self::ExclusiveOr => number ^ value != 0,
        }
    }
}

/// A number that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteTest {
    pub field: Field,
    pub negated: bool,
    pub operator: Operator,
    pub value: Number,
}

impl ByteTest {
    /// Whether a number in the payload is as it says. One that is not there is not.
    pub(crate) fn holds(&self, part: &[u8], before: i64, read: &Variables) -> bool {
        self.field.read(part, before, read).is_some_and(|(number, _)| {
            self.operator.holds(number, self.value.value(read)) != self.negated
        })
    }
}

/// From where a jump counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// The end of the number.
    Field,
    Beginning,
    End,
}

/// What follows is looked for so far on as a number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteJump {
    pub field: Field,
    pub multiplier: i64,
    /// The number is made a multiple of it.
    pub align: i64,
    pub from: From,
    pub post_offset: i64,
}

fn aligned(number: i64, align: i64) -> i64 {
    number.saturating_add((align - number % align) % align)
}

impl ByteJump {
    /// Where it leads, if that is within the part.
    pub(crate) fn end(&self, part: &[u8], before: i64, read: &Variables) -> Option<i64> {
        let (number, end) = self.field.read(part, before, read)?;
        let jump = aligned(number.saturating_mul(self.multiplier), self.align);
        let from = match self.from {
            From::Field => end,
            From::Beginning => 0,
            From::End => part.len() as i64,
        };
        let end = from.saturating_add(jump).saturating_add(self.post_offset);
        (0..=part.len() as i64).contains(&end).then_some(end)
    }
}

/// A number that is read for what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteExtract {
    pub field: Field,
    pub multiplier: i64,
    pub align: i64,
    pub variable: u8,
}

impl ByteExtract {
    /// The number, and where it ends.
    pub(crate) fn read(&self, part: &[u8], before: i64, read: &Variables) -> Option<(i64, i64)> {
        let (number, end) = self.field.read(part, before, read)?;
        Some((aligned(number.saturating_mul(self.multiplier), self.align), end))
    }
}

/// Whether there is a byte in some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataAt {
    pub buffer: Buffer,
    pub at: Number,
    pub is_relative: bool,
    pub negated: bool,
}

impl DataAt {
    pub(crate) fn holds(&self, part: &[u8], before: i64, read: &Variables) -> bool {
        let start = if self.is_relative { before } else { 0 };
        let at = start.saturating_add(self.at.value(read));
        (0..part.len() as i64).contains(&at) != self.negated
    }
}
