"""Finds the programs that the tools need: installs them where that is possible, else prints what to install."""

import os
import re
import shutil
import subprocess
import sys

from console import ROOT, TARGET, die, output, relative, run, say

# The packages of Debian and Ubuntu, where their names differ from those of the programs.
DEBIAN = {
    "c++": "g++", "callgrind_control": "valgrind", "cc": "gcc", "etcd": "etcd-server", "go": "golang-go", "node": "nodejs",
    "promtool": "prometheus", "readelf": "binutils", "redis-cli": "redis-tools",
    "aarch64-linux-gnu-gcc": "crossbuild-essential-arm64", "x86_64-linux-gnu-gcc": "crossbuild-essential-amd64",
    "qemu-aarch64": "qemu-user", "qemu-x86_64": "qemu-user",
}  # fmt: skip


def program(name):
    """The path of a program, installed from its Debian package if it is missing."""
    if not shutil.which(name):
        debian(DEBIAN.get(name, name), f"`{name}` is missing")
    return shutil.which(name) or die(f"`{name}` is still missing after its package was installed")


def debian(package, why):
    """Installs a Debian package as root, else prints which one is missing."""
    remedy = f"install it: apt-get install {package}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        die(f"{why}; {remedy}")
    say(f"{why}; installing the package {package}")
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
    # Another program may use apt now.
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=300"]
    subprocess.run([*apt, "update"], **quiet)
    if subprocess.run([*apt, "install", "-y", "--no-install-recommends", package], **quiet).returncode != 0:
        die(f"{why}, and apt-get failed; {remedy}")


def cargo():
    return shutil.which("cargo") or die("`cargo` is missing; install Rust 1.88 or later from https://rustup.rs")


def rust(kind, *names):
    """Installs these components or targets of the Rust toolchain, if rustup can. Cargo names what is still missing."""
    cargo()
    output(["rustup", kind, "add", *names])


def cargo_tool(crate, binary, version, *options):
    """The path of a program from crates.io, built once into target/tools."""
    root = TARGET / "tools"
    path = root / "bin" / binary
    if f"{crate} v{version}:" not in output([cargo(), "install", "--list", "--root", root]).splitlines() or not path.is_file():
        say(f"building {crate} {version} into {relative(root)}, once")
        # A tool runs for seconds, and would be optimized for minutes. Without --locked: lock files of crates often hold yanked versions.
        words = [cargo(), "install", crate, "--version", version, *options, "--root", root, "--force", "--debug"]
        run(words, env={**os.environ, "CARGO_PROFILE_DEV_DEBUG": "0"})
    return path


def locked(crate):
    """The version of a crate in Cargo.lock."""
    return re.search(rf'name = "{crate}"\nversion = "(.+?)"', (ROOT / "Cargo.lock").read_text())[1]


def once(folder, wanted, install):
    """Calls `install` unless the folder already has what is wanted."""
    done = folder / "packages.txt"
    if not (done.is_file() and done.read_text() == wanted):
        say(f"installing packages into {relative(folder)}, once")
        install()
        done.write_text(wanted)
    return folder


def virtual_env(name, packages):
    """A Python environment with the packages, target/<name>."""
    folder = TARGET / name

    def install():
        if not output([sys.executable, "-c", "import ensurepip; print('there')"]):
            debian("python3-venv", "Python's `venv` is missing")
        run([sys.executable, "-m", "venv", "--clear", folder])
        run([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages])

    return once(folder, "\n".join(packages) + "\n", install)


def python(name="python", *more):
    """Python with the packages of our tests, and with more in an environment of its own."""
    return virtual_env(name, ["jsonschema==4.26.0", "PyYAML==6.0.3", "editorconfig==0.17.0", *more]) / "bin/python"


def python_with_grpc():
    """Python for programs that serve gRPC."""
    return python("laboratory", "grpcio==1.85.3")


def npm(folder, *words):
    folder.mkdir(parents=True, exist_ok=True)
    run(["npm", *words, "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder])


def npm_package(name, version):
    """The folder of a package from npm."""
    folder = TARGET / f"npm/{name}-{version}"
    return once(folder, version, lambda: npm(folder, "install", f"{name}@{version}")) / "node_modules" / name


def npm_project(folder):
    """Installs the packages of the lock file in the folder."""
    once(folder, (folder / "package-lock.json").read_text(), lambda: npm(folder, "ci"))
