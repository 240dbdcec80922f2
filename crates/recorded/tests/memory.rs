//! How much a reader keeps of a file, counted in the allocator: of long files, what the verdict needs and no more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write as _;

use crosswind_recorded::Reader;

thread_local! {
    /// Bytes that this thread holds, and the most since it was set.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(bytes: isize) {
    // A thread that ends counts nothing any more.
    let _ = HELD.try_with(|held| {
        let (now, most) = held.get();
        held.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: all of it is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes handed to a reader at a time.
const PIECE: usize = 1 << 16;

/// Feeds a file that is made as it is read; returns its size and the most bytes that the reader held meanwhile.
fn read(head: &str, part: impl Fn(u64, &mut String), parts: u64, end: &str) -> (usize, usize) {
    let mut text = String::with_capacity(4 * PIECE);
    let mut reader = Reader::new("rank-0");
    HELD.with(|held| held.set((0, 0)));
    let mut size = 0;
    text += head;
    for number in 0..parts {
        part(number, &mut text);
        if text.len() >= PIECE || number + 1 == parts {
            if number + 1 == parts {
                text += end;
            }
            reader.feed(text.as_bytes()).unwrap();
            size += text.len();
            text.clear();
        }
    }
    let most = HELD.with(Cell::get).1;
    assert!(!reader.finish().unwrap().is_empty());
    (size, most as usize)
}

#[test]
fn of_a_profile_only_what_the_verdict_needs_is_kept() {
    let event = |number: u64, text: &mut String| {
        let ts = 10 * number;
        let (category, name) =
            if number % 100 == 0 { ("user_annotation", "gloo:all_reduce") } else { ("cpu_op", "aten::linear") };
        let _ = writeln!(
            text,
            "{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": 1, \"tid\": 1, \"ts\": {ts}.125, \
             \"dur\": 8.5, \"args\": {{\"External id\": {number}, \"Input Dims\": [[8, 256], [256, 256], [256]], \"Input type\": \
             [\"float\", \"float\", \"float\"], \"Call stack\": \"a.py(1): f;b.py(2): g\"}}}},"
        );
    };
    let head = "{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 0, \"world_size\": 2}, \"traceEvents\": [\n";
    let end = "{\"ph\": \"M\", \"name\": \"x\", \"pid\": 1}]}";
    let (size, most) = read(head, event, 100_000, end);
    assert!(size > 20_000_000, "{size}");
    assert!(most < size / 5, "{most} of {size}");
    // Twice the file takes at most twice the memory: nothing else grows.
    let (twice, more) = read(head, event, 200_000, end);
    assert!(twice > 19 * size / 10 && more < 5 * most / 2, "{most} of {size}, {more} of {twice}");
}

#[test]
fn what_is_not_read_of_a_profile_takes_no_memory() {
    let event = |number: u64, text: &mut String| {
        let _ = writeln!(
            text,
            "{{\"ph\": \"i\", \"cat\": \"python_function\", \"name\": \"f\", \"pid\": 1, \"tid\": 1, \"ts\": {number}.0, \"args\": \
             {{\"Python id\": {number}, \"Python module\": \"torch.nn.modules.module.Module.with.a.long.name\"}}}},"
        );
    };
    let end = "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 1}]}";
    let (size, most) = read("{\"traceEvents\": [\n", event, 200_000, end);
    assert!(size > 20_000_000, "{size}");
    assert!(most < 1_000_000, "{most} of {size}");
}

#[test]
fn of_lines_of_calls_no_text_is_kept() {
    let call = |number: u64, text: &mut String| {
        let at = number as f64;
        let _ = writeln!(
            text,
            "{{\"op\": \"allreduce\", \"t0\": {at:.9}, \"t1\": {:.9}, \"bytes\": 8, \"note\": \"{}\"}}",
            at + 0.5,
            "x".repeat(400)
        );
    };
    let (size, most) = read("{\"rank\": 0, \"world\": 2, \"t0\": 0}\n", call, 40_000, "");
    assert!(size > 15_000_000, "{size}");
    assert!(most < 16_000_000, "{most} of {size}");
}
