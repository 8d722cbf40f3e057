//! Handlers that elements write when something happens to them.

use click::config::Argument;
use ir::Diagnostic;

use crate::argument::FromArgument;
use crate::configure::{Failed, Initialize};
use crate::context::Context;
use crate::element::HandlerCalls;
use crate::names::Names;

/// A handler and the value to write to it: `switch.switch 1`, `stop`.
#[derive(Clone, Debug)]
pub(crate) struct HandlerCall {
    handler: String,
    value: String,
    at: Argument,
}

impl FromArgument for HandlerCall {
    const EXPECTED: &'static str = "a handler and its value such as 'counter.reset'";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        let (handler, value) = argument.split_word();
        if handler.text.is_empty() {
            return Err("a handler is missing".to_string());
        }
        Ok(Self { handler: handler.text.clone(), value: value.text, at: handler })
    }
}

impl HandlerCall {
    /// A call that stands in no configuration.
    pub(crate) fn new(handler: &str, value: &str) -> Self {
        let at = Argument::bare(handler);
        Self { handler: handler.to_string(), value: value.to_string(), at }
    }

    /// Checks that the element that it names is there.
    pub(crate) fn check(&self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        match self.handler.rsplit_once('.') {
            Some((element, _)) if !element.is_empty() && cx.resolve(element).is_none() => {
                let message = format!("no element named '{element}'");
                cx.report(Diagnostic::error("unknown-element", message).label(self.at.span, ""));
                Err(Failed)
            }
            _ => Ok(()),
        }
    }

    /// What elements make of their calls.
    pub(crate) fn all<'a>(calls: impl IntoIterator<Item = &'a HandlerCall>) -> HandlerCalls {
        let mut calls = calls.into_iter().peekable();
        if calls.peek().is_none() {
            return HandlerCalls::None;
        }
        // What is written may itself be a call (COUNT_CALL).
        let words = |call: &'a HandlerCall| call.value.split_whitespace().chain([&*call.handler]);
        let names = calls.flat_map(words).map(element_of).filter(|name| !name.is_empty());
        HandlerCalls::Of(names.map(str::to_string).collect())
    }

    /// Whether it stops the driver.
    pub(crate) fn stops_driver(&self) -> bool {
        matches!(self.handler.as_str(), "stop" | ".stop")
    }

    /// Writes the handler now.
    pub(crate) fn write(&self, cx: &mut Context<'_>) {
        if let Err(why) = cx.write_handler(&self.handler, &self.value) {
            cx.error(&format!("{}: {why}", self.handler));
        }
    }

    /// Writes the handler once all packets have arrived where they are going.
    pub(crate) fn write_later(&self, cx: &mut Context<'_>) {
        cx.write_later(&self.handler, &self.value);
    }
}

/// The element whose handler this is; empty for the driver's.
pub(crate) fn element_of(handler: &str) -> &str {
    handler.rsplit_once('.').map_or("", |(element, _)| element)
}
