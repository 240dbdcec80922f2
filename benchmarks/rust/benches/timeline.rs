//! Cost of a timeline per call: the simulator asks for every operation of every rank.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use crosswind_schema::Disturbance;
use crosswind_schema::disturbance::Timelines;

const CALLS: u64 = 10_000;

/// 2.5 % of noise, and what only the fast path sees.
const CASES: [(&str, &str); 5] = [
    ("undisturbed", ""),
    ("daemon 2.5 %", "[[source]]\nkind = \"daemon\"\ninterval_s = 0.001\nduration_s = 25e-6\n"),
    (
        "exponential daemon 2.5 %",
        "[[source]]\nkind = \"daemon\"\ninterval_s = { distribution = \"exponential\", mean = 0.001 }\nduration_s = 25e-6\n",
    ),
    ("two jobs", "[[source]]\nkind = \"local\"\nquantum_s = 0.1\n"),
    (
        "five daemons 2.5 %",
        "[[source]]\nkind = \"daemon\"\ncause = \"a\"\ninterval_s = 0.005\nduration_s = 25e-6\n[[source]]\nkind = \"daemon\"\n\
         cause = \"b\"\ninterval_s = 0.005\nduration_s = 25e-6\n[[source]]\nkind = \"daemon\"\ncause = \"c\"\ninterval_s = 0.005\n\
         duration_s = 25e-6\n[[source]]\nkind = \"daemon\"\ncause = \"d\"\ninterval_s = 0.005\nduration_s = 25e-6\n[[source]]\n\
         kind = \"daemon\"\ncause = \"e\"\ninterval_s = 0.005\nduration_s = 25e-6\n",
    ),
];

fn work(c: &mut Criterion) {
    let mut group = c.benchmark_group("work");
    group.throughput(Throughput::Elements(CALLS));
    for (name, sources) in CASES {
        let text = format!("schema_version = 1\nname = \"d\"\n{sources}");
        let disturbance = Disturbance::from_toml(text.as_bytes(), "d.toml").expect("valid");
        let timelines = Timelines::new(&disturbance, 1024, 1).expect("valid");
        // An operation of 5 us, so that 2.5 % of noise is met by one call in 200.
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                || timelines.rank(17),
                |rank| {
                    let mut at = 0;
                    for _ in 0..CALLS {
                        at = rank.work(at, black_box(5_000));
                    }
                    at
                },
                criterion::BatchSize::SmallInput,
            );
        });
    }
    group.finish();
    let mut group = c.benchmark_group("a rank");
    let text = format!("schema_version = 1\nname = \"d\"\n{}", CASES[4].1);
    let disturbance = Disturbance::from_toml(text.as_bytes(), "d.toml").expect("valid");
    let timelines = Timelines::new(&disturbance, 1_000_000, 1).expect("valid");
    let mut rank = 0;
    group.bench_function("five daemons", |b| {
        b.iter(|| {
            rank = (rank + 1) % 1_000_000;
            timelines.rank(black_box(rank))
        });
    });
    group.finish();
}

criterion_group!(benches, work);
criterion_main!(benches);
