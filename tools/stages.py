"""The stages of `make test` and `make test-all`. Each installs its requirements, and yields its steps."""

import sys
from typing import NamedTuple

import book
import envoy
import needs
import playground
from console import ROOT

DENY = ["--", "-D", "warnings"]
TEST = ["cargo", "test"]


class Step(NamedTuple):
    """A command with its environment variables."""

    command: list
    variables: dict = {}
    # Whether it fails without a test.
    has_tests: bool = False


def step(*words, **variables):
    return Step(list(words), variables)


def tests(*words, **variables):
    return Step(list(words), variables, has_tests=True)


def test_programs():
    """Builds all tests together, so that concurrent stages do not wait for each other's compiler."""
    needs.cargo()
    yield step(*TEST, "--no-run", *(word for name in COMPILED for word in ("--test", name)))


def lint():
    needs.rust_component("rustfmt", "fmt")
    needs.rust_component("clippy", "clippy")
    needs.rust_target("wasm32-wasip1")
    yield step("cargo", "fmt", "--check")
    yield step("cargo", "fmt", "--check", "--manifest-path", "tests/fuzz/Cargo.toml")
    yield step("cargo", "clippy", "--workspace", "--all-targets", *DENY)
    # The adapter for the shipped target.
    yield step("cargo", "clippy", "--package", "diana", "--target", "wasm32-wasip1", *DENY)


def rustdoc():
    """Checks of nightly runs only: documentation of items, and the code for the playground's target."""
    needs.rust_component("clippy", "clippy")
    needs.rust_target("wasm32-unknown-unknown")
    yield step("cargo", "clippy", "--test", "wasm", "--target", "wasm32-unknown-unknown", *DENY)
    yield step("cargo", "doc", "--workspace", "--no-deps", RUSTDOCFLAGS="-D warnings")


def native():
    needs.cargo()
    yield tests(*TEST, "--no-fail-fast", "--test", "it")
    yield tests(sys.executable, "-m", "unittest", "discover", "-s", "tools", "-v")


def command():
    """The command `diana`, run as a process."""
    needs.cargo()
    yield tests(*TEST, "--test", "cli")


def wasm():
    """The laws with 32-bit pointers and without a clock, in Node.js."""
    needs.program("node")
    needs.rust_target("wasm32-unknown-unknown")
    runner = needs.cargo_tool("wasm-bindgen-cli", "wasm-bindgen-test-runner", needs.locked("wasm-bindgen"))
    command = [*TEST, "--target", "wasm32-unknown-unknown", "--test", "wasm"]
    yield tests(*command, CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER=runner)


def redis():
    """The script in a real Redis."""
    needs.program("redis-server")
    yield tests(*TEST, "--test", "redis", "--", "--skip", SPEED)


def sim():
    """Fleets of the finished module and of native workers in simulated time, with a real Redis."""
    needs.program("redis-server")
    yield tests(*TEST, "--test", "sim")


def fuzz():
    """Each fuzz target for some seconds, beginning with its seeds."""
    yield tests(sys.executable, "tools/fuzz.py", "--anew", "--seconds", "3")


def module():
    # Without it the module would differ from the shipped one.
    needs.program("node")
    needs.program("npm")
    yield step(sys.executable, "tools/build.py")


def abi():
    """The finished module in wasmi."""
    yield tests(*TEST, "--test", "abi")


def validated(binary):
    """Validates the examples with Envoy."""
    examples = ("envoy.yaml", "cors.yaml", "fleet.yaml", "hot.yaml", *(f"redis/{way}.yaml" for way in ("cluster", "shards", "sentinel")), "llm/sse.yaml")
    for example in examples:
        command = [binary, "--mode", "validate", "-c", f"envoy/{example}", "-l", "error"]
        # Envoy connects to no server here, so any password works.
        yield step(*command, DIANA_REDIS_PASSWORD="any")


def real_envoy():
    """Each capability once in a real Envoy, without load and without deadlines."""
    needs.program("openssl")
    needs.program("redis-server")
    binary = envoy.path(envoy.NEWEST)
    yield from validated(binary)
    # Each of them waits for clocks and other processes most of the time.
    yield tests(*TEST, "--test", "envoy", "--", "--skip", LOAD, "--test-threads=4", DIANA_ENVOY=binary)


# Features in which the oldest Envoy may differ from the newest: admission and refusal, ends of
# streams, updates, the connection to Redis, remote rules, metrics, the access log.
ON_OLDEST = ["answers::refused", "access_log::", "settling::ends", "updates::", "to_redis::a_pipeline", "fleet::gateways_share", "remote::a_header", "metrics::prometheus"]


def oldest_envoy():
    """The oldest supported Envoy."""
    needs.program("openssl")
    needs.program("redis-server")
    binary = envoy.path(envoy.OLDEST)
    yield from validated(binary)
    yield tests(*TEST, "--test", "envoy", "--", "--skip", LOAD, *ON_OLDEST, DIANA_ENVOY=binary)


def load():
    """Real Envoys under load with printed figures, and all of their tests on the oldest one."""
    needs.program("curl")
    needs.program("openssl")
    needs.program("etcd")
    needs.program("redis-server")
    newest, oldest = (envoy.path(version) for version in (envoy.NEWEST, envoy.OLDEST))
    # The oldest has no ai_protocol_manager.
    yield step(newest, "--mode", "validate", "-c", "envoy/llm/protocol.yaml", "-l", "error")
    yield tests(*TEST, "--test", "redis", "--", SPEED, *MEASURED)
    yield tests(*TEST, "--test", "envoy", "--", LOAD, *MEASURED, DIANA_ENVOY=newest)
    yield tests(*TEST, "--test", "envoy", "--", "--skip", "models::by_protocol", DIANA_ENVOY=oldest)


def cost():
    """The cost of a request in a real Envoy, in instructions."""
    needs.program("valgrind")
    envoy.path()
    yield step(sys.executable, "benches/cost.py", "--guard")


def python_with_yaml():
    return needs.virtual_env("python", ["jsonschema==4.26.0", "PyYAML==6.0.3", "editorconfig==0.17.0"]) / "bin/python"


def istio():
    python = python_with_yaml()
    yield tests(python, "-m", "unittest", "discover", "-s", "tests/istio", "-v", DIANA_ENVOY=envoy.path())


def install():
    """Installation and monitoring: the image through a registry, manifests and chart converted as by control planes,
    alerts and dashboard under load, and the console examples of README and book."""
    for program in ("curl", "docker-registry", "prometheus", "promtool", "redis-server", "skopeo"):
        needs.program(program)
    helm = needs.virtual_env("helm", ["helm-python-sdk==0.2.2"]) / "bin/python"
    found = {"DIANA_ENVOY": envoy.path(), "DIANA_HELM_PYTHON": helm}
    # Examples run it.
    yield step("make", "cli")
    yield tests(python_with_yaml(), "-m", "unittest", "discover", "-s", "tests/install", "-v", **found)


def docs():
    """The book with the playground, which is tested in a browser together with the report of a replay. Links are tested
    with the tools."""
    chromium = needs.program("chromium")
    needs.program("npm")
    book.mdbook()
    yield step(sys.executable, "tools/book.py")
    yield step("make", "cli")
    command = ROOT / "target/release/diana"
    places = {"DIANA_PLAYGROUND": playground.MADE / "index.html", "DIANA_PACKAGES": playground.WORK, "DIANA_CHROMIUM": chromium, "DIANA_COMMAND": command}
    yield tests("node", "--test", "--test-reporter=tap", "--test-concurrency=1", "tests/playground/", **places)


# Tests with load that print figures: tests/envoy/load/, tests/redis/speed.rs.
LOAD = "load::"
SPEED = "speed::"
# One test at a time, so that tests do not disturb each other's figures.
MEASURED = ["--show-output", "--test-threads=1"]

# The tests in cargo's own target.
COMPILED = ["it", "sim", "redis", "abi", "envoy", "cli"]

# `make test`, in the order in which the stages begin, the longest first. None of them depends on
# the speed of the machine.
GATE = {
    "compile": test_programs,
    "module": module,
    "envoy": real_envoy,
    "lint": lint,
    "sim": sim,
    "redis": redis,
    "abi": abi,
    "native": native,
    "oldest": oldest_envoy,
    "command": command,
}
# Additional stages of `make test-all`.
REST = {
    "rustdoc": rustdoc,
    "wasm": wasm,
    "fuzz": fuzz,
    "cost": cost,
    "istio": istio,
    "docs": docs,
    "install": install,
    "load": load,
}
STAGES = GATE | REST
# Stages that others wait for.
FIRST = {"compile", "module"}
NEED_MODULE = {"envoy", "sim", "abi", "oldest", "cost", "istio", "install", "load"}
# Measurements, which must run alone.
ALONE = {"install", "load"}
