//! `xdp-redirect`: a learning switch of Catena's own eBPF. An XDP program on each port enters where a frame's sender is, and
//! redirects the frame by a map of devices: to the port of the address that it is for, or to all others.
//!
//! Programs run in the kernel's stack. In the driver of a veth pair they could only redirect to a port whose other end merges
//! frames or has an XDP program, too, and applications that capture frames have neither.

use codegen::ebpf::insn::{ALWAYS, BYTE, EQUAL, GREATER, HALF, NOT_EQUAL, WORD};
use codegen::ebpf::insn::{AsmLine, EXIT, assemble, call, copy, load_map, load_memory, set};
use codegen::ebpf::insn::{advance, and, store_memory, store_number};
use codegen::ebpf::{Code, Map, MapKind, Object};
use dataplane::io::{Links, Loaded, Rejected, XdpMode};

use super::{Fabric, Joins, NO_CHECKSUMS, Plan, Site, Step, near_end};
use crate::{Failure, Process};

pub(super) struct XdpRedirect;

/// The maps: ports by address, and devices by port.
const ADDRESSES: usize = 0;
const PORTS: usize = 1;
const PORTS_NAME: &str = "ports";
/// Addresses that are learnt. Frames for others go to all ports.
const MOST: u32 = 4096;

/// Functions of the kernel.
const LOOKUP: i32 = 1;
const UPDATE: i32 = 2;
const REDIRECT: i32 = 51;
/// A redirection goes to all devices of the map but the one that the frame came from.
const ALL_OTHERS: i32 = 1 << 3 | 1 << 4;
const DROP: i32 = 1;

/// The bytes of an Ethernet header, and where it has the source.
const ETHERNET: i32 = 14;
const SOURCE: i16 = 6;

/// The program of a port, and the maps that it loads.
fn program(port: usize, joins: Joins) -> Result<Code, Failure> {
    use AsmLine::{Do, If, Label};
    let own = port as i32;
    let mut lines: Vec<AsmLine> = Vec::new();
    let mut loads = Vec::new();
    // Where a map is loaded; no line before has two words or is no instruction but labels.
    let mut map = |lines: &mut Vec<AsmLine>, which: usize| {
        let labels = lines.iter().filter(|line| matches!(line, Label(_))).count();
        loads.push((lines.len() - labels, which));
        lines.extend(load_map(1, 0).map(Do));
    };
    let address = |lines: &mut Vec<AsmLine>, at: i16| {
        lines.extend([
            Do(load_memory(WORD, 1, 7, at)),
            Do(load_memory(HALF, 2, 7, at + 4)),
            Do(store_memory(WORD, 10, -8, 1)),
            Do(store_memory(HALF, 10, -4, 2)),
            Do(store_number(HALF, 10, -2, 0)),
            Do(copy(2, 10)),
            Do(advance(2, -8)),
        ]);
    };
    match joins {
        Joins::Pairs => {
            map(&mut lines, PORTS);
            lines.extend([Do(set(2, own ^ 1)), Do(set(3, 0)), Do(call(REDIRECT)), Do(EXIT)]);
        }
        Joins::All => {
            lines.extend([
                Do(load_memory(WORD, 7, 1, 0)),
                Do(load_memory(WORD, 3, 1, 4)),
                Do(copy(4, 7)),
                Do(advance(4, ETHERNET)),
                If(GREATER, 4, 3, 0, "drop"),
                // Nobody sends from the address of a group.
                Do(load_memory(BYTE, 1, 7, SOURCE)),
                Do(and(1, 1)),
                If(NOT_EQUAL, 1, 0, 0, "drop"),
            ]);
            address(&mut lines, SOURCE);
            map(&mut lines, ADDRESSES);
            lines.extend([
                Do(call(LOOKUP)),
                If(EQUAL, 0, 0, 0, "learn"),
                Do(load_memory(WORD, 1, 0, 0)),
                If(EQUAL, 1, 0, own, "forward"),
                Label("learn"),
                Do(store_number(WORD, 10, -12, own)),
                Do(copy(2, 10)),
                Do(advance(2, -8)),
                Do(copy(3, 10)),
                Do(advance(3, -12)),
                Do(set(4, 0)),
            ]);
            map(&mut lines, ADDRESSES);
            lines.extend([
                // Where there is no room it is not learnt.
                Do(call(UPDATE)),
                Label("forward"),
                Do(load_memory(BYTE, 1, 7, 0)),
                Do(and(1, 1)),
                If(NOT_EQUAL, 1, 0, 0, "flood"),
            ]);
            address(&mut lines, 0);
            map(&mut lines, ADDRESSES);
            lines.extend([
                Do(call(LOOKUP)),
                If(EQUAL, 0, 0, 0, "flood"),
                Do(load_memory(WORD, 2, 0, 0)),
                If(EQUAL, 2, 0, own, "drop"),
                Do(set(3, 0)),
                If(ALWAYS, 0, 0, 0, "redirect"),
                Label("flood"),
                Do(set(2, 0)),
                Do(set(3, ALL_OTHERS)),
                Label("redirect"),
            ]);
            map(&mut lines, PORTS);
            lines.extend([Do(call(REDIRECT)), Do(EXIT), Label("drop"), Do(set(0, DROP)), Do(EXIT)]);
        }
    }
    let words = assemble(&lines).map_err(|why| Failure::Impossible(why.to_string()))?;
    Ok(Code { name: format!("port{port}"), section: "xdp".into(), words, maps: loads })
}

/// The programs of all ports, and their maps.
fn object(ports: usize, joins: Joins) -> Result<Object, Failure> {
    let map = |name: &str, kind, key, room| Map {
        name: name.into(),
        kind,
        key,
        value: 4,
        room,
        flags: 0,
        entries: Vec::new(),
    };
    let maps = vec![
        map("addresses", MapKind::Hash, 8, MOST),
        map(PORTS_NAME, MapKind::DevMap, 4, ports as u32),
    ];
    let programs = (0..ports).map(|port| program(port, joins)).collect::<Result<_, _>>()?;
    Ok(Object { maps, programs })
}

fn refused(why: Rejected) -> Failure {
    Failure::Impossible(format!("xdp-redirect: {why}"))
}

impl Fabric for XdpRedirect {
    fn name(&self) -> String {
        "xdp-redirect".into()
    }

    fn summary(&self) -> &'static str {
        "a learning switch of eBPF programs, which redirect frames by a map of devices (XDP in the kernel's stack)"
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        Some(NO_CHECKSUMS)
    }

    fn look(&self) -> Result<String, String> {
        let object = object(2, Joins::All).map_err(|why| why.to_string())?;
        match Loaded::new(&object) {
            Ok(_) => super::kernel_makes("link add name a type veth peer name b", "CONFIG_VETH"),
            Err(why) if why.error.kind() == std::io::ErrorKind::PermissionDenied => {
                Err("root".into())
            }
            Err(why) => Err(format!("a kernel with BPF system calls and XDP: {why}")),
        }
    }

    fn steps(&self, _: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        let what = format!("attaches its XDP programs to p0 to p{}", ports.saturating_sub(1));
        Ok(vec![Step::Own(what)])
    }

    fn start(&self, at: &Site<'_>, ports: usize) -> Result<Vec<Process>, Failure> {
        let object = object(ports, at.joins)?;
        at.namespace.run(|| {
            let of = |port: usize| {
                let name = near_end(port);
                move |why| Failure::Impossible(format!("xdp-redirect at {name}: {why}"))
            };
            // Programs stay with the ports that they are attached to, and maps with programs.
            let loaded = Loaded::new(&object).map_err(refused)?;
            let mut links = Links::new().map_err(of(0))?;
            for port in 0..ports {
                let there = links.get(&near_end(port)).map_err(of(port))?;
                let there = there.ok_or_else(|| of(port)(std::io::ErrorKind::NotFound.into()))?;
                let (number, index) = ((port as u32).to_ne_bytes(), there.index.to_ne_bytes());
                loaded.set(PORTS_NAME, &number, &index).map_err(of(port))?;
                links
                    .attach(there.index, XdpMode::Generic, (&loaded, port), None)
                    .map_err(of(port))?;
            }
            Ok(Vec::new())
        })
    }
}
