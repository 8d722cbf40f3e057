//! Options of TCP (RFC 7323, 2018), as those need them who stand between two ends of a connection.

use net::wire::Tcp;
use net::wire::tcp::option::{MSS, NOP, SACK, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE};

/// The largest shift of a window (RFC 7323, 2.3).
const MOST_SCALE: u8 = 14;
/// What is assumed of who does not say how large its segments may be (RFC 9293, 3.7.1).
const USUAL_SIZE: u16 = 536;

/// Options that a SYN offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offer {
    /// The maximum segment size.
    pub size: Option<u16>,
    /// The shift of windows.
    pub scale: Option<u8>,
    /// Whether selective acknowledgments are understood.
    pub sack: bool,
    /// The sender's time, and what it echoes.
    pub times: Option<(u32, u32)>,
}

/// No timestamps in a cookie, and so nothing else but the size.
pub(super) const NO_OPTIONS: u8 = 0xff;
const NO_SCALE: u8 = 15;
const SACK_BIT: u8 = 16;
/// What of a time says what was offered.
const TIME_BITS: u32 = 31;

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

impl Offer {
    pub(super) fn of(tcp: &Tcp<&[u8]>) -> Self {
        let mut offer = Self::default();
        for found in tcp.options().map_while(Result::ok) {
            match (found.kind, found.data) {
                (MSS, &[high, low]) => offer.size = Some(u16::from_be_bytes([high, low])),
                (WINDOW_SCALE, &[scale]) => offer.scale = Some(scale.min(MOST_SCALE)),
                (SACK_PERMITTED, []) => offer.sack = true,
                (TIMESTAMPS, times) if times.len() == 8 => {
                    offer.times = Some((number(&times[..4]), number(&times[4..])));
                }
                _ => {}
            }
        }
        offer
    }

    pub(super) fn usual_size(&self) -> u16 {
        self.size.unwrap_or(USUAL_SIZE)
    }

    /// What a cookie holds of it, and its time: who echoes that says again what it offered.
    pub(super) fn code(&self) -> u8 {
        if self.times.is_none() {
            return NO_OPTIONS;
        }
        self.scale.unwrap_or(NO_SCALE) | if self.sack { SACK_BIT } else { 0 }
    }

    /// A time with a code in it.
    pub(super) fn time(milliseconds: u64, code: u8) -> u32 {
        milliseconds as u32 & !TIME_BITS | u32::from(code)
    }

    /// The code of a time that was echoed.
    pub(super) fn code_of(time: u32) -> u8 {
        (time & TIME_BITS) as u8
    }

    /// What a code says was offered, without a size and times.
    pub(super) fn of_code(code: u8) -> Self {
        if code == NO_OPTIONS {
            return Self::default();
        }
        let scale = Some(code & 15).filter(|&scale| scale <= MOST_SCALE);
        Self { scale, sack: code & SACK_BIT != 0, ..Self::default() }
    }

    /// The options, as they stand in a header.
    pub(super) fn write(&self) -> Written {
        let mut written = Written { bytes: [NOP; 24], len: 0 };
        if let Some(size) = self.size {
            let [high, low] = size.to_be_bytes();
            written.add(&[MSS, 4, high, low]);
        }
        if self.sack {
            written.add(&[SACK_PERMITTED, 2, NOP, NOP]);
        }
        if let Some((time, echoed)) = self.times {
            written.add(&[NOP, NOP, TIMESTAMPS, 10]);
            written.add(&time.to_be_bytes());
            written.add(&echoed.to_be_bytes());
        }
        if let Some(scale) = self.scale {
            written.add(&[NOP, WINDOW_SCALE, 3, scale]);
        }
        written
    }
}

/// Options, as they stand in a header.
pub(super) struct Written {
    bytes: [u8; 24],
    len: usize,
}

impl Written {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// How a header changes between two ends that number the server's bytes differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// What is added to the sequence number, and to acknowledgment numbers, selective ones too.
    pub sequence: u32,
    pub acknowledged: u32,
    /// Whether selective acknowledgments are taken out.
    pub without_sack: bool,
    /// What is added to the sender's time, and to the one that it echoes.
    pub time: u32,
    pub echoed: u32,
    /// The shift of windows as they come, and as they leave.
    pub scale: [u8; 2],
}

fn add(bytes: &mut [u8], to_add: u32) {
    let sum = number(bytes).wrapping_add(to_add);
    bytes.copy_from_slice(&sum.to_be_bytes());
}

impl Change {
    /// Changes a segment that is there with its header, and its checksum by the difference.
    pub(super) fn apply(&self, segment: &mut [u8], acknowledges: bool) {
        let Some(length) = Tcp::new(&segment[..]).map(|tcp| tcp.header_len()) else { return };
        let length = length.min(segment.len()) & !1;
        let mut old = [0; 60];
        old[..length].copy_from_slice(&segment[..length]);
        add(&mut segment[4..8], self.sequence);
        if acknowledges {
            add(&mut segment[8..12], self.acknowledged);
        }
        let mut ranges = [(0u8, 0usize, 0usize); 20];
        let mut count = 0;
        if let Some(tcp) = Tcp::new(&segment[..]) {
            let all = tcp.options().map_while(Result::ok);
            let wanted = all.filter(|found| matches!(found.kind, SACK | TIMESTAMPS));
            for (range, found) in ranges.iter_mut().zip(wanted) {
                let start = 20 + found.offset;
                *range = (found.kind, start, start + 2 + found.data.len());
                count += 1;
            }
        }
        for &(kind, start, end) in &ranges[..count] {
            let option = &mut segment[start..end];
            match kind {
                SACK if self.without_sack => option.fill(NOP),
                SACK => {
                    for edge in option[2..].as_chunks_mut::<4>().0 {
                        add(edge, self.acknowledged);
                    }
                }
                _ if option.len() == 10 => {
                    add(&mut option[2..6], self.time);
                    if acknowledges {
                        add(&mut option[6..10], self.echoed);
                    }
                }
                _ => {}
            }
        }
        let [comes, leaves] = self.scale;
        if comes != leaves
            && let Some(mut tcp) = Tcp::new(&mut segment[..])
        {
            let window = u64::from(tcp.window()) << comes >> leaves;
            tcp.set_window(window.min(0xffff) as u16);
        }
        if let Some(mut tcp) = Tcp::new(&mut segment[..]) {
            let checksum = tcp.checksum();
            let new = &tcp.bytes()[..length];
            let checksum = net::checksum::update_bytes(checksum, &old[..length], new);
            tcp.set_checksum(checksum);
        }
    }
}

#[cfg(test)]
mod tests {
    use net::notation::parse;
    use proptest::prelude::*;

    use super::*;

    fn offer() -> impl Strategy<Value = Offer> {
        let size = proptest::option::of(any::<u16>());
        let scale = proptest::option::of(0u8..=14);
        let times = proptest::option::of(any::<(u32, u32)>());
        (size, scale, any::<bool>(), times).prop_map(|(size, scale, sack, times)| Offer {
            size,
            scale,
            sack,
            times,
        })
    }

    fn segment(options: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 20];
        bytes[12] = (5 + options.len() as u8 / 4) << 4;
        bytes.extend(options);
        bytes.extend(payload);
        let mut tcp = Tcp::new(&mut bytes[..]).unwrap();
        tcp.fill_checksum(net::checksum::Sum::default());
        bytes
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(offer in offer()) {
            let written = offer.write();
            prop_assert!(written.bytes().len().is_multiple_of(4));
            let bytes = segment(written.bytes(), b"");
            prop_assert_eq!(Offer::of(&Tcp::new(&bytes[..]).unwrap()), offer);
            let code = offer.code();
            if offer.times.is_some() {
                prop_assert_eq!(Offer::code_of(Offer::time(0x00ff_ffff_ffff, code)), code);
                let Offer { scale, sack, .. } = offer;
                prop_assert_eq!(Offer::of_code(code), Offer { scale, sack, ..Offer::default() });
            } else {
                prop_assert_eq!(Offer::of_code(code), Offer::default());
            }
        }

        #[test]
        fn changes_keep_checksums_right(
            options in proptest::collection::vec(
                prop_oneof![Just(1u8), Just(5), Just(8), Just(10), Just(18), Just(3), any::<u8>()],
                0..40,
            ),
            change in any::<(u32, u32, bool, u32, u32)>(),
            scale in (0u8..15, 0u8..15),
            cut in 20usize..80,
        ) {
            let (sequence, acknowledged, without_sack, time, echoed) = change;
            let scale = [scale.0, scale.1];
            let change = Change { sequence, acknowledged, without_sack, time, echoed, scale };
            let options = &options[..options.len() & !3];
            let mut bytes = segment(options, b"payload");
            change.apply(&mut bytes, true);
            let right = |bytes: &[u8]| Tcp::new(bytes).unwrap().checksum_ok(Default::default());
            prop_assert!(right(&bytes));
            // What is cut off survives, too.
            let mut bytes = segment(options, b"payload");
            bytes.truncate(cut);
            change.apply(&mut bytes, true);
        }
    }

    #[test]
    fn a_change_is_undone_by_its_opposite() {
        let options = "0101080a00000001000000020101050a0000006400000096";
        let frame = parse(&format!(
            "tcp 10.0.0.1:1 > 10.0.0.2:2 flags A seq 100 ack 200 win 40 tcpopt {options}"
        ));
        let mut bytes = frame.unwrap()[34..].to_vec();
        let before = bytes.clone();
        let change = Change { acknowledged: 7, echoed: 9, scale: [4, 2], ..Change::default() };
        change.apply(&mut bytes, true);
        let tcp = Tcp::new(&bytes[..]).unwrap();
        assert_eq!((tcp.seq(), tcp.ack(), tcp.window()), (100, 207, 160));
        assert_eq!(Offer::of(&tcp).times, Some((1, 11)));
        assert_eq!(bytes[36..44], [0, 0, 0, 107, 0, 0, 0, 157]);
        let back = |number: u32| 0u32.wrapping_sub(number);
        let change =
            Change { acknowledged: back(7), echoed: back(9), scale: [2, 4], ..Change::default() };
        change.apply(&mut bytes, true);
        assert_eq!(bytes, before);
        let change = Change { without_sack: true, ..Change::default() };
        change.apply(&mut bytes, true);
        assert_eq!(bytes[34..44], [NOP; 10]);
    }
}
