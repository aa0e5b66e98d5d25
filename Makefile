# The menu. `make serve` and `make test` set up what they need by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# the tests wait more than they compute: six processes keep two cores busy. Each reads what the first has compiled
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 6 --dist loadfile --no-loadscope-reorder
# what the scripts are read with, and what the programs of the documentation are run with
LANGUAGES := lua5.1 nodejs golang-go php-cli php-curl php-sqlite3 php-illuminate-queue php-illuminate-bus php-illuminate-events php-illuminate-database
# what the packages in clients/ are installed and tried with
PACKAGES := composer phpunit php-guzzlehttp-guzzle php-psr-log php-laravel-framework php-symfony-framework-bundle php-symfony-messenger
# the databases that `delay-queue relay` reads, and what PHP programs write to them with
DATABASES := mariadb-server postgresql php-mysql php-pgsql php-doctrine-dbal
# beanstalkd, and its clients: ours has to be to them what it is
BEANSTALK := beanstalkd php-pda-pheanstalk php-illuminate-cache php-illuminate-console \
	php-symfony-beanstalkd-messenger php-symfony-console php-symfony-event-dispatcher ruby ruby-beaneater
GO_CLIENT := tests/beanstalk/clients/with_go_beanstalk
# helm and kubeconform, and the Kubernetes and the KEDA whose descriptions of their APIs they are asked for
CHART_TOOLS := tests/docs/chart_tools
KUBERNETES := v1.33.2
KEDA := v2.17.2
# one of the proxies that log users in
PROXIES := nginx
# what builds the wheel
BUILD := setuptools>=77.0.3
# every version with its hashes: what the image holds, what all tests run with, and three parts of that
IMAGE_LOCK := deploy/requirements.txt
TEST_LOCK := deploy/requirements-test.txt
QUICK_LOCK := deploy/requirements-quick.txt
LINT_LOCK := deploy/requirements-lint.txt
DOCS_LOCK := deploy/requirements-docs.txt
COMPILE := echo '$(BUILD)' | $(BIN)/uv pip compile pyproject.toml - --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-emit-index-url --no-emit-find-links --upgrade --quiet --custom-compile-command 'make lock'

.PHONY: help serve test test-all test-every-store lint contract format fuzz faults bench walk generate docs clean package image release chart-tools lock audit sbom

help: ## this list
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "%-20s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: $(VENV)/.installed ## run the server on port 9277 with an embedded store
	DELAYQUEUE_DATA_DIR="$${DELAYQUEUE_DATA_DIR:-data}" exec $(BIN)/delay-queue

test: $(VENV)/.installed-quick ## run the tests that need Python only: two minutes
	$(PYTEST) --quick

test-all: $(VENV)/.installed-test ## install PHP, Go, Chromium, databases, …, and run all tests
	$(PYTEST)

test-every-store: $(VENV)/.installed-test ## run all tests over Sentinel and Cluster and in every look of the page, too
	$(PYTEST) --every-store

lint: $(VENV)/.installed-lint ## ruff, mypy, private attributes of libraries, spelling; needs Python only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m scripts.private
	$(BIN)/codespell --dictionary=- --dictionary=scripts/words.txt
	$(BIN)/python -m scripts.generate --check

contract: $(VENV)/.installed-lint ## list the pages, tables and tests that lack an endpoint, a field of /push, a script, a command, a setting
	@$(BIN)/python -m tests.contract

format: $(VENV)/.installed-lint ## let ruff lay out the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: $(VENV)/.installed-test ## send every endpoint thousands of made-up requests: some minutes
	$(BIN)/python -m tests.fuzz

faults: $(VENV)/.installed-test ## break everything for half an hour; writes docs/faults.md
	$(BIN)/python -m faults

bench: $(VENV)/.installed-test ## measure; see bench/README.md
	$(BIN)/python -m bench

walk: $(VENV)/.installed-test ## print the functions that a push, a pop, … call, and how many these are
	$(BIN)/python -m bench.walk

generate: $(VENV)/.installed-lint ## write what the pages repeat: tables of verbs, quoted files, the code of the Chinese pages
	$(BIN)/python -m scripts.generate

docs: $(VENV)/.installed-docs ## build the documentation as a site into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'open build/site/index.html; for its search: python3 -m http.server --directory build/site'

package: $(VENV)/.installed-release ## build wheel, sdist and the single file into dist/, try them and the steps of the image
	$(BIN)/python -m tests.package

image: ## build the container image, with labels that tell its commit
	docker build --tag delay-queue --build-arg REVISION="$$(git rev-parse HEAD)" \
		--build-arg SOURCE="$$(git remote get-url origin 2>/dev/null)" .

release: $(VENV)/.installed-release ## make release VERSION=1.2.3: all up to the push; docs/releasing.md
	$(BIN)/python scripts/release.py $(VERSION)

chart-tools: $(VENV)/.installed-test ## build helm and kubeconform, for the tests of the chart; takes Go 1.24, minutes
	cd $(CHART_TOOLS) && GOBIN="$(CURDIR)/$(BIN)" go install tool
	cd $(CHART_TOOLS) && go mod download k8s.io/kubernetes@$(KUBERNETES) github.com/kedacore/keda/v2@$(KEDA)

lock: $(VENV)/.installed-release ## choose all versions anew, those of the image and those of the tests
	$(COMPILE) --extra embedded --extra otel --extra relay --output-file $(IMAGE_LOCK)
	$(COMPILE) --extra test --constraint $(IMAGE_LOCK) --output-file $(TEST_LOCK)
	$(COMPILE) --extra quick --constraint $(TEST_LOCK) --output-file $(QUICK_LOCK)
	$(COMPILE) --extra lint --constraint $(TEST_LOCK) --output-file $(LINT_LOCK)
	$(COMPILE) --extra docs --constraint $(TEST_LOCK) --output-file $(DOCS_LOCK)

audit: $(VENV)/.installed-release ## look all versions up among the known vulnerabilities
	$(BIN)/pip-audit --strict --require-hashes --disable-pip -r $(IMAGE_LOCK) -r $(TEST_LOCK)

sbom: $(VENV)/.installed-release ## list the versions of the image in dist/sbom.cdx.json, as CycloneDX
	mkdir -p dist
	$(BIN)/cyclonedx-py requirements $(IMAGE_LOCK) --output-reproducible --output-file dist/sbom.cdx.json

clean: ## remove what the other targets made, but no data
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.installed: $(IMAGE_LOCK) pyproject.toml scripts/setup
	@scripts/setup $(PYTHON) $(VENV) $(IMAGE_LOCK) '25 MB'
	@touch $@

$(VENV)/.installed-quick: $(QUICK_LOCK) pyproject.toml scripts/setup
	@scripts/setup $(PYTHON) $(VENV) $(QUICK_LOCK) '50 MB'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-lint: $(LINT_LOCK) pyproject.toml scripts/setup
	@scripts/setup $(PYTHON) $(VENV) $(LINT_LOCK) '60 MB'
	@touch $@

$(VENV)/.installed-docs: $(DOCS_LOCK) pyproject.toml scripts/setup
	@scripts/setup $(PYTHON) $(VENV) $(DOCS_LOCK) '30 MB'
	@touch $@

$(VENV)/.installed-test: $(TEST_LOCK) pyproject.toml scripts/setup
	@scripts/setup $(PYTHON) $(VENV) $(TEST_LOCK) '220 MB' redis-server wrk curl chromium $(LANGUAGES) $(PACKAGES) $(BEANSTALK) $(DATABASES) $(PROXIES)
	cd $(GO_CLIENT) && go mod download
	@touch $@ $(VENV)/.installed $(VENV)/.installed-quick $(VENV)/.installed-lint $(VENV)/.installed-docs

$(VENV)/.installed-release: $(VENV)/.installed-test
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[release]'
	touch $@
