//! The machine, as far as it bears on the figures.

use serde::Serialize;

/// What ran the bench.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// The processor, as the kernel names it.
    pub cpu: String,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let field = |path: &str, key: &str| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let line = text.lines().find_map(|l| l.strip_prefix(key)).map(|v| v.trim_start_matches([' ', '\t', ':']));
            line.unwrap_or_default().trim().to_owned()
        };
        let kib = field("/proc/meminfo", "MemTotal");
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: field("/proc/cpuinfo", "model name"),
            memory_bytes: kib.trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0) * 1024,
        }
    }
}
