# make demo   the main job, visibly, on a local control plane
# make test   every test: unit, API server, end to end; what .ci/run calls
# make check  the quick subset: format, vet, lint, unit tests
# make help   the rest
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Tools and control plane binaries are built once and kept outside the checkout, by version.
CACHE         := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/zae-tools
GOLANGCI      := v2.15.0
GOLANGCI_LINT := $(CACHE)/golangci-lint-$(GOLANGCI)/golangci-lint
VERSION       := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS       := -s -w -X zaentrum.io/zae/internal/cli.Version=$(VERSION)
# -race needs a C compiler.
export CGO_ENABLED ?= 1

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: build
build: bin/zae ## the binary, bin/zae

bin/zae: FORCE
	@mkdir -p bin
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/zae

.PHONY: FORCE
FORCE:

.PHONY: generate
generate: ## CRDs, deep copies and roles from the Go types
	go generate ./...

.PHONY: need
need:
	@hack/need gcc libc6-dev git ca-certificates postgresql

$(GOLANGCI_LINT):
	@echo "building golangci-lint $(GOLANGCI), about 2 minutes, once"
	@mkdir -p $(@D)
	@GOBIN=$(@D) GOFLAGS= CGO_ENABLED=0 go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)

.PHONY: fmt
fmt: ## format the code
	gofmt -w $$(git ls-files '*.go')

.PHONY: lint
lint: $(GOLANGCI_LINT) ## golangci-lint over both modules
	@echo "format"; out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not formatted: $$out (make fmt)"; exit 1; fi
	@echo "lint"; $(GOLANGCI_LINT) run --allow-parallel-runners ./...
	@cd testbed && $(GOLANGCI_LINT) run --allow-parallel-runners --config ../.golangci.yaml ./...

.PHONY: check
check: need lint ## format, vet, lint, unit tests
	go vet ./...
	go test -short ./...

.PHONY: testbed
testbed: need ## build the local control plane, once per version
	@cd testbed && go run ./cmd/testbed build

.PHONY: test
test: need lint testbed bin/zae ## every test
	@echo "unit tests and tests against an API server"
	KUBEBUILDER_ASSETS="$$(cd testbed && go run ./cmd/testbed assets)" go test -race -timeout 20m ./...
	@echo "the testbed's own tests"
	cd testbed && go test -race -timeout 20m $$(go list ./... | grep -v /e2e)
	@echo "end-to-end tests"
	cd testbed && ZAE_BIN="$(CURDIR)/bin/zae" go test -count=1 -timeout 30m -v ./e2e

.PHONY: e2e
e2e: testbed bin/zae ## only the end-to-end tests; RUN=TestName for some of them
	cd testbed && ZAE_BIN="$(CURDIR)/bin/zae" go test -count=1 -timeout 30m -v -run '$(or $(RUN),.)' ./e2e/...

.PHONY: chaos
chaos: testbed bin/zae ## the fault suite at length: KILLS=300 kills of the operator, long outages; SEED=n does the same again
	cd testbed && ZAE_BIN="$(CURDIR)/bin/zae" CHAOS=1 KILLS=$(or $(KILLS),300) SEED=$(SEED) \
		go test -count=1 -timeout 3h -v -run '$(or $(RUN),TestFault|TestAnIdle|TestANamespace|TestKeepValues)' ./e2e

.PHONY: bench
bench: ## the benchmarks of docs/performance.md
	go test -run '^$$' -bench . -benchmem -count 6 ./internal/engine/...

.PHONY: load
load: testbed bin/zae ## what 500 addons cost on the local control plane; ADDONS=n, RESYNC=5m
	cd testbed && go run ./cmd/load -zae "$(CURDIR)/bin/zae" -addons $(or $(ADDONS),500) -resync $(or $(RESYNC),5m)

.PHONY: load-api
load-api: testbed bin/zae ## what the API takes with 1,000 addons and 200 event streams; ADDONS=n, STREAMS=n
	cd testbed && go run ./cmd/apiload -zae "$(CURDIR)/bin/zae" -addons $(or $(ADDONS),1000) -streams $(or $(STREAMS),200)

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME, a minute by default; RUN=Pattern for some of them
	hack/fuzz '$(or $(FUZZTIME),1m)' '$(or $(RUN),.)'

.PHONY: demo
demo: need testbed bin/zae ## the main job, visibly; KEEP=1 leaves it running
	@cd testbed && KEEP=$(KEEP) go run ./cmd/demo -zae "$(CURDIR)/bin/zae"

.PHONY: clean
clean: ## what was built in this checkout
	rm -rf bin dist
