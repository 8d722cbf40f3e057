#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| catena_fuzz::redis(data));
