//! What the machine has, and what this process took, from the kernel's own files.

use std::fs;

/// Bytes that can be had without swapping; `None` where the kernel does not say.
pub fn available_bytes() -> Option<u64> {
    kib(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Most bytes of memory that this process ever held; 0 where the kernel does not say.
pub fn peak_bytes() -> u64 {
    fs::read_to_string("/proc/self/status").ok().and_then(|s| kib(&s, "VmHWM:")).unwrap_or(0)
}

fn kib(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read_as_bytes() {
        assert_eq!(kib("VmPeak:\t  10 kB\nVmHWM:\t    2048 kB\n", "VmHWM:"), Some(2 << 20));
        assert_eq!(kib("VmHWM:\t x kB\n", "VmHWM:"), None);
        assert!(peak_bytes() > 0);
    }
}
