# Each target is one tool under tools/, which can also be run by hand.

export PYTHONDONTWRITEBYTECODE := 1

.DEFAULT_GOAL := help
.PHONY: help build run fleet test lint bench hot simulate fuzz size clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 14

build: ## build target/diana.wasm, the finished module
	@python3 tools/build.py

run: build ## start Envoy with envoy/envoy.yaml and the module, ready for curl (ENVOY=1.38.2 takes another version)
	@python3 tools/run.py $(ENVOY)

fleet: build ## start two gateways that count together, a Redis and a configuration centre, ready for curl
	@python3 tools/fleet.py $(ENVOY)

test: ## run all checks, or some: make test STAGES="native envoy"
	@python3 tools/check.py $(STAGES)

lint: ## run only the checks that need no test: format, clippy, docs
	@python3 tools/check.py lint

bench: build ## measure Diana in Envoy and its core alone
	@python3 benches/run.py

hot: ## look for hot keys in crowds of all kinds; fails if one is missed or marked in error
	@cargo test -q --no-default-features --test it hot::law -- --nocapture

simulate: ## simulate fleets of 1 to 100 gateways and a Redis, by the real core (TABLES="size busy" for some)
	@cargo bench --quiet --no-default-features --bench fleet -- $(TABLES)

fuzz: ## run each fuzz target for a minute (SECONDS=600 for longer)
	@python3 tools/fuzz.py $(SECONDS)

size: ## print the module's size and fail over the budget
	@python3 tools/size.py

clean: ## remove everything that was built or fetched
	@rm -rf target
