//! What a server is asked before an NF's state is kept there: whether it keeps what it acknowledges, and for a user of the
//! NF's own, who can do nothing but read and write the NF's keys.
//!
//! This is done at each new connection: a server that began anew knows none of its users, and another one may have taken over.

use std::time::Duration;

use super::connection::Connection;
use super::resp::Reply;
use super::{Durability, State, Why};

/// What an NF is to a server.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// Its user.
    pub(super) user: String,
    /// What its keys begin with.
    pub(super) prefix: String,
    /// Made anew for each service, and nowhere but in its memory.
    pub(super) password: String,
}

/// What an NF's user may do, with its own keys alone.
const COMMANDS: [&str; 4] = ["+get", "+set", "+del", "+select"];

impl Account {
    /// That of an NF of a chain. Names and prefixes have letters, digits and `_-` alone: no key of one begins with those of
    /// another. Chains that share keys have users of their own: what one removes, the other does not have.
    pub(super) fn of(prefix: &str, nf: &str, chain: &str) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let plain = |text: &str| -> String {
            text.chars().filter(|of| of.is_ascii_alphanumeric() || "-_.".contains(*of)).collect()
        };
        let mut random = [0; 24];
        let made = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        let password = match made {
            Ok(length) if length == random.len() => {
                random.iter().map(|byte| format!("{byte:02x}")).collect()
            }
            // The kernel has always so few; without them, no user is made.
            _ => String::new(),
        };
        let prefix = format!("{prefix}:{nf}:");
        let user = format!("catena:{prefix}{}:{}", plain(&host), plain(chain));
        Self { user, prefix, password }
    }
}

/// How long a server has for an answer at the start, at least.
const PATIENCE: Duration = Duration::from_secs(1);

/// Connects as who makes users.
fn enter(state: &State) -> Result<Connection, Why> {
    let mut connection = Connection::open(&state.server, state.wait)?;
    let user = state.server.user.as_deref().unwrap_or("default").as_bytes();
    if let Some(password) = &state.server.password {
        let password = password.0.as_bytes();
        match state.server.user {
            Some(_) => connection.call(&[b"AUTH", user, password])?,
            None => connection.call(&[b"AUTH", password])?,
        };
    }
    if state.durability == Durability::Strict {
        strict(&mut connection)?;
    }
    Ok(connection)
}

/// Whether a server writes updates to its disk before it acknowledges them.
fn strict(connection: &mut Connection) -> Result<(), Why> {
    let mut setting = |name: &str| match connection.call(&[b"CONFIG", b"GET", name.as_bytes()]) {
        Ok(Reply::Array(pair)) => match &pair[..] {
            [_, Reply::Bytes(value)] => Ok(String::from_utf8_lossy(value).into_owned()),
            _ => Err(Why::NotStrict(format!("it does not show `{name}`"))),
        },
        Ok(_) => Err(Why::NotStrict(format!("it does not show `{name}`"))),
        Err(Why::NotAllowed(_)) => Err(Why::NotStrict(format!(
            "it does not allow this user to look at `{name}`, which takes `+config|get`"
        ))),
        Err(Why::Refused(why)) => Err(Why::NotStrict(format!("it does not show `{name}` ({why})"))),
        Err(why) => Err(why),
    };
    let all = [
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        // While the log is rewritten, it would be as without the settings before.
        ("no-appendfsync-on-rewrite", "no"),
    ];
    for (name, due) in all {
        let value = setting(name)?;
        if value != due {
            let value: String = value.chars().filter(|of| of.is_ascii_graphic()).take(20).collect();
            return Err(Why::NotStrict(format!("it has `{name} {value}`")));
        }
    }
    Ok(())
}

/// Looks whether a server can keep state as it is to. No packet waits meanwhile, so it may take longer than requests may.
pub(crate) fn check(state: &State, prefix: &str, nf: &str, chain: &str) -> Result<(), Why> {
    let state = &State { wait: state.wait.max(PATIENCE), ..state.clone() };
    let account = Account::of(prefix, nf, chain);
    open(state, &account).map(drop)?;
    remove(state, &account)
}

/// Connects as an NF.
pub(super) fn open(state: &State, account: &Account) -> Result<Connection, Why> {
    if account.password.is_empty() {
        return Err(Why::Refused("the system gives no random numbers for a password".into()));
    }
    let mut connection = enter(state)?;
    let password = format!(">{}", account.password);
    let keys = format!("~{}*", account.prefix);
    let mut words = vec!["ACL", "SETUSER", &account.user, "reset", "on", &password, &keys];
    words.extend(COMMANDS);
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    connection.call(&words).map_err(without_users)?;
    let (user, password) = (account.user.as_bytes(), account.password.as_bytes());
    connection.call(&[b"AUTH", user, password])?;
    if state.server.database != 0 {
        connection.call(&[b"SELECT", state.server.database.to_string().as_bytes()])?;
    }
    connection.is_ready();
    Ok(connection)
}

/// Removes the user of an NF; its keys stay.
pub(super) fn remove(state: &State, account: &Account) -> Result<(), Why> {
    let mut connection = enter(state)?;
    connection.call(&[b"ACL", b"DELUSER", account.user.as_bytes()]).map_err(without_users)?;
    Ok(())
}

/// What a server that has no users calls that.
fn without_users(why: Why) -> Why {
    match why {
        Why::Refused(text) if text.contains("unknown command") => Why::NoUsers,
        // It may say what it was given.
        Why::Refused(_) => Why::Refused("it makes no users for NFs".into()),
        other => other,
    }
}
