//! The protocol of Redis (RESP 2): commands are written, and replies read within bounds.

use std::io::{BufRead, Error, ErrorKind, Read, Result};

/// Bytes of a line at most.
const LONGEST_LINE: u64 = 4096;

/// Bytes of a string at most: no NF keeps more, and the server's settings are shorter.
const LONGEST_STRING: usize = 1 << 16;

/// Replies of an array at most, and how deep they are.
const MOST_REPLIES: usize = 64;
const DEEPEST: u32 = 3;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A word, such as `OK`.
    Word(String),
    /// An error: it begins with its kind.
    Error(String),
    /// A number.
    Number(i64),
    /// A string.
    Bytes(Vec<u8>),
    /// None.
    Nothing,
    /// Several.
    Array(Vec<Self>),
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

fn line(from: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(16);
    from.take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    match bytes.ends_with(b"\r\n") {
        true => bytes.truncate(bytes.len() - 2),
        false => return Err(wrong("a line that does not end")),
    }
    Ok(bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(bytes: &[u8]) -> Option<i64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// A length; none stands for nothing.
fn length(text: &[u8], most: usize) -> Result<Option<usize>> {
    match number(text) {
        Some(-1) => Ok(None),
        Some(of) => match usize::try_from(of) {
            Ok(of) if of <= most => Ok(Some(of)),
            _ => Err(wrong("a length out of bounds")),
        },
        None => Err(wrong("a length that is no number")),
    }
}

/// Reads a reply.
///
/// # Errors
/// If it ends, or is no reply within bounds.
pub(crate) fn read(from: &mut impl BufRead) -> Result<Reply> {
    read_below(from, 0)
}

fn read_below(from: &mut impl BufRead, depth: u32) -> Result<Reply> {
    let line = line(from)?;
    let (kind, rest) = line.split_first().ok_or_else(|| wrong("an empty line"))?;
    Ok(match kind {
        b'+' => Reply::Word(text(rest)),
        b'-' => Reply::Error(text(rest)),
        b':' => Reply::Number(number(rest).ok_or_else(|| wrong("a number that is none"))?),
        b'$' => {
            let Some(length) = length(rest, LONGEST_STRING)? else { return Ok(Reply::Nothing) };
            let mut bytes = vec![0; length + 2];
            from.read_exact(&mut bytes)?;
            if !bytes.ends_with(b"\r\n") {
                return Err(wrong("a string that is longer than its length"));
            }
            bytes.truncate(length);
            Reply::Bytes(bytes)
        }
        b'*' if depth < DEEPEST => {
            let Some(count) = length(rest, MOST_REPLIES)? else { return Ok(Reply::Nothing) };
            let all = (0..count).map(|_| read_below(from, depth + 1));
            Reply::Array(all.collect::<Result<_>>()?)
        }
        _ => return Err(wrong("a reply of no kind")),
    })
}

/// Appends a command.
pub(crate) fn push(to: &mut Vec<u8>, words: &[&[u8]]) {
    push_length(to, b'*', words.len());
    for word in words {
        push_length(to, b'$', word.len());
        to.extend_from_slice(word);
        to.extend_from_slice(b"\r\n");
    }
}

/// Appends a length of a kind; a request has thousands of them.
fn push_length(to: &mut Vec<u8>, kind: u8, length: usize) {
    to.push(kind);
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), length);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    to.extend_from_slice(&digits[at..]);
    to.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &[u8]) -> Result<Reply> {
        read(&mut &text[..])
    }

    #[test]
    fn replies_are_read() {
        assert_eq!(of(b"+OK\r\n").unwrap(), Reply::Word("OK".into()));
        assert_eq!(of(b"-OOM no\r\n").unwrap(), Reply::Error("OOM no".into()));
        assert_eq!(of(b":-12\r\n").unwrap(), Reply::Number(-12));
        assert_eq!(of(b"$4\r\na\r\nb\r\n").unwrap(), Reply::Bytes(b"a\r\nb".to_vec()));
        assert_eq!(of(b"$-1\r\n").unwrap(), Reply::Nothing);
        let pair = Reply::Array(vec![Reply::Bytes(b"a".to_vec()), Reply::Nothing]);
        assert_eq!(of(b"*2\r\n$1\r\na\r\n*-1\r\n").unwrap(), pair);
        let mut text = Vec::new();
        push(&mut text, &[b"GET", b"a\r\n"]);
        assert_eq!(text, b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n");
    }

    #[test]
    fn hostile_replies_are_refused_within_bounds() {
        for text in [
            &b""[..],
            b"\r\n",
            b"+OK\n",
            b"+OK",
            b"$5\r\nabc\r\n",
            b"$1\r\nabc",
            b"$99999999999999999999\r\n",
            b"$2147483647\r\n",
            b"$-2\r\n",
            b"*2147483647\r\n",
            b"*-9223372036854775808\r\n",
            b":1e9\r\n",
            b"%1\r\n+a\r\n+b\r\n",
            b"\xc3\xa9\r\n",
            b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        ] {
            assert!(of(text).is_err(), "{:?}", String::from_utf8_lossy(text));
        }
        assert!(of(&vec![b'+'; 1 << 20]).is_err());
        // Whatever comes ends, and is read no further than it goes.
        let mut random = fastrand::Rng::with_seed(5);
        let pieces: [&[u8]; 12] = [
            b"*",
            b"$",
            b":",
            b"-",
            b"+",
            b"\r\n",
            b"1",
            b"64",
            b"-1",
            b"\r\n\r\n",
            b"\xff",
            b"65536",
        ];
        for _ in 0..20_000 {
            let count = random.usize(..24);
            let text: Vec<u8> =
                (0..count).flat_map(|_| pieces[random.usize(..pieces.len())].to_vec()).collect();
            let mut left = &text[..];
            while !left.is_empty() && read(&mut left).is_ok() {}
        }
    }
}
