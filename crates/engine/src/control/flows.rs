//! `catena ctl flows`: the flows of elements, listed while packets pass; one of them removed.

use dataplane::Router;
use dataplane::all_cores::AllCores;
use elements::listing::{self, FlowRecord, Form};
use elements::selector::Selector;
use net::Pool;

use super::protocol::{Flow, FlowOrder, Flows, FlowsAnswer, RemoveFlow, Tuple};
use crate::error::Error;
use crate::instance::Instance;

/// A flow of an element on a worker.
struct ElementFlow {
    element: String,
    worker: usize,
    flow: FlowRecord,
}

/// Whether a flow has packets that a filter chooses: in either direction, as they come or leave.
fn has(flow: &FlowRecord, selector: &Selector, pool: &mut Pool) -> bool {
    let ends = [flow.from, flow.to];
    let mut all = ends.into_iter().flat_map(|tuple| [tuple, tuple.reverse()]);
    all.any(|tuple| {
        let packet = tuple.packet(flow.protocol, pool);
        let chosen = selector.chooses(&packet);
        pool.recycle(packet);
        chosen
    })
}

/// Puts flows in order; as they come they are in that in which they were touched.
fn sort(flows: &mut [ElementFlow], by: FlowOrder) {
    match by {
        FlowOrder::Touched => {}
        FlowOrder::Expires => flows.sort_by_key(|found| found.flow.left),
        FlowOrder::Protocol => flows.sort_by_key(|found| (found.flow.protocol, found.flow.from)),
        FlowOrder::Src => flows.sort_by_key(|found| found.flow.from),
        FlowOrder::Dst => flows.sort_by_key(|found| {
            let listing::Tuple { src, src_port, dst, dst_port } = found.flow.from;
            (dst, dst_port, src, src_port)
        }),
        FlowOrder::Sport => flows.sort_by_key(|found| (found.flow.from.src_port, found.flow.from)),
        FlowOrder::Dport => flows.sort_by_key(|found| (found.flow.from.dst_port, found.flow.from)),
    }
}

/// Addresses and ports, as far as the flow is about them.
fn tuple(tuple: &listing::Tuple, form: Form) -> Tuple {
    let (src, dst) = (tuple.src, tuple.dst);
    let source = Tuple { src, sport: None, dst: None, dport: None, identifier: None };
    let pair = Tuple { dst: Some(dst), ..source.clone() };
    match form {
        Form::Ports => Tuple { sport: Some(tuple.src_port), dport: Some(tuple.dst_port), ..pair },
        Form::Identifier => Tuple { identifier: Some(tuple.src_port), ..pair },
        Form::Pair => pair,
        Form::Address => source,
    }
}

fn shown(ElementFlow { element, worker, flow }: &ElementFlow) -> Flow {
    Flow {
        element: element.clone(),
        worker: *worker,
        protocol: flow.protocol,
        from: tuple(&flow.from, flow.form),
        to: tuple(&flow.to, flow.form),
        input: flow.input,
        outputs: flow.outputs,
        expires_s: flow.left as f64 / 1e9,
    }
}

/// The flows of an element, or of all, that a filter chooses.
fn find(
    instance: &Instance,
    element: Option<&str>,
    selector: &Selector,
) -> Result<(usize, Vec<ElementFlow>), Error> {
    let tables = instance.flow_tables();
    if let Some(name) = element.filter(|name| tables.iter().all(|table| table != name)) {
        return Err(Error::NoFlows(name.to_string()));
    }
    let (mut all, mut chosen, mut pool) = (0, Vec::new(), Pool::new());
    for table in tables.into_iter().filter(|table| element.is_none_or(|name| table == name)) {
        let listed = match AllCores(instance.fleet()).flows(&format!("{table}.table")) {
            Ok(listed) => listed.unwrap_or_default(),
            Err(why) if element.is_some() => return Err(Error::Handler(why)),
            // It has flows and does not list them.
            Err(_) => continue,
        };
        for (worker, flows) in listed {
            for flow in flows.into_iter().filter(|flow| flow.is_first) {
                all += 1;
                if has(&flow, selector, &mut pool) {
                    chosen.push(ElementFlow { element: table.clone(), worker, flow });
                }
            }
        }
    }
    Ok((all, chosen))
}

/// Lists flows.
///
/// # Errors
/// What is wrong with the request.
pub(super) fn list(instance: &Instance, asked: &Flows) -> Result<FlowsAnswer, Error> {
    let selector = Selector::new(&asked.filter).map_err(Error::Filter)?;
    let (all, mut found) = find(instance, asked.element.as_deref(), &selector)?;
    let chosen = found.len();
    sort(&mut found, asked.sort);
    if asked.reverse {
        found.reverse();
    }
    let bound = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let rest = found.iter().skip(bound(asked.skip));
    let flows = rest.take(bound(asked.limit.unwrap_or(u64::MAX))).map(shown).collect();
    Ok(FlowsAnswer { all, chosen, flows })
}

/// Removes the flow that a filter chooses.
///
/// # Errors
/// If it chooses none, or several.
pub(super) fn remove(instance: &Instance, asked: &RemoveFlow) -> Result<Flow, Error> {
    let selector = Selector::new(&asked.filter).map_err(Error::Filter)?;
    let (_, found) = find(instance, asked.element.as_deref(), &selector)?;
    let [one] = &found[..] else {
        return Err(Error::FlowChoice { filter: asked.filter.clone(), chosen: found.len() });
    };
    let (name, of) = (one.element.clone(), one.flow);
    let remove = move |router: &mut Router| router.remove_flow(&name, &of);
    match instance.fleet().call(one.worker, remove) {
        Some(true) => Ok(shown(one)),
        _ => Err(Error::FlowEnded),
    }
}
