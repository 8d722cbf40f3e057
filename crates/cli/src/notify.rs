//! Telling systemd how the service is, see sd_notify(3).

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The socket that the service manager listens on, if there is one.
pub(crate) struct ServiceManager(Option<SocketAddr>);

impl ServiceManager {
    /// The one that `NOTIFY_SOCKET` names.
    pub(crate) fn from_environment() -> Self {
        Self(std::env::var_os("NOTIFY_SOCKET").and_then(|name| address(&name)))
    }

    /// Tells a state such as `READY=1`. Whether anybody hears it makes no difference.
    pub(crate) fn tell(&self, state: &str) {
        if let Some(address) = &self.0
            && let Ok(socket) = UnixDatagram::unbound()
        {
            let _ = socket.send_to_addr(state.as_bytes(), address);
        }
    }
}

fn address(name: &OsString) -> Option<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
        [b'/', ..] => SocketAddr::from_pathname(name).ok(),
        _ => None,
    }
}
