//! Counter.

use click::config::Argument;
use ir::model::StateKind;
use ir::{Model, Op, StateValue};
use net::Batch;

use crate::argument::{FromArgument, parse_value};
use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerCalls};
use crate::element_state::ElementState;
use crate::handler_call::HandlerCall;
use crate::names::Names;
use crate::rate::{AskedRates, show_real};

element! {
    /// Counter([KEYWORDS COUNT_CALL, BYTE_COUNT_CALL]) -- counts packets and bytes
    ///
    /// Passes packets unchanged and counts them.
    ///
    /// = KEYWORDS
    ///
    /// COUNT_CALL (N HANDLER [VALUE]): when N packets have been counted, VALUE is written to
    /// HANDLER, before the packets go on.
    /// BYTE_COUNT_CALL (N HANDLER [VALUE]): the same for N bytes.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// byte_count (read): bytes so far.
    /// rate (read): packets per second since the rate was last asked for, at least 0.1 s ago.
    /// byte_rate, bit_rate (read): the same for bytes and bits.
    /// reset, reset_counts (write): starts again from zero.
    /// count_call, byte_count_call (write): changes COUNT_CALL, BYTE_COUNT_CALL.
    /// count_call (read): the number of packets of COUNT_CALL.
    ///
    /// = EXAMPLE
    ///
    /// Counter(COUNT_CALL 1000 stop) stops the driver at the thousandth packet.
    ///
    /// = SEE ALSO
    ///
    /// AverageCounter
    Counter {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1)]
    }
}

/// See [`Counter::CLASS`].
#[derive(Default)]
pub(crate) struct Counter {
    packets: u64,
    bytes: u64,
    rates: AskedRates<2>,
    has_calls: bool,
    count_call: Option<Trigger>,
    byte_count_call: Option<Trigger>,
}

/// A handler that is written once when a number is reached.
#[derive(Clone, Debug)]
struct Trigger {
    at: u64,
    call: HandlerCall,
    fired: bool,
}

impl FromArgument for Trigger {
    const EXPECTED: &'static str = "a number and a handler such as '1000 stop'";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        let (at, call) = argument.split_word();
        let at = u64::from_argument(&at, names, element)?;
        let call = HandlerCall::from_argument(&call, names, element)?;
        Ok(Self { at, call, fired: false })
    }
}

impl Counter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["COUNT_CALL", "BYTE_COUNT_CALL"]);
        let count_call = arguments.keyword("COUNT_CALL");
        let byte_count_call = arguments.keyword("BYTE_COUNT_CALL");
        arguments.finish()?;
        let has_calls = count_call.is_some() || byte_count_call.is_some();
        Ok(Self { has_calls, count_call, byte_count_call, ..Self::default() })
    }

    #[cold]
    fn fire(&mut self, cx: &mut Context<'_>) {
        let calls = [(&mut self.count_call, self.packets), (&mut self.byte_count_call, self.bytes)];
        for (trigger, reached) in calls {
            if let Some(trigger) = trigger.as_mut().filter(|t| !t.fired && reached >= t.at) {
                trigger.fired = true;
                trigger.call.write(cx);
            }
        }
    }
}

impl Element for Counter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.packets += batch.len() as u64;
        self.bytes += batch.bytes();
        if self.has_calls {
            self.fire(cx);
        }
    }

    fn model(&self) -> Model {
        if self.has_calls {
            return Model::opaque("writes handlers");
        }
        let mut model = Model::default();
        let count = model.declare("count", StateKind::Counter);
        model.inputs = vec![vec![Op::Count(count), Op::emit(0u8)]];
        model
    }

    fn stops_driver(&self) -> bool {
        let mut triggers = [&self.count_call, &self.byte_count_call].into_iter().flatten();
        triggers.any(|trigger| trigger.call.stops_driver())
    }

    fn counted(&self) -> Option<(u64, u64)> {
        Some((self.packets, self.bytes))
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        to.set(name, "count", StateValue::Counter { packets: self.packets, bytes: self.bytes });
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        (self.packets, self.bytes) =
            from.counter(name, "count").unwrap_or((self.packets, self.bytes));
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        [&self.count_call, &self.byte_count_call]
            .into_iter()
            .flatten()
            .map(|trigger| trigger.call.check(cx))
            .fold(Ok(()), Result::and)
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        self.rates.restart([self.packets, self.bytes], cx.now());
    }

    fn handler_calls(&self) -> HandlerCalls {
        let triggers = [&self.count_call, &self.byte_count_call].into_iter().flatten();
        HandlerCall::all(triggers.map(|trigger| &trigger.call))
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("count"),
                Handler::count("byte_count"),
                Handler::count("rate"),
                Handler::count("byte_rate"),
                Handler::count("bit_rate"),
                Handler::write("reset"),
                Handler::write("reset_counts"),
                Handler::both("count_call"),
                Handler::write("byte_count_call"),
            ]
        }
    }

    fn call(&mut self, handler: &str, _: &str, cx: &mut Context<'_>) -> Result<String, String> {
        let mut rate = |which: usize| self.rates.ask([self.packets, self.bytes], cx.now())[which];
        Ok(match handler {
            "byte_count" => self.bytes.to_string(),
            "rate" => show_real(rate(0)),
            "byte_rate" => show_real(rate(1)),
            "bit_rate" => show_real(rate(1) * 8.0),
            "count_call" => self.count_call.as_ref().map_or(String::new(), |t| t.at.to_string()),
            _ => self.packets.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "count_call" => self.count_call = Some(parse_value(value)?),
            "byte_count_call" => self.byte_count_call = Some(parse_value(value)?),
            _ => {
                (self.packets, self.bytes) = (0, 0);
                self.rates.restart([0, 0], cx.now());
                for trigger in self.count_call.iter_mut().chain(&mut self.byte_count_call) {
                    trigger.fired = false;
                }
            }
        }
        self.has_calls = self.count_call.is_some() || self.byte_count_call.is_some();
        Ok(())
    }
}
