# Two commands do everything: `make demo` and `make test`. Both build what they need into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CROSSWIND := $(BIN)/crosswind
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
DEMO := demo
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_TARGETS := $(basename $(notdir $(wildcard fuzz/targets/*.rs)))
FUZZ_SECONDS ?= 60
# The build asks for maturin by name. Once, also below another make: pyo3 is compiled again, with what uses it, when PATH changes.
ifneq ($(firstword $(subst :, ,$(PATH))),$(CURDIR)/$(BIN))
export PATH := $(CURDIR)/$(BIN):$(PATH)
endif
# Beside another stage (--jobs 2) cargo would be given the descriptors of make's jobs, closed, and warn of that.
CARGO := env -u MAKEFLAGS -u MFLAGS cargo
# Tests start many processes: none is to compile again what another has.
unexport PYTHONDONTWRITEBYTECODE

# Which processor a wheel is for; another than this machine's needs `rustup target add` first.
WHEEL_TARGET ?= $(HOST)
WHEEL_GLIBC := manylinux_2_28

SCHEDULES ?= 100000
SEED ?= 0

.PHONY: help build crates wheel docs screenshots demo test test-build test-code test-all test-fast test-fast-rust test-fast-python test-rust test-unit test-lab test-live test-long test-fuzz test-faults fuzz lint lint-rust lint-python schemas bench clean

help:
	@echo "make demo   measure this machine, fit, plan, compare policies, and write one HTML report ($(DEMO)/report.html)"
	@echo "make test   all tests and lints"
	@echo "make test-all  the same, then long tests, fuzzing and drawn faults: what runs every night"
	@echo "make test-fast  the unit tests: no live processes, about a minute once it is built"
	@echo "make test BASE=origin/main  the same without the lab's tests, if nothing that the lab uses differs from there"
	@echo "make test-fuzz FUZZ_SECONDS=600  fuzz every parser, so long each"
	@echo "make test-faults SCHEDULES=1000000 SEED=0  farms of agents under drawn faults; 2000 schedules are part of make test"
	@echo "make wheel  a wheel for any Linux with glibc 2.28 or later, Python 3.11 or later (dist/); WHEEL_TARGET=aarch64-unknown-linux-gnu cross-compiles"
	@echo "make docs   the documentation as a site: build/docs/index.html, which opens without a server"
	@echo "make bench  the benchmarks behind the figures in the docs (about an hour; quiet host)"

# One of these at a time: the extension as it is shipped, or, for tests, as `cargo test` compiles what it is made of, so that
# nothing is compiled twice. Each stamp takes the other away.
build: $(VENV)/.built-release

$(VENV)/.dependencies: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "crosswind needs Python >= 3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev
	@touch $@

$(VENV)/.built-%: pyproject.toml constraints.txt $(RUST)
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.dependencies $(if $(filter test test-build test-code test-all,$(MAKECMDGOALS)),crates)
	MATURIN_PEP517_ARGS="--profile $*" $(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q python/crosswind
	@rm -f $(VENV)/.built-* && touch $@

# Before all tests: while pip installs, which takes one CPU, what needs no Python compiles. The extension shares its crates.
crates:
	@$(CARGO) test --quiet --no-run

# zig links against an old glibc whatever this machine has, and for other processors; it comes as a wheel (group `wheel`).
wheel: $(VENV)/.wheel-tools
	$(BIN)/maturin build --release --zig --target $(WHEEL_TARGET) --compatibility $(WHEEL_GLIBC) --out dist
	@echo "The wheel: $(CURDIR)/$$(ls -t dist/crosswind-*.whl | head -1)"
	@echo "Install it where there is no compiler: pip install $$(ls -t dist/crosswind-*.whl | head -1)"

$(VENV)/.wheel-tools: $(VENV)/.dependencies
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group wheel
	@touch $@

# The pages as a site, in build/docs; it opens from file:// and asks no other host for anything.
docs: $(if $(wildcard $(VENV)/.built-dev),$(VENV)/.built-dev,$(VENV)/.built-release)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "The docs: $(CURDIR)/build/docs/index.html"

# The picture of README and of the docs, from the report that make demo wrote.
screenshots: demo
	$(BIN)/python docs/site/screenshots.py

# Exit code 3 says that the measurement is not trustworthy (a busy host); the report says so too.
demo: build
	@$(BIN)/python examples/demo.py --crosswind $(CROSSWIND) --out $(DEMO)

# Rust's tests wait for sockets and timers one program after the other, and linters use one CPU for part of their time: with
# the unit tests beside them no CPU is idle. Live tests come last, on their own.
test: test-build
	@$(MAKE) --no-print-directory test-code
	@$(MAKE) --no-print-directory test-live

# All that tests need, installed and compiled.
test-build: $(VENV)/.built-dev

# What one stage prints comes at its end, in one piece.
test-code: test-build
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint-rust lint-python test-unit test-rust test-lab

# What takes long: every night.
test-all: test test-long test-fuzz test-faults

# While one works: what a change breaks near itself. Whole command lines, reports and the slowest files are left to make test.
SLOW := $(addprefix tests/unit/,cli report test_words.py files/test_mutants.py files/test_reading.py \
  files/test_results_of_another_job.py measure/test_measured_cluster.py)
test-fast: $(VENV)/.built-dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target test-fast-rust test-fast-python

test-fast-rust:
	$(CARGO) test --quiet --workspace --lib

test-fast-python:
	$(BIN)/python -m pytest -m "not nightly" --numprocesses auto $(addprefix --ignore ,$(SLOW)) tests/unit

lint: $(VENV)/.built-dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint-rust lint-python

lint-rust:
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo fmt --manifest-path benchmarks/rust/Cargo.toml --check
	cargo fmt --manifest-path benchmarks/simcore_farm/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings

lint-python:
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# The same cases on every machine: what lands is not refused for what another change broke long ago. Others by
# `make test-rust PROPTEST_RNG_SEED=$$RANDOM`.
test-rust: export PROPTEST_RNG_SEED ?= 1
test-rust:
	$(CARGO) test --quiet

# Each stage collects its own folders. Tests wait for processes and disks, so there are more of them at a time than CPUs. What
# starts real processes, or a browser, is handed out by whole files, in the order of tests/conftest.py.
UNIT := tests/unit tests/golden tests/property $(wildcard tests/test_*.py) python/crosswind
LIVE := tests/live tests/browser
test-unit: $(VENV)/.built-dev
	$(BIN)/python -m pytest -m "not nightly" --numprocesses 3 --ignore python/crosswind/lab $(UNIT)

# The papers and the lesson. They are left out only if BASE is given, a revision that passed, and nothing that the lab uses
# differs from it; tests/test_layout.py holds the list against the imports.
BASE ?=
LAB := tests/lab python/crosswind/lab
LAB_ROOMS := absences access cluster description disturbance documents errors experiment files filter host inject lab links plan \
  platform policy run statistics tables terminal watch
LAB_USES := constraints.txt Cargo.lock crates tests/lab tests/disturbed.py tests/interacting.py python/crosswind/__init__.py \
  $(foreach room,$(LAB_ROOMS),python/crosswind/$(room) python/crosswind/$(room).py)
test-lab: $(VENV)/.built-dev
	@if [ -n "$(BASE)" ] && git diff --quiet $(BASE) -- $(LAB_USES) \
	  && [ -z "$$(git ls-files --others --exclude-standard -- $(LAB_USES))" ]; \
	then echo "nothing that the lab uses differs from $(BASE): its tests are left out"; \
	else $(BIN)/python -m pytest -m "not nightly" --numprocesses 3 $(LAB); fi

test-live: $(VENV)/.built-dev
	$(BIN)/python -m pytest -m "not nightly and not alone" --numprocesses 4 --dist loadfile --no-loadscope-reorder $(LIVE)

# What takes long, is a statistic of many draws, or asserts how long something takes and so has the machine to itself.
test-long: $(VENV)/.built-dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group notebook
	cargo check --quiet --benches --manifest-path benchmarks/rust/Cargo.toml
	cargo check --quiet --manifest-path benchmarks/simcore_farm/Cargo.toml
	PROPTEST_RNG_SEED=$$(date +%Y%m%d) cargo test --quiet --workspace --lib --bins --tests -- --include-ignored --skip to_65_536
	$(BIN)/python -m pytest -m nightly --numprocesses auto $(UNIT) tests/lab
	$(BIN)/python -m pytest -m "nightly and not alone" --numprocesses 2 --dist loadfile --no-loadscope-reorder $(LIVE)
	$(BIN)/python -m pytest -m alone tests/live

# Farms of agents under drawn faults, in virtual time; two thousand schedules are part of test-rust.
test-faults:
	cargo run --release --quiet -p crosswind-faults -- --schedules $(SCHEDULES) --seed $(SEED)

# Every parser against a fuzzer, FUZZ_SECONDS each; what it finds stays in fuzz/corpus, what breaks in fuzz/artifacts.
# The seeds, whole and cut off, are part of test-rust (crates/experiment/tests/fuzz_seeds.rs).
# libFuzzer is C++, which nothing else here needs.
test-fuzz:
	@if ! command -v c++ >/dev/null; then echo "no C++ compiler: fuzzing is skipped"; else $(MAKE) --no-print-directory fuzz; fi

fuzz:
	cd fuzz && cargo build --release --quiet --target $(HOST)
	@mkdir -p fuzz/artifacts && $(PYTHON) fuzz/words.py > fuzz/target/words.dict
	@echo "fuzzing $(words $(FUZZ_TARGETS)) parsers for $(FUZZ_SECONDS) s each, two at a time"
	@printf '%s\n' $(FUZZ_TARGETS) | xargs -P 2 -I TARGET sh -c 'mkdir -p fuzz/corpus/TARGET && \
	  fuzz/target/$(HOST)/release/TARGET -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
	    -dict=fuzz/target/words.dict -artifact_prefix=fuzz/artifacts/TARGET- fuzz/corpus/TARGET fuzz/seeds/TARGET \
	    > fuzz/target/TARGET.log 2>&1 || { echo "TARGET:"; tail -40 fuzz/target/TARGET.log; exit 1; }'

# After a change of the Rust types.
schemas:
	CROSSWIND_WRITE_SCHEMAS=1 cargo test --quiet -p crosswind-schema --test all json_schema_files
	$(BIN)/python crates/schema/typed_documents.py

bench: build
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group bench
	cargo bench --manifest-path benchmarks/rust/Cargo.toml
	for script in benchmarks/[a-z]*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) target build dist fuzz/target fuzz/corpus $(DEMO) python/crosswind/_core*.so
