//! Blocks of pcapng (draft-ietf-opsawg-pcapng), and captures of several interfaces.

use std::io::{self, Write};

use super::{LinkType, MAX_CAPTURED_LEN};

/// The option of any block that holds a comment.
pub(super) const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const TIME_RESOLUTION: u16 = 9;
const FILTER: u16 = 11;
const QUEUE: u16 = 6;
const RECEIVED: u16 = 4;
const DROPPED: u16 = 5;

/// Adds an option to a block's body.
pub(super) fn put_option(body: &mut Vec<u8>, code: u16, value: &[u8]) -> io::Result<()> {
    let length = u16::try_from(value.len()).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, "a pcapng comment has at most 65535 bytes")
    })?;
    body.extend(code.to_ne_bytes());
    body.extend(length.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
    Ok(())
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 12) as u32;
    let [kind, length] = [kind, length].map(u32::to_ne_bytes);
    [&kind, &length, body, &length].concat()
}

/// Ends a list of options.
fn end(options: &mut Vec<u8>) {
    if !options.is_empty() {
        options.extend([0; 4]);
    }
}

/// A section header with these options.
pub(super) fn section(mut options: Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = 0x1a2b_3c4du32.to_ne_bytes().to_vec();
    body.extend(1u16.to_ne_bytes());
    body.extend(0u16.to_ne_bytes());
    body.extend(u64::MAX.to_ne_bytes()); // the section's length is not known
    end(&mut options);
    body.extend(options);
    Ok(block(0x0a0d_0d0a, &body))
}

/// The description of an interface whose times are nanoseconds, with these options.
pub(super) fn interface(
    link_type: LinkType,
    snap_length: u32,
    mut options: Vec<u8>,
) -> io::Result<Vec<u8>> {
    let link_type = u16::try_from(link_type.0).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("pcapng has no {link_type}"))
    })?;
    let mut body = link_type.to_ne_bytes().to_vec();
    body.extend([0; 2]);
    body.extend(snap_length.to_ne_bytes());
    put_option(&mut options, TIME_RESOLUTION, &[9])?;
    end(&mut options);
    body.extend(options);
    Ok(block(1, &body))
}

/// What stands before a packet's bytes, how many bytes of padding follow them, and the block's
/// length, which stands at its end; options of so many bytes stand in between.
pub(super) fn packet(
    interface: u32,
    timestamp_ns: u64,
    captured: usize,
    original_len: u32,
    options: usize,
) -> ([u8; 28], usize, [u8; 4]) {
    let padding = captured.next_multiple_of(4) - captured;
    let length = (32 + captured + padding + options) as u32;
    let (high, low) = ((timestamp_ns >> 32) as u32, timestamp_ns as u32);
    let words = [6, length, interface, high, low, captured as u32, original_len];
    let mut head = [0; 28];
    head.copy_from_slice(words.map(u32::to_ne_bytes).as_flattened());
    (head, padding, length.to_ne_bytes())
}

/// What packets of a capture came by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceOptions {
    /// Its name.
    pub name: String,
    /// What it is, for people; may be empty.
    pub description: String,
    /// What its packets were chosen by, in words; may be empty.
    pub filter: String,
}

/// Writes a capture of several interfaces, in the machine's byte order. Each block goes to `W` by
/// itself, so whatever was written before an end is complete.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    write: W,
    interfaces: u32,
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a capture that was made by a program, with a comment.
    ///
    /// # Errors
    /// If it cannot be written, or a text is too long.
    pub fn new(mut write: W, program: &str, comment: &str) -> io::Result<Self> {
        let mut options = Vec::new();
        put_option(&mut options, COMMENT, comment.as_bytes())?;
        put_option(&mut options, USER_APPLICATION, program.as_bytes())?;
        write.write_all(&section(options)?)?;
        Ok(Self { write, interfaces: 0 })
    }

    /// Adds an interface; gives its number. `snap_length` is in bytes, 0 for no limit.
    ///
    /// # Errors
    /// If it cannot be written, a text is too long, or pcapng has no such link type.
    pub fn interface(
        &mut self,
        link_type: LinkType,
        snap_length: u32,
        about: &InterfaceOptions,
    ) -> io::Result<u32> {
        let mut options = Vec::new();
        for (code, text) in [(NAME, &about.name), (DESCRIPTION, &about.description)] {
            if !text.is_empty() {
                put_option(&mut options, code, text.as_bytes())?;
            }
        }
        if !about.filter.is_empty() {
            // The first byte says that what follows is text.
            put_option(&mut options, FILTER, &[&[0], about.filter.as_bytes()].concat())?;
        }
        self.write.write_all(&interface(link_type, snap_length, options)?)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes a packet of an interface that came by a queue of it. It had `original_len` bytes, of
    /// which `data` are the first, at a time in nanoseconds since 1970.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn packet(
        &mut self,
        interface: u32,
        queue: u32,
        timestamp_ns: u64,
        data: &[u8],
        original_len: u32,
    ) -> io::Result<()> {
        let data = &data[..data.len().min(MAX_CAPTURED_LEN as usize)];
        let mut options = Vec::new();
        put_option(&mut options, QUEUE, &queue.to_ne_bytes())?;
        end(&mut options);
        let (head, padding, length) =
            packet(interface, timestamp_ns, data.len(), original_len, options.len());
        self.write.write_all(&[&head, data, &[0; 3][..padding], &options, &length].concat())
    }

    /// Writes how many packets an interface had and how many of them are missing.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn statistics(
        &mut self,
        interface: u32,
        timestamp_ns: u64,
        received: u64,
        dropped: u64,
    ) -> io::Result<()> {
        let words = [interface, (timestamp_ns >> 32) as u32, timestamp_ns as u32];
        let mut body = words.map(u32::to_ne_bytes).concat();
        let mut options = Vec::new();
        put_option(&mut options, RECEIVED, &received.to_ne_bytes())?;
        put_option(&mut options, DROPPED, &dropped.to_ne_bytes())?;
        end(&mut options);
        body.extend(options);
        self.write.write_all(&block(5, &body))
    }

    /// Where it is written to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.write
    }
}
