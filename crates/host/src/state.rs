//! State of flows, kept in Redis on behalf of network functions, which have no network.
//!
//! An NF asks the host over the socket that it has; the host asks Redis. Each NF has a connection, a user of Redis and a
//! prefix of keys of its own: what the host could be made to say for one NF, Redis refuses for the keys of another.

mod ahead;
mod connection;
mod reader;
mod resp;
mod server;
mod store;

use std::fmt;
use std::io::{Error, ErrorKind};
use std::time::Duration;

pub(crate) use reader::Reader;
pub(crate) use server::check;
pub(crate) use store::{Session, Standing, Store, Stored};

/// Where state is kept, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The server.
    pub server: Server,
    /// What is acknowledged.
    pub durability: Durability,
    /// What happens to packets while state cannot be read or written.
    pub away: Policy,
    /// How long a packet waits, and a request.
    pub wait: Duration,
    /// Packets that wait at most.
    pub hold: usize,
    /// Flows that an NF's runtime holds at most.
    pub cache: u32,
    /// How long a flow's state is kept that is not updated; without end if nothing is said.
    pub expire: Option<Duration>,
    /// What keys begin with; the chain's name if nothing is said.
    pub prefix: Option<String>,
}

/// A server of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Whether what is said is encrypted, and the server known by its certificate.
    pub tls: bool,
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who makes the users of NFs.
    pub user: Option<String>,
    /// That user's password.
    pub password: Option<Secret>,
    /// The database.
    pub database: u32,
    /// Certificate authorities, as PEM; those of this host if none are named.
    pub authorities: Option<String>,
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// What an acknowledged update outlives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the server: it is on its disk.
    Strict,
    /// A crash of the NF, not one of the server.
    Fast,
}

/// What happens to packets while Redis does not answer, or refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// They wait, so many and so long, and are then dropped.
    Hold,
    /// They pass.
    Open,
    /// They are dropped.
    Closed,
}

/// The port where none is named.
const PORT: u16 = 6379;

impl Server {
    /// Reads `redis://USER:PASSWORD@HOST:PORT/DATABASE`, or `rediss:` for TLS; all but the host can be left out.
    ///
    /// # Errors
    /// What is wrong with it, without a word of it: it may hold a password.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) =
            text.split_once("://").ok_or("it begins with `redis://` or `rediss://`")?;
        let tls = match scheme {
            "redis" => false,
            "rediss" => true,
            _ => return Err("it begins with `redis://` or `rediss://`"),
        };
        let (who, rest) = match rest.rsplit_once('@') {
            Some((who, rest)) => (Some(who), rest),
            None => (None, rest),
        };
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let database = match database {
            "" => 0,
            of => of.parse().map_err(|_| "the database is a number")?,
        };
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or("an address in `[` has no `]`")?;
                (host, rest.strip_prefix(':'))
            }
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) {
            return Err("it names no host");
        }
        let port = port.map_or(Ok(PORT), str::parse).map_err(|_| "the port is a number")?;
        let (user, password) = match who.map(|who| who.split_once(':').unwrap_or((who, ""))) {
            Some((user, password)) => (unescape(user)?, unescape(password)?),
            None => (None, None),
        };
        let host = host.to_string();
        let password = password.map(Secret);
        Ok(Self { tls, host, port, user, password, database, authorities: None })
    }

    /// Where it is, for messages.
    pub(crate) fn place(&self) -> String {
        let host = &self.host;
        match host.contains(':') {
            true => format!("[{host}]:{}", self.port),
            false => format!("{host}:{}", self.port),
        }
    }
}

/// A text in which `%2F` stands for a slash; none if it is empty.
fn unescape(text: &str) -> Result<Option<String>, &'static str> {
    const WRONG: &str = "`%` in a user or password is followed by two digits: `%25` is a `%`";
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|of| char::from(of).to_digit(16));
                let (high, low) = (digit().ok_or(WRONG)?, digit().ok_or(WRONG)?);
                (high * 16 + low) as u8
            }
            other => other,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| WRONG)?;
    Ok((!text.is_empty()).then_some(text))
}

/// A manifest's text with stars for the passwords of its addresses: what is shown of it, at the same places.
pub fn without_passwords(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let Some(begin) = line.find("://").map(|at| at + 3) else {
            shown.push_str(line);
            continue;
        };
        let who = line[begin..].rfind('@').map(|end| (begin, begin + end));
        let hidden = who.and_then(|(begin, end)| {
            let colon = begin + line[begin..end].find(':')?;
            Some(colon + 1..end)
        });
        match hidden {
            Some(range) => {
                shown.push_str(&line[..range.start]);
                line[range.clone()].chars().for_each(|letter| {
                    (0..letter.len_utf8()).for_each(|_| shown.push('*'));
                });
                shown.push_str(&line[range.end..]);
            }
            None => shown.push_str(line),
        }
    }
    shown
}

/// How many replies of a server there are one behind the other, up to one that is none.
pub fn count_replies(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while !bytes.is_empty() && resp::read(&mut bytes).is_ok() {
        count += 1;
    }
    count
}

/// Why state cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Nobody answers there.
    Unreachable(String),
    /// There is no answer in time.
    Slow,
    /// It is not the server that it is to be, or says nothing that can be decrypted.
    Tls(String),
    /// The password is wrong, or there is none.
    Password,
    /// The user may not do something.
    NotAllowed(String),
    /// There is no room for more.
    Full(String),
    /// The server has become a replica.
    ReadOnly,
    /// The server is about to begin, or elsewhere occupied.
    Busy(String),
    /// It does not keep what it acknowledges, or does not let one look.
    NotStrict(String),
    /// It has no users.
    NoUsers,
    /// Its replies are none.
    Protocol(String),
    /// Another error of the server.
    Refused(String),
}

impl Why {
    /// By what the server said.
    pub(crate) fn of(text: &str) -> Self {
        let shown: String = text
            .chars()
            .take(200)
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect();
        match text.split(' ').next().unwrap_or_default() {
            "WRONGPASS" | "NOAUTH" => Self::Password,
            "NOPERM" => Self::NotAllowed(shown),
            "OOM" | "MISCONF" => Self::Full(shown),
            "READONLY" => Self::ReadOnly,
            "LOADING" | "BUSY" | "MASTERDOWN" | "TRYAGAIN" => Self::Busy(shown),
            _ => Self::Refused(shown),
        }
    }

    /// Whether updates alone are refused, and the connection is of use.
    fn is_of_writes(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

impl From<Error> for Why {
    fn from(why: Error) -> Self {
        match why.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Slow,
            ErrorKind::InvalidData => {
                match why.get_ref().is_some_and(|of| of.is::<rustls::Error>()) {
                    true => Self::Tls(why.to_string()),
                    false => Self::Protocol(why.to_string()),
                }
            }
            ErrorKind::UnexpectedEof => Self::Unreachable("it closed the connection".into()),
            _ => Self::Unreachable(why.to_string()),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "Redis cannot be reached: {why}"),
            Self::Slow => f.write_str("Redis does not answer in time"),
            Self::Tls(why) => write!(
                f,
                "TLS to Redis fails: {why}; `ca:` names the authority of its certificate, and `redis:` the host that it is for"
            ),
            Self::Password => f.write_str(
                "Redis refuses the user or the password of `redis:`, `password-file:` or `password-env:`",
            ),
            Self::NotAllowed(why) => write!(
                f,
                "the user of `redis:` may not do something ({why}): it needs `+acl|setuser +acl|deluser +auth +select`, and \
                 with `durability: strict` also `+config|get`"
            ),
            Self::Full(why) => write!(f, "Redis has no room for more ({why})"),
            Self::ReadOnly => f.write_str(
                "Redis has become a replica, which takes no updates: `redis:` has to name the server that they go to",
            ),
            Self::Busy(why) => write!(f, "Redis is not ready ({why})"),
            Self::NotStrict(why) => write!(
                f,
                "`durability: strict` needs a server that writes each update to its disk before it acknowledges it: {why}; \
                 set `appendonly yes`, `appendfsync always` and `no-appendfsync-on-rewrite no` there, or take `durability: fast`"
            ),
            Self::NoUsers => f.write_str(
                "this Redis has no users, by which NFs are kept apart: version 6 or later is needed",
            ),
            Self::Protocol(why) => write!(f, "what answers does not speak as Redis does: {why}"),
            Self::Refused(why) => write!(f, "Redis refuses: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let server = Server::parse("rediss://ops:p%40ss:%2F@db.example:6380/3").unwrap();
        assert_eq!((server.tls, server.host.as_str(), server.port), (true, "db.example", 6380));
        assert_eq!((server.user.as_deref(), server.database), (Some("ops"), 3));
        assert_eq!(server.password, Some(Secret("p@ss:/".into())));
        assert!(!format!("{server:?}").contains("p@ss"));
        let server = Server::parse("redis://[::1]").unwrap();
        assert_eq!((server.place().as_str(), server.user), ("[::1]:6379", None));
        let server = Server::parse("redis://:secret@h").unwrap();
        assert_eq!((server.user, server.password), (None, Some(Secret("secret".into()))));
        for wrong in [
            "",
            "h",
            "http://h",
            "redis://",
            "redis://h:x",
            "redis://h:70000",
            "redis://h/x",
            "redis://[::1",
            "redis://a%zz@h",
            "redis://a b",
            "redis://h\r\n",
            "redis://%ff:@h",
        ] {
            assert!(Server::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let text =
            "a: 1\n  redis: 'rediss://u:sécr@t@h:1/0', x: y\nb: redis://u@h\nc: redis://h:1\n";
        let shown = without_passwords(text);
        assert_eq!(
            shown,
            "a: 1\n  redis: 'rediss://u:*******@h:1/0', x: y\nb: redis://u@h\nc: redis://h:1\n"
        );
        assert_eq!(shown.len(), text.len());
    }

    #[test]
    fn what_a_server_says_is_told_apart() {
        let all = [
            "WRONGPASS x",
            "NOPERM x",
            "OOM command not allowed",
            "READONLY You",
            "LOADING x",
            "ERR x",
        ];
        let shown: std::collections::BTreeSet<String> =
            all.iter().map(|text| Why::of(text).to_string()).collect();
        assert_eq!(shown.len(), all.len());
        assert!(!Why::of("ERR a\u{1b}[2J").to_string().contains('\u{1b}'));
    }
}
