//! Cost of a message of a parallel program: by size, network and window.

use std::num::NonZeroU32;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crosswind_policy::window::WindowSettings;
use crosswind_program::Bsp;
use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::Timelines;
use crosswind_schema::experiment::KnownNetwork;
use crosswind_sim::program::{Network, simulate};

const NOISE: &str = "schema_version = 1\nname = \"2.5 %\"\n[[source]]\nkind = \"daemon\"\nduration_s = 25e-6\n\
                     interval_s = { distribution = \"exponential\", mean = 0.001 }\n";

fn programs(c: &mut Criterion) {
    let mut group = c.benchmark_group("program");
    group.sample_size(10);
    let noise = Disturbance::from_toml(NOISE.as_bytes(), "noise.toml").expect("a disturbance");
    for (ranks, iterations) in [(64, 500), (1024, 30), (16_384, 4)] {
        let bsp = Bsp { ranks, iterations, work_ns: 100_000, ..Bsp::default() };
        group.throughput(Throughput::Elements(u64::from(iterations) * bsp.messages_per_iteration()));
        let noisy = Timelines::new(&noise, ranks, 1).expect("timelines");
        let cluster = Network::of(&KnownNetwork::Cluster.network());
        let window = NonZeroU32::new(2).map_or_else(WindowSettings::default, WindowSettings::of);
        let cases = [
            ("undisturbed", WindowSettings::default(), Timelines::undisturbed(ranks)),
            ("noise", WindowSettings::default(), noisy.clone()),
            ("noise, window of 2", window, noisy),
        ];
        for (name, window, timelines) in cases {
            group.bench_function(BenchmarkId::new(name, ranks), |b| {
                b.iter(|| simulate(&bsp, &cluster, window, &timelines, &mut |_| true).expect("a run").makespan_ns);
            });
        }
    }
    group.finish();
}

criterion_group!(benches, programs);
criterion_main!(benches);
