//! SetIPAddress.

use ir::{Base, Field, Model, Op};
use net::{Batch, annotation};

use crate::argument::{AnnotationOffset, Ip};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;

element! {
    /// SetIPAddress(ADDR [, ANNO]) -- sets the destination address annotation
    ///
    /// Sets the destination address annotation, or the annotation ANNO, to ADDR.
    ///
    /// = SEE ALSO
    ///
    /// GetIPAddress, StoreIPAddress
    SetIPAddress {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("10.0.0.1", 1, 1), ("10.0.0.1, ANNO 20", 1, 1)]
    }
}

/// See [`SetIPAddress::CLASS`].
pub(crate) struct SetIPAddress {
    address: u32,
    to: usize,
}

impl SetIPAddress {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["ADDR", "ANNO"]);
        let address: Ip = arguments.required("ADDR");
        let to = arguments.optional::<AnnotationOffset<4>>("ANNO");
        arguments.finish()?;
        Ok(Self { address: address.0.to_bits(), to: to.map_or(annotation::DST_IP, |a| a.0) })
    }
}

impl Element for SetIPAddress {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        for packet in batch.iter_mut() {
            packet.annotations_mut().set_u32(self.to, self.address);
        }
    }

    fn model(&self) -> Model {
        let to = Field::bytes(Base::Annotation, self.to as u16, 4);
        Model::from_block(vec![to.set(self.address), Op::emit(0u8)])
    }
}
