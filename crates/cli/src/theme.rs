//! `--theme`: the colours of pictures.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use view::svg::Theme;

/// Reads the option.
pub(crate) fn parser() -> impl TypedValueParser<Value = Theme> {
    let values = [
        PossibleValue::new("auto").help("As the viewer likes it"),
        PossibleValue::new("light"),
        PossibleValue::new("dark"),
    ];
    PossibleValuesParser::new(values).map(|theme| match theme.as_str() {
        "light" => Theme::Light,
        "dark" => Theme::Dark,
        _ => Theme::Auto,
    })
}
