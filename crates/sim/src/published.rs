//! What Ironside's evaluation prints (§4.4), and what is repeated of it.

/// A row of tables 4.3 to 4.6: medians and 99th percentiles in microseconds, cores on average, lost packets among all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The policy, as it is named here.
    pub policy: &'static str,
    /// The SLO in microseconds; 0 for one that has none.
    pub slo: u64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// Cores on average.
    pub cores: f64,
    /// Lost packets among all.
    pub loss: f64,
}

/// A table of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Table {
    /// Its number.
    pub number: &'static str,
    /// The chain.
    pub chain: &'static str,
    /// The trace.
    pub trace: &'static str,
    /// What it has.
    pub rows: [Row; 16],
}

const fn row(policy: &'static str, slo: u64, [p50, p99, cores, loss]: [f64; 4]) -> Row {
    Row { policy, slo, p50, p99, cores, loss }
}

/// Rows of a table: Ironside's five, Metron's, Quadrant's five, Dyssect's five.
const fn rows(of: [[f64; 4]; 16]) -> [Row; 16] {
    let mut all = [row("metron", 0, of[5]); 16];
    let mut at = 0;
    while at < 5 {
        let slo = 100 * (at as u64 + 1);
        all[at] = row("ironside", slo, of[at]);
        all[at + 6] = row("quadrant", slo, of[at + 6]);
        all[at + 11] = row("dyssect", slo, of[at + 11]);
        at += 1;
    }
    all
}

/// Tables 4.3 to 4.6.
pub const TABLES: [Table; 4] = [
    Table {
        number: "4.3",
        chain: "chain1",
        trace: "backbone",
        rows: rows([
            [28.8, 89.4, 34.6, 0.006],
            [32.1, 174.4, 30.7, 0.006],
            [30.7, 238.8, 30.1, 0.005],
            [34.5, 254.4, 30.5, 0.010],
            [31.1, 298.2, 29.7, 0.005],
            [57.7, 2541.0, 21.8, 0.024],
            [30.8, 3051.0, 45.3, 0.062],
            [39.1, 3021.0, 43.3, 0.057],
            [38.8, 3015.0, 43.3, 0.056],
            [39.9, 2988.0, 43.1, 0.052],
            [53.7, 2994.0, 41.7, 0.044],
            [63.0, 78_798.0, 34.7, 0.224],
            [68.0, 68_356.0, 31.9, 0.106],
            [78.1, 70_392.0, 32.7, 0.249],
            [76.2, 64_885.0, 30.1, 0.218],
            [68.7, 71_586.0, 31.3, 0.194],
        ]),
    },
    Table {
        number: "4.4",
        chain: "chain2",
        trace: "backbone",
        rows: rows([
            [18.0, 101.4, 56.0, 0.004],
            [22.8, 180.3, 41.9, 0.010],
            [24.8, 197.2, 42.8, 0.002],
            [24.9, 210.3, 40.3, 0.007],
            [26.8, 270.5, 40.6, 0.003],
            [254.5, 5580.0, 32.1, 0.044],
            [34.0, 5459.0, 76.7, 0.126],
            [34.7, 5465.0, 78.3, 0.133],
            [34.0, 5452.0, 75.5, 0.132],
            [34.5, 5473.0, 77.1, 0.137],
            [34.2, 5455.0, 77.2, 0.135],
            [62.6, 78_955.0, 50.6, 0.294],
            [61.0, 62_528.0, 45.6, 0.246],
            [60.2, 77_793.0, 47.4, 0.279],
            [50.2, 87_130.0, 48.2, 0.208],
            [61.4, 78_030.0, 44.8, 0.214],
        ]),
    },
    Table {
        number: "4.5",
        chain: "chain1",
        trace: "as",
        rows: rows([
            [22.7, 51.9, 17.5, 0.010],
            [22.9, 52.1, 17.4, 0.011],
            [23.1, 53.4, 15.0, 0.006],
            [23.4, 53.2, 16.2, 0.013],
            [23.5, 53.5, 17.5, 0.008],
            [48.6, 1926.0, 11.9, 0.014],
            [37.2, 1026.5, 17.9, 0.014],
            [30.7, 930.0, 17.3, 0.010],
            [29.5, 765.2, 16.9, 0.013],
            [29.3, 556.5, 17.3, 0.011],
            [28.2, 810.2, 16.4, 0.011],
            [17.7, 13_586.0, 17.9, 0.044],
            [17.6, 13_031.0, 17.2, 0.054],
            [17.8, 12_672.0, 17.9, 0.050],
            [18.2, 12_480.0, 15.9, 0.052],
            [19.1, 22_776.0, 16.5, 0.049],
        ]),
    },
    Table {
        number: "4.6",
        chain: "chain2",
        trace: "as",
        rows: rows([
            [33.1, 87.0, 25.2, 0.006],
            [41.6, 103.3, 18.1, 0.008],
            [48.8, 105.6, 16.3, 0.008],
            [50.0, 108.0, 18.4, 0.007],
            [60.8, 103.3, 16.6, 0.007],
            [78.7, 5310.0, 14.8, 0.029],
            [70.4, 5352.0, 19.2, 0.073],
            [69.9, 5363.0, 18.6, 0.072],
            [70.5, 5351.0, 19.3, 0.074],
            [70.4, 5369.0, 18.2, 0.073],
            [69.9, 5373.0, 18.2, 0.072],
            [24.2, 48_041.0, 18.4, 0.056],
            [24.1, 57_273.0, 18.1, 0.049],
            [23.2, 34_573.0, 16.9, 0.041],
            [24.4, 50_812.0, 17.0, 0.040],
            [23.8, 47_229.0, 16.7, 0.044],
        ]),
    },
];

/// Table 4.7, on the backbone trace with loose SLOs: the chain, its SLO in microseconds, and Ironside's median, 99th percentile
/// and cores.
pub const LOOSE: [(&str, u64, [f64; 3]); 2] =
    [("chain1", 2500, [51.3, 2126.0, 23.9]), ("chain2", 5000, [374.2, 4567.0, 30.4])];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_all_policies_and_slos() {
        for table in TABLES {
            for policy in ["ironside", "quadrant", "dyssect"] {
                let own = table.rows.iter().filter(|row| row.policy == policy);
                assert_eq!(own.map(|row| row.slo).collect::<Vec<_>>(), [100, 200, 300, 400, 500]);
            }
            let metron: Vec<_> = table.rows.iter().filter(|row| row.policy == "metron").collect();
            assert_eq!((metron.len(), metron[0].slo), (1, 0));
        }
        assert_eq!(TABLES[0].rows[5].cores, 21.8);
        assert_eq!(TABLES[1].rows[5].cores, 32.1);
    }
}
