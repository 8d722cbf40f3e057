//! What cards keep that match whole fields only, the same ones in many rules, and have no rule for the rest.
//!
//! A packet that no rule takes comes to the cores without a mark, and they decide it from the start. So patterns may be
//! left out, and with them those behind that take some of their packets.

use std::collections::{BTreeMap, BTreeSet};

use net::wire::{ether_type, ip_protocol};

use super::field::{Conditions, Key, ListRule};
use super::{Driver, Masks};
use crate::rule::Key as _;

/// What a pattern looks at: the type of frames, the protocol, and the fields beyond these.
type Shape = (Option<u128>, Option<u128>, BTreeSet<Key>);

/// Patterns that are left out and that others are compared with; behind more, all are left out.
const MOST_COMPARED: usize = 1024;

fn shape(when: &Conditions) -> Option<Shape> {
    if when.fields().iter().any(|(key, _, mask)| *mask != key.ones()) {
        return None;
    }
    let of = |key| when.of(key).map(|of| of.0);
    let transports = [ip_protocol::TCP, ip_protocol::UDP, ip_protocol::SCTP].map(u128::from);
    let protocol = of(Key::Protocol).filter(|protocol| transports.contains(protocol));
    let is_selected =
        |key: &Key| *key == Key::EthType || *key == Key::Protocol && protocol.is_some();
    let keys = when.fields().iter().map(|field| field.0).filter(|key| !is_selected(key));
    Some((of(Key::EthType), protocol, keys.collect()))
}

/// By pattern of a list in order of precedence: whether it is kept.
pub(super) fn kept(driver: &Driver, lines: &[ListRule]) -> Vec<bool> {
    // The fields that most patterns look at are those that the card is given.
    let mut counts: BTreeMap<Shape, usize> = BTreeMap::new();
    let shapes: Vec<Option<Shape>> = lines.iter().map(|line| shape(&line.when)).collect();
    for shape in shapes.iter().flatten().filter(|shape| is_possible(driver, shape)) {
        *counts.entry(common(driver, shape)).or_default() += 1;
    }
    let mut chosen: BTreeMap<_, (usize, &Shape)> = BTreeMap::new();
    for (shape, count) in &counts {
        let of = chosen.entry((shape.0, shape.1)).or_insert((0, shape));
        if *count > of.0 {
            *of = (*count, shape);
        }
    }
    let chosen: BTreeSet<&Shape> = chosen.into_values().map(|of| of.1).collect();
    let mut kept = Vec::with_capacity(lines.len());
    let (mut lost, mut held): (Vec<&ListRule>, Vec<(&ListRule, &Shape)>) = (Vec::new(), Vec::new());
    for (line, shape) in lines.iter().zip(&shapes) {
        let fits = shape.as_ref().is_some_and(|shape| {
            is_possible(driver, shape) && chosen.contains(&common(driver, shape))
        });
        let free =
            lost.len() < MOST_COMPARED && lost.iter().all(|other| !other.when.meets(&line.when));
        // Without priorities, rules of different shapes must not meet.
        let alone = |shape: &Shape| {
            held.iter().all(|(other, of)| *of == shape || !other.when.meets(&line.when))
        };
        let keeps = fits && free && held.len() < driver.rules && shape.as_ref().is_some_and(alone);
        match shape {
            Some(shape) if keeps => held.push((line, shape)),
            _ => lost.push(line),
        }
        kept.push(keeps);
    }
    kept
}

/// Whether the card has a pattern of that shape at all.
fn is_possible(driver: &Driver, (ether_type, protocol, keys): &Shape) -> bool {
    let is = |number: u16| *ether_type == Some(number.into());
    let has_ports = keys.contains(&Key::SourcePort) || keys.contains(&Key::DestinationPort);
    let ip = is(ether_type::IPV4) || is(ether_type::IPV6) && driver.masks != Masks::OneSet;
    ip && !keys.is_empty() && (protocol.is_some() || !has_ports)
}

/// What patterns of a shape have in common with all that it must not differ from.
fn common(driver: &Driver, shape: &Shape) -> Shape {
    match driver.masks {
        Masks::OneSet => (None, None, shape.2.clone()),
        _ => shape.clone(),
    }
}
