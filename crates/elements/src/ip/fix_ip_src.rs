//! FixIPSrc.

use std::net::Ipv4Addr;

use ir::field::{anno, ip};
use ir::{Model, Op};
use net::{Batch, annotation};

use crate::argument::Ip;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header;

element! {
    /// FixIPSrc(IPADDR) -- sets the IP source address where that was asked for
    ///
    /// Where the fix-IP-source annotation is set, as ICMPError does, the source address of the
    /// marked IP header becomes IPADDR, the checksum is computed anew and the annotation is
    /// cleared. Other packets, and packets without a marked IP header, pass unchanged.
    ///
    /// = SEE ALSO
    ///
    /// ICMPError
    FixIPSrc {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("10.0.0.1", 1, 1)]
    }
}

/// See [`FixIPSrc::CLASS`].
pub(crate) struct FixIPSrc {
    address: Ipv4Addr,
}

impl FixIPSrc {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["IPADDR"]);
        let address: Ip = arguments.required("IPADDR");
        arguments.finish()?;
        Ok(Self { address: address.0 })
    }
}

impl Element for FixIPSrc {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            if packet.annotations().u8(annotation::FIX_IP_SRC) != 0
                && let Some(mut ip) = ip_header::view_mut(packet)
            {
                ip.set_src(self.address);
                ip.fill_checksum();
                packet.annotations_mut().set_u8(annotation::FIX_IP_SRC, 0);
            }
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        let mut fix = vec![ip::SRC.set(self.address.to_bits())];
        fix.extend(ip_header::model_fill_checksum());
        fix.push(anno::FIX_IP_SRC.set(0u8));
        let asked = anno::FIX_IP_SRC.ne(0u8).and(ip_header::is_missing().not());
        Model::from_block(vec![Op::when(asked, fix), Op::emit(0u8)])
    }
}
