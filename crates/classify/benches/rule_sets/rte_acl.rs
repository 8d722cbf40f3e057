//! DPDK's `rte_acl`, to compare with.
#![allow(unsafe_code, reason = "a C library")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Once;

use catena_classify::{Key, RuleSet};

#[repr(C)]
struct Parameters {
    name: *const c_char,
    socket: c_int,
    rule_size: u32,
    max_rules: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct FieldDefinition {
    kind: u8,
    size: u8,
    field_index: u8,
    input_index: u8,
    offset: u32,
}

#[repr(C)]
struct Configuration {
    categories: u32,
    fields: u32,
    definitions: [FieldDefinition; 64],
    max_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Field {
    value: u64,
    mask_or_end: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Rule {
    categories: u32,
    priority: i32,
    userdata: u32,
    fields: [Field; 5],
}

#[repr(C)]
#[derive(Default)]
struct HeapStatistics {
    total: usize,
    free: usize,
    greatest_free: usize,
    free_count: u32,
    allocated_count: u32,
    allocated: usize,
}

#[link(name = "rte_acl")]
unsafe extern "C" {
    fn rte_acl_create(parameters: *const Parameters) -> *mut c_void;
    fn rte_acl_free(context: *mut c_void);
    fn rte_acl_add_rules(context: *mut c_void, rules: *const Rule, count: u32) -> c_int;
    fn rte_acl_build(context: *mut c_void, configuration: *const Configuration) -> c_int;
    fn rte_acl_set_ctx_classify(context: *mut c_void, algorithm: c_int) -> c_int;
    fn rte_acl_classify(
        context: *const c_void,
        data: *const *const u8,
        results: *mut u32,
        count: u32,
        categories: u32,
    ) -> c_int;
}

#[link(name = "rte_eal")]
unsafe extern "C" {
    fn rte_eal_init(count: c_int, arguments: *mut *mut c_char) -> c_int;
    fn rte_malloc_get_socket_stats(socket: c_int, statistics: *mut HeapStatistics) -> c_int;
}

/// The fastest implementations first.
const ALGORITHMS: [(&str, c_int); 5] =
    [("avx512x32", 7), ("avx512x16", 6), ("avx2", 3), ("sse", 2), ("scalar", 1)];

/// A packet's fields in network byte order.
pub(crate) type Packet = [u8; 16];

/// The key as `rte_acl` reads it.
pub(crate) fn packet(key: &Key) -> Packet {
    let mut packet = [0; 16];
    packet[0] = key[4] as u8;
    packet[4..8].copy_from_slice(&key[0].to_be_bytes());
    packet[8..12].copy_from_slice(&key[1].to_be_bytes());
    packet[12..14].copy_from_slice(&(key[2] as u16).to_be_bytes());
    packet[14..16].copy_from_slice(&(key[3] as u16).to_be_bytes());
    packet
}

/// A built context.
pub(crate) struct RteAcl {
    context: *mut c_void,
    /// Bytes that lookups work on.
    pub(crate) memory: usize,
}

fn start() {
    static START: Once = Once::new();
    START.call_once(|| {
        let arguments = std::env::var("RTE_EAL").unwrap_or_else(|_| "--no-huge -m 6144".into());
        let fixed = "bench --no-pci --no-telemetry --no-shconf --log-level=1 --lcores=0 --force-max-simd-bitwidth=512";
        let words = fixed.split(' ').chain(arguments.split_whitespace());
        // The library keeps them.
        let mut words: Vec<*mut c_char> =
            words.map(|w| CString::new(w).expect("no zero byte").into_raw()).collect();
        // SAFETY: as many valid C strings as are told, which live for ever.
        let result = unsafe { rte_eal_init(words.len() as c_int, words.as_mut_ptr()) };
        assert!(result >= 0, "rte_eal_init fails");
    });
}

fn allocated() -> usize {
    let mut statistics = HeapStatistics::default();
    // SAFETY: it fills the structure.
    unsafe { rte_malloc_get_socket_stats(0, &mut statistics) };
    statistics.allocated
}

fn mask(low: u32, high: u32) -> Field {
    Field { value: low.into(), mask_or_end: u64::from((low ^ high).leading_zeros()) }
}

fn range(low: u32, high: u32) -> Field {
    Field { value: low.min(65535).into(), mask_or_end: high.min(65535).into() }
}

impl RteAcl {
    /// Builds it for rules whose addresses are prefixes; `Err` with the error's number if it
    /// cannot.
    pub(crate) fn new(rules: &RuleSet) -> Result<Self, i32> {
        start();
        let count = rules.cubes().len();
        let name = c"rules";
        let parameters = Parameters {
            name: name.as_ptr(),
            socket: -1,
            rule_size: size_of::<Rule>() as u32,
            max_rules: count as u32,
        };
        // SAFETY: the parameters are valid for the call, which copies them.
        let context = unsafe { rte_acl_create(&parameters) };
        assert!(!context.is_null(), "rte_acl_create fails");
        let mut this = Self { context, memory: 0 };
        let rule = |(i, cube): (usize, &catena_classify::Cube)| {
            let any = cube.high[4] > 255;
            let protocol = if any { 0 } else { cube.low[4] };
            Rule {
                categories: 1,
                priority: (count - i) as i32,
                userdata: cube.rule + 1,
                fields: [
                    Field { value: protocol.into(), mask_or_end: if any { 0 } else { 255 } },
                    mask(cube.low[0], cube.high[0]),
                    mask(cube.low[1], cube.high[1]),
                    range(cube.low[2], cube.high[2]),
                    range(cube.low[3], cube.high[3]),
                ],
            }
        };
        let list: Vec<Rule> = rules.cubes().iter().enumerate().map(rule).collect();
        // SAFETY: the rules have the size that was told and are copied.
        let result = unsafe { rte_acl_add_rules(context, list.as_ptr(), count as u32) };
        assert_eq!(result, 0, "rte_acl_add_rules fails");
        let field = |kind, size, index, input, offset| FieldDefinition {
            kind,
            size,
            field_index: index,
            input_index: input,
            offset,
        };
        let mut definitions = [field(0, 0, 0, 0, 0); 64];
        definitions[..5].copy_from_slice(&[
            field(2, 1, 0, 0, 0),
            field(0, 4, 1, 1, 4),
            field(0, 4, 2, 2, 8),
            field(1, 2, 3, 3, 12),
            field(1, 2, 4, 3, 14),
        ]);
        let configuration = Configuration { categories: 1, fields: 5, definitions, max_size: 0 };
        let before = allocated();
        // SAFETY: the configuration is valid for the call.
        let result = unsafe { rte_acl_build(context, &configuration) };
        if result != 0 {
            return Err(-result);
        }
        this.memory = allocated() - before;
        Ok(this)
    }

    /// Takes the named implementation; whether the processor has it.
    pub(crate) fn choose(&mut self, algorithm: c_int) -> bool {
        // SAFETY: the context is valid; the call says if the processor lacks the instructions.
        unsafe { rte_acl_set_ctx_classify(self.context, algorithm) == 0 }
    }

    /// The implementations that the processor has, the widest first.
    pub(crate) fn algorithms(&mut self) -> Vec<(&'static str, c_int)> {
        ALGORITHMS.into_iter().filter(|a| self.choose(a.1)).collect()
    }

    /// Looks packets up; 0 is no rule, and rules count from 1.
    pub(crate) fn lookup(&self, packets: &[*const u8], found: &mut [u32]) {
        assert!(found.len() >= packets.len());
        // SAFETY: the caller's pointers are to `Packet`s, as `main` makes them; there is room for
        // a result for each.
        unsafe {
            rte_acl_classify(
                self.context,
                packets.as_ptr(),
                found.as_mut_ptr(),
                packets.len() as u32,
                1,
            )
        };
    }
}

impl Drop for RteAcl {
    fn drop(&mut self) {
        // SAFETY: it was created by `rte_acl_create` and is used no more.
        unsafe { rte_acl_free(self.context) };
    }
}
