//! DRRSched.

use ir::Model;
use net::Packet;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;
use crate::element_state::ElementState;

element! {
    /// DRRSched([QUANTUM]) -- pulls from its inputs fairly by bytes
    ///
    /// Schedules its inputs by deficit round robin (M. Shreedhar and G. Varghese, SIGCOMM 1995):
    /// each input that has packets may send QUANTUM bytes a round; what it could not use because
    /// its next packet is longer is added to its next round. The default QUANTUM is 500.
    ///
    /// = SEE ALSO
    ///
    /// RoundRobinSched, PrioSched, StrideSched
    DRRSched {
        category: Queue, ports: "-/1", processing: "l/l",
        samples: []
    }
}

/// See [`DRRSched::CLASS`].
pub(crate) struct DRRSched {
    quantum: u64,
    inputs: Vec<Input>,
    next: usize,
}

/// An input with the packet that its credit did not suffice for.
#[derive(Default)]
struct Input {
    head: Option<Packet>,
    deficit: u64,
}

impl DRRSched {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let inputs = (0..cx.inputs()).map(|_| Input::default()).collect();
        let mut arguments = cx.arguments(&["QUANTUM"]);
        let quantum = arguments.optional("QUANTUM").unwrap_or(500u32);
        if quantum == 0 {
            let span = arguments.cx().span();
            let error = ir::Diagnostic::error("bad-argument", "QUANTUM must be at least 1");
            arguments.report(error.label(span, ""));
        }
        arguments.finish()?;
        Ok(Self { quantum: quantum.into(), inputs, next: 0 })
    }
}

impl Element for DRRSched {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        loop {
            // Each input is looked at once, first the one that sent last.
            for _ in 0..self.inputs.len() {
                let input = &mut self.inputs[self.next];
                match input.head.take().or_else(|| cx.pull(self.next)) {
                    None => input.deficit = 0,
                    Some(packet) if packet.len() as u64 <= input.deficit => {
                        input.deficit -= packet.len() as u64;
                        return Some(packet);
                    }
                    Some(packet) => input.head = Some(packet),
                }
                self.next = if self.next + 1 < self.inputs.len() { self.next + 1 } else { 0 };
                self.inputs[self.next].deficit += self.quantum;
            }
            // Of the rounds that are too few for every input, all but the last are skipped.
            let missing =
                |i: &Input| Some((i.head.as_ref()?.len() as u64).saturating_sub(i.deficit));
            let least = self.inputs.iter().filter_map(missing).min()?;
            let skipped = least.saturating_sub(1) / self.quantum;
            for input in self.inputs.iter_mut().filter(|i| i.head.is_some()) {
                input.deficit += skipped * self.quantum;
            }
        }
    }

    fn model(&self) -> Model {
        Model::opaque("pulls packets")
    }

    fn held(&self) -> usize {
        self.inputs.iter().filter(|input| input.head.is_some()).count()
    }

    fn queued(&self, show: &mut dyn FnMut(&Packet)) {
        self.inputs.iter().filter_map(|input| input.head.as_ref()).for_each(show);
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if to.is_all() {
            to.numbers.push(self.next as u64);
            for input in &mut self.inputs {
                to.numbers.extend([input.deficit, u64::from(input.head.is_some())]);
                to.packets.extend(input.head.take());
            }
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        let Some((&next, numbers)) = from.numbers.split_first() else { return };
        let mut packets = std::mem::take(&mut from.packets).into_iter();
        let next = next as usize;
        self.next = if next < self.inputs.len() { next } else { 0 };
        for (input, numbers) in self.inputs.iter_mut().zip(numbers.as_chunks().0) {
            let [deficit, held] = *numbers;
            input.deficit = deficit;
            input.head = if held == 1 { packets.next() } else { None };
        }
        from.packets.extend(packets);
    }
}
