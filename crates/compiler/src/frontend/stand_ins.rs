//! Devices in the place of elements that stand for them: a chain that runs with stand-ins for what surrounds it runs
//! on devices of the same names without being rewritten. What a device is as an element is told from above.

use click::ast::{Declaration, File, Node, Statement};
use click::config::Argument;
use ir::Sources;

/// A device that the elements of a chain may be for.
#[derive(Clone, Debug)]
pub struct Device {
    /// Its name: the first argument of the elements that are for it.
    pub name: String,
    /// A class as the language writes it, in braces: an element to which what is to be sent comes, and which what is
    /// received leaves.
    pub class: String,
}

/// Those of some devices that no element with these arguments is for.
pub(crate) fn unused<'a>(devices: &'a [Device], arguments: &[Vec<Argument>]) -> Vec<&'a Device> {
    let is_for = |device: &Device| {
        arguments.iter().any(|all| all.first().is_some_and(|first| first.text == device.name))
    };
    devices.iter().filter(|device| !is_for(device)).collect()
}

/// Has devices replace the elements of their names that are declared outside of compounds; whether there is
/// any.
pub(crate) fn replace(file: &mut File, devices: &[&Device], sources: &mut Sources) -> bool {
    let mut replaced = false;
    for Device { name: device, class } in devices {
        let id = sources.add(format!("device {device}"), format!("{device} :: {class};"));
        let (parsed, _) = click::parse(sources, id);
        let Some(Statement::Declaration(pair)) = parsed.statements.into_iter().next() else {
            continue;
        };
        let mut more = Vec::new();
        for statement in &mut file.statements {
            match statement {
                Statement::Declaration(declared) => {
                    let Some(at) = declared.names.iter().position(|name| name.text == *device)
                    else {
                        continue;
                    };
                    let name = declared.names.remove(at);
                    more.push(Statement::Declaration(Declaration {
                        names: vec![name],
                        ..pair.clone()
                    }));
                }
                Statement::Chain(chain) => {
                    for endpoint in chain.stages.iter_mut().flatten() {
                        if let Node::Declaration { name, class, config } = &mut endpoint.node
                            && name.text == *device
                        {
                            (*class, *config) = (pair.class.clone(), None);
                            replaced = true;
                        }
                    }
                }
                _ => {}
            }
        }
        replaced |= !more.is_empty();
        // Elements are declared before they are used.
        file.statements.retain(|s| !matches!(s, Statement::Declaration(d) if d.names.is_empty()));
        file.statements.splice(0..0, more);
    }
    replaced
}
