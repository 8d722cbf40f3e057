//! Regular expressions of Perl, as rules have them, in the words of a library that takes linear time.

use regex::bytes::RegexBuilder;

use super::detection::{Buffer, Expression};

/// Bytes that a compiled expression may take, and what is kept of its automaton.
const MOST_SIZE: usize = 1 << 20;

/// Why there is no expression.
pub(super) enum NoExpression {
    /// It is none.
    Wrong(String),
    /// It needs what takes more than linear time, or is not known.
    Unsupported(&'static str),
}

/// Reads `/EXPRESSION/FLAGS`, with `!` in front if nothing may match.
pub(super) fn read(value: &str, sticky: Buffer) -> Result<Expression, NoExpression> {
    let wrong = |why: &str| NoExpression::Wrong(why.to_string());
    let (negated, quoted) = match value.strip_prefix('!') {
        Some(rest) => (true, rest.trim()),
        None => (false, value),
    };
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.ok_or_else(|| wrong("expected \"/EXPRESSION/FLAGS\""))?;
    // A delimiter of one's own stands behind an `m`.
    let inner = inner.strip_prefix('m').unwrap_or(inner);
    let delimiter = inner.chars().next().filter(|c| c.is_ascii_punctuation());
    let delimiter = delimiter.ok_or_else(|| wrong("expected \"/EXPRESSION/FLAGS\""))?;
    let (text, flags) = inner[1..]
        .rsplit_once(delimiter)
        .ok_or_else(|| wrong("what ends the expression is missing"))?;
    let has = |flag| flags.contains(flag);
    let mut buffer = sticky;
    for flag in flags.chars() {
        buffer = match flag {
            'i' | 's' | 'm' | 'x' | 'A' | 'E' | 'G' | 'R' | 'B' | 'O' => continue,
            'U' => Buffer::Uri,
            'I' => Buffer::RawUri,
            'P' => Buffer::ClientBody,
            'H' | 'D' => Buffer::Header,
            'M' => Buffer::Method,
            'C' | 'K' => Buffer::Cookie,
            'S' => Buffer::StatusCode,
            'Y' => Buffer::StatusMessage,
            other => return Err(NoExpression::Wrong(format!("'{other}' is not a flag"))),
        };
    }
    let text = translated(text, !has('m') && !has('E'));
    let text = if has('A') { format!(r"\A(?:{text})") } else { text };
    let regex = RegexBuilder::new(&text)
        .unicode(false)
        .case_insensitive(has('i'))
        .dot_matches_new_line(has('s'))
        .multi_line(has('m'))
        .ignore_whitespace(has('x'))
        .swap_greed(has('G'))
        .size_limit(MOST_SIZE)
        .dfa_size_limit(MOST_SIZE)
        .build();
    match regex {
        Ok(regex) => Ok(Expression { regex, negated, buffer, is_relative: has('R') }),
        Err(regex::Error::CompiledTooBig(_)) => {
            Err(NoExpression::Wrong("it takes more than 1 MiB".to_string()))
        }
        Err(why) => {
            let why = why.to_string();
            Err(match (why.contains("look-around"), why.contains("backreferences")) {
                (true, _) => NoExpression::Unsupported("pcre with look-around"),
                (_, true) => NoExpression::Unsupported("pcre with backreferences"),
                // The last line says what is wrong.
                _ => NoExpression::Wrong(
                    why.lines().last().unwrap_or_default().replace("error: ", ""),
                ),
            })
        }
    }
}

/// The same expression where both languages write it differently. `before_newline` is whether `$` is also before a
/// newline that is the last byte.
fn translated(text: &str, before_newline: bool) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut chars = text.chars().peekable();
    // Whether it is within a class, and nothing but `^` of it is there.
    let (mut in_class, mut is_first) = (false, false);
    while let Some(c) = chars.next() {
        let was_first = std::mem::replace(&mut is_first, false);
        match c {
            '\\' => match chars.next() {
                // Escapes that the other language writes differently, or of characters that need none.
                Some('0') => out.push_str(r"\x00"),
                Some('e') => out.push_str(r"\x1b"),
                Some('Z') => out.push_str(r"(?:\n?\z)"),
                Some('h') if in_class => out.push_str(r" \t"),
                Some('h') => out.push_str(r"[ \t]"),
                Some(next @ ('<' | '>')) => out.push(next),
                Some(next) if !next.is_ascii() => out.push(next),
                Some(next) => out.extend(['\\', next]),
                None => out.push('\\'),
            },
            '[' if !in_class => {
                (in_class, is_first) = (true, true);
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            // The first one of a class is of it.
            ']' if in_class && was_first => out.push_str(r"\]"),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            // `[:alpha:]`
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            // The other language has classes within classes, and operations on them.
            '[' | '&' | '~' if in_class => out.extend(['\\', c]),
            '-' if in_class && chars.peek() == Some(&'-') => out.push_str(r"\-"),
            '{' if !in_class && !is_count(chars.clone()) => out.push_str(r"\{"),
            '$' if !in_class && before_newline => out.push_str(r"(?:\n?\z)"),
            c => out.push(c),
        }
    }
    out
}

/// Whether `{` is followed by what makes it a count.
fn is_count(rest: impl Iterator<Item = char>) -> bool {
    let inner: String = rest.take_while(|&c| c != '}').take(16).collect();
    let (low, high) = inner.split_once(',').unwrap_or((&inner, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Expression {
        match read(value, Buffer::Payload) {
            Ok(expression) => expression,
            Err(NoExpression::Wrong(why)) => panic!("{value}: {why}"),
            Err(NoExpression::Unsupported(what)) => panic!("{value}: {what}"),
        }
    }

    #[test]
    fn expressions_mean_what_they_mean_in_perl() {
        for (value, text, matches) in [
            (r#""/a\/b/""#, &b"xa/b"[..], true),
            (r#""/A.B/i""#, b"a\nb", false),
            (r#""/A.B/is""#, b"a\nb", true),
            (r#""/b$/""#, b"ab\n", true),
            (r#""/b$/E""#, b"ab\n", false),
            (r#""/b$/""#, b"ab\nc", false),
            (r#""/b$/m""#, b"ab\nc", true),
            (r#""/b/A""#, b"ab", false),
            (r#""/[][&&~-]{2}/""#, b"[&", true),
            (r#""/[[:alpha:]-]+\x3a/""#, b"a-b:", true),
            (r#""/a{,2}/""#, b"a{,2}", true),
            (r#""/{a}/""#, b"{a}", true),
            (r#""/a{2}/""#, b"aa", true),
            (r#""/a b # c/x""#, b"ab", true),
            (r#""/\xff[\x80-\x90]/""#, b"\xff\x88", true),
            (r#""/[^a-z--0]/""#, b"-", false),
            (r#""m%/a/b%""#, b"/a/b", true),
        ] {
            assert_eq!(of(value).regex.is_match(text), matches, "{value}");
        }
        let expression = of(r#"!"/x/UR""#);
        assert!(expression.negated && expression.is_relative && expression.buffer == Buffer::Uri);
    }

    #[test]
    fn what_is_no_expression_here_is_told() {
        let refused = |value: &str| match read(value, Buffer::Payload) {
            Ok(of) => panic!("{of:?}"),
            Err(NoExpression::Wrong(why)) => why,
            Err(NoExpression::Unsupported(what)) => format!("unsupported: {what}"),
        };
        assert_eq!(refused(r#""/a(?=b)/""#), "unsupported: pcre with look-around");
        assert_eq!(refused(r#""/(a)\1/""#), "unsupported: pcre with backreferences");
        assert_eq!(refused(r#""/((a{500}){500}){500}/""#), "it takes more than 1 MiB");
        assert_eq!(refused(r#""/a/q""#), "'q' is not a flag");
        assert_eq!(refused(r#""/(a/""#), "unclosed group");
        assert_eq!(refused(r#"/a/"#), "expected \"/EXPRESSION/FLAGS\"");
        assert_eq!(refused(r#""/a""#), "what ends the expression is missing");
    }
}
