//! Captures: what is written reads back; every layout reads; broken files give errors and never panic.

use catena_net::pcap::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};

const GZIP: [u8; 2] = [0x1f, 0x8b];

type Packet = (RecordHeader, Vec<u8>);

/// All packets up to the end or the first error.
fn read_all<R: Read>(mut reader: Reader<R>) -> (Vec<Packet>, Option<Error>) {
    let mut packets = vec![];
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                assert_eq!(record.data.len(), record.header.captured_len as usize);
                packets.push((record.header, record.data.to_vec()));
            }
            Ok(None) => return (packets, None),
            Err(error) => {
                assert!(matches!(reader.next(), Ok(None)), "nothing is read after an error");
                return (packets, Some(error));
            }
        }
    }
}

fn read_bytes(bytes: &[u8]) -> (Vec<Packet>, Option<Error>) {
    let in_memory = match Reader::in_memory(bytes.to_vec()) {
        Ok(reader) => read_all(reader),
        Err(error) => (vec![], Some(error)),
    };
    // In pieces, as a pipe would yield it.
    let streamed = match Reader::open(Drip(Cursor::new(bytes))) {
        Ok(reader) => read_all(reader),
        Err(error) => (vec![], Some(error)),
    };
    // How much a decompressor yields before it finds corrupt data depends on the pieces it is given.
    if !bytes.starts_with(&GZIP) || in_memory.1.is_none() {
        assert_eq!(in_memory.0, streamed.0);
        let text = |error: &Option<Error>| error.as_ref().map(Error::to_string);
        assert_eq!(text(&in_memory.1), text(&streamed.1));
    }
    in_memory
}

fn expect_all(bytes: &[u8]) -> Vec<Packet> {
    let (packets, error) = read_bytes(bytes);
    assert!(error.is_none(), "{}", error.unwrap());
    packets
}

fn expect_error(bytes: &[u8]) -> String {
    read_bytes(bytes).1.expect("an error").to_string()
}

/// Yields at most 7 bytes at once.
struct Drip<R>(R);

impl<R: Read> Read for Drip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(7);
        self.0.read(&mut buffer[..room])
    }
}

/// Builds files in either byte order.
#[derive(Clone, Copy, Debug)]
struct Maker {
    big: bool,
}

impl Maker {
    const BOTH: [Maker; 2] = [Maker { big: false }, Maker { big: true }];

    fn u16(self, n: u16) -> [u8; 2] {
        if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn u32(self, n: u32) -> [u8; 4] {
        if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|&word| self.u32(word)).collect()
    }

    fn pcap_header(self, magic: u32, snap: u32, link: u32) -> Vec<u8> {
        let version = [self.u16(2), self.u16(4)].concat();
        [self.u32(magic).to_vec(), version, self.words(&[0, 0, snap, link])].concat()
    }

    fn record(self, time: (u32, u32), data: &[u8], original: u32) -> Vec<u8> {
        [self.words(&[time.0, time.1, data.len() as u32, original]), data.to_vec()].concat()
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = body.len() as u32 + 12;
        [self.words(&[kind, length]), body, self.words(&[length])].concat()
    }

    fn section(self) -> Vec<u8> {
        let version = [self.u16(1), self.u16(0)].concat();
        self.block(0x0a0d0d0a, &[self.words(&[0x1a2b3c4d]), version, vec![0xff; 8]].concat())
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [&self.u16(code)[..], &self.u16(value.len() as u16), value].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    fn interface(self, link: u16, snap: u32, options: &[u8]) -> Vec<u8> {
        let body = [&self.u16(link)[..], &[0, 0], &self.u32(snap), options].concat();
        self.block(1, &body)
    }

    fn enhanced(self, interface: u32, ticks: u64, data: &[u8], original: u32) -> Vec<u8> {
        let words = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, original];
        let mut body = [&self.words(&words)[..], data].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        self.block(6, &[body, self.option(2, &[0, 0, 0, 1])].concat())
    }

    /// A file with every kind of block, two interfaces and two sections.
    fn pcapng(self) -> Vec<u8> {
        let nanoseconds =
            [self.option(2, b"eth0"), self.option(9, &[9]), self.option(0, &[])].concat();
        let obsolete =
            [&self.u16(1)[..], &self.u16(0xffff), &self.words(&[0, 1_000_000, 3, 90]), &[7, 8, 9]];
        [
            self.section(),
            self.block(0x0bad, &[1; 33]),
            self.interface(1, 0, &nanoseconds),
            self.interface(101, 4, &[]),
            self.enhanced(0, 5_000_000_001, b"abcde", 60),
            self.block(4, b"names"),
            self.enhanced(1, 3, b"xyz", 3),
            self.block(3, &[self.words(&[5]), b"spb55".to_vec()].concat()),
            self.block(2, &obsolete.concat()),
            Maker { big: !self.big }.section(),
            Maker { big: !self.big }.interface(113, 96, &[]),
            Maker { big: !self.big }.enhanced(0, 1, b"", 0),
        ]
        .concat()
    }

    fn pcap(self) -> Vec<u8> {
        [
            self.pcap_header(0xa1b2c3d4, 96, 1),
            self.record((1, 500_000), b"first", 5),
            self.record((2, 0), b"", 1500),
            self.record((3, 999_999), &[0x55; 60], 61),
        ]
        .concat()
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn header(timestamp_ns: u64, captured_len: u32, original_len: u32) -> RecordHeader {
    RecordHeader {
        timestamp_ns,
        captured_len,
        original_len,
        link_type: LinkType::ETHERNET,
        interface: 0,
    }
}

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for maker in Maker::BOTH {
        let expected = [
            (header(1_500_000_000, 5, 5), b"first".to_vec()),
            (header(2_000_000_000, 0, 1500), vec![]),
            (header(3_999_999_000, 60, 61), vec![0x55; 60]),
        ];
        assert_eq!(expect_all(&maker.pcap()), expected, "{maker:?}");
        assert_eq!(expect_all(&gzip(&maker.pcap())), expected, "{maker:?}");

        let nano = [maker.pcap_header(0xa1b23c4d, 0, 101), maker.record((1, 7), b"x", 1)].concat();
        let expected = RecordHeader { link_type: LinkType::RAW, ..header(1_000_000_007, 1, 1) };
        assert_eq!(expect_all(&nano), [(expected, b"x".to_vec())]);
    }
}

#[test]
fn link_types() {
    let maker = Maker { big: false };
    for (number, raw) in
        [(1, false), (12, true), (14, true), (101, true), (113, false), (147, false)]
    {
        let reader =
            Reader::in_memory(maker.pcap_header(0xa1b2c3d4, 96, number | 0xf400_0000)).unwrap();
        assert_eq!(reader.link_type(), Some(LinkType(number)));
        assert_eq!(reader.interfaces().len(), 1);
        assert_eq!(LinkType(number).is_raw_ip(), raw);
    }
    assert_eq!(LinkType(147).to_string(), "link type 147");
}

#[test]
fn pcapng_in_both_byte_orders() {
    for maker in Maker::BOTH {
        let bytes = maker.pcapng();
        let of = |interface, link, header| RecordHeader {
            link_type: LinkType(link),
            interface,
            ..header
        };
        let expected = [
            (of(0, 1, header(5_000_000_001, 5, 60)), b"abcde".to_vec()),
            (of(1, 101, header(3_000, 3, 3)), b"xyz".to_vec()),
            (of(0, 1, header(0, 5, 5)), b"spb55".to_vec()),
            (of(1, 101, header(1_000_000_000, 3, 90)), vec![7, 8, 9]),
            (of(0, 113, header(1_000, 0, 0)), vec![]),
        ];
        assert_eq!(expect_all(&bytes), expected, "{maker:?}");
        assert_eq!(expect_all(&gzip(&bytes)), expected, "{maker:?}");
        let reader = Reader::in_memory(bytes).unwrap();
        assert_eq!(reader.interfaces().len(), 2, "known before the first packet");
        assert_eq!(reader.link_type(), None, "they disagree");
    }
}

#[test]
fn simple_packets_are_cut_by_the_snap_length() {
    let maker = Maker { big: false };
    let packet = maker.block(3, &[maker.words(&[1500]), b"abcd".to_vec()].concat());
    let bytes = [maker.section(), maker.interface(1, 4, &[]), packet].concat();
    assert_eq!(expect_all(&bytes), [(header(0, 4, 1500), b"abcd".to_vec())]);
}

#[test]
fn a_reused_buffer_holds_the_last_packet_only() {
    let mut reader = Reader::open(Cursor::new(Maker { big: true }.pcap())).unwrap();
    let mut data = vec![];
    let mut lengths = vec![];
    while let Some(header) = reader.next_record(&mut data).unwrap() {
        assert_eq!(data.len(), header.captured_len as usize);
        lengths.push(data.len());
    }
    assert_eq!(lengths, [5, 0, 60]);
    assert!(data.is_empty());
}

#[test]
fn errors_say_what_and_where() {
    let maker = Maker { big: false };
    assert_eq!(expect_error(b""), "the file is empty; a capture begins with a header");
    assert_eq!(expect_error(b"ab"), "file header at byte 0: cut off after 2 of 4 bytes");
    assert_eq!(
        expect_error(b"GIF89a, more or less"),
        "neither pcap nor pcapng: the file begins with 47 49 46 38"
    );
    let mut old = maker.pcap();
    old[4] = 1;
    assert_eq!(expect_error(&old), "header at byte 0: version 1.4 is not known");

    let pcap = maker.pcap();
    assert_eq!(
        expect_error(&pcap[..pcap.len() - 1]),
        "record at byte 61: cut off after 75 of 76 bytes"
    );
    let lying = |captured: u32, snap| {
        let record = maker.words(&[0, 0, captured, captured]);
        [maker.pcap_header(0xa1b2c3d4, snap, 1), maker.record((0, 0), b"x", 1), record].concat()
    };
    assert_eq!(
        expect_error(&lying(70_000, 65_535)),
        "record at byte 41: captured length 70000 is beyond the snap length 65535"
    );
    assert_eq!(
        expect_error(&lying(u32::MAX, u32::MAX)),
        "record at byte 41: captured length 4294967295 is beyond the limit of 16777216"
    );
    assert_eq!(
        expect_error(&lying(70_000, 0)),
        "record at byte 41: cut off after 16 of 70016 bytes"
    );
    assert_eq!(read_bytes(&lying(70_000, 65_535)).0.len(), 1, "what comes before is delivered");
}

#[test]
fn pcapng_errors_say_what_and_where() {
    let maker = Maker { big: true };
    let begin = [maker.section(), maker.interface(1, 64, &[])].concat();
    assert_eq!(begin.len(), 48);
    let with = |block: &[u8]| [&begin, block].concat();
    assert_eq!(
        expect_error(&with(&maker.enhanced(1, 0, b"x", 1))),
        "record at byte 48: its interface is number 1, but only 1 are described"
    );
    assert_eq!(
        expect_error(&with(&maker.words(&[6, 18]))),
        "block at byte 48: its length of 18 cannot be right"
    );
    assert_eq!(
        expect_error(&with(&maker.words(&[99, 8]))),
        "block at byte 48: its length of 8 cannot be right"
    );
    assert_eq!(
        expect_error(&with(&maker.words(&[99, 4_000_000_000, 0]))),
        "block at byte 48: cut off after 12 of 4000000000 bytes"
    );
    assert_eq!(
        expect_error(&with(&maker.words(&[6, 4_000_000_000, 0]))),
        "record at byte 48: captured length 4000000000 is beyond the limit of 16777216"
    );
    let mut differing = maker.enhanced(0, 0, b"x", 1);
    *differing.last_mut().unwrap() += 4;
    assert_eq!(
        expect_error(&with(&differing)),
        "block at byte 48: its length of 44 cannot be right"
    );
    let mut mark = maker.section();
    mark[8] = 0;
    assert_eq!(expect_error(&with(&mark)), "block at byte 48: 00 2b 3c 4d is no byte-order mark");
    let mut data_beyond_block = maker.enhanced(0, 0, b"x", 1);
    data_beyond_block[23] = 40;
    assert_eq!(
        expect_error(&with(&data_beyond_block)),
        "block at byte 48: its length of 44 cannot be right"
    );
}

#[test]
fn a_broken_gzip_file_delivers_what_it_holds() {
    // Incompressible packets, so that the cut falls among them.
    let mut state = 1u32;
    let mut noise = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 24) as u8
    };
    let maker = Maker { big: false };
    let mut bytes = maker.pcap_header(0xa1b2c3d4, 65535, 1);
    for n in 0..100 {
        let data: Vec<u8> = (0..1000).map(|_| noise()).collect();
        bytes.extend(maker.record((n, 0), &data, 1000));
    }
    let compressed = gzip(&bytes);
    let (packets, error) = read_bytes(&compressed[..compressed.len() / 2]);
    assert!((1..100).contains(&packets.len()), "{}", packets.len());
    let error = error.expect("an error");
    assert!(matches!(error.kind, ErrorKind::Io(FilePart::Record, _)), "{error}");
    assert_eq!(error.offset, 24 + packets.len() as u64 * 1016);

    let mut corrupt = compressed;
    let middle = corrupt.len() / 2;
    corrupt[middle..].fill(0xff);
    let (packets, error) = read_bytes(&corrupt);
    assert!(error.is_some());
    assert!((1..100).contains(&packets.len()), "{}", packets.len());
}

#[test]
fn every_truncation_is_a_clean_end_or_an_error() {
    for maker in Maker::BOTH {
        for bytes in [maker.pcap(), maker.pcapng(), gzip(&maker.pcap()), gzip(&maker.pcapng())] {
            let all = expect_all(&bytes);
            let mut clean = 0;
            for length in 0..bytes.len() {
                let (packets, error) = read_bytes(&bytes[..length]);
                assert!(packets.len() <= all.len() && packets == all[..packets.len()]);
                match error {
                    Some(error) => assert!(error.offset <= 1000, "{error}"),
                    None => clean += 1,
                }
            }
            // Only between records or blocks; compressed files end at one place only.
            let limit = if bytes.starts_with(&GZIP) { 0 } else { 12 };
            assert!(clean <= limit, "{clean} clean ends");
        }
    }
}

#[test]
fn a_byte_changed_anywhere_never_panics() {
    for maker in Maker::BOTH {
        for bytes in [maker.pcap(), maker.pcapng(), gzip(&maker.pcap())] {
            for at in 0..bytes.len() {
                for value in [0, 1, 0x7f, 0x80, 0xff, !bytes[at]] {
                    let mut changed = bytes.clone();
                    changed[at] = value;
                    read_bytes(&changed);
                }
            }
        }
    }
}

#[test]
fn an_error_of_the_input_is_passed_on() {
    struct Failing(Cursor<Vec<u8>>);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::other("the disk is on fire")),
                count => Ok(count),
            }
        }
    }
    let reader = Reader::open(Failing(Cursor::new(Maker { big: false }.pcap()))).unwrap();
    let (packets, error) = read_all(reader);
    assert_eq!(packets.len(), 3);
    assert_eq!(error.unwrap().to_string(), "record at byte 137: the disk is on fire");
}

#[test]
fn options_follow_the_file_name() {
    let of = |name: &str| {
        let options = Options::for_file_name(Path::new(name));
        (options.format, options.gzip)
    };
    assert_eq!(of("a/b.pcap"), (Format::PcapMicroseconds, false));
    assert_eq!(of("b.pcap.gz"), (Format::PcapMicroseconds, true));
    assert_eq!(of("b.PcapNG"), (Format::Pcapng, false));
    assert_eq!(of("x.gz/b.pcapng.GZ"), (Format::Pcapng, true));
    assert_eq!(of(""), (Format::PcapMicroseconds, false));
}

#[test]
fn the_writer_cuts_at_the_snap_length() {
    for format in [Format::PcapMicroseconds, Format::PcapNanoseconds, Format::Pcapng] {
        let options = Options { format, snap_length: 4, ..Options::default() };
        let mut writer = Writer::new(vec![], &options).unwrap();
        writer.write(1_000, b"abcdef", 60).unwrap();
        let packets = expect_all(&writer.finish().unwrap());
        assert_eq!(packets, [(header(1_000, 4, 60), b"abcd".to_vec())]);
    }
}

#[test]
fn the_writer_refuses_what_pcapng_cannot_hold() {
    let options =
        Options { format: Format::Pcapng, link_type: LinkType(0x1_0000), ..Options::default() };
    assert!(Writer::new(vec![], &options).is_err());
    let options = Options {
        format: Format::Pcapng,
        comment: Some("x".repeat(0x1_0000)),
        ..Options::default()
    };
    assert!(Writer::new(vec![], &options).is_err());
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        format in prop::sample::select(vec![
            Format::PcapMicroseconds, Format::PcapNanoseconds, Format::Pcapng,
        ]),
        gzip in any::<bool>(),
        link in 0u32..300,
        comment in prop::option::of("[a-z]{0,9}"),
        packets in prop::collection::vec(
            (0u64..u64::from(u32::MAX) * 1_000_000_000, prop::collection::vec(any::<u8>(), 0..200), any::<u32>()),
            0..20,
        ),
    ) {
        let link_type = LinkType(link);
        let options = Options { format, gzip, link_type, comment, snap_length: 0 };
        let mut writer = Writer::new(vec![], &options).unwrap();
        for (time, data, original) in &packets {
            writer.write(*time, data, *original).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let unit = if format == Format::PcapMicroseconds { 1_000 } else { 1 };
        let expected: Vec<Packet> = packets
            .into_iter()
            .map(|(time, data, original)| {
                let header = header(time / unit * unit, data.len() as u32, original);
                (RecordHeader { link_type, ..header }, data)
            })
            .collect();
        prop_assert_eq!(expect_all(&bytes), expected);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), start in 0usize..4) {
        let maker = Maker { big: start % 2 == 1 };
        let begin = match start / 2 {
            0 => maker.pcap_header(0xa1b2c3d4, 0, 1),
            _ => [maker.section(), maker.interface(1, 0, &[])].concat(),
        };
        read_bytes(&bytes);
        bytes.splice(0..0, begin);
        read_bytes(&bytes);
    }
}

fn captures_under(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            captures_under(&path, found);
        } else if path.extension().is_some_and(|e| e == "pcap" || e == "pcapng") {
            found.push(path);
        }
    }
}

/// The folder of shared test data; that which `CATENA_SHARED` names must be there.
fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("CATENA_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CATENA_SHARED").is_none(), "no test data in {}", folder.display());
    None
}

#[test]
#[allow(clippy::print_stderr)]
fn real_captures_read_without_error() {
    let Some(shared) = shared() else {
        eprintln!("not run: there is no shared test data (set CATENA_SHARED to its folder)");
        return;
    };
    let mut captures = vec![];
    for folder in ["data/pcap", "data/isp-acl", "conformance"] {
        captures_under(&shared.join(folder), &mut captures);
    }
    assert!(captures.len() > 100, "only {} captures", captures.len());
    let mut packets = 0;
    for path in captures {
        let file = std::fs::File::open(&path).unwrap();
        let mut reader = Reader::open(file).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        loop {
            match reader.next() {
                Ok(Some(record)) => {
                    assert!(record.header.captured_len <= record.header.original_len);
                    packets += 1;
                }
                Ok(None) => break,
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }
    assert!(packets > 10_000, "only {packets} packets");
}

#[test]
fn several_interfaces_are_distinguished() {
    let mut file = Vec::new();
    let mut writer = PcapngWriter::new(&mut file, "catena", "two places").unwrap();
    let about = |name: &str| InterfaceOptions {
        name: name.to_string(),
        description: "chain.click:1".to_string(),
        filter: "udp".to_string(),
    };
    let frames = writer.interface(LinkType::ETHERNET, 0, &about("a -> b")).unwrap();
    writer.packet(frames, 3, 1_000_000_007, b"frame", 9).unwrap();
    let packets = writer.interface(LinkType::RAW, 64, &about("b -> c")).unwrap();
    writer.packet(packets, 0, 2_000_000_000, b"ip packet", 9).unwrap();
    writer.packet(frames, 0, 3, b"", 0).unwrap();
    writer.statistics(frames, 5, 2, 1).unwrap();
    let long = InterfaceOptions { name: "x".repeat(1 << 16), ..InterfaceOptions::default() };
    assert!(writer.interface(LinkType::RAW, 0, &long).is_err());
    let mut reader = Reader::in_memory(file).unwrap();
    let mut next = || {
        let record = reader.next().unwrap()?;
        let head = record.header;
        let of = (head.interface, head.link_type, head.timestamp_ns, head.original_len);
        Some((of, record.data.to_vec()))
    };
    assert_eq!(next(), Some(((0, LinkType::ETHERNET, 1_000_000_007, 9), b"frame".to_vec())));
    assert_eq!(next(), Some(((1, LinkType::RAW, 2_000_000_000, 9), b"ip packet".to_vec())));
    assert_eq!(next(), Some(((0, LinkType::ETHERNET, 3, 0), Vec::new())));
    assert_eq!(next(), None);
}
