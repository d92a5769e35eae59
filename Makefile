# Everything runs in .venv, made on first use; PYTHON picks the interpreter it is made with.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# busy OpenMP threads that spin make small fits ten times slower
export OMP_WAIT_POLICY := PASSIVE
export SPARK_LOCAL_IP := 127.0.0.1

.PHONY: help demo test test-clusters lint bench clean

help:
	@echo "make demo           train, explain, draw: writes demo/index.html and says where"
	@echo "make test           run all tests"
	@echo "make test-clusters  run the tests that start local Dask, Ray and Spark clusters"
	@echo "make lint           ruff and pyright"
	@echo "make bench          speed and memory, as ratios side by side"

.venv/demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[plot]'
	@touch $@

.venv/dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[dev]'
	@touch $@ .venv/demo

demo: .venv/demo
	$(BIN)/python -m texplainer.demo

test: .venv/dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not cluster"

test-clusters: .venv/dev
	$(PIP) -e '.[ray,spark]'
	$(BIN)/python -m pytest -m cluster

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/pyright

bench: .venv/dev
	@for script in blackbox whitebox trees evaluation cli scale; do $(BIN)/python benchmarks/$$script.py || exit 1; done

clean:
	rm -rf .venv demo dist .pytest_cache .ruff_cache .hypothesis
