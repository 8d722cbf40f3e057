//! `catena ctl trace`: traces packets through a chain that runs.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

use compiler::Synthesis;
use dataplane::ports::InUse;
use dataplane::trace::live::{self, Tracing};
use dataplane::trace::{Fate, Step, Trace};
use dataplane::{Router, Tap, Tapped};
use elements::selector::Selector;
use ir::program::{End, Step as ProgramStep};
use ir::{Graph, Model};
use serde_json::Value;

use super::edge::{self, Names};
use super::protocol::{self, FollowedPacket, Piece, TraceEnd};
use super::stream::Stream;
use super::{Answer, Controlled, Presenter, answer};
use crate::error::Error;
use crate::installer;
use crate::instance::{Configuration, TapPoint, Watcher};

/// Packets that are traced unless asked for otherwise.
const PACKETS: u64 = 10;
/// Packets that are traced before those in front are told: a client that reads slowly costs
/// neither memory nor the workers' time.
const AHEAD: u64 = 64;

enum Heard {
    Traced(Box<live::TracedPacket>),
    Places(Vec<TapPoint>),
    Over(Option<String>),
}

impl From<live::TracedPacket> for Heard {
    fn from(traced: live::TracedPacket) -> Self {
        Self::Traced(Box::new(traced))
    }
}

struct Watch {
    edge: Option<String>,
    interfaces: Vec<(String, String)>,
    tracing: Tracing<Heard>,
    configuration: Configuration,
    /// What the elements mean.
    models: Vec<Model>,
    is_synthesised: bool,
    workers: usize,
    /// What the chain becomes where packets are traced from; nothing if it is not synthesised.
    synthesis: OnceLock<Option<Synthesis>>,
}

/// What a chain becomes that is tapped at places, as far as no tap is part of it.
fn synthesise(graph: &Graph, models: &[Model], places: &[TapPoint]) -> Synthesis {
    let known = graph.nodes.len();
    let taps: Vec<Tapped> = (known..)
        .zip(places)
        .map(|(node, place)| Tapped { node, from: place.from, to: place.to })
        .collect();
    let models: Vec<Model> =
        models.iter().cloned().chain(taps.iter().map(|_| installer::tap_model())).collect();
    let mut synthesis = compiler::synthesize(&installer::tapped(graph, &taps), &models);
    synthesis.programs.retain(|program| {
        let mut ends = program.exits().map(|(_, exit)| exit.end);
        ends.all(|end| !matches!(end, End::Push { to, .. } if to.node >= known))
    });
    synthesis.notes.retain(|note| note.element < known);
    synthesis
}

impl Watcher for Watch {
    fn places(
        &self,
        configuration: &Configuration,
        devices: &InUse,
    ) -> Result<Vec<TapPoint>, Error> {
        if !configuration.is(&self.configuration) {
            return Err("the configuration changed".into());
        }
        let names = Names { configuration, devices, interfaces: &self.interfaces };
        match &self.edge {
            Some(edge) => names.edges(edge),
            None => Ok(names.entrances()),
        }
    }

    fn begins(&self, _: u32, places: &[TapPoint]) {
        let graph = &self.configuration.chain().graph;
        let made = || self.is_synthesised.then(|| synthesise(graph, &self.models, places));
        self.synthesis.get_or_init(made);
        let _ = self.tracing.to.send(Heard::Places(places.to_vec()));
    }

    fn tap(&self, router: &mut Router, place: &TapPoint, number: u32, worker: u32) -> Option<Tap> {
        let synthesis = self.synthesis.get().and_then(Option::as_ref);
        let programs = synthesis.map_or(Vec::new(), |s| s.programs.clone()).into();
        let tracing = Tracing { programs, ..self.tracing.clone() };
        tracing.tap(router, (place.from, place.to), number, worker)
    }

    fn ends(&self, why: &str) {
        let _ = self.tracing.to.send(Heard::Over(Some(why.to_string())));
    }
}

/// Whether a packet came out of the elements as its programs say; `None` if none was asked.
fn agree(steps: &[Step], synthesis: &Synthesis) -> Option<bool> {
    let agrees = |(at, step): (usize, &Step)| {
        let passage = step.passage.as_ref()?;
        let program = synthesis.programs.get(passage.program)?;
        let ProgramStep::Exit(exit) = program.step(*passage.steps.last()?) else { return None };
        let later = &steps[at..];
        Some(match exit.end {
            End::Push { to, .. } => {
                let comes = |s: &&Step| (s.node, s.input) == (to.node, Some(to.port));
                let came = later.iter().find(comes).and_then(|s| s.before.as_ref());
                came.is_some_and(|came| came.data() == passage.after.data())
            }
            End::Drop { element, reason } => later.iter().any(|s| {
                s.node == element && s.outcomes.iter().any(|o| o.fate == Fate::Dropped(reason))
            }),
            // Programs that packets are traced through are whole.
            End::Handoff { .. } => return None,
        })
    };
    steps.iter().enumerate().filter_map(agrees).reduce(|all, one| all && one)
}

/// A packet that was traced through a chain that runs.
pub struct PacketTrace<'a> {
    /// The configuration that it runs.
    pub configuration: &'a Configuration,
    /// What the elements mean.
    pub models: &'a [Model],
    /// What the chain becomes where packets are traced from; nothing if it is not synthesised.
    pub synthesis: Option<&'a Synthesis>,
    /// What happened to the packet.
    pub trace: &'a Trace,
    /// The connection that it was met on first.
    pub entrance: &'a str,
    /// Whether its programs would have done the same; nothing if none was asked.
    pub agrees: Option<bool>,
    /// Why it was not traced to its end.
    pub unfinished: Option<&'a str>,
    /// The worker that had it, where there are several.
    pub worker: Option<u32>,
}

impl Watch {
    /// What clients are sent of a packet.
    fn piece(
        &self,
        traced: live::TracedPacket,
        place: Option<&TapPoint>,
        (number, colours): (u64, bool),
        presenter: &dyn Presenter,
    ) -> Piece {
        let live::TracedPacket { worker, steps, unfinished, .. } = traced;
        let synthesis = self.synthesis.get().and_then(Option::as_ref);
        let agrees = synthesis.and_then(|synthesis| agree(&steps, synthesis));
        let time = steps.first().map(|step| step.time);
        let (story, text) = presenter.packet_trace(
            &PacketTrace {
                configuration: &self.configuration,
                models: &self.models,
                synthesis,
                trace: &Trace::of(steps),
                entrance: place.map_or("", |place| place.name.as_str()),
                agrees,
                unfinished,
                worker: (self.workers > 1).then_some(worker),
            },
            colours,
        );
        let story = match story {
            Value::Object(story) => story,
            _ => Default::default(),
        };
        let unfinished = unfinished.map(str::to_string);
        let packet = FollowedPacket { number, worker, time, agrees, unfinished, story };
        Piece::Followed(Box::new(protocol::Followed { packet, text }))
    }
}

/// Executes a request: sends the story of each packet until there were enough.
///
/// # Errors
/// What is wrong with the request. The outer error is that of a client that is gone.
pub(super) fn serve(
    controlled: &Arc<Controlled>,
    asked: &protocol::Trace,
    stream: &mut Stream,
) -> io::Result<Answer> {
    let selector = match Selector::new(&asked.filter) {
        Ok(selector) => selector,
        Err(why) => return Ok(Err(Error::Filter(why))),
    };
    let most = asked.count.unwrap_or(PACKETS);
    let instance = &controlled.instance;
    let (_, configuration) = instance.current();
    let models = match instance.meaning(&configuration) {
        Ok(models) => models,
        Err(why) => return Ok(Err(why)),
    };
    let (to, heard): (Sender<Heard>, _) = channel();
    let mut granted = most.min(AHEAD);
    let left = Arc::new(AtomicU64::new(granted));
    let tracing =
        Tracing { selector, left: Arc::clone(&left), programs: [].into(), to: to.clone() };
    let watch = Watch {
        edge: asked.edge.clone(),
        interfaces: controlled.interfaces.clone(),
        workers: instance.fleet().len(),
        tracing,
        configuration,
        models,
        is_synthesised: instance.path().is_synthesised(),
        synthesis: OnceLock::new(),
    };
    let watch = Arc::new(watch);
    let _tapping = match instance.tap(Arc::clone(&watch) as Arc<dyn Watcher>) {
        Ok(tapping) => tapping,
        Err(why) => return Ok(Err(why)),
    };
    stream.on_hang_up(move || drop(to.send(Heard::Over(None))))?;
    let (mut places, mut told, mut ended) = (Vec::new(), 0, None);
    while told < most
        && let Ok(next) = heard.recv()
    {
        match next {
            Heard::Traced(traced) => {
                told += 1;
                let place = places.get(traced.place as usize);
                let presenter = &*controlled.presenter;
                let number = (told, asked.colours);
                stream.more(watch.piece(*traced, place, number, presenter))?;
                if granted < most {
                    granted += 1;
                    left.fetch_add(1, Ordering::Relaxed);
                }
            }
            Heard::Places(all) => {
                stream.more(edge::piece(&all))?;
                places = all;
            }
            Heard::Over(why) => {
                ended = why;
                break;
            }
        }
    }
    Ok(answer(asked, Ok(TraceEnd { followed: told, ended })))
}
