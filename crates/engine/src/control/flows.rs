//! `catena ctl flows`: the flows of elements, listed while packets pass; one of them removed.

use dataplane::all_cores::AllCores;
use elements::listing::{FlowRecord, Form, Tuple};
use elements::selector::Selector;
use net::Pool;
use serde_json::{Map, Value, json};

use super::number;
use crate::error::Error;
use crate::instance::Instance;

/// What flows can be sorted by.
const KEYS: &str = "touched, expires, protocol, src, dst, sport and dport";

/// A flow of an element on a worker.
struct Found {
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
fn sort(flows: &mut [Found], key: &str) -> Result<(), String> {
    match key {
        "touched" => {}
        "expires" => flows.sort_by_key(|found| found.flow.left),
        "protocol" => flows.sort_by_key(|found| (found.flow.protocol, found.flow.from)),
        "src" => flows.sort_by_key(|found| found.flow.from),
        "dst" => flows.sort_by_key(|found| {
            let Tuple { src, src_port, dst, dst_port } = found.flow.from;
            (dst, dst_port, src, src_port)
        }),
        "sport" => flows.sort_by_key(|found| (found.flow.from.src_port, found.flow.from)),
        "dport" => flows.sort_by_key(|found| (found.flow.from.dst_port, found.flow.from)),
        _ => return Err(format!("flows are not sorted by '{key}', but by {KEYS}")),
    }
    Ok(())
}

/// Addresses and ports, as far as the flow is about them.
fn tuple(tuple: &Tuple, form: Form) -> Value {
    let (src, dst) = (tuple.src.to_string(), tuple.dst.to_string());
    match form {
        Form::Ports => json!({
            "src": src, "sport": tuple.src_port, "dst": dst, "dport": tuple.dst_port,
        }),
        Form::Identifier => json!({ "src": src, "dst": dst, "identifier": tuple.src_port }),
        Form::Pair => json!({ "src": src, "dst": dst }),
        Form::Address => json!({ "src": src }),
    }
}

fn shown(Found { element, worker, flow }: &Found) -> Value {
    json!({
        "element": element, "worker": worker, "protocol": flow.protocol,
        "from": tuple(&flow.from, flow.form), "to": tuple(&flow.to, flow.form),
        "input": flow.input, "outputs": flow.outputs, "expires_s": flow.left as f64 / 1e9,
    })
}

/// The flows of an element, or of all, that a filter chooses.
fn find(
    instance: &Instance,
    element: Option<&str>,
    selector: &Selector,
) -> Result<(usize, Vec<Found>), String> {
    let keepers = instance.flow_keepers();
    if let Some(name) = element.filter(|name| keepers.iter().all(|keeper| keeper != name)) {
        return Err(format!("there is no element '{name}' that has flows"));
    }
    let (mut all, mut chosen, mut pool) = (0, Vec::new(), Pool::new());
    for keeper in keepers.into_iter().filter(|keeper| element.is_none_or(|name| keeper == name)) {
        let listed = match AllCores(instance.fleet()).flows(&format!("{keeper}.table")) {
            Ok(listed) => listed.unwrap_or_default(),
            Err(why) if element.is_some() => return Err(why),
            // It has flows and does not list them.
            Err(_) => continue,
        };
        for (worker, flows) in listed {
            for flow in flows.into_iter().filter(|flow| flow.is_first) {
                all += 1;
                if has(&flow, selector, &mut pool) {
                    chosen.push(Found { element: keeper.clone(), worker, flow });
                }
            }
        }
    }
    Ok((all, chosen))
}

/// Lists, counts or removes.
///
/// # Errors
/// What is wrong with the request.
pub(super) fn answer(instance: &Instance, request: &Map<String, Value>) -> Result<Value, Error> {
    let word = |name: &str| request.get(name).and_then(Value::as_str);
    let is = |name: &str| request.get(name).and_then(Value::as_bool).unwrap_or(false);
    let filter = word("filter").unwrap_or("");
    let (all, mut chosen) = find(instance, word("element"), &Selector::new(filter)?)?;
    if is("delete") {
        let [Found { element, worker, flow }] = &chosen[..] else {
            return Err(Error::FlowChoice { filter: filter.to_string(), chosen: chosen.len() });
        };
        let (name, of) = (element.clone(), *flow);
        let removed = instance.fleet().call(*worker, move |router| router.remove_flow(&name, &of));
        return match removed {
            Some(true) => Ok(json!({ "removed": shown(&chosen[0]) })),
            _ => Err("the flow has ended already".into()),
        };
    }
    let counted = json!({ "all": all, "chosen": chosen.len() });
    if is("count") {
        return Ok(counted);
    }
    sort(&mut chosen, word("sort").unwrap_or("touched"))?;
    if is("reverse") {
        chosen.reverse();
    }
    let bound = |name: &str, otherwise| {
        number(request, name, otherwise).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
    };
    let (skip, limit) = (bound("skip", 0)?, bound("limit", u64::MAX)?);
    let mut answer = counted;
    answer["flows"] = chosen.iter().skip(skip).take(limit).map(shown).collect();
    Ok(answer)
}
