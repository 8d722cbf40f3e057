//! Numbers that options have.

/// Reads a number from `least` to `most`.
pub(crate) fn within(
    least: f64,
    most: f64,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("takes a number from {least} to {most}"))
    }
}
