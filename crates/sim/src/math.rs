//! Logarithm and exponential from additions, multiplications and divisions alone: these give the same bits on every machine,
//! which functions of a system's library do not.

/// The natural logarithm of a number above 0.
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | (1023 << 52));
    // ln m = 2 artanh((m - 1) / (m + 1)), with an argument of a third at the most.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let mut sum = 0.0;
    for n in (0..17).rev() {
        sum = sum * square + 1.0 / f64::from(2 * n + 1);
    }
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * z * sum
}

/// e to the power of a number between -700 and 700.
pub(crate) fn exp(x: f64) -> f64 {
    let halves = (x / std::f64::consts::LN_2) as i64;
    let rest = x - halves as f64 * std::f64::consts::LN_2;
    let mut sum = 1.0;
    for n in (1..20).rev() {
        sum = 1.0 + rest / f64::from(n) * sum;
    }
    let power = f64::from_bits(((halves.clamp(-1000, 1000) + 1023) as u64) << 52);
    sum * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_the_library_has() {
        for x in [1e-9, 0.1, 0.5, 0.999, 1.0, 1.5, 2.0, 12345.678, 1e12] {
            assert!((ln(x) - x.ln()).abs() < 1e-12 * x.ln().abs().max(1.0), "ln {x}");
        }
        for x in [-30.0, -1.0, -0.1, 0.0, 0.3, 1.0, 9.9, 50.0] {
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-12, "exp {x}");
        }
    }
}
