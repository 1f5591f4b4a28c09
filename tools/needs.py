"""Ensures that a program is available: installs it if possible, otherwise prints how to install it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from console import ROOT, TARGET, die, output, relative, run, say

# Programs in Debian and Ubuntu, with their packages.
DEBIAN = {
    "c++": "g++",
    "callgrind_control": "valgrind",
    "cc": "gcc",
    "chromium": "chromium",
    "curl": "curl",
    "docker-registry": "docker-registry",
    "etcd": "etcd-server",
    "node": "nodejs",
    "npm": "npm",
    "openssl": "openssl",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "redis-cli": "redis-tools",
    "redis-server": "redis-server",
    "skopeo": "skopeo",
    "valgrind": "valgrind",
}


def program(name):
    """The path of a program, installed from its Debian package if necessary."""
    if not shutil.which(name):
        debian(DEBIAN[name], f"`{name}` is missing")
    return shutil.which(name) or die(f"`{name}` is still missing after its package was installed")


def debian(package, why):
    """Installs a Debian package if permitted, otherwise names the missing one."""
    remedy = f"install it: apt-get install {package}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        die(f"{why}; {remedy}")
    say(f"{why}; installing the package {package}")
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "stdout": subprocess.DEVNULL}
    subprocess.run(["apt-get", "update"], **quiet)
    if subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", package], **quiet).returncode != 0:
        die(f"{why}, and apt-get could not help; {remedy}")


def cargo():
    return shutil.which("cargo") or die("`cargo` is missing; install Rust 1.88 or later from https://rustup.rs")


def rust_target(name):
    """Ensures that Rust can compile for the target `name`."""
    cargo()
    if (Path(output(["rustc", "--print", "sysroot"])) / "lib/rustlib" / name / "lib").is_dir():
        return
    if not shutil.which("rustup"):
        die(f"Rust's target {name} is missing, and so is `rustup` that could add it; see https://rustup.rs")
    run(["rustup", "target", "add", name])


def rust_component(name, command):
    """Ensures that a component of the Rust toolchain, such as clippy, is installed."""
    if output(["cargo", command, "--version"]):
        return
    if not shutil.which("rustup"):
        die(f"`cargo {command}` is missing, and so is `rustup` that could add it; see https://rustup.rs")
    run(["rustup", "component", "add", name])


def cargo_tool(crate, binary, version, features=None):
    """A program from crates.io, built once into target/tools. `features` replace its default ones."""
    path = TARGET / "tools/bin" / binary
    # Not every program has an option for its version.
    built = output([cargo(), "install", "--list", "--root", TARGET / "tools"]).splitlines()
    if f"{crate} v{version}:" not in built or not path.is_file():
        say(f"building {crate} {version} into {relative(TARGET / 'tools')}, once")
        # Without --locked: published lock files often contain yanked versions.
        chosen = [] if features is None else ["--no-default-features", "--features", ",".join(features)]
        # A tool runs for seconds, but optimizing it takes minutes.
        quickly = {**os.environ, "CARGO_PROFILE_DEV_DEBUG": "0"}
        words = [cargo(), "install", crate, "--version", version, *chosen, "--root", TARGET / "tools", "--force", "--debug"]
        run(words, env=quickly)
    return path


def locked(crate):
    """The version of a crate in Cargo.lock."""
    return re.search(rf'name = "{crate}"\nversion = "(.+?)"', (ROOT / "Cargo.lock").read_text())[1]


def virtual_env(name, packages):
    """A Python environment under target/ with these packages, created once."""
    folder = TARGET / name
    done, wanted = folder / "packages.txt", "\n".join(packages) + "\n"
    if not (done.is_file() and done.read_text() == wanted):
        say(f"installing {', '.join(packages)} into {relative(folder)}, once")
        make_env = [sys.executable, "-m", "venv", "--clear", folder]
        if not output([sys.executable, "-c", "import ensurepip; print('there')"]):
            debian("python3-venv", "Python's `venv` is missing")
        run(make_env)
        run([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages])
        done.write_text(wanted)
    return folder


QUIETLY = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]


def npm_package(name, version):
    """The folder of an npm package, installed once under target/."""
    folder = TARGET / f"npm/{name}-{version}"
    package = folder / "node_modules" / name
    if not (folder / "done").is_file():
        say(f"installing {name} {version} into {relative(folder)}, once")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        run([shutil.which("npm"), "install", *QUIETLY, "--prefix", folder, f"{name}@{version}"])
        (folder / "done").touch()
    return package


def npm_project(source, folder):
    """Installs a project's own list of packages into a folder, once for each list."""
    lock = (source / "package-lock.json").read_text()
    done = folder / "done"
    if done.is_file() and done.read_text() == lock:
        return
    say(f"installing the packages of {relative(source)} into {relative(folder)}, once")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, folder)
    run([shutil.which("npm"), "ci", *QUIETLY, "--prefix", folder])
    done.write_text(lock)
