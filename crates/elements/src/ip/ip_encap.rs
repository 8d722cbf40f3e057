//! IPEncap.

use ir::field::{anno, ip, meta};
use ir::model::{Reg, StateKind, set_bytes};
use ir::{Base, Expr, Model, Op, Reason};
use net::checksum::Delta;
use net::wire::Ipv4;
use net::wire::{ip_protocol, ipv4};
use net::{Batch, Header, annotation};

use crate::argument::{FromArgument, Ip, parse_integer, parse_value};
use crate::cells::Cells;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::ip::ip_header;
use crate::names::Names;

element! {
    /// IPEncap(PROTO, SRC, DST [, KEYWORDS]) -- puts an IP header in front of packets
    ///
    /// The header has protocol PROTO (a number or a name such as ipip), source SRC, destination
    /// DST, and identifications that count up from 0. DST may be DST_ANNO: then each packet's
    /// destination address annotation is taken; else the annotation is set to DST. The header is
    /// marked. Packets that would be longer than 65,535 bytes are dropped.
    ///
    /// = KEYWORDS
    ///
    /// TTL (number, default 250), TOS (number, default 0): fields of the header.
    /// DSCP (0 to 63), ECT (0, 1 or 2; true is 1), CE (bool): parts of TOS.
    /// DF (bool, default false): whether "do not fragment" is set.
    ///
    /// = HANDLERS
    ///
    /// src, dst (read, write): the addresses.
    ///
    /// = EXAMPLE
    ///
    /// IPEncap(ipip, 18.26.4.24, 140.247.60.147) makes an IP-in-IP tunnel.
    ///
    /// = SEE ALSO
    ///
    /// UDPIPEncap, StripIPHeader
    IPEncap {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [
            ("4, 100.0.0.1, 100.0.0.2", 1, 1),
            ("ipip, 100.0.0.1, DST_ANNO, TTL 3, DSCP 10, ECT 2, DF true", 1, 1)
        ]
    }
}

/// See [`IPEncap::CLASS`].
pub(crate) struct IPEncap {
    /// The header with everything but length, identification, and a destination that varies.
    template: Ipv4<[u8; 20]>,
    to_annotation: bool,
    /// Identification of the next packet.
    id: Cells,
}

/// Larger than IP packets can be.
pub(crate) const TOO_LONG: Reason = Reason("too-long");

/// A number of an IP protocol.
#[derive(Default)]
pub(crate) struct Protocol(pub(crate) u8);

impl FromArgument for Protocol {
    const EXPECTED: &'static str = "an IP protocol's number or name";

    fn from_argument(
        argument: &click::config::Argument,
        _: &Names,
        _: &str,
    ) -> Result<Self, String> {
        let text = argument.text.as_str();
        let number = parse_integer(text).and_then(|n| u8::try_from(n).ok());
        let number = number.or_else(|| ip_protocol::by_name(&text.to_ascii_lowercase()));
        number.map(Self).ok_or_else(|| format!("'{text}' is not {}", Self::EXPECTED))
    }
}

/// A destination: an address, or `DST_ANNO` for the annotation's.
#[derive(Default)]
pub(crate) struct Destination(pub(crate) Option<u32>);

impl FromArgument for Destination {
    const EXPECTED: &'static str = "an IP address or DST_ANNO";

    fn from_argument(
        argument: &click::config::Argument,
        names: &Names,
        element: &str,
    ) -> Result<Self, String> {
        if argument.text == "DST_ANNO" {
            return Ok(Self(None));
        }
        Ip::from_argument(argument, names, element).map(|ip| Self(Some(ip.0.to_bits())))
    }
}

impl IPEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments =
            cx.arguments(&["PROTO", "SRC", "DST", "TOS", "TTL", "DSCP", "ECT", "CE", "DF"]);
        let protocol: Protocol = arguments.required("PROTO");
        let source: Ip = arguments.required("SRC");
        let destination: Destination = arguments.required("DST");
        let mut tos: u8 = arguments.keyword("TOS").unwrap_or(0);
        let ttl: u8 = arguments.keyword("TTL").unwrap_or(250);
        if let Some(word) = arguments.keyword_argument("DSCP") {
            match arguments.parse::<u8>("DSCP", &word) {
                Some(dscp) if dscp < 64 => tos = dscp << 2 | tos & 3,
                Some(dscp) => arguments.error(&word, format!("{dscp} is out of range: 0 to 63")),
                None => {}
            }
        }
        if let Some(word) = arguments.keyword_argument("ECT") {
            match word.text.as_str() {
                "0" | "false" => {}
                "1" | "true" => tos |= 1,
                "2" => tos |= 2,
                other => arguments.error(&word, format!("'{other}' is not 0, 1 or 2")),
            }
        }
        if arguments.keyword("CE").unwrap_or(false) {
            tos |= 3;
        }
        let dont_fragment = arguments.keyword("DF").unwrap_or(false);
        arguments.finish()?;
        let mut template = Ipv4::of([0; 20]);
        template.set_header_len(20);
        template.set_tos(tos);
        template.set_fragment_word(if dont_fragment { ipv4::DF } else { 0 });
        template.set_ttl(ttl);
        template.set_protocol(protocol.0);
        template.set_src(source.0);
        template.set_dst(destination.0.unwrap_or(0).into());
        template.fill_checksum();
        Ok(Self { template, to_annotation: destination.0.is_none(), id: Cells::new([0]) })
    }
}

impl Element for IPEncap {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let mut id = self.id.get(0) as u16;
        cx.each(batch, |packet, _| {
            let Ok(length) = u16::try_from(packet.len() + 20) else {
                return Verdict::Drop(TOO_LONG);
            };
            let mut header = self.template;
            let mut delta = Delta::NONE.u16(0, length).u16(0, id);
            if self.to_annotation {
                let to = packet.annotations().u32(annotation::DST_IP);
                delta = delta.u32(0, to);
                header.set_dst(to.into());
            } else {
                packet.annotations_mut().set_u32(annotation::DST_IP, header.dst().to_bits());
            }
            header.set_total_len(length);
            header.set_id(id);
            header.set_checksum(delta.apply(header.checksum()));
            id = id.wrapping_add(1);
            packet.prepend(&header.into_inner());
            packet.set_ip_header(0, 20);
            Verdict::Pass
        });
        self.id.set(0, id.into());
    }

    fn model(&self) -> Model {
        const ID: Reg = Reg(0);
        let mut model = Model::default();
        let id = model.declare("id", StateKind::Cells { width: 16, initial: vec![0] });
        let mut block = vec![
            Op::when(meta::LEN.gt(0xffffu16 - 20), vec![Op::Drop(TOO_LONG)]),
            Op::Read(ID, id, 0u8.into()),
            Op::Write(id, 0u8.into(), Expr::from(ID) + 1u8),
            Op::pull(-20),
            Op::Mark(Header::Network, 0u8.into()),
            Op::Mark(Header::Transport, 20u8.into()),
        ];
        block.extend(set_bytes(Base::Header(Header::Network), 0, self.template.bytes()));
        block.extend([ip::LEN.set(meta::LEN), ip::ID.set(ID)]);
        block.push(if self.to_annotation {
            ip::DST.set(anno::DST_IP)
        } else {
            anno::DST_IP.set(ip::DST)
        });
        block.extend(ip_header::model_fill_checksum());
        block.push(Op::emit(0u8));
        model.inputs = vec![block];
        model
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.id.clone())
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.id.export(name, "id", to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.id.import(name, "id", from);
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("src"), Handler::both("dst")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "src" => self.template.src().to_string(),
            _ if self.to_annotation => "DST_ANNO".to_string(),
            _ => self.template.dst().to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        if handler == "src" {
            self.template.set_src(parse_value::<Ip>(value)?.0);
        } else {
            let destination = parse_value::<Destination>(value)?.0;
            self.to_annotation = destination.is_none();
            self.template.set_dst(destination.unwrap_or(0).into());
        }
        self.template.fill_checksum();
        Ok(())
    }
}
