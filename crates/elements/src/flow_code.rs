//! Flow codes: from which inputs of an element packets go to which outputs, in Click's notation.

/// Whether packets go from an input to an output, by a flow code such as `xy/x` or `#/[^#]`.
pub fn flows(code: &str, input: usize, output: usize) -> bool {
    let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
    let (Some(a), Some(b)) = (port_code(inputs, input), port_code(outputs, output)) else {
        return true;
    };
    // Two negated codes leave out only a few of all letters.
    a.negated && b.negated
        || (b'A'..=b'z').any(|l| l.is_ascii_alphabetic() && a.has(l) && b.has(l))
        || [input, output].into_iter().any(|n| a.has_number(n, input) && b.has_number(n, output))
}

/// The letters of a port, or those that it has not; `#` is the port's number.
struct PortCode<'a> {
    codes: &'a [u8],
    negated: bool,
}

impl PortCode<'_> {
    fn has(&self, letter: u8) -> bool {
        self.codes.contains(&letter) != self.negated
    }

    fn has_number(&self, number: usize, port: usize) -> bool {
        (number == port && self.codes.contains(&b'#')) != self.negated
    }
}

/// The code of a port; the last one counts for all that follow.
fn port_code(codes: &str, port: usize) -> Option<PortCode<'_>> {
    let bytes = codes.as_bytes();
    let (mut at, mut index, mut last) = (0, 0, None);
    while at < bytes.len() && index <= port {
        let end = match bytes[at] {
            b'[' => at + bytes[at..].iter().position(|&b| b == b']')?,
            _ => at,
        };
        let inside = if bytes[at] == b'[' { &bytes[at + 1..end] } else { &bytes[at..=at] };
        let negated = inside.first() == Some(&b'^');
        last = Some(PortCode { codes: &inside[usize::from(negated)..], negated });
        at = end + 1;
        index += 1;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::flows;

    #[test]
    fn flow_codes_are_clicks() {
        let paths = |code: &str, inputs: usize, outputs: usize| -> Vec<String> {
            (0..inputs)
                .map(|i| (0..outputs).map(|o| if flows(code, i, o) { '1' } else { '0' }).collect())
                .collect()
        };
        assert_eq!(paths("x/x", 2, 2), ["11", "11"]);
        assert_eq!(paths("x/y", 2, 2), ["00", "00"]);
        assert_eq!(paths("xy/x", 3, 2), ["11", "00", "00"]);
        assert_eq!(paths("#/#", 2, 3), ["100", "010"]);
        assert_eq!(paths("#/[^#]", 2, 3), ["011", "101"]);
        assert_eq!(paths("xy/[xy]x", 2, 3), ["111", "100"]);
        assert_eq!(paths("xy/xxyx", 2, 4), ["1101", "0010"]);
    }
}
