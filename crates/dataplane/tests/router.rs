//! The router's turns: tasks, timers, stops, and handlers that are written later.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;

use catena_dataplane::clock::VirtualClock;
use catena_dataplane::control_socket::{ControlServer, SocketFiles};
use catena_dataplane::{InterpretedProgram, Rest, Router, Stage, StageContext, Taker, Transcript};
use elements::Element;
use elements::context::Context;
use elements::device::{ControlAddress, ControlSocketRequest};
use elements::element::{Handler, HandlerCalls, HandlerContext, NamedHandler, Work};
use ir::program::{Atom, End, Exit, Program, Step, StepId, Term, TermId, Writes};
use ir::{Base, Edge, Field, Graph, IntervalSet, Model, Node, Port, Processing, Reason, Store};
use net::Batch;

type Journal = Rc<RefCell<Vec<String>>>;
type Act = fn(&mut Actor, &mut Context<'_>) -> Work;

/// An element that does what the test tells it, and writes down what happens to it.
struct Actor {
    name: &'static str,
    journal: Journal,
    turns: u32,
    task: Option<Act>,
    on_wake: fn(&mut Actor, &mut Context<'_>),
    stops: u32,
    value: String,
}

impl Actor {
    fn note(&self, what: impl Into<String>) {
        self.journal.borrow_mut().push(format!("{}: {}", self.name, what.into()));
    }
}

impl Element for Actor {
    fn push(&mut self, _: usize, batch: &mut Batch, _: &mut Context<'_>) {
        self.note(format!("{} packets", batch.len()));
    }

    fn model(&self) -> Model {
        Model::opaque(if self.value == "another model" { "another test" } else { "test" })
    }

    fn handler_calls(&self) -> HandlerCalls {
        HandlerCalls::Any
    }

    fn has_task(&self) -> bool {
        self.task.is_some()
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        self.turns += 1;
        self.task.map_or(Work::Idle, |task| task(self, cx))
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        (self.on_wake)(self, cx);
    }

    fn on_stop(&mut self, _: &mut Context<'_>) -> bool {
        let taken = self.stops > 0;
        self.stops = self.stops.saturating_sub(1);
        taken
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("value"), Handler::read("config")] }
    }

    fn named_handlers(&self) -> Vec<NamedHandler> {
        vec![NamedHandler { name: "port3".into(), read: true, write: false }]
    }

    fn read(
        &self,
        handler: &str,
        parameter: &str,
        _: &HandlerContext<'_>,
    ) -> Result<String, String> {
        Ok(format!("{handler} {parameter} {}", self.value))
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.note(format!("value {value}"));
        self.value = value.into();
        Ok(())
    }
}

fn router(journal: &Journal, actors: Vec<Actor>, chained: bool) -> Router {
    let n = actors.len();
    let ports = |has: bool| if has { vec![Processing::Push] } else { vec![] };
    let nodes = actors.iter().enumerate().map(|(i, a)| Node {
        name: a.name.into(),
        class: "Actor".into(),
        config: "as told".into(),
        span: ir::Span::default(),
        group: None,
        inputs: ports(chained && i > 0),
        outputs: ports(chained && i + 1 < n),
    });
    let edge = |i| Edge {
        from: Port { node: i, port: 0 },
        to: Port { node: i + 1, port: 0 },
        span: ir::Span::default(),
    };
    let edges = if chained { (0..n - 1).map(edge).collect() } else { vec![] };
    let graph = Graph { nodes: nodes.collect(), edges, groups: vec![], wires: vec![] };
    journal.borrow_mut().clear();
    let elements = actors.into_iter().map(|a| Box::new(a) as Box<dyn Element>).collect();
    let clock = Box::new(VirtualClock::new(1000));
    Router::new(&graph, elements, clock, 1, Box::new(Transcript::default()))
}

fn actor(name: &'static str, journal: &Journal, task: Option<Act>) -> Actor {
    let journal = Rc::clone(journal);
    Actor { name, journal, turns: 0, task, on_wake: |_, _| {}, stops: 0, value: String::new() }
}

fn counted(actor: &mut Actor, cx: &mut Context<'_>) -> Work {
    actor.note(format!("turn {}", actor.turns));
    if actor.turns == 2 {
        cx.stop();
        return Work::Ended;
    }
    Work::Done
}

#[test]
fn tasks_take_turns_and_a_stop_ends_the_round() {
    let journal = Journal::default();
    let actors = vec![
        actor("a", &journal, Some(counted)),
        actor("b", &journal, Some(counted)),
        actor("c", &journal, None),
    ];
    let mut router = router(&journal, actors, false);
    assert_eq!(router.run(|_, _| false), Rest::Stopped);
    assert_eq!(*journal.borrow(), ["a: turn 1", "b: turn 1", "a: turn 2"]);
}

#[test]
fn a_router_that_is_finished_does_nothing_more() {
    let journal = Journal::default();
    let endless: Act = |actor, cx| {
        actor.note(format!("turn {}", actor.turns));
        cx.wake_at(cx.now());
        Work::Done
    };
    let mut source = actor("a", &journal, Some(endless));
    source.on_wake = |a, _| a.note("awake");
    let mut router = router(&journal, vec![source], false);
    assert_eq!(router.round(), Rest::Busy);
    router.finish();
    assert_eq!((router.round(), router.round()), (Rest::Stopped, Rest::Stopped));
    assert_eq!(*journal.borrow(), ["a: awake", "a: turn 1"]);
}

#[test]
fn an_element_takes_over_as_many_stops_as_it_wants() {
    let journal = Journal::default();
    let mut manager = actor("m", &journal, None);
    manager.stops = 1;
    let actors =
        vec![manager, actor("a", &journal, Some(counted)), actor("b", &journal, Some(counted))];
    let mut router = router(&journal, actors, false);
    assert_eq!(router.run(|_, _| false), Rest::Stopped);
    assert_eq!(*journal.borrow(), ["a: turn 1", "b: turn 1", "a: turn 2", "b: turn 2"]);
}

#[test]
fn time_passes_only_when_all_rest_and_the_earliest_alarm_counts() {
    let journal = Journal::default();
    let mut sleeper = actor("s", &journal, None);
    sleeper.on_wake = |a, cx| {
        a.note(format!("at {}", cx.now()));
        a.turns += 1;
        if a.turns < 3 {
            cx.wake_at(cx.now() + 700);
            cx.wake_at(cx.now() + 500);
            cx.wake_at(cx.now() + 600);
        }
    };
    let mut router = router(&journal, vec![sleeper], false);
    assert_eq!(router.run(|_, _| false), Rest::Idle);
    assert_eq!(*journal.borrow(), ["s: at 1000", "s: at 1500", "s: at 2000"]);
}

#[test]
fn an_alarm_that_is_set_again_at_once_does_not_hold_up_the_round() {
    let journal = Journal::default();
    let mut restless = actor("r", &journal, None);
    restless.on_wake = |_, cx| cx.wake_at(0);
    let mut router = router(&journal, vec![restless, actor("a", &journal, Some(counted))], false);
    assert_eq!(router.run(|_, _| false), Rest::Stopped);
    assert_eq!(journal.borrow().len(), 2);
}

#[test]
fn handlers_put_off_are_written_after_the_packets_arrived() {
    let journal = Journal::default();
    let source: Act = |_, cx| {
        cx.write_later("value", "own");
        cx.write_later("z.value", "other");
        cx.write_later("nobody.value", "lost");
        let packet = cx.core.pool.packet(b"x");
        cx.emit(0, packet);
        Work::Ended
    };
    let actors = vec![actor("a", &journal, Some(source)), actor("z", &journal, None)];
    let mut router = router(&journal, actors, true);
    assert_eq!(router.run(|_, _| false), Rest::Idle);
    assert_eq!(*journal.borrow(), ["z: 1 packets", "a: value own", "z: value other"]);
    assert_eq!(router.errors(), 1);
}

#[test]
fn a_handler_that_is_written_wakes_an_ended_task() {
    let journal = Journal::default();
    let once: Act = |a, _| {
        a.note("turn");
        Work::Ended
    };
    let mut router = router(&journal, vec![actor("a", &journal, Some(once))], false);
    assert_eq!(router.run(|_, _| false), Rest::Idle);
    assert_eq!(router.run(|_, _| false), Rest::Idle);
    router.write_handler("a.value", "1").unwrap();
    assert_eq!(router.run(|_, _| false), Rest::Idle);
    assert_eq!(*journal.borrow(), ["a: turn", "a: value 1", "a: turn"]);
}

#[test]
fn handlers_are_found_by_name_and_number() {
    let journal = Journal::default();
    let mut router = router(&journal, vec![actor("a", &journal, None)], false);
    assert_eq!(router.read_handler("a.value 1 2"), Ok("value 1 2 ".into()));
    assert_eq!(router.read_handler("1.port3"), Ok("port3  ".into()));
    assert_eq!(router.read_handler("a.class"), Ok("Actor".into()));
    // An element's own handler hides the general one of that name.
    assert_eq!(router.read_handler("a.config"), Ok("config  ".into()));
    assert!(router.has_handler("a.value", true) && !router.has_handler("a.port3", true));
    for wrong in ["a.none", "2.value", "0.value", "b.value", "stop", "none", "", ".", "a."] {
        assert!(router.read_handler(wrong).is_err(), "{wrong}");
    }
    assert!(router.write_handler("a.port3", "").is_err());
    assert_eq!(router.write_handler("stop", ""), Ok(()));
    assert_eq!(router.run(|_, _| false), Rest::Stopped);
}

/// A socket on a port of the router's, and a client of it for each that is asked for.
fn control(router: &Router) -> (ControlServer, impl Fn() -> TcpStream + use<>) {
    let bound: Arc<std::sync::OnceLock<u16>> = Arc::default();
    let request = ControlSocketRequest {
        address: ControlAddress::Tcp { port: 0, search: false, localhost: true },
        read_only: false,
        verbose: true,
        retries: 0,
        retry_warnings: true,
        bound: Arc::clone(&bound),
    };
    let files = SocketFiles::default();
    let server = ControlServer::open(router.control_sockets(), vec![request], &files).unwrap();
    let port = *bound.get().expect("the port is known");
    let connect = move || {
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.set_nonblocking(true).unwrap();
        client
    };
    (server, connect)
}

/// What a client is told until this is the end of it, or it is hung up on.
fn told(
    server: &mut ControlServer,
    router: &mut Router,
    client: &mut TcpStream,
    end: &str,
) -> String {
    let (mut answer, mut buffer) = (Vec::new(), [0; 256]);
    while end.is_empty() || !answer.ends_with(end.as_bytes()) {
        server.poll(router);
        match client.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => answer.extend_from_slice(&buffer[..n]),
            Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
        }
    }
    String::from_utf8(answer).unwrap()
}

#[test]
fn handlers_are_read_and_written_through_a_socket() {
    let journal = Journal::default();
    let mut router = router(&journal, vec![actor("a", &journal, None)], false);
    let (mut server, connect) = control(&router);
    let mut client = connect();
    client.write_all(b"WRITE a.value 7\r\nREAD 1.value\r\nQUIT\r\n").unwrap();
    assert_eq!(
        told(&mut server, &mut router, &mut client, ""),
        "Click::ControlSocket/1.3\r\n200 Write handler 'a.value' OK\r\n\
         200 Read handler '1.value' OK\r\nDATA 8\r\nvalue  7200 Goodbye!\r\n"
    );
    assert_eq!(*journal.borrow(), ["a: value 7"]);
    let said = server.take_messages();
    let [who, opened] = &said[..] else { panic!("{said:?}") };
    assert!(who.ends_with(": every user of this host can read and write handlers"), "{who}");
    assert_eq!(opened, "control socket: opened connection");
}

#[test]
fn clients_that_are_too_many_are_told_so() {
    let journal = Journal::default();
    let mut router = router(&journal, vec![actor("a", &journal, None)], false);
    let (mut server, connect) = control(&router);
    let mut served: Vec<TcpStream> = Vec::new();
    for _ in 0..64 {
        let mut client = connect();
        let greeting = told(&mut server, &mut router, &mut client, "\r\n");
        assert_eq!(greeting, "Click::ControlSocket/1.3\r\n");
        served.push(client);
    }
    let refused = told(&mut server, &mut router, &mut connect(), "");
    assert_eq!(refused, "Click::ControlSocket/1.3\r\n421 64 clients are connected\r\n");
    let last = server.take_messages().pop().unwrap();
    assert!(last.ends_with(": turned away connection"), "{last}");
    // One that leaves makes room.
    let mut leaves = served.pop().unwrap();
    leaves.write_all(b"QUIT\r\n").unwrap();
    assert_eq!(told(&mut server, &mut router, &mut leaves, ""), "200 Goodbye!\r\n");
    let greeting = told(&mut server, &mut router, &mut connect(), "\r\n");
    assert_eq!(greeting, "Click::ControlSocket/1.3\r\n");
}

/// A stage that sends every second packet to the element's native code, and the rest past it.
struct Halves {
    past: Port,
    passed: u64,
}

impl Stage for Halves {
    fn process(&mut self, batch: &mut Batch, cx: &mut StageContext<'_>) {
        let (mut past, mut own) = (cx.core.batch(), cx.core.batch());
        for (i, packet) in batch.drain().enumerate() {
            if i % 2 == 0 { past.push(packet) } else { own.push(packet) }
        }
        self.passed += past.len() as u64;
        cx.push(self.past, past, Taker::Stage, 0);
        cx.push(Port { node: 1, port: 0 }, own, Taker::Element, 0);
    }

    fn settle(&mut self, cx: &mut StageContext<'_>) {
        cx.noted(1, Reason("passed"), std::mem::take(&mut self.passed));
    }
}

/// A program behind element 1.
fn program(terms: Vec<Term>, steps: Vec<Step>) -> Program {
    let entry = Port { node: 1, port: 0 };
    Program {
        entry,
        continuation: None,
        terms,
        state: Vec::new(),
        tables: Vec::new(),
        lookups: Vec::new(),
        steps,
    }
}

fn exit(end: End) -> Step {
    let visited = vec![Port { node: 1, port: 0 }];
    let (effects, writes) = (Vec::new(), Writes::default());
    Step::Exit(Box::new(Exit { effects, writes, end, barrier: None, visited, copies: vec![] }))
}

#[test]
fn an_interpreted_program_takes_packets_one_by_one() {
    let journal = Journal::default();
    let names = ["a", "b", "c"];
    let mut router = router(&journal, names.map(|n| actor(n, &journal, None)).into(), true);
    let first = Term::Input(Field::bytes(Base::Data, 0, 1));
    let is = |value| Atom::Test(TermId(0), IntervalSet::single(value).into());
    let test = |value, yes, no| {
        let (atom, yes, no) = (is(value), StepId(yes), StepId(no));
        Step::Test { atom, yes, no, element: 1 }
    };
    let to = |node, native| End::Push { to: Port { node, port: 0 }, native };
    let drop = End::Drop { element: 0, reason: Reason("two") };
    let program = program(
        vec![first],
        // What none of the tests is about leads nowhere: a fault.
        vec![
            test(1, 3, 1),
            test(2, 4, 2),
            test(3, 5, 9),
            exit(to(2, false)),
            exit(drop),
            exit(to(1, true)),
        ],
    );
    let store = Rc::new(RefCell::new(Store::new()));
    router
        .programs()
        .install_stage(&program, Box::new(InterpretedProgram::new(program.clone(), &store)));
    let mut batch = Batch::new();
    let bytes: [&[u8]; 6] = [&[1], &[2, 2], &[3], &[1], &[4], &[2]];
    batch.extend(bytes.map(|bytes| router.core().pool.packet(bytes)));
    router.push(Port { node: 1, port: 0 }, batch);
    let packets = std::mem::take(&mut *journal.borrow_mut());
    let one = |name| format!("{name}: 1 packets");
    assert_eq!(packets, [one("c"), one("b"), one("c"), one("c")]);
    let mut lost = Vec::new();
    for (name, _, tally, _) in router.report() {
        let lines = tally.lines().iter();
        lost.extend(
            lines.map(|l| format!("{name} {} {} {}", l.reason, l.dropped, l.dropped_bytes)),
        );
    }
    lost.retain(|line| !line.starts_with('c'));
    assert_eq!(lost, ["a two 2 3", "b program-fault 1 1"]);
    assert_eq!(router.errors(), 1);
}

#[test]
fn a_stage_takes_packets_until_its_elements_mean_something_else() {
    let journal = Journal::default();
    let names = ["a", "b", "c"];
    let mut router = router(&journal, names.map(|n| actor(n, &journal, None)).into(), true);
    let entry = Port { node: 1, port: 0 };
    let past = End::Push { to: Port { node: 2, port: 0 }, native: false };
    let program = program(Vec::new(), vec![exit(past)]);
    router
        .programs()
        .install_stage(&program, Box::new(Halves { past: Port { node: 2, port: 0 }, passed: 0 }));
    let push = |router: &mut Router| {
        let mut batch = Batch::new();
        batch.extend((0..5).map(|_| router.core().pool.packet(&[0; 60])));
        router.push(Port { node: 0, port: 0 }, batch);
        std::mem::take(&mut *journal.borrow_mut())
    };
    let staged = ["a: 5 packets", "c: 3 packets", "b: 2 packets", "c: 2 packets"];
    assert_eq!(push(&mut router), staged);
    let noted = |router: &mut Router| {
        let of_b = router.report().find(|(name, ..)| *name == "b");
        of_b.map(|(_, _, tally, _)| tally.count(Reason("passed")))
    };
    assert_eq!(noted(&mut router), Some(3));
    router.write_handler("b.value", "the same model").unwrap();
    assert_eq!(push(&mut router)[1..], staged);
    assert_eq!(router.programs().stale(), []);
    router.write_handler("b.value", "another model").unwrap();
    assert_eq!(push(&mut router)[1..], ["a: 5 packets", "b: 5 packets", "c: 5 packets"]);
    assert_eq!(noted(&mut router), Some(6));
    // The planner is asked until it takes the entry and says that it has done all.
    let asked = Rc::new(RefCell::new(0));
    let count = Rc::clone(&asked);
    router.programs().set_planner(Box::new(move |router| {
        *count.borrow_mut() += 1;
        if *count.borrow() == 2 {
            assert_eq!(router.programs().stale(), [entry]);
            let halves = Halves { past: Port { node: 2, port: 0 }, passed: 0 };
            router.programs().install_stage(&program, Box::new(halves));
        }
        *count.borrow() == 3
    }));
    for _ in 0..6 {
        router.round();
    }
    assert_eq!(*asked.borrow(), 2);
    assert_eq!(push(&mut router), staged);
    // Without its stage an entry's elements go on, and count on.
    router.programs().uninstall(entry);
    assert!(!router.programs().is_stale());
    assert_eq!(push(&mut router), ["a: 5 packets", "b: 5 packets", "c: 5 packets"]);
    assert_eq!(noted(&mut router), Some(9));
}
