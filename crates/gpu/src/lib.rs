//! The probe of a GPU: times a kernel while bytes move at a paced rate, and the bytes while the kernel runs.
//!
//! One [`Block`] is one setting: a kernel or none, traffic or none. [`Gpu::time`] runs it and returns how much work was
//! done and how many bytes moved between two events on the GPU's own clock. Which blocks come in which order, and what
//! follows from them, is decided in Python (`crosswind/gpu`).
//!
//! The driver is loaded when a device is opened: a machine without one gets an error, and nothing links against CUDA.

mod block;
mod condition;
mod driver;
mod error;
mod gpu;
mod moving;
mod pace;
mod traffic;
mod work;

pub use block::{Ahead, Block, Timed};
pub use condition::Condition;
pub use error::GpuError;
pub use gpu::{About, Enqueue, Gpu};
pub use traffic::{Engine, Memory, Path, Traffic};
pub use work::Kernel;
