//! Pipelines of DPDK's software switch (SWX), made from a specification by its configuration API: 22.11 has a reader for
//! specifications, but no function that builds a pipeline from one without a C compiler and headers of its own.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use codegen::swx::spec::{Match, Spec};

use super::ffi::{ClosedPort, Queue, Refusal};

type Raw = *mut c_void;

unsafe extern "C" {
    fn catena_swx_new(name: *const c_char, pipeline: *mut Raw) -> c_int;
    fn catena_swx_idle(pipeline: Raw, port: u32, is_in: c_int) -> c_int;
    fn catena_swx_device(pipeline: Raw, port: u32, device: *const c_char) -> c_int;
    fn catena_swx_rings(pipeline: Raw, port: u32, coming: *mut Raw, leaving: *mut Raw) -> c_int;
    fn catena_swx_pool(pool: *mut Raw) -> c_int;
    fn catena_swx_inject(ring: Raw, pool: Raw, bytes: *const u8, length: u16) -> c_int;
    fn catena_swx_take(ring: Raw, to: *mut u8, room: u32) -> c_int;
    fn catena_swx_waiting(ring: Raw) -> c_int;
    fn catena_swx_struct(
        pipeline: Raw,
        name: *const c_char,
        names: *const *const c_char,
        bits: *const u32,
        count: u32,
    ) -> c_int;
    fn catena_swx_table(
        pipeline: Raw,
        name: *const c_char,
        keys: *const *const c_char,
        exact: c_int,
        count: u32,
        actions: *const *const c_char,
        action_count: u32,
        otherwise: *const c_char,
        size: u32,
    ) -> c_int;
    fn catena_swx_entry(
        control: Raw,
        table: *const c_char,
        text: *const c_char,
        add: c_int,
    ) -> c_int;
    fn catena_swx_counts(pipeline: Raw, port: u32, received: *mut u64, sent: *mut u64);
    fn catena_swx_free(pipeline: Raw, rings: *mut Raw, count: u32);
    fn rte_swx_pipeline_packet_header_register(
        pipeline: Raw,
        name: *const c_char,
        of: *const c_char,
    ) -> c_int;
    fn rte_swx_pipeline_packet_metadata_register(pipeline: Raw, of: *const c_char) -> c_int;
    fn rte_swx_pipeline_regarray_config(
        pipeline: Raw,
        name: *const c_char,
        size: u32,
        initial: u64,
    ) -> c_int;
    fn rte_swx_pipeline_action_config(
        pipeline: Raw,
        name: *const c_char,
        arguments: *const c_char,
        instructions: *mut *const c_char,
        count: u32,
    ) -> c_int;
    fn rte_swx_pipeline_instructions_config(
        pipeline: Raw,
        instructions: *mut *const c_char,
        count: u32,
    ) -> c_int;
    fn rte_swx_pipeline_build(pipeline: Raw) -> c_int;
    fn rte_swx_pipeline_run(pipeline: Raw, instructions: u32);
    fn rte_swx_pipeline_flush(pipeline: Raw);
    fn rte_swx_ctl_pipeline_create(pipeline: Raw) -> Raw;
    fn rte_swx_ctl_pipeline_commit(control: Raw, abort: c_int) -> c_int;
    fn rte_swx_ctl_pipeline_abort(control: Raw);
    fn rte_swx_ctl_pipeline_regarray_read(
        pipeline: Raw,
        name: *const c_char,
        index: u32,
        value: *mut u64,
    ) -> c_int;
}

/// What a pipeline's port is.
#[derive(Clone, Debug)]
pub enum Attached {
    /// A device, as DPDK calls it.
    Device(String),
    /// Frames come from this process, and go to it.
    Rings,
}

/// Two rings: frames that come in, and those that leave.
#[derive(Clone, Copy)]
struct Rings {
    coming: Raw,
    leaving: Raw,
}

struct Pipeline {
    raw: Raw,
    control: Mutex<Raw>,
    rings: BTreeMap<u32, Rings>,
    pool: Raw,
    /// Devices stay open as long as the pipeline uses them.
    _devices: Vec<Queue>,
}

// SAFETY: one thread runs a pipeline, through `&mut Runner`; the functions that change tables may be called beside it, one at a
// time, which the lock sees to. Rings have one producer and one consumer, both through `&mut Runner`.
unsafe impl Send for Pipeline {}
// SAFETY: as above.
unsafe impl Sync for Pipeline {}

impl Drop for Pipeline {
    fn drop(&mut self) {
        let mut rings: Vec<Raw> =
            self.rings.values().flat_map(|rings| [rings.coming, rings.leaving]).collect();
        // SAFETY: nobody uses these any more; each is freed once.
        unsafe { catena_swx_free(self.raw, rings.as_mut_ptr(), rings.len() as u32) }
    }
}

/// Packets of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that came in.
    pub received: u64,
    /// Those that left.
    pub sent: u64,
}

/// Runs a pipeline.
pub struct Runner(Arc<Pipeline>);

/// Changes the tables of a pipeline while it runs, and reads its registers.
#[derive(Clone)]
pub struct Control(Arc<Pipeline>);

fn text(of: &str) -> Result<CString, String> {
    CString::new(of).map_err(|why| why.to_string())
}

/// Strings, and pointers to them.
struct Texts {
    _all: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Texts {
    fn of<'t>(all: impl Iterator<Item = &'t str>) -> Result<Self, String> {
        let all = all.map(text).collect::<Result<Vec<_>, _>>()?;
        let pointers = all.iter().map(|text| text.as_ptr()).collect();
        Ok(Self { _all: all, pointers })
    }

    fn count(&self) -> u32 {
        self.pointers.len() as u32
    }
}

fn check(result: c_int, what: impl FnOnce() -> String) -> Result<(), String> {
    match result {
        0.. => Ok(()),
        error => Err(format!("{}: {}", what(), std::io::Error::from_raw_os_error(-error))),
    }
}

/// Builds a pipeline with these ports. DPDK is started with these arguments of its own, if it was not.
///
/// # Errors
/// What SWX or DPDK does not accept.
pub fn build(
    name: &str,
    spec: &Spec,
    ports: &BTreeMap<u32, Attached>,
    eal: Option<&str>,
) -> Result<(Runner, Control), String> {
    super::started(eal)?;
    let mut raw = null_mut();
    // A name is taken for good, as control handles are left.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let own = text(&format!("{name}{}", NUMBER.fetch_add(1, Ordering::Relaxed)))?;
    // SAFETY: a string and a place for a pointer that live for the call.
    check(unsafe { catena_swx_new(own.as_ptr(), &raw mut raw) }, || format!("pipeline '{name}'"))?;
    let mut pipeline = Pipeline {
        raw,
        control: Mutex::new(null_mut()),
        rings: BTreeMap::new(),
        pool: null_mut(),
        _devices: Vec::new(),
    };
    // SAFETY: a place for a pointer.
    check(unsafe { catena_swx_pool(&raw mut pipeline.pool) }, || "memory for frames".into())?;
    attach(&mut pipeline, ports)?;
    declare(raw, spec)?;
    // SAFETY: the pipeline is configured, and not built yet.
    check(unsafe { rte_swx_pipeline_build(raw) }, || "the pipeline is not built".into())?;
    // SAFETY: it is built.
    let control = unsafe { rte_swx_ctl_pipeline_create(raw) };
    if control.is_null() {
        return Err("no memory to control the pipeline".into());
    }
    pipeline.control = Mutex::new(control);
    let all = Arc::new(pipeline);
    Ok((Runner(Arc::clone(&all)), Control(all)))
}

/// Gives a pipeline its ports, and others to those that it lacks in between: the number of those for input is a power of 2.
fn attach(pipeline: &mut Pipeline, ports: &BTreeMap<u32, Attached>) -> Result<(), String> {
    let raw = pipeline.raw;
    let count = ports.keys().max().map_or(1, |most| (most + 1).next_power_of_two());
    for port in 0..count {
        let what = || format!("port {port}");
        match ports.get(&port) {
            None => {
                for is_in in [0, 1] {
                    // SAFETY: the pipeline is being configured.
                    check(unsafe { catena_swx_idle(raw, port, is_in) }, what)?;
                }
            }
            Some(Attached::Rings) => {
                let mut rings = Rings { coming: null_mut(), leaving: null_mut() };
                // SAFETY: as above, with places for two pointers.
                let result = unsafe {
                    catena_swx_rings(raw, port, &raw mut rings.coming, &raw mut rings.leaving)
                };
                pipeline.rings.insert(port, rings);
                check(result, what)?;
            }
            Some(Attached::Device(device)) => {
                let name = text(device.split(',').next().unwrap_or_default())?;
                let refused = |refusal: Refusal| format!("{device}: {}", super::explain(&refusal));
                let found = ClosedPort::new(&text(device)?, &name).map_err(refused)?;
                pipeline._devices.extend(found.open(1, false).map_err(refused)?);
                // SAFETY: as above; the device is open, and the string is copied.
                check(unsafe { catena_swx_device(raw, port, name.as_ptr()) }, what)?;
            }
        }
    }
    Ok(())
}

/// Declares all that a specification does.
fn declare(raw: Raw, spec: &Spec) -> Result<(), String> {
    // SAFETY (all calls): the pipeline is being configured; strings and arrays live for the call, and are copied.
    for of in &spec.structs {
        let names = Texts::of(of.fields.iter().map(|field| field.0.as_str()))?;
        let bits: Vec<u32> = of.fields.iter().map(|field| field.1.into()).collect();
        let name = text(&of.name)?;
        let (fields, bits) = (names.pointers.as_ptr(), bits.as_ptr());
        // SAFETY: see above.
        let result = unsafe { catena_swx_struct(raw, name.as_ptr(), fields, bits, names.count()) };
        check(result, || format!("struct '{}'", of.name))?;
    }
    for (name, of) in &spec.headers {
        let (header, kind) = (text(name)?, text(of)?);
        // SAFETY: see above.
        let result =
            unsafe { rte_swx_pipeline_packet_header_register(raw, header.as_ptr(), kind.as_ptr()) };
        check(result, || format!("header '{name}'"))?;
    }
    let metadata = text(&spec.metadata)?;
    // SAFETY: see above.
    let result = unsafe { rte_swx_pipeline_packet_metadata_register(raw, metadata.as_ptr()) };
    check(result, || "metadata".into())?;
    for of in &spec.registers {
        let name = text(&of.name)?;
        // SAFETY: see above.
        let result =
            unsafe { rte_swx_pipeline_regarray_config(raw, name.as_ptr(), of.size, of.initial) };
        check(result, || format!("registers '{}'", of.name))?;
    }
    for action in &spec.actions {
        let name = text(&action.name)?;
        let arguments = action.arguments.as_deref().map(text).transpose()?;
        let arguments = arguments.as_ref().map_or(std::ptr::null(), |of| of.as_ptr());
        let mut all = Texts::of(action.instructions.iter().map(|of| of.text.as_str()))?;
        let (pointers, count) = (all.pointers.as_mut_ptr(), all.count());
        // SAFETY: see above.
        let result = unsafe {
            rte_swx_pipeline_action_config(raw, name.as_ptr(), arguments, pointers, count)
        };
        check(result, || format!("action '{}' (line {})", action.name, action.line))?;
    }
    for table in &spec.tables {
        let (name, otherwise) = (text(&table.name)?, text(&table.default)?);
        let keys = Texts::of(table.keys.iter().map(|key| key.0.as_str()))?;
        let actions = Texts::of(table.actions.iter().map(String::as_str))?;
        let exact = table.keys.iter().all(|key| key.1 == Match::Exact);
        // SAFETY: see above.
        let result = unsafe {
            catena_swx_table(
                raw,
                name.as_ptr(),
                keys.pointers.as_ptr(),
                exact.into(),
                keys.count(),
                actions.pointers.as_ptr(),
                actions.count(),
                otherwise.as_ptr(),
                table.size,
            )
        };
        check(result, || format!("table '{}' (line {})", table.name, table.line))?;
    }
    let mut all = Texts::of(spec.instructions.iter().map(|of| of.text.as_str()))?;
    let (pointers, count) = (all.pointers.as_mut_ptr(), all.count());
    // SAFETY: see above.
    let result = unsafe { rte_swx_pipeline_instructions_config(raw, pointers, count) };
    check(result, || "instructions".into())
}

impl Runner {
    /// Has so many instructions executed.
    pub fn run(&mut self, instructions: u32) {
        // SAFETY: the pipeline is built, and run by nobody else.
        unsafe { rte_swx_pipeline_run(self.0.raw, instructions) }
    }

    /// Sends what waits for more frames to be sent with.
    pub fn flush(&mut self) {
        // A port sends when it is asked twice, and no frame came in between.
        for _ in 0..2 {
            // SAFETY: as above.
            unsafe { rte_swx_pipeline_flush(self.0.raw) }
        }
    }

    /// Has a frame come in by a port with [rings](Attached::Rings); whether there was room for it. The buffer is 0 behind it.
    pub fn inject(&mut self, port: u32, frame: &[u8]) -> bool {
        let (Some(rings), Ok(length)) = (self.0.rings.get(&port), u16::try_from(frame.len()))
        else {
            return false;
        };
        // SAFETY: the ring and the pool are the pipeline's; the bytes live for the call.
        unsafe { catena_swx_inject(rings.coming, self.0.pool, frame.as_ptr(), length) == 0 }
    }

    /// How many frames wait to come in there.
    #[must_use]
    pub fn waiting(&self, port: u32) -> usize {
        let Some(rings) = self.0.rings.get(&port) else { return 0 };
        // SAFETY: the ring is the pipeline's.
        usize::try_from(unsafe { catena_swx_waiting(rings.coming) }).unwrap_or(0)
    }

    /// Takes a frame that left by a port with rings.
    pub fn take(&mut self, port: u32) -> Option<Vec<u8>> {
        let rings = self.0.rings.get(&port)?;
        let mut frame = vec![0; 1 << 16];
        // SAFETY: the ring is the pipeline's; there is room for so many bytes.
        let length =
            unsafe { catena_swx_take(rings.leaving, frame.as_mut_ptr(), frame.len() as u32) };
        frame.truncate(usize::try_from(length).ok()?);
        Some(frame)
    }
}

impl Control {
    fn entry(&self, table: &str, line: &str, add: bool) -> Result<(), String> {
        let (name, entry) = (text(table)?, text(line)?);
        let control = self.0.control.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock is held; strings live for the call.
        let result =
            unsafe { catena_swx_entry(*control, name.as_ptr(), entry.as_ptr(), add.into()) };
        check(result, || format!("table '{table}': {line}"))
    }

    /// Adds an entry of a table, which counts from the next commit on.
    ///
    /// # Errors
    /// SWX does not accept it.
    pub fn add(&self, table: &str, line: &str) -> Result<(), String> {
        self.entry(table, line, true)
    }

    /// Deletes an entry of a table from the next commit on.
    ///
    /// # Errors
    /// SWX does not accept it.
    pub fn delete(&self, table: &str, line: &str) -> Result<(), String> {
        self.entry(table, line, false)
    }

    /// Has what was added and deleted count, all at once; if it is refused, nothing changes.
    ///
    /// # Errors
    /// SWX has no room for it.
    pub fn commit(&self) -> Result<(), String> {
        let control = self.0.control.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock is held.
        check(unsafe { rte_swx_ctl_pipeline_commit(*control, 1) }, || "changes of tables".into())
    }

    /// Forgets what was added and deleted since the last commit.
    pub fn abort(&self) {
        let control = self.0.control.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock is held.
        unsafe { rte_swx_ctl_pipeline_abort(*control) }
    }

    /// What a port has counted.
    #[must_use]
    pub fn counts(&self, port: u32) -> Counts {
        let Counts { mut received, mut sent } = Counts::default();
        // SAFETY: places for two numbers that live for the call.
        unsafe { catena_swx_counts(self.0.raw, port, &raw mut received, &raw mut sent) };
        Counts { received, sent }
    }

    /// What a register holds.
    ///
    /// # Errors
    /// There is no such register.
    pub fn register(&self, name: &str, index: u32) -> Result<u64, String> {
        let (own, mut value) = (text(name)?, 0);
        // SAFETY: a string and a place for a number that live for the call.
        let result = unsafe {
            rte_swx_ctl_pipeline_regarray_read(self.0.raw, own.as_ptr(), index, &raw mut value)
        };
        check(result, || format!("register {index} of '{name}'"))?;
        Ok(value)
    }
}
