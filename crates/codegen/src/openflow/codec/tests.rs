use super::super::flow::{Action, Bits, Field, Flow};
use super::*;

fn bits(random: &mut fastrand::Rng) -> Vec<Bits> {
    let mut when: Vec<Bits> = Vec::new();
    for field in Field::ALL {
        if random.u8(..4) > 0 {
            continue;
        }
        let mask = if random.bool() { field.ones() } else { random.u128(..) & field.ones() };
        if mask != 0 {
            when.push(Bits { field, value: random.u128(..) & mask, mask });
        }
    }
    when.sort_unstable();
    when
}

fn flow(random: &mut fastrand::Rng) -> Flow {
    let action = |random: &mut fastrand::Rng| match random.u8(..6) {
        0 => Action::Output(random.u32(..)),
        1 => Action::PushVlan(random.u16(..)),
        2 => Action::PopVlan,
        3 => Action::DecTtl,
        4 => Action::Set(Field::EthSrc, random.u128(..) & Field::EthSrc.ones()),
        _ => Action::Set(Field::Register0, random.u32(..).into()),
    };
    let mut actions: Vec<Action> = (0..random.usize(..5)).map(|_| action(random)).collect();
    if random.u8(..4) == 0 {
        actions.insert(0, Action::Meter(random.u32(..)));
    }
    Flow {
        cookie: random.u64(..),
        table: random.u8(..),
        priority: random.u16(..),
        when: bits(random),
        actions,
        metadata: random.bool().then(|| (random.u64(..), random.u64(..))),
        goto: random.bool().then(|| random.u8(..)),
    }
}

fn message(random: &mut fastrand::Rng) -> Message {
    let data =
        |random: &mut fastrand::Rng| (0..random.usize(..40)).map(|_| random.u8(..)).collect();
    let (cookie, mask) = (random.u64(..), random.u64(..));
    match random.u8(..20) {
        0 => Message::Hello { version: random.u8(..), versions: random.u32(..) },
        1 => {
            Message::Error(Error { kind: random.u16(..), code: random.u16(..), data: data(random) })
        }
        2 => Message::EchoRequest(data(random)),
        3 => Message::EchoReply(data(random)),
        4 => Message::Features { datapath: random.u64(..), tables: random.u8(..) },
        5 => Message::Config { flags: random.u16(..), miss: random.u16(..) },
        6 => Message::Bundle { id: random.u32(..), step: Bundle::Commit, flags: random.u16(..) },
        7 => {
            let message = data(random);
            Message::BundleAdd { id: random.u32(..), flags: random.u16(..), message }
        }
        8 => Message::Request(Request::Flows { cookie, mask }),
        9 => Message::Request(Request::Aggregate { cookie, mask }),
        10 => {
            let stats = |random: &mut fastrand::Rng| Stats {
                flow: flow(random),
                packets: random.u64(..),
                bytes: random.u64(..),
                timeouts: [random.u16(..), random.u16(..)],
            };
            let all = (0..random.usize(..5)).map(|_| stats(random)).collect();
            Message::Reply { more: random.bool(), reply: Reply::Flows(all) }
        }
        11 => {
            let port = |n| Port { number: n, name: format!("port{n}"), is_down: n % 2 == 0 };
            Message::Reply { more: false, reply: Reply::Ports((0..3).map(port).collect()) }
        }
        12 => {
            let table = |n| TableFeatures { table: n, name: format!("table{n}"), room: 9 };
            Message::Reply { more: true, reply: Reply::TableFeatures((0..3).map(table).collect()) }
        }
        13 => {
            let switch =
                Switch { software: "3.1".into(), serial: "none".into(), ..Switch::default() };
            Message::Reply { more: false, reply: Reply::Desc(switch) }
        }
        14 => Message::Reply {
            more: false,
            reply: Reply::Aggregate { packets: cookie, bytes: mask, flows: random.u32(..) },
        },
        15 => [
            Message::FeaturesRequest,
            Message::ConfigRequest,
            Message::BarrierRequest,
            Message::Request(Request::Meters),
        ][random.usize(..4)]
        .clone(),
        16 => Message::Meter {
            change: [MeterChange::Add, MeterChange::Modify, MeterChange::Delete][random.usize(..3)],
            meter: random.u32(..),
            limit: Limit { rate: random.u32(..), burst: random.u32(..) },
        },
        17 => {
            let metered = |meter| Metered { meter, packets: cookie, bytes: mask };
            let all = (0..random.u32(..5)).map(metered).collect();
            Message::Reply { more: random.bool(), reply: Reply::Meters(all) }
        }
        _ => {
            let command = [Command::Add, Command::Delete, Command::DeleteStrict][random.usize(..3)];
            Message::FlowMod { command, cookie_mask: mask, flow: flow(random) }
        }
    }
}

#[test]
fn messages_read_back() {
    let mut random = fastrand::Rng::with_seed(1);
    for number in 0..5000 {
        let message = message(&mut random);
        let mut bytes = Vec::new();
        encode(&message, number, &mut bytes);
        assert_eq!(length(&bytes), Ok(Some(bytes.len())));
        assert_eq!(decode(&bytes), Ok((number, message)), "{bytes:02x?}");
    }
}

#[test]
fn nothing_hostile_crashes_it() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        encode(&message(&mut random), 1, &mut bytes);
        for _ in 0..random.usize(1..5) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        if random.bool() {
            bytes.truncate(random.usize(..bytes.len()));
        }
        let _ = length(&bytes);
        let _ = decode(&bytes);
    }
}

/// A drop of TCP to 10.0.0.0/8, port 80, as OpenFlow 1.3 §7.3.4.1 has it.
#[test]
fn an_entry_is_laid_out_as_the_standard_says() {
    let exact = |field: Field, value| Bits { field, value, mask: field.ones() };
    let flow = Flow {
        cookie: 0x1122,
        table: 3,
        priority: 7,
        when: vec![
            exact(Field::EthType, 0x800),
            exact(Field::IpProto, 6),
            Bits { field: Field::IpDst, value: 0x0a00_0000, mask: 0xff00_0000 },
            exact(Field::TcpDst, 80),
        ],
        actions: Vec::new(),
        metadata: None,
        goto: None,
    };
    let mut bytes = Vec::new();
    encode(&Message::FlowMod { command: Command::Add, cookie_mask: 0, flow }, 5, &mut bytes);
    let expected = [
        &[4, 14, 0, 88, 0, 0, 0, 5][..],
        &[0, 0, 0, 0, 0, 0, 0x11, 0x22],
        &[0; 8],
        &[3, 0, 0, 0, 0, 0, 0, 7],
        &[0xff; 12],
        &[0; 4],
        &[0, 1, 0, 33],
        &[0x80, 0, 5 << 1, 2, 8, 0],
        &[0x80, 0, 10 << 1, 1, 6],
        &[0x80, 0, 12 << 1 | 1, 8, 10, 0, 0, 0, 0xff, 0, 0, 0],
        &[0x80, 0, 14 << 1, 2, 0, 80],
        &[0; 7],
    ];
    assert_eq!(bytes, expected.concat());
}
