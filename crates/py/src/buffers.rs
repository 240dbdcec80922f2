//! Bytes of Rust as buffers of Python, without a copy.

use std::ffi::c_int;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use crosswind_live::farm::function::Shared;
use memmap2::{MmapMut, MmapOptions};
use pyo3::ffi;
use pyo3::prelude::*;

pub enum Bytes {
    /// Input of a task, which is read-only.
    Input(Arc<Vec<u8>>),
    /// Memory that nothing else uses.
    Own(Vec<u8>),
    /// Bytes with another owner: read-only.
    Shared(Shared),
    /// The content of a file. What Python writes into it is this process's own.
    Mapped(MmapMut),
}

#[pyclass(frozen, module = "crosswind._core")]
pub struct Buffer(pub Bytes);

#[pymethods]
impl Buffer {
    /// Maps the first `size` bytes of an open file, which no process may change or cut as long as this object lives.
    #[staticmethod]
    fn mapped(descriptor: RawFd, size: usize) -> PyResult<Self> {
        // SAFETY: the descriptor is open during this call, and the caller answers for the file's content.
        let map = unsafe { MmapOptions::new().len(size).map_copy(&BorrowedFd::borrow_raw(descriptor)) };
        Ok(Self(Bytes::Mapped(map?)))
    }

    /// # Safety
    /// As the buffer protocol requires: `view` is valid or null.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (start, length, readonly) = match &slf.get().0 {
            Bytes::Input(bytes) => (bytes.as_ptr(), bytes.len(), 1),
            Bytes::Shared(bytes) => (bytes.as_slice().as_ptr(), bytes.as_slice().len(), 1),
            Bytes::Own(bytes) => (bytes.as_ptr(), bytes.len(), 0),
            Bytes::Mapped(map) => (map.as_ptr(), map.len(), 0),
        };
        let (start, length) = (start.cast_mut().cast(), length as ffi::Py_ssize_t);
        // SAFETY: the bytes live as long as this object, which the view keeps alive. Input is never written, and Rust
        // never looks at what is mapped or at memory that is given away.
        match unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, readonly, flags) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}
