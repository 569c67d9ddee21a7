# Everything a person does with this checkout; long things live in one script each under .ci/.
#
# make setup PYTHON=python3.13   chooses the interpreter of .venv
# make demo KEEP=1               leaves the demo running
# make demo KEEP=1 LISTEN=0.0.0.0   serves OPC UA clients on other machines; PORT=4841 for another port
# make demo PAGE=1               serves the station page and keeps the station at work; with SCENE it repeats the scene
# make demo DEVICES=opcua        has devices over OPC UA do the work
# make demo DEVICES=openprotocol has a tightening controller with Open Protocol do it
# make demo SCENE=telemetry      shows an alarm from its sensor to the MES
# make demo SCENE=flows          shows flows: a report of a sensor, one of job results, one that is stopped in part
# make test ARGS="-k sequence"   hands arguments to pytest
# make test SLOW=only           runs the tests that take seconds, and every property with all of its examples
# make test WORKERS=2            runs two files at a time instead of four; many tests wait more than they compute
# make deb SUITE=trixie          builds for one suite only; as root, as system-test and clean-clone

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

BIN := .venv/bin
LOCK := $(BIN)/uv pip compile --quiet --no-config --universal --generate-hashes --python-version 3.11 \
	--custom-compile-command 'make lock'
LOCKS := .ci/locks
COVERED := sfc station store
# A part of the tests covers a part of the rooms.
COVERAGE := $(if $(ARGS),,1)
ifdef PYTHON
export PYTHON
endif
# A machine that forbids it would compile every module again in each of the thousands of processes of the tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo setup check format test coverage docs schemas promises pictures lock clean outside long fuzz endure chaos bench deb repo system-test clean-clone ansible-check release-check

help: ## Show this list
	@awk -F ':.*## ' '/^## / { print "\n" substr($$0, 4) } /^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

## Try it

demo: ## Run a whole job on real parts; PAGE=1 shows it in the browser (head of this file: scenes, devices)
	@.ci/setup demo
	@mkdir -p build
	@$(BIN)/edge demo --chart build/demo.svg $(if $(SCENE),--scene $(SCENE)) $(if $(KEEP),--keep) $(if $(DEVICES),--devices $(DEVICES)) \
		$(if $(LISTEN),--listen $(LISTEN)) $(if $(PORT),--port $(PORT)) $(if $(PAGE),--page)

## Develop

setup: ## Install what is needed and prepare .venv (idempotent)
	@.ci/setup

check: setup ## Lint, types, imports between the rooms, architecture, language
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q tests/architecture

format: setup ## Format the code, and fix what ruff can fix
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

test: setup ## Run the tests and measure branch coverage; SLOW=1: also those that take seconds; ARGS="..." for pytest
	@mkdir -p build && rm -f build/coverage*
	@$(if $(COVERAGE),PYTEST_PLUGINS=tests.branch_coverage) \
		$(BIN)/python -m pytest --numprocesses $(or $(WORKERS),4) --dist loadfile --no-loadscope-reorder \
		$(if $(SLOW),-m "$(if $(filter only,$(SLOW)),(slow or hypothesis) and )not system and not long") $(or $(ARGS),--ignore=tests/architecture)
	@$(if $(COVERAGE),$(BIN)/coverage combine --quiet && for room in $(COVERED); do \
		echo "edge/$$room"; $(BIN)/coverage report --include "edge/$$room/*" --fail-under 90 || exit 1; done)

coverage: ## Measure branch coverage only: run the tests of sfc, station and store
	@$(MAKE) test COVERAGE=1 ARGS="--quiet $(COVERED:%=tests/%) $(ARGS)"

docs: ## Build the documentation site in build/site; broken links fail
	@.ci/docs

schemas: setup ## Write schemas/ from the models, and the settings that the Ansible role knows
	@$(BIN)/edge schemas schemas
	@$(BIN)/python -m tests.ansible.test_known_settings

promises: setup ## Write docs/reference/promises.md from tests/outside/promises.toml
	@$(BIN)/python -m tests.outside.promises

pictures: setup ## Write docs/images/ by the product: charts, terminal, rooms, and with Chromium the station page
	@$(BIN)/python -m tests.pictures
	@EDGE_PICTURES=docs/images $(BIN)/python -m pytest --quiet --numprocesses 0 -m long tests/features/page/test_pages_pictures.py

lock: setup ## Choose the newest allowed dependencies and write .ci/locks/; review the difference
	@$(LOCK) --upgrade --all-extras --group dev pyproject.toml --output-file $(LOCKS)/dev.lock
	@$(LOCK) --extra archive --extra gpio --extra history --extra web pyproject.toml --constraints $(LOCKS)/dev.lock --output-file $(LOCKS)/runtime.lock
	@$(LOCK) --extra embedded --extra web pyproject.toml --constraints $(LOCKS)/dev.lock --output-file $(LOCKS)/demo.lock
	@$(LOCK) --group build --constraints $(LOCKS)/dev.lock --output-file $(LOCKS)/build.lock
	@$(LOCK) --group docs --constraints $(LOCKS)/dev.lock --output-file $(LOCKS)/docs.lock
	@$(LOCK) --group nodesets --no-deps --output-file $(LOCKS)/nodesets.lock
	@$(LOCK) --upgrade ansible/requirements.in --output-file ansible/requirements.lock

clean: ## Remove what setup and the tools made
	@rm -rf .venv .nodesets .node .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	@find edge tests -name __pycache__ -prune -exec rm -rf {} +

## Test longer

outside: setup ## Test the product from outside, with programs of other vendors: every fault and promise
	@$(BIN)/python -m pytest --numprocesses 2 -m "not system" tests/outside $(ARGS)

long: setup ## Run the tests that make test SLOW=1 leaves out because they take long
	@$(BIN)/python -m pytest --numprocesses 2 -m "long and not system" $(ARGS)

fuzz: setup ## Send 100,000 mutilated calls and messages each over OPC UA and MQTT; try every property
	@EDGE_FUZZ=100000 $(BIN)/python -m pytest tests/opcua/test_server_transport_fuzz.py \
		tests/opcua/test_server_transport_fuzz_frames.py $(ARGS)
	@EDGE_FUZZ=100000 $(BIN)/python -m pytest -m hypothesis $(ARGS)

endure: setup ## Run 20,000 waiting jobs, and let 10,000 run and expire; memory has to stay flat
	@EDGE_BACKLOG=20000 EDGE_EXPIRED=10000 $(BIN)/python -m pytest tests/station/test_worker_backlog.py \
		tests/station/test_timers_retention.py $(ARGS)

chaos: setup ## Kill gateway, Redis and broker 1,000 times under running jobs; SENTINEL=1: 100 faults behind Sentinel
	@nice $(BIN)/python -m tests.$(if $(SENTINEL),sentinel,chaos) $(if $(DEVICES),--devices $(DEVICES)) $(ARGS)

bench: setup ## Measure the engine and the gateway; ARGS="--quick --json FILE" for the telling scenarios only
	@$(BIN)/python -m tests.bench $(ARGS)

## Package and release

deb: setup ## Build the Debian packages into dist/: the gateway for amd64 and arm64, and the documentation; as root
	@.ci/deb $(SUITE)

repo: ## Make dist/repo/, a signed apt repository of the packages in dist/
	@.ci/repo

system-test: setup ## Install what make deb built on a machine that boots in a container; SUITE=bookworm; as root
	@SUITE=$(or $(SUITE),trixie) $(BIN)/python -m pytest -m system tests/system $(ARGS)

clean-clone: ## Run demo and every test of a clean clone in a minimal Debian; SUITE=bookworm, SLOW=only; as root
	@SUITE=$(or $(SUITE),trixie) SLOW=$(SLOW) .ci/clean-clone $(ARGS)

ansible-check: setup ## Lint the Ansible role; as root, play it against a machine that boots in a container
	@.ci/ansible $(ARGS)

release-check: setup ## Before a release: build and test every package, and the demo of the arm64 package in qemu; as root
	@.ci/release-check
