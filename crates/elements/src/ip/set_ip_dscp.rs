//! SetIPDSCP, SetIPECN and MarkIPCE: the byte that was once the type of service.

use click::config::Argument;
use ir::field::ip;
use ir::model::{Block, Reg};
use ir::{Expr, Field, Model, Op, Reason};
use net::Batch;

use crate::argument::FromArgument;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::ip::ip_header::{self, NETWORK, NO_HEADER};
use crate::names::Names;

element! {
    /// SetIPDSCP(DSCP) -- sets the differentiated services code point
    ///
    /// Expects IP packets with their header marked. Sets their code point (RFC 2474) to DSCP, 0
    /// to 63, leaves the ECN bits alone, and updates the checksum.
    ///
    /// = HANDLERS
    ///
    /// dscp (read, write): the code point.
    ///
    /// = SEE ALSO
    ///
    /// SetIPECN, MarkIPCE
    SetIPDSCP {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("10", 1, 1), ("63", 1, 1)]
    }
}

/// See [`SetIPDSCP::CLASS`].
pub(crate) struct SetIPDSCP {
    dscp: Dscp,
}

/// A code point, 0 to 63.
#[derive(Clone, Copy, Default)]
pub(crate) struct Dscp(pub(crate) u8);

impl FromArgument for Dscp {
    const EXPECTED: &'static str = "a number from 0 to 63";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        let dscp = u8::from_argument(argument, names, element)?;
        if dscp > 63 { Err(format!("{dscp} is out of range: 0 to 63")) } else { Ok(Self(dscp)) }
    }
}

impl SetIPDSCP {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["DSCP"]);
        let dscp = arguments.required("DSCP");
        arguments.finish()?;
        Ok(Self { dscp })
    }
}

impl Element for SetIPDSCP {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let dscp = self.dscp.0 << 2;
        cx.each(batch, |packet, _| {
            let Some(mut ip) = ip_header::fixed_mut(packet) else {
                return Verdict::Drop(NO_HEADER);
            };
            ip.replace_tos(dscp | ip.ecn());
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        let mut block = vec![Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)])];
        block.extend(set(ip::DSCP, self.dscp.0));
        block.push(Op::emit(0u8));
        Model::from_block(block)
    }

    value_handler!("dscp", dscp.0);
}

/// Sets a field in the header's first word and updates the checksum.
fn set(field: Field, value: u8) -> Block {
    const OLD: Reg = Reg(0);
    let first = Field::bytes(NETWORK, 0, 2);
    let change = [(Expr::from(OLD), first.get())];
    vec![
        Op::Let(OLD, first.get()),
        field.set(value),
        ip::CHECKSUM.set(ip_header::model_update(ip::CHECKSUM, change)),
    ]
}

element! {
    /// SetIPECN(ECN) -- sets the explicit congestion notification bits
    ///
    /// Expects IP packets with their header marked. Sets their ECN bits (RFC 3168) and updates
    /// the checksum. ECN is a number from 0 to 3, no or - for "not ECN-capable", ect1 or ECT(1),
    /// ect2 or ECT(0), ce or CE for "congestion experienced".
    ///
    /// = HANDLERS
    ///
    /// ecn (read, write): the bits.
    ///
    /// = SEE ALSO
    ///
    /// MarkIPCE, SetIPDSCP
    SetIPECN {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("ect1", 1, 1), ("no", 1, 1), ("ECT(0)", 1, 1), ("3", 1, 1)]
    }
}

/// See [`SetIPECN::CLASS`].
pub(crate) struct SetIPECN {
    ecn: Ecn,
}

#[derive(Clone, Copy, Default)]
struct Ecn(u8);

const CONGESTION: u8 = 3;

impl FromArgument for Ecn {
    const EXPECTED: &'static str = "0 to 3, no, ect1, ect2 or ce";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        match argument.text.as_str() {
            "0" | "no" | "-" => Ok(Self(0)),
            "1" | "ect1" | "ECT(1)" => Ok(Self(1)),
            "2" | "ect2" | "ECT(0)" => Ok(Self(2)),
            "3" | "ce" | "CE" => Ok(Self(CONGESTION)),
            other => Err(format!("'{other}' is not {}", Self::EXPECTED)),
        }
    }
}

impl SetIPECN {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["ECN"]);
        let ecn = arguments.required("ECN");
        arguments.finish()?;
        Ok(Self { ecn })
    }
}

impl Element for SetIPECN {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let ecn = self.ecn.0;
        cx.each(batch, |packet, _| {
            let Some(mut ip) = ip_header::fixed_mut(packet) else {
                return Verdict::Drop(NO_HEADER);
            };
            ip.replace_tos(ip.tos() & !CONGESTION | ecn);
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        let mut block = vec![Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)])];
        block.extend(set(ip::ECN, self.ecn.0));
        block.push(Op::emit(0u8));
        Model::from_block(block)
    }

    value_handler!("ecn", ecn.0);
}

element! {
    /// MarkIPCE([FORCE]) -- marks IP packets as having experienced congestion
    ///
    /// Expects IP packets with their header marked. Sets the ECN bits of ECN-capable packets to
    /// "congestion experienced" (RFC 3168) and updates the checksum. Packets that are not
    /// ECN-capable are dropped, unless FORCE is true: then they are marked all the same.
    ///
    /// = HANDLERS
    ///
    /// drops (read): packets dropped.
    ///
    /// = SEE ALSO
    ///
    /// SetIPECN
    MarkIPCE {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("true", 1, 1)]
    }
}

/// See [`MarkIPCE::CLASS`].
pub(crate) struct MarkIPCE {
    force: bool,
}

/// The sender does not support ECN, so the packet cannot be marked.
const NOT_CAPABLE: Reason = Reason("not-ecn-capable");

impl MarkIPCE {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["FORCE"]);
        let force = arguments.optional("FORCE").unwrap_or(false);
        arguments.finish()?;
        Ok(Self { force })
    }
}

impl Element for MarkIPCE {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            let Some(mut ip) = ip_header::fixed_mut(packet) else {
                return Verdict::Drop(NO_HEADER);
            };
            match ip.ecn() {
                0 if !self.force => Verdict::Drop(NOT_CAPABLE),
                CONGESTION => Verdict::Pass,
                _ => {
                    ip.replace_tos(ip.tos() | CONGESTION);
                    Verdict::Pass
                }
            }
        });
    }

    fn model(&self) -> Model {
        let mut block = vec![Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)])];
        if !self.force {
            block.push(Op::when(ip::ECN.eq(0u8), vec![Op::Drop(NOT_CAPABLE)]));
        }
        block.extend([Op::when(ip::ECN.ne(CONGESTION), set(ip::ECN, CONGESTION)), Op::emit(0u8)]);
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("drops")] }
    }

    fn read(&self, _: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(cx.tally.count(NOT_CAPABLE).to_string())
    }
}
