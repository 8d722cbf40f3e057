//! How packets find their workers, and where groups of traffic classes are.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dataplane::io::Way;
use serde_json::{Value, json};

use crate::groups::Grouping;
use crate::instance::Instance;

/// What is told of an instance's dispatch besides what it knows itself.
pub(crate) struct Told {
    /// Why it is this way.
    why: String,
    /// The groups of the configuration with this number.
    grouping: Mutex<Option<(u64, Grouping)>>,
    /// When packets were counted last, and how many there were: of each group, or from each worker
    /// to each.
    counted: Mutex<(Instant, Vec<u64>)>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Told {
    pub(crate) fn new(why: String) -> Self {
        let counted = Mutex::new((Instant::now(), Vec::new()));
        Self { why, grouping: Mutex::new(None), counted }
    }

    /// All there is to tell. Rates are since the last call.
    ///
    /// # Errors
    /// A message.
    pub(crate) fn to_json(&self, instance: &Instance) -> Result<Value, String> {
        let (dispatch, workers) = (instance.dispatch(), instance.fleet().len());
        let mut told = json!({
            "way": dispatch.way().to_string(), "why": self.why, "workers": workers,
        });
        let mut counted = lock(&self.counted);
        let seconds = counted.0.elapsed().as_secs_f64().max(1e-3);
        let mut counts = Vec::new();
        let mut rate = |packets: u64| {
            let before = counted.1.get(counts.len()).copied().unwrap_or(0);
            counts.push(packets);
            packets.saturating_sub(before) as f64 / seconds
        };
        match dispatch.way() {
            Way::Hash | Way::Queue => {}
            way @ (Way::Software | Way::HandOff) => {
                let mut handed = Vec::new();
                for from in 0..if way == Way::Software { 1 } else { workers } {
                    for to in (0..workers).filter(|&to| to != from) {
                        let packets = dispatch.handed(from, to);
                        handed.push(json!({
                            "from": from, "to": to, "packets": packets, "rate": rate(packets),
                        }));
                    }
                }
                told["handed"] = json!(handed);
            }
            Way::Tags(tags) => {
                let (generation, configuration) = instance.current();
                let mut grouping = lock(&self.grouping);
                if grouping.as_ref().is_none_or(|known| known.0 != generation) {
                    let groups = Some(dispatch.groups());
                    *grouping = Some((generation, Grouping::of(&configuration, groups, workers)?));
                }
                let mut group = |group: usize| {
                    let (worker, packets) = dispatch.group(group)?;
                    let mut told = grouping.as_ref()?.1.to_json(group, tags, workers);
                    told["worker"] = json!(worker);
                    told["cpu"] = json!(instance.fleet().cpu(worker));
                    told["packets"] = json!(packets);
                    told["rate"] = json!(rate(packets));
                    Some(told)
                };
                let groups: Vec<Value> = (0..dispatch.groups()).filter_map(&mut group).collect();
                told["groups"] = json!(groups);
            }
        }
        *counted = (Instant::now(), counts);
        Ok(told)
    }
}
