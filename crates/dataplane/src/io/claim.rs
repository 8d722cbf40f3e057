//! Claims on interfaces: two processes do not take each other's frames unawares.
//!
//! A claim is a listening UNIX socket of an abstract name. Such names are those of the network
//! namespace, as interfaces are, and go with the process, however it ends.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use super::sys;

/// So many processes may share an interface.
const MOST: u32 = 8;

/// A process has an interface as long as this lives.
pub(super) struct Claim {
    _socket: UnixListener,
}

impl Claim {
    /// Claims the interface of a number; with the processes that have it already.
    ///
    /// # Errors
    /// If that cannot be found out, or so many have it that there is no room.
    pub(super) fn new(index: u32) -> Result<(Self, Vec<u32>)> {
        let name = |place| SocketAddr::from_abstract_name(format!("catena/{index}/{place}"));
        let (mut own, mut others) = (None, Vec::new());
        for place in 0..MOST {
            let name = name(place)?;
            if own.is_none() {
                match UnixListener::bind_addr(&name) {
                    Ok(socket) => {
                        own = Some(socket);
                        continue;
                    }
                    Err(e) if e.kind() == ErrorKind::AddrInUse => {}
                    Err(e) => return Err(e),
                }
            }
            // Who is ending is there no more.
            if let Ok(stream) = UnixStream::connect_addr(&name) {
                let peer: libc::ucred =
                    sys::get(&OwnedFd::from(stream), libc::SOL_SOCKET, libc::SO_PEERCRED)?;
                others.push(peer.pid as u32);
            }
        }
        let own = own.ok_or_else(|| Error::from(ErrorKind::AddrInUse))?;
        others.retain(|pid| *pid != std::process::id());
        Ok((Self { _socket: own }, others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interface that no host has.
    const NONE: u32 = u32::MAX - 5;

    #[test]
    fn a_process_is_in_nobody_s_way_but_others() {
        let (first, others) = Claim::new(NONE).unwrap();
        assert_eq!(others, [0; 0]);
        let (_second, others) = Claim::new(NONE).unwrap();
        assert_eq!(others, [0; 0], "this process");
        drop(first);
        let further: Vec<_> = (1..MOST).map(|_| Claim::new(NONE).unwrap()).collect();
        assert!(Claim::new(NONE).is_err(), "there is room for eight");
        drop(further);
        assert!(Claim::new(NONE).is_ok());
    }
}
