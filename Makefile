# Two commands do all the set-up on a machine with Python 3.11: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BROKER := $(VENV)/.broker
TOOLS := $(VENV)/.tools
SOURCES := pyproject.toml hatch_build.py $(wildcard proto/*.proto)
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

# What Python has compiled is kept: hundreds of processes that tests start would each compile the broker again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run tools test test-stacks test-containers test-spark test-histories test-others lint check bench doors suites fuzz explore chaos stores fates upgrade simulate simulate-mutants format images compose-up clean

# What the broker itself needs.
$(BROKER): $(SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Hopline needs Python 3.11 or newer, and $(PYTHON) is not: try make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

# What tests, checks and benchmarks need besides.
$(TOOLS): $(BROKER)
	$(PIP) --editable '.[test,check,bench,analytics]'
	touch $@

# By their names alone.
$(VENV): $(BROKER)
tools: $(TOOLS)

run: $(BROKER)
	$(BIN)/hopline up

# All lines begin in this order, five at once, so that two cores are busy to the end: each by itself waits half of the time.
# Whole stacks, two at once; containers, then clients of other projects, then stacks that are killed while Spark and
# look-ups account for every message; all of Spark in one process, as a second Java would learn all of it again: these take
# longest. Beside them go folders that need no stack, the longest first, by a process each, without those in them that are
# named here too: workers that share all of them would each import all of them. Histories are last. Spark and histories only
# compute, and have what time is left. `nice` does not reach containers, which are another control group: they have their
# share beside what computes. CI adds the linters (BESIDE=lint), and images are built meanwhile.
# Steady traffic is last and by itself, since it looks for what is slow.
CONTRACT := tests/contract/gateway tests/contract
UNITS := $(addprefix tests/unit/,store mgmt common mgmt/tree queue gateway mgmt/rabbitmq)
FAST := tests/unit tests/contract tests/conformance
CLIENTS := tests/interop tests/tracing
SPARK := tests/spark
HISTORIES := tests/simulation
STEADY := tests/fates/test_steady.py
KILLED := tests/fates/test_fates.py
CONTAINERS := tests/compose tests/chaos
BY_HAND := tests/upgrade
CHAOS_SEED := 108255
PAIRWISE := --numprocesses 2 --dist loadfile

test:
	$(MAKE) --jobs 5 --keep-going $(BESIDE) test-stacks test-containers test-spark $(CONTRACT) $(UNITS) test-others test-histories
	$(BIN)/pytest -q --durations 3 $(STEADY)

# What other lines say is shown at the end of each part: that of stacks tells how far it is meanwhile.
AT_ITS_END = @said=$$(mktemp); $(1) >$$said 2>&1; status=$$?; cat $$said; rm $$said; exit $$status

# Queues wait for most of the time: for leases, and for those who go away.
tests/unit/queue: WORKERS := --numprocesses 3 --dist loadfile

.PHONY: $(CONTRACT) $(UNITS)
$(CONTRACT) $(UNITS): $(TOOLS)
	$(call AT_ITS_END,$(BIN)/pytest -q $(WORKERS) $(addprefix --ignore=,$(filter $@/%,$(CONTRACT) $(UNITS))) $@)

test-others: $(TOOLS)
	$(call AT_ITS_END,$(BIN)/pytest -q $(addprefix --ignore=,$(UNITS)) tests/unit tests/conformance)

test-stacks: $(TOOLS)
	$(BIN)/pytest -q $(PAIRWISE) --no-loadscope-reorder --durations 15 $(addprefix --ignore=,$(FAST) $(CLIENTS) $(SPARK) $(HISTORIES) tests/fates $(CONTAINERS) $(BY_HAND))

test-containers: IMAGES := postgres
test-containers: $(TOOLS) images
	$(call AT_ITS_END,HOPLINE_CHAOS_SEED=$${HOPLINE_CHAOS_SEED:-$(CHAOS_SEED)} $(BIN)/pytest -q --durations 5 $(CONTAINERS))
	$(call AT_ITS_END,$(BIN)/pytest -q $(PAIRWISE) $(CLIENTS))
	$(call AT_ITS_END,$(BIN)/pytest -q --durations 3 $(KILLED))

test-spark: $(TOOLS)
	$(call AT_ITS_END,nice -n 19 $(BIN)/pytest -q --timeout 1800 --durations 5 $(SPARK))

test-histories: $(TOOLS)
	$(call AT_ITS_END,nice -n 19 $(BIN)/pytest -q --timeout 1800 --durations 3 $(HISTORIES))

lint: $(TOOLS)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(MAKE) --jobs 6 --keep-going $(UNITS) test-others

format: $(TOOLS)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(TOOLS)
	$(BIN)/python -m benchmarks $(BENCH)

# The own test suites of client libraries at Hopline and at RabbitMQ; SUITES='--only pika' and others of
# `python -m suites --help` choose.
suites: $(TOOLS)
	$(BIN)/python -m suites $(SUITES)

# Wrong passwords at 200 a second, ten thousand half-open peers and others, beside a client that behaves: ten minutes.
doors: $(TOOLS)
	$(BIN)/python -m benchmarks.doors

fuzz: $(TOOLS)
	HYPOTHESIS_PROFILE=long $(BIN)/pytest -q --timeout=0 -m fuzz tests

# Schemathesis at all of HTTP, from any seed: `make test` has one, and few examples. EXPLORE='--seed 7 --only queue' and
# others of `python -m tests.contract.rest --help` bound it. What it finds is a line for curl.
explore: $(TOOLS)
	$(BIN)/python -m tests.contract.rest $(EXPLORE)

# An hour of it, unless HOPLINE_CHAOS_SECONDS says otherwise; HOPLINE_CHAOS_SEED repeats a run, HOPLINE_CHAOS_STORE=postgres
# or jetstream has the store there, and disturbs its servers too.
chaos: $(TOOLS)
	HOPLINE_CHAOS_SECONDS=$${HOPLINE_CHAOS_SECONDS:-3600} $(BIN)/pytest -q tests/chaos

# Stores on PostgreSQL and JetStream in containers, with a process that stands by: all that may befall them, so many times
# (HOPLINE_TEST_STORES_ROUNDS), a few minutes each, with an account of it. `make test` does the worst of PostgreSQL, once.
stores: $(TOOLS)
	HOPLINE_TEST_STORES_ROUNDS=$${HOPLINE_TEST_STORES_ROUNDS:-3} $(BIN)/pytest -q -rP tests/compose/test_stores.py

# What the record says beside what clients saw, without faults (HOPLINE_TEST_STEADY_SECONDS=3600 for an hour) and with
# them. What else the machine does meanwhile is odd as well, and may be found.
fates: $(TOOLS)
	$(BIN)/pytest -q $(STEADY) $(KILLED)

# From the last release to this one, process by process under load; HOPLINE_PREVIOUS names another revision to come from.
# Not part of `make test`: it wants this repository's history, which a copy of its files has not.
upgrade: $(TOOLS)
	$(BIN)/pytest -q tests/upgrade

# Histories from seeds on virtual time until told to stop, or until one breaks a promise; SIMULATE='--for 600' and others
# of `python -m tests.simulation --help` bound it. The mutants are patches that put faults back: all have to be found.
simulate: $(TOOLS)
	$(BIN)/python -m tests.simulation $(SIMULATE)

simulate-mutants: $(TOOLS)
	$(BIN)/python -m tests.simulation.try_mutants $(SIMULATE)

# The stack in containers; docker-compose.yml says what can be set. IMAGES=postgres or analytics builds one more.
images:
	deploy/images.sh $(IMAGES)

compose-up: images
	if command -v docker-compose >/dev/null; then docker-compose up; else docker compose up; fi

clean:
	rm -rf $(VENV) build dist services/rpc
