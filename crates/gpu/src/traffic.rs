//! Traffic that runs beside a kernel: its path, engine and host memory.

use serde::{Deserialize, Serialize};

use crate::error::GpuError;

/// The path of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    HostToDevice,
    DeviceToHost,
    /// Both directions at once, each at the requested rate.
    Both,
    DeviceToDevice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// The driver's copy, by a copy engine if the path has one.
    CopyEngine,
    /// A kernel with this number of blocks of 512 threads, like those of collectives.
    Multiprocessors(u32),
    /// This number of host threads, like a data loader: each fills ordinary memory, copies it into page-locked memory,
    /// and enqueues a copy-engine transfer on its own stream.
    Loader(u32),
}

/// Maximum number of loader threads. Each gets an equal part of the buffers.
pub(crate) const MOST_LOADERS: u32 = 8;

/// Kind of the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Page-locked: the device accesses it directly.
    Pinned,
    /// Ordinary memory: the driver copies it through its own page-locked memory.
    Pageable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    pub path: Path,
    pub engine: Engine,
    /// Kind of the host's memory. Ignored within the device.
    pub memory: Memory,
    /// Bytes per chunk, which is also the granularity of pacing.
    pub chunk_bytes: usize,
}

impl Traffic {
    /// Checks what can be checked without a device.
    ///
    /// # Errors
    /// A chunk or the number of blocks or threads is out of range, the engine does not support the path, or
    /// multiprocessors are to read pageable memory.
    pub fn check(&self) -> Result<(), GpuError> {
        let wrong = |field, value: String, permitted: &str| {
            Err(GpuError::Value { field, value, permitted: permitted.to_owned() })
        };
        if self.chunk_bytes % 64 != 0 || !(4096..=1 << 28).contains(&self.chunk_bytes) {
            return wrong("chunk_bytes", self.chunk_bytes.to_string(), "a multiple of 64 from 4096 to 268435456");
        }
        match self.engine {
            Engine::Multiprocessors(blocks) if !(1..=1024).contains(&blocks) => {
                wrong("blocks", blocks.to_string(), "1 to 1024")
            }
            Engine::Multiprocessors(_) if self.memory == Memory::Pageable => {
                wrong("memory", "pageable".to_owned(), "pinned, where the multiprocessors move the bytes")
            }
            Engine::Loader(threads) if !(1..=MOST_LOADERS).contains(&threads) => {
                wrong("threads", threads.to_string(), "1 to 8")
            }
            Engine::Loader(_) if self.path != Path::HostToDevice => {
                wrong("path", format!("{:?}", self.path), "host-to-device, where threads load data")
            }
            Engine::Loader(_) if self.chunk_bytes > 1 << 23 => {
                wrong("chunk_bytes", self.chunk_bytes.to_string(), "at most 8388608, where threads load data")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CE: Traffic =
        Traffic { path: Path::Both, engine: Engine::CopyEngine, memory: Memory::Pageable, chunk_bytes: 1 << 20 };

    #[test]
    fn multiprocessors_cannot_read_pageable_memory() {
        let asked = Traffic { engine: Engine::Multiprocessors(8), ..CE };
        assert!(CE.check().is_ok());
        assert!(asked.check().unwrap_err().to_string().starts_with("memory is pageable"));
    }

    #[test]
    fn loaders_fill_the_device_with_one_to_eight_threads() {
        let asked = |threads| Traffic { engine: Engine::Loader(threads), path: Path::HostToDevice, ..CE };
        assert!([1, 8].into_iter().all(|threads| asked(threads).check().is_ok()));
        assert_eq!(asked(9).check().unwrap_err().to_string(), "threads is 9; it must be 1 to 8");
        assert!(Traffic { engine: Engine::Loader(2), ..CE }.check().is_err());
        assert!(Traffic { chunk_bytes: 1 << 24, ..asked(2) }.check().is_err());
    }

    #[test]
    fn chunks_have_a_range() {
        for chunk_bytes in [0, 100, 4097, (1 << 28) + 64] {
            assert!(Traffic { chunk_bytes, ..CE }.check().is_err(), "{chunk_bytes}");
        }
    }
}
