//! Where the state of NFs is kept, as a manifest has it.

use std::time::Duration;

use ir::yaml::Reading;
use serde_saphyr::Spanned;

use super::{Choices, Fabric, Files, choose, duration, is_name, written};
use crate::state::{Durability, Policy, Secret, Server, State};

const DURABILITY: Choices<Durability, 2> =
    [("strict", Durability::Strict), ("fast", Durability::Fast)];

const AWAY: Choices<Policy, 3> =
    [("hold", Policy::Hold), ("open", Policy::Open), ("closed", Policy::Closed)];

/// How long packets wait, and how many, if nothing is said.
const WAIT: Duration = Duration::from_secs(1);
const HOLD: u32 = 4096;

/// Packets that wait at most: their bytes are this process's.
const MOST_HELD: u32 = 1 << 20;

/// Flows that an NF's runtime holds: a batch, to what fits into the memory of an NF.
const CACHES: std::ops::RangeInclusive<u32> = 1024..=1 << 24;

impl State {
    /// On this server, with what is chosen where nothing is said.
    pub fn new(server: Server, durability: Durability) -> Self {
        Self {
            server,
            durability,
            away: Policy::Hold,
            wait: WAIT,
            hold: HOLD as usize,
            cache: nf::CACHE,
            expire: None,
            prefix: None,
        }
    }
}

/// Reads it.
pub(super) fn read(
    state: &Spanned<written::State>,
    fabric: &Fabric,
    found: &mut Reading,
    files: &mut dyn Files,
) -> Option<State> {
    let written = &state.value;
    if *fabric != Fabric::Shared {
        let message = "`state` is of NFs that share memory".into();
        found.wrong(state, message, Some("`fabric: shared` has it".into()));
    }
    let mut server = match Server::parse(&written.redis.value) {
        Ok(server) => server,
        Err(why) => {
            let help = "`redis: rediss://USER@HOST:PORT/DATABASE`, and `redis://` without TLS";
            found.wrong(&written.redis, format!("no address of Redis: {why}"), Some(help.into()));
            return None;
        }
    };
    secret(written, &mut server, found, files);
    if let Some(authorities) = &written.ca {
        if !server.tls {
            let help = Some("`redis: rediss://…` has it".into());
            found.wrong(authorities, "`ca` is of TLS".into(), help);
        }
        match files.text(&authorities.value) {
            Ok(text) => server.authorities = Some(text),
            Err(why) => found.wrong(authorities, why, None),
        }
    }
    let durability =
        choose(found, "durability", Some(&written.durability), &DURABILITY, Durability::Strict);
    let mut of = State::new(server, durability);
    of.away = choose(found, "policy", written.away.as_ref(), &AWAY, Policy::Hold);
    if let Some(wait) = &written.wait {
        of.wait = duration(found, wait);
        if !(1..=60_000).contains(&of.wait.as_millis()) {
            found.wrong(wait, "packets wait 1 ms to 60 s".into(), None);
        }
    }
    if let Some(hold) = &written.hold {
        of.hold = hold.value as usize;
        if !(1..=MOST_HELD).contains(&hold.value) {
            found.wrong(hold, format!("1 to {MOST_HELD} packets wait"), None);
        }
    }
    if let Some(cache) = &written.cache {
        of.cache = cache.value;
        if !CACHES.contains(&cache.value) {
            let message = format!("an NF's cache has {} to {} flows", CACHES.start(), CACHES.end());
            found.wrong(cache, message, None);
        }
    }
    of.expire = written.expire.as_ref().map(|expire| {
        let of = duration(found, expire);
        if !(1_000..=1 << 40).contains(&of.as_millis()) {
            found.wrong(expire, "state is kept for 1 s or longer".into(), None);
        }
        of
    });
    of.prefix = written.prefix.as_ref().map(|prefix| {
        if !is_name(&prefix.value) {
            let message = format!("'{}' cannot be what keys begin with", prefix.value);
            let help = "letters, digits and `_-`, at most 32";
            found.wrong(prefix, message, Some(help.into()));
        }
        prefix.value.clone()
    });
    Some(of)
}

/// The password, from where it stands.
fn secret(
    written: &written::State,
    server: &mut Server,
    found: &mut Reading,
    files: &mut dyn Files,
) {
    let Some(at) = written.password_file.as_ref().or(written.password_env.as_ref()) else { return };
    let is_twice = written.password_file.is_some() && written.password_env.is_some();
    if is_twice || server.password.is_some() {
        let message = "the password stands in two places".into();
        let help = "one of `redis:`, `password-file:` and `password-env:`";
        return found.wrong(at, message, Some(help.into()));
    }
    let text = match written.password_file {
        Some(_) => files.text(&at.value),
        None => files
            .variable(&at.value)
            .ok_or_else(|| format!("there is no variable '{}' in the environment", at.value)),
    };
    match text.map(|text| text.trim_end_matches(['\r', '\n']).to_string()) {
        Ok(text) if text.is_empty() => found.wrong(at, "an empty password".into(), None),
        Ok(text) => server.password = Some(Secret(text)),
        Err(why) => found.wrong(at, why, None),
    }
}
