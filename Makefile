# Slackline's everyday commands. `make demo` and `make test` install and build what is missing first.
#
# The build cache lies outside the clone, so that RocksDB's C++ is compiled once a machine and not once a clone; a link
# named `target` leads there.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/slackline/target
BIN := $(CARGO_TARGET_DIR)/release/slackline
PLUGINS := lda mf mlr
export SHARED ?= ../shared

.PHONY: help setup build test-guests demo test bench doc accept check clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile

setup: ## install what building needs
	@scripts/setup.sh

build: setup ## the binary and the bundled plugins
	@mkdir -p $(CARGO_TARGET_DIR)
	@[ -e target ] || ln -s $(CARGO_TARGET_DIR) target
	cargo build --release --workspace --bins
	@cd $(CARGO_TARGET_DIR)/release; mkdir -p plugins; for p in $(PLUGINS); do \
		$(BIN) plugin build $(CURDIR)/plugins/$$p --release --quiet --out plugins && mv plugins/slackline_$$p.wasm plugins/$$p.wasm || exit; done

test-guests: build ## the plugins that only tests use
	@$(BIN) plugin build tests/guests/misfit --release --quiet --out $(CARGO_TARGET_DIR)/release/test-guests

demo: build ## train topics on 18,000 newsgroup posts with two workers
	$(BIN) run examples/topics/job.toml --fresh --report $(CARGO_TARGET_DIR)/topics.html

test: test-guests ## every test
	cargo test --release --workspace

bench: build ## speed, as ratios and costs per row
	cd $(CARGO_TARGET_DIR)/release && $(BIN) plugin build $(CURDIR)/tests/guests/rows --release --quiet --out plugins \
		&& mv plugins/slackline_guest_rows.wasm plugins/rows.wasm
	cargo run --release -p slackline-bench -- $(BENCH)

doc: ## the crates' documentation
	cargo doc --release --no-deps --workspace

accept: build ## checks from outside, where their folder exists
	@if [ -f $(SHARED)/accept/one_machine.py ]; then python3 $(SHARED)/accept/one_machine.py --bin $(BIN); \
	else echo "skipped: $(SHARED)/accept is not here"; fi

check: ## format, lints, documentation, edges between crates, licences
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --no-deps --workspace
	scripts/edges.sh
	scripts/deny.sh

clean: ## remove the build cache, which all clones share
	rm -rf $(CARGO_TARGET_DIR)
