//! GPU probe: measures how a kernel and a paced transfer slow each other.
//!
//! A [`Block`] is one setting: an optional kernel and optional traffic. [`Gpu::time`] runs it and returns the work done
//! and the bytes moved between two events on the GPU's own clock. The order of the blocks and the evaluation of their
//! results are up to Python (`crosswind/gpu`).
//!
//! The driver is loaded when a device is opened. A machine without one gets an error, and nothing links against CUDA.

mod block;
mod condition;
mod driver;
mod error;
mod gpu;
mod movers;
mod pace;
mod traffic;
mod work;

pub use block::{Ahead, Block, Timed};
pub use condition::Condition;
pub use error::GpuError;
pub use gpu::{About, Enqueue, Gpu};
pub use traffic::{Engine, Memory, Path, Traffic};
pub use work::Kernel;
