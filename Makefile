# The commands of the lesson. `make` alone lists them.
#
# Works from a path with spaces: only relative paths are used, and every variable is quoted.
# Variables, each settable as in `make lesson PYTHON=python3.12`:
#   PYTHON       the Python that makes .venv (3.11 or newer); an existing .venv keeps its own
#   CUDA         auto, cu12, cu13 or none: which CuPy to install; auto asks nvidia-smi
#   CONSTRAINTS  auto, none, or a file of exact versions
#   VENV_ARGS    passed on to python -m venv, such as --system-site-packages
#   NO_INSTALL   set to 1: no .venv and no download; PYTHON has everything that is needed
#   NOTEBOOK     the notebook to run
#   OUT          where `make lesson` and `make slides` write
#   PYTEST_ARGS  passed on to pytest in `make test` and `make gpu-test`
#   LAB_ARGS     passed on to JupyterLab, such as --no-browser

PYTHON ?= $(or $(wildcard .venv/bin/python),python3)
CUDA ?= auto
CONSTRAINTS ?= auto
VENV_ARGS ?=
NO_INSTALL ?=
NOTEBOOK ?= notebooks/day76_tma_tile.ipynb
OUT ?= out
PYTEST_ARGS ?=
LAB_ARGS ?=

ifeq ($(strip $(NO_INSTALL)),)
RUN = .venv/bin/python
set_up = "$(PYTHON)" scripts/setup_env.py --extras $(1) --cuda "$(CUDA)" \
	--constraints "$(CONSTRAINTS)" --venv-args="$(VENV_ARGS)"
else
# Not installed, so the clone itself is put on the path, for the notebook's kernel too.
RUN = PYTHONPATH="$(CURDIR)$${PYTHONPATH:+:$$PYTHONPATH}" "$(PYTHON)"
set_up = true
endif

NBVAL = $(RUN) -m pytest -p no:xdist --nbval --nbval-sanitize-with tests/nbval_sanitize.cfg \
	"$(NOTEBOOK)"

.PHONY: help python lesson lab slides bench test gpu-test format clean distclean

help:
	@echo "make lesson     run the lesson here: the round trip, and a page to read in out/"
	@echo "make lab        open the lesson in JupyterLab"
	@echo "make slides     write the lesson as slides, one page that needs no network, into out/"
	@echo "make bench      measure the copies on a Hopper GPU; elsewhere, what an H200 said, drawn"
	@echo "make test       lint, tests, and the notebook executed and compared with its outputs"
	@echo "make gpu-test   what needs a Hopper GPU or a later one"
	@echo "make format     format the Python code and mend what ruff can mend"
	@echo "make clean      remove what the commands wrote; distclean removes .venv too"

python:
	@command -v "$(PYTHON)" > /dev/null || { echo "set-up: no command $(PYTHON) here." \
		"Install Python 3.11 or newer, or name one: make PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" scripts/check_python.py

lesson: python
	@$(call set_up,notebook)
	@$(RUN) -m lesson run --out "$(OUT)" "$(NOTEBOOK)"

lab: python
	@$(call set_up,notebook)
	@$(RUN) -m jupyterlab $(LAB_ARGS) "$(NOTEBOOK)"

slides: python
	@$(call set_up,notebook)
	@$(RUN) -m lesson slides --out "$(OUT)" "$(NOTEBOOK)"

bench: python
	@$(call set_up,)
	@$(RUN) -m lesson bench --out "$(OUT)"

test: python
	@$(call set_up,notebook$(comma)test)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m pytest -n 2 --dist worksteal -m "not gpu" $(PYTEST_ARGS)
	$(NBVAL)

gpu-test: python
	@$(call set_up,notebook$(comma)test)
	@$(RUN) -m lesson info --require gpu
	$(RUN) -m pytest -m gpu $(PYTEST_ARGS)
	$(NBVAL)

format: python
	@$(call set_up,notebook$(comma)test)
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

clean:
	rm -rf out build dist .pytest_cache .ruff_cache .hypothesis
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv

comma := ,
