//! The functions that scripts compute with: arithmetic, comparisons, logic and formatting. Each
//! takes its arguments as one text, words separated by spaces.

use click::config::{Argument, quote, unquote};

use super::memory::MAX_TEXT;
use crate::argument::{parse_integer, parse_value};

/// The functions of this module, which are read handlers of scripts.
pub(super) const FUNCTIONS: [&str; 36] = [
    "abs", "add", "and", "avg", "ceil", "count", "div", "eq", "first", "ge", "gt", "gt_vec",
    "htonl", "htons", "idiv", "if", "in", "le", "length", "lt", "max", "min", "mod", "mul", "nand",
    "ne", "neg", "nor", "not", "ntohl", "ntohs", "or", "popcount", "rem", "sprintf", "sub",
];

/// The value of a function, or what is wrong with its arguments.
pub(super) fn evaluate(function: &str, arguments: &str) -> Result<String, String> {
    match function {
        "add" | "sub" | "min" | "max" | "mul" | "div" | "idiv" | "avg" | "count" | "popcount"
        | "gt_vec" => fold(function, arguments),
        "mod" | "rem" => remainder(function, arguments),
        "neg" | "abs" | "ceil" => unary(function, arguments),
        "eq" | "ne" | "lt" | "le" | "gt" | "ge" => compare(function, arguments),
        "not" => truth(arguments).map(|t| (!t).to_string()),
        "and" | "or" | "nand" | "nor" => logic(function, arguments),
        "if" => {
            let mut words = Words(arguments.to_string());
            let chosen = truth(&words.next().unwrap_or_default())?;
            let then = words.next().unwrap_or_default();
            Ok(if chosen { then } else { words.next().unwrap_or_default() })
        }
        "in" => {
            let mut words = Words(arguments.to_string()).map(|w| plain(&w));
            let sought = words.next().unwrap_or_default();
            Ok((!sought.is_empty() && words.any(|w| w == sought)).to_string())
        }
        "first" => Ok(Words(arguments.to_string()).next().unwrap_or_default()),
        "length" => Ok(arguments.len().to_string()),
        "htons" | "ntohs" => byte_order(arguments, |n| u64::from((n as u16).to_be())),
        "htonl" | "ntohl" => byte_order(arguments, |n| u64::from((n as u32).to_be())),
        "sprintf" => format(arguments),
        _ => Err(format!("no function named '{function}'")),
    }
}

/// A text without its quotation marks.
pub(super) fn plain(text: &str) -> String {
    String::from_utf8_lossy(&unquote(text)).into_owned()
}

/// A text in quotation marks.
pub(super) fn quoted(text: &str) -> String {
    quote(text.as_bytes())
}

/// Stand around the number of a value in a text, where quotation cannot touch it.
pub(super) const OPEN: char = '\u{e000}';
pub(super) const CLOSE: char = '\u{e001}';

/// Puts values in the places of their numbers.
pub(super) fn insert(text: &str, values: &[String]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        result.push_str(before);
        let number = after.split_once(CLOSE);
        match number.and_then(|(n, tail)| Some((values.get(n.parse::<usize>().ok()?)?, tail))) {
            // More can only come of numbers that the text had already.
            Some((value, tail)) if result.len() + value.len() <= text.len() + MAX_TEXT => {
                result.push_str(value);
                rest = tail;
            }
            _ => rest = after,
        }
    }
    result + rest
}

/// Takes words off the front of a text.
pub(super) struct Words(pub(super) String);

impl Iterator for Words {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let (word, rest) = Argument::bare(std::mem::take(&mut self.0)).split_word();
        self.0 = rest.text;
        (!word.text.is_empty()).then_some(word.text)
    }
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Number {
    Integer(i64),
    Real(f64),
}

impl Number {
    fn parse(text: &str) -> Option<Self> {
        let integer = parse_integer(text).and_then(|n| i64::try_from(n).ok());
        let real = || text.parse().ok().filter(|_| !text.starts_with(char::is_alphabetic));
        integer.map(Number::Integer).or_else(|| real().map(Number::Real))
    }

    fn real(self) -> f64 {
        match self {
            Number::Integer(n) => n as f64,
            Number::Real(n) => n,
        }
    }

    fn show(self) -> String {
        match self {
            Number::Integer(n) => n.to_string(),
            Number::Real(n) => show_real(n),
        }
    }
}

/// Significant digits of real numbers.
const DIGITS: i32 = 12;

/// A real number as C's `%.12g` shows it.
fn show_real(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_string();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    let scientific = format!("{number:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        trim(&format!("{number:.*}", (DIGITS - 1 - exponent).max(0) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    }
}

fn truth(text: &str) -> Result<bool, String> {
    parse_value(text)
}

fn numbers(arguments: &str) -> Result<Vec<Number>, String> {
    let parse = |w: String| Number::parse(&w).ok_or_else(|| format!("'{w}' is not a number"));
    Words(arguments.to_string()).map(parse).collect()
}

fn fold(function: &str, arguments: &str) -> Result<String, String> {
    let numbers = numbers(arguments)?;
    let count = numbers.len();
    let counted = |keep: &dyn Fn(&Number) -> bool, from: usize| {
        Ok(numbers[from.min(count)..].iter().filter(|n| keep(n)).count().to_string())
    };
    match function {
        "count" => return Ok(count.to_string()),
        "popcount" => return counted(&|n| n.real().abs() > 0.00001, 0),
        "gt_vec" => {
            let bound = numbers.first().map_or(0.0, |n| n.real());
            return counted(&|n| n.real() > bound, 1);
        }
        _ => {}
    }
    let divides = matches!(function, "div" | "idiv");
    let apply = |a: Number, b: Number| match (a, b) {
        (Number::Integer(a), Number::Integer(b)) if !divides => Number::Integer(match function {
            "sub" => a.wrapping_sub(b),
            "min" => a.min(b),
            "max" => a.max(b),
            "mul" => a.wrapping_mul(b),
            _ => a.wrapping_add(b),
        }),
        _ => {
            let (a, b) = (a.real(), b.real());
            Number::Real(match function {
                "sub" => a - b,
                "min" => a.min(b),
                "max" => a.max(b),
                "mul" => a * b,
                "div" | "idiv" => a / b,
                _ => a + b,
            })
        }
    };
    let result = numbers.iter().copied().reduce(apply);
    let result = match (function, result) {
        ("add" | "sub", None) => Number::Integer(0),
        ("avg", None) => return Err("expected list of numbers".to_string()),
        (_, None) => Number::Integer(1),
        ("avg", Some(Number::Integer(sum))) => Number::Integer(sum / count as i64),
        ("avg", Some(Number::Real(sum))) => Number::Real(sum / count as f64),
        ("div", Some(quotient)) => Number::Real(quotient.real()),
        ("idiv", Some(quotient)) => Number::Integer(quotient.real() as i64),
        (_, Some(result)) => result,
    };
    Ok(result.show())
}

fn remainder(function: &str, arguments: &str) -> Result<String, String> {
    let numbers = numbers(arguments)?;
    match (function, &numbers[..]) {
        (_, [Number::Integer(_), Number::Integer(0)]) => Err("division by zero".to_string()),
        (_, [Number::Integer(a), Number::Integer(b)]) => Ok(a.wrapping_rem(*b).to_string()),
        ("rem", [a, b]) => Ok(show_real(a.real() % b.real())),
        _ => Err("expected two numbers".to_string()),
    }
}

fn unary(function: &str, arguments: &str) -> Result<String, String> {
    let result = match (function, &numbers(arguments)?[..]) {
        ("ceil", [Number::Real(n)]) => Number::Real(n.ceil()),
        ("ceil", [n]) => *n,
        ("abs", [Number::Integer(n)]) => Number::Integer(n.wrapping_abs()),
        ("abs", [Number::Real(n)]) => Number::Real(n.abs()),
        (_, [Number::Integer(n)]) => Number::Integer(n.wrapping_neg()),
        (_, [Number::Real(n)]) => Number::Real(-n),
        _ => return Err("expected one number".to_string()),
    };
    Ok(result.show())
}

/// Compares two numbers, or two words where they are not numbers.
fn compare(function: &str, arguments: &str) -> Result<String, String> {
    use std::cmp::Ordering;
    let words: Vec<String> = Words(arguments.to_string()).collect();
    let [a, b] = &words[..] else { return Err("expected two numbers or words".to_string()) };
    let ordering = match (Number::parse(a), Number::parse(b)) {
        (Some(Number::Integer(a)), Some(Number::Integer(b))) => Some(a.cmp(&b)),
        (Some(a), Some(b)) => a.real().partial_cmp(&b.real()),
        _ => Some(unquote(a).cmp(&unquote(b))),
    };
    let holds = match function {
        "eq" => ordering == Some(Ordering::Equal),
        "ne" => ordering != Some(Ordering::Equal),
        "lt" => ordering == Some(Ordering::Less),
        "le" => ordering.is_some_and(Ordering::is_le),
        "gt" => ordering == Some(Ordering::Greater),
        _ => ordering.is_some_and(Ordering::is_ge),
    };
    Ok(holds.to_string())
}

fn logic(function: &str, arguments: &str) -> Result<String, String> {
    let mut words = Words(arguments.to_string()).map(|w| truth(&w));
    // Words after the one that decides are not looked at.
    let all = matches!(function, "and" | "nand");
    let decided = words.find(|t| t.as_ref().is_ok_and(|t| *t != all) || t.is_err()).transpose()?;
    let result = decided.unwrap_or(all);
    Ok((result != function.starts_with('n')).to_string())
}

fn byte_order(arguments: &str, swap: impl Fn(i64) -> u64) -> Result<String, String> {
    match Number::parse(arguments.trim()) {
        Some(Number::Integer(n)) => Ok(swap(n).to_string()),
        _ => Err("expected one number".to_string()),
    }
}

/// The widest field that is made, and the most digits.
const MAX_WIDTH: usize = 4096;

/// A conversion of [`format`]: `%` flags, width, precision, size and letter.
#[derive(Default)]
struct Conversion {
    left: bool,
    zero: bool,
    alternate: bool,
    space: bool,
    plus: bool,
    width: usize,
    precision: Option<usize>,
    short: bool,
    letter: char,
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// A width or a precision: digits, or `*` for the next argument; `None` if there is neither.
fn size(chars: &mut Chars<'_>, arguments: &mut Words) -> Result<Option<i64>, String> {
    if chars.next_if_eq(&'*').is_some() {
        return parse_value(&arguments.next().unwrap_or_default()).map(Some);
    }
    let mut digits = String::new();
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
    match digits.as_str() {
        "" => Ok(None),
        digits => digits.parse().map(Some).map_err(|_| format!("'{digits}' is too wide")),
    }
}

impl Conversion {
    /// Parses what stands behind a `%`.
    fn parse(chars: &mut Chars<'_>, arguments: &mut Words) -> Result<Self, String> {
        let mut conversion = Self::default();
        while let Some(flag) = chars.next_if(|c| "0#- +".contains(*c)) {
            match flag {
                '0' => conversion.zero = true,
                '#' => conversion.alternate = true,
                '-' => conversion.left = true,
                ' ' => conversion.space = true,
                _ => conversion.plus = true,
            }
        }
        let width = size(chars, arguments)?.unwrap_or(0);
        conversion.left |= width < 0;
        conversion.width = width.unsigned_abs() as usize;
        if chars.next_if_eq(&'.').is_some() {
            let precision = size(chars, arguments)?.unwrap_or(0);
            conversion.precision = Some(precision.try_into().map_err(|_| "bad precision")?);
        }
        while let Some(size) = chars.next_if(|c| "hlLq".contains(*c)) {
            conversion.short = size == 'h';
        }
        conversion.letter = chars.next().unwrap_or(' ');
        if conversion.width.max(conversion.precision.unwrap_or(0)) > MAX_WIDTH {
            return Err(format!("a format wider than {MAX_WIDTH}"));
        }
        Ok(conversion)
    }

    fn convert(&self, arguments: &mut Words) -> Result<String, String> {
        if self.letter == '%' {
            return Ok("%".to_string());
        }
        let argument = arguments.next().unwrap_or_default();
        let integer =
            || parse_integer(&argument).ok_or_else(|| format!("'{argument}' is not a number"));
        let unsigned = || {
            let number: Result<u64, _> = integer()?.try_into();
            let number = number.map_err(|_| format!("'{argument}' is out of range"))?;
            Ok::<_, String>(if self.short { u64::from(number as u16) } else { number })
        };
        let (sign, digits) = match self.letter {
            's' => {
                let text: String = plain(&argument);
                let kept = self.precision.unwrap_or(usize::MAX);
                return Ok(self.pad("", &text.chars().take(kept).collect::<String>(), false));
            }
            'd' | 'i' => {
                let number: Result<i64, _> = integer()?.try_into();
                let number = number.map_err(|_| format!("'{argument}' is out of range"))?;
                let number = if self.short { i64::from(number as i16) } else { number };
                let sign = match number {
                    ..0 => "-",
                    _ if self.plus => "+",
                    _ if self.space => " ",
                    _ => "",
                };
                (sign, number.unsigned_abs().to_string())
            }
            'u' => ("", unsigned()?.to_string()),
            'o' => (if self.alternate { "0" } else { "" }, format!("{:o}", unsigned()?)),
            'x' => (if self.alternate { "0x" } else { "" }, format!("{:x}", unsigned()?)),
            'X' => (if self.alternate { "0X" } else { "" }, format!("{:X}", unsigned()?)),
            other => return Err(format!("unknown conversion '%{other}'")),
        };
        let digits = match self.precision {
            Some(precision) => format!("{digits:0>precision$}"),
            None => digits,
        };
        Ok(self.pad(sign, &digits, self.zero && self.precision.is_none()))
    }

    fn pad(&self, sign: &str, text: &str, zeros: bool) -> String {
        let missing = self.width.saturating_sub(sign.len() + text.chars().count());
        match (self.left, zeros) {
            (true, _) => format!("{sign}{text}{}", " ".repeat(missing)),
            (false, true) => format!("{sign}{}{text}", "0".repeat(missing)),
            (false, false) => format!("{}{sign}{text}", " ".repeat(missing)),
        }
    }
}

/// C's `sprintf`, with the conversions d i o u x X s %.
fn format(arguments: &str) -> Result<String, String> {
    let mut arguments = Words(arguments.to_string());
    let template = plain(&arguments.next().unwrap_or_default());
    let mut chars = template.chars().peekable();
    let mut text = String::new();
    while let Some(char) = chars.next() {
        if char == '%' {
            let conversion = Conversion::parse(&mut chars, &mut arguments)?;
            text += &conversion.convert(&mut arguments)?;
            if text.len() > MAX_TEXT {
                return Err(format!("a text longer than {MAX_TEXT} bytes"));
            }
        } else {
            text.push(char);
        }
    }
    match arguments.next() {
        Some(extra) => Err(format!("the format has no place for '{extra}'")),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(function: &str, arguments: &str, value: &str) {
        assert_eq!(evaluate(function, arguments).as_deref(), Ok(value), "{function} {arguments}");
    }

    #[track_caller]
    fn fails(function: &str, arguments: &str) {
        assert!(evaluate(function, arguments).is_err(), "{function} {arguments}");
    }

    #[test]
    fn arithmetic_is_exact_on_integers_and_real_otherwise() {
        is("add", "10 5 2", "17");
        is("add", "", "0");
        is("add", "0x10 010", "24");
        is("add", "1 0.5", "1.5");
        is("sub", "10 5 2", "3");
        is("mul", "3 -4", "-12");
        is("div", "7 2", "3.5");
        is("div", "6 2", "3");
        is("div", "1 0", "inf");
        is("idiv", "7 2", "3");
        is("avg", "5 10 2", "5");
        is("avg", "5.0 10 3", "6");
        is("min", "5 10 2", "2");
        is("max", "5 10 2", "10");
        is("count", "5 0 2", "3");
        is("popcount", "5 0 2", "2");
        is("gt_vec", "5 0 2 7", "1");
        is("mod", "7 3", "1");
        is("rem", "7.5 2", "1.5");
        is("neg", "5", "-5");
        is("abs", "-2.5", "2.5");
        is("ceil", "1.2", "2");
        is("add", "9223372036854775807 1", "-9223372036854775808");
        fails("mod", "7 0");
        fails("mod", "7.5 2");
        fails("add", "1 x");
        fails("neg", "1 2");
        is("mod", "-9223372036854775808 -1", "0");
    }

    #[test]
    fn reals_have_twelve_digits() {
        is("div", "1 3", "0.333333333333");
        is("div", "1 30000", "3.33333333333e-05");
        is("mul", "1e20 10", "1e+21");
        is("mul", "123456789.5 1", "123456789.5");
    }

    #[test]
    fn comparisons_take_numbers_and_words() {
        is("eq", "10 0xA", "true");
        is("le", "9 8", "false");
        is("eq", "10x 10x", "true");
        is("lt", "abc \"abd\"", "true");
        is("ne", "a 1", "true");
        is("ge", "1.5 1", "true");
        fails("eq", "1");
        fails("eq", "1 2 3");
    }

    #[test]
    fn logic_and_choice() {
        is("not", "true", "false");
        is("and", "true 1 yes", "true");
        is("and", "true false", "false");
        is("and", "", "true");
        is("or", "false 0", "false");
        is("nand", "true true", "false");
        is("nor", "false false", "true");
        is("if", "true a b", "a");
        is("if", "false a b", "b");
        is("if", "false a", "");
        is("in", "foo bar foo", "true");
        is("in", "foo bar", "false");
        is("first", "'a b' c", "'a b'");
        is("length", "abcde", "5");
        fails("not", "maybe");
        fails("or", "false x");
        fails("shout", "");
    }

    #[test]
    fn formats_are_those_of_c() {
        is("sprintf", "\"%05x\" 127", "0007f");
        is("sprintf", "'%5d|%-5d|%+d' 42 42 42", "   42|42   |+42");
        is("sprintf", "'%*d|%-*d|' 4 7 3 7", "   7|7  |");
        is("sprintf", "%.3d 7", "007");
        is("sprintf", "'%s and %.2s%%' 'a b' xyz", "a b and xy%");
        is("sprintf", "%#x 255", "0xff");
        is("sprintf", "%hx 0x12345", "2345");
        is("sprintf", "%d -3", "-3");
        is("sprintf", "", "");
        for wrong in [
            "%d x",
            "%d",
            "%x -1",
            "%q 1",
            "%",
            "x 1",
            "%999999999d 1",
            "%.-1d 1",
            "%99999999999999999999d 1",
        ] {
            fails("sprintf", wrong);
        }
    }
}
