//! The Python module `crosswind._core`: the only crate that knows Python.
//!
//! Thin: every function converts, calls one crate, converts back. `python/crosswind/_core.pyi` is its contract.

use pyo3::prelude::*;

mod access;
mod chosen;
mod contention;
mod errors;
mod farm;
mod filter;
mod inject;
mod interface;
mod journal;
mod measure;
mod model;
mod noise;
mod overlap;
mod overlay;
mod program;
mod ranks;
mod schema;
mod sim;
mod skeleton;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    schema::register(module)?;
    model::register(module)?;
    contention::register(module)?;
    sim::register(module)?;
    program::register(module)?;
    skeleton::register(module)?;
    overlap::register(module)?;
    overlay::register(module)?;
    interface::register(module)?;
    access::register(module)?;
    measure::register(module)?;
    farm::register(module)?;
    journal::register(module)?;
    inject::register(module)?;
    noise::register(module)?;
    ranks::register(module)?;
    filter::register(module)
}
