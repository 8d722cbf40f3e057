//! Capacity: how much a core does of a chain within an SLO, as active flows against packets.
//!
//! Ironside (§4.3.2, §4.3.3 of Jianfeng Wang's doctoral thesis) trains two predictors. The frontier: in an epoch of half the SLO, a core that
//! always has packets does so many of so many flows. The table of rates: so many flows in turn come at a constant rate, and the
//! 99th percentile of latencies keeps the SLO.

use std::sync::Arc;

use dataplane::clock::Time;
use dataplane::io::{Generator, Mix};
use engine::session::Path as Execution;
use ir::costs::{Capacity, FrontierPoint, SustainedRate, digest_of};
use net::Batch;

use crate::arrivals::Arrivals;
use crate::machine::Meter;
use crate::measure::{Failed, Gauges, Request, Subject, Traffics, WARM};

/// Flows of generated traffic. More than caches hold: those of an epoch have not been served for a while.
const ALL: u32 = 1 << 15;
/// Active flows of epochs.
const ACTIVE: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Epochs with each number of flows, at the least and at the most: as many as fit into a trial.
const EPOCHS: [usize; 2] = [50, 400];
/// Flows that take turns at constant rates.
const TURNS: [u32; 4] = [1, 32, 1024, ALL];
/// Halvings of the interval in which the greatest rate lies.
const STEPS: u32 = 8;

/// Measures what one core does.
///
/// # Errors
/// What is wrong with the chain or its traffic, that it was stopped, or that a packet alone outlasts the SLO.
pub fn measure_capacity(
    request: &Request<'_>,
    slo: u64,
    (time, meter): (&Arc<dyn Time>, &dyn Meter),
    progress: &mut dyn FnMut(&str),
    is_stopped: &dyn Fn() -> bool,
) -> Result<(Capacity, Vec<String>), Failed> {
    let epoch = (slo / 2).max(1);
    let gauges = Gauges::new(request, (&**time, meter), is_stopped);
    let mut remarks = Vec::new();
    let load = |flows: u32, groups: Option<(usize, usize)>| {
        let change = |generator: &mut Generator| {
            (generator.mix, generator.whales, generator.zipf) = (Mix::Flows, 0, 0.0);
            (generator.flows, generator.count) = (flows, u64::from(flows));
        };
        let mut library = Traffics::new(request, &change);
        library.groups = groups;
        let chain = Subject::load(request, Execution::Synthesised, time, &mut library)?;
        library.check(&chain)?;
        Ok::<_, Failed>((chain, library.flows() as u32))
    };

    progress("measuring the cost of a packet");
    let (mut chain, all) = load(ALL, None)?;
    chain.saturate(WARM, is_stopped)?;
    let each = gauges.round(&mut chain, WARM)?.max(0.1);
    if each > slo as f64 {
        return Err(Failed::Message(format!(
            "--slo: a packet alone takes {:.1} us, more than {:.1} us",
            each / 1e3,
            slo as f64 / 1e3
        )));
    }
    let graph = &chain.chain.graph;
    let digest = digest_of(format_args!(
        "{:?}",
        (
            graph.nodes.iter().map(|of| (&of.name, &of.class, &of.config)).collect::<Vec<_>>(),
            graph.edges.iter().map(|of| (of.from, of.to)).collect::<Vec<_>>(),
        )
    ));

    // A group has more packets than fit into an epoch with warm caches.
    let length = ((2.0 * epoch as f64 / each) as usize).clamp(64, 1 << 16);
    let in_trial = (request.effort.trial * 1e9 / epoch as f64) as usize;
    let epochs = in_trial.clamp(EPOCHS[0], EPOCHS[1]);
    let mut frontier: Vec<FrontierPoint> = Vec::new();
    for flows in ACTIVE {
        if flows > all {
            remarks.push(format!("the traffic has {all} flows: the frontier ends before"));
            break;
        }
        progress(&format!("epochs with {flows} active flows"));
        let (mut chain, _) = load(ALL, Some((flows as usize, length.max(flows as usize))))?;
        chain.saturate(WARM, is_stopped)?;
        let mut done = Vec::with_capacity(epochs);
        for number in 0..epochs as u64 {
            let from = number * length.max(flows as usize) as u64;
            let packets = chain.saturate_for((from, epoch), is_stopped)?;
            done.push(packets.min(length as u64) as u32);
        }
        done.sort_unstable();
        // More flows never allow more: what is more is noise.
        let bound = |of: fn(&FrontierPoint) -> u32| frontier.last().map_or(u32::MAX, of);
        let median = done[epochs / 2].min(bound(|of| of.median));
        let packets = done[epochs / 100].min(bound(|of| of.packets)).min(median);
        // Each active flow has a packet.
        if median < flows {
            break;
        }
        frontier.push(FrontierPoint { flows, packets, median });
    }

    let mut rates: Vec<SustainedRate> = Vec::new();
    // Of traffic that is given, the number of flows is what it is.
    let turns = if all < ALL - ALL / 16 { vec![all] } else { TURNS.to_vec() };
    for flows in turns {
        progress(&format!("constant rates with {flows} flows"));
        let (mut chain, _) = load(flows, None)?;
        chain.saturate(WARM, is_stopped)?;
        let most = rates.last().map_or(1e9 / each, |of| of.rate);
        let (mut low, mut high) = (0.0, most);
        for step in 0..STEPS {
            let rate = if step == 0 { high } else { (low + high) / 2.0 };
            let load = (rate, request.effort.trial);
            let offered = chain.offer(load, (Arrivals::Constant, request.seed), is_stopped)?;
            if offered.latencies.is_empty() {
                remarks.push("no packet leaves the chain: there is no table of rates".into());
                break;
            }
            let p99 = offered.latencies.value_at_quantile(0.99);
            match offered.trial.lost == 0 && p99 <= slo {
                true => low = rate,
                false => high = rate,
            }
            if low >= high {
                break;
            }
        }
        if low <= 0.0 {
            break;
        }
        rates.push(SustainedRate { flows, rate: low });
    }
    let capacity =
        Capacity { chain: digest, slo, epoch, batch: Batch::DEFAULT_BURST as u32, frontier, rates };
    Ok((capacity, remarks))
}
