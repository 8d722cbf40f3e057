//! The control protocol: what clients of an instance ask, and what it answers.
//!
//! Requests and replies are lines of JSON on a UNIX socket. A request is a [`Request`], an object whose member `do`
//! is its name. A reply is a [`Reply`]: an object with `ok`, the request's [`Ask::Answer`], or with `error`, a
//! [`Refusal`]. The answers of `capture` and `trace` go on: before the last line come lines with `more`, a
//! [`Piece`], and lines with `bytes`, the number of bytes that follow the line. A client ends them by
//! closing its sending side.
//!
//! Each line says by `version` which version of the protocol it is of. An instance refuses requests of another
//! version than its own, and members that it does not know; of a request without a version it takes its own for meant. A
//! client refuses replies of another version, and passes over members that it does not know. So what is added to answers
//! leaves the version as it is, and everything else makes a new one.

mod answers;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{CODES, Error};

pub use answers::*;

/// The version that this code reads and writes.
pub const VERSION: u32 = 1;

/// The member that says the version.
const MEMBER: &str = "version";

/// Something to ask an instance for.
pub trait Ask: Into<Request> {
    /// What it answers.
    type Answer: Serialize + DeserializeOwned;
}

macro_rules! requests {
    ($($(#[$about:meta])* $name:ident -> $answer:ty,)*) => {
        /// What an instance can be asked for.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "do", rename_all = "kebab-case")]
        pub enum Request {
            $($(#[$about])* $name($name),)*
        }

        $(
            impl From<$name> for Request {
                fn from(request: $name) -> Self {
                    Self::$name(request)
                }
            }

            impl Ask for $name {
                type Answer = $answer;
            }
        )*

        /// The schema of each request's answer, in the order of the requests.
        fn answers(generator: &mut SchemaGenerator) -> Vec<Schema> {
            vec![$(generator.subschema_for::<$answer>()),*]
        }

        impl Request {
            /// Reads a line that this was answered, and writes it anew.
            #[cfg(test)]
            fn reread(&self, line: &[u8]) -> Result<String, Error> {
                match self {
                    $(Self::$name(_) => Ok(Reply::<$answer>::read(line)?.line().unwrap()),)*
                }
            }
        }
    };
}

requests! {
    /// Reads a handler.
    Read -> String,
    /// Writes a handler on all workers.
    Write -> (),
    /// Lists handlers.
    Handlers -> Vec<ElementHandlers>,
    /// Reads what each worker and all together have done.
    Counters -> CountersAnswer,
    /// Lists flows.
    Flows -> FlowsAnswer,
    /// Removes the flow that a filter chooses, if it chooses one and no more.
    RemoveFlow -> Flow,
    /// Says how packets find their workers, and where groups of traffic classes are.
    Dispatch -> DispatchAnswer,
    /// Moves a group of traffic classes to another worker.
    Move -> Moved,
    /// Counts packets for a second, and moves groups so that all workers have about as many.
    Balance -> Balanced,
    /// Says how many workers take packets, or changes it.
    Workers -> WorkersAnswer,
    /// Says what the policy that scales the run decided, and why.
    Scaling -> ScalingAnswer,
    /// Gives the state of all elements as text, for another run.
    ExportState -> String,
    /// Takes over the state of another run.
    ImportState -> StateImported,
    /// Says which faults devices have, or changes them; both as text.
    Faults -> String,
    /// Says what runs.
    Status -> StatusAnswer,
    /// Lets another configuration replace the one that runs.
    Swap -> Changed,
    /// Returns to the configuration that ran before.
    Rollback -> Changed,
    /// Captures packets that pass, until the client closes its sending side. The bytes are a pcapng file.
    Capture -> CaptureEnd,
    /// Traces packets through the chain, until there were enough or the client closes its sending side.
    Trace -> TraceEnd,
    /// Ends the run.
    Stop -> (),
}

/// Reads a handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// `ELEMENT.HANDLER`, and behind a space what it is given.
    pub handler: String,
}

/// Writes a handler on all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// `ELEMENT.HANDLER`.
    pub handler: String,
    /// What is written.
    #[serde(default)]
    pub value: String,
}

/// Lists handlers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handlers {
    /// Those of this element; of all if there is none.
    #[serde(default)]
    pub element: Option<String>,
}

/// Reads what each worker and all together have done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counters {}

/// In which order flows are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlowOrder {
    /// By the latest packet: the flow that waits longest first.
    #[default]
    Touched,
    /// By when they expire.
    Expires,
    /// By protocol.
    Protocol,
    /// By source address.
    Src,
    /// By destination address.
    Dst,
    /// By source port.
    Sport,
    /// By destination port.
    Dport,
}

/// Lists flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// Those with packets that this pattern of `IPClassifier` chooses, in either direction; all if it is empty.
    #[serde(default)]
    pub filter: String,
    /// Only those of this element.
    #[serde(default)]
    pub element: Option<String>,
    /// Their order.
    #[serde(default)]
    pub sort: FlowOrder,
    /// Whether in reverse.
    #[serde(default)]
    pub reverse: bool,
    /// How many are left out at the beginning.
    #[serde(default)]
    pub skip: u64,
    /// How many there are at the most; all if nothing is said.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Removes the flow that a filter chooses, if it chooses one and no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveFlow {
    /// As for `flows`.
    pub filter: String,
    /// As for `flows`.
    #[serde(default)]
    pub element: Option<String>,
}

/// Says how packets find their workers, and where groups of traffic classes are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dispatch {}

/// Moves a group of traffic classes to another worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The group.
    pub group: usize,
    /// The worker.
    pub worker: usize,
}

/// Counts packets for a second, and moves groups so that all workers have about as many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Balance {}

/// Says how many workers take packets, or changes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workers {
    /// How many from now on; none to leave it as it is.
    #[serde(default)]
    pub count: Option<usize>,
}

/// Says what the policy that scales the run decided, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// Decisions of so many seconds before now; all that are kept if nothing is said.
    #[serde(default)]
    pub since: Option<f64>,
}

/// Gives the state of all elements as text, for another run; or a share of it, if one is named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportState {
    /// The worker whose state it is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<usize>,
    /// The group of traffic classes whose flows it is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
}

/// Takes over the state of another run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportState {
    /// What that run gave.
    pub text: String,
}

/// Says which faults devices have, or changes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// Those from now on, `FAULT=SHARE,…` or `none`; none to leave them as they are.
    #[serde(default)]
    pub set: Option<String>,
}

/// Says what runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {}

/// Lets another configuration replace the one that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swap {
    /// The configuration's file, on the instance's host.
    pub path: String,
    /// Its text, if the file is not to be read: then the path is but a name.
    #[serde(default)]
    pub text: Option<String>,
    /// Whether to make everything and change nothing.
    #[serde(default)]
    pub check: bool,
    /// Whether to change also where the new one ends or comes to rest, and the one that runs does not.
    #[serde(default)]
    pub force: bool,
}

/// Returns to the configuration that ran before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// As for `swap`.
    #[serde(default)]
    pub check: bool,
    /// As for `swap`.
    #[serde(default)]
    pub force: bool,
}

/// Captures packets that pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Where: `A -> B`, `A[1]`, `[1]B`, or the name of an element, a network function or an interface.
    pub edge: String,
    /// Those that this pattern of `IPClassifier` chooses; all if it is empty.
    #[serde(default)]
    pub filter: String,
    /// How many at the most.
    #[serde(default)]
    pub count: Option<u64>,
    /// Bytes of a packet that are kept at the most.
    #[serde(default)]
    pub snap: Option<u64>,
}

/// Traces packets through the chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Those that this pattern of `IPClassifier` chooses; all if it is empty.
    #[serde(default)]
    pub filter: String,
    /// How many; 10 if nothing is said.
    #[serde(default)]
    pub count: Option<u64>,
    /// Where they come in, as for `capture`; wherever packets come in if nothing is said.
    #[serde(default)]
    pub edge: Option<String>,
    /// Whether the text has the colours of a terminal.
    #[serde(default)]
    pub colours: bool,
}

/// Ends the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {}

/// A line that an instance answers, but for its version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Reply")]
pub enum Reply<A> {
    /// The answer, or its end.
    Ok(A),
    /// Why there is none.
    Error(Refusal),
    /// A piece of it.
    More(Piece),
    /// So many bytes follow the line.
    Bytes(u64),
}

/// Writes a line with the version, and without its end.
fn write(what: &impl Serialize) -> serde_json::Result<String> {
    let mut line = Map::new();
    line.insert(MEMBER.to_string(), VERSION.into());
    if let Value::Object(members) = serde_json::to_value(what)? {
        line.extend(members);
    }
    serde_json::to_string(&line)
}

/// Reads the version of a line, if it says one, and the rest.
fn read(line: &[u8]) -> serde_json::Result<(Option<u32>, Value)> {
    let mut members: Map<String, Value> = serde_json::from_slice(line)?;
    let version = members.remove(MEMBER).map(serde_json::from_value).transpose()?;
    Ok((version, Value::Object(members)))
}

impl Request {
    /// Reads the line of a request.
    ///
    /// # Errors
    /// If it is none, or one of another version.
    pub fn read(line: &[u8]) -> Result<Self, Error> {
        let wrong = |e: serde_json::Error| Error::Request(e.to_string());
        let (version, request) = read(line).map_err(wrong)?;
        if version.is_some_and(|version| version != VERSION) {
            return Err(Error::Version { client: version, instance: Some(VERSION) });
        }
        serde_json::from_value(request).map_err(wrong)
    }

    /// Its line, without the end.
    ///
    /// # Errors
    /// None that a request can have.
    pub fn line(&self) -> serde_json::Result<String> {
        write(self)
    }
}

impl<A: Serialize> Reply<A> {
    /// Its line, without the end.
    ///
    /// # Errors
    /// If the answer cannot be written as JSON.
    pub fn line(&self) -> serde_json::Result<String> {
        write(self)
    }
}

impl<A: DeserializeOwned> Reply<A> {
    /// Reads the line of a reply.
    ///
    /// # Errors
    /// If it is none, or one of another version.
    pub fn read(line: &[u8]) -> Result<Self, Error> {
        let wrong = |e: serde_json::Error| Error::Reply(e.to_string());
        let (version, reply) = read(line).map_err(wrong)?;
        if version != Some(VERSION) {
            return Err(Error::Version { client: Some(VERSION), instance: version });
        }
        serde_json::from_value(reply).map_err(wrong)
    }
}

/// The JSON Schema of the lines of both sides, and under `answers` what each request is answered.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let request = generator.subschema_for::<Request>();
    let reply = generator.subschema_for::<Reply<Value>>();
    let answers = answers(&mut generator);
    let mut definitions = generator.take_definitions(true);
    let version = json!({ "description": "The version of the protocol.", "const": VERSION });
    let mut names = Vec::new();
    for of in ["Request", "Reply"] {
        let lines = definitions.get_mut(of).and_then(|lines| lines["oneOf"].as_array_mut());
        for line in lines.into_iter().flatten() {
            line["properties"][MEMBER] = version.clone();
            match line["properties"]["do"]["const"].as_str() {
                Some(name) => names.push(name.to_string()),
                None => {
                    line["required"].as_array_mut().into_iter().for_each(|r| r.push(MEMBER.into()))
                }
            }
        }
    }
    let code = |(code, meaning): &(&str, &str)| json!({ "const": code, "description": meaning });
    let mut codes: Vec<Value> = CODES.iter().map(code).collect();
    codes.push(json!({ "type": "string", "description": "A code of a later release." }));
    if let Some(refusal) = definitions.get_mut("Refusal") {
        refusal["properties"]["code"]["anyOf"] = codes.into();
    }
    let answers: Map<String, Value> =
        names.into_iter().zip(answers.into_iter().map(Value::from)).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Catena's control protocol",
        "description": "Lines of JSON on the control socket of an instance: requests, and replies.",
        "version": VERSION,
        "oneOf": [request, reply],
        "answers": answers,
        "$defs": definitions,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What `catena ctl` and an instance of version 1 said to each other.
    const RECORDED: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages/control-1.txt"));

    fn value(line: &str) -> Value {
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn recorded_messages_are_read_and_written_as_they_were() {
        let (mut request, mut seen) = (None, BTreeSet::new());
        for line in RECORDED.lines() {
            let (side, line) = line.split_at(2);
            let again = match (side, &request) {
                ("> ", _) => {
                    let read =
                        Request::read(line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"));
                    seen.insert(value(line)["do"].as_str().unwrap().to_string());
                    request.insert(read).line().unwrap()
                }
                ("< ", Some(request)) => {
                    let reply = value(line);
                    seen.extend(reply.as_object().unwrap().keys().map(|kind| format!("<{kind}")));
                    request.reread(line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"))
                }
                _ => panic!("neither a request nor a reply: {side}{line}"),
            };
            assert_eq!(value(&again), value(line));
        }
        let codes: BTreeSet<&str> = CODES.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes.len(), CODES.len(), "a code means one thing");
        let requests = schema()["answers"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let replies = ["<ok", "<error", "<more", "<bytes"].map(str::to_string);
        let missing: Vec<_> =
            requests.iter().chain(&replies).filter(|m| !seen.contains(*m)).collect();
        assert!(missing.is_empty(), "not recorded: {missing:?}");
    }

    #[test]
    fn requests_of_other_versions_and_with_unknown_members_are_refused() {
        let read = |line: &str| Request::read(line.as_bytes());
        let status = Request::Status(Status {});
        assert_eq!(read(r#"{"do":"status"}"#).unwrap(), status);
        assert_eq!(read(r#"{"do":"status","version":1}"#).unwrap(), status);
        let other = read(r#"{"do":"anything","version":2,"more":true}"#).unwrap_err();
        assert_eq!(other.code(), "protocol-version");
        assert_eq!(
            other.to_string(),
            "the client uses version 2 of the control protocol, and the instance version 1"
        );
        for (line, why) in [
            ("", "EOF"),
            ("[]", "expected a map"),
            (r#"{"do":"status","version":"1"}"#, "expected u32"),
            (r#"{"do":"status","of":"everything"}"#, "unknown field `of`"),
            (r#"{"do":"swap","path":"a","try":true}"#, "unknown field `try`"),
            (r#"{"do":"read"}"#, "missing field `handler`"),
            (r#"{"do":"write","handler":7}"#, "expected a string"),
            (r#"{"do":"dance"}"#, "unknown variant `dance`"),
            (r#"{"version":1}"#, "missing field `do`"),
        ] {
            let wrong = read(line).unwrap_err();
            assert!(
                wrong.code() == "request" && wrong.to_string().contains(why),
                "{line}: {wrong}"
            );
        }
    }

    #[test]
    fn replies_of_other_versions_are_refused_and_new_members_passed_over() {
        let read = |line: &str| Reply::<Moved>::read(line.as_bytes());
        let moved = r#"{"groups":1,"waited_ms":0.5,"packets":2,"held_back":3,"new":4}"#;
        let got = read(&format!(r#"{{"version":1,"ok":{moved}}}"#)).unwrap();
        let of = Moved { groups: 1, waited_ms: 0.5, packets: 2, held_back: 3 };
        assert_eq!(got, Reply::Ok(of));
        for version in ["", r#""version":2,"#] {
            let other = read(&format!(r#"{{{version}"ok":{moved}}}"#)).unwrap_err();
            assert_eq!(other.code(), "protocol-version");
        }
        assert_eq!(read(r#"{"version":1,"ok":{}}"#).unwrap_err().code(), "reply");
    }
}
