//! Flow entries: what a switch matches and does, of which the text and the bytes are two forms.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A field that entries match, and that actions set. Its order is that in which fields are written: each stands behind
/// those that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "their names are those of OpenFlow")]
pub enum Field {
    InPort,
    Metadata,
    Register0,
    EthDst,
    EthSrc,
    /// Thirteen bits: whether there is a tag, and its ID.
    VlanId,
    VlanPriority,
    EthType,
    ArpOp,
    ArpSpa,
    ArpTpa,
    ArpSha,
    ArpTha,
    IpProto,
    IpSrc,
    IpDst,
    IpDscp,
    IpEcn,
    IpTtl,
    /// Bit 0: a fragment. Bit 1: not the first.
    IpFrag,
    Ip6Src,
    Ip6Dst,
    Ip6Label,
    TcpSrc,
    TcpDst,
    UdpSrc,
    UdpDst,
    SctpSrc,
    SctpDst,
    TcpFlags,
    IcmpType,
    IcmpCode,
    /// One that no entry of Catena's names: its class and number.
    Other(u16, u8),
}

impl Field {
    /// All that Catena's entries name.
    pub const ALL: [Self; 32] = [
        Self::InPort,
        Self::Metadata,
        Self::Register0,
        Self::EthDst,
        Self::EthSrc,
        Self::VlanId,
        Self::VlanPriority,
        Self::EthType,
        Self::ArpOp,
        Self::ArpSpa,
        Self::ArpTpa,
        Self::ArpSha,
        Self::ArpTha,
        Self::IpProto,
        Self::IpSrc,
        Self::IpDst,
        Self::IpDscp,
        Self::IpEcn,
        Self::IpTtl,
        Self::IpFrag,
        Self::Ip6Src,
        Self::Ip6Dst,
        Self::Ip6Label,
        Self::TcpSrc,
        Self::TcpDst,
        Self::UdpSrc,
        Self::UdpDst,
        Self::SctpSrc,
        Self::SctpDst,
        Self::TcpFlags,
        Self::IcmpType,
        Self::IcmpCode,
    ];

    /// Its bits.
    pub fn width(self) -> u16 {
        match self {
            Self::InPort | Self::Register0 => 32,
            Self::Metadata => 64,
            Self::EthDst | Self::EthSrc | Self::ArpSha | Self::ArpTha => 48,
            Self::VlanId => 13,
            Self::VlanPriority => 3,
            Self::EthType | Self::ArpOp => 16,
            Self::ArpSpa | Self::ArpTpa | Self::IpSrc | Self::IpDst => 32,
            Self::IpProto | Self::IpTtl | Self::IcmpType | Self::IcmpCode => 8,
            Self::IpDscp => 6,
            Self::IpEcn | Self::IpFrag => 2,
            Self::Ip6Src | Self::Ip6Dst => 128,
            Self::Ip6Label => 20,
            Self::TcpSrc | Self::TcpDst | Self::UdpSrc | Self::UdpDst => 16,
            Self::SctpSrc | Self::SctpDst => 16,
            Self::TcpFlags => 12,
            Self::Other(..) => 128,
        }
    }

    /// The mask of all its bits.
    pub fn ones(self) -> u128 {
        u128::MAX >> (128 - self.width())
    }

    /// Its name in the text of `ovs-ofctl`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::InPort => "in_port",
            Self::Metadata => "metadata",
            Self::Register0 => "reg0",
            Self::EthDst => "eth_dst",
            Self::EthSrc => "eth_src",
            Self::VlanId => "vlan_vid",
            Self::VlanPriority => "vlan_pcp",
            Self::EthType => "eth_type",
            Self::ArpOp => "arp_op",
            Self::ArpSpa => "arp_spa",
            Self::ArpTpa => "arp_tpa",
            Self::ArpSha => "arp_sha",
            Self::ArpTha => "arp_tha",
            Self::IpProto => "ip_proto",
            Self::IpSrc => "ip_src",
            Self::IpDst => "ip_dst",
            Self::IpDscp => "ip_dscp",
            Self::IpEcn => "ip_ecn",
            Self::IpTtl => "nw_ttl",
            Self::IpFrag => "ip_frag",
            Self::Ip6Src => "ipv6_src",
            Self::Ip6Dst => "ipv6_dst",
            Self::Ip6Label => "ipv6_label",
            Self::TcpSrc => "tcp_src",
            Self::TcpDst => "tcp_dst",
            Self::UdpSrc => "udp_src",
            Self::UdpDst => "udp_dst",
            Self::SctpSrc => "sctp_src",
            Self::SctpDst => "sctp_dst",
            Self::TcpFlags => "tcp_flags",
            Self::IcmpType => "icmp_type",
            Self::IcmpCode => "icmp_code",
            Self::Other(..) => "field",
        }
    }

    /// A number as this field is written.
    fn number(self, value: u128) -> String {
        match self {
            Self::EthDst | Self::EthSrc | Self::ArpSha | Self::ArpTha => {
                let bytes: Vec<String> =
                    value.to_be_bytes()[10..].iter().map(|byte| format!("{byte:02x}")).collect();
                bytes.join(":")
            }
            Self::IpSrc | Self::IpDst | Self::ArpSpa | Self::ArpTpa => {
                Ipv4Addr::from_bits(value as u32).to_string()
            }
            Self::Ip6Src | Self::Ip6Dst => Ipv6Addr::from_bits(value).to_string(),
            Self::EthType
            | Self::VlanId
            | Self::TcpFlags
            | Self::Ip6Label
            | Self::TcpSrc
            | Self::TcpDst
            | Self::UdpSrc
            | Self::UdpDst
            | Self::SctpSrc
            | Self::SctpDst
            | Self::Other(..) => format!("{value:#x}"),
            _ => value.to_string(),
        }
    }

    /// A mask as this field is written. Open vSwitch takes a leading digit for the length of a prefix.
    fn mask(self, mask: u128) -> String {
        match self {
            Self::Ip6Src | Self::Ip6Dst if mask >> 112 == 0 => {
                let groups = Ipv6Addr::from_bits(mask).segments();
                let groups = groups.iter().skip_while(|group| **group == 0);
                let groups: Vec<String> = groups.map(|group| format!("{group:x}")).collect();
                format!("::{}", groups.join(":"))
            }
            _ => self.number(mask),
        }
    }
}

/// Some bits of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bits {
    /// The field.
    pub field: Field,
    /// What the bits are; 0 outside the mask.
    pub value: u128,
    /// Which bits.
    pub mask: u128,
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, mask } = *self;
        match field {
            Field::IpFrag => {
                let words = match (value, mask) {
                    (0, 3) => "no",
                    (1, 1) => "yes",
                    (1, 3) => "first",
                    (2 | 3, _) => "later",
                    _ => "not_later",
                };
                return write!(f, "{}={words}", field.name());
            }
            Field::VlanId if value == 0 && mask == field.ones() => {
                return write!(f, "{}=0", field.name());
            }
            Field::Other(class, number) => write!(f, "field-{class:#x}-{number}=")?,
            _ => write!(f, "{}=", field.name())?,
        }
        f.write_str(&field.number(value))?;
        match mask == field.ones() {
            true => Ok(()),
            false => write!(f, "/{}", field.mask(mask)),
        }
    }
}

/// Something that is done to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Sends it by a port.
    Output(u32),
    /// Puts a VLAN tag of a type on.
    PushVlan(u16),
    /// Takes a VLAN tag off.
    PopVlan,
    /// Sets a field.
    Set(Field, u128),
    /// Counts the time to live down by one.
    DecTtl,
    /// Drops what exceeds the rate of a meter. It stands before all others.
    Meter(u32),
    /// One that no entry of Catena's has: its number.
    Other(u16),
    /// An instruction that no entry of Catena's has: its number.
    OtherInstruction(u16),
}

/// The port where a packet came in (OpenFlow 1.3 §A.2.1).
pub const IN_PORT: u32 = 0xffff_fff8;

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Action::Output(IN_PORT) => f.write_str("in_port"),
            Action::Output(0xffff_fff9) => f.write_str("table"),
            Action::Output(0xffff_fffa) => f.write_str("normal"),
            Action::Output(0xffff_fffb) => f.write_str("flood"),
            Action::Output(0xffff_fffc) => f.write_str("all"),
            Action::Output(0xffff_fffd) => f.write_str("controller"),
            Action::Output(0xffff_fffe) => f.write_str("local"),
            Action::Output(port) => write!(f, "output:{port}"),
            Action::PushVlan(ether_type) => write!(f, "push_vlan:{ether_type:#x}"),
            Action::PopVlan => f.write_str("pop_vlan"),
            Action::Set(field, value) => {
                write!(f, "set_field:{}->{}", field.number(value), field.name())
            }
            Action::DecTtl => f.write_str("dec_ttl"),
            Action::Meter(meter) => write!(f, "meter:{meter}"),
            Action::Other(number) => write!(f, "action-{number}"),
            Action::OtherInstruction(number) => write!(f, "instruction-{number}"),
        }
    }
}

/// A flow entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// What its packets are counted for.
    pub cookie: u64,
    /// Its table.
    pub table: u8,
    /// Of the entries of a table that match, that with the highest counts.
    pub priority: u16,
    /// What it matches, by field; each stands there once.
    pub when: Vec<Bits>,
    /// What is done, in order.
    pub actions: Vec<Action>,
    /// Bits of the metadata that are set then: value and mask.
    pub metadata: Option<(u64, u64)>,
    /// The table that comes then.
    pub goto: Option<u8>,
}

/// What an entry is known by: a table has no two entries of one priority that match the same.
pub type Key<'a> = (u8, u16, &'a [Bits]);

impl Flow {
    /// What it is known by.
    pub fn key(&self) -> Key<'_> {
        (self.table, self.priority, &self.when)
    }

    /// Whether both do the same to packets; cookies aside.
    pub fn does_as(&self, other: &Self) -> bool {
        self.actions == other.actions && self.metadata == other.metadata && self.goto == other.goto
    }

    /// Whether some packet may match both, in one table.
    pub fn meets(&self, other: &Self) -> bool {
        let apart = |bits: &Bits| {
            let same = other.when.iter().find(|b| b.field == bits.field);
            same.is_some_and(|b| (b.value ^ bits.value) & b.mask & bits.mask != 0)
        };
        self.table == other.table && !self.when.iter().any(apart)
    }

    /// What it matches, as text.
    pub fn matched(&self) -> String {
        match self.when.is_empty() {
            true => "any packet".into(),
            false => self.when.iter().map(Bits::to_string).collect::<Vec<_>>().join(","),
        }
    }
}

/// A line of `ovs-ofctl add-flows`.
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cookie, table, priority, when, actions, metadata, goto } = self;
        write!(f, "cookie={cookie:#x},table={table},priority={priority},")?;
        when.iter().try_for_each(|bits| write!(f, "{bits},"))?;
        f.write_str("actions=")?;
        // Instructions that go on stand behind actions.
        let mut all: Vec<String> = actions.iter().map(Action::to_string).collect();
        all.extend(metadata.map(|(value, mask)| match mask {
            u64::MAX => format!("write_metadata:{value}"),
            _ => format!("write_metadata:{value:#x}/{mask:#x}"),
        }));
        all.extend(goto.map(|table| format!("goto_table:{table}")));
        match all.is_empty() {
            true => f.write_str("drop"),
            false => f.write_str(&all.join(",")),
        }
    }
}

/// An entry that a chain was compiled to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEntry {
    /// What the switch is given.
    pub flow: Flow,
    /// The element, or its rule, with file and line; or what it is for.
    pub origin: Arc<str>,
}

/// Entries as `ovs-ofctl add-flows` reads them.
pub(super) fn text(entries: &[FlowEntry], head: &[&str]) -> String {
    use fmt::Write as _;
    let mut text: String = head.iter().map(|line| format!("# {line}\n")).collect();
    let mut last: Option<&Arc<str>> = None;
    for FlowEntry { flow, origin } in entries {
        if last.replace(origin) != Some(origin) && !origin.is_empty() {
            // A string takes whatever is written.
            let _ = writeln!(text, "# {origin}");
        }
        let _ = writeln!(text, "{flow}");
    }
    text
}

/// For whom an entry counts packets: the lowest 36 bits of its cookie. Those above are free for who installs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// An exit of a segment's program: that segment and step.
    Exit(u16, u32),
    /// It leads to other entries.
    Inner(u16, u32),
    /// It takes frames from the cores back out.
    Back,
}

impl Class {
    /// Bits of a cookie that it takes.
    pub const BITS: u32 = 36;
    /// Segments that there may be.
    pub(super) const MOST_SEGMENTS: usize = (1 << 10) - 1;
    /// Steps that a segment may have.
    pub(super) const MOST_STEPS: usize = 1 << 24;
    const INNER: u64 = 1 << 35;
    const BACK: u64 = 1 << 34;

    /// As the lower part of a cookie.
    pub fn number(self) -> u64 {
        let place = |segment: u16, step: u32| (u64::from(segment) + 1) << 24 | u64::from(step);
        match self {
            Class::Exit(segment, step) => place(segment, step),
            Class::Inner(segment, step) => Self::INNER | place(segment, step),
            Class::Back => Self::BACK,
        }
    }

    /// What a cookie says.
    pub fn of(cookie: u64) -> Option<Self> {
        let segment = ((cookie >> 24 & 0x3ff) as u16).checked_sub(1);
        let step = (cookie & 0xff_ffff) as u32;
        match (cookie & Self::INNER != 0, cookie & Self::BACK != 0) {
            (false, true) => Some(Class::Back),
            (true, true) => None,
            (true, false) => segment.map(|segment| Class::Inner(segment, step)),
            (false, false) => segment.map(|segment| Class::Exit(segment, step)),
        }
    }
}
