//! Words of a P4 program.

pub(super) use crate::draft::Failure;

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Name(String),
    /// A number, with its width if that is given.
    Number(Option<u16>, u128),
    /// One of [`SIGNS`].
    Sign(&'static str),
}

/// Signs; longer ones come first.
const SIGNS: [&str; 36] = [
    "&&&", "++", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "..", "{", "}", "(", ")", "[",
    "]", "<", ">", ";", ":", ",", ".", "=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "?",
    "@",
];

fn number(word: &str) -> Option<(Option<u16>, u128)> {
    let (width, rest) = match word.find(['w', 's']) {
        Some(at) if at > 0 && !word.starts_with("0x") => {
            // Signed numbers are not read.
            let (width, rest) = word.split_at(at);
            (
                Some(width.parse().ok().filter(|width| (1..=128).contains(width))?),
                rest.strip_prefix('w')?,
            )
        }
        _ => (None, word),
    };
    let digits: String = rest.chars().filter(|c| *c != '_').collect();
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u128::from_str_radix(hex, 16),
        None => match digits.strip_prefix("0b") {
            Some(bits) => u128::from_str_radix(bits, 2),
            None => digits.parse(),
        },
    };
    let value = value.ok()?;
    let fits = width.is_none_or(|width: u16| value <= u128::MAX >> (128 - width));
    fits.then_some((width, value))
}

/// The words of a text, with their lines. Directives are passed by.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Failure> {
    let mut all = Vec::new();
    let mut in_comment = false;
    for (line, text) in (1..).zip(text.lines()) {
        let mut rest = text.trim_start();
        if rest.starts_with('#') && !in_comment {
            continue;
        }
        while !rest.is_empty() {
            if in_comment {
                match rest.find("*/") {
                    Some(end) => (rest, in_comment) = (&rest[end + 2..], false),
                    None => break,
                }
                continue;
            }
            if rest.starts_with("//") {
                break;
            }
            if let Some(behind) = rest.strip_prefix("/*") {
                (rest, in_comment) = (behind, true);
                continue;
            }
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            if end > 0 {
                let of = &rest[..end];
                let token = match of.starts_with(|c: char| c.is_ascii_digit()) {
                    true => {
                        let (width, value) = number(of)
                            .ok_or_else(|| (line, format!("'{of}' is no number that fits")))?;
                        Token::Number(width, value)
                    }
                    false => Token::Name(of.into()),
                };
                all.push((line, token));
                rest = rest[end..].trim_start();
                continue;
            }
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign =
                sign.ok_or_else(|| (line, "a character that is not expected".to_string()))?;
            all.push((line, Token::Sign(sign)));
            rest = rest[sign.len()..].trim_start();
        }
    }
    Ok(all)
}
