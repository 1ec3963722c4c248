//! The engine: how components are compiled and how runaway guests are ended, once for a process.

use crate::cache::AotCache;
use crate::clock::StepClock;
use crate::component::Component;
use crate::contract::Contract;
use crate::host::State;
use crate::limits::{Bytes, Limits};
use crate::v0_1;
use crate::watchdog::{OnOverrun, Periodic, TICK, Watchdog};
use slackline_core::{PluginError, PluginErrorKind};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::Linker;
use wasmtime::{Config, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, WasmBacktraceDetails};

/// Bytes of a guest's call stack. Threads that run instances need more than this.
pub const GUEST_STACK: usize = 1 << 20;

/// How a runaway guest is ended (DESIGN §6).
#[derive(Clone)]
pub enum Interrupt {
    /// The process is expendable: no checks are compiled in, and a watchdog thread calls this, which ends the process.
    Process(OnOverrun),
    /// Checks are compiled in, and the call fails with [`PluginErrorKind::Deadline`].
    Epoch,
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interrupt::Process(_) => "Process",
            Interrupt::Epoch => "Epoch",
        })
    }
}

/// Where instances get their memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocation {
    /// Mapped when an instance is made. The default: instances live for many steps, and one costs tens of microseconds.
    #[default]
    OnDemand,
    /// From slots mapped beforehand, for this many instances.
    Pooling(u32),
}

/// What an [`Engine`] is made from.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// How a runaway guest is ended.
    pub interrupt: Interrupt,
    /// Where compiled code is kept; nowhere when absent.
    pub cache_dir: Option<PathBuf>,
    /// What each instance may use.
    pub limits: Limits,
    /// Bytes of a component at most.
    pub component_bytes: usize,
    /// Where instances get their memory.
    pub allocation: Allocation,
}

impl EngineConfig {
    /// Defaults: 64 MiB of component, no cache, [`Limits::default`].
    pub fn new(interrupt: Interrupt) -> Self {
        Self {
            interrupt,
            cache_dir: None,
            limits: Limits::default(),
            component_bytes: 64 << 20,
            allocation: Allocation::default(),
        }
    }
}

/// Why an engine could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The cache folder cannot be used.
    #[error("cannot keep compiled plugins in {}: {source}", path.display())]
    Cache {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start the thread that ends runaway plugins: {0}")]
    Thread(std::io::Error),
    /// wasmtime refuses this machine or configuration.
    #[error("cannot run WebAssembly on this machine: {0:#}")]
    Wasmtime(wasmtime::Error),
}

/// Compiles and runs components. Clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    wasmtime: wasmtime::Engine,
    linker: Linker<State>,
    contract: Contract,
    cache: Option<AotCache>,
    limits: Limits,
    component_bytes: usize,
    guard: Guard,
}

/// Whichever thread ends runaway guests; it stops with the engine.
enum Guard {
    Watchdog(Watchdog),
    Ticker { _thread: Periodic },
}

impl Engine {
    /// An engine for this process.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        let wasmtime = wasmtime::Engine::new(&wasmtime_config(&config)).map_err(EngineError::Wasmtime)?;
        let linker = v0_1::linker(&wasmtime).map_err(EngineError::Wasmtime)?;
        let contract = Contract::parse(v0_1::PACKAGE, v0_1::WORLD, &v0_1::WIT).map_err(EngineError::Wasmtime)?;
        let cache = match config.cache_dir {
            None => None,
            Some(path) => Some(AotCache::open(&path).map_err(|source| EngineError::Cache { path, source })?),
        };
        let guard = match config.interrupt {
            Interrupt::Process(on_overrun) => {
                let period =
                    (config.limits.step_deadline / 20).clamp(Duration::from_millis(1), Duration::from_millis(100));
                Guard::Watchdog(Watchdog::start(period, on_overrun).map_err(EngineError::Thread)?)
            }
            Interrupt::Epoch => {
                let weak = wasmtime.weak();
                let tick = move || {
                    if let Some(engine) = weak.upgrade() {
                        engine.increment_epoch();
                    }
                };
                Guard::Ticker { _thread: Periodic::start("epoch-ticker", TICK, tick).map_err(EngineError::Thread)? }
            }
        };
        Ok(Self {
            inner: Arc::new(Inner {
                wasmtime,
                linker,
                contract,
                cache,
                limits: config.limits,
                component_bytes: config.component_bytes,
                guard,
            }),
        })
    }

    /// Compiles a component, checks it against the contract, and asks it to describe itself. `origin` says in messages
    /// where the bytes are from.
    pub fn load(&self, bytes: &[u8], origin: &str) -> Result<Component, PluginError> {
        let refused = |why: String| PluginError::new(PluginErrorKind::Refused, format!("{origin}: {why}"));
        if bytes.len() > self.inner.component_bytes {
            let (is, bound) = (Bytes(bytes.len() as u64), Bytes(self.inner.component_bytes as u64));
            return Err(refused(format!("the component has {is}, where {bound} are allowed")));
        }
        if let Some(why) = not_a_component(bytes) {
            return Err(refused(why.into()));
        }
        let digest = blake3::hash(bytes);
        let component = self.compile(bytes, &digest).map_err(|e| refused(format!("this does not validate: {e:#}")))?;
        let surface = self.inner.contract.check(&component, &self.inner.wasmtime).map_err(refused)?;
        let pre = self.inner.linker.instantiate_pre(&component).and_then(v0_1::DataParallelPre::new);
        let pre = pre.map_err(|e| refused(format!("this does not link: {e:#}")))?;
        Component::new(self.clone(), pre, digest, bytes.len(), origin, surface)
    }

    fn compile(&self, bytes: &[u8], digest: &blake3::Hash) -> wasmtime::Result<wasmtime::component::Component> {
        let engine = &self.inner.wasmtime;
        let Some(cache) = &self.inner.cache else { return wasmtime::component::Component::new(engine, bytes) };
        let id = self.cache_id(digest);
        if let Some(code) = cache.get(&id) {
            // SAFETY: `get` gives only bytes whose keyed hash proves that `put` below, run by the owner of the folder,
            // stored them under this id, so that they are what this version of wasmtime made for this configuration.
            match unsafe { wasmtime::component::Component::deserialize(engine, &code) } {
                Ok(component) => return Ok(component),
                Err(e) => tracing::warn!(error = %e, "compiled code does not fit this engine, and is compiled again"),
            }
        }
        let component = wasmtime::component::Component::new(engine, bytes)?;
        if let Err(e) = component.serialize().and_then(|code| Ok(cache.put(&id, &code)?)) {
            tracing::warn!(error = %e, "compiled code could not be kept");
        }
        Ok(component)
    }

    /// What compiled code depends on.
    fn cache_id(&self, digest: &blake3::Hash) -> blake3::Hash {
        let mut hasher = Blake(blake3::Hasher::new_derive_key("slackline 2026 compiled component"));
        digest.as_bytes().hash(&mut hasher);
        self.inner.wasmtime.precompile_compatibility_hash().hash(&mut hasher);
        self.has_epochs().hash(&mut hasher);
        hasher.0.finalize()
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.inner.wasmtime
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn has_epochs(&self) -> bool {
        matches!(self.inner.guard, Guard::Ticker { .. })
    }

    /// Puts an instance's clock under the watchdog, when there is one.
    pub(crate) fn watch(&self, clock: &Arc<StepClock>) {
        if let Guard::Watchdog(dog) = &self.inner.guard {
            dog.watch(clock);
        }
    }
}

/// Lets anything that can be hashed be hashed by BLAKE3.
struct Blake(blake3::Hasher);

impl Hasher for Blake {
    fn finish(&self) -> u64 {
        let hash = self.0.finalize();
        hash.as_bytes().iter().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

/// What the bytes are instead of a component, as far as their first ones tell.
fn not_a_component(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x7fELF") || wasmtime::Engine::detect_precompiled(bytes).is_some() {
        return Some(
            "this is native code (an ELF file or a .cwasm), which is never taken from outside: give the .wasm component",
        );
    }
    match bytes.get(..8) {
        Some(b"\0asm\x0d\0\x01\0") => None,
        Some(b"\0asm\x01\0\0\0") => Some("this is a core module; build it with `slackline plugin build`"),
        Some(head) if head.starts_with(b"\0asm") => Some(
            "this is WebAssembly of a version that this host does not know; build it with `slackline plugin build`",
        ),
        _ => Some("this is not WebAssembly; build a plugin with `slackline plugin build`"),
    }
}

fn wasmtime_config(config: &EngineConfig) -> Config {
    let mut c = Config::new();
    c.cranelift_opt_level(OptLevel::Speed)
        .parallel_compilation(true)
        .epoch_interruption(matches!(config.interrupt, Interrupt::Epoch))
        .max_wasm_stack(GUEST_STACK)
        // A reservation of all that 32 bits can address, so that no load or store needs a bounds check.
        .memory_reservation(1 << 32)
        .memory_guard_size(32 << 20)
        .memory_may_move(false)
        // Traps name the guest's function, file and line.
        .wasm_backtrace_details(WasmBacktraceDetails::Enable)
        .generate_address_map(true)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .shared_memory(false)
        .wasm_tail_call(false)
        // Its results differ between machines (C13).
        .wasm_relaxed_simd(false)
        .concurrency_support(false);
    c.allocation_strategy(match config.allocation {
        Allocation::OnDemand => InstanceAllocationStrategy::OnDemand,
        Allocation::Pooling(instances) => {
            let mut pool = PoolingAllocationConfig::new();
            pool.total_component_instances(instances)
                .total_core_instances(4 * instances)
                .total_memories(instances)
                .total_tables(4 * instances)
                .max_memory_size(usize::try_from(config.limits.memory).unwrap_or(usize::MAX).min(1 << 32));
            InstanceAllocationStrategy::Pooling(pool)
        }
    });
    c
}
