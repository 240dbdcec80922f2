//! Benchmarks of the hot paths: `cargo bench --manifest-path benchmarks/rust/Cargo.toml`.
