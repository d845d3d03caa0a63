# Stillwatch: `make demo` shows it at work, `make test` proves it. Both set everything up by themselves.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
# Hundreds of tests start a process of their own: each would compile every module again where none are kept.
export PYTHONDONTWRITEBYTECODE :=
# Tests take turns on three processes, as many of them wait for clocks, disks and other processes; one that runs out of
# tests takes over some of another's.
SHARED_OUT := -n 3 --dist worksteal

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Stillwatch needs Python 3.11 or newer; set PYTHON=..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,tools,mcap,bench,notebooks,station,survey,tables]'
	@touch $@

##@ Use
setup: kernels ## create .venv, install everything, compile the kernels

kernels: $(STAMP)
	@$(BIN)/stillwatch warm-up

kernels-bounds: $(STAMP)
	@NUMBA_BOUNDSCHECK=1 $(BIN)/stillwatch warm-up

demo: setup ## run the agent in a synthetic world with a ground station beside it
	@$(BIN)/stillwatch demo

##@ Prove
# What takes one core goes two by two: types, both compilations, kernels as plain Python and with bounds checks. Compiled
# once, each is cached.
test: $(STAMP) check ## all tests but soak and perf, kernels also without JIT and with bounds checks
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target kernels kernels-bounds typecheck test-nojit test-bounds
	$(BIN)/pytest -q $(SHARED_OUT)

# --cov takes the folder: by its import name, coverage would load numpy before pytest does, and again after.
test-nojit: $(STAMP) ## kernels as plain Python, every line of kernels/ covered
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q tests/unit/kernels --cov=kernels --cov-report=term-missing:skip-covered --cov-fail-under=100 --no-cov-on-fail

# Kernels, and what hands them arrays of every size: an index too far is silent without these checks, and damages the heap.
BUILDERS := tests/unit/learn/mixture/test_compress.py tests/unit/learn/mixture/test_build.py tests/unit/learn/topics/test_build.py
test-bounds: kernels-bounds ## kernels compiled with bounds checks, and the builders that call them
	NUMBA_BOUNDSCHECK=1 $(BIN)/pytest -q tests/unit/kernels $(BUILDERS)

test-opencv4: setup ## HOG against OpenCV 4's own, live, in a second venv (OpenCV 5 has none)
	$(PYTHON) -m venv build/opencv4
	build/opencv4/bin/python -m pip install --quiet --disable-pip-version-check --editable . 'opencv-python-headless==4.12.*'
	build/opencv4/bin/python tests/golden/make_hog_opencv4.py check tests/golden/hog_opencv4.npz

soak: setup ## the long counts: kills, messages, frames, a day of everything (some hours)
	NUMBA_BOUNDSCHECK=1 $(BIN)/pytest -q tests/unit/learn tests/contracts tests/unit/novelty tests/unit/features $(SHARED_OUT)
	$(BIN)/pytest -q -m soak --timeout=7200 -s

perf: setup ## timing budgets, on a quiet machine
	$(BIN)/pytest -q -m perf

check: $(STAMP) ## lint and format
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .

format: $(STAMP) ## write every file in the one format
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --fix --quiet .

typecheck: $(STAMP) ## types; mypy cannot follow the editable finder, so it gets the folders under one package
	@rm -rf build/ns && mkdir -p build/ns/stillwatch
	@ln -s $(CURDIR)/agent/* $(addprefix $(CURDIR)/,kernels transport configs tools) build/ns/stillwatch/
	cd build/ns && MYPYPATH=. ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache -p stillwatch

##@ Measure
bench: setup ## features, mixture, transport and the whole pipeline, against peers
	$(BIN)/stillwatch bench features
	$(BIN)/stillwatch bench mixture
	$(BIN)/stillwatch bench transport
	$(BIN)/stillwatch bench pipeline

##@ Keep house
build: $(STAMP) clean ## wheel and source distribution in dist/
	$(BIN)/python -m build

# Written beside first: a page that fails to be made leaves the old one.
pages: $(STAMP) ## what is made of tables: wire pages, keys that shipped configs lack, golden bytes of new messages
	@mkdir -p build
	$(BIN)/stillwatch wire-page >build/page && cp build/page transport/WIRE.md
	$(BIN)/stillwatch thin-page >build/page && cp build/page transport/THIN_LINK.md
	for config in configs/*.toml; do $(BIN)/stillwatch complete-config $$config >build/page && cp build/page $$config || exit 1; done
	$(BIN)/python tests/golden/make_wire.py

drawings: $(STAMP) ## the pictures of docs/concepts.md, from a run of the road world
	@rm -rf build/road && mkdir -p build docs/pictures
	$(BIN)/stillwatch run 'synthetic:road?seed=4&n_frames=501' --out build/road --set 'publish.endpoint=""' --quiet
	$(BIN)/python -m stillwatch.tools.pages.drawings build/road docs/pictures

docs: $(STAMP) ## the documentation site, into build/site
	@test -x $(BIN)/mkdocs || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@mkdir -p docs/reference
	$(BIN)/stillwatch reference commands >docs/reference/commands.md
	$(BIN)/stillwatch reference settings >docs/reference/settings.md
	cp transport/WIRE.md docs/reference/wire.md
	cp transport/THIN_LINK.md docs/reference/thin_link.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/stillwatch reference man >build/stillwatch.1

clean: ## what builds leave behind
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {print "\n" substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup kernels kernels-bounds demo test test-nojit test-bounds test-opencv4 soak perf check format typecheck bench pages drawings docs build clean help
