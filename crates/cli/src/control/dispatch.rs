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
    /// When packets were counted last, and how many of each group there were.
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
        let Way::Tags(tags) = dispatch.way() else { return Ok(told) };
        let (generation, configuration) = instance.current();
        let mut grouping = lock(&self.grouping);
        if grouping.as_ref().is_none_or(|known| known.0 != generation) {
            let groups = Some(dispatch.groups());
            *grouping = Some((generation, Grouping::of(&configuration, groups, workers)?));
        }
        let mut counted = lock(&self.counted);
        let seconds = counted.0.elapsed().as_secs_f64();
        let mut counts = Vec::new();
        let mut group = |group: usize| {
            let (worker, packets) = dispatch.group(group)?;
            let before = counted.1.get(group).copied().unwrap_or(0);
            counts.push(packets);
            let mut told = grouping.as_ref()?.1.to_json(group, tags, workers);
            told["worker"] = json!(worker);
            told["cpu"] = json!(instance.fleet().cpu(worker));
            told["packets"] = json!(packets);
            told["rate"] = json!((packets - before) as f64 / seconds.max(1e-3));
            Some(told)
        };
        let groups: Vec<Value> = (0..dispatch.groups()).filter_map(&mut group).collect();
        *counted = (Instant::now(), counts);
        told["groups"] = json!(groups);
        Ok(told)
    }
}
