//! The Python module `crosswind._core`, the only crate that depends on Python.
//!
//! It is thin: every function converts its arguments, calls one crate and converts the result.
//! `python/crosswind/_core.pyi` is its contract.

use pyo3::prelude::*;

mod access;
mod buffers;
mod contention;
mod errors;
mod farm;
mod filter;
mod freezer;
mod function;
mod gpu;
mod inject;
mod journal;
mod measure;
mod model;
mod names;
mod noise;
mod overlay;
mod own_policy;
mod ranks;
mod recorded;
mod schema;
mod sim;
mod simulations;
mod skeleton;
mod watched;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    // A build for tests computes at other rates, and its losses differ.
    module.add("FOR_TESTS", cfg!(debug_assertions))?;
    schema::register(module)?;
    model::register(module)?;
    contention::register(module)?;
    sim::register(module)?;
    simulations::register(module)?;
    skeleton::register(module)?;
    overlay::register(module)?;
    own_policy::register(module)?;
    access::register(module)?;
    measure::register(module)?;
    gpu::register(module)?;
    buffers::register(module)?;
    farm::register(module)?;
    journal::register(module)?;
    names::register(module)?;
    inject::register(module)?;
    noise::register(module)?;
    ranks::register(module)?;
    recorded::register(module)?;
    filter::register(module)?;
    freezer::register(module)
}
