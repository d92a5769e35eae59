# Everything runs in .venv, made on first use; PYTHON picks the interpreter it is made with.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# busy OpenMP threads that spin make small fits ten times slower
export OMP_WAIT_POLICY := PASSIVE
export SPARK_LOCAL_IP := 127.0.0.1

.PHONY: help demo test test-fast test-oldest test-newest test-mlflow test-hostile test-clusters lint results paper wide compare docs docs-serve package clean

help:
	@echo "make demo           train, explain, draw: writes demo/index.html and says where"
	@echo "make test           run all tests"
	@echo "make test-fast      the tests for daily work, under 90 seconds"
	@echo "make test-oldest    the core tests with exactly the oldest versions that are declared"
	@echo "make test-newest    the core tests with the newest of everything; NEWEST picks the interpreter"
	@echo "make test-mlflow    the tests of MLflow runs, which the other environments skip"
	@echo "make test-hostile   threads, forks, odd dtypes; a seeded fuzz of files, arguments, forgeries and kills; writes docs/results/trust.md"
	@echo "make test-clusters  run the tests that start local Dask, Ray and Spark clusters"
	@echo "make lint           ruff and pyright"
	@echo "make results        every page of docs/results, in some hours; nothing else should run"
	@echo "make paper          the paper's experiments, ARGS as of python -m experiments: make paper ARGS='--all --quick'"
	@echo "make wide           many data sets, kinds of models and explainers: one page per question"
	@echo "make compare        all installed explainers on one data set, and yours: make compare DATASET=banknote EXPLAINER=mine.py"
	@echo "make docs           the documentation site, in site/index.html; make docs-serve shows it while you write"
	@echo "make package        wheel and source archive in dist/, tried in a fresh environment"

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

FAST := tests/test_imports.py tests/test_suite.py tests/test_sizes.py tests/test_names.py tests/test_explainer.py \
	tests/test_diagnostics.py tests/background tests/tables tests/explanation tests/support tests/attributions/test_table.py \
	tests/attributions/test_variation.py tests/gradients/finite_difference tests/gradients/test_point_engine.py \
	tests/gradients/test_transformers.py tests/metrics/test_closed_forms.py tests/files/test_results.py tests/recipes
test-fast: .venv/dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not cluster and not browser" $(FAST)

CORE := tests/test_explainer.py tests/support tests/explanation tests/tables tests/zoo
OLDEST := numpy==1.26.* scipy==1.11.* scikit-learn==1.4.* narwhals==1.38.* click==8.1.* rich==13.* pandas==2.2.* \
	matplotlib==3.8.* numba==0.59.* xgboost-cpu==2.1.* lightgbm==4.3.* pyarrow==17.* polars==1.0.*
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check $(OLDEST) pytest hypothesis
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	.venv-oldest/bin/python -m pytest -q $(CORE)

NEWEST ?= python3.13
test-newest:
	$(NEWEST) -m venv .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
		-e '.[plot,trees,files]' shap lime polars pytest hypothesis
	.venv-newest/bin/python -m pytest -q $(CORE)

# MLflow brings 22 packages and holds others back (cachetools, importlib_metadata): an environment of its own
test-mlflow:
	$(PYTHON) -m venv .venv-mlflow
	.venv-mlflow/bin/python -m pip install --quiet --disable-pip-version-check -e '.[mlflow,trees]' pytest httpx
	.venv-mlflow/bin/python -m pytest -q tests/test_mlflow.py

test-hostile: .venv/dev
	$(BIN)/python tests/helpers/hostile_callers.py --page docs/results/trust.md
	$(BIN)/python tests/helpers/hostile_fuzz.py --page docs/results/trust.md

test-clusters: .venv/dev
	$(PIP) -e '.[ray,spark]'
	$(BIN)/python -m pytest -m cluster

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check src experiments tests benchmarks examples
	$(BIN)/pyright

# Every page of docs/results, in the newest environment: first what is timed, for a machine that does nothing else.
RUN := .venv-wide/bin/python
TIMED := blackbox interactions line_integrals recourse scale
UNTIMED := sums trust_cover stability default_study locality images bounds
results: .venv-wide/done
	for page in shapley slopes cli; do $(RUN) benchmarks/$$page.py --write docs/results/$$page.md || exit 1; done
	for page in $(TIMED) $(UNTIMED); do $(RUN) benchmarks/$$page.py || exit 1; done
	$(MAKE) wide ARGS='-o docs/results/wide'
	OMP_NUM_THREADS=1 $(RUN) -m experiments --all --jobs 2 -o docs/results/paper
	$(MAKE) test-hostile
	$(RUN) benchmarks/trust_memory.py
	$(RUN) docs/execute.py

paper: .venv/dev
	$(BIN)/python -m experiments $(ARGS)

# Everything that is compared, on the newest Python with the newest libraries.
.venv-wide/done: pyproject.toml constraints.txt
	$(NEWEST) -m venv .venv-wide
	.venv-wide/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e '.[plot,trees,torch,explainers,files,dask,ray,spark,images]' \
		catboost shapiq treeig woodelf_explainer lightshap threadpoolctl psutil jsonschema
	.venv-wide/bin/python -m pip install --quiet --disable-pip-version-check --no-deps dice-ml raiutils  # needs xgboost, has xgboost-cpu
	@touch $@

wide: .venv-wide/done
	OMP_NUM_THREADS=1 .venv-wide/bin/python -m experiments --wide --jobs 2 $(ARGS)

DATASET ?= banknote
compare: .venv/dev
	$(BIN)/python -m experiments.compare $(DATASET) $(addprefix --explainer ,$(EXPLAINER)) $(ARGS)

.venv/docs: .venv/dev
	$(PIP) -e '.[docs]'
	@touch $@

docs: .venv/docs
	@began=$$(date +%s) && NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && \
	echo "site/index.html: $$(find site -name '*.html' | wc -l) pages, $$(du -sh site | cut -f1), in $$(($$(date +%s) - began)) seconds"

docs-serve: .venv/docs
	$(BIN)/mkdocs serve

package:
	PYTHON=$(PYTHON) .ci/package

clean:
	rm -rf .venv .venv-wide .venv-oldest .venv-newest demo dist site .pytest_cache .ruff_cache .hypothesis
