"""The stages of `make test`: each yields commands, with the environment variables they need."""

import re
import sys

import envoy
import needs
from console import ROOT

PURE = "--no-default-features"
DENY = ["--", "-D", "warnings"]


def lint():
    needs.rust_component("rustfmt", "fmt")
    needs.rust_component("clippy", "clippy")
    needs.rust_target("wasm32-wasip1")
    needs.rust_target("wasm32-unknown-unknown")
    yield ["cargo", "fmt", "--check"], {}
    yield ["cargo", "clippy", "--all-targets", *DENY], {}
    # The core must compile without the host, and the adapter on the target that is shipped.
    yield ["cargo", "clippy", "--lib", PURE, *DENY], {}
    yield ["cargo", "clippy", "--lib", "--target", "wasm32-wasip1", *DENY], {}
    yield ["cargo", "clippy", "--test", "wasm", "--target", "wasm32-unknown-unknown", PURE, *DENY], {}
    yield ["cargo", "doc", "--no-deps"], {"RUSTDOCFLAGS": "-D warnings"}


def native():
    needs.cargo()
    yield ["cargo", "test", PURE, "--no-fail-fast", "--lib", "--test", "it", "--test", "simulation"], {}
    yield [sys.executable, "-m", "unittest", "discover", "-s", "tools", "-v"], {}


def wasm():
    """The laws again with 32-bit pointers and no clock, in node."""
    needs.program("node")
    needs.rust_target("wasm32-unknown-unknown")
    runner = needs.cargo_tool("wasm-bindgen-cli", "wasm-bindgen-test-runner", locked("wasm-bindgen"))
    command = ["cargo", "test", PURE, "--target", "wasm32-unknown-unknown", "--test", "wasm"]
    yield command, {"CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER": runner}


def redis():
    """The script that counts for the fleet, in a real Redis."""
    needs.program("redis-server")
    yield ["cargo", "test", PURE, "--test", "redis"], {}


def module():
    yield [sys.executable, "tools/build.py"], {}


def abi():
    """The finished module in wasmi."""
    yield ["cargo", "test", PURE, "--test", "abi"], {}


def real_envoy():
    needs.program("curl")
    needs.program("openssl")
    needs.program("etcd")
    needs.program("redis-server")
    for version in (envoy.NEWEST, envoy.OLDEST):
        binary = envoy.path(version)
        for example in ("envoy.yaml", "fleet.yaml", "hot.yaml"):
            command = [binary, "--mode", "validate", "-c", f"envoy/{example}", "-l", "error"]
            # Any password will do: nobody is asked.
            yield command, {"DIANA_REDIS_PASSWORD": "any"}
        # How callers are counted does not depend on the version, and takes longest.
        part = [] if version == envoy.NEWEST else ["--", "--skip", "algorithms::", "--skip", "flood::"]
        yield ["cargo", "test", PURE, "--test", "envoy", *part], {"DIANA_ENVOY": binary}


def istio():
    python = needs.virtual_env("python", ["jsonschema==4.26.0", "PyYAML==6.0.3"]) / "bin/python"
    yield [python, "-m", "unittest", "discover", "-s", "tests/istio", "-v"], {"DIANA_ENVOY": envoy.path()}


def locked(crate):
    """The version of a crate in Cargo.lock."""
    text = (ROOT / "Cargo.lock").read_text()
    return re.search(rf'name = "{crate}"\nversion = "(.+?)"', text)[1]


STAGES = {
    "lint": lint,
    "native": native,
    "wasm": wasm,
    "redis": redis,
    "module": module,
    "abi": abi,
    "envoy": real_envoy,
    "istio": istio,
}
NEED_MODULE = {"abi", "envoy", "istio"}
# Whose tests judge by the clock.
REAL_TIME = {"envoy"}
