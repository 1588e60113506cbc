# Every target makes the virtual environment that it needs and reuses it afterwards.
# PYTHON=python3.12 chooses the interpreter of a new environment; otherwise the first of python3,
# python3.13, python3.12 and python3.11 that Headrace supports is taken.

PYTHON ?=
VENV ?= .venv
PEER_VENV ?= .peer-venv
PEER_115_VENV ?= .peer-115
DOCS ?= build/docs
# Tests and benchmarks start many processes: none should compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
STAMP := $(VENV)/.headrace-installed
PEER_STAMP := $(PEER_VENV)/.peer-installed
NATIVE_STAMP := $(VENV)/.native-checked

.PHONY: help install demo test test-slow check format bench bench-distributed bench-input bench-models native docs test-pythons goldens peer clean

help:
	@echo "make demo          learn handwritten digits, in one process and on a cluster"
	@echo "make test          all checks and tests"
	@echo "make test-slow     the slow tests, which 'make test' leaves out"
	@echo "make check         ruff, mypy, pyright, stubs, import rules, size limits"
	@echo "make format        let ruff rewrite what it can"
	@echo "make bench         time Headrace against TensorFlow, side by side"
	@echo "make bench-distributed  time clusters of both, side by side"
	@echo "make bench-input   time input pipelines and image files, against TensorFlow and Pillow"
	@echo "make bench-models  time the networks of tf.models and the first minute of programs, against TensorFlow"
	@echo "make test-pythons  the tests under Python 3.11, 3.12 and 3.13, where found"
	@echo "make native        build the native path for CPUs (docs/native.md)"
	@echo "make docs          the documentation site, into build/docs; broken links are errors"
	@echo "make goldens       run the reference programs under real TensorFlow again"

install: $(STAMP)

$(STAMP): pyproject.toml
	@PYTHON="$(PYTHON)" tools/make_venv.sh $(VENV) -e '.[dev]'
	@touch $@

$(PEER_STAMP): tools/peer/requirements.txt
	@PYTHON="$(PYTHON)" tools/make_venv.sh $(PEER_VENV) -r tools/peer/requirements.txt
	@touch $@

demo: $(STAMP)
	$(BIN)/headrace demo

test: check
	$(BIN)/python -m pytest -n 2

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m slow

check: $(STAMP) $(NATIVE_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/typing/programs/*.py
	$(BIN)/basedpyright --warnings
	$(BIN)/python tools/make_stubs.py --check
	$(BIN)/python tools/check_public_names.py
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/check_size.py

# Compiling takes a minute, so only when the C++ has changed. Skips where there is no compiler.
$(NATIVE_STAMP): $(wildcard src/headrace/native/*.cc src/headrace/native/*.h) | $(STAMP)
	$(BIN)/python -m pytest -q -m slow -k sanitizers tests/native/test_native_build.py
	@touch $@

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) $(PEER_STAMP)
	HEADRACE_PEER_PYTHON=$(abspath $(PEER_VENV))/bin/python $(BIN)/python benchmarks/run.py
	HEADRACE_PEER_PYTHON=$(abspath $(PEER_VENV))/bin/python $(BIN)/python benchmarks/operations.py --sizes cache memory rows
	HEADRACE_PEER_PYTHON=$(abspath $(PEER_VENV))/bin/python $(BIN)/python benchmarks/convolutions.py --xla
	$(BIN)/python benchmarks/keras_convnet.py

bench-distributed: $(STAMP) $(PEER_STAMP)
	HEADRACE_PEER_PYTHON=$(abspath $(PEER_VENV))/bin/python $(BIN)/python benchmarks/distributed.py
	$(BIN)/python benchmarks/embedding_tables.py stream --repeat 5
	$(BIN)/python benchmarks/embedding_tables.py lookup
	HEADRACE_PEER_PYTHON=$(abspath $(PEER_VENV))/bin/python $(BIN)/python benchmarks/weak_scaling.py
	$(BIN)/python benchmarks/stragglers.py
	$(BIN)/python benchmarks/all_reduce.py --peer $(abspath $(PEER_VENV))/bin/python
	$(BIN)/python benchmarks/all_reduce.py --training
	$(BIN)/python benchmarks/devices.py
	$(BIN)/python benchmarks/checkpoints.py
	$(BIN)/python benchmarks/standby.py
	$(BIN)/python benchmarks/moving.py
	$(BIN)/python benchmarks/elastic.py
	$(BIN)/python benchmarks/plain_script.py

bench-input: $(STAMP) $(PEER_STAMP)
	HEADRACE_PEER_PYTHON=$(abspath $(PEER_VENV))/bin/python $(BIN)/python benchmarks/pipelines.py
	HEADRACE_PEER_PYTHON=$(abspath $(PEER_VENV))/bin/python $(BIN)/python benchmarks/datasets.py
	$(BIN)/python benchmarks/image_decoding.py

bench-models: $(STAMP) $(PEER_STAMP)
	HEADRACE_PEER_PYTHON=$(abspath $(PEER_VENV))/bin/python $(BIN)/python benchmarks/models.py
	HEADRACE_PEER_PYTHON=$(abspath $(PEER_VENV))/bin/python $(BIN)/python benchmarks/first_minute.py

native: $(STAMP)
	$(BIN)/python -m headrace.native

docs: $(STAMP)
	$(BIN)/python tools/make_docs.py $(DOCS)

peer: $(PEER_STAMP)

test-pythons:
	@tools/test_pythons.sh

goldens: $(PEER_STAMP)
	$(PEER_VENV)/bin/python tools/make_goldens.py
	$(PEER_VENV)/bin/python tools/fuzz_ops.py record
	@if [ -x $(PEER_115_VENV)/bin/python ]; \
	then $(PEER_115_VENV)/bin/python tools/make_goldens.py; \
	else echo "No $(PEER_115_VENV): goldens of tf.contrib stay as they are (tools/peer/README.md)."; fi

clean:
	rm -rf .venv .venv-3.* .peer-venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache \
	    .hypothesis build dist headrace-demo
