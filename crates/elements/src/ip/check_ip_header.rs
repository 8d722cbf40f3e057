//! CheckIPHeader and CheckIPHeader2.

use click::config::Argument;
use ir::field::{anno, ip, meta};
use ir::model::Block;
use ir::{Base, Cond, Expr, IntervalSet, Op, Reason};
use net::wire::Ipv4;
use net::{Header, Packet, annotation};

use crate::argument::{Ip, IpMask, parse_integer};
use crate::configure::{Arguments, Configure, Failed};
use crate::header_check::{Check, HeaderCheck, Reasons};
use crate::ip::ip_header;

element! {
    /// CheckIPHeader([OFFSET, KEYWORDS]) -- checks IP headers and marks them
    ///
    /// Looks at the IP header OFFSET bytes (by default 0) behind the start of the data. A packet
    /// is invalid if it is too short, its version is not 4, its header length or total length
    /// cannot be, its checksum is wrong, or its source address is one that no packet may have.
    /// Invalid packets go to output 1, or are dropped if that is not connected. On valid packets
    /// the header is marked, the destination address annotation is set, and bytes beyond the
    /// total length, such as Ethernet padding, are cut off.
    ///
    /// = KEYWORDS
    ///
    /// INTERFACES (list of ADDR/LENGTH): the router's own addresses. Their networks' broadcast
    /// addresses, 0.0.0.0 and 255.255.255.255 become bad sources (RFC 1812, 5.3.7), but packets
    /// to the addresses themselves may have them.
    /// BADSRC (list of ADDR): further bad sources.
    /// GOODDST (list of ADDR): destinations that bad sources may send to.
    /// OFFSET (number, default 0): where the header starts.
    /// CHECKSUM (bool, default true): whether the checksum is checked.
    /// VERBOSE (bool, default false): whether a message is shown for each invalid packet.
    /// DETAILS (bool, default false): whether there is a handler drop_details.
    ///
    /// = HANDLERS
    ///
    /// count (read): valid packets.
    /// drops (read): invalid packets.
    /// drop_details (read): invalid packets by reason.
    ///
    /// = SEE ALSO
    ///
    /// MarkIPHeader, CheckIPHeader2, SetIPChecksum, CheckTCPHeader, CheckUDPHeader, CheckICMPHeader
    CheckIPHeader {
        category: Ip, ports: "1/1-2", processing: "a/ah",
        samples: [
            ("", 1, 1), ("", 1, 2), ("14", 1, 2), ("CHECKSUM false", 1, 2),
            ("INTERFACES 10.0.0.1/24 18.26.4.9/16, BADSRC 10.0.0.2, DETAILS true", 1, 2),
            ("18.26.4.9 10.0.0.1, 0", 1, 1)
        ]
    }
}

/// See [`CheckIPHeader::CLASS`].
pub(crate) struct CheckIPHeader;

element! {
    /// CheckIPHeader2([OFFSET, KEYWORDS]) -- checks IP headers except their checksum
    ///
    /// Does what CheckIPHeader does, but CHECKSUM is false by default.
    ///
    /// = SEE ALSO
    ///
    /// CheckIPHeader
    CheckIPHeader2 {
        category: Ip, ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 2), ("CHECKSUM true", 1, 1)]
    }
}

/// Makes a [`CheckIPHeader`]: see [`CheckIPHeader2::CLASS`].
pub(crate) struct CheckIPHeader2;

impl CheckIPHeader2 {
    fn configure(cx: &mut Configure<'_>) -> Result<HeaderCheck<ValidHeader>, Failed> {
        CheckIPHeader::with_default(cx, false)
    }
}

impl CheckIPHeader {
    fn configure(cx: &mut Configure<'_>) -> Result<HeaderCheck<ValidHeader>, Failed> {
        Self::with_default(cx, true)
    }

    fn with_default(
        cx: &mut Configure<'_>,
        checksum: bool,
    ) -> Result<HeaderCheck<ValidHeader>, Failed> {
        let mut arguments = cx.arguments(&[
            "INTERFACES",
            "BADSRC",
            "GOODDST",
            "OFFSET",
            "CHECKSUM",
            "VERBOSE",
            "DETAILS",
        ]);
        let mut header = ValidHeader { checksum, ..ValidHeader::default() };
        header.read_lists(&mut arguments);
        // Older configurations give bad sources as the first of one or two arguments.
        let mut first = arguments.next_plain();
        let is_list = first.as_ref().is_some_and(|a| parse_integer(&a.text).is_none());
        if let Some(list) = first.take_if(|_| is_list || arguments.remaining() > 0) {
            header.read_bad_sources(&mut arguments, &list);
            first = arguments.next_plain();
        }
        if let Some(offset) = first.or_else(|| arguments.keyword_argument("OFFSET")) {
            header.offset = ip_header::parse_offset(&mut arguments, "OFFSET", &offset);
        }
        header.checksum = arguments.keyword("CHECKSUM").unwrap_or(header.checksum);
        HeaderCheck::configure(arguments, "IP", REASONS, header)
    }
}

/// The packet is shorter than an IP header.
const TINY: Reason = Reason("tiny-packet");
/// The version is not 4, or not 6 where IPv6 is expected.
const VERSION: Reason = Reason("bad-ip-version");
/// The IP header length is below 20 bytes or beyond the packet.
const HEADER_LENGTH: Reason = Reason("bad-ip-header-length");
/// The IP length is below the header length or beyond the packet.
const LENGTH: Reason = Reason("bad-ip-length");
/// The IP header checksum is wrong.
const CHECKSUM: Reason = Reason("bad-ip-checksum");
/// The source address is not a valid one for a sender.
const SOURCE: Reason = Reason("bad-source-address");

const REASONS: Reasons = &[
    (TINY, "tiny packet"),
    (VERSION, "bad IP version"),
    (HEADER_LENGTH, "bad IP header length"),
    (LENGTH, "bad IP length"),
    (CHECKSUM, "bad IP checksum"),
    (SOURCE, "bad source address"),
];

/// Whether the checksum of a header without options is right, unless the header is all zeros.
///
/// Its ones' complement sum is then 0xffff, in whichever byte order: what is summed up, as a plain
/// number, is a multiple of that.
#[inline]
fn sums_up(header: &[u8; 20]) -> bool {
    let (words, _) = header.as_chunks::<4>();
    let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    sum.is_multiple_of(0xffff)
}

/// The first byte of nearly all headers: version 4, and no options.
const PLAIN: u8 = 0x45;

/// Sources that a list of bad sources always holds.
const NEVER_SOURCES: [u32; 2] = [0, u32::MAX];

/// A few addresses. One bit of a hash rules out nearly all others.
#[derive(Default)]
pub(crate) struct AddressList {
    list: Vec<u32>,
    /// The bits of those in the list.
    bits: u64,
}

impl AddressList {
    #[inline]
    fn bit(address: u32) -> u64 {
        1 << (address.wrapping_mul(0x9e37_79b1) >> 26)
    }

    #[inline]
    fn contains(&self, address: u32) -> bool {
        self.bits & Self::bit(address) != 0 && self.list.contains(&address)
    }
}

impl Extend<u32> for AddressList {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, addresses: I) {
        for address in addresses {
            self.list.push(address);
            self.bits |= Self::bit(address);
        }
    }
}

/// What makes an IP header valid.
#[derive(Default)]
pub(crate) struct ValidHeader {
    /// Where the header starts.
    pub(crate) offset: u16,
    /// Whether the checksum counts.
    pub(crate) checksum: bool,
    /// Sources that no packet may have …
    pub(crate) bad_sources: AddressList,
    /// … unless it goes to one of these.
    pub(crate) good_destinations: Vec<u32>,
}

impl ValidHeader {
    /// Takes the keywords INTERFACES, BADSRC and GOODDST, which the caller has declared.
    pub(crate) fn read_lists(&mut self, arguments: &mut Arguments<'_, '_>) {
        if let Some(list) = arguments.keyword_argument("INTERFACES") {
            for word in list.words() {
                let network = arguments.parse::<IpMask>("INTERFACES", &word).unwrap_or_default();
                self.bad_sources.extend([network.address & network.mask | !network.mask]);
                self.good_destinations.push(network.address);
            }
            self.bad_sources.extend(NEVER_SOURCES);
        }
        if let Some(list) = arguments.keyword_argument("BADSRC") {
            self.bad_sources.extend(addresses(arguments, "BADSRC", &list));
        }
        if let Some(list) = arguments.keyword_argument("GOODDST") {
            self.good_destinations.extend(addresses(arguments, "GOODDST", &list));
        }
    }

    /// Takes a list of bad sources to which those that are always bad are added.
    pub(crate) fn read_bad_sources(&mut self, arguments: &mut Arguments<'_, '_>, list: &Argument) {
        self.bad_sources.extend(addresses(arguments, "BADSRC", list));
        self.bad_sources.extend(NEVER_SOURCES);
    }

    /// Checks any header, and says what is wrong.
    #[cold]
    #[inline(never)]
    fn check_any(&self, packet: &mut Packet) -> Result<(), Reason> {
        let offset = usize::from(self.offset);
        let bytes = packet.data().get(offset..).unwrap_or(&[]);
        let ip = Ipv4::new(bytes).ok_or(TINY)?;
        if ip.version() != 4 {
            return Err(VERSION);
        }
        let header_length = ip.header_len();
        if header_length < 20 {
            return Err(HEADER_LENGTH);
        }
        let length = usize::from(ip.total_len());
        if length > bytes.len() || length < header_length {
            return Err(LENGTH);
        }
        if self.checksum && !ip.checksum_ok() {
            return Err(CHECKSUM);
        }
        let (source, destination) = (ip.src().to_bits(), ip.dst().to_bits());
        if self.bad_sources.contains(source) && !self.good_destinations.contains(&destination) {
            return Err(SOURCE);
        }
        packet.set_ip_header(offset, header_length);
        packet.truncate(offset + length);
        packet.annotations_mut().set_u32(annotation::DST_IP, destination);
        Ok(())
    }
}

impl Check for ValidHeader {
    #[inline(always)]
    fn check(&self, packet: &mut Packet) -> Result<(), Reason> {
        let offset = usize::from(self.offset);
        let header = packet.window::<20>(i32::from(self.offset));
        // Nearly all headers are valid and have no options.
        let Some(header) = header.filter(|header| header[0] == PLAIN) else {
            return self.check_any(packet);
        };
        let ip = Ipv4::of(header);
        let length = usize::from(ip.total_len());
        let sum_is_right = !self.checksum || sums_up(header);
        let (source, destination) = (ip.src().to_bits(), ip.dst().to_bits());
        let fits = 20 <= length && offset + length <= packet.len();
        if !fits || !sum_is_right || self.bad_sources.contains(source) {
            return self.check_any(packet);
        }
        packet.set_ip_header(offset, 20);
        packet.truncate(offset + length);
        packet.annotations_mut().set_u32(annotation::DST_IP, destination);
        Ok(())
    }

    fn model(&self, invalid: &dyn Fn(Reason) -> Block) -> Block {
        let field = |field| Expr::from(ip_header::unmarked(field, self.offset));
        let header_length = || field(ip::HL) * 4u8;
        let length = || field(ip::LEN);
        let unless = |reason, valid: Cond| Op::when(valid.not(), invalid(reason));
        let mut block = vec![
            unless(TINY, meta::LEN.ge(self.offset + 20)),
            unless(VERSION, field(ip::VERSION).eq(4u8)),
            unless(HEADER_LENGTH, field(ip::HL).ge(5u8)),
            unless(
                LENGTH,
                length().le(meta::LEN.get() - self.offset).and(length().ge(header_length())),
            ),
        ];
        if self.checksum {
            let sum = Expr::sum16(Base::Data, self.offset, header_length());
            block.push(unless(CHECKSUM, sum.eq(0xffffu16)));
        }
        if !self.bad_sources.list.is_empty() {
            let bad = field(ip::SRC).is_in(set_of(&self.bad_sources.list));
            let good = field(ip::DST).is_in(set_of(&self.good_destinations));
            block.push(unless(SOURCE, bad.not().or(good)));
        }
        block.extend([
            Op::Mark(Header::Network, self.offset.into()),
            Op::Mark(Header::Transport, header_length() + self.offset),
            Op::Truncate(length() + self.offset),
            anno::DST_IP.set(ip::DST),
        ]);
        block
    }
}

fn addresses(arguments: &mut Arguments<'_, '_>, name: &str, list: &Argument) -> Vec<u32> {
    let parse = |word| arguments.parse::<Ip>(name, &word).unwrap_or_default().0.to_bits();
    list.words().map(parse).collect()
}

/// A set of addresses.
fn set_of(list: &[u32]) -> IntervalSet {
    IntervalSet::from_intervals(list.iter().map(|&a| (a.into(), a.into())).collect())
}
