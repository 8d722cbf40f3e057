//! `VAR=VALUE` on command lines.

/// The name and value that an argument gives to a variable of the configuration, as Click has it.
pub(crate) fn assignment(argument: &str) -> Option<(String, String)> {
    let (name, value) = argument.split_once('=')?;
    let starts = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let is_name = starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name.to_string(), value.to_string()))
}

/// Tells files from variables. A file whose name looks like an assignment can be written `./A=B`.
pub(crate) fn split(arguments: &[String]) -> (Vec<String>, Vec<(String, String)>) {
    let (mut files, mut variables) = (Vec::new(), Vec::new());
    for argument in arguments {
        match assignment(argument) {
            Some(variable) => variables.push(variable),
            None => files.push(argument.clone()),
        }
    }
    (files, variables)
}

/// The variables that arguments behind a file give values to.
///
/// # Errors
/// The first argument that is none.
pub(crate) fn all(arguments: &[String]) -> Result<Vec<(String, String)>, String> {
    arguments
        .iter()
        .map(|a| assignment(a).ok_or_else(|| format!("'{a}' is not of the form VAR=VALUE")))
        .collect()
}
