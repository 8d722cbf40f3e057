//! Network functions: the outermost compounds of a chain.

use ir::NodeId;

/// Which network function each element belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Functions {
    names: Vec<String>,
    /// By element.
    of: Vec<Option<usize>>,
}

impl Functions {
    /// For elements of these names; a network function's are called `function/…`.
    pub(crate) fn new<'n>(elements: impl Iterator<Item = &'n str>) -> Self {
        let mut names: Vec<String> = Vec::new();
        let function = |name: &'n str| {
            let (function, _) = name.split_once('/')?;
            let known = names.iter().position(|known| known == function);
            Some(known.unwrap_or_else(|| {
                names.push(function.to_string());
                names.len() - 1
            }))
        };
        let of = elements.map(function).collect();
        Self { names, of }
    }

    /// Their names, in the order of the chain.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of an element's.
    pub(crate) fn of(&self, element: NodeId) -> Option<usize> {
        self.of.get(element).copied().flatten()
    }

    /// The number of the one that elements belong to, if all do.
    pub(crate) fn of_all(&self, elements: impl Iterator<Item = NodeId>) -> Option<usize> {
        let mut all = elements.map(|element| self.of(element));
        let first = all.next()??;
        all.all(|function| function == Some(first)).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_where_all_elements_are_theirs() {
        let functions = Functions::new(["a", "f/x", "f/g/y", "h/z"].into_iter());
        let of = |nodes: &[usize]| functions.of_all(nodes.iter().copied());
        assert_eq!(
            [of(&[1, 2]), of(&[3]), of(&[1, 3]), of(&[0]), of(&[0, 1])],
            [Some(0), Some(1), None, None, None]
        );
    }
}
