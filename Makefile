# Everything a checkout needs, from nothing but make and Python >= 3.11. `make` alone lists the targets.
#
#   PYTHON=python3.12 make test     another interpreter for the environment
#   make test ARGS="-k scan -x"     more arguments for the tool behind a target
#   make test WORKERS=8             pytest processes; 3 for 2 cores, because tests wait for worker processes

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 3
ARGS    ?=
BASE    ?= main
GOLDEN  ?= tests/golden/test_golden.py tests/cli/test_recorded.py

PY  := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
# By uv, which takes a sixth of pip's CPU time; by pip where uv has no build, or does not reach the index that pip is
# configured for. Groups of pyproject.toml need pip 25.1; a new environment may have an older one.
INSTALL = of_checkout() { \
	$(PIP) install --quiet uv && $(PY) -m uv pip install --python $(PY) $(QUIET) --editable "$$@" || \
	{ $(PIP) install --quiet 'pip>=25.1' && $(PIP) install $(QUIET) --editable "$$@"; }; }; of_checkout
QUIET   = --quiet

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help audit demo docs determinism load load-cluster test test-all test-times test-fast test-oldest test-newest lint types golden bench bench-full bench-inference same-ir conformance fuzz fuzz-ops fuzz-fusions fuzz-graphs fuzz-options fuzz-states fuzz-weights fuzz-quantised default-precision dynamic-int8 fuzz-bytes faults reduce mutants runtimes gpu arm test-devices probes test-browser test-cluster page page-check clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: QUIET =
demo: $(VENV)/.installed-verify ## convert a small model with a loop and compare OpenVINO with ONNX Runtime
	$(PY) tools/demo.py $(ARGS)

test-fast: $(VENV)/.installed-dev ## run the unit and golden tests alone
	$(PY) -m pytest -n $(WORKERS) tests/unit tests/golden $(ARGS)

test: $(VENV)/.installed-dev ## run the tests on WORKERS processes
	$(PY) -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-all: $(VENV)/.installed-dev ## run the tests with all rows of the sweeps, of which `test` runs a part
	$(PY) -m pytest -n $(WORKERS) --dist worksteal --all $(ARGS)

test-times: $(VENV)/.installed-dev ## run the tests and print where the time goes, by file and by kind of work
	$(PY) -m pytest -n $(WORKERS) --dist worksteal --times $(ARGS)

test-oldest: ## run the tests with the oldest dependencies that pyproject.toml allows, in an environment of their own
	mkdir -p build/oldest && $(PYTHON) tools/audit.py --floors > build/oldest/floors.txt
	UV_CONSTRAINT=$(CURDIR)/build/oldest/floors.txt PIP_CONSTRAINT=$(CURDIR)/build/oldest/floors.txt \
		$(MAKE) test VENV=build/oldest

test-newest: ## run the tests with the newest dependencies, in an environment of their own that is made anew
	rm -rf build/newest
	$(MAKE) test VENV=build/newest

test-browser: $(VENV)/.installed-browser ## run the tests of the page in Chromium (CHROMIUM=path: which one)
	$(PY) -m pytest tests/browser --browser -n $(WORKERS) --dist loadfile $(ARGS)

test-cluster: $(VENV)/.installed-cluster ## run the tests of models and outputs at URLs, with an S3 server on this machine
	$(PY) -m pytest tests/cluster --cluster -n $$(($(WORKERS) + 1)) --dist worksteal $(ARGS)

docs: $(VENV)/.installed-docs ## build the documentation as a site in build/site, with strict links
	$(PY) -m mkdocs build $(ARGS)

lint: $(VENV)/.installed-dev ## check style with ruff
	$(PY) -m ruff check . $(ARGS)

types: $(VENV)/.installed-dev ## check types with mypy
	$(PY) -m mypy $(ARGS)

golden: $(VENV)/.installed-dev ## write the golden text files anew (look at the diff before you keep it)
	UPDATE_GOLDEN=1 $(PY) -m pytest -q $(GOLDEN) $(ARGS)

bench: $(VENV)/.installed-verify ## measure conversions and operators against ovc, fail where a target is missed
	$(PY) tools/bench.py $(ARGS)
	$(PY) tools/bench_operators.py --quick

bench-full: $(VENV)/.installed-verify ## the same with large models (needs 24 GB of disk, less with ARGS="--gigabytes 1")
	$(PY) tools/bench.py --full $(ARGS)

bench-inference: $(VENV)/.installed-verify ## measure inference of both sides' IR, fail where a target is missed
	$(PY) tools/bench_inference.py $(ARGS)
	$(PY) tools/bench_loops.py

same-ir: $(VENV)/.installed-dev ## compare the IR of 750 models with that of BASE, a commit: make same-ir BASE=main
	$(PY) tools/same_ir.py --base $(BASE) $(ARGS)

determinism: $(VENV)/.installed-dev ## convert 700 models in other circumstances, fail where a byte differs (ARGS="--python ...")
	$(PY) tools/determinism.py $(ARGS)

load: $(VENV)/.installed-dev ## a batch of 2,000 models with poison, and 20,000 conversions in one worker: memory stays flat
	$(PY) tools/load.py $(ARGS)

load-cluster: $(VENV)/.installed-cluster ## a batch of 5,000 models from an S3 server on a cluster against one on this machine: CPU and memory
	$(PY) tools/load_cluster.py $(ARGS)

audit: $(VENV)/.installed-dev ## look for known holes in the dependencies: their oldest allowed releases, and those installed
	$(PY) tools/audit.py $(ARGS)

conformance: $(VENV)/.installed-verify ## run the ONNX backend suite, fail where it is not as expected
	$(PY) tools/conformance.py -j $(WORKERS) $(ARGS)

fuzz: $(VENV)/.installed-verify ## convert and compare random models with control flow
	$(PY) tools/fuzz_controlflow.py $(ARGS)

fuzz-states: $(VENV)/.installed-verify ## convert random recurrent models to one step with states, and compare sequences
	$(PY) tools/fuzz_states.py $(ARGS)

fuzz-options: $(VENV)/.installed-verify ## convert random models with pairs of options, and compare with inputs that numpy prepares
	$(PY) tools/fuzz_options.py $(ARGS)

fuzz-weights: $(VENV)/.installed-verify ## convert and compare random models with quantised weights
	$(PY) tools/fuzz_weights.py $(ARGS)

dynamic-int8: $(VENV)/.installed-verify ## dynamic int8 of every exported model, beside ovc's IR (ONEDNN_MAX_CPU_ISA=AVX2 for CPUs without VNNI)
	$(PY) tools/check_optimised.py --whole-range $(ARGS)

default-precision: $(VENV)/.installed-verify ## integers of random models in the processor's own default precision; needs one with bf16
	$(PY) tools/default_precision.py $(ARGS)
	$(PY) tools/default_precision.py --quantization exact $(ARGS)

fuzz-quantised: $(VENV)/.installed-verify ## convert and compare random quantised networks in the styles of many tools
	$(PY) tools/fuzz_quantised.py $(ARGS)

fuzz-ops: $(VENV)/.installed-verify ## convert and compare random configurations of single operators
	$(PY) tools/fuzz_ops.py $(ARGS)

fuzz-fusions: $(VENV)/.installed-verify ## convert and compare chains of operators that the CPU plugin fuses
	$(PY) tools/fuzz_fusions.py -j $(WORKERS) $(ARGS)

fuzz-graphs: $(VENV)/.installed-verify ## convert and compare random graphs of many operators
	$(PY) tools/fuzz_graphs.py -j $(WORKERS) $(ARGS)

fuzz-bytes: $(VENV)/.installed-verify ## convert damaged files, fail where one is neither converted nor refused with a code
	$(PY) tools/fuzz_bytes.py -j $(WORKERS) $(ARGS)

faults: $(VENV)/.installed-verify ## plant faults in converted models, fail where too few of them are found
	$(PY) tools/find_faults.py $(ARGS)
	$(PY) tools/find_faults.py --verdicts $(ARGS)
	$(PY) tools/fuzz_verify.py $(ARGS)

reduce: $(VENV)/.installed-verify ## reduce models with planted faults, and count the nodes that are left
	$(PY) tools/check_reduce.py $(ARGS)

mutants: $(VENV)/.installed-mutants ## change the code in 300 places, one at a time, and run the tests that should notice
	$(PY) tools/mutants.py $(ARGS)

runtimes: $(VENV)/pyvenv.cfg ## make environments with older OpenVINO releases, for --runtime and MO_LOOP_RUNTIME
	$(PY) tools/runtimes.py $(ARGS)

gpu arm: $(VENV)/.installed-dev ## make an environment in which OpenVINO's plugin for GPUs, or for ARM, runs here (Debian on x86-64)
	$(PY) tools/runtimes.py $@ $(ARGS)

test-devices: $(VENV)/.installed-dev ## run tests and random models on the devices that `make gpu arm` has made
	$(PY) -m pytest -n $(WORKERS) --dist worksteal --devices tests/runtime/test_devices.py $(ARGS)

probes: $(VENV)/.installed-dev ## run the probes of the runtime's errors on every release of `make runtimes ARGS=--every`
	$(PY) tools/probe_runtime.py --every --rules $(ARGS)

page: ## build the program of the page (needs node and npm)
	cd tools/page && npm ci --silent && npm run --silent check && npm test --silent && npm run --silent build

page-check: page ## test the program of the page, fail if what is committed is not what tools/page gives
	cd tools/page && npm run --silent test
	git diff --exit-code --stat -- mo_loop/look/page/static
	test -z "$$(git ls-files --others -- mo_loop/look/page/static)"

clean: ## remove the environment, caches and build leftovers
	rm -rf $(VENV) .editable build dist tools/page/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find mo_loop transforms tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps follow pyproject.toml: a change there installs anew, anything else reuses what is installed.
$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("mo_loop needs Python 3.11 or newer, this is " \
		+ sys.version.split()[0] + ": name another one with PYTHON=python3.12 make ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-verify: $(VENV)/pyvenv.cfg pyproject.toml
	@$(INSTALL) '.[verify]'
	@touch $@

$(VENV)/.installed-mutants: $(VENV)/pyvenv.cfg pyproject.toml
	@$(INSTALL) '.[verify]' --group mutants
	@touch $(VENV)/.installed-verify $(VENV)/.installed-dev $@

$(VENV)/.installed-browser: $(VENV)/pyvenv.cfg pyproject.toml
	@$(INSTALL) '.[verify]' --group browser
	@touch $(VENV)/.installed-verify $(VENV)/.installed-dev $@

$(VENV)/.installed-cluster: $(VENV)/pyvenv.cfg pyproject.toml
	@$(INSTALL) '.[verify,cluster]' --group cluster-tests
	@touch $(VENV)/.installed-verify $(VENV)/.installed-dev $@

$(VENV)/.installed-docs: $(VENV)/pyvenv.cfg pyproject.toml
	@$(INSTALL) '.[verify]' --group docs
	@touch $(VENV)/.installed-verify $@

$(VENV)/.installed-dev: $(VENV)/pyvenv.cfg pyproject.toml
	@$(INSTALL) '.[verify]' --group dev
	@touch $(VENV)/.installed-verify $@
