//! Quantities with units, as people write them in topologies and manifests. A number alone is none: bits
//! and bytes, and hertz and kilohertz, are never guessed.

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits a second, as `2 Gbps`.
    Rate,
    /// Seconds, as `45 us`.
    Time,
    /// Cycles a second, as `1.7 GHz`.
    Clock,
    /// Bits, as `1500 bytes` or `64 MiB`.
    Length,
    /// A share, as `5%`.
    Share,
}

impl Unit {
    /// Its units, each with what one of it is.
    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Unit::Rate => {
                &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9), ("Tbps", 1e12)]
            }
            Unit::Time => &[("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)],
            Unit::Clock => &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)],
            Unit::Length => &[
                ("bytes", 8.0),
                ("bits", 1.0),
                ("kB", 8e3),
                ("MB", 8e6),
                ("GB", 8e9),
                ("KiB", 8192.0),
                ("MiB", 8.0 * 1_048_576.0),
                ("GiB", 8.0 * 1_073_741_824.0),
            ],
            Unit::Share => &[("%", 0.01)],
        }
    }
}

/// Reads a quantity: a number that is not below 0, and its unit.
///
/// # Errors
/// What was expected, in words.
pub fn parse(text: &str, unit: Unit) -> Result<f64, String> {
    let text = text.trim();
    let end = text.trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
    let name = &text[end.len()..];
    let units = unit.units();
    let names = || units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let Ok(number) = end.trim().parse::<f64>() else {
        return Err(format!("'{text}' is no number and unit; units are {}", names()));
    };
    let Some((_, one)) = units.iter().find(|(of, _)| *of == name) else {
        return Err(match name {
            "" => format!("'{text}' has no unit; units are {}", names()),
            _ => format!("'{name}' is no unit here; units are {}", names()),
        });
    };
    let value = number * one;
    match value.is_finite() && value >= 0.0 {
        true => Ok(value),
        false => Err(format!("'{text}' is not at least 0 and finite")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_never_guessed() {
        assert_eq!(parse("2 Gbps", Unit::Rate), Ok(2e9));
        assert_eq!(parse(" 45us ", Unit::Time), Ok(45.0 * 1e-6));
        assert_eq!(parse("1.7 GHz", Unit::Clock), Ok(1.7e9));
        assert_eq!(parse("1500 bytes", Unit::Length), Ok(12_000.0));
        assert_eq!(parse("64 MiB", Unit::Length), Ok(8.0 * 67_108_864.0));
        assert_eq!(parse("5%", Unit::Share), Ok(0.05));
        for wrong in ["2", "2G", "2 gbps", "Gbps", "-1 Gbps", "inf bps", "2 GBps", "", "1e400 bps"]
        {
            assert!(parse(wrong, Unit::Rate).is_err(), "{wrong}");
        }
        assert_eq!(
            parse("2", Unit::Rate).unwrap_err(),
            "'2' has no unit; units are bps, kbps, Mbps, Gbps, Tbps"
        );
    }
}
