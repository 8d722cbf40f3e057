//! Click code and configuration strings.

use click::Argument;
use click::config::{Text, Variable, quote, unquote};
use ir::{Diagnostic, Sources};

/// The parser: what it reports lies inside the text.
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
