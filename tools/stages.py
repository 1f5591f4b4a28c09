"""The stages of `make test` and `make test-all`. Each stage installs what it needs, then yields its steps."""

import platform
import sys
from typing import NamedTuple

import book
import envoy
import needs
import playground
from console import ROOT
from layout import PLATFORMS
from native import library
from platforms import building

DENY = ["--", "-D", "warnings"]
TEST = ["cargo", "test"]
PYTHON = sys.executable
# Tests that bring load and print figures: tests/envoy/load/. They run one at a time, for undisturbed figures.
LOAD = "load::"
MEASURED = ["--show-output", "--test-threads=1"]
# Features that may differ between the oldest Envoy and the newest: admission and refusal, ends of streams, updates, the way to Redis,
# remote rules, metrics, the access log.
ON_OLDEST = ["answers::refused", "access_log::", "settling::ends", "updates::", "to_redis::a_pipeline", "fleet::gateways_share", "remote::a_header", "remote::polls", "metrics::prometheus", "parity::", "route::", "models::providers"]
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
# What the native module refuses: claims in metadata, nested and typed metadata. And a virtual machine that dies, and the commands
# of the runbook, which read metrics of the wasm module.
ONLY_WASM = ["trap::", "symptoms::", "verified_token_in_metadata", "models::protocol", "plans::claim", "plans::each_plan"]
# The oldest Envoy takes metrics from the native module only with a request, and does not report how a stream ended.
NATIVE_ON_OLDEST = ["responses::", "rpc::", "actors::", "access_log::", "holding::", "updates::", "configuration::", "operator::", "fleet::gateways_share", "metrics::failed_calls", "panics::", "process::shipped", "secrets::secret_that", "--skip", "settling::"]
# Everything that the reference names. The oldest Envoy reports no ends to the native module.
PARITY = ["parity::arrivals", "remote::polls", "peer::", "route::", "types_of_metadata"]
ENDS = ["parity::ends", "settling::bytes", "models::providers"]
# The middle Envoy has no runtime and no secrets for native modules.
ONLY_NEWEST = ["switches::", "secrets::password"]
# The tests of the chart that need no Envoy.
CHART = ["Rendered", "Refused", "Checked", "Metrics", "Policies"]
EXAMPLES = ["envoy", "cors", "fleet", "hot", "redis/cluster", "redis/shards", "redis/sentinel", "llm/sse", "llm/ndjson"]
# The crates in `src`. A library has unit tests unless its `Cargo.toml` has `test = false`; `--lib` would ignore that and compile
# all libraries again. Their dependencies have the same features as in the whole workspace, so cargo compiles those only once: there
# `diana-tests` asks for the command as the companion's image has it.
CRATES = ["--workspace", "--exclude", "diana-tests*", "--exclude", "diana-host", "--features", "diana-cli/policies"]


class Step(NamedTuple):
    """A command, and the environment variables that it needs."""

    command: list
    variables: dict = {}
    # Whether it fails if it runs no test.
    has_tests: bool = False


def step(*words, **variables):
    return Step(list(words), variables)


def tests(*words, **variables):
    return Step(list(words), variables, has_tests=True)


def programs(*names):
    for name in names:
        needs.program(name)


def suite(name, *words, needed=()):
    """The stage of one test program."""

    def stage():
        programs(*needed)
        yield tests(*TEST, "--test", name, *words)

    return stage


def compiled():
    """Compiles all tests at once, since stages that run side by side would wait for each other's compiler."""
    needs.cargo()
    yield step(*TEST, "--no-run", "--bench=fleet", *(f"--test={name}" for name in ("it", "promises", "sim", "redis", "abi", "dynamic", "envoy")))
    yield step(*TEST, "--no-run", *CRATES)


def lint():
    needs.rust("component", "rustfmt", "clippy")
    needs.rust("target", "wasm32-wasip1")
    yield step("cargo", "fmt", "--check")
    yield step("cargo", "fmt", "--check", "--manifest-path", "tests/fuzz/Cargo.toml")
    yield step("cargo", "clippy", "--workspace", "--all-targets", *DENY)
    # The adapter for the target that is shipped.
    yield step("cargo", "clippy", "--package", "diana", "--target", "wasm32-wasip1", *DENY)


def rustdoc():
    """Checks for nightly runs only: documentation of items, and the code of the playground's target."""
    needs.rust("component", "clippy")
    needs.rust("target", "wasm32-unknown-unknown")
    yield step("cargo", "clippy", "--test", "wasm", "--target", "wasm32-unknown-unknown", *DENY)
    yield step("cargo", "doc", "--workspace", "--no-deps", RUSTDOCFLAGS="-D warnings")


def native():
    yield tests(*TEST, "--no-fail-fast", "--test", "it", "--test", "dynamic")
    yield tests(PYTHON, "-m", "unittest", "discover", "-s", "tests/tools", "-v")
    yield step(*TEST, "--bench", "fleet", "--", "laws")


def crates():
    """The unit tests of the crates in `src`, and the tests that run the command `diana`."""
    programs("openssl")
    yield tests(*TEST, "--no-fail-fast", *CRATES)


def wasm():
    """The laws with 32-bit pointers and without a clock, in node."""
    programs("node")
    needs.rust("target", "wasm32-unknown-unknown")
    runner = needs.cargo_tool("wasm-bindgen-cli", "wasm-bindgen-test-runner", needs.locked("wasm-bindgen"))
    yield tests(*TEST, "--target", "wasm32-unknown-unknown", "--test", "wasm", CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER=runner)


def module():
    # Without wasm-opt this would be another module than the shipped one.
    programs("node", "npm")
    yield step(PYTHON, "tools/build.py")


def on_envoy(version, *words):
    """Validates the examples and runs tests with this Envoy."""
    programs("curl", "openssl", "redis-server")
    binary = envoy.path(version)
    for example in EXAMPLES:
        # Envoy does not connect here, so any password will do.
        yield step(binary, "--mode", "validate", "-c", f"envoy/{example}.yaml", "-l", "error", DIANA_REDIS_PASSWORD="any")
    yield tests(*TEST, "--test", "envoy", "--", "--skip", LOAD, *words, DIANA_ENVOY=binary)


def newest_envoy():
    # Each test waits for clocks and for other processes most of the time.
    yield from on_envoy(envoy.NEWEST, "--test-threads=4")


def parity():
    """What the reference names: the dynamic module on each supported Envoy, and the wasm module on the one that no other stage has."""
    programs("curl", "openssl")
    yield step(PYTHON, "tools/native.py")
    for version, words in ((envoy.OLDEST, PARITY), (envoy.MIDDLE, PARITY + ENDS), (envoy.NEWEST, PARITY + ENDS)):
        yield on_native_envoy(envoy.path(version), *words)
    yield tests(*TEST, "--test", "envoy", "--", *PARITY, *ENDS, DIANA_ENVOY=envoy.path(envoy.MIDDLE))


def dynamic():
    """The dynamic module: on the two newest Envoys the tests of the wasm module, but for what it cannot do there, and a few on the oldest."""
    programs("openssl", "redis-server")
    yield step(PYTHON, "tools/native.py")
    yield step(PYTHON, "tools/native.py", "faults")
    middle = [word for name in ONLY_NEWEST for word in ("--skip", name)]
    for version, words in ((envoy.NEWEST, ["--test-threads=4"]), (envoy.MIDDLE, ["--test-threads=4", *middle]), (envoy.OLDEST, NATIVE_ON_OLDEST)):
        for example in ("native", "native-fleet"):
            yield step(envoy.path(version), "--mode", "validate", "-c", f"envoy/{example}.yaml", "-l", "error")
        yield on_native_envoy(envoy.path(version), *words)
    # By a pipe, through Envoy's proxy of Redis.
    proxied = ["scale::topologies", "scale::tls"]
    yield tests(*TEST, "--test", "envoy", "--", *proxied, DIANA_ENVOY=envoy.path(envoy.NEWEST), DIANA_HOST="native")


def on_native_envoy(path, *words, **variables):
    skipped = [word for name in [LOAD, *ONLY_WASM] for word in ("--skip", name)]
    return tests(*TEST, "--test", "envoy", "--", *skipped, *words, DIANA_ENVOY=path, DIANA_HOST="native", **variables)


def emulated():
    """The dynamic module in an Envoy for another processor, on an emulator."""
    programs("openssl", "redis-server")
    for processor in PLATFORMS.values():
        if processor != platform.machine():
            yield step(PYTHON, "tools/native.py", processor)
            yield step(PYTHON, "tools/native.py", "faults", processor)
            folder = library(processor).parent
            yield on_native_envoy(envoy.emulated(envoy.NEWEST, processor), "--test-threads=2", DIANA_LIBRARIES=folder)


def sanitizer():
    """The dynamic module in a fake Envoy, with a check of each access to memory."""
    target = f"{platform.machine()}-unknown-linux-gnu"
    # Rust has the sanitizer, but does not promise that this option stays.
    checked = {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": "-Zsanitizer=address"}
    # Without the target, programs of the build would be checked, too.
    yield tests(*TEST, "--target", target, "--target-dir", "target/sanitizer", "--test", "dynamic", **checked)


def oldest_envoy():
    yield from on_envoy(envoy.OLDEST, *ON_OLDEST)


def load():
    """Real Envoys under load, whose figures are printed, and all tests with the older ones."""
    programs("curl", "openssl", "etcd", "redis-server")
    newest, older = envoy.path(envoy.NEWEST), [envoy.path(envoy.MIDDLE), envoy.path(envoy.OLDEST)]
    # The others have no ai_protocol_manager.
    yield step(newest, "--mode", "validate", "-c", "envoy/llm/protocol.yaml", "-l", "error")
    yield tests(*TEST, "--test", "envoy", "--", LOAD, *MEASURED, DIANA_ENVOY=newest)
    for binary in older:
        yield tests(*TEST, "--test", "envoy", "--", "--skip", "models::protocol", DIANA_ENVOY=binary)


def cost():
    programs("cc", "valgrind")
    yield step(PYTHON, "benches/cost.py", "--guard")


def discover(folder, *words, **variables):
    """Python tests that read YAML."""
    return tests(needs.python(), "-m", "unittest", "discover", "-s", folder, "-v", *words, DIANA_ENVOY=envoy.path(), **variables)


def helm():
    """Python with Helm's SDK."""
    return needs.virtual_env("helm", ["helm-python-sdk==0.2.2"]) / "bin/python"


def chart():
    """The chart, rendered by Helm's SDK, and `diana check` of what it renders."""
    words = [word for name in CHART for word in ("-k", name)]
    # The command, as the tests of `crates` have it.
    yield step(*TEST, "--no-run", *CRATES)
    yield discover("tests/install", "-p", "test_chart.py", *words, DIANA_HELM_PYTHON=helm(), DIANA_COMMAND=ROOT / "target/debug/diana")


def install():
    """The image through a registry, manifests and chart as control planes hand them to Envoy, alerts and dashboard under load, and
    the console examples of README and book."""
    programs("chromium", "curl", "docker-registry", "prometheus", "promtool", "redis-server", "skopeo")
    # Examples run it.
    yield step("make", "cli")
    yield discover("tests/install", DIANA_HELM_PYTHON=helm(), DIANA_COMMAND=ROOT / "target/release/diana")


def ratelimits():
    """What the importer makes of Envoy's own limits, and of those of its rate limit service, against them."""
    programs("go", "redis-server")
    service = building.programs("ratelimit") / "service_cmd"
    for version in (envoy.NEWEST, envoy.MIDDLE):
        yield tests(*TEST, "--test", "ratelimits", "--", "--ignored", DIANA_ENVOY=envoy.path(version), DIANA_RATELIMIT=service)


def workflows():
    """The workflows, and the shell scripts in them."""
    programs("go", "shellcheck")
    yield step("go", "run", ACTIONLINT)


def docs():
    """The book, and in a browser the playground and the report of a replay."""
    programs("chromium", "npm")
    book.mdbook()
    yield step(PYTHON, "tools/book.py")
    yield step("make", "cli")
    places = {"DIANA_BOOK": book.BOOK, "DIANA_PLAYGROUND": playground.PAGE, "DIANA_PACKAGES": playground.WORK, "DIANA_CHROMIUM": needs.program("chromium")}
    command = ["node", "--test", "--test-reporter=tap", "--test-concurrency=1", "tests/playground/"]
    yield tests(*command, DIANA_COMMAND=ROOT / "target/release/diana", **places)


# The order in which the stages of `make test` begin: the longest first. Their results do not depend on the speed of the machine.
GATE = {"compile": compiled, "module": module, "envoy": newest_envoy, "lint": lint}
GATE |= {"sim": suite("sim", needed=["redis-server"]), "redis": suite("redis", needed=["redis-server"])}
GATE |= {"abi": suite("abi"), "native": native, "promises": suite("promises"), "oldest": oldest_envoy, "parity": parity, "crates": crates, "chart": chart}
# What `make test-all` runs besides.
REST = {"dynamic": dynamic, "emulated": emulated, "sanitizer": sanitizer, "rustdoc": rustdoc, "wasm": wasm, "fuzz": lambda: [tests(PYTHON, "tools/fuzz.py", "--anew", "--seconds", "3")], "cost": cost, "simulate": lambda: [step("make", "simulate")], "worlds": lambda: [step("make", "promises"), step("make", "promises", "DEPTH=5")], "mutations": lambda: [step("make", "mutations")]}
REST |= {"nginx": suite("nginx", "--", "--ignored", needed=["nginx"]), "ratelimits": ratelimits}
REST |= {"workflows": workflows, "istio": lambda: [discover("tests/istio")], "docs": docs, "install": install, "load": load}
STAGES = GATE | REST
# All other stages wait for these.
FIRST = {"compile", "module"}
NEED_MODULE = {"envoy", "sim", "abi", "oldest", "cost", "istio", "install", "load", "parity"}
# These measure, so each runs alone.
ALONE = {"install", "load"}
