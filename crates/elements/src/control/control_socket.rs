//! ControlSocket.

use std::sync::Arc;

use ir::Model;

use crate::configure::{Configure, Failed};
use crate::device::{ControlAddress, ControlSocketRequest};
use crate::element::{Element, Handler, HandlerContext};

element! {
    /// ControlSocket(TYPE, ADDRESS [, KEYWORDS]) -- lets other programs read and write handlers
    ///
    /// Opens a socket on which programs can read and write handlers while the chain runs, with
    /// version 1.3 of Click's ControlSocket protocol. ControlSocket(TCP, PORT) listens on a TCP
    /// port of this machine; PORT+ takes one of the next ten if it is taken. Nobody who connects is
    /// asked who he is. ControlSocket(UNIX, FILENAME) listens on a socket in the file system, which
    /// only the user can use whom the process belongs to. One that nobody listens on any more is
    /// replaced.
    ///
    /// = KEYWORDS
    ///
    /// READONLY (bool, default false): whether handlers can only be read.
    /// LOCALHOST (bool, default true): whether only programs on this machine can connect to a port.
    /// Click's default is false.
    /// VERBOSE (bool, default false): whether connections are announced.
    /// RETRIES (number, default 0): how many more times opening is tried, once a second.
    /// RETRY_WARNINGS (bool, default true): whether a try that failed is announced.
    ///
    /// = HANDLERS
    ///
    /// port (read): the port it listens on.
    /// filename (read): the socket it listens on.
    ///
    /// = SEE ALSO
    ///
    /// Script
    ControlSocket {
        category: Control, ports: "0/0", processing: "a/a",
        samples: []
    }
}

/// See [`ControlSocket::CLASS`].
pub(crate) struct ControlSocket {
    request: ControlSocketRequest,
}

impl ControlSocket {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let span = cx.span();
        let mut arguments =
            cx.arguments(&["READONLY", "LOCALHOST", "VERBOSE", "RETRIES", "RETRY_WARNINGS"]);
        let kind: String = arguments.required("TYPE");
        let address = arguments.next_plain();
        let read_only = arguments.keyword("READONLY").unwrap_or(false);
        let localhost = arguments.keyword("LOCALHOST").unwrap_or(true);
        let address = match (kind.to_ascii_uppercase().as_str(), &address) {
            ("TCP", Some(port)) => {
                let (number, search) = match port.text.strip_suffix('+') {
                    Some(number) => (number, true),
                    None => (port.text.as_str(), false),
                };
                let number: Option<u16> = number.parse().ok();
                if number.is_none() {
                    arguments.error(port, format!("'{}' is not a TCP port", port.text));
                }
                ControlAddress::Tcp { port: number.unwrap_or(0), search, localhost }
            }
            ("UNIX", Some(path)) => {
                ControlAddress::Unix { path: arguments.parse("FILENAME", path).unwrap_or_default() }
            }
            (other, _) => {
                let message = match other {
                    "TCP" => "a port is missing".to_string(),
                    "UNIX" => "a file name is missing".to_string(),
                    _ => format!("'{kind}' is not TCP or UNIX"),
                };
                let error = ir::Diagnostic::error("bad-argument", message);
                arguments.report(error.label(span, ""));
                ControlAddress::Unix { path: String::new() }
            }
        };
        let request = ControlSocketRequest {
            address,
            read_only,
            verbose: arguments.keyword("VERBOSE").unwrap_or(false),
            retries: arguments.keyword("RETRIES").unwrap_or(0),
            retry_warnings: arguments.keyword("RETRY_WARNINGS").unwrap_or(true),
            bound: Arc::default(),
        };
        arguments.finish()?;
        Ok(Self { request })
    }
}

impl Element for ControlSocket {
    fn model(&self) -> Model {
        Model::default()
    }

    fn control_socket(&self) -> Option<ControlSocketRequest> {
        Some(self.request.clone())
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("port"), Handler::read("filename")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        match (&self.request.address, handler) {
            (ControlAddress::Tcp { port, .. }, "port") => {
                Ok(self.request.bound.get().unwrap_or(port).to_string())
            }
            (ControlAddress::Unix { path }, "filename") => Ok(path.clone()),
            _ => Err(format!("the socket has no {handler}")),
        }
    }
}
