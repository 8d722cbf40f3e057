//! How long decisions take: Ironside's core mapper (its table 4.9) and server mapper (512 buckets on 64 cores).
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use scale::{
    Core, CoreSeen, Deal, Flow, Frontier, Group, GroupSeen, Observation, Policy, Role,
    ServerMapper, Settings, Waiting,
};

/// The median of some runs, in nanoseconds.
fn median(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..201)
        .map(|_| {
            let begin = Instant::now();
            run();
            begin.elapsed().as_nanos() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let mut random = fastrand::Rng::with_seed(1);
    let frontier = Frontier::through(&[(2, 160), (12, 128), (26, 96), (80, 64)]);
    for (queued, theirs) in [(128, 1.5), (256, 2.6), (512, 2.8), (1024, 4.4)] {
        let packets: Vec<u32> = (0..queued).map(|_| random.u32(..queued / 4)).collect();
        let (mut deal, mut met, mut queue) =
            (Deal::default(), vec![u32::MAX; queued as usize], Vec::new());
        for first_fit in [false, true] {
            let time = median(|| {
                // Flows are counted as the simulator counts them; then they are dealt.
                met.fill(u32::MAX);
                queue.clear();
                for flow in &packets {
                    let at = &mut met[*flow as usize];
                    if *at == u32::MAX {
                        *at = queue.len() as u32;
                        queue.push(Waiting { flow: Flow(*flow), packets: 0 });
                    }
                    queue[*at as usize].packets += 1;
                }
                deal.of(black_box(&queue), &frontier, 64, first_fit);
            });
            let how = if first_fit { "first fit" } else { "in order" };
            println!(
                "core mapper, {queued} packets, {how}: {:.2} us (table 4.9: {theirs} us)",
                time / 1e3
            );
        }
    }
    let table = Frontier::through(&[(60, 900_000)]);
    let group = |at: u32| {
        let load = random.f64() * 0.16;
        GroupSeen {
            group: Group(at),
            core: Core(at % 64),
            load,
            rate: load * 1e6,
            flows: load * 50.0,
            parts: 1,
            operations: 0,
            next: None,
        }
    };
    let groups: Vec<GroupSeen> = (0..512).map(group).collect();
    let cores = (0..64).map(|core| CoreSeen::idle(Core(core), Role::Dedicated)).collect();
    let seen = Observation { cores, groups, ..Observation::default() };
    let mut mapper = ServerMapper::new(&Settings::default().server_mapper, table);
    let mut orders = 0;
    let time = median(|| {
        orders = black_box(mapper.decide(0, &seen)).len();
        mapper.notes();
    });
    println!("server mapper, 512 buckets on 64 cores, {orders} orders: {:.1} us", time / 1e3);
}
