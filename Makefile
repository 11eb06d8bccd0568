# bertsmith: everything runs from .venv, which `setup` makes once and keeps up to date.
#   make demo    a first look: three questions to Python's own documentation, a map of it, two models
#   make test    every test: about 15 minutes on two free cores
#   make test-fast   the files that take no seconds: under 2 minutes; for daily work
#   make test-long   every test with its long form: hundreds of kills, a million strings; takes hours
#   make check   format, lint, types, layers, the wheel, tests: the gate before a commit, and what CI runs
#   make check-wheel   builds sdist and wheel, and works with the wheel alone in an empty environment
#   make docs    the documentation site in site/, readable offline; fails on a broken link
#   make bench   side by side with other libraries; DATA=folder adds the STS-B comparison
#   make bench-training DATA=folder   corpora, pre-training, fine-tuning: speed and scores; takes hours
#   make clean   remove caches and outputs (the virtual environment stays)

SHELL := /bin/sh
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup
BENCH := $(VENV)/.setup-bench
DOCS := $(VENV)/.setup-docs
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -qq --constraint constraints.txt
PYTEST_ARGS ?= -n 2
# The tests of the page drive Debian's Chromium; elsewhere, or without root, they are skipped.
BROWSER_PACKAGES := chromium fonts-noto-cjk
BROWSER := @if command -v apt-get >/dev/null && test "$$(id -u)" = 0 \
	&& ! dpkg -s $(BROWSER_PACKAGES) >/dev/null 2>&1; then \
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(BROWSER_PACKAGES) >/dev/null; } \
	|| echo "could not install $(BROWSER_PACKAGES): the tests of the page need them"; fi
DATA ?=

.PHONY: setup demo test test-fast test-long check check-wheel docs bench bench-training clean

setup: $(SETUP)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "bertsmith needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Build backends (ours, and those of jieba and seqeval, which come as source) are installed first and
# pinned, so that nothing is fetched behind pip's back.
$(SETUP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing into $(VENV); the first time takes a few minutes"
	$(INSTALL) hatchling editables setuptools setuptools_scm
	$(INSTALL) --no-build-isolation --editable '.[test,check]'
	$(BROWSER)
	@touch $@

$(DOCS): $(SETUP)
	$(INSTALL) --no-build-isolation --editable '.[test,check,docs]'
	@touch $@

$(BENCH): $(SETUP)
	$(INSTALL) cmake  # builds kenlm, which comes as source
	$(INSTALL) --no-build-isolation --editable '.[test,check,bench]'
	@touch $@

demo: $(SETUP)
	$(BIN)/bertsmith demo --out demo_out

test: $(SETUP)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-fast: $(SETUP)
	$(BIN)/python -m pytest --fast $(PYTEST_ARGS)

test-long: $(SETUP)
	BERTSMITH_LONG=1 $(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(SETUP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py
	$(BIN)/python tests/packaging/check_wheel.py
	$(BIN)/python -m pytest $(PYTEST_ARGS) --ignore=tests/test_architecture.py

check-wheel: $(SETUP)
	$(BIN)/python tests/packaging/check_wheel.py

docs: $(DOCS)
	$(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

bench: $(BENCH)
	@mkdir -p bench_out
	$(BIN)/python benchmarks/cold_start.py
	$(BIN)/python benchmarks/encode.py
	$(BIN)/python benchmarks/search.py vectors
ifeq ($(strip $(DATA)),)
	@echo "STS-B was left out: run make bench DATA=FOLDER, where FOLDER/stsb/en-test.csv is the test set"
else
	$(BIN)/python benchmarks/stsb.py "$(DATA)"
	$(BIN)/python benchmarks/search.py pairs "$(DATA)"
	$(BIN)/python benchmarks/search.py bank "$(DATA)"
endif

bench-training: $(BENCH)
	@test -n "$(DATA)" || { echo "give the folder of the data: make bench-training DATA=FOLDER"; exit 2; }
	$(BIN)/python benchmarks/corpus.py "$(DATA)"
	$(BIN)/python benchmarks/pretrain.py "$(DATA)" --race 15
	$(BIN)/python benchmarks/finetune.py "$(DATA)"
	$(BIN)/python benchmarks/finetune_quality.py "$(DATA)"
	$(BIN)/python benchmarks/finetune_peer.py "$(DATA)"
	$(BIN)/python benchmarks/chinese.py "$(DATA)"
	$(BIN)/python benchmarks/sentences.py "$(DATA)"
	$(BIN)/python benchmarks/sentence_memory.py "$(DATA)"
	$(BIN)/python benchmarks/pretrained_vectors.py english "$(DATA)"
	$(BIN)/python benchmarks/pretrained_vectors.py chinese "$(DATA)"
	$(BIN)/python benchmarks/classic_neural.py "$(DATA)"
	$(BIN)/python benchmarks/ngram.py "$(DATA)"

clean:
	rm -rf demo_out bench_out build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
