//! Bytes of Rust as buffers of Python, without a copy; memory of another process as a buffer, with one copy.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

use crosswind_linux::memory;
use crosswind_linux::processes::Pid;
use crosswind_linux::spare::Memory;
use crosswind_live::farm::function::Shared;
use memmap2::{MmapMut, MmapOptions};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

pub enum Bytes {
    /// Input of a task, which is read-only.
    Input(Arc<Vec<u8>>),
    /// Memory that nothing else uses.
    Own(Vec<u8>),
    /// The same, for other buffers after this one.
    Reused(Memory),
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

    /// Returns a copy of a contiguous buffer, in memory that is used again.
    #[staticmethod]
    fn copied(py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<Self> {
        if !buffer.is_c_contiguous() {
            return Err(PyBufferError::new_err("the buffer has gaps"));
        }
        // SAFETY: the buffer lives until this call returns. What another thread writes meanwhile may be copied or not, as by
        // every reader of memory that is shared.
        let from =
            unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<MaybeUninit<u8>>(), buffer.len_bytes()) };
        let copy = |into: &mut [MaybeUninit<u8>]| {
            into.copy_from_slice(from);
            Ok(())
        };
        Ok(Self(Bytes::Reused(py.detach(|| Memory::filled(from.len(), copy))?)))
    }

    /// Copies memory of another process of this user. Raises `OSError` if it has ended or may not be read.
    #[staticmethod]
    fn of_process(py: Python<'_>, process: Pid, address: usize, size: usize) -> PyResult<Self> {
        Ok(Self(Bytes::Reused(py.detach(|| Memory::filled(size, |into| memory::read(process, address, into)))?)))
    }

    /// # Safety
    /// As the buffer protocol requires: `view` is valid or null.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (start, length, readonly) = match &slf.get().0 {
            Bytes::Input(bytes) => (bytes.as_ptr(), bytes.len(), 1),
            Bytes::Shared(bytes) => (bytes.as_slice().as_ptr(), bytes.as_slice().len(), 1),
            Bytes::Own(bytes) => (bytes.as_ptr(), bytes.len(), 0),
            Bytes::Reused(memory) => (memory.as_slice().as_ptr(), memory.as_slice().len(), 0),
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

/// Returns whether two contiguous buffers hold the same bytes. Python's own comparison of views looks at each item.
#[pyfunction]
fn same_bytes(one: PyBuffer<u8>, other: PyBuffer<u8>) -> bool {
    match (one.as_slice_ptr(), other.as_slice_ptr()) {
        // SAFETY: both buffers live as long as their `PyBuffer`. What another thread writes meanwhile may be seen or not, as
        // by every reader of memory that is shared.
        (Some(one), Some(other)) => unsafe { one.as_ref() == other.as_ref() },
        _ => false,
    }
}

/// Returns where a contiguous buffer is in this process's memory, for as long as its object lives unchanged.
#[pyfunction]
fn address_of(buffer: PyBuffer<u8>) -> usize {
    buffer.buf_ptr() as usize
}

/// Fills a buffer with memory of another process of this user. Raises `OSError` if it has ended or may not be read.
#[pyfunction]
fn read_process(py: Python<'_>, process: Pid, address: usize, into: PyBuffer<u8>) -> PyResult<()> {
    if into.readonly() || !into.is_c_contiguous() {
        return Err(PyBufferError::new_err("the buffer is read-only or has gaps"));
    }
    // SAFETY: the buffer lives until this call returns, and all its bytes are in one piece. They are only written here.
    let content = unsafe { std::slice::from_raw_parts_mut(into.buf_ptr().cast::<MaybeUninit<u8>>(), into.len_bytes()) };
    py.detach(|| {
        memory::prefer_large_pages(content);
        memory::read(process, address, content)
    })?;
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Buffer>()?;
    module.add_function(wrap_pyfunction!(same_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(address_of, module)?)?;
    module.add_function(wrap_pyfunction!(read_process, module)?)
}
