use super::source::Source;
use super::{Error, ErrorKind, FilePart, LinkType, MAX_CAPTURED_LEN};
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

// Records up to this length pass even where the file announces a shorter snap length, as some writers do.
const LENIENT_SNAP_LEN: u32 = 0xffff;

const FILE_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;
const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
// The other bits hold the length of a frame check sequence.
const LINK_TYPE_BITS: u32 = 0x03ff_ffff;

// pcapng blocks: type, total length, body, total length again.
const BLOCK_HEADER_LEN: usize = 8;
const BLOCK_OVERHEAD: usize = 12;
const BYTE_ORDER_MARK: u32 = 0x1a2b_3c4d;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
// The longest block that is taken in whole; blocks of unknown types may be longer.
const MAX_BLOCK_LEN: u32 = MAX_CAPTURED_LEN + (1 << 20);
const OPTION_END: u16 = 0;
const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

/// What a capture says about one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// Nanoseconds since 1970-01-01T00:00Z; 0 where the format has no time (pcapng's simple packets).
    pub timestamp_ns: u64,
    /// Bytes in the record.
    pub captured_len: u32,
    /// Bytes that the packet had on the wire.
    pub original_len: u32,
    /// What the bytes begin with.
    pub link_type: LinkType,
    /// Index of the interface in the pcapng section; 0 in pcap.
    pub interface: u32,
}

/// A packet, borrowed from its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// What the capture says about the packet.
    pub header: RecordHeader,
    /// The captured bytes.
    pub data: &'a [u8],
}

/// Where packets of a capture come from: the one interface of a pcap file, or one of a pcapng section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// What its packets begin with.
    pub link_type: LinkType,
    /// Bytes of a packet that are kept at most; 0 if all.
    pub snap_length: u32,
    clock: Clock,
}

/// How timestamps count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    // As in pcapng's if_tsresol: a power of ten, or of two with the highest bit set.
    resolution: u8,
    offset_seconds: i64,
}

impl Clock {
    const MICROSECONDS: Clock = Clock { resolution: 6, offset_seconds: 0 };

    fn nanoseconds(self, ticks: u64) -> u64 {
        let exponent = u32::from(self.resolution & 0x7f);
        let ns = if self.resolution & 0x80 != 0 {
            (u128::from(ticks) * 1_000_000_000) >> exponent
        } else if exponent <= 9 {
            u128::from(ticks) * 10u128.pow(9 - exponent)
        } else {
            10u128.checked_pow(exponent - 9).map_or(0, |divisor| u128::from(ticks) / divisor)
        };
        let ns =
            ns.min(u128::from(u64::MAX)) as i128 + i128::from(self.offset_seconds) * 1_000_000_000;
        ns.clamp(0, u64::MAX.into()) as u64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    // The number at a constant offset of bytes that are known to be there.
    #[inline]
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = [bytes[at], bytes[at + 1]];
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    fn i64(self, bytes: [u8; 8]) -> i64 {
        match self {
            Order::Little => i64::from_le_bytes(bytes),
            Order::Big => i64::from_be_bytes(bytes),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Pcap { nanoseconds: bool },
    Pcapng,
}

/// Reads the packets of a capture in order.
pub struct Reader<R> {
    source: Source<R>,
    layout: Layout,
    order: Order,
    interfaces: Vec<Interface>,
    ended: bool,
}

impl<R> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("layout", &self.layout)
            .field("order", &self.order)
            .field("interfaces", &self.interfaces)
            .field("offset", &self.source.offset())
            .finish_non_exhaustive()
    }
}

impl Reader<io::Empty> {
    /// Starts on a whole file in memory; its packets are not copied, unless the file is compressed.
    pub fn in_memory(bytes: Vec<u8>) -> Result<Self, Error> {
        Self::start(Source::in_memory(bytes))
    }
}

impl<R: Read> Reader<R> {
    /// Starts on a capture, reading what comes before the first packet. Reads are of many kilobytes; there is no
    /// use in buffering them.
    pub fn open(read: R) -> Result<Self, Error> {
        Self::start(Source::new(read))
    }

    fn start(source: Source<R>) -> Result<Self, Error> {
        let mut reader = Reader {
            source,
            layout: Layout::Pcapng,
            order: Order::Little,
            interfaces: vec![],
            ended: false,
        };
        if reader.source.want(4) == 0 {
            return Err(reader.cut_off(FilePart::FileHeader, 0, 4).unless_io(ErrorKind::Empty));
        }
        reader.have(FilePart::FileHeader, 4)?;
        let window = reader.source.window();
        let magic = [window[0], window[1], window[2], window[3]];
        for (order, number) in
            [(Order::Little, u32::from_le_bytes(magic)), (Order::Big, u32::from_be_bytes(magic))]
        {
            match number {
                MAGIC_MICROSECONDS => return reader.start_pcap(order, false),
                MAGIC_NANOSECONDS => return reader.start_pcap(order, true),
                SECTION_HEADER => return reader.start_pcapng(),
                _ => {}
            }
        }
        Err(Error { offset: 0, kind: ErrorKind::NotACapture(magic) })
    }

    fn start_pcap(mut self, order: Order, nanoseconds: bool) -> Result<Self, Error> {
        self.have(FilePart::FileHeader, FILE_HEADER_LEN)?;
        let header = self.source.window();
        let (major, minor) = (order.u16(header, 4), order.u16(header, 6));
        if major != 2 {
            return Err(Error { offset: 0, kind: ErrorKind::Version(major, minor) });
        }
        self.interfaces.push(Interface {
            link_type: LinkType(order.u32(header, 20) & LINK_TYPE_BITS),
            snap_length: order.u32(header, 16),
            clock: Clock::MICROSECONDS,
        });
        self.source.consume(FILE_HEADER_LEN);
        (self.layout, self.order) = (Layout::Pcap { nanoseconds }, order);
        Ok(self)
    }

    // Reads up to the first packet, so that the interfaces before it are known.
    fn start_pcapng(mut self) -> Result<Self, Error> {
        while !self.at_packet_block()? {
            if !self.pass_block()? {
                break;
            }
        }
        Ok(self)
    }

    /// The next packet, or `None` at the end; the data are good until the next call. Nothing is read after an
    /// error.
    #[inline]
    #[allow(clippy::should_implement_trait)] // it lends, which an iterator cannot
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        Ok(self.advance()?.map(|(header, data)| Record { header, data: self.source.bytes(data) }))
    }

    /// Passes over so many bytes of the (decompressed) file. In a pcap file a packet should begin behind them, in
    /// a pcapng file a block; if none does, what is read means nothing.
    pub fn skip(&mut self, bytes: u64) {
        self.ended |= self.source.skip(bytes) < bytes;
    }

    /// The next packet, or `None` at the end; its data replace what is in `data`.
    #[inline]
    pub fn next_record(&mut self, data: &mut Vec<u8>) -> Result<Option<RecordHeader>, Error> {
        data.clear();
        Ok(self.next()?.map(|record| {
            data.extend_from_slice(record.data);
            record.header
        }))
    }

    #[inline]
    fn advance(&mut self) -> Result<Option<(RecordHeader, Range<usize>)>, Error> {
        if self.ended {
            return Ok(None);
        }
        let result = match self.layout {
            Layout::Pcap { nanoseconds } => self.advance_pcap(nanoseconds),
            Layout::Pcapng => self.advance_pcapng(),
        };
        self.ended = !matches!(result, Ok(Some(_)));
        result
    }

    #[inline]
    fn advance_pcap(
        &mut self,
        nanoseconds: bool,
    ) -> Result<Option<(RecordHeader, Range<usize>)>, Error> {
        if self.source.want(RECORD_HEADER_LEN) < RECORD_HEADER_LEN {
            return self.end(FilePart::Record, RECORD_HEADER_LEN).map(|()| None);
        }
        let offset = self.source.offset();
        let (order, interface, header) = (self.order, self.interfaces[0], self.source.window());
        let seconds = u64::from(order.u32(header, 0));
        let fraction = u64::from(order.u32(header, 4));
        let header = RecordHeader {
            timestamp_ns: seconds * 1_000_000_000
                + if nanoseconds { fraction } else { fraction * 1000 },
            captured_len: order.u32(header, 8),
            original_len: order.u32(header, 12),
            link_type: interface.link_type,
            interface: 0,
        };
        let kind = length_error(header.captured_len, interface.snap_length);
        if let Some(kind) = kind {
            return Err(Error { offset, kind });
        }
        let length = header.captured_len as usize;
        self.have(FilePart::Record, RECORD_HEADER_LEN + length)?;
        self.source.consume(RECORD_HEADER_LEN);
        Ok(Some((header, self.source.consume(length))))
    }

    fn advance_pcapng(&mut self) -> Result<Option<(RecordHeader, Range<usize>)>, Error> {
        while !self.at_packet_block()? {
            if !self.pass_block()? {
                return Ok(None);
            }
        }
        self.packet_block().map(Some)
    }

    // At the end of the file, or at a block of whose header it then holds all.
    fn at_packet_block(&mut self) -> Result<bool, Error> {
        if self.source.want(BLOCK_HEADER_LEN) < BLOCK_HEADER_LEN {
            self.end(FilePart::Block, BLOCK_HEADER_LEN)?;
            return Ok(false);
        }
        let block = self.order.u32(self.source.window(), 0);
        Ok(matches!(block, OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET))
    }

    // Takes in the whole block at hand, whose header is there; returns its length.
    fn whole_block(&mut self, part: FilePart, least_body: usize) -> Result<usize, Error> {
        let offset = self.source.offset();
        let length = self.order.u32(self.source.window(), 4);
        let bad = |kind| Err(Error { offset, kind });
        if !length.is_multiple_of(4) || (length as usize) < BLOCK_OVERHEAD + least_body {
            return bad(ErrorKind::BadBlockLength(length));
        }
        if length > MAX_BLOCK_LEN {
            return bad(match part {
                FilePart::Record => ErrorKind::TooLong(length),
                _ => ErrorKind::BadBlockLength(length),
            });
        }
        let length = length as usize;
        self.have(part, length)?;
        let repeated = self.order.u32(self.source.window(), length - 4);
        if repeated as usize != length {
            return bad(ErrorKind::BadBlockLength(length as u32));
        }
        Ok(length)
    }

    // Passes a block that is no packet; false at the end of the file.
    fn pass_block(&mut self) -> Result<bool, Error> {
        let window = self.source.window();
        if window.is_empty() {
            return Ok(false);
        }
        match self.order.u32(window, 0) {
            SECTION_HEADER => self.section_header()?,
            INTERFACE_DESCRIPTION => self.interface_description()?,
            _ => {
                let offset = self.source.offset();
                let length = self.order.u32(window, 4);
                if !length.is_multiple_of(4) || (length as usize) < BLOCK_OVERHEAD {
                    return Err(Error { offset, kind: ErrorKind::BadBlockLength(length) });
                }
                let present = self.source.skip(length.into());
                if present < length.into() {
                    let mut error = self.cut_off(FilePart::Block, present, length.into());
                    error.offset = offset;
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    fn section_header(&mut self) -> Result<(), Error> {
        let offset = self.source.offset();
        self.have(FilePart::Block, BLOCK_OVERHEAD)?;
        let mark = self.source.window()[8..12].try_into().expect("4 bytes");
        self.order = match (u32::from_le_bytes(mark), u32::from_be_bytes(mark)) {
            (BYTE_ORDER_MARK, _) => Order::Little,
            (_, BYTE_ORDER_MARK) => Order::Big,
            _ => return Err(Error { offset, kind: ErrorKind::BadByteOrderMark(mark) }),
        };
        let length = self.whole_block(FilePart::Block, 16)?;
        let window = self.source.window();
        let (major, minor) = (self.order.u16(window, 12), self.order.u16(window, 14));
        if major != 1 {
            return Err(Error { offset, kind: ErrorKind::Version(major, minor) });
        }
        self.interfaces.clear();
        self.source.consume(length);
        Ok(())
    }

    fn interface_description(&mut self) -> Result<(), Error> {
        let length = self.whole_block(FilePart::Block, 8)?;
        let (order, block) = (self.order, self.source.window());
        let mut interface = Interface {
            link_type: LinkType(order.u16(block, 8).into()),
            snap_length: order.u32(block, 12),
            clock: Clock::MICROSECONDS,
        };
        // Options that do not fit end the list: they do not concern the packets.
        let mut options = &block[16..length - 4];
        while let Some((&[a, b, c, d], rest)) = options.split_first_chunk() {
            let (code, length) = (order.u16(&[a, b], 0), usize::from(order.u16(&[c, d], 0)));
            let Some(value) = rest.get(..length) else { break };
            match (code, value) {
                (OPTION_END, _) => break,
                (OPTION_TIME_RESOLUTION, &[resolution]) => interface.clock.resolution = resolution,
                (OPTION_TIME_OFFSET, value) => {
                    if let Ok(bytes) = value.try_into() {
                        interface.clock.offset_seconds = order.i64(bytes);
                    }
                }
                _ => {}
            }
            options = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        self.interfaces.push(interface);
        self.source.consume(length);
        Ok(())
    }

    // The block at hand is a packet's and its header is there.
    fn packet_block(&mut self) -> Result<(RecordHeader, Range<usize>), Error> {
        let offset = self.source.offset();
        let kind = self.order.u32(self.source.window(), 0);
        let fixed = if kind == SIMPLE_PACKET { 4 } else { 20 };
        let length = self.whole_block(FilePart::Record, fixed)?;
        let (order, block) = (self.order, self.source.window());
        let index = match kind {
            SIMPLE_PACKET => 0,
            ENHANCED_PACKET => order.u32(block, 8),
            _ => order.u16(block, 8).into(),
        };
        let Some(&interface) = self.interfaces.get(index as usize) else {
            let described = self.interfaces.len();
            return Err(Error { offset, kind: ErrorKind::UnknownInterface { index, described } });
        };
        let room = length - BLOCK_OVERHEAD - fixed;
        let (ticks, captured_len, original_len) = if kind == SIMPLE_PACKET {
            // The captured length is not in the block: it is the original length, cut by the snap length.
            let original = order.u32(block, 8);
            let snap = if interface.snap_length == 0 { u32::MAX } else { interface.snap_length };
            (None, original.min(snap), original)
        } else {
            let ticks = u64::from(order.u32(block, 12)) << 32 | u64::from(order.u32(block, 16));
            (Some(ticks), order.u32(block, 20), order.u32(block, 24))
        };
        let error = match length_error(captured_len, interface.snap_length) {
            None if captured_len as usize > room => Some(ErrorKind::BadBlockLength(length as u32)),
            error => error,
        };
        if let Some(kind) = error {
            return Err(Error { offset, kind });
        }
        let header = RecordHeader {
            timestamp_ns: ticks.map_or(0, |ticks| interface.clock.nanoseconds(ticks)),
            captured_len,
            original_len,
            link_type: interface.link_type,
            interface: index,
        };
        let block = self.source.consume(length);
        let from = block.start + BLOCK_HEADER_LEN + fixed;
        Ok((header, from..from + captured_len as usize))
    }

    // Makes sure that all of a part of that length is in the window.
    #[inline]
    fn have(&mut self, part: FilePart, length: usize) -> Result<(), Error> {
        let present = self.source.want(length);
        if present < length {
            Err(self.cut_off(part, present as u64, length as u64))
        } else {
            Ok(())
        }
    }

    // The input ends within the next `needed` bytes: cleanly if nothing is left of it.
    #[cold]
    fn end(&mut self, part: FilePart, needed: usize) -> Result<(), Error> {
        let present = self.source.window().len() as u64;
        let error = self.cut_off(part, present, needed as u64);
        if present == 0 && !matches!(error.kind, ErrorKind::Io(..)) { Ok(()) } else { Err(error) }
    }

    #[cold]
    fn cut_off(&mut self, part: FilePart, present: u64, needed: u64) -> Error {
        let kind = match self.source.take_failure() {
            Some(error) => ErrorKind::Io(part, error),
            None => ErrorKind::CutOff { part, needed, present },
        };
        Error { offset: self.source.offset(), kind }
    }
}

impl<R> Reader<R> {
    /// The interfaces that have been described so far: one in a pcap file; in a pcapng file, those of the
    /// section at hand, and before the first packet all those described before it.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// What packets begin with, if the capture has said so and all interfaces agree.
    pub fn link_type(&self) -> Option<LinkType> {
        let (first, others) = self.interfaces.split_first()?;
        others.iter().all(|i| i.link_type == first.link_type).then_some(first.link_type)
    }

    /// How far the capture has been read, in bytes of the (decompressed) file.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }
}

fn length_error(captured: u32, snap_length: u32) -> Option<ErrorKind> {
    if captured > MAX_CAPTURED_LEN {
        Some(ErrorKind::TooLong(captured))
    } else if snap_length != 0 && captured > snap_length.max(LENIENT_SNAP_LEN) {
        Some(ErrorKind::BeyondSnapLength { captured, snap_length })
    } else {
        None
    }
}

impl Error {
    // The same error with another kind, unless reading failed.
    fn unless_io(self, kind: ErrorKind) -> Error {
        match self.kind {
            ErrorKind::Io(..) => self,
            _ => Error { kind, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks() {
        let clock = |resolution, offset_seconds| Clock { resolution, offset_seconds };
        assert_eq!(clock(6, 0).nanoseconds(1_500_000), 1_500_000_000);
        assert_eq!(clock(9, 0).nanoseconds(7), 7);
        assert_eq!(clock(0, 0).nanoseconds(3), 3_000_000_000);
        assert_eq!(clock(12, 0).nanoseconds(7_999), 7);
        assert_eq!(clock(0x80 | 10, 0).nanoseconds(512), 500_000_000);
        assert_eq!(clock(9, 2).nanoseconds(5), 2_000_000_005);
        assert_eq!(clock(0, -5).nanoseconds(7), 2_000_000_000);
        assert_eq!(clock(9, -5).nanoseconds(5), 0);
        assert_eq!(clock(127, 0).nanoseconds(u64::MAX), 0);
        assert_eq!(clock(0xff, 0).nanoseconds(u64::MAX), 0);
        assert_eq!(clock(0, 0).nanoseconds(u64::MAX), u64::MAX);
        assert_eq!(clock(0, i64::MAX).nanoseconds(u64::MAX), u64::MAX);
        assert_eq!(clock(0, i64::MIN).nanoseconds(u64::MAX), 0);
    }
}
