//! The Python module `crosswind._core`: the only crate that knows Python.
//!
//! Thin: every function converts, calls one crate, converts back. `python/crosswind/_core.pyi` is its contract.

use pyo3::prelude::*;

mod access;
mod contention;
mod errors;
mod farm;
mod filter;
mod freezer;
mod inject;
mod journal;
mod measure;
mod model;
mod noise;
mod overlay;
mod ranks;
mod schema;
mod sim;
mod simulations;
mod skeleton;
mod watched;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    // A build for tests computes, and so loses, at other rates.
    module.add("FOR_TESTS", cfg!(debug_assertions))?;
    schema::register(module)?;
    model::register(module)?;
    contention::register(module)?;
    sim::register(module)?;
    simulations::register(module)?;
    skeleton::register(module)?;
    overlay::register(module)?;
    access::register(module)?;
    measure::register(module)?;
    farm::register(module)?;
    journal::register(module)?;
    inject::register(module)?;
    noise::register(module)?;
    ranks::register(module)?;
    filter::register(module)?;
    freezer::register(module)
}
