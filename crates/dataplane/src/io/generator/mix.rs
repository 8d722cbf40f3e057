//! Mixes: of which flow each packet of generated traffic is.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Generator;
use super::frame::Headers;

/// Where the headers of packets come from.
pub(super) enum Source {
    Flows(Chooser),
}

impl Source {
    pub(super) fn new(generator: &Generator) -> Self {
        Self::Flows(Chooser::new(generator.flows, generator.zipf))
    }

    /// The next packet: the place of its protocol among the generator's, and its headers.
    pub(super) fn next(
        &mut self,
        generator: &Generator,
        rng: &mut fastrand::Rng,
    ) -> (usize, Headers) {
        match self {
            Self::Flows(chooser) => flow(generator, chooser.next(generator.flows, rng)),
        }
    }
}

/// The headers of a flow.
fn flow(generator: &Generator, number: u32) -> (usize, Headers) {
    let which = number as usize % generator.protocols.len();
    let mixed = (u64::from(number) ^ generator.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (from, to) = (number >> 4, (mixed >> 40) as u32);
    let (source, destination) = if generator.protocols[which].is_ipv6() {
        let plus = |base: Ipv6Addr, more: u32| base.to_bits().wrapping_add(more.into());
        (
            Ipv6Addr::from(plus(generator.source6, from)).into(),
            Ipv6Addr::from(plus(generator.destination6, to)).into(),
        )
    } else {
        let plus = |base: Ipv4Addr, more: u32| base.to_bits().wrapping_add(more);
        (
            Ipv4Addr::from(plus(generator.source, from)).into(),
            Ipv4Addr::from(plus(generator.destination, to)).into(),
        )
    };
    let ports = (1024 + (number % 60_000) as u16, 1 + (mixed >> 16) as u16 % 1023);
    (which, Headers { source, destination, ports })
}

/// Draws flow numbers by their shares (Walker's alias method).
pub(super) enum Chooser {
    /// Every flow in turn.
    InTurn(u32),
    /// For each slot, the chance to stay (of 2^32) and the flow to take otherwise.
    Alias(Vec<(u32, u32)>),
}

impl Chooser {
    fn new(flows: u32, skew: f64) -> Self {
        if skew == 0.0 {
            return Self::InTurn(0);
        }
        let mut scaled: Vec<f64> = (1..=flows).map(|k| f64::from(k).powf(-skew)).collect();
        let mean = scaled.iter().sum::<f64>() / f64::from(flows);
        scaled.iter_mut().for_each(|share| *share /= mean);
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..flows).partition(|&i| scaled[i as usize] < 1.0);
        let mut table = vec![(u32::MAX, 0u32); scaled.len()];
        while let (Some(s), Some(&l)) = (small.pop(), large.last()) {
            let (share, more) = (scaled[s as usize], &mut scaled[l as usize]);
            table[s as usize] = ((share * f64::from(u32::MAX)) as u32, l);
            *more -= 1.0 - share;
            if *more < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        Self::Alias(table)
    }

    fn next(&mut self, flows: u32, rng: &mut fastrand::Rng) -> u32 {
        match self {
            Self::InTurn(next) => {
                let flow = *next;
                *next = if flow + 1 == flows { 0 } else { flow + 1 };
                flow
            }
            Self::Alias(table) => {
                let slot = rng.u32(0..flows);
                let (stay, other) = table[slot as usize];
                if rng.u32(..) <= stay { slot } else { other }
            }
        }
    }
}
