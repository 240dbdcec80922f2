//! Cost of a task of a farm: by shape and port mode.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crosswind_policy::farm::{FarmOptions, MeanTask};
use crosswind_schema::Platform;
use crosswind_schema::experiment::draw::{Column, Tasks};
use crosswind_schema::experiment::{Order, Policy};
use crosswind_schema::plan::Ports;
use crosswind_sim::{Farm, Options, simulate};

/// A tree in which every node has so many children.
fn platform(nodes: usize, children: usize) -> Platform {
    let mut text = "schema_version = 1\nname = \"bench\"\n".to_owned();
    for node in 0..nodes {
        let compute = 1.0 + (node as f64 * 0.618_033_988_749_895).fract() * 9.0;
        text += &format!("[[node]]\nname = \"n{node}\"\ncompute_per_s = {compute}\n");
        if node > 0 {
            let parent = (node - 1) / children;
            text += &format!(
                "parent = \"n{parent}\"\nreceive_limit_mb_per_s = 50.0\nir_receive_s_per_mb = 0.01\nir_send_s_per_mb = 0.005\n"
            );
        }
    }
    Platform::from_toml(text.as_bytes(), "bench").expect("a platform")
}

fn farms(c: &mut Criterion) {
    let mut group = c.benchmark_group("farm");
    group.sample_size(10);
    let count = 20_000;
    let tasks = Tasks { count, size_mb: Column::Same(1.0), work: Column::Same(2.0), ..Tasks::default() };
    group.throughput(Throughput::Elements(count));
    for (shape, nodes, children) in [("fork", 8, 7), ("tree", 1000, 10)] {
        let platform = platform(nodes, children);
        for (name, ports) in [("single", Ports::Single), ("multi", Ports::Multi)] {
            let policy = Policy { order: Order::Interference, ports: ports.into(), ..Policy::default() };
            group.bench_function(BenchmarkId::new(shape, name), |b| {
                b.iter(|| {
                    let farm_options = FarmOptions::of(&policy, MeanTask { size_mb: 1.0, work: 2.0 }).with_tasks(count);
                    let farm = Farm {
                        platform: &platform,
                        tasks: &tasks,
                        farm_options,
                        chunk_kib: policy.chunk_kib,
                        result_size_mb: 0.0,
                    };
                    simulate(&farm, Options::default(), &mut |_| true).expect("a run").makespan_s
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, farms);
criterion_main!(benches);
