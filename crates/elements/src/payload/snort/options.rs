//! Options of rules.

use std::collections::HashMap;

use super::detection::{
    Buffer, ByteExtract, ByteJump, ByteTest, Content, DataAt, Detection, Encoding, Field, From,
    MOST_VARIABLES, Number, Operator,
};
use super::expression::{self, NoExpression};
use super::{FlowBits, MOST_BITS, Range, Rate, RateKind, Refused, Rule, RuleOption, Track, wrong};

/// What options tell of those that follow.
pub(super) struct Reading<'a> {
    sticky: Buffer,
    /// Where the option before looks, if any.
    before: Option<Buffer>,
    /// Names of numbers that the rule reads.
    variables: Vec<String>,
    /// Bits of flows of all rules, by name.
    bits: &'a mut HashMap<String, u32>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(bits: &'a mut HashMap<String, u32>) -> Self {
        Self { sticky: Buffer::Payload, before: None, variables: Vec::new(), bits }
    }

    /// Where an option looks that does not say so.
    fn buffer(&self, is_relative: bool) -> Buffer {
        self.before.filter(|_| is_relative).unwrap_or(self.sticky)
    }

    /// A number, or one that was read.
    fn number(&self, text: &str) -> Option<Number> {
        let hex = text.strip_prefix("0x").map(|digits| i64::from_str_radix(digits, 16));
        if let Ok(number) = hex.unwrap_or_else(|| text.parse::<i64>()) {
            let fits = number.unsigned_abs() <= u32::MAX.into();
            return fits.then_some(Number::Known(number));
        }
        let at = self.variables.iter().position(|name| name == text)?;
        Some(Number::Variable(u8::try_from(at).ok()?))
    }

    /// A set of bits: names with `&` or `|` between them; whether all are meant.
    fn bits(&mut self, text: &str) -> Result<(u128, bool), Refused> {
        let mut all = 0;
        for name in text.split(['&', '|']).map(str::trim) {
            let next = self.bits.len() as u32;
            let bit = *self.bits.entry(name.to_string()).or_insert(next);
            if bit >= MOST_BITS {
                return Err(Refused::Option(format!("more than {MOST_BITS} flowbits")));
            }
            all |= 1 << bit;
        }
        Ok((all, !text.contains('|')))
    }
}

/// A quoted string without its escapes.
fn unquoted(value: &str) -> Option<String> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    Some(text)
}

/// The bytes of a content: text, with hexadecimal numbers between bars.
fn bytes(value: &str) -> Option<Vec<u8>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(&b) = inner.get(at) {
        at += 1;
        match b {
            b'\\' => {
                all.push(*inner.get(at)?);
                at += 1;
            }
            b'|' => {
                let length = inner[at..].iter().position(|&b| b == b'|')?;
                let text = std::str::from_utf8(&inner[at..at + length]).ok()?;
                for word in text.split_ascii_whitespace() {
                    let digits = word.as_bytes().chunks(2);
                    for pair in digits {
                        let pair = std::str::from_utf8(pair).ok().filter(|p| p.len() == 2)?;
                        all.push(u8::from_str_radix(pair, 16).ok()?);
                    }
                }
                at += length + 1;
            }
            b => all.push(b),
        }
    }
    (!all.is_empty()).then_some(all)
}

/// `N`, `<N`, `>N` or `N<>M`.
fn range(value: &str) -> Option<Range> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    if let Some((low, high)) = value.split_once("<>") {
        return Some((number(low)?, number(high)?)).filter(|(low, high)| low <= high);
    }
    Some(match (value.strip_prefix('<'), value.strip_prefix('>')) {
        (Some(n), _) => (0, number(n)?.checked_sub(1)?),
        (_, Some(n)) => (number(n)?.checked_add(1)?, u32::MAX),
        _ => (number(value)?, number(value)?),
    })
}

/// What may stand behind the first arguments of byte_test, byte_jump and byte_extract.
struct Modifiers {
    field: Field,
    multiplier: i64,
    align: i64,
    from: From,
    post_offset: i64,
}

impl Reading<'_> {
    /// A number in the payload, with its modifiers.
    fn field(
        &self,
        (at, name): (usize, &str),
        bytes: &str,
        offset: &str,
        modifiers: &[&str],
    ) -> Result<Modifiers, Refused> {
        let bad = |text: &str, what: &str| wrong(at, format!("'{text}' is not {what} for {name}"));
        let (mut is_text, mut base) = (false, 10);
        let (mut encoding, mut mask) = (Encoding::Big, None);
        let (mut is_relative, mut from) = (false, From::Field);
        let (mut multiplier, mut align, mut post_offset) = (1, 1, 0);
        for modifier in modifiers {
            let (word, value) = modifier.split_once(' ').unwrap_or((modifier, ""));
            let value = value.trim();
            let number = || {
                let number = self.number(value).ok_or_else(|| bad(value, "a number"))?;
                match number {
                    Number::Known(number) => Ok(number),
                    Number::Variable(_) => Err(Refused::Option(format!("{word} of a variable"))),
                }
            };
            match word {
                "relative" => is_relative = true,
                "big" => encoding = Encoding::Big,
                "little" => encoding = Encoding::Little,
                "string" => is_text = true,
                "hex" => base = 16,
                "dec" => base = 10,
                "oct" => base = 8,
                "align" if value == "2" => align = 2,
                "align" if matches!(value, "" | "4") => align = 4,
                "multiplier" => {
                    let number = Some(number()?).filter(|n| (1..=65_535).contains(n));
                    multiplier = number.ok_or_else(|| bad(value, "a number from 1 to 65535"))?;
                }
                "from_beginning" => from = From::Beginning,
                "from_end" => from = From::End,
                "post_offset" => post_offset = number()?,
                "bitmask" => {
                    let number = number()?;
                    let some = u32::try_from(number).ok().filter(|&mask| mask != 0);
                    mask = Some(some.ok_or_else(|| bad(value, "a mask of bits"))?);
                }
                "dce" => return Err(Refused::Option(format!("{name} dce"))),
                other => return Err(bad(other, "a modifier")),
            }
        }
        if is_text {
            encoding = Encoding::Text(base);
        }
        let range = if is_text { Field::TEXT } else { Field::BINARY };
        let number = bytes.parse::<usize>().ok().filter(|n| range.contains(n));
        let bytes = number.ok_or_else(|| {
            bad(bytes, &format!("a number from {} to {}", range.start(), range.end()))
        })?;
        let offset = self.number(offset).ok_or_else(|| bad(offset, "an offset"))?;
        let buffer = self.buffer(is_relative);
        let field = Field { buffer, bytes, offset, is_relative, encoding, mask };
        Ok(Modifiers { field, multiplier, align, from, post_offset })
    }
}

impl Rule {
    /// Takes an option in.
    pub(super) fn option(
        &mut self,
        (at, name, value): RuleOption<'_>,
        reading: &mut Reading<'_>,
    ) -> Result<(), Refused> {
        let bad = |what: &str| wrong(at, format!("'{value}' is not {what} for {name}"));
        let number = || value.parse::<u32>().map_err(|_| bad("a number"));
        let some_range = || range(value).ok_or_else(|| bad("a number, <N, >N or N<>M"));
        match name {
            "content" | "uricontent" | "pcre" | "isdataat" | "byte_test" | "byte_jump"
            | "byte_extract" => {
                let detection = detection((at, name, value), reading)?;
                reading.before = Some(detection.buffer());
                self.detections.push(detection);
            }
            "nocase" | "offset" | "depth" | "distance" | "within" => {
                let Some(Detection::Content(content)) = self.detections.last_mut() else {
                    return Err(wrong(at, format!("{name} stands behind a content")));
                };
                if name == "nocase" {
                    content.any_case = true;
                    content.bytes.make_ascii_lowercase();
                    return Ok(());
                }
                let number = reading.number(value).ok_or_else(|| bad("a number"))?;
                match name {
                    "offset" => content.offset = number,
                    "depth" => content.depth = Some(number),
                    "distance" => content.distance = Some(number),
                    _ => content.within = Some(number),
                }
            }
            "fast_pattern" | "rawbytes" | "reference" | "metadata" => {}
            "file_data" => (reading.sticky, reading.before) = (Buffer::FileData, None),
            "pkt_data" => (reading.sticky, reading.before) = (Buffer::Payload, None),
            "msg" => self.message = unquoted(value).ok_or_else(|| bad("a quoted string"))?,
            "classtype" => self.class = value.to_string(),
            "sid" => self.sid = number()?,
            "gid" => self.gid = number()?,
            "rev" => self.rev = number()?,
            "priority" => self.priority = number()?,
            "dsize" => self.size = Some(some_range()?),
            "urilen" => {
                let length = value.split(',').next().unwrap_or_default().trim();
                self.uri_size = Some(range(length).ok_or_else(|| bad("a length"))?);
            }
            "itype" => self.icmp_type = Some(some_range()?),
            "icode" => self.icmp_code = Some(some_range()?),
            "flow" => self.flow(value)?,
            "flowbits" => self.flow_bits(value, reading, &bad)?,
            "detection_filter" | "threshold" => {
                let rate = rate(name, value).ok_or_else(|| {
                    bad("'track by_src or by_dst, count N, seconds N', with a type for threshold")
                })?;
                self.rate = Some(rate);
            }
            _ => match Buffer::of(name) {
                Some(buffer) => {
                    let Some(Detection::Content(content)) = self.detections.last_mut() else {
                        return Err(wrong(at, format!("{name} stands behind a content")));
                    };
                    content.buffer = buffer;
                    reading.before = Some(buffer);
                }
                None => return Err(Refused::Option(name.to_string())),
            },
        }
        Ok(())
    }

    fn flow(&mut self, value: &str) -> Result<(), Refused> {
        for word in value.split(',').map(str::trim) {
            match word {
                "established" => self.established = true,
                "to_server" | "from_client" => self.to_server = Some(true),
                "to_client" | "from_server" => self.to_server = Some(false),
                "no_stream" => self.in_streams = false,
                "stateless" | "only_stream" => {}
                other => return Err(Refused::Option(format!("flow {other}"))),
            }
        }
        Ok(())
    }

    fn flow_bits(
        &mut self,
        value: &str,
        reading: &mut Reading<'_>,
        bad: &dyn Fn(&str) -> Refused,
    ) -> Result<(), Refused> {
        let mut words = value.split(',').map(str::trim);
        let (does, names) = (words.next().unwrap_or_default(), words.next());
        // What follows is a group of names, which says nothing of a flow.
        match (does, names) {
            ("noalert", None) => self.is_silent = true,
            ("reset", None) => self.bits.push(FlowBits::Unset(u128::MAX)),
            (_, None | Some("")) => return Err(bad("set, isset and so on with a name")),
            (_, Some(names)) => {
                let (bits, all) = reading.bits(names)?;
                self.bits.push(match (does, all) {
                    ("set", _) => FlowBits::Set(bits),
                    ("unset", _) => FlowBits::Unset(bits),
                    ("toggle", _) => FlowBits::Toggle(bits),
                    ("isset", true) => FlowBits::All(bits),
                    ("isset", false) => FlowBits::Any(bits),
                    ("isnotset", true) => FlowBits::NotAny(bits),
                    ("isnotset", false) => FlowBits::NotAll(bits),
                    _ => return Err(bad("set, isset and so on with a name")),
                });
            }
        }
        Ok(())
    }
}

/// What an option demands of a payload.
fn detection(
    (at, name, value): RuleOption<'_>,
    reading: &mut Reading<'_>,
) -> Result<Detection, Refused> {
    let bad = |what: &str| wrong(at, format!("'{value}' is not {what} for {name}"));
    let parts: Vec<&str> = value.split(',').map(str::trim).collect();
    Ok(match (name, &parts[..]) {
        ("content" | "uricontent", _) => {
            let (negated, quoted) = match value.strip_prefix('!') {
                Some(rest) => (true, rest.trim()),
                None => (false, value),
            };
            if quoted.starts_with('"') && !quoted.ends_with('"') {
                return Err(Refused::Option("content with modifiers of Snort 3".to_string()));
            }
            let bytes = bytes(quoted).ok_or_else(|| bad("a quoted string"))?;
            Detection::Content(Content {
                bytes,
                any_case: false,
                negated,
                buffer: if name == "content" { reading.sticky } else { Buffer::Uri },
                offset: Number::Known(0),
                depth: None,
                distance: None,
                within: None,
            })
        }
        ("pcre", _) => match expression::read(value, reading.sticky) {
            Ok(expression) => Detection::Expression(expression),
            Err(NoExpression::Unsupported(what)) => {
                return Err(Refused::Option(what.to_string()));
            }
            Err(NoExpression::Wrong(why)) => {
                return Err(wrong(at, format!("'{value}' is no regular expression: {why}")));
            }
        },
        ("isdataat", [at, flags @ ..]) => {
            let (negated, at) = at.strip_prefix('!').map_or((false, *at), |rest| (true, rest));
            let at = reading.number(at.trim()).ok_or_else(|| bad("a place"))?;
            let is_relative = flags.contains(&"relative");
            if flags.iter().any(|flag| !matches!(*flag, "relative" | "rawbytes")) {
                return Err(bad("a place"));
            }
            let buffer = reading.buffer(is_relative);
            Detection::DataAt(DataAt { buffer, at, is_relative, negated })
        }
        ("byte_test", [bytes, operator, value, offset, modifiers @ ..]) => {
            let (negated, operator) = match operator.strip_prefix('!') {
                Some(rest) => (true, rest.trim()),
                None => (false, *operator),
            };
            let operator = match operator {
                "<" => Operator::Less,
                ">" => Operator::Greater,
                "=" => Operator::Equal,
                "" if negated => Operator::Equal,
                "<=" => Operator::LessOrEqual,
                ">=" => Operator::GreaterOrEqual,
                "&" => Operator::And,
                "^" => Operator::ExclusiveOr,
                _ => return Err(bad("a comparison with <, >, =, <=, >=, & or ^")),
            };
            let value = reading.number(value).ok_or_else(|| bad("a comparison with a number"))?;
            let Modifiers { field, .. } = reading.field((at, name), bytes, offset, modifiers)?;
            Detection::Test(ByteTest { field, negated, operator, value })
        }
        ("byte_jump", [bytes, offset, modifiers @ ..]) => {
            let Modifiers { field, multiplier, align, from, post_offset } =
                reading.field((at, name), bytes, offset, modifiers)?;
            Detection::Jump(ByteJump { field, multiplier, align, from, post_offset })
        }
        ("byte_extract", [bytes, offset, variable, modifiers @ ..]) => {
            let Modifiers { field, multiplier, align, .. } =
                reading.field((at, name), bytes, offset, modifiers)?;
            let known = reading.variables.iter().position(|name| name == variable);
            if known.is_none() && reading.variables.len() == MOST_VARIABLES {
                return Err(Refused::Option(format!("more than {MOST_VARIABLES} byte_extract")));
            }
            if !variable.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Err(bad("a number with a name"));
            }
            let at = known.unwrap_or_else(|| {
                reading.variables.push((*variable).to_string());
                reading.variables.len() - 1
            });
            Detection::Extract(ByteExtract { field, multiplier, align, variable: at as u8 })
        }
        _ => return Err(bad("a list of numbers")),
    })
}

/// `[type KIND,] track by_src|by_dst, count N, seconds N`
fn rate(name: &str, value: &str) -> Option<Rate> {
    let (mut kind, mut track, mut count, mut seconds) = (None, None, None, None);
    for part in value.split(',') {
        let mut words = part.split_ascii_whitespace();
        match (words.next()?, words.next()?, words.next()) {
            ("type", "limit", None) => kind = Some(RateKind::Limit),
            ("type", "threshold", None) => kind = Some(RateKind::Threshold),
            ("type", "both", None) => kind = Some(RateKind::Both),
            ("track", "by_src", None) => track = Some(Track::Source),
            ("track", "by_dst", None) => track = Some(Track::Destination),
            ("count", number, None) => count = number.parse().ok().filter(|&n: &u32| n > 0),
            ("seconds", number, None) => seconds = number.parse().ok().filter(|&n: &u32| n > 0),
            _ => return None,
        }
    }
    let kind = match (name, kind) {
        ("detection_filter", None) => RateKind::Filter,
        ("threshold", Some(kind)) => kind,
        _ => return None,
    };
    Some(Rate { kind, track: track?, count: count?, seconds: seconds? })
}
