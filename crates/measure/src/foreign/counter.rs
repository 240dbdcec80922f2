//! Step counter of a foreign process: one 64-bit little-endian integer at the start of a memory file.
//!
//! The process maps the file or writes to it (`pwrite`); both reach the same page as this end's mapping.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crosswind_access::token;
use memmap2::{MmapOptions, MmapRaw};

const BYTES: usize = 4096;

/// The file and its mapping.
pub struct Counter {
    path: PathBuf,
    map: MmapRaw,
    _file: File,
}

impl Counter {
    /// Creates the file, with the count at zero.
    ///
    /// # Errors
    /// When the file cannot be created or mapped.
    pub fn new() -> io::Result<Self> {
        let shared = Path::new("/dev/shm");
        let directory = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
        let drawn = u64::from_ne_bytes(token::random()?);
        let path = directory.join(format!("crosswind-{}-{drawn:016x}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        match file.set_len(BYTES as u64).and_then(|()| MmapOptions::new().len(BYTES).map_raw_read_only(&file)) {
            Ok(map) => Ok(Self { path, map, _file: file }),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Returns its path, valid until it is unlinked.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unlinks the file, so that nothing is left behind however this process ends.
    pub fn unlink(&self) {
        let _ = fs::remove_file(&self.path); // already unlinked is fine
    }

    #[must_use]
    pub fn steps(&self) -> u64 {
        // SAFETY: mapped for as long as this lives, aligned to a page, and read atomically.
        let count = unsafe { &*self.map.as_ptr().cast::<AtomicU64>() };
        u64::from_le(count.load(Ordering::Relaxed))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.unlink();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn what_is_written_to_the_file_is_counted() {
        let counter = Counter::new().expect("memory");
        let path = counter.path().to_owned();
        assert_eq!(counter.steps(), 0);
        let file = OpenOptions::new().write(true).open(&path).expect("there");
        counter.unlink();
        file.write_at(&0x0102_0304_0506_u64.to_le_bytes(), 0).expect("room");
        assert_eq!(counter.steps(), 0x0102_0304_0506);
        drop(counter);
        assert!(!path.exists());
    }
}
