# Every target sets up its own environment. Needed: python3 (3.11 or later) with
# venv and pip, and make. A stamp file in each environment says what is installed;
# it is redone when pyproject.toml changes.

PYTHON ?= python3
BIN := .venv/bin
# Pinned: other versions bring gigabytes of GPU libraries.
TORCH := torch==2.13.0 torchvision==0.28.0
# For axe.min.js, the accessibility checker inside; what it depends on is not needed.
AXE := axe-playwright-python==0.1.8

.DEFAULT_GOAL := help
.PHONY: help demo build test check lint docs paper bench fuzz mutants coverage parts \
	test-floors test-plain wheel sanitize screenshots docs-screenshots clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s  %s\n", $$1, $$2 }' Makefile

demo: .venv/.demo ## Measure a classifier trained on the spot
	$(BIN)/calibrant demo

# An editable install does this once; after a change of the C code it is done again here.
build: .venv/.dev ## Compile the loops over rows, in place
	$(BIN)/python setup.py --quiet build_ext --inplace --force

# Tests that share something costly (a cluster, a browser, a study) are one group: one process.
PYTEST := pytest -n auto --dist loadgroup

test: lint ## Lint, then run all tests and doctests
	$(BIN)/$(PYTEST)

# Pages, experiments, clusters, the browser, networks, frozen numbers, the command in every
# format: long, and the same whatever releases are installed.
LONG := tests/frozen tests/test_engines_clusters.py tests/test_propositions.py \
	tests/test_report_browser.py tests/test_coverage.py tests/test_population.py \
	tests/test_reliability.py tests/test_harness_damage.py \
	$(foreach x,docs experiments vision cli_,$(wildcard tests/test_$(x)*.py))
# Each stage once, in half a minute.
QUICK := arrays bins comparison confidence_split evaluation \
	files first_class golden_small mean_replacement options ordered predictions project \
	records reduction results sketch smoothing sums table temperature terminal views writing

check: lint ## Lint, then run the quick tests only: for the inner loop
	$(BIN)/$(PYTEST) -q -m "not slow and not simulation and not real_data" \
		$(QUICK:%=tests/test_%.py)

lint: .venv/.dev ## Lint, check format, types and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: .venv/.docs ## Build the documentation into docs/_build; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build

paper: .venv/.dev ## Run the paper's experiments again, into build/paper
	$(BIN)/python -m experiments all

bench: .venv-bench/.bench ## Time calibrant against its peers, in one run
	.venv-bench/bin/python benchmarks/run.py

# Findings and figures are in reliability/results.json; a run goes on where another ended.
MINUTES ?= 10
NUMBER ?= 1000000000
fuzz: .venv/.dev ## Try to break it for MINUTES=10 (or NUMBER= inputs of each kind)
	$(BIN)/python -m reliability fuzz --minutes $(MINUTES) --number $(NUMBER)
	$(BIN)/python -m reliability page

mutants: .venv/.dev ## Change the core at random for MINUTES=10: does a test notice?
	$(BIN)/python -m reliability mutants --minutes $(MINUTES) --number $(NUMBER)
	$(BIN)/python -m reliability page

coverage: .venv/.coverage ## Run the tests, and say which branches of the core they take
	$(BIN)/coverage erase
	$(BIN)/coverage run -m $(PYTEST) -m "not simulation"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	$(BIN)/coverage json -q -o build/coverage/report.json
	$(BIN)/python -m reliability branches build/coverage/report.json
	$(BIN)/python -m reliability page

screenshots: .venv/.dev ## Pictures of the report, by headless Chromium, in build/screenshots
	$(BIN)/python tools/screenshots.py

docs-screenshots: .venv/.docs ## Pictures of README and documentation, after `make docs`, in build/docs
	$(BIN)/python tools/docs_screenshots.py

parts: .venv/.parts ## Install the heavy optional parts, too (torch, Spark), as CI does

# Old releases meet new ones here, so a warning is only a warning.
test-floors: .venv-floors/.floors ## Run the tests at the lowest versions pyproject.toml allows
	.venv-floors/bin/$(PYTEST) -W default -m "not simulation" $(addprefix --ignore=,$(LONG))

# NumPy does the work of the loops here. Not this folder's package, whose loops may be built.
# Each stage, and all that has a loop: what is left runs on these.
LOOPS := adaptive calibration_tests curve groups histogram_binning intervals \
	invariance isotonic_calibration ladder log_intervals monitor poisson quantiles \
	resampling risk_coverage streaming study targets
test-plain: .venv-plain/.plain ## Install it as if there were no compiler, and test it there
	rm -rf build/plain build/lib*
	CC=false .venv-plain/bin/pip wheel --quiet --no-deps -w build/plain .
	.venv-plain/bin/pip install --quiet --no-deps --force-reinstall build/plain/*.whl
	.venv-plain/bin/calibrant --version | grep "compiled module: no"
	cd tests && CALIBRANT_STRICT= ../.venv-plain/bin/$(PYTEST) -q -p no:cacheprovider \
		-m "not slow and not simulation" $(QUICK:%=test_%.py) $(LOOPS:%=test_%.py)

# As a user would have it: no development packages, and not this folder.
wheel: | .venv-wheel/.pip ## Build a wheel, and run the quick tests on it in a clean environment
	rm -rf build/wheel
	.venv-wheel/bin/pip wheel --quiet --no-deps -w build/wheel .
	.venv-wheel/bin/pip install --quiet --force-reinstall --group test build/wheel/*.whl
	.venv-wheel/bin/calibrant --version | grep "compiled module: yes"
	cd tests && ../.venv-wheel/bin/$(PYTEST) -q -p no:cacheprovider \
		-m "not slow and not simulation and not real_data" \
		test_fast.py $(QUICK:%=test_%.py)

# Sanitizers cannot be loaded late, nor choose among clones; what Python leaks is not ours.
SANITIZERS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -DONE_TARGET
sanitize: .venv/.dev ## Test the compiled loops under address and undefined-behaviour sanitizers
	CFLAGS="$(SANITIZERS) -fno-sanitize-recover=undefined" LDFLAGS="$(SANITIZERS)" \
		$(BIN)/python setup.py --quiet build_ext --inplace --force
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 $(BIN)/pytest -q -p no:cacheprovider -m "not slow" \
		tests/test_fast.py tests/test_poisson.py
	$(MAKE) build

clean: ## Remove environments, caches and built files
	rm -rf .venv .venv-bench .venv-floors .venv-plain .venv-wheel .*_cache .hypothesis
	rm -f src/calibrant/_rows/_compiled*.so
	rm -rf build dist docs/_build docs/generated docs/reference/generated
	find . -name __pycache__ -prune -exec rm -rf {} +

# pip 25.1 is the first to read dependency groups.
%/.pip:
	$(PYTHON) -m venv $*
	$*/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	touch $@

.venv/.demo: pyproject.toml | .venv/.pip
	$(BIN)/pip install --quiet -e ".[demo]"
	touch $@

.venv/.dev: pyproject.toml | .venv/.pip
	$(BIN)/pip install --quiet -e ".[demo]" --group test --group parts --group lint
	touch $@

.venv/.coverage: pyproject.toml .venv/.dev
	$(BIN)/pip install --quiet --group coverage
	touch $@

.venv/.docs: pyproject.toml | .venv/.pip
	$(BIN)/pip install --quiet -e . --group docs
	touch $@

.venv/.parts: .ci/parts.txt .venv/.dev
	$(BIN)/pip install --quiet $(TORCH) -r .ci/parts.txt
	$(BIN)/pip install --quiet --no-deps $(AXE)
	touch $@

.venv-floors/.floors: pyproject.toml .ci/parts.txt tools/floors.py | .venv-floors/.pip
	.venv-floors/bin/python tools/floors.py > .venv-floors/floors.txt
	.venv-floors/bin/pip install --quiet -c .venv-floors/floors.txt \
		-e ".[demo]" --group test --group parts $(TORCH) -r .ci/parts.txt
	.venv-floors/bin/pip install --quiet --no-deps $(AXE)
	touch $@

.venv-plain/.plain: pyproject.toml | .venv-plain/.pip
	CC=false .venv-plain/bin/pip install --quiet ".[demo]" --group test --group parts
	touch $@

# torch first: the peers then find it there and do not bring another.
.venv-bench/.bench: pyproject.toml benchmarks/peers.txt | .venv-bench/.pip
	.venv-bench/bin/pip install --quiet $(firstword $(TORCH))
	.venv-bench/bin/pip install --quiet -e . -r benchmarks/peers.txt
	touch $@
