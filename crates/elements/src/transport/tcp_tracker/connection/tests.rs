use proptest::prelude::*;

use super::*;

const SYN: Segment = segment(Kind::Syn, 0, 1, 0);

/// A segment of so many numbers, with a window of 1000.
const fn segment(kind: Kind, seq: u32, numbers: u32, ack: u32) -> Segment {
    Segment {
        kind,
        acknowledges: !matches!(kind, Kind::Syn),
        fin: false,
        seq,
        end: seq.wrapping_add(numbers),
        ack,
        sack: ack,
        window: 1000,
        scale: None,
    }
}

fn ack(seq: u32, numbers: u32, ack: u32) -> Segment {
    segment(Kind::Ack, seq, numbers, ack)
}

fn fin(seq: u32, ack: u32) -> Segment {
    Segment { fin: true, ..segment(Kind::Ack, seq, 1, ack) }
}

fn rst(seq: u32) -> Segment {
    Segment { acknowledges: false, ..segment(Kind::Rst, seq, 0, 0) }
}

/// Begun by SYNs with these numbers and shifts of windows.
fn open([client, server]: [u32; 2], scales: [Option<u8>; 2]) -> Connection {
    let syn = Segment { scale: scales[0], ..segment(Kind::Syn, client, 1, 0) };
    let mut connection = Connection::begin(&syn);
    let answer = segment(Kind::SynAck, server, 1, client.wrapping_add(1));
    let answer = Segment { scale: scales[1], ..answer };
    connection.check(SERVER, &answer).unwrap();
    let last = ack(client.wrapping_add(1), 0, server.wrapping_add(1));
    connection.check(CLIENT, &last).unwrap();
    assert_eq!(connection.state, State::Established);
    connection
}

#[test]
fn numbers_wrap() {
    for start in [0, u32::MAX, u32::MAX - 500, 1 << 31] {
        let mut connection = open([start, start], [None; 2]);
        let at = |offset: u32| start.wrapping_add(1 + offset);
        for offset in (0..3000).step_by(500) {
            assert_eq!(connection.check(CLIENT, &ack(at(offset), 500, at(0))), Ok(()));
            assert_eq!(connection.check(SERVER, &ack(at(0), 0, at(offset + 500))), Ok(()));
        }
        // Half of all numbers lie before.
        let far = ack(at(3000).wrapping_add(1 << 31), 1, at(0));
        assert_eq!(connection.check(CLIENT, &far), Err(OUT_OF_WINDOW));
    }
}

#[test]
fn windows_are_shifted_if_both_ends_offer_it() {
    for (scales, limit) in [
        ([Some(7), Some(3)], 8000),
        ([Some(7), None], 1000),
        ([None, Some(3)], 1000),
        ([Some(0), Some(0)], 1000),
    ] {
        let mut connection = open([0, 0], scales);
        assert_eq!(connection.check(SERVER, &ack(1, 0, 1)), Ok(()), "a window that is shifted");
        let last = ack(1 + limit, 1, 1);
        let behind = ack(2 + limit, 1, 1);
        assert_eq!(connection.check(CLIENT, &behind), Err(OUT_OF_WINDOW), "{scales:?}");
        assert_eq!(connection.check(CLIENT, &last), Ok(()), "{scales:?}");
    }
}

#[test]
fn a_closed_window_is_probed() {
    let mut connection = open([0, 0], [None; 2]);
    assert_eq!(connection.check(CLIENT, &ack(1, 1000, 1)), Ok(()));
    let closed = Segment { window: 0, ..ack(1, 0, 1001) };
    assert_eq!(connection.check(SERVER, &closed), Ok(()));
    for _ in 0..3 {
        assert_eq!(connection.check(CLIENT, &ack(1001, 1, 1)), Ok(()), "a probe");
        assert_eq!(connection.check(CLIENT, &ack(1000, 0, 1)), Ok(()), "a keep-alive");
        assert_eq!(connection.check(CLIENT, &ack(1003, 1, 1)), Err(OUT_OF_WINDOW));
        assert_eq!(connection.check(SERVER, &closed), Ok(()));
    }
}

#[test]
fn acknowledgments_come_late_but_not_from_beyond_the_window() {
    let mut connection = open([0, 0], [None; 2]);
    assert_eq!(connection.check(CLIENT, &ack(1002, 0, 1)), Err(OUT_OF_WINDOW));
    assert_eq!(connection.check(CLIENT, &ack(1001, 0, 1)), Ok(()));
    assert_eq!(connection.check(CLIENT, &ack(1, 1000, 1)), Ok(()));
    assert_eq!(connection.check(CLIENT, &ack(1, 0, 1)), Ok(()), "a late one");
    // A FIN behind a full window, and what follows it.
    assert_eq!(connection.check(CLIENT, &fin(1001, 1)), Ok(()));
    assert_eq!(connection.check(CLIENT, &ack(1002, 0, 1)), Ok(()));
    assert_eq!(connection.check(CLIENT, &ack(1003, 0, 1)), Err(OUT_OF_WINDOW));
}

#[test]
fn both_ends_may_open_and_close_at_once() {
    let mut connection = Connection::begin(&SYN);
    let other = segment(Kind::Syn, 70, 1, 0);
    assert_eq!(connection.check(SERVER, &other), Ok(()));
    connection.add_syn(SERVER, &other);
    assert_eq!(connection.check(CLIENT, &segment(Kind::SynAck, 0, 1, 71)), Ok(()));
    assert_eq!(connection.check(SERVER, &segment(Kind::SynAck, 70, 1, 1)), Ok(()));
    assert_eq!(connection.check(CLIENT, &ack(1, 10, 71)), Ok(()));
    assert_eq!(connection.state, State::Established);
    assert_eq!(connection.check(CLIENT, &fin(11, 71)), Ok(()));
    assert_eq!(connection.state, State::HalfClosed);
    assert_eq!(connection.check(SERVER, &fin(71, 1)), Ok(()));
    assert_eq!(connection.state, State::Closed);
    assert_eq!(connection.check(CLIENT, &ack(12, 0, 72)), Ok(()));
    assert_eq!(connection.check(SERVER, &ack(72, 0, 12)), Ok(()));
}

#[test]
fn one_end_may_close_and_the_other_go_on() {
    let mut connection = open([0, 0], [None; 2]);
    assert_eq!(connection.check(CLIENT, &fin(1, 1)), Ok(()));
    for offset in (0..5000).step_by(500) {
        assert_eq!(connection.check(SERVER, &ack(1 + offset, 500, 2)), Ok(()));
        assert_eq!(connection.check(CLIENT, &ack(2, 0, 501 + offset)), Ok(()));
    }
    assert_eq!(connection.state, State::HalfClosed);
}

#[test]
fn resets_must_be_exact() {
    let open = open([0, 0], [None; 2]);
    for (seq, valid, state) in [
        (1, Ok(()), State::Reset),
        (2, Ok(()), State::Established),
        (1001, Ok(()), State::Established),
        (1002, Err(BAD_RST), State::Established),
        (0, Err(BAD_RST), State::Established),
        (1 << 31, Err(BAD_RST), State::Established),
    ] {
        let mut connection = open;
        assert_eq!(
            (connection.check(SERVER, &rst(seq)), connection.state),
            (valid, state),
            "{seq}"
        );
    }
    // A refusal acknowledges the SYN.
    for (number, valid) in [(1, Ok(())), (2, Err(BAD_RST)), (0, Err(BAD_RST))] {
        let mut connection = Connection::begin(&SYN);
        assert_eq!(connection.check(SERVER, &segment(Kind::Rst, 0, 0, number)), valid);
    }
    assert_eq!(Connection::begin(&SYN).check(SERVER, &rst(0)), Err(BAD_RST));
}

#[test]
fn an_end_that_forgot_the_connection_begins_again() {
    // The server still has the old one: it answers, and the client resets it (RFC 9293, figure 9).
    let mut connection = Connection::begin(&SYN);
    assert_eq!(connection.check(SERVER, &ack(500, 0, 9000)), Ok(()));
    assert_eq!(connection.check(CLIENT, &rst(9000)), Ok(()));
    connection.add_syn(CLIENT, &SYN);
    assert_eq!(connection.check(SERVER, &segment(Kind::SynAck, 7, 1, 1)), Ok(()));
    // Both forgot it: the table alone knows of it.
    let mut connection = open([0, 0], [None; 2]);
    let again = segment(Kind::Syn, 123_456_789, 1, 0);
    assert_eq!(connection.check(CLIENT, &again), Ok(()));
    connection.add_syn(CLIENT, &again);
    assert_eq!(connection.state, State::Established);
    let answer = segment(Kind::SynAck, 987_654_321, 1, 123_456_790);
    assert_eq!(connection.check(SERVER, &answer), Ok(()));
    assert_eq!(connection.check(CLIENT, &ack(123_456_790, 9, 987_654_322)), Ok(()));
    assert_eq!(connection.state, State::Established);
}

fn any_segment() -> impl Strategy<Value = Segment> {
    let near = prop_oneof![0u32..3000, any::<u32>()];
    let kind = prop_oneof![
        Just(Kind::Syn),
        Just(Kind::SynAck),
        Just(Kind::Ack),
        Just(Kind::Ack),
        Just(Kind::Rst)
    ];
    (kind, near.clone(), near.clone(), near, 0u32..65536, 0u32..1500, any::<bool>()).prop_map(
        |(kind, seq, ack, sack, window, numbers, fin)| Segment {
            fin: fin && kind == Kind::Ack,
            sack: if after(sack, ack) { sack } else { ack },
            window,
            ..segment(kind, seq, numbers, ack)
        },
    )
}

proptest! {
    /// Whatever comes, an invalid segment changes nothing, and a connection is what its numbers say.
    #[test]
    fn invalid_segments_change_nothing(all in prop::collection::vec((0usize..2, any_segment()), 0..50)) {
        let mut connection = Connection::begin(&SYN);
        for (from, segment) in all {
            let before = connection;
            match connection.check(from, &segment) {
                Ok(()) if segment.kind == Kind::Syn => connection.add_syn(from, &segment),
                Ok(()) => {}
                Err(_) => prop_assert_eq!(connection, before),
            }
            prop_assert_eq!(Connection::from_numbers(&connection.numbers()), Some(connection));
        }
    }
}
