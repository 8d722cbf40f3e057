//! IP6Encap.

use std::net::Ipv6Addr;

use click::config::Argument;
use ir::field::{anno, ip6, meta};
use ir::model::set_bytes;
use ir::{Base, Model, Op};
use net::wire::Ipv6;
use net::{Batch, Header};

use crate::argument::{FromArgument, Ip6, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip::ip_encap::{Protocol, TOO_LONG};
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
    template: Ipv6<[u8; 40]>,
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

impl IP6Encap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["PROTO", "SRC", "DST", "HLIM", "CLASS"]);
        let protocol: Protocol = arguments.required("PROTO");
        let source: Ip6 = arguments.required("SRC");
        let destination: Destination = arguments.required("DST");
        let hop_limit: u8 = arguments.keyword("HLIM").unwrap_or(250);
        let class: u8 = arguments.keyword("CLASS").unwrap_or(0);
        arguments.finish()?;
        let mut template = Ipv6::of([0; 40]);
        template.set_first_word(class, 0);
        template.set_next_header(protocol.0);
        template.set_hop_limit(hop_limit);
        template.set_src(source.0);
        template.set_dst(destination.0.unwrap_or(Ipv6Addr::UNSPECIFIED));
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
            header.set_payload_len(length);
            if self.to_annotation {
                header.set_dst(packet.annotations().dst_ip6());
            } else {
                packet.annotations_mut().set_dst_ip6(header.dst());
            }
            packet.prepend(&header.into_inner());
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
        block.extend(set_bytes(Base::Data, 0, self.template.bytes()));
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
        Ok(match handler {
            "src" => self.template.src().to_string(),
            _ if self.to_annotation => "DST_ANNO".to_string(),
            _ => self.template.dst().to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        if handler == "src" {
            self.template.set_src(parse_value::<Ip6>(value)?.0);
            return Ok(());
        }
        let destination = parse_value::<Destination>(value)?.0;
        self.to_annotation = destination.is_none();
        self.template.set_dst(destination.unwrap_or(Ipv6Addr::UNSPECIFIED));
        Ok(())
    }
}
