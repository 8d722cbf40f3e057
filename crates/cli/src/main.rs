//! See the library.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    catena_cli::main(std::env::args_os())
}
