# Everything a newcomer needs: make demo, make test. `make help` lists the rest.
# DuckDB is linked in as a static library, so a C++ compiler is needed; Arrow needs the build tag.
export GOFLAGS := -tags=duckdb_arrow $(GOFLAGS)
export CGO_ENABLED := 1

RELEASE := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 4s
SOAK ?= 10m
AT_LEAST ?= 3000

.PHONY: help build demo test test-race test-rest test-faults test-postgres-18 test-random soak bench lint fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/etl
	go build -trimpath -ldflags "-X main.release=$(RELEASE)" -o bin/etl ./cmd/etl

demo: build ## run an example on its files, add a day, run again, show and check the table
	@sh examples/demo.sh

test: lint ## run all tests, with the race detector, kills of the real binary, and the fuzzers
	$(MAKE) -j3 test-race test-rest test-faults test-random test-postgres-18 fuzz

# The race detector watches the packages that have more than one goroutine; of the engine the tests of batches and
# of upkeep, of the scripts, which run a binary each, those with signals, waiting and several pipelines.
RACED := ^Test(Arrow|Equivalence|Two|Rows|Failed|Recovery|NoRecovery|Other|RandomPipelines)
test-race:
	go test -race -short -timeout 40m $$(go list ./... | grep -v -e '^lockstep$$' -e '/cmd/etl$$' -e '/planner$$' -e '/engine$$')
	go test -race -short -timeout 40m ./engine -run '$(RACED)'
	go test -race -timeout 40m ./cmd/etl -run 'TestScript/^(run|follow.*|interrupt|held.*|folders|getenv)$$'

test-rest:
	go test -timeout 40m -skip '^Test(Kill|Faults)' . ./cmd/etl
	go test -short -timeout 40m -skip '$(RANDOM)' ./planner
	go test -short -timeout 40m -skip '$(RACED)|$(RANDOM)' ./engine

test-faults: # processes, servers and connections are killed and cut, and counted by kind
	LOCKSTEP_KILLS=7 LOCKSTEP_RANDOM_KILLS=15 LOCKSTEP_DEED_KILLS=2 LOCKSTEP_FAULTS=7 LOCKSTEP_AT_LEAST=300 go test -count 1 -v -timeout 40m -run '^Test(Kill|Faults)' .

test-postgres-18: # where its programs can be had
	sh connectors/postgres/pgtest/with-18.sh go test -count 1 -timeout 20m ./connectors/postgres -run '^Test(Destination|Values|RefusedRows|TablesOfPostgres|Wire|ForeignWriters)$$'

# Queries, and corrections of input, that nobody wrote.
RANDOM := ^TestRandom(Queries|Pipelines|Apply|Ranges|Backfills.*)$$
test-random:
	LOCKSTEP_CASES=2000 go test -count 1 -v -timeout 40m -run '^TestRandom(Queries|Pipelines|Apply)$$' ./planner ./engine
	LOCKSTEP_CASES=1000 go test -count 1 -v -timeout 40m -run '^TestRandom(Ranges|Backfills.*)$$' ./planner ./engine

soak: ## kill the real binary, its server and its connections for 4 x $(SOAK), then draw random queries for $(SOAK)
	LOCKSTEP_SOAK=$(SOAK) LOCKSTEP_KILLS=5 LOCKSTEP_AT_LEAST=$(AT_LEAST) go test -timeout 0 -count 1 -v -run '^Test(Kill|Faults)' .
	@timeout $(SOAK) sh -c 'while out=$$(LOCKSTEP_CASES=4000 go test -timeout 0 -count 1 -v -run "^TestRandom(Queries|Pipelines|Apply|Ranges|Backfills.*)$$" ./planner ./engine); \
		do echo "$$out" | grep -E "queries:|pipelines in|plans:|files:"; done; echo "$$out"; exit 1'; test $$? -eq 124

lint: ## formatting and vet
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go vet -tags=duckdb_arrow,failpoints ./connectors/...

fuzz: ## every fuzzer for $(FUZZTIME)
	go test -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME) ./sql
	go test -run '^$$' -fuzz '^FuzzDecodeSegment$$' -fuzztime $(FUZZTIME) ./checkpoints
	go test -run '^$$' -fuzz '^FuzzCompile$$' -fuzztime $(FUZZTIME) ./planner
	go test -run '^$$' -fuzz '^FuzzHeader$$' -fuzztime $(FUZZTIME) ./connectors/files
	go test -run '^$$' -fuzz '^FuzzJSONLine$$' -fuzztime $(FUZZTIME) ./connectors/files

bench: build ## measure against named baselines; ratios are printed
	go test -run '^$$' -bench . -benchtime 1x -timeout 60m ./engine/bench ./connectors/postgres

clean: ## remove what was built
	rm -rf bin demo
