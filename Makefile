# MAHE's verbs. Each runs from a fresh clone: what a verb needs is installed first. POSIX sh, GNU make 3.81 or newer.
#
# Variables: PYTHON (default python3), COMPILER and NO_ASM=1 (kernels), YES=1 (uninstall), UPGRADE=1 (requirements),
# ARGS (more options for pytest), USE=containers or processes (up), and for demo: ROUNDS WORKERS DATASET MIN_WORKERS
# K_STEPS BATCH NO_BROWSER=1

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMPS := build/stamps
BENCH := build/bench-kernels-venv
WIRE := build/bench-wire-venv
HIVEMIND := build/bench-wire-hivemind-venv
PIP_INSTALL := $(PY) -m pip install --quiet --quiet --no-input --disable-pip-version-check
KERNEL_SOURCES := $(shell find libkernel/include libkernel/src services/common/kernels/build.py -type f 2>/dev/null)
KERNEL_OPTIONS := $(if $(COMPILER),--compiler "$(COMPILER)") $(if $(NO_ASM),--no-asm)
DEMO_OPTIONS := $(if $(ROUNDS),--rounds "$(ROUNDS)") $(if $(WORKERS),--workers "$(WORKERS)") \
	$(if $(DATASET),--dataset "$(DATASET)") $(if $(MIN_WORKERS),--min-workers "$(MIN_WORKERS)") \
	$(if $(K_STEPS),--k-steps "$(K_STEPS)") $(if $(BATCH),--batch "$(BATCH)") $(if $(NO_BROWSER),--no-browser)
SIMULATE_OPTIONS := $(if $(SEED),--seed "$(SEED)") $(if $(SEEDS),--seeds "$(SEEDS)") \
	$(if $(WORKERS),--workers "$(WORKERS)") $(if $(HOURS),--hours "$(HOURS)") $(if $(ROUNDS),--rounds "$(ROUNDS)") \
	$(if $(NO_FAULTS),--no-faults) $(if $(UNITS),--units)
BESIDE := -n 2 --dist loadfile  # two files of tests at a time: tests of real processes mostly wait
REQUIREMENTS := dev console base data build compiler page

# A .venv whose Python is gone (the system's was upgraded, the folder was copied from elsewhere) is made anew.
ifneq ($(wildcard $(VENV)/pyvenv.cfg),)
ifneq ($(shell $(PY) -c 'print(1)' 2>/dev/null),1)
$(info [SETUP] the Python of $(VENV) does not run any more: making it anew)
$(shell rm -rf $(VENV) $(STAMPS))
endif
endif

.PHONY: help setup kernels test check simulation simulate demo up down images containers browser
.PHONY: bench bench-kernels bench-trainer bench-wire bench-speed emulated chaos release requirements clean uninstall
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

help: ## Print this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sort | awk -F ':.*## ' '{ printf "  make %-13s %s\n", $$1, $$2 }'

setup: $(STAMPS)/project $(STAMPS)/kernels $(STAMPS)/page ## Install everything into .venv, build the kernels

kernels: $(STAMPS)/console $(STAMPS)/compiler ## Build libkernel; COMPILER="zig cc" chooses a compiler, NO_ASM=1 plain C
	@$(PY) -m services.common.kernels.build $(KERNEL_OPTIONS)
	@touch $(STAMPS)/kernels

test: setup $(STAMPS)/dev ## Run the tests that need neither Chromium, containers, qemu nor many simulated hours
	@echo "[TEST] all but the tests marked browser, containers, emulated and simulation, each a verb of its own"
	@$(PY) -m pytest $(BESIDE) -m "not browser and not containers and not emulated and not simulation" $(ARGS)

simulation: setup $(STAMPS)/dev ## Run 200 simulated clusters full of faults, bugs put in on purpose, kills at points
	@$(PY) -m pytest -m simulation -s $(ARGS)

simulate: setup $(STAMPS)/dev ## Simulate one cluster: make simulate SEED=7 WORKERS=1000 HOURS=1
	@$(PY) -m services.tests.simulation $(SIMULATE_OPTIONS)

emulated: setup $(STAMPS)/dev ## Check the kernels on 64-bit Arm and an old x86-64 by qemu, and with bugs put in
	@$(PY) -m pytest -m emulated $(ARGS)

check: $(STAMPS)/dev $(STAMPS)/page ## Check formatting, lint, types (Linux, Windows, macOS) and the tidy rules
	@echo "[CHECK] ruff"
	@$(PY) -m ruff format --quiet --check . || { echo "[CHECK] to repair: $(PY) -m ruff format ."; exit 1; }
	@$(PY) -m ruff check --quiet .
	@for system in linux win32 darwin; do \
		echo "[CHECK] mypy for $$system"; \
		$(PY) -m mypy --no-error-summary --platform $$system --cache-dir .mypy_cache/$$system || exit 1; \
	done
	@echo "[CHECK] types of the page"
	@$(PY) -m services.console.vendor --check
	@echo "[CHECK] tidy"
	@$(PY) -m pytest services/tests/test_tidy.py

bench: $(STAMPS)/kernels $(BENCH)/installed $(WIRE)/installed $(HIVEMIND)/installed ## Measure all, then the report
	@$(PY) -m bench $(ARGS)

bench-kernels: $(STAMPS)/kernels $(BENCH)/installed ## Time the kernels against NumPy and torch; ARGS="--json FILE"
	@$(BENCH)/bin/python libkernel/bench/bench.py $(ARGS)

bench-trainer: $(STAMPS)/kernels $(WIRE)/installed ## Time local steps on one core against torch
	@$(WIRE)/bin/python -m bench.trainer $(if $(ARGS),$(ARGS),--json bench/results/trainer.json)

bench-wire: $(STAMPS)/kernels $(WIRE)/installed $(HIVEMIND)/installed ## Time rounds, against the link and others
	@$(WIRE)/bin/python -m bench.wire $(if $(ARGS),$(ARGS),--json bench/results/wire.json)
	@$(if $(ARGS),:,$(WIRE)/bin/python -m bench.learning --json bench/results/learning.json)

bench-speed: $(STAMPS)/kernels $(WIRE)/installed ## Measure whether one more PC makes a training finish sooner
	@$(WIRE)/bin/python -m bench.speed $(if $(ARGS),$(ARGS),--json bench/results/speed.json)

chaos: setup $(STAMPS)/dev ## Hurt a real cluster every 5 s: make chaos FAULTS=60 SEED=7; UNITS=24 compares the bits
	@$(PY) -m services.tests.chaos $(if $(FAULTS),--faults "$(FAULTS)") $(if $(SEED),--seed "$(SEED)") \
		$(if $(UNITS),--units "$(UNITS)")

release: setup $(STAMPS)/dev ## Run what is too long for CI (two hours); JSON goes to bench/results
	@for part in simulation.release chaos chaos.delay chaos.thousand chaos.soak durability; do \
		echo "== $$part"; \
		$(PY) -m services.tests.$$part --json bench/results/$$part.json || exit 1; \
	done
	@echo "== schemathesis"
	@$(PY) -m services.tests.contract --json bench/results/schemathesis.json
	@echo "== chaos in units"
	@$(PY) -m services.tests.chaos --units 24 --json bench/results/chaos-units.json

demo: setup ## Train handwritten digits on this PC; also: make demo ROUNDS=20 WORKERS=4 DATASET=rings4
	@exec $(PY) -m services demo $(DEMO_OPTIONS)

up: setup ## Start a master and the page for real use, in containers if an engine answers; USE=processes: without
	@exec $(PY) -m services up --use $(if $(USE),$(USE),auto)

down: setup ## Stop what make up started; data stays
	@exec $(PY) -m services down

images: ## Build the container images and print their sizes (BASE_IMAGE, PIP_INDEX_URL, CA_BUNDLE: deploy/Dockerfile)
	@docker compose version >/dev/null 2>&1 || { \
		echo "[IMAGES] docker compose does not answer here: install Docker with Compose v2 and start it"; exit 1; }
	@docker compose --progress quiet build
	@docker image ls --format '[IMAGES] {{.Repository}}:{{.Tag}} {{.Size}}' --filter reference='mahe-*'

containers: images $(STAMPS)/dev ## Run the tests that need a container engine
	@$(PY) -m pytest -m containers $(ARGS)

browser: setup $(STAMPS)/dev ## Run the tests of the page in Chromium
	@$(PY) -m pytest $(BESIDE) -m browser $(ARGS)

requirements: $(STAMPS)/dev ## Pin requirements/*.txt again from pyproject.toml; UPGRADE=1 takes newer releases
	@for group in $(REQUIREMENTS); do \
		echo "[REQUIREMENTS] requirements/$$group.txt"; \
		UV_CUSTOM_COMPILE_COMMAND="make requirements" $(PY) -m uv pip compile --quiet --universal --python-version 3.11 \
			--fork-strategy fewest --generate-hashes --no-annotate --group pyproject.toml:$$group \
			$$(case $$group in console|base|data|build) echo "--constraints requirements/dev.txt" ;; esac) \
			$(if $(UPGRADE),--upgrade) --output-file requirements/$$group.txt || exit 1; \
	done

clean: ## Remove what was built and cached; .venv and your data stay
	@rm -rf build dist services/common/kernels/lib services/console/static/vendor \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis ./*.egg-info
	@find services libkernel -type d -name __pycache__ -prune -exec rm -rf {} +
	@echo "[CLEAN] removed build products and caches"

uninstall: ## List what MAHE wrote on this PC, ask, then remove it, with .venv and build (YES=1: do not ask)
	@if [ -x $(PY) ]; then $(PY) -m services uninstall $(if $(YES),--yes); \
	else echo "[UNINSTALL] no .venv here, so your data was not looked at: run make setup first to remove it too"; fi
	@$(MAKE) --no-print-directory clean
	@rm -rf $(VENV)
	@echo "[UNINSTALL] removed $(VENV)"

# Below: what is already done, as files. pyvenv.cfg is younger than any stamp after .venv was made again.

$(VENV)/pyvenv.cfg:
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "MAHE needs Python 3.11 or newer, and there is no $(PYTHON) here."; \
		echo "Install it, or name another: make setup PYTHON=/path/to/python3.12"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "MAHE needs Python 3.11 or newer, and $(PYTHON) is $$("$(PYTHON)" -V 2>&1)."; \
		echo "Install one, or name another: make setup PYTHON=/path/to/python3.12"; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: sudo apt install python3-venv"; exit 1; }
	@echo "[SETUP] Python environment in $(VENV)"
	@"$(PYTHON)" -m venv $(VENV)

$(STAMPS)/console: $(VENV)/pyvenv.cfg requirements/console.txt requirements/build.txt
	@echo "[SETUP] Python packages: requirements/console.txt"
	@$(PIP_INSTALL) --require-hashes -r requirements/console.txt -r requirements/build.txt
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/dev: $(STAMPS)/console requirements/dev.txt
	@echo "[SETUP] tools for the tests: requirements/dev.txt"
	@$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

$(STAMPS)/project: $(STAMPS)/console pyproject.toml
	@echo "[SETUP] the command $(VENV)/bin/mahe"
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# What the page is made of, by npm; where there is none, by the one in a Python package.
$(STAMPS)/page: $(STAMPS)/console requirements/page.txt services/console/package.json services/console/vendor.py
	@echo "[SETUP] packages of the page: services/console/package.json"
	@command -v npm >/dev/null || $(PIP_INSTALL) --require-hashes -r requirements/page.txt
	@$(PY) -m services.console.vendor
	@touch $@

# What the kernels are timed against, in an environment of its own. What there is not for this machine is left out, and
# tried again next time: only when all is there is that noted. Without numpy and cffi nothing can be timed.
$(BENCH)/installed: $(VENV)/pyvenv.cfg libkernel/bench/requirements.txt
	@$(PY) -m venv $(BENCH)
	@all=yes; \
	for package in $$(grep -v '^#' libkernel/bench/requirements.txt); do \
		echo "[BENCH] $$package"; \
		$(BENCH)/bin/python -m pip install --quiet --quiet --no-input --disable-pip-version-check "$$package" || { \
			all=no; echo "[BENCH] $$package cannot be had here now: it is left out, and tried again next time"; }; \
	done; \
	$(BENCH)/bin/python -c 'import cffi, numpy' || { \
		echo "[BENCH] nothing can be timed without numpy and cffi: see what pip said above"; exit 1; }; \
	if [ $$all = yes ]; then touch $@; fi

# What rounds are compared with. Without it there are fewer rows; it is tried again next time.
$(WIRE)/installed: $(VENV)/pyvenv.cfg bench/wire/requirements.txt requirements/base.txt
	@$(PY) -m venv $(WIRE)
	@$(WIRE)/bin/python -m pip install --quiet --quiet --no-input --disable-pip-version-check \
		--require-hashes -r requirements/base.txt
	@echo "[BENCH] bench/wire/requirements.txt"
	@$(WIRE)/bin/python -m pip install --quiet --quiet --no-input --disable-pip-version-check \
		-r bench/wire/requirements.txt && touch $@ || echo "[BENCH] not all of it can be had here now"

$(HIVEMIND)/installed: $(VENV)/pyvenv.cfg bench/wire/requirements-hivemind.txt
	@$(PY) -m venv $(HIVEMIND)
	@echo "[BENCH] bench/wire/requirements-hivemind.txt"
	@$(HIVEMIND)/bin/python -m pip install --quiet --quiet --no-input --disable-pip-version-check \
		-r bench/wire/requirements-hivemind.txt && touch $@ || { \
		rm -rf $(HIVEMIND)/bin; mkdir -p $(HIVEMIND); echo "[BENCH] hivemind cannot be had here now: it is left out"; }

# A compiler counts only if it can build a shared library: macOS has a cc that merely asks to install one.
$(STAMPS)/compiler: $(STAMPS)/console requirements/compiler.txt
	@for compiler in cc gcc clang; do \
		echo '#include <stdint.h>' | $$compiler -x c -shared -o build/probe - 2>/dev/null && \
			{ rm -f build/probe; touch $@; exit 0; }; \
	done; \
	echo "[SETUP] no C compiler on this PC; one as a Python package: requirements/compiler.txt" && \
	$(PIP_INSTALL) --require-hashes -r requirements/compiler.txt && touch $@

# With COMPILER or NO_ASM the verb `kernels` builds them; without, they are built when a source is younger.
$(STAMPS)/kernels: $(STAMPS)/console $(STAMPS)/compiler $(KERNEL_SOURCES) $(if $(COMPILER)$(NO_ASM),kernels)
	@$(if $(COMPILER)$(NO_ASM),:,echo "[SETUP] kernels" && $(PY) -m services.common.kernels.build)
	@touch $@
