# Each target runs one tool from tools/, which can also be run directly.

export PYTHONDONTWRITEBYTECODE := 1

.DEFAULT_GOAL := help
.PHONY: help build docs playground image release cli run fleet watch test test-all soak lint bench cost lines simulate bans quota hot fuzz mutants size clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 14

build: ## build target/diana.wasm, the finished module
	@python3 tools/build.py

cli: ## build target/release/diana, the command: `diana check FILE`, `diana --help`
	@cargo build -q --release --package diana-cli

run: build ## start Envoy with envoy/envoy.yaml and the module, ready for curl (ENVOY=1.38.2 takes another version, CONFIG=envoy/hot.yaml another file)
	@python3 tools/run.py $(or $(CONFIG),envoy/envoy.yaml) $(ENVOY)

fleet: build ## start two gateways that count together, a Redis and a configuration centre, ready for curl (REDIS=cluster, shards, sentinel)
	@python3 tools/fleet.py $(or $(REDIS),one) $(ENVOY)

watch: build ## start a gateway, callers, a Prometheus with our alerts, and a page that shows the dashboard
	@python3 tools/watch.py $(ENVOY)

test: ## run the gate: deterministic checks, some minutes (STAGES="native envoy" for some)
	@python3 tools/check.py $(STAGES)

test-all: ## run everything, as nightly runs and releases do, an hour
	@python3 tools/check.py --all

soak: build ## run the laws with fresh seeds, and the fuzz targets, for hours (MINUTES=60)
	@python3 tools/soak.py $(MINUTES)

lint: ## run only the checks that need no test: format, clippy, docs
	@python3 tools/check.py lint

docs: ## build the book and the playground in it, target/book/docs/index.html
	@python3 tools/book.py

playground: ## build the page that tries rules, target/playground/index.html, and show it on loopback
	@python3 tools/playground.py serve

image: build ## write target/image, the module as an image for Istio and Envoy Gateway, and its SBOM
	@python3 tools/image.py

release: build ## lay module, image, chart, bill of materials and checksums into target/dist (TAG=v0.2.0 must fit the version)
	@python3 tools/release.py $(TAG)

bench: build ## measure Diana in Envoy and its core alone
	@python3 benches/run.py

lines: cli ## measure how many lines of an access log `diana replay` reads in a second (LINES=10000000 for more of them)
	@python3 benches/replay.py $(if $(LINES),--lines $(LINES))

cost: build ## count what a request costs in Envoy, in instructions; fails over a budget
	@python3 benches/cost.py

hot: ## look for hot keys in crowds of all kinds; fails if one is missed or marked in error
	@cargo test -q --test it hot::law -- --nocapture

simulate: ## simulate fleets of 1 to 100 gateways and a Redis, by the real core (TABLES="size busy" for some)
	@cargo bench --quiet --bench fleet -- $(TABLES)

bans: ## let a million new addresses come, and fail unless every earlier ban holds
	@python3 tools/bans.py $(ENVOY)

quota: ## count ten million accounts by the day; fails if one gets too much or too many are refused too early
	@cargo bench -q --bench quota

fuzz: ## run each fuzz target for a minute (SECONDS=600 for longer, TARGETS="path resp" for some)
	@python3 tools/fuzz.py $(if $(SECONDS),--seconds $(SECONDS)) $(TARGETS)

mutants: ## break the core in all ways and see that its tests find out (FILES="src/policy/ring.rs src/store/hot/*.rs", SHARD=1/8)
	@python3 tools/mutants.py $(if $(SHARD),--shard $(SHARD)) $(FILES)

size: ## print the module's size and fail over the budget
	@python3 tools/size.py

clean: ## remove everything that was built or fetched
	@rm -rf target
