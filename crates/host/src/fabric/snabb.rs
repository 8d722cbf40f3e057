//! `snabb`: Snabb's learning bridge between raw sockets, as a program of its Lua.

use std::fmt::Write as _;
use std::path::Path;

use super::{Fabric, NO_CHECKSUMS, Plan, Step, near_end, version_of};
use crate::Failure;

pub(super) struct Snabb;

const PROGRAM: &str = "snabb";

impl Fabric for Snabb {
    fn name(&self) -> String {
        "snabb".into()
    }

    fn summary(&self) -> &'static str {
        "Snabb's learning bridge, over raw sockets"
    }

    fn has_processes(&self) -> bool {
        true
    }

    fn is_tested(&self) -> bool {
        false
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        Some(NO_CHECKSUMS)
    }

    fn look(&self) -> Result<String, String> {
        version_of(
            PROGRAM,
            &["--version"],
            "Snabb",
            "built from its source, github.com/snabbco/snabb",
        )
    }

    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        let names: Vec<String> = (0..ports).map(near_end).collect();
        let list: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
        let mut text = format!(
            "local raw = require(\"apps.socket.raw\")\n\
             local learning = require(\"apps.bridge.learning\")\n\
             local c = config.new()\n\
             config.app(c, \"bridge\", learning.bridge, {{ ports = {{ {} }} }})\n",
            list.join(", ")
        );
        for name in &names {
            let _ = writeln!(
                text,
                "config.app(c, \"{name}_nic\", raw.RawSocket, \"{name}\")\n\
                 config.link(c, \"{name}_nic.tx -> bridge.{name}\")\n\
                 config.link(c, \"bridge.{name} -> {name}_nic.rx\")"
            );
        }
        text += "engine.configure(c)\nengine.main()\n";
        let script = at.folder.join("switch.lua");
        let mut snabb = at.namespace.command(Path::new(PROGRAM));
        snabb.arg("snsh").arg(&script);
        Ok(vec![Step::Write(script, text), Step::Start(snabb)])
    }
}
