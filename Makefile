# Everything a developer does here. `make help` lists it.
#
# Variables: SCALE (make bench: 1 is the full size), FUZZTIME (make fuzz: per
# target), SOAK (make soak: how long), ARGS (make run: flags of tally serve).

SCALE      ?= 1
FUZZTIME   ?= 1000000x
SOAK       ?= 4h
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Packages of the product that start goroutines: they also run under the race
# detector. Derived from the sources, so a new one cannot be forgotten. The tests
# of cmd/tally run it as a process and would see nothing. Pebble turns its own
# invariants on under the detector, and one of them does not survive the faults that
# pagestore's tests inject (a panic in its l0Sublevels after a failed compaction).
CONCURRENT = $(sort $(dir $(shell grep -rlP --include='*.go' --exclude-dir=test --exclude-dir=bench --exclude-dir=cmd --exclude-dir=pagestore '^\s+go [\w.]+\x28|\.Go\x28func' .)))

.PHONY: help run build test race lint bench fuzz soak generate

help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' Makefile

run: ## start a server on 127.0.0.1:6380 with its data in ./tally-data
	go run ./cmd/tally serve $(ARGS)

build: ## build ./tally
	go build -trimpath -o tally ./cmd/tally

test: ## every test; installs the programs it needs first (see test/setup.sh)
	./test/setup.sh
	$(MAKE) --no-print-directory race
	go test -tags assert -timeout 20m ./...

# TestMemoryBudget works in one goroutine, and for minutes under the detector;
# it runs with all the others.
race: ## the packages that start goroutines, under the race detector
	$(if $(CONCURRENT),go test -race -short -skip '^TestMemoryBudget$$' -timeout 20m $(CONCURRENT))

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "run gofmt -w on: $$unformatted"; exit 1; }
	go vet -tags assert ./...
	go run $(STATICCHECK) -tags assert ./...

bench: ## Tally beside a Redis started in the same run; SCALE=0.05 for a quick look
	./bench/run -scale $(SCALE)

fuzz: ## every fuzz target for FUZZTIME each
	./test/fuzz.sh $(FUZZTIME)

soak: ## the tests of the crash suite, SOAK each
	TALLY_SOAK=$(SOAK) go test -tags assert -count=1 -timeout 0 -v -run '^TestCrash' ./test/crash

generate: ## rewrite generated files
	go generate ./...
