//! StoreData.

use ir::field::meta;
use ir::{Base, Expr, Field, Model, Op};
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header;

element! {
    /// StoreData(OFFSET, DATA [, MASK, KEYWORDS GROW]) -- writes bytes into packets
    ///
    /// Writes the bytes of the string DATA into packets, OFFSET bytes behind their start. Bytes
    /// that would lie beyond the end of a packet are not written. Packets of OFFSET bytes or less
    /// pass unchanged.
    ///
    /// With MASK, another string of bytes, only the bits set in it are written; where MASK ends
    /// before DATA, whole bytes are.
    ///
    /// = KEYWORDS
    ///
    /// GROW (bool, default false): whether packets longer than OFFSET grow so that all of DATA
    /// fits.
    ///
    /// = EXAMPLE
    ///
    /// StoreData(6, \<1a 2b>) writes two bytes.
    ///
    /// = SEE ALSO
    ///
    /// StoreIPAddress
    StoreData {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [
            ("2, abc", 1, 1), ("30, \\<000102030405060708090a0b0c0d0e0f101112>", 1, 1),
            ("20, \\<ffff11>, \\<0ff0>", 1, 1), ("38, \"hello, world\", GROW true", 1, 1)
        ]
    }
}

/// See [`StoreData::CLASS`].
pub(crate) struct StoreData {
    offset: u16,
    data: Vec<u8>,
    /// As long as the data; its bits are the only ones set in the data.
    mask: Vec<u8>,
    grow: bool,
}

/// So much data at the most: more than a jumbo frame's headers.
const MAX_DATA: usize = 4000;

impl StoreData {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["OFFSET", "DATA", "MASK", "GROW"]);
        let offset = match arguments.keyword_argument("OFFSET").or_else(|| arguments.next_raw()) {
            Some(word) => ip_header::parse_offset(&mut arguments, "OFFSET", &word),
            None => arguments.required("OFFSET"),
        };
        let mut data: Vec<u8> = arguments.required("DATA");
        let mask_argument = arguments.keyword_argument("MASK").or_else(|| arguments.next_raw());
        let mut mask = Vec::new();
        if let Some(word) = &mask_argument {
            mask = arguments.parse("MASK", word).unwrap_or_default();
            if mask.len() > data.len() {
                arguments.error(word, "MASK must not be longer than DATA");
            }
        }
        if data.len() > MAX_DATA {
            let span = arguments.cx().span();
            let error = format!("DATA has {} bytes, at most {MAX_DATA} are taken", data.len());
            arguments.report(ir::Diagnostic::error("bad-argument", error).label(span, ""));
        }
        mask.resize(data.len(), 0xff);
        data.iter_mut().zip(&mask).for_each(|(byte, mask)| *byte &= mask);
        let grow = arguments.keyword("GROW").unwrap_or(false);
        arguments.finish()?;
        Ok(Self { offset, data, mask, grow })
    }

    /// The operation that writes data of this range; at most 16 bytes.
    fn put(&self, range: std::ops::Range<usize>) -> Op {
        let number = |bytes: &[u8]| bytes.iter().fold(0u128, |n, &b| n << 8 | u128::from(b));
        let at = self.offset + range.start as u16;
        let field = Field::bytes(Base::Data, at, range.len() as u16);
        let (data, mask) = (number(&self.data[range.clone()]), number(&self.mask[range]));
        if mask == field.max() {
            field.set(data)
        } else {
            field.set(field.get() & Expr::from(field.max() ^ mask) | data)
        }
    }
}

impl Element for StoreData {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let offset = usize::from(self.offset);
        cx.each(batch, |packet, _| {
            let length = packet.len();
            if length <= offset {
                return Verdict::Pass;
            }
            if self.grow {
                packet.put((offset + self.data.len()).saturating_sub(length));
            }
            let bytes = packet.data_mut()[offset..].iter_mut();
            for ((byte, data), mask) in bytes.zip(&self.data).zip(&self.mask) {
                *byte = *byte & !mask | data;
            }
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        let n = self.data.len();
        let end = self.offset + n as u16;
        let mut block = vec![Op::when(meta::LEN.le(self.offset), vec![Op::emit(0u8)])];
        if self.grow {
            block.push(Op::Extend(meta::LEN.get().max(end) - meta::LEN));
        }
        let whole = (0..n).step_by(16).map(|at| self.put(at..n.min(at + 16)));
        let bytewise = (0..n)
            .map(|at| Op::when(meta::LEN.gt(self.offset + at as u16), vec![self.put(at..at + 1)]));
        let cut = if self.grow { Vec::new() } else { bytewise.collect() };
        block.extend([Op::If(meta::LEN.ge(end), whole.collect(), cut), Op::emit(0u8)]);
        Model::from_block(block)
    }
}
