//! Click code and configuration strings.

use click::Argument;
use click::config::{Text, Variable, quote, unquote};
use ir::{Diagnostic, Sources, has_errors};

/// The parser and the formatter: what is reported lies inside the text, and formatting twice is
/// formatting once.
pub fn click(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut sources = Sources::new();
    let file = sources.add("fuzz.click", text.as_ref());
    let (tree, diagnostics) = click::parse(&mut sources, file);
    for span in tree.statements.iter().map(|statement| statement.span()).chain(labels(&diagnostics))
    {
        assert!(
            span.file == file && text.get(span.range()).is_some(),
            "{span:?} is not in the text"
        );
        sources.landmark(span);
    }
    let Ok(once) = click::format(&mut sources, file) else {
        assert!(has_errors(&diagnostics));
        return;
    };
    let formatted = sources.add("formatted.click", once.as_str());
    let twice = click::format(&mut sources, formatted).expect("formatted code has no errors");
    assert_eq!(once, twice);
}

fn labels(diagnostics: &[Diagnostic]) -> impl Iterator<Item = ir::Span> + '_ {
    diagnostics.iter().flat_map(|diagnostic| &diagnostic.labels).map(|label| label.span)
}

/// Configuration strings: variables expand to an end, and quoting loses nothing.
pub fn config(data: &[u8]) {
    assert_eq!(unquote(&quote(data)), data);
    let text = String::from_utf8_lossy(data);
    let mut lookup = |variable: Variable<'_>| match variable {
        Variable::Name("a") => Some(Argument::bare("x, \"y\" $b")),
        Variable::Name("loop") => Some(Argument::bare("$loop ${loop-$loop}")),
        Variable::Name(_) => None,
        Variable::Call(call) => Some(Argument::bare(call)),
    };
    let whole = Text::bare(&text);
    for argument in whole.arguments().into_iter().chain(whole.expand(&mut lookup).arguments()) {
        argument.unquote();
        argument.keyword();
        argument.words().for_each(|word| drop(word.unquote()));
    }
}
