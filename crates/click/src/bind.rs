//! Arguments meet the parameters of a compound.

use crate::ast::{Body, Parameter};
use crate::config::Argument;

/// Why arguments do not fit the parameters of a compound.
#[derive(Clone, Debug)]
pub enum BindError<'a> {
    /// No argument is left for this positional parameter.
    Missing(&'a Parameter),
    /// This argument looks like `KEYWORD value`, but no parameter has that keyword.
    UnknownKeyword(&'a Argument),
    /// This argument is one too many.
    TooMany(&'a Argument),
}

impl Body {
    /// One value for each parameter, in their order: positional arguments come first, then those with
    /// keywords in any order (the last one counts; a keyword that is not given has an empty value), and
    /// what is left goes to `__REST__`, joined with commas.
    pub fn bind<'a>(&'a self, arguments: &'a [Argument]) -> Result<Vec<Argument>, BindError<'a>> {
        let positional = self.parameters.iter().take_while(|p| p.keyword.is_none()).count();
        if let Some(missing) = self.parameters[..positional].get(arguments.len()) {
            return Err(BindError::Missing(missing));
        }
        let (first, others) = arguments.split_at(positional);
        let mut values = first.to_vec();
        values.resize(self.parameters.len(), Argument::bare(""));
        let rest = self.parameters.iter().position(Parameter::is_rest);
        let mut remaining: Vec<&Argument> = Vec::new();
        for argument in others {
            let (word, value) = argument.split_word();
            let keyword = |p: &Parameter| p.keyword.as_ref().is_some_and(|k| k.text == word.text);
            match self.parameters.iter().position(keyword) {
                Some(index) if Some(index) != rest => values[index] = value,
                _ if rest.is_some() => remaining.push(argument),
                _ if positional < self.parameters.len() && argument.keyword().is_some() => {
                    return Err(BindError::UnknownKeyword(argument));
                }
                _ => return Err(BindError::TooMany(argument)),
            }
        }
        if let Some(rest) = rest {
            values[rest] = match remaining[..] {
                [] => Argument::bare(""),
                [one] => one.clone(),
                [first, .., last] => {
                    let texts: Vec<_> = remaining.iter().map(|a| a.text.as_str()).collect();
                    let text = texts.join(", ");
                    if first.has_source() && last.has_source() && first.span.file == last.span.file
                    {
                        Argument::at(text, first.span.to(last.span))
                    } else {
                        Argument::bare(text)
                    }
                }
            };
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use ir::Sources;

    use crate::ast::{Class, Statement};
    use crate::config::Text;

    fn bind(parameters: &str, arguments: &str) -> Result<Vec<String>, String> {
        let mut sources = Sources::new();
        let text = format!("elementclass X {{ {parameters} | }}");
        let file = sources.add("test.click", text);
        let (file, _) = crate::parse(&mut sources, file);
        let Statement::ElementClass(class) = &file.statements[0] else { unreachable!() };
        let Class::Compound(compound) = &class.class else { unreachable!() };
        let arguments = Text::bare(arguments).arguments();
        let bound = compound.bodies[0].bind(&arguments);
        bound.map(|values| values.into_iter().map(|v| v.text).collect()).map_err(|e| {
            use super::BindError::*;
            match e {
                Missing(parameter) => format!("missing {}", parameter.variable.text),
                UnknownKeyword(argument) => format!("unknown {}", argument.text),
                TooMany(argument) => format!("too many {}", argument.text),
            }
        })
    }

    #[test]
    fn positional_arguments_must_be_as_many_as_the_parameters() {
        assert_eq!(bind("", ""), Ok(vec![]));
        assert_eq!(bind("$a, $b", "1, K 2"), Ok(vec!["1".into(), "K 2".into()]));
        assert_eq!(bind("$a, $b", "1"), Err("missing b".into()));
        assert_eq!(bind("$a", "1, K 2"), Err("too many K 2".into()));
    }

    #[test]
    fn keywords_come_in_any_order_or_not_at_all() {
        let ok = |values: [&str; 3]| Ok(values.map(str::to_owned).to_vec());
        let parameters = "$a, SRC $s, DST $d";
        assert_eq!(bind(parameters, "1, DST x y, SRC z"), ok(["1", "z", "x y"]));
        assert_eq!(bind(parameters, "1, SRC p, SRC q"), ok(["1", "q", ""]));
        assert_eq!(bind(parameters, "1, FOO p"), Err("unknown FOO p".into()));
        assert_eq!(bind(parameters, "1, 2"), Err("too many 2".into()));
    }

    #[test]
    fn the_rest_is_joined() {
        let ok = |values: [&str; 3]| Ok(values.map(str::to_owned).to_vec());
        let parameters = "$a, K $k, __REST__ $r";
        assert_eq!(bind(parameters, "1, 2, K 3, L 4"), ok(["1", "3", "2, L 4"]));
        assert_eq!(bind(parameters, "1, __REST__ 5"), ok(["1", "", "__REST__ 5"]));
        assert_eq!(bind(parameters, "1"), ok(["1", "", ""]));
    }
}
