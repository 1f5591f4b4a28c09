# Most targets run one tool from tools/, which can also be run directly.

export PYTHONDONTWRITEBYTECODE := 1
# Read by tools/run.py. A shell between make and the tool would end by Ctrl-C, which make reports as an error.
export NATIVE RULES

.DEFAULT_GOAL := help
.PHONY: help build native docs playground image release cli run fleet watch cluster test platforms test-all soak promises mutations lint bench cost lines simulate fuzz mutants clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

build: ## build target/diana.wasm, the finished module
	@python3 tools/build.py

cli: ## build target/release/diana, the command: `diana check FILE`, `diana --help` (the first time some minutes)
	@echo "The first build takes some minutes."
	@cargo build --release --package diana-cli

native: ## build target/libdiana.so, the module for Envoy's own process
	@python3 tools/native.py

run: $(if $(NATIVE),native,build) ## start Envoy with envoy/envoy.yaml and the module, ready for curl (RULES=my.yaml takes your rules, CONFIG=envoy/hot.yaml another Envoy, ENVOY=1.38.2 another version, NATIVE=1 the dynamic module)
	@python3 tools/run.py $(or $(CONFIG),envoy/envoy.yaml) $(ENVOY)

fleet: build ## start two gateways that share limits through Redis, and a configuration server, ready for curl (REDIS=cluster, shards, sentinel)
	@python3 tools/fleet.py $(or $(REDIS),one) $(ENVOY)

watch: build ## start a gateway, callers, a Prometheus with our alerts, and a page that shows the dashboard
	@python3 tools/watch.py $(ENVOY)

cluster: ## start a Kubernetes without machines, Istio and Envoy Gateway with Diana, ready for kubectl and curl (as root)
	@python3 tools/platforms/main.py cluster $(VERSION)

test: ## run the gate: deterministic checks, some minutes (STAGES="native envoy" for some)
	@python3 tools/check.py $(STAGES)

platforms: ## run the chart below real control planes, as root and with Go, up to half an hour a version (VERSION=newest or oldest, TESTS="test_life" for some, TESTS=smoke for a few minutes)
	@python3 tools/platforms/main.py test $(VERSION) $(TESTS)

test-all: ## run everything, as nightly runs and releases do, an hour
	@python3 tools/check.py --all

soak: build ## run the laws with fresh seeds, and the fuzz targets, for hours (MINUTES=60); a failure prints its seed
	@end=$$(($$(date +%s) + 60 * $(or $(MINUTES),60))); failed=0; while [ $$(date +%s) -lt $$end ]; do \
		DIANA_SEED=fresh cargo test --no-fail-fast --test sim --test it --test redis --test abi --test dynamic || failed=1; \
		DIANA_SEED=fresh python3 tools/fuzz.py --seconds 10 || failed=1; done; exit $$failed

promises: ## try everything that can happen in small worlds, some minutes (DEPTH=5 for hours: one more event)
	@python3 tools/promises.py $(DEPTH)

mutations: ## make small mistakes in a copy of the tree, each of which `make promises` must find, some minutes (LAWS="turns lease" for some)
	@python3 tools/mutations.py $(LAWS)

lint: ## run only the checks that need no test: format, clippy, docs
	@python3 tools/check.py lint

docs: ## build the book and the playground in it, target/book/docs/index.html (the first time some minutes: it builds mdBook and wasm-bindgen)
	@echo "The first build takes some minutes: it builds mdBook and wasm-bindgen from source."
	@python3 tools/book.py

playground: ## build the page that tries rules, target/playground/index.html, and show it at http://127.0.0.1:8089
	@python3 tools/playground.py
	@python3 -m http.server --bind 127.0.0.1 --directory target/playground 8089

image: build ## write target/image, the modules as images, an SBOM, and target/companion, the image of `diana serve` (BEFORE="diana-0.1.0.wasm" adds modules)
	@python3 tools/image.py
	@python3 tools/companion.py $(BEFORE)

release: build ## lay modules, images, chart, bill of materials and checksums into target/dist (TAG=v0.2.0 must fit the version; BEFORE as above)
	@python3 tools/release.py "$(TAG)" $(BEFORE)

bench: build native ## measure Diana in Envoy and its core alone (ARGUMENTS="--quick --workers 4")
	@python3 benches/throughput.py $(ARGUMENTS)
	@cargo bench --quiet --bench core

lines: cli ## measure how long `diana replay` takes for a million lines of an access log (LINES=10000000, CONFIG=rules.yaml)
	@python3 tools/access_log.py --lines $(or $(LINES),1000000) > target/access.log
	@bash -c 'time target/release/diana replay $(or $(CONFIG),envoy/envoy.yaml) target/access.log --set header:x-account-id=14'

cost: build native ## count what a request costs in Envoy, in instructions; fails over a budget
	@python3 benches/cost.py

simulate: ## simulate fleets of 1 to 1,000 gateways and a Redis, by the real core (TABLES="size thousand below busy after shards many faults" for some)
	@cargo bench --quiet --bench fleet -- $(TABLES)

fuzz: ## run each fuzz target for a minute (SECONDS=600 for longer, TARGETS="path resp" for some)
	@python3 tools/fuzz.py $(if $(SECONDS),--seconds $(SECONDS)) $(TARGETS)

mutants: ## break the core in all ways and see that its tests find out, by cargo-mutants (FILES="src/policy/ring.rs src/store/hot/*.rs", SHARD=1/8)
	@cargo mutants --output target --no-shuffle $(if $(SHARD),--shard $(SHARD)) $(addprefix --file ,$(FILES))

clean: ## remove everything that was built or fetched
	@rm -rf target
