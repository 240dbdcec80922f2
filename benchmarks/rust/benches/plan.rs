//! Cost of the planner per tree: shape, port mode and size.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crosswind_model::{Columns, Task, plan_columns};
use crosswind_schema::plan::{Method, Ports};

/// Values between two limits, spread evenly and the same in every run: multiples of the golden ratio, modulo 1.
fn spread(count: i32, least: f64, most: f64, offset: f64) -> Vec<f64> {
    (0..count).map(|n| least + (most - least) * (f64::from(n) * 0.618_033_988_749_895 + offset).fract()).collect()
}

fn plans(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan");
    for count in [1_000, 100_000] {
        group.throughput(Throughput::Elements(count as u64));
        for shape in ["chain", "star", "tens"] {
            let above = |n: i32| match (n, shape) {
                (0, _) => -1,
                (_, "chain") => n - 1,
                (_, "star") => 0,
                _ => (n - 1) / 10,
            };
            let parent: Vec<i32> = (0..count).map(above).collect();
            let columns = Columns {
                parent: &parent,
                compute_per_s: &spread(count, 1.0, 30.0, 0.1),
                send_limit_mb_per_s: &spread(count, 5.0, 100.0, 0.2),
                receive_limit_mb_per_s: &spread(count, 0.2, 60.0, 0.3),
                receive_limit_drop: &spread(count, 0.0, 0.5, 0.4),
                ir_receive_s_per_mb: &spread(count, 0.0, 0.13, 0.5),
                ir_send_s_per_mb: &spread(count, 0.0, 0.07, 0.6),
            };
            let task = Task::new(2.0, 5.0).expect("a task");
            for (name, ports) in [("single", Ports::Single), ("multi", Ports::Multi)] {
                group.bench_function(BenchmarkId::new(format!("{shape} {name}"), count), |b| {
                    b.iter(|| plan_columns(&columns, task, ports, Method::Exact).expect("a plan"));
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);
