# Everything a newcomer needs: make demo, make test. `make help` lists the rest.
# DuckDB is linked in as a static library, so a C++ compiler is needed; Arrow needs the build tag.
export GOFLAGS := -tags=duckdb_arrow $(GOFLAGS)
export CGO_ENABLED := 1

RELEASE := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 3s
SOAK ?= 10m
AT_LEAST ?= 3000

.PHONY: help build demo test test-race test-docs test-engine test-rest test-faults test-postgres-18 test-random test-corrections soak bench lint fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/etl
	go build -trimpath -ldflags "-X main.release=$(RELEASE)" -o bin/etl ./cmd/etl

demo: build ## run an example on its files, add a day, run again, show and check the table
	@sh examples/demo.sh

# The random queries, pipelines and corrections of a tree begin at a seed of its own: the same tree gives the same
# cases, so that it does not fail today when it did not yesterday. `make soak` draws others every time.
SEED = $(shell find . -name '*.go' | LC_ALL=C sort | xargs cat | cksum | cut -d ' ' -f 1)

test: lint ## run all tests, with the race detector, kills of the real binary, and the fuzzers
	LOCKSTEP_SEED=$(SEED) $(MAKE) -j3 test-engine test-random test-docs test-corrections test-faults test-rest test-race test-postgres-18 fuzz

# `make lint` vets everything, and nobody looks at the binaries with a debugger.
TEST := go test -vet=off -ldflags=-w -timeout 40m

# The race detector watches the packages, and of two those tests, that have more than one goroutine.
RACED := ^Test(Two|Rows|Failed|FollowWhile|Corrections|Readers|Saved|ResumedBackfill)
RACED_SCRIPTS := ^(run|follow.*|interrupt|held.*|folders|getenv)$$
test-race:
	$(TEST) -race -short ./connectors/postgres/... ./connectors/files ./engine/duck
	$(TEST) -race -short ./engine -run '$(RACED)'
	$(TEST) -race ./cmd/etl -run 'TestScript/$(RACED_SCRIPTS)'

test-docs: # of the root package all but kills and faults
	$(TEST) -skip '^Test(Kill|Faults)' .

test-engine:
	$(TEST) -short -skip '$(RACED)|$(RANDOM)' ./engine

test-rest:
	$(TEST) -skip 'TestScript/$(RACED_SCRIPTS)' ./cmd/etl
	$(TEST) -short -skip '$(RANDOM)' $$(go list ./... | grep -v -e '^lockstep$$' -e '/cmd/etl$$' -e '/postgres' -e '/files$$' -e '/engine$$' -e '/duck$$')

test-faults: # processes, servers and connections are killed and cut, and counted by kind
	LOCKSTEP_KILLS=5 LOCKSTEP_RANDOM_KILLS=9 LOCKSTEP_DEED_KILLS=2 LOCKSTEP_FAULTS=5 LOCKSTEP_AT_LEAST=300 $(TEST) -count 1 -v -run '^Test(Kill|Faults)' .

test-postgres-18: # where its programs can be had
	sh connectors/postgres/pgtest/with-18.sh $(TEST) -count 1 ./connectors/postgres -run '^Test(Destination|Values|RefusedRows|TablesOfPostgres|Wire|ForeignWriters)$$'

# Queries, pipelines and changes of them that nobody wrote, and corrections of their input.
RANDOM := ^TestRandom(Queries|Pipelines|Apply|Ranges|Backfills.*)$$
test-random:
	LOCKSTEP_CASES=2000 $(TEST) -count 1 -v -run '^TestRandomQueries$$' ./planner

test-corrections:
	LOCKSTEP_CASES=910 $(TEST) -count 1 -v -run '^TestRandom(Pipelines|Apply|Backfills.*)$$' ./engine
	LOCKSTEP_CASES=600 $(TEST) -count 1 -v -run '^TestRandomRanges$$' ./planner

soak: ## kill the real binary, its server and its connections for about 10 x $(SOAK), then draw random queries for $(SOAK)
	LOCKSTEP_SOAK=$(SOAK) LOCKSTEP_KILLS=5 LOCKSTEP_AT_LEAST=$(AT_LEAST) $(TEST) -timeout 0 -count 1 -v -run '^Test(Kill|Faults)' .
	@timeout $(SOAK) sh -c 'while out=$$(LOCKSTEP_CASES=4000 $(TEST) -timeout 0 -count 1 -v -run "^TestRandom(Queries|Pipelines|Apply|Ranges|Backfills.*)$$" ./planner ./engine); \
		do echo "$$out" | grep -E "queries:|pipelines in|plans:|files:"; done; echo "$$out"; exit 1'; test $$? -eq 124

lint: ## formatting and vet
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go vet -tags=duckdb_arrow,failpoints ./connectors/...

fuzz: ## every fuzzer for $(FUZZTIME)
	$(TEST) -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME) ./sql
	$(TEST) -run '^$$' -fuzz '^FuzzDecodeSegment$$' -fuzztime $(FUZZTIME) ./checkpoints
	$(TEST) -run '^$$' -fuzz '^FuzzCompile$$' -fuzztime $(FUZZTIME) ./planner
	$(TEST) -run '^$$' -fuzz '^FuzzHeader$$' -fuzztime $(FUZZTIME) ./connectors/files
	$(TEST) -run '^$$' -fuzz '^FuzzJSONLine$$' -fuzztime $(FUZZTIME) ./connectors/files

bench: build ## measure against named baselines; ratios are printed
	go test -run '^$$' -bench . -benchtime 1x -timeout 60m ./engine/bench ./connectors/postgres

clean: ## remove what was built
	rm -rf bin demo
