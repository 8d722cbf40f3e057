//! The example runs.

#[path = "../examples/embed.rs"]
mod embed;

#[test]
fn a_chain_is_run_changed_and_watched_without_the_command_line() {
    embed::main().unwrap();
}
