//! What ports of DPDK's have counted, as its telemetry answers: a socket in the folder of a program's files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use serde_json::Value;

use crate::{Counters, Failure};

/// Where DPDK has files of a program whose variable `RUNTIME_DIRECTORY` names this folder.
pub(super) fn folder(of: &Path) -> PathBuf {
    of.join("dpdk").join("rte")
}

/// The socket, behind whose name may stand the number of the process.
fn socket(files: &Path) -> Option<PathBuf> {
    let all = std::fs::read_dir(folder(files)).ok()?.flatten();
    let mut all = all.map(|entry| entry.path());
    all.find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("dpdk_telemetry.v2")
    })
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer at most, as DPDK's guide to telemetry has it.
const LONGEST: usize = 16 * 1024;

/// What a port of this number has received and sent since it was opened.
///
/// # Errors
/// If nobody answers, or something else.
pub(super) fn counters(files: &Path, port: usize) -> Result<Counters, Failure> {
    let path = socket(files).ok_or_else(|| {
        Failure::Impossible(format!("nobody answers below {}", folder(files).display()))
    })?;
    let ask = || -> rustix::io::Result<Vec<u8>> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        connect(&socket, &SocketAddrUnix::new(&path)?)?;
        let mut answer = vec![0; LONGEST];
        // It says first who it is.
        recv(&socket, &mut answer[..], RecvFlags::empty())?;
        let question = format!("/ethdev/stats,{port}");
        send(&socket, question.as_bytes(), SendFlags::NOSIGNAL)?;
        let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
        answer.truncate(length);
        Ok(answer)
    };
    let answer = ask().map_err(|why| Failure::File(path.clone(), why.into()))?;
    read(&answer).ok_or_else(|| {
        let said = String::from_utf8_lossy(&answer).into_owned();
        Failure::Command(format!("/ethdev/stats,{port} of {}", path.display()), said)
    })
}

fn read(answer: &[u8]) -> Option<Counters> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let count = |what: &str| answer["/ethdev/stats"][what].as_u64();
    Some(Counters { received: count("ipackets")?, sent: count("opackets")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_or_refused() {
        let answer =
            br#"{"/ethdev/stats":{"ipackets":12,"opackets":34,"ibytes":768,"q_ipackets":[12]}}"#;
        let read_of = read(answer).unwrap();
        assert_eq!((read_of.received, read_of.sent), (12, 34));
        for end in 0..answer.len() {
            assert!(read(&answer[..end]).is_none());
        }
        assert!(read(br#"{"/ethdev/stats":null}"#).is_none());
        let nowhere = std::env::temp_dir().join("nowhere");
        assert!(matches!(counters(&nowhere, 0), Err(Failure::Impossible(_))));
    }
}
