//! Compiles and links what the feature `dpdk` needs; nothing without it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk();
}

#[cfg(feature = "dpdk")]
fn dpdk() {
    const SHIMS: [&str; 2] = ["src/io/dpdk/shim.c", "src/io/dpdk/swx.c"];
    SHIMS.iter().for_each(|shim| println!("cargo::rerun-if-changed={shim}"));
    let mut library = pkg_config::Config::new();
    library.cargo_metadata(false).atleast_version("22.11");
    let library = library.probe("libdpdk").unwrap_or_else(|why| {
        panic!("the feature `dpdk` needs DPDK 22.11 or later (Debian: libdpdk-dev): {why}")
    });
    let mut build = cc::Build::new();
    build.files(SHIMS).includes(&library.include_paths).flag("-include").flag("rte_config.h");
    // SWX is no part of the interface that stays, whatever the version.
    build.define("ALLOW_EXPERIMENTAL_API", None);
    // What DPDK itself was compiled for, at least.
    build.flag_if_supported("-march=corei7").warnings(true).extra_warnings(false).opt_level(3);
    build.compile("catena_dpdk");
    for path in &library.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    // Of DPDK's many libraries those that the shim calls; drivers are loaded when EAL starts.
    for name in [
        "rte_pipeline",
        "rte_ethdev",
        "rte_mempool",
        "rte_mbuf",
        "rte_kvargs",
        "rte_ring",
        "rte_eal",
    ] {
        println!("cargo::rustc-link-lib=dylib={name}");
    }
}
