//! Parsing a line takes little memory, however large the line is and whatever it contains.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

use plexus_claude::parse_oversized;

/// The system's allocator with a count of the used memory and its peak.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: both calls are passed unchanged to the system's allocator; counting uses only atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(in_use, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `memory` came from `alloc` above, and so from the system's allocator, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Repeats `unit`.
struct Repeat(&'static [u8], usize);

impl Read for Repeat {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        for byte in buf.iter_mut() {
            *byte = self.0[self.1];
            self.1 = (self.1 + 1) % self.0.len();
        }
        Ok(buf.len())
    }
}

// A single test, so that no other test allocates at the same time.
#[test]
fn a_line_of_8_megabytes_takes_little_memory_whatever_it_contains() {
    let shapes: [(&str, &[u8], &str); 9] = [
        (r#"{"type":"control_cancel_request","request_id":""#, b"x", r#""}"#),
        (r#"{"type":"user","message":{"content":""#, br"\u6f22", r#""}}"#),
        (r#"{""#, b"long key ", r#"":1}"#),
        (r#"{"type":"system""#, br#","key":"value","other":"value""#, "}"),
        (r#"{"type":"user","message":{"content":[0"#, br#",{"type":"text","text":"t"}"#, "]}}"),
        (r#"{"type":"result","errors":["#, br#""e","#, r#"""]}"#),
        (r#"{"type":"x","deep":"#, b"[", ""),
        (r#"{"type":"x","number":"#, b"7", "}"),
        (r#"{"type":"control_request","request":{"input":{"a":[0"#, b",[{}]", r#"]}},"request_id":"r"}"#),
    ];
    for (before, unit, after) in shapes {
        let bulk = 8 * 1024 * 1024 / unit.len() * unit.len();
        let reader = before.as_bytes().chain(Repeat(unit, 0).take(bulk as u64)).chain(after.as_bytes());
        let at_start = IN_USE.load(Ordering::Relaxed);
        PEAK.store(at_start, Ordering::Relaxed);
        let read = parse_oversized(reader, (before.len() + bulk + after.len()) as u64);
        let taken = PEAK.load(Ordering::Relaxed) - at_start;
        assert!(taken < 3 * 1024 * 1024, "{before}: {taken} bytes for {:.100}", format!("{read:?}"));
    }
    // A line within the limit is parsed into a tree, unless the tree would be many times its size.
    for (before, unit, after) in shapes {
        let line = [before.as_bytes(), &unit.repeat(8 * 1024 * 1024 / unit.len()), after.as_bytes()].concat();
        PEAK.store(IN_USE.load(Ordering::Relaxed), Ordering::Relaxed);
        let start = IN_USE.load(Ordering::Relaxed);
        drop(plexus_claude::parse(&line));
        let peak = PEAK.load(Ordering::Relaxed) - start;
        assert!(peak < 40 * 1024 * 1024, "{before}: {peak}");
    }
}
