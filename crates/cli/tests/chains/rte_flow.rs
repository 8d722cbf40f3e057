//! Rules of cards: mistakes in them are found, and testpmd reads what is written.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use codegen::File;
use compiler::partition::{Compiled, NotCompiled, Site, SitePort, Trust, Wires, compile};
use compiler::prove::Verdict;
use ir::{Graph, Model, NodeId, Span};
use serde_json::{Value, json};

use crate::programs::chain;

const CHAINS: &[&str] = &[
    "FromDevice(lan) -> c :: Classifier(12/0800, 12/0806, -); c[1] -> Queue -> ToDevice(arp); c[2] -> Discard;
     c[0] -> Strip(14) -> CheckIPHeader
       -> f :: IPFilter(deny src net 10.9.0.0/16, allow tcp dst port 80, allow udp dst port 53, deny all)
       -> rt :: RadixIPLookup(10.0.0.0/8 0, 10.1.0.0/16 1, 20.0.0.0/8 1);
     rt[0] -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:1:1, 2:0:0:0:1:2) -> Queue -> ToDevice(wan);
     rt[1] -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:1:1, 2:0:0:0:1:3) -> Queue -> ToDevice(dmz);",
    "FromDevice(lan) -> c :: Classifier(12/8100, 12/0800, -); c[2] -> Discard;
     c[0] -> VLANDecap -> EtherRewrite(2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> ToDevice(wan);
     c[1] -> Strip(14) -> CheckIPHeader -> GetIPAddress(16)
       -> rt :: RadixIPLookup(10.0.0.0/8 0, 10.1.0.0/16 1, 20.0.0.0/8 1);
     rt[0] -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:1:1, 2:0:0:0:1:2) -> Queue -> ToDevice(wan);
     rt[1] -> DecIPTTL -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:1:1, 2:0:0:0:1:3) -> Queue -> ToDevice(dmz);",
    "FromDevice(lan) -> c :: Classifier(12/0800, -); c[1] -> Queue -> ToDevice(wan);
     c[0] -> MarkIPHeader(14) -> s :: IPClassifier(tcp dst port 80, udp dst port 53, tcp dst port 443, -);
     s[0] -> Queue -> ToDevice(web); s[1] -> Queue -> ToDevice(dns); s[2] -> Queue -> ToDevice(tls); s[3] -> Discard;",
];

const CARDS: [&str; 4] = ["rte_flow", "rte_flow-ixgbe", "rte_flow-i40e", "rte_flow-mlx5"];

/// A chain from a text.
fn of_text(text: &str) -> (Graph, Vec<Model>) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rte_flow");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("chain.click");
    fs::write(&path, text).unwrap();
    let (chain, models) = chain(&path);
    (chain.graph, models)
}

fn target_of(name: &str) -> &'static dyn codegen::Target {
    codegen::target(name).unwrap()
}

/// Compiles a chain for a card whose ports have numbers from 0 on.
fn compiled(
    graph: &Graph,
    models: &[Model],
    target: &str,
    trust: &[Trust],
    files: Option<Vec<File>>,
) -> Result<Compiled, NotCompiled> {
    let wires = Wires::of(graph, |_| true);
    let names = wires.names().into_iter().zip(0..);
    let port = |(name, number): (&str, u32)| {
        (name.to_string(), SitePort { number, trust: trust.to_vec(), from: None })
    };
    let site = Site { ports: names.map(port).collect(), cores: 99, ..Site::default() };
    let origin =
        |node: NodeId, _: Option<Span>| format!("{} (chain.click)", graph.nodes[node].name);
    compile(graph, models, &wires, target_of(target), &site, &origin, files)
}

fn text_of(files: &[File], name: &str) -> String {
    let file = files.iter().find(|file| file.name == name).unwrap();
    String::from_utf8(file.contents.clone()).unwrap()
}

/// Commands as JSON.
fn as_json(commands: &str) -> String {
    let rule = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let behind = |word: &str| {
            let attributes = words.iter().take_while(|word| **word != "pattern");
            let at = attributes.into_iter().position(|other| *other == word);
            at.map_or(0, |at| words[at + 1].parse::<u64>().unwrap())
        };
        let part = |from: &str, to: &str| -> String {
            let text = line.split_once(from).unwrap().1;
            text.split_once(to).map_or(text, |of| of.0).to_string()
        };
        let items = part(" pattern ", " actions ");
        let items = items.split('/').map(str::trim).filter(|item| *item != "end").map(|item| {
            let mut words = item.split_whitespace();
            let mut one = json!({ "type": words.next().unwrap() });
            let rest: Vec<&str> = words.collect();
            for field in rest.chunks(3) {
                one[field[1]][field[0]] = field[2].into();
            }
            one
        });
        let acts = part(" actions ", " \n");
        let acts = acts.split('/').map(str::trim).filter(|act| *act != "end").map(|act| {
            let words: Vec<&str> = act.split_whitespace().collect();
            match words[..] {
                [act, name, value] => json!({ "type": act, "conf": { name: value } }),
                _ => json!({ "type": act }),
            }
        });
        json!({
            "port": words[2].parse::<u64>().unwrap(),
            "group": behind("group"), "priority": behind("priority"), "ingress": true,
            "pattern": items.collect::<Vec<Value>>(), "actions": acts.collect::<Vec<Value>>(),
        })
    };
    let rules = commands.lines().filter(|line| !line.starts_with('#'));
    json!({ "rules": rules.map(rule).collect::<Vec<_>>() }).to_string()
}

fn files_of(commands: &str) -> Vec<File> {
    let file = |name: &str, text: String| File { name: name.into(), contents: text.into_bytes() };
    vec![file("flows.txt", commands.into()), file("flows.json", as_json(commands))]
}

/// A mistake: what it is called, and the line with it; nothing where the line has no place for it.
type Mistake = (&'static str, fn(&[&str], usize) -> Option<String>);

/// The word behind some words, changed.
fn change(line: &str, before: &str, how: impl Fn(&str) -> Option<String>) -> Option<String> {
    let from = line.find(before)? + before.len();
    let end = line[from..].find(' ').map_or(line.len(), |end| from + end);
    Some(format!("{}{}{}", &line[..from], how(&line[from..end])?, &line[end..]))
}

fn number(text: &str, how: impl Fn(u64) -> Option<u64>) -> Option<String> {
    let value = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => text.parse().ok()?,
    };
    Some(how(value)?.to_string())
}

const MISTAKES: &[Mistake] = &[
    ("a rule is lost", |_, _| Some(String::new())),
    ("a priority is off by one, later", |lines, at| {
        change(lines[at], " priority ", |p| number(p, |p| Some(p + 1)))
    }),
    ("a priority is off by one, earlier", |lines, at| {
        change(lines[at], " priority ", |p| number(p, |p| p.checked_sub(1)))
    }),
    ("a mask is a bit short", |lines, at| {
        let mask = change(lines[at], " dst mask 255.", |rest| {
            let all: std::net::Ipv4Addr = format!("255.{rest}").parse().ok()?;
            let less = std::net::Ipv4Addr::from_bits(all.to_bits() << 1);
            Some(less.to_string().strip_prefix("255.").unwrap_or("0.0.0").to_string())
        })?;
        change(&mask, " dst spec ", |spec| {
            let spec: std::net::Ipv4Addr = spec.parse().ok()?;
            let mask = lines[at].split_once(" dst mask ")?.1.split_once(' ')?.0;
            let mask: std::net::Ipv4Addr = mask.parse().ok()?;
            Some(std::net::Ipv4Addr::from_bits(spec.to_bits() & (mask.to_bits() << 1)).to_string())
        })
    }),
    ("bytes of an address are turned around", |lines, at| {
        let turned = |text: &str| {
            let address: std::net::Ipv4Addr = text.parse().ok()?;
            Some(std::net::Ipv4Addr::from_bits(address.to_bits().swap_bytes()).to_string())
        };
        change(&change(lines[at], " dst spec ", turned)?, " dst mask ", turned)
    }),
    ("bytes of a port are turned around", |lines, at| {
        let port = |text: &str| number(text, |p| Some(u16::try_from(p).ok()?.swap_bytes().into()));
        lines[at].contains(" dst mask 0xffff").then(|| change(lines[at], " dst spec ", port))?
    }),
    ("a mark is used twice", |lines, at| {
        change(lines[at], " mark id ", |mark| {
            let of =
                |line: &&str| Some(line.split_once(" mark id ")?.1.split_once(' ')?.0.to_string());
            lines.iter().filter_map(of).find(|other| other != mark)
        })
    }),
    ("a mark is nobody's", |lines, at| {
        change(lines[at], " mark id ", |mark| number(mark, |mark| Some(mark + 1000)))
    }),
    ("a counter is another's", |lines, at| {
        lines[at].contains(" drop ").then_some(())?;
        change(lines[at], " identifier ", |id| {
            let of = |line: &&str| {
                Some(line.split_once(" identifier ")?.1.split_once(' ')?.0.to_string())
            };
            lines.iter().filter_map(of).find(|other| other != id)
        })
    }),
    ("a group is another", |lines, at| {
        change(lines[at], " jump group ", |group| number(group, |group| Some(group + 1)))
    }),
    ("packets are dropped", |lines, at| {
        let (before, _) = lines[at].split_once(" queue index ")?;
        Some(format!("{} / drop / end", before.trim_end_matches([' ', '/'])))
    }),
    ("a queue is another", |lines, at| {
        change(lines[at], " queue index ", |queue| {
            number(queue, |queue| if queue > 1 { Some(queue - 1) } else { None })
        })
    }),
    ("time to live stays", |lines, at| Some(lines[at].replacen(" dec_ttl /", "", 1))),
    ("time to live is counted down twice", |lines, at| {
        Some(lines[at].replacen(" dec_ttl /", " dec_ttl / dec_ttl /", 1))
    }),
    ("an address is put in the other's place", |lines, at| {
        lines[at].contains("set_mac_src").then_some(())?;
        let line =
            lines[at].replace("set_mac_src", "set_mac_x").replace("set_mac_dst", "set_mac_src");
        Some(line.replace("set_mac_x", "set_mac_dst"))
    }),
    ("a tag is not taken off", |lines, at| Some(lines[at].replacen(" of_pop_vlan /", "", 1))),
    ("tags are taken for none", |lines, at| {
        change(lines[at], " has_vlan spec ", |tag| number(tag, |tag| Some(1 - tag)))
    }),
    ("tags are not looked at", |lines, at| {
        let line = lines[at].replacen(" has_vlan spec 0 has_vlan mask 0x1", "", 1);
        lines[at].contains("has_vlan spec 0").then_some(line)
    }),
    ("a rule takes all", |lines, at| {
        let (before, rest) = lines[at].split_once(" eth ")?;
        let (_, acts) = rest.split_once(" actions ")?;
        Some(format!("{before} eth / end actions {acts}"))
    }),
    ("a rule is there too many", |lines, at| {
        let (_, rest) = lines[at].split_once(" eth ")?;
        let (before, _) = lines[at].split_once("priority ")?;
        let drop =
            lines.iter().find(|line| line.ends_with(" drop / end"))?.split_once(" actions ")?.1;
        let pattern = rest.split_once(" actions ")?.0;
        Some(format!(
            "{before}priority 0 ingress pattern eth {pattern} actions {drop}\n{}",
            change(lines[at], " priority ", |p| number(p, |p| Some(p + 1)))?
        ))
    }),
];

#[test]
fn mistakes_in_rules_are_found() {
    let all = Trust::ALL.map(|of| of.1);
    let mut found: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut done = 0;
    for text in CHAINS {
        let (graph, models) = of_text(text);
        for (card, trust) in CARDS.iter().flat_map(|card| [(card, &[][..]), (card, &all[..])]) {
            let made = compiled(&graph, &models, card, trust, None).unwrap();
            assert!(made.parts.iter().all(|part| part.proof.holds()), "{card}: {text}");
            done += made.parts[0].offload.classes.iter().filter(|class| class.done).count();
            let commands = text_of(&made.files, "flows.txt");
            let lines: Vec<&str> = commands.lines().filter(|line| !line.starts_with('#')).collect();
            let again = files_of(&lines.join("\n"));
            assert!(compiled(&graph, &models, card, trust, Some(again)).is_ok(), "{commands}");
            for (name, mistake) in MISTAKES {
                for at in 0..lines.len() {
                    let Some(line) = mistake(&lines, at).filter(|line| line != lines[at]) else {
                        continue;
                    };
                    let mut wrong = lines.clone();
                    wrong[at] = &line;
                    let wrong: Vec<&str> = wrong.into_iter().filter(|l| !l.is_empty()).collect();
                    let files = files_of(&wrong.join("\n"));
                    let counts = found.entry(name).or_default();
                    let Ok(read) = compiled(&graph, &models, card, trust, Some(files)) else {
                        counts.0 += 1;
                        continue;
                    };
                    for part in &read.parts {
                        match &part.proof.together.verdict {
                            // What is not proven is not written either.
                            Verdict::Different(_) | Verdict::Unproven(_) => counts.0 += 1,
                            // Others make up for it, or cores decide what no rule takes.
                            Verdict::Equal => counts.1 += 1,
                        }
                    }
                }
            }
        }
    }
    println!("{found:#?}");
    assert!(done > 8, "{done} classes end on cards");
    for (name, _) in MISTAKES {
        assert!(found.get(name).is_some_and(|counts| counts.0 > 0), "{name}: nothing was found");
    }
}

#[test]
fn json_says_what_commands_say() {
    let (graph, models) = of_text(CHAINS[0]);
    let made = compiled(&graph, &models, "rte_flow-mlx5", &[], None).unwrap();
    let json = text_of(&made.files, "flows.json");
    for (from, to) in [
        ("\"10.9.0.0\"", "\"10.8.0.0\""),
        ("\"priority\":1", "\"priority\":2"),
        ("{\"type\":\"drop\"}", "{\"type\":\"dec_ttl\"}"),
        ("\"ingress\":true", "\"ingress\":false"),
        ("\"mask\"", "\"last\""),
        ("]}", "]"),
    ] {
        let mut files = made.files.clone();
        files[1].contents = json.replacen(from, to, 1).into_bytes();
        let read = compiled(&graph, &models, "rte_flow-mlx5", &[], Some(files));
        let applies = json.contains(from);
        assert_eq!(applies, matches!(read, Err(NotCompiled::Unread(_))), "{from} {to}");
        assert!(applies || from.contains("drop"), "{from}");
    }
}

/// A process that does not outlive the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What testpmd says to commands, on ports that take no rules.
fn testpmd(ports: u32, commands: &str) -> String {
    let mut program = Command::new("dpdk-testpmd");
    program.args(["--no-huge", "--no-pci", "--no-shconf", "-m", "256", "--lcores", "(0,1)@0"]);
    program.args((0..ports).map(|port| format!("--vdev=net_null{port}")));
    program.args(["--", "-i", "--total-num-mbufs=2048"]);
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = program.spawn();
    let mut child = Ended(started.expect("dpdk-testpmd is there (Debian: dpdk-dev)"));
    let mut input = child.0.stdin.take().unwrap();
    let commands = format!("{commands}\nquit\n");
    // It may say more than a pipe holds before it has read all.
    let feeding = std::thread::spawn(move || input.write_all(commands.as_bytes()));
    let (out, err) = (child.0.stdout.take().unwrap(), child.0.stderr.take().unwrap());
    let reading = std::thread::spawn(move || std::io::read_to_string(err).unwrap_or_default());
    let said = std::io::read_to_string(out).unwrap();
    let (fed, said) = (feeding.join().unwrap(), said + &reading.join().unwrap());
    fed.unwrap_or_else(|why| panic!("{why}: {said}"));
    said
}

/// A driver without rules says so; a command that testpmd does not understand never comes so far.
const PARSED: &str = "Function not implemented: Function not implemented";
const REFUSED: &str = "Bad arguments";

#[test]
fn testpmd_reads_what_is_written() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut chains: Vec<(Graph, Vec<Model>)> = CHAINS.iter().map(|text| of_text(text)).collect();
    for entry in fs::read_dir(root.join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "click") {
            let (chain, models) = chain(&path);
            chains.push((chain.graph, models));
        }
    }
    let (mut commands, mut ports) = (String::new(), 0);
    for (number, (graph, models)) in chains.iter().enumerate() {
        // What two of the cards are given has the form of what others are.
        let few = number >= CHAINS.len();
        for card in if few { &CARDS[2..] } else { &CARDS[..] } {
            let trust = Trust::ALL.map(|of| of.1);
            match compiled(graph, models, card, &trust, None) {
                Ok(made) => {
                    ports = ports.max(Wires::of(graph, |_| true).names().len() as u32);
                    commands += &text_of(&made.files, "flows.txt");
                }
                Err(NotCompiled::NoWires) => {}
                Err(why) => panic!("{card}: {why}"),
            }
        }
    }
    let count = commands.lines().filter(|line| !line.starts_with('#')).count();
    assert!(count > 100 && commands.contains("dec_ttl"), "{count} commands");
    let said = testpmd(ports, &commands);
    let refused = said.lines().zip(said.lines().skip(1)).find(|(_, next)| next.contains(REFUSED));
    assert!(refused.is_none(), "{refused:?}");
    assert_eq!(said.matches(PARSED).count(), count, "{said:.3000}");
    // Lines that are not right.
    let line = commands.lines().find(|line| line.contains(" tcp dst spec ")).unwrap();
    let wrong = [
        line.replacen(" tcp ", " tcpp ", 1),
        line.replacen(" dst spec ", " dest spec ", 1),
        line.replacen(" / end", "", 1),
        line.replacen(" tcp dst spec ", " tcp dst spec 70000", 1),
        line.replacen(" ingress ", " inwards ", 1),
    ];
    let said = testpmd(ports, &wrong.join("\n"));
    assert_eq!(said.matches(PARSED).count(), 0, "{said}");
    assert!(said.matches(REFUSED).count() >= wrong.len(), "{said}");
}
