# Two commands do everything: `make demo` and `make test`. Both build what they need into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CROSSWIND := $(BIN)/crosswind
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
DEMO := demo
# The build asks for maturin by name.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help build demo test test-rust test-python lint schemas bench clean

help:
	@echo "make demo   measure this machine, fit, plan, compare policies, and write one HTML report ($(DEMO)/report.html)"
	@echo "make test   all tests and lints"
	@echo "make bench  the benchmarks behind the figures in the docs (about 20 minutes; quiet host)"

build: $(VENV)/.built

$(VENV)/.dependencies: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "crosswind needs Python >= 3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev
	@touch $@

$(VENV)/.built: $(VENV)/.dependencies $(RUST)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable .
	@touch $@

# Exit code 3 says that the measurement is not trustworthy (a busy host); the report says so too.
demo: build
	@mkdir -p $(DEMO)
	$(CROSSWIND) doctor || test $$? -eq 3
	$(CROSSWIND) measure --max-seconds 50 --out $(DEMO)/measurement.parquet || test $$? -eq 3
	$(CROSSWIND) fit $(DEMO)/measurement.parquet --out $(DEMO)/platform.toml
	$(CROSSWIND) plan examples/fork_of_table_4.toml --task-size-mb 2 --task-work 5 --ports single --out $(DEMO)/fork.plan.json
	$(CROSSWIND) plan $(DEMO)/platform.toml --task-size-mb 10 --task-work 50 --ports multi --out $(DEMO)/measured.plan.json
	$(CROSSWIND) run examples/fork_graph.toml --set platform=fork_of_table_4_corrected.toml --out $(DEMO)/study.json --rows 14
	$(CROSSWIND) run examples/fork_graph_emulated.toml --on sim --out $(DEMO)/predicted.json
	$(CROSSWIND) run examples/fork_graph_emulated.toml --on local --out $(DEMO)/run.json
	$(CROSSWIND) run examples/fork_graph_emulated.toml --set policy.order=planned --on local --trace $(DEMO)/trace.parquet --perfetto $(DEMO)/trace.json
	$(CROSSWIND) report $(DEMO)/measurement.parquet $(DEMO)/measured.plan.json $(DEMO)/fork.plan.json \
	  $(DEMO)/study.json $(DEMO)/predicted.json $(DEMO)/run.json $(DEMO)/trace.parquet --out $(DEMO)/report.html --figures $(DEMO)/figures
	@echo "The report: $(CURDIR)/$(DEMO)/report.html"

test: lint test-rust test-python

lint: build
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test-rust:
	cargo test --quiet

test-python: build
	$(BIN)/python -m pytest

# After a change of the Rust types.
schemas:
	CROSSWIND_WRITE_SCHEMAS=1 cargo test --quiet -p crosswind-schema --test json_schema_files

bench: build
	for script in benchmarks/[a-z]*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) target $(DEMO) python/crosswind/_core*.so
