//! A farm's mean task.

/// A task of mean size and work: what orders and buffers reckon with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanTask {
    /// Input, MB.
    pub size_mb: f64,
    /// Work units.
    pub work: f64,
}
