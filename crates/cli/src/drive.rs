//! Driving a router to its end while control connections are served.

use dataplane::control_socket::ControlServer;
use dataplane::{Rest, Router};
use elements::device::{ControlAddress, ControlSocketRequest};

use crate::log::Log;

/// Rounds of a busy router after which control connections get their turn.
const PATIENCE: u32 = 64;

/// A control socket on a TCP port of this host, as the command line asks for it: `PORT` or
/// `PORT+`.
pub(crate) fn tcp(port: &str) -> Result<ControlSocketRequest, String> {
    let (number, search) = match port.strip_suffix('+') {
        Some(number) => (number, true),
        None => (port, false),
    };
    let number = number.parse().map_err(|_| format!("-p {port}: not a TCP port"))?;
    Ok(request(ControlAddress::Tcp { port: number, search, localhost: true }))
}

/// A control socket in the file system.
pub(crate) fn unix(path: &std::path::Path) -> ControlSocketRequest {
    request(ControlAddress::Unix { path: path.display().to_string() })
}

fn request(address: ControlAddress) -> ControlSocketRequest {
    ControlSocketRequest {
        address,
        read_only: false,
        verbose: false,
        retries: 0,
        retry_warnings: false,
        bound: Default::default(),
    }
}

/// Runs until the driver is stopped, `interrupted` says so, or nothing is left to do. While
/// control sockets are open, a router with nothing to do waits for what comes through them.
pub(crate) fn drive(
    router: &mut Router,
    server: &mut ControlServer,
    mut interrupted: impl FnMut(&mut Router, Rest) -> bool,
) {
    loop {
        let (mut ended, mut rounds) = (false, 0u32);
        let rest = router.run(|router, rest| {
            rounds = rounds.wrapping_add(1);
            if !server.is_empty() && (rest != Rest::Busy || rounds.is_multiple_of(PATIENCE)) {
                server.poll(router);
                show(server, Log::Text);
            }
            ended = interrupted(router, rest);
            ended
        });
        let waits = matches!(rest, Rest::Idle | Rest::IdleUntil(_));
        if ended || !waits || server.is_empty() {
            return;
        }
        if !server.poll(router) {
            router.doze();
        }
    }
}

pub(crate) fn show(server: &mut ControlServer, log: Log) {
    server.take_messages().iter().for_each(|message| log.info(message));
}
