//! IP6Encap.

use std::net::Ipv6Addr;

use click::config::Argument;
use ir::field::{anno, ip6, meta};
use ir::model::set_bytes;
use ir::{Base, Model, Op};
use net::{Batch, Header, annotation};

use crate::argument::{FromArgument, Ip6, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip::ip_encap::{Protocol, TOO_LONG};
use crate::ip::ip_header;
use crate::ip6::ip6_header;
use crate::names::Names;

element! {
    /// IP6Encap(PROTO, SRC, DST [, KEYWORDS HLIM, CLASS]) -- puts an IPv6 header in front of packets
    ///
    /// The header has next header PROTO (a number or a name), source SRC and destination DST. DST
    /// may be DST_ANNO: then each packet's IPv6 destination address annotation is taken; else
    /// the annotation is set to DST. The header is marked. Packets of more than 65,535 bytes are
    /// dropped.
    ///
    /// = KEYWORDS
    ///
    /// HLIM (number, default 250): the hop limit.
    /// CLASS (number, default 0): the traffic class.
    ///
    /// = HANDLERS
    ///
    /// src, dst (read, write): the addresses.
    ///
    /// = SEE ALSO
    ///
    /// IPEncap
    IP6Encap {
        category: Ip6, ports: "1/1", processing: "a/a",
        samples: [
            ("41, 2001:db8::1, 2001:db8::2", 1, 1),
            ("udp, 2001:db8::1, DST_ANNO, HLIM 3, CLASS 0xb8", 1, 1)
        ]
    }
}

/// See [`IP6Encap::CLASS`].
pub(crate) struct IP6Encap {
    /// The header with everything but length, and a destination that varies.
    template: [u8; 40],
    to_annotation: bool,
}

/// A destination: an address, or `DST_ANNO` for the annotation's.
#[derive(Default)]
struct Destination(Option<Ipv6Addr>);

impl FromArgument for Destination {
    const EXPECTED: &'static str = "an IPv6 address or DST_ANNO";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        if argument.text == "DST_ANNO" {
            return Ok(Self(None));
        }
        Ip6::from_argument(argument, names, element).map(|ip| Self(Some(ip.0)))
    }
}

/// The annotation's bytes.
const ANNOTATION: std::ops::Range<usize> = annotation::DST_IP6..annotation::DST_IP6 + 16;

impl IP6Encap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["PROTO", "SRC", "DST", "HLIM", "CLASS"]);
        let protocol: Protocol = arguments.required("PROTO");
        let source: Ip6 = arguments.required("SRC");
        let destination: Destination = arguments.required("DST");
        let hop_limit: u8 = arguments.keyword("HLIM").unwrap_or(250);
        let class: u8 = arguments.keyword("CLASS").unwrap_or(0);
        arguments.finish()?;
        let mut template = [0; 40];
        (template[0], template[1]) = (0x60 | class >> 4, class << 4);
        (template[6], template[7]) = (protocol.0, hop_limit);
        template[8..24].copy_from_slice(&source.0.octets());
        template[24..].copy_from_slice(&destination.0.unwrap_or(Ipv6Addr::UNSPECIFIED).octets());
        Ok(Self { template, to_annotation: destination.0.is_none() })
    }
}

impl Element for IP6Encap {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let Ok(length) = u16::try_from(packet.len()) else {
                return Verdict::Drop(TOO_LONG);
            };
            let mut header = self.template;
            ip_header::put_word(&mut header, 4, length);
            let annotation = &mut packet.annotations_mut().bytes_mut()[ANNOTATION];
            if self.to_annotation {
                header[24..].copy_from_slice(annotation);
            } else {
                annotation.copy_from_slice(&header[24..]);
            }
            packet.push(40);
            if let Some(front) = packet.data_mut().first_chunk_mut() {
                *front = header;
            }
            packet.set_ip_header(0, 40);
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        let mut block = vec![
            Op::when(meta::LEN.gt(0xffffu16), vec![Op::Drop(TOO_LONG)]),
            Op::pull(-40),
            Op::Mark(Header::Network, 0u8.into()),
            Op::Mark(Header::Transport, 40u8.into()),
        ];
        block.extend(set_bytes(Base::Data, 0, &self.template));
        block.push(ip6::PLEN.set(meta::LEN.get() - 40u8));
        block.push(if self.to_annotation {
            ip6::DST.set(anno::DST_IP6)
        } else {
            anno::DST_IP6.set(ip6::DST)
        });
        block.push(Op::emit(0u8));
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("src"), Handler::both("dst")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let address = |at| Ipv6Addr::from_bits(ip6_header::address(&self.template, at));
        Ok(match handler {
            "src" => address(8).to_string(),
            _ if self.to_annotation => "DST_ANNO".to_string(),
            _ => address(24).to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        if handler == "src" {
            self.template[8..24].copy_from_slice(&parse_value::<Ip6>(value)?.0.octets());
            return Ok(());
        }
        let destination = parse_value::<Destination>(value)?.0;
        self.to_annotation = destination.is_none();
        let octets = destination.unwrap_or(Ipv6Addr::UNSPECIFIED).octets();
        self.template[24..].copy_from_slice(&octets);
        Ok(())
    }
}
