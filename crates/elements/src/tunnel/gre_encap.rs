//! GREEncap.

use ir::field::meta;
use ir::model::{Reg, StateKind, set_bytes};
use ir::{Base, Expr, Field, Model, Op};
use net::checksum::Sum;
use net::wire::gre;

use crate::cells::Cells;
use crate::configure::{Configure, Failed};
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::ip::ip_encap::TOO_LONG;

element! {
    /// GREEncap(PROTOCOL [, KEYWORDS]) -- puts a GRE header in front of packets
    ///
    /// Puts a GRE header (RFC 2784, RFC 2890) in front of each packet. PROTOCOL is the ether type
    /// of what is in the packets: 0x0800 for IPv4, 0x86dd for IPv6, 0x6558 for Ethernet frames.
    /// IPEncap(gre, ...) puts the IP header in front of that. Packets that would be longer than
    /// 65,535 bytes are dropped.
    ///
    /// = KEYWORDS
    ///
    /// KEY (number): the key; without it, packets have none.
    /// CHECKSUM (bool, default false): whether packets have a checksum.
    /// SEQUENCE (bool, default false): whether packets have a sequence number, counting up from 0.
    ///
    /// = HANDLERS
    ///
    /// sequence (read): the next sequence number.
    ///
    /// = EXAMPLE
    ///
    /// ... -> GREEncap(0x0800, KEY 7) -> IPEncap(gre, 192.0.2.1, 192.0.2.2) -> ...
    ///
    /// = SEE ALSO
    ///
    /// GREDecap, IPEncap, VXLANEncap
    GREEncap {
        category: Tunnel, ports: "1/1", processing: "a/a",
        samples: [
            ("0x0800", 1, 1),
            ("0x6558, KEY 0xfedcba98, CHECKSUM true", 1, 1),
            ("0x86dd, SEQUENCE true", 1, 1),
            ("0x0800, KEY 7, CHECKSUM true, SEQUENCE true", 1, 1)
        ]
    }
}

/// See [`GREEncap::CLASS`].
pub(crate) struct GREEncap {
    protocol: u16,
    key: Option<u32>,
    checksum: bool,
    /// The next sequence number, if there are any.
    sequence: Option<Cells>,
}

impl GREEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["PROTOCOL", "KEY", "CHECKSUM", "SEQUENCE"]);
        let protocol = arguments.required("PROTOCOL");
        let key = arguments.keyword("KEY");
        let checksum = arguments.keyword("CHECKSUM").unwrap_or(false);
        let sequence = arguments.keyword("SEQUENCE").unwrap_or(false);
        let sequence = sequence.then(|| Cells::new([0]));
        arguments.finish()?;
        Ok(Self { protocol, key, checksum, sequence })
    }

    /// The header with checksum and sequence number 0.
    fn template(&self) -> Vec<u8> {
        let mut flags = 0;
        let mut words = Vec::new();
        let optional = [
            (gre::CHECKSUM, self.checksum.then_some(0)),
            (gre::KEY, self.key),
            (gre::SEQUENCE, self.sequence.as_ref().map(|_| 0)),
        ];
        for (flag, word) in optional {
            if let Some(word) = word {
                flags |= flag;
                words.extend(u32::to_be_bytes(word));
            }
        }
        [&flags.to_be_bytes()[..], &self.protocol.to_be_bytes(), &words].concat()
    }
}

impl Element for GREEncap {
    fn model(&self) -> Model {
        const SUM: Reg = Reg(0);
        const NUMBER: Reg = Reg(1);
        let mut model = Model::default();
        let template = self.template();
        let length = template.len() as u16;
        let too_long = meta::LEN.gt(u16::MAX - length);
        let mut block = vec![Op::when(too_long, vec![Op::Drop(TOO_LONG)])];
        let constant = u32::from(!Sum::of(&template).checksum());
        let mut sum = Expr::sum16(Base::Data, 0u8, meta::LEN) + constant;
        if self.sequence.is_some() {
            let sequence = StateKind::Cells { width: 32, initial: vec![0] };
            let sequence = model.declare("sequence", sequence);
            block.push(Op::Read(NUMBER, sequence, 0u8.into()));
            block.push(Op::Write(sequence, 0u8.into(), Expr::from(NUMBER) + 1u8));
            sum = sum + (Expr::from(NUMBER) >> 16u8) + (Expr::from(NUMBER) & 0xffffu16);
        }
        if self.checksum {
            block.push(Op::Let(SUM, sum.fold16() ^ 0xffffu16));
        }
        block.push(Op::pull(-i32::from(length)));
        block.extend(set_bytes(Base::Data, 0, &template));
        if self.checksum {
            block.push(Field::bytes(Base::Data, 4, 2).set(SUM));
        }
        if self.sequence.is_some() {
            block.push(Field::bytes(Base::Data, length - 4, 4).set(NUMBER));
        }
        block.push(Op::emit(0u8));
        model.inputs = vec![block];
        model
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        self.sequence.clone()
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.sequence.iter().for_each(|next| next.export(name, "sequence", to));
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.sequence.iter().for_each(|next| next.import(name, "sequence", from));
    }

    fn handlers(&self) -> &'static [Handler] {
        match &self.sequence {
            Some(_) => const { &[Handler::read("sequence")] },
            None => &[],
        }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.sequence.as_ref().map_or(0, |next| next.get(0)).to_string())
    }
}
