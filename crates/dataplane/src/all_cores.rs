//! Handlers of a chain that runs on several cores, each with its own copy of every element.

use elements::listing::{self, FlowRecord, Record};

use crate::control_socket::Handlers;
use crate::router::Reading;
use crate::slices::Slices;
use crate::worker::Fleet;

/// Flows that a handler lists, by worker.
pub type FlowsByWorker = Vec<(usize, Vec<FlowRecord>)>;

/// The handlers of all workers: what counts something is added up, other values that differ are
/// told core by core, and what is written is written on all of them.
#[derive(Clone, Copy)]
pub struct AllCores<'a>(pub &'a Fleet);

const DEAD: &str = "the worker is dead";

impl AllCores<'_> {
    /// A core's name for people.
    fn name(&self, worker: usize) -> String {
        match self.0.cpu(worker) {
            Some(cpu) => format!("core {cpu}"),
            None => format!("worker {worker}"),
        }
    }

    /// The values of a handler, by worker. What lists is read slice by slice, and packets pass in
    /// between.
    pub fn each(&self, handler: &str) -> Vec<(usize, Result<String, String>)> {
        let _chain = self.0.keep_chain();
        let asked = handler.to_string();
        let begun = self.0.call_all(move |router| router.read_slice(&asked, 0));
        let value = |worker, reading| match self.listing(worker, handler, reading)? {
            (Some(value), _) => Ok(value),
            (None, slices) => Ok(slices.render()),
        };
        begun.into_iter().map(|(w, reading)| (w, reading.and_then(|r| value(w, r)))).collect()
    }

    /// The value of a worker's handler, or all slices of what it lists, given what it answered first.
    fn listing(
        &self,
        worker: usize,
        handler: &str,
        first: Reading,
    ) -> Result<(Option<String>, Slices), String> {
        let mut slices = Slices::new(handler.to_string());
        let value = slices.add(first)?;
        while value.is_none()
            && let Some(from) = slices.next()
        {
            let asked = handler.to_string();
            let read = self.0.call(worker, move |router| router.read_slice(&asked, from));
            slices.add(read.ok_or(DEAD)??)?;
        }
        Ok((value, slices))
    }

    /// The flows that a handler lists, by worker, in the order in which they were touched; `None` of
    /// one that lists none.
    ///
    /// # Errors
    /// A message.
    pub fn flows(&self, handler: &str) -> Result<Option<FlowsByWorker>, String> {
        let _chain = self.0.keep_chain();
        let asked = handler.to_string();
        let begun = self.0.call_all(move |router| router.read_slice(&asked, 0));
        let mut all = Vec::new();
        for (worker, reading) in begun {
            let (None, slices) = self.listing(worker, handler, reading?)? else { return Ok(None) };
            let slices = slices.into_all();
            let touches = slices.last().map_or(0, |slice| slice.touches);
            let records = slices.into_iter().flat_map(|slice| slice.records);
            let flow = |record| match record {
                Record::Flow(flow) => Some(flow),
                _ => None,
            };
            let mut flows: Vec<FlowRecord> = records.filter_map(flow).collect();
            listing::in_order(&mut flows, touches);
            all.push((worker, flows));
        }
        Ok(Some(all))
    }
}

/// The sum of numbers, in the form in which they are written; `None` if they are none.
fn sum(values: &[&str]) -> Option<String> {
    let whole: Option<u64> = values
        .iter()
        .try_fold(0u64, |sum, value| Some(sum.wrapping_add(value.trim().parse().ok()?)));
    if let Some(sum) = whole {
        return Some(sum.to_string());
    }
    let reals: Option<f64> =
        values.iter().try_fold(0.0, |sum, value| Some(sum + value.trim().parse::<f64>().ok()?));
    reals.filter(|sum| sum.is_finite()).map(|sum| sum.to_string())
}

impl AllCores<'_> {
    /// Reads a handler of all workers.
    ///
    /// # Errors
    /// A message.
    pub fn read(&self, handler: &str) -> Result<String, String> {
        let mut all = self.each(handler);
        if all.len() <= 1 {
            return all.pop().map_or(Err(DEAD.to_string()), |(_, value)| value);
        }
        let values: Result<Vec<&str>, &String> =
            all.iter().map(|(_, value)| value.as_deref()).collect();
        let values = values.map_err(Clone::clone)?;
        let asked = handler.to_string();
        let adds_up = self.0.call(all[0].0, move |router| router.adds_up(&asked));
        if adds_up == Some(true)
            && let Some(sum) = sum(&values)
        {
            return Ok(sum);
        }
        if values.iter().all(|value| *value == values[0]) {
            return Ok(values[0].to_string());
        }
        let line = |((worker, _), value): (&(usize, _), &&str)| {
            let value = value.strip_suffix('\n').unwrap_or(value);
            match value.contains('\n') {
                true => format!("{}:\n{value}\n", self.name(*worker)),
                false => format!("{}: {value}\n", self.name(*worker)),
            }
        };
        Ok(all.iter().zip(&values).map(line).collect())
    }
}

impl Handlers for AllCores<'_> {
    fn read(&mut self, handler: &str, _: u64) -> Result<Reading, String> {
        AllCores::read(self, handler).map(Reading::Whole)
    }

    fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        let (handler, value) = (handler.to_string(), value.to_string());
        let all = self.0.call_all(move |router| router.write_handler(&handler, &value));
        if all.is_empty() {
            return Err(DEAD.to_string());
        }
        all.into_iter().try_for_each(|(_, result)| result)
    }

    fn exists(&self, handler: &str, write: bool) -> bool {
        let handler = handler.to_string();
        self.0.call(0, move |router| router.has_handler(&handler, write)).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn whole_numbers_stay_whole() {
        assert_eq!(sum(&["1", " 2\n"]).as_deref(), Some("3"));
        assert_eq!(sum(&["1", "0.5"]).as_deref(), Some("1.5"));
        assert_eq!(sum(&["1", "x"]), None);
        assert_eq!(sum(&["18446744073709551615", "2"]).as_deref(), Some("1"));
    }
}
