//! The programs of the papers, which nothing but the papers' studies needs.

pub mod cholesky;
pub mod column;
pub mod connect;
pub mod em3d;
pub mod sample;
mod sorting;
