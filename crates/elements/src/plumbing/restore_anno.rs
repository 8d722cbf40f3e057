//! RestoreAnno.

use std::hash::BuildHasher;

use ir::{Diagnostic, Model, Reason};
use net::annotation::Annotations;
use net::flow::FlowHash;
use net::{Batch, Packet};

use super::flow_key::{FlowKey, KeptFields, Seen};
use crate::configure::{Arguments, Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::lru_table::{LruKey, LruTable};

element! {
    /// RestoreAnno([KEEPS, KEYWORDS]) -- gives packets back the annotations that they had before a program
    ///
    /// A program that packets go through, as in ThirdParty, returns frames without their annotations. Input and output 0 are
    /// before it: what stands in the fields KEEPS of each frame, and its annotations, are remembered. Input and output 1 are behind
    /// it: a frame with the same fields gets the annotations of the last one with them. KEEPS is what the program does not
    /// change, such as `ip.src ip.dst l4`. So paint and other marks survive it.
    ///
    /// Frames behind the program whose fields were never seen before it are `unknown`: the program does not keep what it is
    /// said to keep, or it made them. They pass on output 1 as they came; with STRICT they leave on output 2, or are dropped
    /// as `not-kept`. Frames that hold neither IPv4 nor IPv6, or are too short, are not looked at, and without KEEPS none is.
    ///
    /// Each worker remembers what it saw. With several workers, frames return to theirs if KEEPS is all that
    /// workers are chosen by, `ip.src ip.dst l4`; with less, some are unknown, which is warned of.
    ///
    /// Memory is bounded: when CAPACITY keys are known, a new one replaces the one that was not seen for longest.
    ///
    /// = KEYWORDS
    ///
    /// KEEPS (words): ether.src, ether.dst, ip.src, ip.dst (of both IP versions), l4 (protocol and ports), l4.src, l4.dst
    /// (a port), ip.protocol. Fragments have no ports.
    /// STRICT (bool, default false): whether unknown frames do not pass.
    /// CAPACITY (number, default 65536): how many keys are remembered, each with at most 192 bytes.
    ///
    /// = HANDLERS
    ///
    /// known (read): keys that are remembered.
    /// restored (read): frames that got their annotations back.
    /// unknown (read): frames with fields that were never seen before the program.
    ///
    /// = EXAMPLE
    ///
    /// mark :: RestoreAnno(ip.src ip.dst l4);
    /// FromDevice(lan) -> Paint(1) -> [0] mark [0] -> box :: ThirdParty(PROGRAM ./ids) -> [1] mark [1]
    ///   -> PaintSwitch -> ...
    ///
    /// = SEE ALSO
    ///
    /// ThirdParty, Paint
    RestoreAnno { category: Plumbing, ports: "2/2-3", processing: "h/h", samples: [] }
}

/// See [`RestoreAnno::CLASS`].
pub(crate) struct RestoreAnno {
    keeps: KeptFields,
    /// Whether anything is kept.
    looks: bool,
    strict: bool,
    most: usize,
    table: Table,
    counts: Counts,
}

type Table = LruTable<Annotations, Key>;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    restored: u64,
    unknown: u64,
}

/// What stands in the fields that are kept; zeros elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    ether: [u8; 12],
    flow: FlowKey,
}

impl LruKey for Key {
    const UNUSED: Self = Self { ether: [0; 12], flow: FlowKey::NONE };

    fn hash(&self, hash: &FlowHash) -> u64 {
        hash.hash_one(self)
    }
}

/// The program did not keep what it is said to keep.
const NOT_KEPT: Reason = Reason("not-kept");

const LIST: usize = 0;

fn kept(arguments: &mut Arguments<'_, '_>) -> KeptFields {
    let mut kept = KeptFields::default();
    let Some(argument) = arguments.keyword_argument("KEEPS").or_else(|| arguments.next_plain())
    else {
        return kept;
    };
    for word in argument.words() {
        if !kept.add(&word.text) {
            let why = format!(
                "'{}' is no field that is compared: {}",
                word.text,
                KeptFields::NAMES.join(", ")
            );
            arguments.error(&word, why);
        }
    }
    kept
}

impl RestoreAnno {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (span, part) = (cx.span(), cx.part());
        let mut arguments = cx.arguments(&["KEEPS", "STRICT", "CAPACITY"]);
        let keeps = kept(&mut arguments);
        let strict = arguments.keyword("STRICT").unwrap_or(false);
        let most = arguments.keyword::<u32>("CAPACITY").unwrap_or(1 << 16).max(1);
        let looks = keeps != KeptFields::default();
        if looks {
            arguments.claim("CAPACITY", Table::BYTES_EACH * u64::from(most));
        }
        arguments.finish()?;
        if looks && !keeps.is_flow() && part.count > 1 && part.index == 0 {
            let why = "frames that return to another worker than they came from are unknown";
            let help = "KEEPS ip.src ip.dst l4, or --workers 1";
            cx.report(Diagnostic::warning("several-workers", why).label(span, "").help(help));
        }
        let (table, counts) = (Table::default(), Counts::default());
        Ok(Self { keeps, looks, strict, most: most as usize, table, counts })
    }

    fn key(&self, packet: &Packet) -> Option<Key> {
        let flow = Seen::of_frame(packet)?.key.only(&self.keeps);
        let mut ether: [u8; 12] = *packet.data().first_chunk()?;
        if !self.keeps.ether_dst {
            ether[..6].fill(0);
        }
        if !self.keeps.ether_src {
            ether[6..].fill(0);
        }
        Some(Key { ether, flow })
    }

    fn remember(&mut self, packet: &Packet) {
        let Some(key) = self.key(packet) else { return };
        self.add(key, *packet.annotations());
    }

    fn add(&mut self, key: Key, annotations: Annotations) {
        if let Some(number) = self.table.number_of(key) {
            if let Some(known) = self.table.value_mut(number) {
                *known = annotations;
            }
            self.table.renew_number(number, LIST);
            return;
        }
        if self.table.len() >= self.most
            && let Some((oldest, _)) = self.table.oldest(LIST)
        {
            self.table.remove(oldest);
        }
        self.table.insert(key, annotations, LIST);
    }

    /// Whether a packet may pass; it has its annotations then, if they are known.
    fn restore(&mut self, packet: &mut Packet) -> bool {
        let Some(key) = self.key(packet) else { return true };
        match self.table.number_of(key) {
            Some(number) => {
                if let Some((_, _, annotations)) = self.table.entry(number) {
                    *packet.annotations_mut() = *annotations;
                }
                self.table.renew_number(number, LIST);
                self.counts.restored += 1;
                true
            }
            None => {
                self.counts.unknown += 1;
                !self.strict
            }
        }
    }
}

impl Element for RestoreAnno {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if !self.looks {
            cx.emit_all(port, batch);
            return;
        }
        for mut packet in batch.drain() {
            if port == 0 {
                self.remember(&packet);
                cx.emit(0, packet);
            } else if self.restore(&mut packet) {
                cx.emit(1, packet);
            } else {
                cx.reject(2, packet, NOT_KEPT);
            }
        }
    }

    fn model(&self) -> Model {
        Model::opaque("remembers annotations")
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if to.is_all() {
            to.numbers = vec![self.counts.restored, self.counts.unknown];
            to.native = Some(Box::new((self.keeps, self.table.drain())));
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        if let Some([restored, unknown]) = from.counts() {
            self.counts = Counts { restored, unknown };
        }
        let moved = from.take_native::<(KeptFields, Vec<(Key, Annotations)>)>();
        let moved = moved.filter(|moved| moved.0 == self.keeps);
        moved.into_iter().flat_map(|moved| moved.1).for_each(|(key, known)| self.add(key, known));
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("known"), Handler::count("restored"), Handler::count("unknown")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "known" => self.table.len() as u64,
            "restored" => self.counts.restored,
            _ => self.counts.unknown,
        }
        .to_string())
    }
}
