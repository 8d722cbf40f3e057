//! Lists of rules and routes of a chain's elements, which are cut through the elements' handlers to see what their length costs.

use dataplane::Router;
use elements::rule_packets;
use fastrand::Rng;

/// An element's list.
pub(crate) struct RuleList {
    element: String,
    kind: Kind,
    /// In order, as the element's handler lists them.
    entries: Vec<String>,
}

/// What an element's handlers can do.
#[derive(Clone, Copy)]
enum Kind {
    /// IPFilter's: `rules`, `rule_remove` and `config`.
    Rules,
    /// Those of routing tables: `table` and `ctrl`.
    Routes,
}

/// Entries of a list that is cut, at the least: an eighth of it is a list, too.
const LEAST: usize = 16;

impl RuleList {
    /// The longest list of some elements, if one is long enough.
    pub(crate) fn longest_of<'a>(
        elements: impl Iterator<Item = &'a String>,
        router: &mut Router,
    ) -> Option<Self> {
        let lists = elements.filter_map(|element| Self::of(element, router));
        lists.max_by_key(|list| list.entries.len()).filter(|list| list.entries.len() >= LEAST)
    }

    fn of(element: &str, router: &mut Router) -> Option<Self> {
        let has = |handler: &str, write| router.has_handler(&format!("{element}.{handler}"), write);
        let kind = match () {
            () if has("rule_remove", true) && has("config", true) => Kind::Rules,
            () if has("table", false) && has("ctrl", true) => Kind::Routes,
            () => return None,
        };
        let text = match kind {
            Kind::Rules => router.read_handler(&format!("{element}.rules")),
            Kind::Routes => router.read_handler(&format!("{element}.table")),
        };
        let entry = |line: &str| {
            let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            match kind {
                // Behind its number.
                Kind::Rules => rest.to_string(),
                // The network.
                Kind::Routes => first.to_string(),
            }
        };
        let entries = text.ok()?.lines().map(entry).collect();
        Some(Self { element: element.into(), kind, entries })
    }

    /// How many entries it has.
    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    /// Whether an entry stays if so many do: they are spread evenly, and the last one stays.
    fn stays(&self, entry: usize, count: usize) -> bool {
        let before = |entries: usize| entries * count / self.count();
        before(entry + 1) > before(entry)
    }

    /// Cuts the list of a chain that was loaded anew.
    ///
    /// # Errors
    /// The element's.
    pub(crate) fn cut(&self, count: usize, router: &mut Router) -> Result<(), String> {
        let handler = |name: &str| format!("{}.{name}", self.element);
        let removed = (0..self.count()).filter(|&entry| !self.stays(entry, count));
        match self.kind {
            Kind::Rules => {
                for entry in removed.rev() {
                    let number = (entry + 1).to_string();
                    router.write_handler(&handler("rule_remove"), &number)?;
                }
                // What is left is looked up as if there had been no more.
                let config = router.read_handler(&handler("config"))?;
                router.write_handler(&handler("config"), &config)
            }
            Kind::Routes => {
                let lines: String =
                    removed.map(|entry| format!("remove {}\n", self.entries[entry])).collect();
                router.write_handler(&handler("ctrl"), &lines)
            }
        }
    }

    /// The list of so many entries as rules of IPFilter, of which each decides some packets; nothing if none can be drawn.
    pub(crate) fn rules(&self, count: usize) -> Option<String> {
        let mut left: Vec<&str> = (0..self.count())
            .filter(|&entry| self.stays(entry, count))
            .map(|entry| &*self.entries[entry])
            .collect();
        let text: String = match self.kind {
            Kind::Rules => left.iter().map(|rule| format!("{rule}\n")).collect(),
            Kind::Routes => {
                // Of several, the longest prefix decides.
                let length = |network: &&str| network.rsplit_once('/')?.1.parse::<u8>().ok();
                left.sort_by_key(|network| std::cmp::Reverse(length(network)));
                left.iter().map(|network| format!("allow dst net {network}\n")).collect()
            }
        };
        rule_packets::draw(&text, 1, &mut Rng::with_seed(1)).is_ok().then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use dataplane::clock::RealClock;
    use dataplane::io::{Binding, Bindings};
    use dataplane::{ProgramUse, Transcript};
    use elements::configure::WorkerShare;
    use engine::Disk;
    use engine::session::{self, Path, Setup};
    use ir::Sources;

    use super::*;

    fn router(chain: &str) -> Router {
        let mut sources = Sources::new();
        let file = sources.add("chain", chain);
        let mut devices = Bindings::default();
        devices.inputs.insert("in".into(), Binding::source("gen:count=9").unwrap());
        let setup = Setup {
            part: WorkerShare::default(),
            files: &mut Disk::default(),
            devices: &mut devices,
            clock: Box::new(RealClock::new()),
            listener: Box::new(Transcript::default()),
            seed: 0,
            path: Path::Native,
            background: None,
            program_use: ProgramUse::Always,
            cut: None,
            unproven: false,
        };
        let mut found = Vec::new();
        let started = session::start(&mut sources, file, Vec::new(), setup, &mut found);
        started.unwrap_or_else(|| panic!("{found:?}")).1
    }

    fn longest(chain: &str, elements: &[&str]) -> (Option<RuleList>, Router) {
        let mut router = router(chain);
        let elements: Vec<String> = elements.iter().map(|name| name.to_string()).collect();
        (RuleList::longest_of(elements.iter(), &mut router), router)
    }

    #[test]
    fn rules_are_cut_evenly_and_the_last_stays() {
        let rules: Vec<String> = (1..20).map(|n| format!("deny src host 10.0.0.{n}")).collect();
        let list = format!("{}, allow all", rules.join(", "));
        let chain = format!(
            "elementclass Firewall {{ input -> short :: IPFilter(allow all) -> acl :: IPFilter({list}) -> output }}
             Idle -> CheckIPHeader -> fw :: Firewall -> Discard;"
        );
        let (list, mut router) = longest(&chain, &["fw/short", "fw/acl"]);
        let list = list.unwrap();
        assert_eq!(list.count(), 20);
        list.cut(5, &mut router).unwrap();
        let left = router.read_handler("fw/acl.config").unwrap();
        assert_eq!(
            left,
            "deny src host 10.0.0.4, deny src host 10.0.0.8, deny src host 10.0.0.12, \
             deny src host 10.0.0.16, allow all"
        );
        assert_eq!(list.rules(5).unwrap().lines().collect::<Vec<_>>().join(", "), left);
        let short = "Idle -> CheckIPHeader -> fw :: IPFilter(deny src host 10.0.0.1, allow all) -> Discard;";
        assert!(longest(short, &["fw"]).0.is_none());
    }

    #[test]
    fn routes_are_cut_and_drawn_longest_first() {
        let routes: Vec<String> = (1..20).map(|n| format!("10.{n}.0.0/16 0")).collect();
        let table = format!("0.0.0.0/0 0, {}", routes.join(", "));
        let chain = format!("Idle -> table :: LinearIPLookup({table}) -> Discard;");
        let (list, mut router) = longest(&chain, &["table"]);
        let list = list.unwrap();
        list.cut(10, &mut router).unwrap();
        assert_eq!(router.read_handler("table.table").unwrap().lines().count(), 10);
        let rules = list.rules(20).unwrap();
        assert_eq!(rules.lines().count(), 20);
        assert_eq!(rules.lines().last(), Some("allow dst net 0.0.0.0/0"));
        // What has no handlers for it is not cut.
        let fixed = chain.replace("LinearIPLookup", "StaticIPLookup");
        assert!(longest(&fixed, &["table"]).0.is_none());
    }
}
