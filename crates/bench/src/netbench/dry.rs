//! What a run would do, as lines of a shell: commands for a namespace at each port, a switch, and its applications.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use host::fabric::{self, Ends, INTERFACE, mac, shown};

use super::application::Role;
use super::cell::{Runs, active, for_stack, ip};
use super::{Carrier, Cell, Request, What, cores};

/// The name of what is made.
const NAME: &str = "netbench";
/// The folder of files.
const FOLDER: &str = "/run/catena/by-hand";

/// The lines of all cells, each after a remark that names it.
///
/// # Errors
/// If a switch cannot be described: a file of its is not there.
pub fn dry_run(request: &Request) -> Result<String, String> {
    let all = request.cells.iter().map(|cell| lines(request, cell));
    Ok(all.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

fn lines(request: &Request, cell: &Cell) -> Result<String, String> {
    let Cell { switch, pairs, size, burst, io, .. } = cell;
    let carrier: Carrier = io.parse()?;
    let fabric = fabric::find(switch)?;
    let mut text = format!(
        "# {switch}, {pairs}vs{pairs}, {size} bytes, bursts of {burst}, {io}, {} of the switch\n",
        if cell.cores == 1 { "1 core".into() } else { format!("{} cores", cell.cores) }
    );
    if !fabric.is_tested() {
        text += "# untested: made by the manuals of what it runs\n";
    }
    if let Err(needs) = fabric.look() {
        let _ = writeln!(text, "# not here: it needs {needs}");
    }
    if cell.container != super::plain() {
        let _ = writeln!(text, "# applications are shown without {}", cell.container);
    }
    let names: Vec<String> = (0..2 * pairs).map(|port| format!("{NAME}-{port}")).collect();
    let (applications, of_switch) = cores(&request.cpus, cell.cores);
    let (folder, name) = (Path::new(FOLDER), format!("{NAME}-switch"));
    let _ = writeln!(text, "mkdir -p {}", folder.display());
    let ends = carrier.ends();
    let started =
        fabric::lines((&*fabric, ends), (folder, &name), &names, of_switch, &request.program);
    text += &started.map_err(|why| why.to_string())?;
    let addresses = |port: usize| match request.containers.get(port) {
        Some(container) => (container.ip.to_string(), container.mac.clone()),
        None => (ip(port), mac(port)),
    };
    for (port, name) in names.iter().enumerate() {
        let all = [port, port ^ 1].map(addresses);
        let mut commands = String::new();
        if ends == Ends::Interfaces && all[0].1 != mac(port) {
            let _ = writeln!(commands, "link set dev {INTERFACE} address {}", all[0].1);
        }
        commands += &for_stack(&carrier, &all);
        for command in commands.lines() {
            let _ = writeln!(text, "ip -n {name} {command}");
        }
    }
    let mut phases = match cell.what {
        What::Both => vec![Role::Send, Role::Client],
        What::Throughput => vec![Role::Send],
        What::Latency => vec![Role::Client],
    };
    if !request.containers.is_empty() {
        phases.truncate(1);
    }
    for phase in phases {
        let role = |port: usize| {
            let of_file = request.containers.get(port).map(|container| container.role);
            of_file.unwrap_or(match port == active(cell.direction, port / 2) {
                true => phase,
                false => phase.peer(),
            })
        };
        let (active, passive): (Vec<usize>, Vec<usize>) =
            (0..2 * pairs).partition(|port| role(*port).is_active());
        let first = passive.len();
        // Who is sent to begins before, and waits for who sends: DPDK takes seconds to start on a busy host.
        let ahead = if carrier.is_dpdk() { 8.0 } else { 2.0 };
        for (at, port) in passive.into_iter().chain(active).enumerate() {
            if at == first {
                text += "sleep 1  # who is sent to is there\n";
            }
            let role = role(port);
            let is_client = matches!(role, Role::Client | Role::Server);
            let runs = Runs {
                addresses: [port, port ^ 1].map(addresses),
                cpu: applications[port % applications.len()],
                shares: 2 * pairs > applications.len(),
                pair: port / 2,
                rate: if is_client { Some(cell.latency_rate) } else { cell.rate },
                burst: if is_client { cell.latency_burst } else { cell.burst },
                seconds: cell.seconds + if role.is_active() { 0.0 } else { ahead },
                opened: ends.opened(&*fabric, folder, port),
            };
            let mut command = Command::new("ip");
            let namespace = if ends == Ends::Taps { &name } else { &names[port] };
            command.args(["netns", "exec", namespace]).arg(&request.program);
            command.args(["netbench", &role.to_string()]).args(runs.words(cell, &carrier));
            text += &(shown(&command) + " & all=\"$all $!\"\n");
        }
        text += "wait $all\nall=\n";
    }
    text += &fabric.end(folder, &name);
    for name in names.iter().chain([&name]) {
        let _ = writeln!(text, "ip netns del {name}");
    }
    let _ = writeln!(text, "rm -rf {}", folder.display());
    Ok(text)
}
