//! Models used only by the papers' studies.

pub mod homework;
