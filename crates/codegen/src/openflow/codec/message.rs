//! Messages (OpenFlow 1.3 §7, and ONF's extension 230 for bundles).

use super::super::flow::{Bits, Flow};
use super::flow::{Stats, put_instructions, put_match, read_instructions, read_match};
use super::reader::{Malformed, Reader};
use super::{HEAD, VERSION};

/// No port, group or buffer.
pub const ANY: u32 = u32::MAX;

/// A bundle is committed as a whole or not at all.
pub const ATOMIC: u16 = 1;

/// Who numbered the messages of bundles.
const ONF: u32 = 0x4f4e_4600;
const BUNDLE_CONTROL: u32 = 2300;
const BUNDLE_ADD: u32 = 2301;

/// The type of errors that are numbered by who defined them.
const OF_EXPERIMENTER: u16 = 0xffff;
/// Type and code of the error that says that a bundle was not committed, as one of its messages was refused.
pub const BUNDLE_FAILED: (u16, u16) = (OF_EXPERIMENTER, 2313);

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of OpenFlow")]
pub enum Message {
    /// The versions that are spoken, a bit for each; of a peer that does not say so, none.
    Hello {
        version: u8,
        versions: u32,
    },
    Error(Error),
    EchoRequest(Vec<u8>),
    EchoReply(Vec<u8>),
    FeaturesRequest,
    /// The switch's number and how many tables it has.
    Features {
        datapath: u64,
        tables: u8,
    },
    ConfigRequest,
    /// What becomes of fragments.
    Config {
        flags: u16,
        miss: u16,
    },
    SetConfig {
        flags: u16,
        miss: u16,
    },
    FlowMod {
        command: Command,
        cookie_mask: u64,
        flow: Flow,
    },
    /// A meter is made, changed or taken away.
    Meter {
        change: MeterChange,
        meter: u32,
        limit: Limit,
    },
    Request(Request),
    /// Whether more of the answer follows.
    Reply {
        more: bool,
        reply: Reply,
    },
    BarrierRequest,
    Barrier,
    /// A step in the life of a bundle.
    Bundle {
        id: u32,
        step: Bundle,
        flags: u16,
    },
    /// A message that waits in a bundle for its commitment.
    BundleAdd {
        id: u32,
        flags: u16,
        message: Vec<u8>,
    },
    /// One that is not known here: its type.
    Other(u8),
}

/// What is done to entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// An entry is added; it replaces the one with its table, priority and match.
    Add,
    /// All that the match covers are deleted.
    Delete,
    /// The entry with this priority and match is deleted.
    DeleteStrict,
}

/// What is done to a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of OpenFlow")]
pub enum MeterChange {
    Add,
    Modify,
    Delete,
}

/// What a meter lets pass: kilobits a second, and kilobits at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Kilobits a second.
    pub rate: u32,
    /// Kilobits at once, when nothing came before.
    pub burst: u32,
}

/// What a meter did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metered {
    /// Its number.
    pub meter: u32,
    /// Packets that it dropped.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A step of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of OpenFlow")]
pub enum Bundle {
    Open,
    Opened,
    Close,
    Closed,
    Commit,
    Committed,
    Discard,
    Discarded,
}

impl Bundle {
    const ALL: [Self; 8] = [
        Self::Open,
        Self::Opened,
        Self::Close,
        Self::Closed,
        Self::Commit,
        Self::Committed,
        Self::Discard,
        Self::Discarded,
    ];
}

/// What a switch is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of OpenFlow")]
pub enum Request {
    Desc,
    /// Entries of all tables whose cookies have these bits, and that match no less.
    Flows {
        cookie: u64,
        mask: u64,
    },
    Aggregate {
        cookie: u64,
        mask: u64,
    },
    /// What all meters did.
    Meters,
    TableFeatures,
    Ports,
}

/// What a switch answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of OpenFlow")]
pub enum Reply {
    Desc(Switch),
    Flows(Vec<Stats>),
    Aggregate {
        packets: u64,
        bytes: u64,
        flows: u32,
    },
    Meters(Vec<Metered>),
    TableFeatures(Vec<TableFeatures>),
    Ports(Vec<Port>),
    /// One that was not asked for here: its type.
    Other(u16),
}

/// What a switch says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of OpenFlow")]
pub struct Switch {
    pub manufacturer: String,
    pub hardware: String,
    pub software: String,
    pub serial: String,
    pub datapath: String,
}

/// A table of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFeatures {
    /// Its number.
    pub table: u8,
    /// Its name.
    pub name: String,
    /// Entries that fit.
    pub room: u32,
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// It was taken down, or its link is down.
    pub is_down: bool,
}

/// Why a switch refuses a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Of what kind the error is.
    pub kind: u16,
    /// Which it is of its kind.
    pub code: u16,
    /// The message's beginning, or words.
    pub data: Vec<u8>,
}

fn put_name(name: &str, bytes: usize, out: &mut Vec<u8>) {
    let end = out.len() + bytes;
    out.extend(name.bytes().take(bytes.saturating_sub(1)));
    out.resize(end, 0);
}

fn put_u32(numbers: &[u32], out: &mut Vec<u8>) {
    numbers.iter().for_each(|number| out.extend(number.to_be_bytes()));
}

impl Request {
    fn kind(&self) -> u16 {
        match self {
            Request::Desc => 0,
            Request::Flows { .. } => 1,
            Request::Aggregate { .. } => 2,
            Request::Meters => 9,
            Request::TableFeatures => 12,
            Request::Ports => 13,
        }
    }
}

impl Message {
    fn kind(&self) -> u8 {
        match self {
            Message::Hello { .. } => 0,
            Message::Error(_) => 1,
            Message::EchoRequest(_) => 2,
            Message::EchoReply(_) => 3,
            Message::Bundle { .. } | Message::BundleAdd { .. } => 4,
            Message::FeaturesRequest => 5,
            Message::Features { .. } => 6,
            Message::ConfigRequest => 7,
            Message::Config { .. } => 8,
            Message::SetConfig { .. } => 9,
            Message::FlowMod { .. } => 14,
            Message::Request(_) => 18,
            Message::Reply { .. } => 19,
            Message::BarrierRequest => 20,
            Message::Barrier => 21,
            Message::Meter { .. } => 29,
            Message::Other(kind) => *kind,
        }
    }

    pub(super) fn encode(&self, version: u8, number: u32, out: &mut Vec<u8>) {
        let from = out.len();
        let version = match self {
            Message::Hello { version, .. } => *version,
            _ => version,
        };
        out.extend([version, self.kind(), 0, 0]);
        out.extend(number.to_be_bytes());
        self.put_body(out);
        let length = u16::try_from(out.len() - from).unwrap_or(u16::MAX).to_be_bytes();
        out[from + 2..from + 4].copy_from_slice(&length);
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        match self {
            Message::Hello { versions, .. } if *versions != 0 => {
                out.extend([0, 1, 0, 8]);
                put_u32(&[*versions], out);
            }
            Message::Error(Error { kind, code, data }) => {
                out.extend(kind.to_be_bytes());
                out.extend(code.to_be_bytes());
                if *kind == OF_EXPERIMENTER {
                    put_u32(&[ONF], out);
                }
                out.extend(data);
            }
            Message::EchoRequest(data) | Message::EchoReply(data) => out.extend(data),
            Message::Features { datapath, tables } => {
                out.extend(datapath.to_be_bytes());
                put_u32(&[0], out);
                out.extend([*tables, 0, 0, 0]);
                put_u32(&[0, 0], out);
            }
            Message::Config { flags, miss } | Message::SetConfig { flags, miss } => {
                out.extend(flags.to_be_bytes());
                out.extend(miss.to_be_bytes());
            }
            Message::FlowMod { command, cookie_mask, flow } => {
                let command = match command {
                    Command::Add => 0,
                    Command::Delete => 3,
                    Command::DeleteStrict => 4,
                };
                out.extend(flow.cookie.to_be_bytes());
                out.extend(cookie_mask.to_be_bytes());
                out.extend([flow.table, command, 0, 0, 0, 0]);
                out.extend(flow.priority.to_be_bytes());
                put_u32(&[ANY, ANY, ANY, 0], out);
                put_match(&flow.when, out);
                put_instructions(flow, out);
            }
            Message::Meter { change, meter, limit } => {
                out.extend([0, *change as u8]);
                // The rate is in kilobits a second, and a burst is said (§7.3.4.5).
                out.extend([0, 1 | 4]);
                put_u32(&[*meter], out);
                // A band that drops.
                out.extend([0, 1, 0, 16]);
                put_u32(&[limit.rate, limit.burst, 0], out);
            }
            Message::Request(request) => {
                out.extend(request.kind().to_be_bytes());
                out.extend([0; 6]);
                if *request == Request::Meters {
                    put_u32(&[ANY, 0], out);
                }
                if let Request::Flows { cookie, mask } | Request::Aggregate { cookie, mask } =
                    request
                {
                    out.extend([0xff, 0, 0, 0]);
                    put_u32(&[ANY, ANY, 0], out);
                    out.extend(cookie.to_be_bytes());
                    out.extend(mask.to_be_bytes());
                    put_match(&[], out);
                }
            }
            Message::Reply { more, reply } => {
                out.extend(reply.kind().to_be_bytes());
                out.extend([0, (*more).into(), 0, 0, 0, 0]);
                reply.put(out);
            }
            Message::Bundle { id, step, flags } => {
                let step = Bundle::ALL.iter().position(|other| other == step).unwrap_or(0) as u16;
                put_u32(&[ONF, BUNDLE_CONTROL, *id], out);
                out.extend(step.to_be_bytes());
                out.extend(flags.to_be_bytes());
            }
            Message::BundleAdd { id, flags, message } => {
                put_u32(&[ONF, BUNDLE_ADD, *id], out);
                out.extend([0, 0]);
                out.extend(flags.to_be_bytes());
                out.extend(message);
            }
            _ => {}
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<(u32, Self), Malformed> {
        let mut reader = Reader::new(bytes, "a message");
        let (version, kind) = (reader.u8()?, reader.u8()?);
        let length = usize::from(reader.u16()?);
        if length < HEAD || length != bytes.len() {
            return reader.wrong("its length is not the one that it says");
        }
        let number = reader.u32()?;
        // Versions are settled by the first message; an error may be about that.
        if version != VERSION && kind > 1 {
            return reader
                .wrong(&format!("it is of version {version}, not of {VERSION} (OpenFlow 1.3)"));
        }
        Ok((number, Self::body(version, kind, reader)?))
    }

    fn body(version: u8, kind: u8, mut reader: Reader<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            0 => Message::Hello { version, versions: versions(reader)? },
            1 => {
                let (kind, code) = (reader.u16()?, reader.u16()?);
                if kind == OF_EXPERIMENTER {
                    reader.u32()?;
                }
                Message::Error(Error { kind, code, data: reader.rest().to_vec() })
            }
            2 => Message::EchoRequest(reader.rest().to_vec()),
            3 => Message::EchoReply(reader.rest().to_vec()),
            4 => {
                let (who, what) = (reader.u32()?, reader.u32()?);
                match (who, what) {
                    (ONF, BUNDLE_CONTROL) => {
                        let (id, step) = (reader.u32()?, reader.u16()?);
                        match Bundle::ALL.get(usize::from(step)) {
                            Some(&step) => Message::Bundle { id, step, flags: reader.u16()? },
                            None => return reader.wrong("a bundle knows no such step"),
                        }
                    }
                    (ONF, BUNDLE_ADD) => {
                        let id = reader.u32()?;
                        reader.u16()?;
                        let flags = reader.u16()?;
                        Message::BundleAdd { id, flags, message: reader.rest().to_vec() }
                    }
                    _ => Message::Other(kind),
                }
            }
            5 => Message::FeaturesRequest,
            6 => {
                let datapath = reader.u64()?;
                reader.u32()?;
                Message::Features { datapath, tables: reader.u8()? }
            }
            7 => Message::ConfigRequest,
            8 => Message::Config { flags: reader.u16()?, miss: reader.u16()? },
            9 => Message::SetConfig { flags: reader.u16()?, miss: reader.u16()? },
            14 => flow_mod(reader)?,
            18 => Self::request(reader)?,
            19 => Self::reply(reader)?,
            20 => Message::BarrierRequest,
            21 => Message::Barrier,
            29 => meter(reader)?,
            _ => Message::Other(kind),
        })
    }

    fn request(mut reader: Reader<'_>) -> Result<Self, Malformed> {
        let kind = reader.u16()?;
        reader.bytes(6)?;
        Ok(Message::Request(match kind {
            0 => Request::Desc,
            1 | 2 => {
                reader.bytes(16)?;
                let (cookie, mask) = (reader.u64()?, reader.u64()?);
                match kind {
                    1 => Request::Flows { cookie, mask },
                    _ => Request::Aggregate { cookie, mask },
                }
            }
            9 => Request::Meters,
            12 => Request::TableFeatures,
            13 => Request::Ports,
            _ => return Ok(Message::Other(18)),
        }))
    }

    fn reply(mut reader: Reader<'_>) -> Result<Self, Malformed> {
        let kind = reader.u16()?;
        let more = reader.u16()? & 1 == 1;
        reader.bytes(4)?;
        let reply = match kind {
            0 => Reply::Desc(Switch {
                manufacturer: reader.name(256)?,
                hardware: reader.name(256)?,
                software: reader.name(256)?,
                serial: reader.name(32)?,
                datapath: reader.name(256)?,
            }),
            1 => {
                let mut all = Vec::new();
                while !reader.is_empty() {
                    all.push(Stats::read(&mut reader)?);
                }
                Reply::Flows(all)
            }
            2 => Reply::Aggregate {
                packets: reader.u64()?,
                bytes: reader.u64()?,
                flows: reader.u32()?,
            },
            9 => {
                let mut all = Vec::new();
                while !reader.is_empty() {
                    all.push(metered(&mut reader)?);
                }
                Reply::Meters(all)
            }
            12 => {
                let mut all = Vec::new();
                while !reader.is_empty() {
                    all.push(table(&mut reader)?);
                }
                Reply::TableFeatures(all)
            }
            13 => {
                let mut all = Vec::new();
                while !reader.is_empty() {
                    all.push(port(&mut reader)?);
                }
                Reply::Ports(all)
            }
            _ => Reply::Other(kind),
        };
        Ok(Message::Reply { more, reply })
    }
}

/// The versions of a greeting.
fn versions(mut reader: Reader<'_>) -> Result<u32, Malformed> {
    let mut versions = 0;
    while !reader.is_empty() {
        let kind = reader.u16()?;
        let length = usize::from(reader.u16()?);
        let Some(body) = length.checked_sub(4) else {
            return reader.wrong("an element of a greeting is too short");
        };
        let mut body = reader.part(body, "a greeting")?;
        if kind == 1 && !body.is_empty() {
            versions = body.u32()?;
        }
        let pad = length.next_multiple_of(8) - length;
        reader.bytes(pad.min(reader.left()))?;
    }
    Ok(versions)
}

fn flow_mod(mut reader: Reader<'_>) -> Result<Message, Malformed> {
    let (cookie, cookie_mask) = (reader.u64()?, reader.u64()?);
    let table = reader.u8()?;
    let command = match reader.u8()? {
        0 => Command::Add,
        3 => Command::Delete,
        4 => Command::DeleteStrict,
        _ => return Ok(Message::Other(14)),
    };
    reader.u32()?;
    let priority = reader.u16()?;
    reader.bytes(16)?;
    let when: Vec<Bits> = read_match(&mut reader)?;
    let actions = Vec::new();
    let mut flow = Flow { cookie, table, priority, when, actions, metadata: None, goto: None };
    read_instructions(reader, &mut flow)?;
    Ok(Message::FlowMod { command, cookie_mask, flow })
}

fn meter(mut reader: Reader<'_>) -> Result<Message, Malformed> {
    let change = match reader.u16()? {
        0 => MeterChange::Add,
        1 => MeterChange::Modify,
        2 => MeterChange::Delete,
        _ => return Ok(Message::Other(29)),
    };
    reader.u16()?;
    let meter = reader.u32()?;
    let mut limit = Limit::default();
    if !reader.is_empty() {
        reader.u32()?;
        limit = Limit { rate: reader.u32()?, burst: reader.u32()? };
    }
    Ok(Message::Meter { change, meter, limit })
}

/// What a meter did, of which the first band counts.
fn metered(reader: &mut Reader<'_>) -> Result<Metered, Malformed> {
    const FIXED: usize = 40;
    let meter = reader.u32()?;
    let length = usize::from(reader.u16()?);
    let Some(length) = length.checked_sub(6).filter(|length| *length >= FIXED - 6) else {
        return reader.wrong("a meter says that it has fewer bytes than a meter has");
    };
    let mut of = reader.part(length, "a meter")?;
    of.bytes(FIXED - 6)?;
    let (mut packets, mut bytes) = (0, 0);
    if !of.is_empty() {
        (packets, bytes) = (of.u64()?, of.u64()?);
    }
    Ok(Metered { meter, packets, bytes })
}

fn table(reader: &mut Reader<'_>) -> Result<TableFeatures, Malformed> {
    const FIXED: usize = 64;
    let length = usize::from(reader.u16()?);
    if length < FIXED || length % 8 != 0 {
        return reader.wrong("a table's length is wrong");
    }
    let mut reader = reader.part(length - 2, "a table")?;
    let table = reader.u8()?;
    reader.bytes(5)?;
    let name = reader.name(32)?;
    reader.bytes(20)?;
    Ok(TableFeatures { table, name, room: reader.u32()? })
}

fn port(reader: &mut Reader<'_>) -> Result<Port, Malformed> {
    let number = reader.u32()?;
    reader.bytes(12)?;
    let name = reader.name(16)?;
    let (config, state) = (reader.u32()?, reader.u32()?);
    reader.bytes(24)?;
    Ok(Port { number, name, is_down: (config | state) & 1 == 1 })
}

impl Reply {
    fn kind(&self) -> u16 {
        match self {
            Reply::Desc(_) => 0,
            Reply::Flows(_) => 1,
            Reply::Aggregate { .. } => 2,
            Reply::Meters(_) => 9,
            Reply::TableFeatures(_) => 12,
            Reply::Ports(_) => 13,
            Reply::Other(kind) => *kind,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Reply::Desc(of) => {
                for name in [&of.manufacturer, &of.hardware, &of.software] {
                    put_name(name, 256, out);
                }
                put_name(&of.serial, 32, out);
                put_name(&of.datapath, 256, out);
            }
            Reply::Flows(all) => all.iter().for_each(|stats| stats.put(out)),
            Reply::Aggregate { packets, bytes, flows } => {
                out.extend(packets.to_be_bytes());
                out.extend(bytes.to_be_bytes());
                put_u32(&[*flows, 0], out);
            }
            Reply::Meters(all) => {
                for Metered { meter, packets, bytes } in all {
                    put_u32(&[*meter], out);
                    out.extend([0, 56, 0, 0, 0, 0, 0, 0]);
                    put_u32(&[0; 7], out);
                    out.extend(packets.to_be_bytes());
                    out.extend(bytes.to_be_bytes());
                }
            }
            Reply::TableFeatures(all) => {
                for TableFeatures { table, name, room } in all {
                    out.extend([0, 64, *table, 0, 0, 0, 0, 0]);
                    put_name(name, 32, out);
                    out.extend([0; 20]);
                    put_u32(&[*room], out);
                }
            }
            Reply::Ports(all) => {
                for Port { number, name, is_down } in all {
                    put_u32(&[*number, 0, 0, 0], out);
                    put_name(name, 16, out);
                    put_u32(&[0, u32::from(*is_down), 0, 0, 0, 0, 0, 0], out);
                }
            }
            Reply::Other(_) => {}
        }
    }
}
