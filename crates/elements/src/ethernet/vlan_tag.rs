//! SetVLANAnno, and the arguments that all elements take which make VLAN tags.

use ir::field::anno;
use ir::{Expr, Model, Op};
use net::{Annotations, Batch, annotation};

use crate::argument::parse_value;
use crate::configure::{Arguments, Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};

/// Which tag frames get.
#[derive(Clone, Copy)]
pub(crate) struct Tag {
    /// The tag control information (IEEE 802.1Q); that of the annotation if `None`.
    tci: Option<u16>,
    /// The VLAN whose frames stay untagged.
    native: Option<u16>,
}

impl Tag {
    /// Takes VLAN_TCI and VLAN_PCP, which may be positional, and the keyword VLAN_ID; the caller
    /// has declared them all. No VLAN stays untagged.
    pub(crate) fn configure(arguments: &mut Arguments<'_, '_>) -> Self {
        let word = arguments.keyword_argument("VLAN_TCI").or_else(|| arguments.next_raw());
        let from_annotation = word.as_ref().is_some_and(|word| word.text == "ANNO");
        let whole = word.filter(|_| !from_annotation);
        let whole: Option<u16> = whole.and_then(|word| arguments.parse("VLAN_TCI", &word));
        let priority = arguments.keyword_argument("VLAN_PCP").or_else(|| arguments.next_raw());
        let priority = priority.map_or(0, |p| bounded(arguments, "VLAN_PCP", &p, 0, 7));
        let id = arguments.keyword_argument("VLAN_ID");
        let id = id.map_or(0, |id| bounded(arguments, "VLAN_ID", &id, 0, 0xfff));
        let tci = whole.unwrap_or(id as u16) | (priority as u16) << 13;
        Self { tci: (!from_annotation).then_some(tci), native: None }
    }

    /// Takes the keyword NATIVE_VLAN besides.
    pub(crate) fn configure_with_native(arguments: &mut Arguments<'_, '_>) -> Self {
        let tag = Self::configure(arguments);
        let native = arguments.keyword_argument("NATIVE_VLAN");
        let native = native.map_or(0, |n| bounded(arguments, "NATIVE_VLAN", &n, -1, 0xfff));
        Self { native: u16::try_from(native).ok(), ..tag }
    }

    /// The tag of a packet with these annotations.
    #[inline]
    pub(crate) fn tci(&self, annotations: &Annotations) -> u16 {
        self.tci.unwrap_or_else(|| annotations.u16(annotation::VLAN_TCI))
    }

    /// Whether frames with this tag stay untagged.
    #[inline]
    pub(crate) fn is_native(&self, tci: u16) -> bool {
        self.native == Some(tci & 0xfff)
    }

    /// The tag and whether frames with it stay untagged, as parts of models.
    pub(crate) fn model(&self) -> (Expr, ir::Cond) {
        let tci = self.tci.map_or(anno::VLAN_TCI.get(), Expr::from);
        let native = match (self.native, self.tci) {
            (None, _) => ir::Cond::Const(false),
            (Some(_), Some(tci)) => ir::Cond::Const(self.is_native(tci)),
            (Some(native), None) => (tci.clone() & 0xfffu16).eq(native),
        };
        (tci, native)
    }

    /// Handlers of elements that make tags.
    pub(crate) const HANDLERS: &'static [Handler] = &[
        Handler::both("vlan_tci"),
        Handler::both("vlan_id"),
        Handler::both("vlan_pcp"),
        Handler::both("native_vlan"),
    ];

    /// Reads one of [`Tag::HANDLERS`].
    pub(crate) fn read(&self, handler: &str) -> String {
        match (handler, self.tci) {
            ("native_vlan", _) => self.native.map_or("-1".to_string(), |n| n.to_string()),
            (_, None) => "ANNO".to_string(),
            ("vlan_id", Some(tci)) => (tci & 0xfff).to_string(),
            ("vlan_pcp", Some(tci)) => (tci >> 13).to_string(),
            (_, Some(tci)) => tci.to_string(),
        }
    }

    /// Writes one of [`Tag::HANDLERS`].
    pub(crate) fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        let within = |low: i32, high: i32| {
            let number: i32 = parse_value(value)?;
            let inside = (low..=high).contains(&number);
            if inside {
                Ok(number)
            } else {
                Err(format!("{number} is out of range: {low} to {high}"))
            }
        };
        let tci = self.tci.unwrap_or(0);
        match handler {
            "native_vlan" => self.native = u16::try_from(within(-1, 0xfff)?).ok(),
            "vlan_id" => self.tci = Some(tci & 0xf000 | within(0, 0xfff)? as u16),
            "vlan_pcp" => self.tci = Some(tci & 0x1fff | (within(0, 7)? as u16) << 13),
            _ if value.trim() == "ANNO" => self.tci = None,
            _ => self.tci = Some(within(0, 0xffff)? as u16),
        }
        Ok(())
    }
}

fn bounded(
    arguments: &mut Arguments<'_, '_>,
    name: &str,
    argument: &click::config::Argument,
    low: i32,
    high: i32,
) -> i32 {
    let number = arguments.parse(name, argument).unwrap_or(0);
    if !(low..=high).contains(&number) {
        arguments.error(argument, format!("{number} is out of range: {low} to {high}"));
        return 0;
    }
    number
}

element! {
    /// SetVLANAnno([VLAN_TCI, VLAN_PCP, KEYWORDS VLAN_ID]) -- sets the VLAN annotation
    ///
    /// Sets the VLAN annotation to the tag control information VLAN_TCI, or to the identifier
    /// VLAN_ID, with the priority VLAN_PCP (0 to 7).
    ///
    /// = HANDLERS
    ///
    /// vlan_tci, vlan_id, vlan_pcp (read, write): the tag and its parts.
    ///
    /// = SEE ALSO
    ///
    /// EtherVLANEncap, VLANEncap, StripEtherVLANHeader
    SetVLANAnno {
        category: Ethernet, ports: "1/1", processing: "a/a",
        samples: [("VLAN_ID 77, VLAN_PCP 3", 1, 1), ("0x2005", 1, 1)]
    }
}

/// See [`SetVLANAnno::CLASS`].
pub(crate) struct SetVLANAnno {
    tag: Tag,
}

impl SetVLANAnno {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["VLAN_TCI", "VLAN_PCP", "VLAN_ID"]);
        let tag = Tag::configure(&mut arguments);
        arguments.finish()?;
        Ok(Self { tag })
    }
}

impl Element for SetVLANAnno {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        for packet in batch.iter_mut() {
            let tci = self.tag.tci(packet.annotations());
            packet.annotations_mut().set_u16(annotation::VLAN_TCI, tci);
        }
    }

    fn model(&self) -> Model {
        Model::from_block(vec![anno::VLAN_TCI.set(self.tag.model().0), Op::emit(0u8)])
    }

    fn handlers(&self) -> &'static [Handler] {
        const { Tag::HANDLERS.first_chunk::<3>().expect("four handlers") }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.tag.read(handler))
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.tag.write(handler, value)
    }
}
