//! Scripts: what they print, when, and how they end a run.

use std::path::Path as Folder;

use dataplane::Rest;
use engine::session::Path;

use crate::support::{EPOCH, Started, start};

fn started(text: &str) -> Started {
    start("test", text, Folder::new("."), Path::Native)
        .unwrap_or_else(|(diagnostics, _)| panic!("{text}\nis refused: {diagnostics:?}"))
}

/// Runs a chain to its end; what it wrote to the standard output, and its errors.
fn run(text: &str) -> (String, Vec<String>) {
    let mut started = started(text);
    let mut rounds = 0;
    started.router.run(|_, _| {
        rounds += 1;
        rounds > 10_000
    });
    assert!(rounds < 10_000, "{text} goes on for ever");
    let heard = started.heard.0.borrow();
    (heard.output.clone(), heard.errors.clone())
}

#[track_caller]
fn prints(text: &str, output: &str) {
    assert_eq!(run(text), (output.to_string(), vec![]), "{text}");
}

#[track_caller]
fn fails(text: &str, output: &str, error: &str) {
    let (printed, errors) = run(text);
    assert_eq!(printed, output, "{text}");
    assert!(errors.len() == 1 && errors[0].contains(error), "{text}: {errors:?}");
}

#[test]
fn variables_are_substituted_and_quotes_kept_or_removed() {
    prints(
        "Script(set x 0, label again, print $x, set x $(add $x 1), goto again $(lt $x 3), stop)",
        "0\n1\n2\n",
    );
    prints("s :: Script(set x 5, print $(s.add $x $(s.mul 2 $x)))", "15\n");
    let counter = "Idle -> c :: Counter -> Idle;";
    prints(&format!("{counter} Script(print c.count)"), "0\n");
    prints(&format!("{counter} Script(print \"c.count\")"), "c.count\n");
    prints(&format!("{counter} Script(print '\"c.count\"')"), "\"c.count\"\n");
    prints(&format!("{counter} Script(set x c.count, print $x, print $($x))"), "c.count\n0\n");
    prints(&format!("{counter} Script(set x \"$(c.count)\", print $x)"), "\"0\"\n");
    prints(&format!("{counter} Script(setq x \"$(c.count)\", print $x)"), "0\n");
    prints("Script(set x 'a, b', print \"$x\", print ($x))", "'a, b'\n('a, b')\n");
    prints("Script(printn 1, printn \" 2\\n\", print ${y})", "1 2\n${y}\n");
    prints("Script(init x 7, set y $x, set x 8, print \"$x $y\")", "8 7\n");
    prints("Script(print $(sprintf '%03d-%s' 7 \"a b\"))", "007-a b\n");
    prints("Script(print \"\u{e000}9\u{e001}\")", "9\u{e001}\n");
}

#[test]
fn labels_that_are_always_there() {
    prints("Script(print 1, goto end, print 2)", "1\n");
    prints("Script(print 1, exit, print 2)", "1\n");
    prints("Script(init x 0, set x $(add $x 1), print $x, goto loop $(lt $x 3))", "1\n2\n3\n");
    prints("Script(goto over $(not false), print 1, label over, print 2)", "2\n");
    fails("Script(print 1, error 'too bad', print 2)", "1\n", "too bad");
    fails("Script(goto end maybe, print 2)", "2\n", "maybe");
}

#[test]
fn errors_are_shown_and_the_script_goes_on() {
    fails("Script(write nobody.reset, print $?)", "-1\n", "nobody");
    fails("Script(print nobody.count, print 1)", "1\n", "nobody");
    fails("Script(print $(mod 1 0))", "$(mod 1 0)\n", "zero");
    fails("Script(wait forever, print 1)", "", "forever");
    fails("Script(label x, goto x)", "", "too many jumps");
    fails("s :: Script(write s.nothing 1)", "", "nothing");
}

#[test]
fn waiting_lets_time_pass() {
    prints("Script(set t $(now), wait 1.5s, print $(sub $(now) $t))", "1.5\n");
    prints(
        "a :: Script(wait 2, print 'a'); b :: Script(TYPE ACTIVE, wait_time 1, print 'b')",
        "b\na\n",
    );
    let mut started = started("s :: Script(wait 10s, print 1, pause 2, print 2)");
    let router = &mut started.router;
    assert_eq!(router.round(), Rest::Until(EPOCH + 10_000_000_000));
    for (steps, output) in [("", "1\n"), ("1", "1\n"), ("", "1\n2\n"), ("5", "1\n2\n")] {
        router.write_handler("s.step", steps).unwrap();
        assert_eq!(started.heard.0.borrow().output, output);
    }
    // The alarm that was not waited for does nothing.
    assert_eq!(router.run(|_, _| false), Rest::Idle);
    router.write_handler("s.goto", "nowhere").unwrap_err();
    router.write_handler("s.step", "x").unwrap_err();
}

#[test]
fn a_driver_script_decides_when_the_driver_stops() {
    let source = "InfiniteSource(LIMIT 3, STOP true) -> c :: Counter -> Discard;";
    prints(&format!("{source} DriverManager(print 0, wait_stop, print c.count)"), "0\n3\n");
    let text = format!("{source} Script(TYPE DRIVER, wait_stop, wait 1s, print $(now), stop)");
    prints(&text, &format!("{}.000000\n", EPOCH / 1_000_000_000 + 1));
    // Two stops, the second by hand.
    let text =
        "DriverManager(pause 2, print 'end'); Script(stop); Script(wait 1, print 1, write stop)";
    prints(text, "1\nend\n");
    // Without instructions nothing changes.
    let mut started = started(&format!("{source} DriverManager()"));
    assert_eq!(started.router.run(|_, _| false), Rest::Stopped);
}

#[test]
fn passive_scripts_are_handlers() {
    let text = "Idle -> c1 :: Counter -> Idle; Idle -> c2 :: Counter -> Idle;
        s :: Script(TYPE PASSIVE, return \"$(add $(c1.count) $(c2.count) $1) $# $args\");
        Script(print s.run 4 5, print $(s.run), printq s.run \"7\")";
    prints(text, "\"4 2 4 5\"\n\"0 0 \"\n\"7 1 7\"\n");
    let proxy = "s :: Script(TYPE PROXY, goto nota $(ne $0 a), returnq \"you said $write $args\",
        label nota, error bad handler);";
    let mut started = started(proxy);
    assert_eq!(started.router.read_handler("s.a 1"), Ok("you said false 1".into()));
    assert_eq!(started.router.write_handler("s.a", "2"), Ok(()));
    assert_eq!(started.router.read_handler("s.b"), Err("bad handler".into()));
}

#[test]
fn exported_variables_are_handlers() {
    let mut started =
        started("s :: Script(export x 5, exportq y \"$(add $x 1)\", wait 1, set x 9)");
    let router = &mut started.router;
    router.round();
    assert_eq!(router.read_handler("s.x"), Ok("5".into()));
    assert_eq!(router.read_handler("s.y"), Ok("6".into()));
    assert!(router.write_handler("s.x", "1").is_err());
    assert!(router.read_handler("s.handlers").unwrap().contains("\nx\tr\n"));
    router.write_handler("s.set", "x 7 8").unwrap();
    assert_eq!(router.read_handler("s.get x"), Ok("7 8".into()));
    assert_eq!(router.read_handler("s.shift x"), Ok("7".into()));
    assert_eq!(router.read_handler("s.get x"), Ok("8".into()));
    assert!(router.read_handler("s.get z").is_err());
    router.run(|_, _| false);
    assert_eq!(router.read_handler("s.x"), Ok("9".into()));
}

#[test]
fn packets_go_where_the_script_says() {
    let text = "InfiniteSource(LIMIT 6, STOP true) -> s :: Script(init n 0, set n $(add $n 1), goto end $(lt $n 3),
            goto exit $(eq $n 3), return $(mod $n 3));
        s[0] -> a :: Counter -> Discard; s[1] -> b :: Counter -> Discard;
        DriverManager(wait_stop, print $(a.count), print $(b.count))";
    // 1, 2 and 6 go out of port 0, 4 out of port 1; 3 and 5 nowhere.
    prints(text, "3\n1\n");
}

#[test]
fn random_numbers_stay_in_their_range_and_handlers_are_found() {
    prints("Script(print $(random 1), print $(random 7 7))", "0\n7\n");
    fails("Script(print $(random 0))", "$(random 0)\n", "random");
    prints(
        "s :: Script(print $(readable s.run add list), print $(writable s.run stop), print $(readable x.y))",
        "true\ntrue\nfalse\n",
    );
}

#[test]
fn files_are_written_and_read() {
    let folder = tempfile();
    let text = "Idle -> c :: Counter -> Idle;
        Script(print >log 'a', print >>log 'b', save c.count log2, append c.count log2, print $(cat log2), print $(catq log))";
    let mut started = started(text);
    started.router.set_folder(folder.clone());
    started.router.run(|_, _| false);
    let heard = started.heard.0.borrow();
    assert_eq!((heard.output.as_str(), &heard.errors[..]), ("0\n0\n\"a\\nb\\n\"\n", &[][..]));
    std::fs::remove_dir_all(folder).unwrap();
}

fn tempfile() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("catena-scripts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn wrong_scripts_are_refused() {
    for wrong in [
        "Script(shout 1)",
        "Script(set x)",
        "Script(goto nowhere)",
        "Script(label)",
        "Script(pause x)",
        "Script(stop now)",
        "Script(TYPE SIGNAL HUP)",
        "Script(TYPE LAZY)",
        "Script(TYPE PACKET)",
        "Idle -> Script(TYPE ACTIVE)",
    ] {
        assert!(start("test", wrong, Folder::new("."), Path::Native).is_err(), "{wrong}");
    }
}
