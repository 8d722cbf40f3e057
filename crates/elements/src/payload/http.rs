//! What a payload has of an HTTP/1 message (RFC 9112), without any copy but of what is encoded.

use std::borrow::Cow;

/// A request or a response as far as a payload has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// Of a request: empty for a response.
    pub method: &'a [u8],
    pub target: &'a [u8],
    /// Of a response: empty for a request.
    pub status: &'a [u8],
    pub reason: &'a [u8],
    /// All lines of headers, with what ends them.
    pub headers: &'a [u8],
    /// What comes behind the headers.
    pub body: &'a [u8],
    /// Whether the end of the headers is there.
    pub is_whole: bool,
}

/// Splits at the first of a byte.
fn cut(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = memchr::memchr(at, text)?;
    Some((&text[..place], &text[place + 1..]))
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty()
        && text.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
}

impl<'a> Message<'a> {
    /// Reads the message that a payload begins with, if it does.
    pub(crate) fn of(payload: &'a [u8]) -> Option<Self> {
        // Empty lines before a request are passed over (RFC 9112, 2.2).
        let skipped = payload.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let (line, rest) = cut(&payload[skipped..], b'\n')?;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut message = Self::default();
        if line.starts_with(b"HTTP/1.") {
            let (_, status) = cut(line, b' ')?;
            (message.status, message.reason) = cut(status, b' ').unwrap_or((status, b""));
        } else {
            let (method, more) = cut(line, b' ')?;
            let version = memchr::memrchr(b' ', more)?;
            if !is_token(method) || !more[version + 1..].starts_with(b"HTTP/1.") {
                return None;
            }
            (message.method, message.target) = (method, &more[..version]);
        }
        let mut at = 0;
        while let Some(length) = memchr::memchr(b'\n', &rest[at..]) {
            let line = &rest[at..at + length];
            if line.is_empty() || line == b"\r" {
                (message.headers, message.body) = (&rest[..at], &rest[at + length + 1..]);
                message.is_whole = true;
                return Some(message);
            }
            at += length + 1;
        }
        message.headers = rest;
        Some(message)
    }

    /// Bytes of what comes behind the headers, if they tell (RFC 9112, 6.3).
    pub(crate) fn body_length(&self) -> Option<u64> {
        let is_request = !self.method.is_empty();
        if self.header("transfer-encoding").is_some()
            || self.header("upgrade").is_some()
            || self.method == b"CONNECT"
        {
            return None;
        }
        match self.header("content-length") {
            Some(length) => std::str::from_utf8(length).ok()?.parse::<u32>().ok().map(u64::from),
            None if is_request || self.status.starts_with(b"1") => Some(0),
            None => matches!(self.status, b"204" | b"304").then_some(0),
        }
    }

    /// The value of the first header of that name, in whatever case.
    pub(crate) fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.split(|&b| b == b'\n').find_map(|line| {
            let (of, value) = cut(line, b':')?;
            of.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
        })
    }
}

/// A target with percent-encoded bytes decoded.
pub(crate) fn decoded(target: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', target).is_none() {
        return Cow::Borrowed(target);
    }
    let hex = |b: u8| (b as char).to_digit(16);
    let (mut all, mut at) = (Vec::with_capacity(target.len()), 0);
    while let Some(&b) = target.get(at) {
        let pair = target.get(at + 1..at + 3).and_then(|p| Some(hex(p[0])? << 4 | hex(p[1])?));
        match pair.filter(|_| b == b'%') {
            Some(byte) => {
                all.push(byte as u8);
                at += 3;
            }
            None => {
                all.push(b);
                at += 1;
            }
        }
    }
    Cow::Owned(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_responses_are_taken_apart() {
        let text = b"\r\nGET /a%20b?c HTTP/1.1\r\nhost:  example.com \r\nX: 1\r\n\r\nbody";
        let request = Message::of(text).unwrap();
        assert_eq!((request.method, request.target), (&b"GET"[..], &b"/a%20b?c"[..]));
        assert_eq!(request.header("Host"), Some(&b"example.com"[..]));
        assert_eq!((request.body, request.is_whole), (&b"body"[..], true));
        assert_eq!(&*decoded(request.target), b"/a b?c");
        assert_eq!(&*decoded(b"%4%zz%"), b"%4%zz%");
        let response = Message::of(b"HTTP/1.1 404 Not Found\nServer: x\n").unwrap();
        assert_eq!((response.status, response.reason), (&b"404"[..], &b"Not Found"[..]));
        assert_eq!((response.header("server"), response.is_whole), (Some(&b"x"[..]), false));
        for other in [&b""[..], b"GET / HTTP/1.1", b"hello\r\n", b"GET  /\r\n", b"\x16\x03\x01\n"] {
            assert_eq!(Message::of(other), None);
        }
    }
}
