//! Pipelines in stages: every placement is checked by other code than made it, tiny ones are compared with the best
//! there is, and pipelines that were published stay as short as they are.

mod checker;
mod joint;
mod lemur;
mod published;
mod random;

use catena_codegen::stages::{Hardware, Room, Stages};

/// Tofino 1.
fn tofino() -> Stages {
    match Hardware::known("tofino-1").expect("it is there").room {
        Room::Stages(stages) => stages,
        _ => panic!("it has stages"),
    }
}
