//! The server's name in the first message of a TLS client (RFC 8446, RFC 6066).

/// What the beginning of a stream says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hello<'a> {
    /// It is no such message.
    Other,
    /// More of it must come.
    More,
    /// It names no server.
    Unnamed,
    /// The name, in whatever case.
    Name(&'a [u8]),
}

/// A record of handshakes, and the type of the message.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;

/// Takes a number of bytes and what follows a length in front of it.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |n, &b| n << 8 | usize::from(b)))
    }

    /// What a length of so many bytes is in front of.
    fn vector(&mut self, bytes: usize) -> Option<Reader<'a>> {
        let length = self.number(bytes)?;
        Some(Reader(self.take(length)?))
    }
}

/// How long the message is that begins so; none if it is another message. More than is there, if that does not say it yet.
fn length(message: &[u8]) -> Option<usize> {
    match *message {
        [kind, ..] if kind != CLIENT_HELLO => None,
        [_, a, b, c, ..] => Some(4 + (usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c))),
        _ => Some(usize::MAX),
    }
}

/// Puts the message together from records, which may split it, into `whole`. Gives whether it is complete; none if it is
/// no such message.
pub(crate) fn message(stream: &[u8], whole: &mut Vec<u8>) -> Option<bool> {
    let mut reader = Reader(stream);
    whole.clear();
    loop {
        match *reader.0 {
            [] => return Some(false),
            [kind, ..] if kind != HANDSHAKE => return None,
            [_, 3, ..] | [_] => {}
            _ => return None,
        }
        let Some(record) = reader.take(3).and_then(|_| {
            // A part of a record counts as far as it is there.
            let length = reader.number(2)?;
            let there = length.min(reader.0.len());
            reader.take(there).map(|part| (part, there == length && length > 0))
        }) else {
            return Some(false);
        };
        whole.extend_from_slice(record.0);
        let length = length(whole)?;
        if whole.len() >= length {
            whole.truncate(length);
            return Some(true);
        }
        if !record.1 {
            return Some(false);
        }
    }
}

/// The name in a complete message.
fn name(message: &[u8]) -> Option<Hello<'_>> {
    let mut reader = Reader(message.get(4..)?);
    reader.take(2 + 32)?;
    reader.vector(1)?;
    reader.vector(2)?;
    reader.vector(1)?;
    if reader.0.is_empty() {
        return Some(Hello::Unnamed);
    }
    let mut extensions = reader.vector(2)?;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let mut body = extensions.vector(2)?;
        if kind == usize::from(SERVER_NAME) {
            let mut names = body.vector(2)?;
            while !names.0.is_empty() {
                let kind = names.number(1)?;
                let name = names.vector(2)?;
                if kind == 0 {
                    return Some(Hello::Name(name.0));
                }
            }
        }
    }
    Some(Hello::Unnamed)
}

/// Reads the beginning of a stream; `whole` holds the message that it is put together in.
pub(crate) fn hello<'a>(stream: &[u8], whole: &'a mut Vec<u8>) -> Hello<'a> {
    match message(stream, whole) {
        None => Hello::Other,
        Some(false) => Hello::More,
        Some(true) => name(whole).unwrap_or(Hello::Other),
    }
}

/// Reads the beginning of a stream that has no records, as in QUIC.
pub(crate) fn bare_hello(stream: &[u8]) -> Hello<'_> {
    match length(stream) {
        None => Hello::Other,
        Some(length) if length > stream.len() => Hello::More,
        Some(length) => name(&stream[..length]).unwrap_or(Hello::Other),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn with_length(bytes: usize, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32).to_be_bytes();
        [&length[4 - bytes..], body].concat()
    }

    /// A client's first message, in records of so many bytes.
    pub(crate) fn client_hello(name: &str, record: usize) -> Vec<u8> {
        let entry = [&[0][..], &with_length(2, name.as_bytes())].concat();
        let server_name = with_length(2, &with_length(2, &entry));
        let other = with_length(2, b"xyz");
        let extensions = [&[0, 43][..], &other, &[0, 0], &server_name].concat();
        let ciphers = with_length(2, &[0x13, 1]);
        let methods = with_length(1, &[0]);
        let session = with_length(1, &[7; 32]);
        let extensions = with_length(2, &extensions);
        let body = [&[3, 3][..], &[9; 32], &session, &ciphers, &methods, &extensions].concat();
        let message = [&[CLIENT_HELLO][..], &with_length(3, &body)].concat();
        let records =
            message.chunks(record).map(|part| [&[22, 3, 1][..], &with_length(2, part)].concat());
        records.collect::<Vec<_>>().concat()
    }

    #[test]
    fn the_name_is_found_however_the_message_is_split() {
        for record in [1000, 100, 7, 1] {
            let stream = client_hello("www.example.com", record);
            let mut whole = Vec::new();
            assert_eq!(hello(&stream, &mut whole), Hello::Name(b"www.example.com"));
            for end in 0..stream.len() {
                assert_eq!(hello(&stream[..end], &mut whole), Hello::More, "{end}");
            }
        }
        let bare = &client_hello("www.example.com", 1000)[5..];
        assert_eq!(bare_hello(bare), Hello::Name(b"www.example.com"));
        assert!((0..bare.len()).all(|end| bare_hello(&bare[..end]) == Hello::More));
        assert_eq!(bare_hello(b"\x02"), Hello::Other);
    }

    #[test]
    fn other_streams_are_other() {
        let mut whole = Vec::new();
        for text in [&b"GET / HTTP/1.1\r\n"[..], &[22, 2, 0], &[21, 3, 1], &[22, 3, 1, 0, 1, 2]] {
            assert_eq!(hello(text, &mut whole), Hello::Other);
        }
        let mut stream = client_hello("a", 1000);
        let at = stream.len() - 6;
        stream[at] = 99;
        assert_eq!(hello(&stream, &mut whole), Hello::Other);
    }
}
