//! Programs of the papers, used only by the papers' studies.

pub mod cholesky;
pub mod column;
pub mod connect;
pub mod em3d;
pub mod sample;
mod sorting;
