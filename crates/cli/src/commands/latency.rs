//! Latencies as an instance tells them: percentiles of what came since.

use serde_json::{Value, json};
use view::table::{Table, grouped};

/// Buckets: the greatest nanoseconds of each, and how many packets it has.
fn buckets(latency: &Value) -> Vec<(u64, u64)> {
    let all = latency["buckets"].as_array().into_iter().flatten();
    all.filter_map(|pair| Some((pair[0].as_u64()?, pair[1].as_u64()?))).collect()
}

/// The least value that so many of a thousand do not exceed.
fn percentile(buckets: &[(u64, u64)], thousandth: u64) -> u64 {
    let count: u64 = buckets.iter().map(|bucket| bucket.1).sum();
    let wanted = (count * thousandth).div_ceil(1000).max(1);
    let mut sum = 0;
    let reached = buckets.iter().find(|bucket| {
        sum += bucket.1;
        sum >= wanted
    });
    reached.or(buckets.last()).map_or(0, |bucket| bucket.0)
}

/// The latencies of one look with what was counted until another left out.
pub(super) fn since(before: &Value, after: &Value) -> Vec<Value> {
    let former = |latency: &Value| {
        let all = before["latencies"].as_array().into_iter().flatten();
        let same = |l: &&Value| l["of"] == latency["of"] && l["name"] == latency["name"];
        all.into_iter().find(same).map(buckets).unwrap_or_default()
    };
    let one = |latency: &Value| {
        let former = former(latency);
        let was = |most: u64| former.iter().find(|b| b.0 == most).map_or(0, |b| b.1);
        let now = buckets(latency).into_iter();
        let left: Vec<_> =
            now.map(|(most, count)| (most, count.saturating_sub(was(most)))).collect();
        let packets: u64 = left.iter().map(|bucket| bucket.1).sum();
        let of = |thousandth| percentile(&left, thousandth);
        (packets > 0).then(|| {
            json!({
                "of": latency["of"], "name": latency["name"], "packets": packets,
                "p50": of(500), "p90": of(900), "p99": of(990), "p999": of(999),
            })
        })
    };
    after["latencies"].as_array().into_iter().flatten().filter_map(one).collect()
}

/// Percentiles for people.
pub(super) fn table<'v>(latencies: impl Iterator<Item = &'v Value>) -> Table {
    let mut table =
        Table::new(["latency in µs", "of", "p50", "p90", "p99", "p99.9", "packets timed"]);
    for latency in latencies {
        let text = |key: &str| latency[key].as_str().unwrap_or("").to_string();
        let time = |key: &str| format!("{:.2}", latency[key].as_f64().unwrap_or(0.0) / 1e3);
        let packets = grouped(latency["packets"].as_u64().unwrap_or(0));
        let [p50, p90, p99, p999] = ["p50", "p90", "p99", "p999"].map(time);
        table.row([text("name"), text("of"), p50, p90, p99, p999, packets]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_came_since() {
        let look = |buckets: Value| json!({ "latencies": [{ "of": "element", "name": "x", "buckets": buckets }] });
        let got = since(&look(json!([[10, 5]])), &look(json!([[10, 5], [20, 990], [30, 10]])));
        assert_eq!((&got[0]["p50"], &got[0]["p99"]), (&json!(20), &json!(20)));
        assert_eq!((&got[0]["p999"], &got[0]["packets"]), (&json!(30), &json!(1000)));
        assert!(since(&look(json!([[10, 5]])), &look(json!([[10, 5]]))).is_empty());
        assert!(since(&Value::Null, &json!({ "latencies": [7, {}] })).is_empty());
        assert!(table(got.iter()).render().contains("0.02"));
    }
}
