//! Variables: parameters and definitions, in the scopes of compounds and their instances.

use std::collections::HashMap;

use click::ast::{Config, Definition};
use click::config::{Argument, Text, Variable};

/// Variables whose values name one another deeper than this stay as they are written.
const MAX_INDIRECTION: usize = 10;

/// Index of a scope.
pub(crate) type ScopeId = usize;

/// All scopes of variables of a chain.
pub(crate) struct Variables<'a> {
    scopes: Vec<Scope<'a>>,
    /// Bytes of text that expansion may still yield.
    pub(crate) budget: usize,
}

struct Scope<'a> {
    parent: Option<ScopeId>,
    /// How many compounds the text of the scope stands in.
    depth: usize,
    values: HashMap<&'a str, Value<'a>>,
}

#[derive(Clone)]
enum Value<'a> {
    Written(&'a Argument),
    /// Its expansion is in progress.
    Expanding,
    Expanded(Argument),
}

impl<'a> Variables<'a> {
    /// No scopes yet; expansion yields at most so many bytes.
    pub(crate) fn new(budget: usize) -> Self {
        Self { scopes: Vec::new(), budget }
    }

    /// Opens a scope. Later `parameters` override `definitions` of the same name. A definition may
    /// use the parameters, the definitions around it and what outer scopes define.
    pub(crate) fn scope(
        &mut self,
        parent: Option<ScopeId>,
        depth: usize,
        definitions: &[&'a Definition],
        parameters: impl IntoIterator<Item = (&'a str, Argument)>,
    ) -> ScopeId {
        let written = definitions
            .iter()
            .map(|d| (d.variable.text.as_str(), Value::Written(&d.value)))
            .collect();
        let id = self.scopes.len();
        self.scopes.push(Scope { parent, depth, values: written });
        for (name, value) in parameters {
            self.scopes[id].values.insert(name, Value::Expanded(value));
        }
        for definition in definitions {
            self.lookup(id, &definition.variable.text, 0);
        }
        id
    }

    /// The innermost scope around `scope` whose text stands in fewer than `depth` compounds.
    pub(crate) fn enclosing(&self, scope: ScopeId, depth: usize) -> ScopeId {
        let mut at = scope;
        while self.scopes[at].depth >= depth {
            match self.scopes[at].parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        at
    }

    /// The configuration with the variables replaced that are known.
    pub(crate) fn expand<'c>(&mut self, scope: ScopeId, config: &'c Config) -> Text<'c> {
        self.budget = self.budget.saturating_sub(config.text.len());
        config.expand(&mut |variable| match variable {
            Variable::Name(name) => self.lookup(scope, name, 0),
            Variable::Call(_) => None,
        })
    }

    fn lookup(&mut self, scope: ScopeId, name: &str, indirection: usize) -> Option<Argument> {
        let mut at = Some(scope);
        while let Some(id) = at {
            match self.scopes[id].values.get(name) {
                Some(Value::Expanded(value)) => {
                    // Quoting may double the length.
                    self.budget = self.budget.checked_sub(2 * value.text.len())?;
                    return Some(value.clone());
                }
                Some(&Value::Written(value)) => {
                    if indirection > MAX_INDIRECTION {
                        return None;
                    }
                    self.set(id, name, Value::Expanding);
                    let expanded = value.expand(&mut |variable| match variable {
                        Variable::Name(name) => self.lookup(id, name, indirection + 1),
                        Variable::Call(_) => None,
                    });
                    self.set(id, name, Value::Expanded(expanded.clone()));
                    return Some(expanded);
                }
                // A definition that uses its own name means an outer one.
                Some(Value::Expanding) | None => at = self.scopes[id].parent,
            }
        }
        None
    }

    fn set(&mut self, scope: ScopeId, name: &str, value: Value<'a>) {
        if let Some(slot) = self.scopes[scope].values.get_mut(name) {
            *slot = value;
        }
    }
}
