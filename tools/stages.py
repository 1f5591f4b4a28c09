"""The stages of `make test`. Each makes sure that what it needs is there, and yields its steps."""

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
    """A command, with the environment variables it needs."""

    command: list
    variables: dict = {}
    # Whether it has failed if it runs no test.
    has_tests: bool = False


def step(*words, **variables):
    return Step(list(words), variables)


def tests(*words, **variables):
    return Step(list(words), variables, has_tests=True)


def test_programs():
    """All tests at once, so that stages that run side by side do not wait for each other's compiler."""
    needs.cargo()
    yield step(*TEST, "--no-run", *(word for name in COMPILED for word in ("--test", name)))


def lint():
    needs.rust_component("rustfmt", "fmt")
    needs.rust_component("clippy", "clippy")
    needs.rust_target("wasm32-wasip1")
    needs.rust_target("wasm32-unknown-unknown")
    yield step("cargo", "fmt", "--check")
    yield step("cargo", "fmt", "--check", "--manifest-path", "tests/fuzz/Cargo.toml")
    yield step("cargo", "clippy", "--workspace", "--all-targets", *DENY)
    # The adapter on the target that is shipped.
    yield step("cargo", "clippy", "--package", "diana", "--target", "wasm32-wasip1", *DENY)
    yield step("cargo", "clippy", "--test", "wasm", "--target", "wasm32-unknown-unknown", *DENY)
    yield step("cargo", "doc", "--workspace", "--no-deps", RUSTDOCFLAGS="-D warnings")


def native():
    needs.cargo()
    yield tests(*TEST, "--no-fail-fast", "--test", "it", "--test", "simulation")
    yield tests(sys.executable, "-m", "unittest", "discover", "-s", "tools", "-v")


def command():
    """The command `diana`, as it is run."""
    needs.cargo()
    yield tests(*TEST, "--package", "diana-cli", "--test", "cli")


def wasm():
    """The laws again with 32-bit pointers and no clock, in node."""
    needs.program("node")
    needs.rust_target("wasm32-unknown-unknown")
    runner = needs.cargo_tool("wasm-bindgen-cli", "wasm-bindgen-test-runner", needs.locked("wasm-bindgen"))
    command = [*TEST, "--target", "wasm32-unknown-unknown", "--test", "wasm"]
    yield tests(*command, CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER=runner)


def redis():
    """The script that counts for the fleet, in a real Redis."""
    needs.program("redis-server")
    yield tests(*TEST, "--test", "redis")


def fuzz():
    """Each fuzz target for some seconds, from its seeds on."""
    yield tests(sys.executable, "tools/fuzz.py", "--anew", "--seconds", "3")


def module():
    # Without it the module would be another one than is shipped.
    needs.program("node")
    needs.program("npm")
    yield step(sys.executable, "tools/build.py")


def abi():
    """The finished module in wasmi."""
    yield tests(*TEST, "--test", "abi")


# How callers are counted does not depend on Envoy's version, and takes longest: it is tried on the newest. What the host does
# is tried on all: updates, drains, faults of the way to Redis, and that gateways count together by each configuration, with TLS and
# with a password that changes.
COUNTING = [
    "algorithms::",
    "calendar::",
    "flood::",
    *(f"fleet::{part}" for part in ("exact", "in_flight", "operator", "plans", "quotas", "settling", "still", "totals")),
    *(f"scale::{part}" for part in ("faults", "bad", "numbers")),
]


def real_envoy():
    needs.program("curl")
    needs.program("openssl")
    needs.program("etcd")
    needs.program("redis-server")
    for version in (envoy.NEWEST, envoy.OLDEST):
        binary = envoy.path(version)
        # The oldest has no ai_protocol_manager.
        llm = ["llm/sse.yaml"] if version == envoy.OLDEST else ["llm/sse.yaml", "llm/protocol.yaml"]
        for example in ("envoy.yaml", "fleet.yaml", "hot.yaml", "cors.yaml", *(f"redis/{way}.yaml" for way in ("cluster", "shards", "sentinel")), *llm):
            command = [binary, "--mode", "validate", "-c", f"envoy/{example}", "-l", "error"]
            # Any password will do: nobody is asked.
            yield step(*command, DIANA_REDIS_PASSWORD="any")
        skipped = ["models::by_protocol", *COUNTING] if version == envoy.OLDEST else []
        part = ["--", *(word for name in skipped for word in ("--skip", name))] if skipped else []
        yield tests(*TEST, "--test", "envoy", *part, DIANA_ENVOY=binary)


def cost():
    """What a request costs in a real Envoy, in instructions."""
    needs.program("valgrind")
    envoy.path()
    yield step(sys.executable, "benches/cost.py", "--guard")


def python_with_yaml():
    return needs.virtual_env("python", ["jsonschema==4.26.0", "PyYAML==6.0.3", "editorconfig==0.17.0"]) / "bin/python"


def istio():
    python = python_with_yaml()
    yield tests(python, "-m", "unittest", "discover", "-s", "tests/istio", "-v", DIANA_ENVOY=envoy.path())


def install():
    """What operators install and watch: the image through a registry, manifests and chart as control planes hand them to
    Envoy, alerts and dashboard under load, and the console examples of README and book."""
    for program in ("curl", "docker-registry", "prometheus", "promtool", "redis-server", "skopeo"):
        needs.program(program)
    helm = needs.virtual_env("helm", ["helm-python-sdk==0.2.2"]) / "bin/python"
    found = {"DIANA_ENVOY": envoy.path(), "DIANA_HELM_PYTHON": helm}
    # Examples run it.
    yield step("make", "cli")
    yield tests(python_with_yaml(), "-m", "unittest", "discover", "-s", "tests/install", "-v", **found)


def docs():
    """The book, with the playground in it, which is tried in a browser as the report of a replay is; that links lead somewhere is a test of the tools."""
    chromium = needs.program("chromium")
    needs.program("npm")
    book.mdbook()
    yield step(sys.executable, "tools/book.py")
    yield step("make", "cli")
    command = ROOT / "target/release/diana"
    places = {"DIANA_PLAYGROUND": playground.MADE / "index.html", "DIANA_PACKAGES": playground.WORK, "DIANA_CHROMIUM": chromium, "DIANA_COMMAND": command}
    yield tests("node", "--test", "--test-reporter=tap", "--test-concurrency=1", "tests/playground/", **places)


# The tests in cargo's own target.
COMPILED = ["it", "simulation", "redis", "abi", "envoy", "cli"]

# In the order in which they begin, but for those that measure, which come last: the longest first. A new stage is a
# function and a line here.
STAGES = {
    "compile": test_programs,
    "module": module,
    "native": native,
    "lint": lint,
    "command": command,
    "wasm": wasm,
    "redis": redis,
    "fuzz": fuzz,
    "abi": abi,
    "cost": cost,
    "istio": istio,
    "install": install,
    "docs": docs,
    "envoy": real_envoy,
}
# What other stages wait for.
FIRST = {"compile", "module"}
NEED_MODULE = {"abi", "cost", "envoy", "install", "istio"}
# Whose tests judge by the clock: nothing runs beside them.
MEASURING = {"envoy", "install"}
