//! What only the papers' studies need.

pub mod homework;
