//! HTBSched.

use std::fmt::Write;

use click::config::Argument;
use ir::{Diagnostic, Model};
use net::Packet;

use crate::argument::{BytesPerSecond, FromArgument};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::names::Names;
use crate::queue::htb::{Counts, Held, Hierarchy, LEAST_QUANTUM, LEVELS, PRIORITIES, Rates};

element! {
    /// HTBSched(CLASS, ...) -- pulls from its inputs by hierarchical token buckets
    ///
    /// Shares a link between classes of traffic (hierarchical token buckets, M. Devera, 2002). Each argument is a class:
    ///
    ///     NAME RATE [CEIL rate] [PARENT name] [PRIO number] [BURST bytes] [CBURST bytes] [QUANTUM bytes]
    ///
    /// Classes form trees: PARENT names one that stands before. Those that are no parents are leaves. Each leaf has an
    /// input, in the order of the arguments.
    ///
    /// A class below its RATE sends. Above it, a class borrows from its parent, if that is below its own rate or borrows
    /// itself, until it reaches CEIL. Leaves that send at their own rate come before those that borrow. Of those that
    /// borrow, the ones come first whose lender is lowest in the tree, then those with the lowest PRIO, and those that
    /// are alike share by deficit round robin. What a class sends counts at the rate of its lender and of all
    /// above, and at the ceiling of all from the leaf up. A leaf below its rate sends whatever its parents have sent, so the
    /// rates of children should add up to that of their parent at the most.
    ///
    /// Rates are bytes a second, or bits: `10Mbps`. Whole frames are counted, without checksum and preamble. A packet is
    /// sent while a byte is left in the bucket, which it may leave in debt. A pull takes time that grows with the number
    /// of classes; there may be 1024 in trees of 8 levels.
    ///
    /// = KEYWORDS
    ///
    /// CEIL (bandwidth, default RATE): the most that a class sends, borrowed or not.
    /// PARENT (name): the class that lends to this one.
    /// PRIO (number from 0 to 7, default 0): who borrows first.
    /// BURST (number, default 10 ms of RATE, at least 1600): bytes that a class sends at once at its rate.
    /// CBURST (number, default 10 ms of CEIL, at least 1600): bytes that it sends at once in all.
    /// QUANTUM (number, default 100 ms of RATE, from 1514 to 200000): bytes that a leaf sends in its turn; at least 1000.
    ///
    /// = HANDLERS
    ///
    /// classes (read): a line for each class: name, rate and ceiling in bytes a second, packets and bytes sent, packets
    /// lent and borrowed.
    /// change (write): a class with other values, as `web 20Mbps CEIL 40Mbps`. It keeps its parent. What is not
    /// named becomes the default.
    ///
    /// When a chain replaces another, classes of the same name keep their buckets, and leaves the packet that waits.
    ///
    /// = EXAMPLE
    ///
    /// link :: HTBSched(link 100Mbps,
    ///                  voice 10Mbps PARENT link,
    ///                  web 60Mbps CEIL 100Mbps PARENT link PRIO 1,
    ///                  bulk 30Mbps CEIL 100Mbps PARENT link PRIO 2);
    /// FromDevice(lan) -> kind :: Classifier(15/b8, 23/06, -);
    /// kind[0] -> Queue -> [0] link -> ToDevice(wan);
    /// kind[1] -> Queue -> [1] link;
    /// kind[2] -> Queue -> [2] link;
    ///
    /// = SEE ALSO
    ///
    /// DRRSched, PrioSched, StrideSched, BandwidthShaper
    HTBSched {
        category: Queue, ports: "1-/1", processing: "l/l",
        samples: []
    }
}

const MOST_CLASSES: usize = 1024;

/// Bytes of a burst that is not configured: what comes in so many parts of a second, at least one packet.
const BURST_PARTS: u64 = 100;
const LEAST_BURST: u64 = 1600;
const QUANTUM_PARTS: u64 = 10;

/// A class as it is written.
struct Written {
    name: Argument,
    parent: Option<Argument>,
    rates: Rates,
}

/// See [`HTBSched::CLASS`].
pub(crate) struct HTBSched {
    names: Vec<String>,
    hierarchy: Hierarchy,
    /// The packet of each input that is sent next.
    heads: Vec<Option<Packet>>,
}

/// What moves to another element, by class; packets stand in the order of those that hold one.
struct Moved(Vec<(String, Held, Counts, bool)>);

/// Where something is wrong, and what.
type Wrong = (Argument, String);

fn value<T: FromArgument>(
    word: &Argument,
    keyword: &str,
    words: &mut dyn Iterator<Item = Argument>,
) -> Result<T, Wrong> {
    let Some(value) = words.next() else {
        return Err((word.clone(), format!("{keyword} lacks {}", T::EXPECTED)));
    };
    T::from_argument(&value, &Names::default(), "").map_err(|why| (value, why))
}

impl Written {
    fn parse(class: &Argument) -> Result<Self, Wrong> {
        let mut words = class.words();
        let Some(name) = words.next() else {
            return Err((class.clone(), "a class is missing".to_string()));
        };
        let rate: BytesPerSecond = value(&name, "a class", &mut words)?;
        let (mut ceil, mut parent, mut priority) = (None, None, 0u8);
        let (mut burst, mut ceil_burst, mut quantum) = (None, None, None);
        let rest: Vec<Argument> = words.collect();
        let mut words = rest.into_iter();
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "CEIL" => {
                    ceil = Some((value::<BytesPerSecond>(&word, "CEIL", &mut words)?.0, word))
                }
                "PARENT" => {
                    let missing = || (word.clone(), "PARENT lacks a name".to_string());
                    parent = Some(words.next().ok_or_else(missing)?);
                }
                "PRIO" => {
                    priority = value(&word, "PRIO", &mut words)?;
                    if usize::from(priority) >= PRIORITIES {
                        return Err((word, format!("PRIO is at most {}", PRIORITIES - 1)));
                    }
                }
                "BURST" => burst = Some(value::<u32>(&word, "BURST", &mut words)?),
                "CBURST" => ceil_burst = Some(value::<u32>(&word, "CBURST", &mut words)?),
                "QUANTUM" => {
                    let bytes = value(&word, "QUANTUM", &mut words)?;
                    if bytes < LEAST_QUANTUM {
                        return Err((word, format!("QUANTUM is at least {LEAST_QUANTUM} bytes")));
                    }
                    quantum = Some(bytes);
                }
                other => {
                    let known = "CEIL, PARENT, PRIO, BURST, CBURST, QUANTUM";
                    let message = format!("'{other}' is none of {known}");
                    return Err((word, message));
                }
            }
        }
        let rate = rate.0;
        if rate == 0 {
            return Err((name, "a class needs a rate of at least a byte a second".to_string()));
        }
        if let Some((ceil, word)) = &ceil
            && *ceil < rate
        {
            return Err((word.clone(), "CEIL is less than the rate".to_string()));
        }
        let ceil = ceil.map_or(rate, |(ceil, _)| ceil);
        let of = |burst: Option<u32>, rate: u64| {
            burst.map_or((rate / BURST_PARTS).max(LEAST_BURST), u64::from)
        };
        let usual = (rate / QUANTUM_PARTS).clamp(1514, 200_000) as u32;
        let rates = Rates {
            rate,
            ceil,
            burst: of(burst, rate),
            ceil_burst: of(ceil_burst, ceil),
            priority,
            quantum: quantum.unwrap_or(usual),
        };
        Ok(Self { name, parent, rates })
    }
}

impl HTBSched {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (inputs, span) = (cx.inputs(), cx.span());
        let mut arguments = cx.arguments(&[]);
        let (mut names, mut hierarchy) = (Vec::<String>::new(), Hierarchy::default());
        let classes = arguments.rest();
        if classes.len() > MOST_CLASSES {
            let message = format!("there are more than {MOST_CLASSES} classes");
            arguments.error(&classes[MOST_CLASSES], message);
        }
        for class in classes.iter().take(MOST_CLASSES) {
            let Written { name, parent, rates } = match Written::parse(class) {
                Ok(written) => written,
                Err((at, why)) => {
                    arguments.error(&at, why);
                    continue;
                }
            };
            let find = |name: &str| names.iter().position(|known| known == name);
            if find(&name.text).is_some() {
                arguments.error(&name, format!("there are two classes '{}'", name.text));
                continue;
            }
            let number = parent.as_ref().and_then(|parent| find(&parent.text));
            if let (Some(parent), None) = (&parent, number) {
                arguments.error(parent, format!("no class '{}' stands before", parent.text));
            }
            let class = hierarchy.add(number, rates);
            if hierarchy.depth(class) >= LEVELS {
                arguments.error(&name, format!("trees of classes have at most {LEVELS} levels"));
            }
            names.push(name.text);
        }
        hierarchy.finish();
        let leaves: Vec<&str> = hierarchy.leaves().map(|leaf| names[leaf].as_str()).collect();
        if names.len() == classes.len() && leaves.len() != inputs {
            let message = format!("{} classes have an input, not {inputs}", leaves.len());
            let help = format!("the inputs are those of {}", leaves.join(", "));
            let error = Diagnostic::error("bad-argument", message).label(span, "");
            arguments.report(if leaves.is_empty() { error } else { error.help(help) });
        }
        arguments.finish()?;
        let heads = (0..inputs).map(|_| None).collect();
        Ok(Self { names, hierarchy, heads })
    }
}

impl Element for HTBSched {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        let Self { hierarchy, heads, .. } = self;
        let now = cx.now();
        let ready = |leaf: usize| {
            let head: &mut Option<Packet> = heads.get_mut(leaf)?;
            if head.is_none() {
                *head = cx.pull(leaf);
            }
            head.as_ref().map(|packet| packet.len() as u64)
        };
        match hierarchy.next(now, ready) {
            Some(leaf) => heads[leaf].take(),
            None => {
                if let Some(time) = hierarchy.time_of_next() {
                    cx.wake_at(time);
                }
                None
            }
        }
    }

    fn model(&self) -> Model {
        Model::opaque("pulls packets")
    }

    fn held(&self) -> usize {
        self.heads.iter().flatten().count()
    }

    fn queued(&self, show: &mut dyn FnMut(&Packet)) {
        self.heads.iter().flatten().for_each(show);
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if !to.is_all() {
            return;
        }
        let mut moved = Vec::new();
        for (class, name) in self.names.iter().enumerate() {
            let (held, counts) = self.hierarchy.held(class);
            moved.push((name.clone(), held, counts, false));
        }
        for (class, head) in self.hierarchy.leaves().zip(&mut self.heads) {
            moved[class].3 = head.is_some();
        }
        // Heads stand in the order of inputs, which is that of classes.
        to.packets.extend(self.heads.iter_mut().filter_map(Option::take));
        to.native = Some(Box::new(Moved(moved)));
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        let Some(moved) = from.take_native::<Moved>() else { return };
        let mut packets = std::mem::take(&mut from.packets).into_iter();
        let leaves: Vec<usize> = self.hierarchy.leaves().collect();
        for (name, held, counts, has_head) in moved.0 {
            let head = if has_head { packets.next() } else { None };
            let class = self.names.iter().position(|known| *known == name);
            if let Some(class) = class {
                self.hierarchy.restore(class, held, counts);
            }
            match class.and_then(|class| leaves.iter().position(|leaf| *leaf == class)) {
                Some(leaf) => self.heads[leaf] = head,
                None => from.packets.extend(head),
            }
        }
        from.packets.extend(packets);
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("classes"), Handler::write("change")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let mut text = String::new();
        for (class, name) in self.names.iter().enumerate() {
            let Rates { rate, ceil, .. } = self.hierarchy.rates(class);
            let Counts { packets, bytes, lent, borrowed } = self.hierarchy.counts(class);
            let _ = writeln!(text, "{name} {rate} {ceil} {packets} {bytes} {lent} {borrowed}");
        }
        Ok(text)
    }

    fn write(&mut self, _: &str, text: &str, _: &mut Context<'_>) -> Result<(), String> {
        let written = Written::parse(&Argument::bare(text)).map_err(|(_, why)| why)?;
        let Written { name: Argument { text: name, .. }, parent, rates } = written;
        if parent.is_some() {
            return Err("a class keeps its parent".to_string());
        }
        let class = self.names.iter().position(|known| *known == name);
        self.hierarchy.change(class.ok_or_else(|| format!("there is no class '{name}'"))?, rates);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use net::Pool;

    use super::*;
    use crate::element_state::Scope;

    fn scheduler(classes: &[&str]) -> HTBSched {
        let (mut names, mut hierarchy) = (Vec::<String>::new(), Hierarchy::default());
        for class in classes {
            let written = Written::parse(&Argument::bare(*class)).unwrap();
            let parent = written.parent.map(|parent| names.iter().position(|n| *n == parent.text));
            hierarchy.add(parent.flatten(), written.rates);
            names.push(written.name.text);
        }
        hierarchy.finish();
        let heads = hierarchy.leaves().map(|_| None).collect();
        HTBSched { names, hierarchy, heads }
    }

    /// The class that sends, with a packet of each leaf ready.
    fn sends(scheduler: &mut HTBSched, now: u64) -> Option<String> {
        let leaf = scheduler.hierarchy.next(now, |_| Some(1000))?;
        let class = scheduler.hierarchy.leaves().nth(leaf)?;
        Some(scheduler.names[class].clone())
    }

    #[test]
    fn classes_of_the_same_name_keep_buckets_counts_and_packets() {
        let mut pool = Pool::new();
        let mut old = scheduler(&["link 9000 BURST 1", "a 9000 PARENT link", "b 9000 PARENT link"]);
        assert_eq!(sends(&mut old, 0).as_deref(), Some("a"));
        assert_eq!(sends(&mut old, 0).as_deref(), Some("a"));
        for (head, byte) in old.heads.iter_mut().zip([1, 2]) {
            *head = Some(pool.packet(&[byte]));
        }
        let mut state = ElementState::new(Scope::All);
        old.export("x", &mut state);
        assert_eq!((state.packets.len(), old.held()), (2, 0));
        let mut new = scheduler(&["b 9000", "c 9000", "link 9000 CBURST 1"]);
        new.import("x", &mut state, 0);
        let heads = new.heads.iter().map(|head| head.as_ref().map(|p| p.data().to_vec()));
        assert_eq!(heads.collect::<Vec<_>>(), [Some(vec![2]), None, None]);
        assert_eq!(state.packets.len(), 1, "the packet of a class that is no more");
        let counts = new.hierarchy.counts(2);
        assert_eq!((counts.packets, counts.bytes), (2, 2000));
        // The link is in debt of what went through it.
        new.heads.clear();
        assert_eq!(sends(&mut new, 0).as_deref(), Some("b"));
        assert_eq!(sends(&mut new, 0).as_deref(), Some("b"));
        assert_eq!(sends(&mut new, 0).as_deref(), Some("c"));
        assert_eq!(sends(&mut new, 0).as_deref(), Some("c"));
        assert_eq!(sends(&mut new, 0), None);
    }
}
