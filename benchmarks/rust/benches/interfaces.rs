//! Cost of a frame through network interfaces: by discipline, length of messages, credits.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use crosswind_schema::StreamsExperiment;
use crosswind_sim::interface::{Present, measure};

fn experiment(policy: &str, parallel_bytes: u32) -> StreamsExperiment {
    let text = format!(
        "schema_version = 1\nname = \"frames\"\n[policy]\n{policy}\n[workload]\nkind = \"streams\"\nhosts = 3\n\
         [[workload.stream]]\nname = \"p\"\nclass = \"parallel\"\nfrom = 0\nto = 1\nmessage_bytes = {parallel_bytes}\n\
         arrivals = \"backlogged\"\noutstanding = 4\nmessages = {}\n\
         [[workload.stream]]\nname = \"l\"\nclass = \"local\"\nfrom = 0\nto = 2\nmessage_bytes = 16384\n\
         arrivals = \"backlogged\"\noutstanding = 4\nmessages = 1\n",
        800_000 / parallel_bytes.div_ceil(1024),
    );
    StreamsExperiment::from_toml(text.as_bytes(), "frames.toml").expect("an experiment")
}

fn interfaces(c: &mut Criterion) {
    let mut group = c.benchmark_group("interface");
    group.sample_size(10);
    for (name, policy, bytes) in [
        ("one queue, messages of 16 KiB", "queue = \"fifo\"", 16_384),
        ("two queues by bytes, 16 KiB", "queue = \"drr\"", 16_384),
        ("two queues by bytes, 64 bytes", "queue = \"drr\"", 64),
        ("two queues by frames, 16 KiB", "queue = \"threshold\"", 16_384),
        ("two queues and credits, 16 KiB", "queue = \"drr\"\ncredits = \"receiver\"", 16_384),
    ] {
        let experiment = experiment(policy, bytes);
        let once = || {
            measure(&experiment, &[], Present::All, true, None, &mut (), &mut |_| true).expect("a measurement").frames
        };
        group.throughput(Throughput::Elements(once()));
        group.bench_function(name, |b| b.iter(once));
    }
    group.finish();
}

criterion_group!(benches, interfaces);
criterion_main!(benches);
