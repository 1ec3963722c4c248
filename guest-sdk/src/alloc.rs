//! The guest's allocator: size classes with free lists over a bump pointer.
//!
//! Every list that the host returns is first allocated in here, so an allocation has to cost a few instructions, and a
//! block of 64 KiB that a step frees has to be the block that the next step gets. General allocators coalesce and search;
//! an instance is single-threaded, short of state, and asks for the same few sizes again and again, so this one does
//! neither:
//!
//! - a request is rounded up to its class: multiples of 16 to 128 bytes, then four classes to each doubling, so at most a
//!   quarter of a block is slack;
//! - a freed block goes on its class's list, and the next request of the class takes it from there, newest first;
//! - when the list is empty, the block is cut from the end of memory, which grows in steps of 1 MiB or more.
//!
//! Blocks never change class and are never given back. So memory is at most the sum over classes of the most bytes that
//! the class ever held at once: in steady state nothing grows. The price is that a program whose every phase uses other
//! sizes keeps each phase's peak. Growing a block that ends where the bump pointer stands takes the space behind it, so a
//! vector filled by pushes does not leave its smaller selves behind.

use std::alloc::Layout;
use std::ptr::{NonNull, null_mut};

/// The least block, and the alignment of all: what a v128 needs.
const GRAIN: usize = 16;
/// Classes of one block size each step of `GRAIN`, up to here.
const SMALL: usize = 128;
/// Smallest step by which memory grows.
const CHUNK: usize = 1 << 20;
/// Enough for blocks up to 2^31 bytes: a wasm32 memory holds no two larger ones.
const CLASSES: usize = SMALL / GRAIN + 4 * (31 - SMALL.ilog2() as usize);
/// Alignments above `GRAIN` are rare; their blocks are powers of two with lists of their own.
const ALIGNED_CLASSES: usize = 32;

/// Where memory comes from.
pub(crate) trait Source {
    /// At least `bytes` more, directly behind what was given before: the new end. `None` when there is no more.
    fn grow(&mut self, bytes: usize) -> Option<usize>;
    /// The end of memory before anything was given.
    fn end(&self) -> usize;
}

/// A free block holds the next one of its list.
struct Free {
    next: Option<NonNull<Free>>,
}

/// The heap of one thread.
pub(crate) struct Heap<S> {
    source: S,
    lists: [Option<NonNull<Free>>; CLASSES],
    aligned: [Option<NonNull<Free>>; ALIGNED_CLASSES],
    /// Where the next new block begins; 0 before the first.
    bump: usize,
    /// The end of what the source gave.
    end: usize,
}

/// The class of a request and the size of its blocks; `None` for requests beyond 2^31 bytes.
#[inline(always)]
fn class(size: usize) -> Option<(usize, usize)> {
    if size <= SMALL {
        let steps = size.max(1).div_ceil(GRAIN);
        return Some((steps - 1, steps * GRAIN));
    }
    if size > 1 << 31 {
        return None;
    }
    // size is in (2^p, 2^(p + 1)]; its classes are the four quarters of that range.
    let p = (size - 1).ilog2() as usize;
    let quarter = 1usize << (p - 2);
    let steps = (size - (1 << p)).div_ceil(quarter);
    Some((SMALL / GRAIN + 4 * (p - SMALL.ilog2() as usize) + steps - 1, (1 << p) + steps * quarter))
}

impl<S: Source> Heap<S> {
    pub(crate) const fn new(source: S) -> Self {
        Self { source, lists: [None; CLASSES], aligned: [None; ALIGNED_CLASSES], bump: 0, end: 0 }
    }

    /// A block for `layout`, or null.
    #[inline]
    pub(crate) fn alloc(&mut self, layout: Layout) -> *mut u8 {
        if layout.align() > GRAIN {
            return self.alloc_aligned(layout);
        }
        let Some((class, size)) = class(layout.size()) else { return null_mut() };
        match self.lists[class] {
            Some(block) => {
                // SAFETY: a block on a list is free, at least GRAIN bytes long and aligned, and `free` wrote its `Free`.
                self.lists[class] = unsafe { block.as_ref().next };
                block.as_ptr().cast()
            }
            None => self.cut(size, GRAIN),
        }
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// `ptr` came from this heap for the same layout, and was not given back since.
    #[inline]
    pub(crate) unsafe fn free(&mut self, ptr: *mut u8, layout: Layout) {
        let list = if layout.align() > GRAIN {
            match aligned_class(layout) {
                Some(class) => &mut self.aligned[class],
                None => return,
            }
        } else {
            match class(layout.size()) {
                Some((class, _)) => &mut self.lists[class],
                None => return,
            }
        };
        if let Some(block) = NonNull::new(ptr.cast::<Free>()) {
            // SAFETY: the caller gives up the block, which is at least GRAIN bytes long and aligned for `Free`.
            unsafe { block.write(Free { next: *list }) };
            *list = Some(block);
        }
    }

    /// Grows or shrinks a block, in place where it can.
    ///
    /// # Safety
    /// As [`Heap::free`]; and `new_size` is not 0.
    #[inline]
    pub(crate) unsafe fn realloc(&mut self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Ok(new_layout) = Layout::from_size_align(new_size, layout.align()) else { return null_mut() };
        if layout.align() <= GRAIN {
            let (Some((old, old_size)), Some((new, size))) = (class(layout.size()), class(new_size)) else {
                return null_mut();
            };
            if old == new {
                return ptr;
            }
            let last = ptr as usize + old_size == self.bump;
            if last && size > old_size && self.make_room(size - old_size) {
                self.bump += size - old_size;
                return ptr;
            }
        }
        let to = self.alloc(new_layout);
        if !to.is_null() {
            // SAFETY: both blocks hold the smaller of the two sizes and are distinct: `ptr` was not free.
            unsafe {
                to.copy_from_nonoverlapping(ptr, layout.size().min(new_size));
                self.free(ptr, layout);
            }
        }
        to
    }

    /// Bytes taken from the source and not cut into blocks yet, and bytes cut.
    #[cfg(test)]
    fn cut_bytes(&self) -> usize {
        self.bump.saturating_sub(self.source.end())
    }

    #[cold]
    fn alloc_aligned(&mut self, layout: Layout) -> *mut u8 {
        let Some(class) = aligned_class(layout) else { return null_mut() };
        match self.aligned[class] {
            Some(block) => {
                // SAFETY: as in `alloc`.
                self.aligned[class] = unsafe { block.as_ref().next };
                block.as_ptr().cast()
            }
            None => self.cut(1 << class, layout.align().max(1 << class)),
        }
    }

    /// A new block from the end of memory.
    #[cold]
    fn cut(&mut self, size: usize, align: usize) -> *mut u8 {
        if self.bump == 0 {
            self.bump = self.source.end();
            self.end = self.bump;
        }
        let Some(at) = self.bump.checked_next_multiple_of(align) else { return null_mut() };
        let Some(bytes) = size.checked_add(at - self.bump) else { return null_mut() };
        if !self.make_room(bytes) {
            return null_mut();
        }
        self.bump = at + size;
        std::ptr::with_exposed_provenance_mut(at)
    }

    /// Whether `bytes` lie between the bump pointer and the end, after growing if need be.
    fn make_room(&mut self, bytes: usize) -> bool {
        let Some(wanted) = self.bump.checked_add(bytes) else { return false };
        if wanted > self.end {
            // A first try with a large step; near the limit, what is needed and no more.
            let more = wanted - self.end;
            match self.source.grow(more.max(CHUNK)).or_else(|| self.source.grow(more)) {
                Some(end) => self.end = end,
                None => return false,
            }
        }
        true
    }
}

fn aligned_class(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).checked_next_power_of_two()?;
    Some(size.ilog2() as usize).filter(|class| *class < ALIGNED_CLASSES)
}

#[cfg(target_arch = "wasm32")]
mod global {
    use super::{Heap, Source};
    use std::alloc::{GlobalAlloc, Layout};
    use std::cell::UnsafeCell;

    const PAGE: usize = 1 << 16;

    /// The instance's linear memory. Nothing else grows it, so what it gives is contiguous.
    struct LinearMemory;

    impl Source for LinearMemory {
        fn grow(&mut self, bytes: usize) -> Option<usize> {
            let pages = bytes.div_ceil(PAGE);
            let before = core::arch::wasm32::memory_grow::<0>(pages);
            if before == usize::MAX { None } else { (before + pages).checked_mul(PAGE) }
        }

        fn end(&self) -> usize {
            core::arch::wasm32::memory_size::<0>() * PAGE
        }
    }

    struct Global(UnsafeCell<Heap<LinearMemory>>);

    // SAFETY: instances have one thread: the target has no atomics, and the host calls one export at a time.
    unsafe impl Sync for Global {}

    #[global_allocator]
    static GLOBAL: Global = Global(UnsafeCell::new(Heap::new(LinearMemory)));

    // SAFETY: `Heap` gives disjoint blocks of the size and alignment asked for; with one thread and no re-entry (neither
    // `memory.grow` nor the heap calls out) the exclusive borrows never overlap.
    unsafe impl GlobalAlloc for Global {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            unsafe { (*self.0.get()).alloc(layout) }
        }

        #[inline]
        unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
            unsafe { (*self.0.get()).free(ptr, layout) }
        }

        #[inline]
        unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
            unsafe { (*self.0.get()).realloc(ptr, layout, new_size) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use std::collections::BTreeMap;

    /// A fixed arena in place of linear memory.
    struct Arena {
        memory: Vec<u128>,
        given: usize,
    }

    impl Arena {
        fn new(bytes: usize) -> Self {
            Self { memory: vec![0; bytes / 16], given: 0 }
        }
    }

    impl Source for Arena {
        fn grow(&mut self, bytes: usize) -> Option<usize> {
            let given = self.given.checked_add(bytes).filter(|g| *g <= self.memory.len() * 16)?;
            self.given = given;
            Some(self.end() + given)
        }

        fn end(&self) -> usize {
            self.memory.as_ptr().expose_provenance()
        }
    }

    #[test]
    fn classes_ascend_cover_their_requests_and_waste_a_quarter_at_most() {
        let mut last = (0, GRAIN);
        for size in (0..70_000).chain([1 << 20, (1 << 20) + 1, 1 << 31]) {
            let (class, block) = class(size).unwrap();
            assert!(block >= size && block % GRAIN == 0 && class < CLASSES, "{size}");
            assert!(size <= SMALL || block - size <= block / 4, "{size} in {block}");
            assert!((class, block) >= last && (class == last.0) == (block == last.1), "{size}");
            last = (class, block);
        }
        assert_eq!(class((1 << 31) + 1), None);
    }

    /// Random allocations, frees and reallocations; every live block holds its own pattern to the end.
    #[test]
    fn live_blocks_never_overlap_and_keep_their_bytes() {
        for seed in 0..20 {
            let mut rng = Rng::from_seed(seed);
            let mut heap = Heap::new(Arena::new(64 << 20));
            let mut live: BTreeMap<usize, (Layout, u8)> = BTreeMap::new();
            let fill = |ptr: usize, n: usize, byte: u8| {
                // SAFETY: tests hold the block at `ptr` of `n` bytes.
                unsafe { std::ptr::with_exposed_provenance_mut::<u8>(ptr).write_bytes(byte, n) }
            };
            let intact = |ptr: usize, n: usize, byte: u8| {
                // SAFETY: as above.
                unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(ptr), n) }
                    .iter()
                    .all(|b| *b == byte)
            };
            for i in 0..3_000u32 {
                let byte = i as u8;
                let bits = 1 + rng.below(15);
                let size = 1 + rng.below(1 << bits) as usize;
                match rng.below(if live.len() > 200 { 6 } else { 3 }) {
                    0 | 1 => {
                        let rare = rng.below(20) == 0;
                        let align = 1 << rng.below(if rare { 9 } else { 5 });
                        let layout = Layout::from_size_align(size, align).unwrap();
                        let ptr = heap.alloc(layout) as usize;
                        assert!(ptr != 0 && ptr.is_multiple_of(align));
                        let before = live.range(..=ptr).next_back();
                        assert!(before.is_none_or(|(p, (l, _))| p + l.size() <= ptr), "overlaps the block before");
                        let after = live.range(ptr..).next();
                        assert!(after.is_none_or(|(p, _)| ptr + size <= *p), "overlaps the block behind");
                        fill(ptr, size, byte);
                        live.insert(ptr, (layout, byte));
                    }
                    2 if !live.is_empty() => {
                        let at = *live.keys().nth(rng.below(live.len() as u32) as usize).unwrap();
                        let (layout, pattern) = live.remove(&at).unwrap();
                        assert!(intact(at, layout.size(), pattern));
                        let ptr = std::ptr::with_exposed_provenance_mut(at);
                        // SAFETY: the block is live, with this layout.
                        let new = unsafe { heap.realloc(ptr, layout, size) } as usize;
                        assert!(intact(new, layout.size().min(size), pattern));
                        fill(new, size, byte);
                        live.insert(new, (Layout::from_size_align(size, layout.align()).unwrap(), byte));
                    }
                    _ => {
                        if let Some((at, (layout, pattern))) = live.pop_first() {
                            assert!(intact(at, layout.size(), pattern));
                            // SAFETY: the block is live, with this layout.
                            unsafe { heap.free(std::ptr::with_exposed_provenance_mut(at), layout) };
                        }
                    }
                }
            }
            assert!(live.iter().all(|(at, (layout, pattern))| intact(*at, layout.size(), *pattern)));
        }
    }

    #[test]
    fn memory_stands_still_in_steady_state_and_the_same_block_comes_back() {
        let mut heap = Heap::new(Arena::new(16 << 20));
        let list = Layout::from_size_align(64 << 10, 4).unwrap();
        let first = heap.alloc(list);
        // SAFETY: allocated above, with this layout.
        unsafe { heap.free(first, list) };
        let mut settled = 0;
        for step in 0..10_000usize {
            let block = heap.alloc(list);
            assert_eq!(block, first);
            let small: Vec<_> = (1..50).map(|i| Layout::from_size_align(i * 37 + step % 7, 8).unwrap()).collect();
            let blocks: Vec<_> = small.iter().map(|l| heap.alloc(*l)).collect();
            for (block, layout) in blocks.iter().zip(&small) {
                // SAFETY: allocated above, with this layout.
                unsafe { heap.free(*block, *layout) };
            }
            // SAFETY: allocated above, with this layout.
            unsafe { heap.free(block, list) };
            if step == 100 {
                settled = heap.cut_bytes();
            }
        }
        assert_eq!(heap.cut_bytes(), settled);
    }

    #[test]
    fn the_last_block_grows_in_place() {
        let mut heap = Heap::new(Arena::new(16 << 20));
        let mut layout = Layout::from_size_align(16, 8).unwrap();
        let ptr = heap.alloc(layout);
        while layout.size() < 4 << 20 {
            // SAFETY: allocated with this layout.
            assert_eq!(unsafe { heap.realloc(ptr, layout, layout.size() * 2) }, ptr);
            layout = Layout::from_size_align(layout.size() * 2, 8).unwrap();
        }
        assert_eq!(heap.cut_bytes(), 4 << 20);
    }

    #[test]
    fn exhausted_memory_gives_null_and_the_heap_goes_on() {
        let mut heap = Heap::new(Arena::new(2 << 20));
        let big = Layout::from_size_align(3 << 20, 8).unwrap();
        assert!(heap.alloc(big).is_null());
        let fits = Layout::from_size_align((3 << 20) / 2, 8).unwrap();
        let block = heap.alloc(fits);
        assert!(!block.is_null());
        // SAFETY: allocated above, with this layout.
        assert!(unsafe { heap.realloc(block, fits, 3 << 20) }.is_null());
        assert!(!heap.alloc(Layout::from_size_align(100, 8).unwrap()).is_null());
    }
}
