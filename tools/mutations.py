"""Tries small mistakes: each must make the test fail that its entry of tests/promises/mutations.toml names.

Mistakes in the script are made one by one, and tests/redis must find them. Arguments are words of the laws or files to try.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib

import needs
from console import ROOT, TARGET, die, end, say

LIST = ROOT / "tests/promises/mutations.toml"
COPY = TARGET / "mutations/tree"
# Cargo takes equal paths in both trees for the same package.
BUILD = TARGET / "mutations/target"
# The depth of worlds in the gate, and the most seconds of a test.
GATE = 3
PATIENCE = 1800
# All mistakes are compiled at once, and this variable chooses one of them.
SWITCH = """
/// The mistakes of `tests/promises/mutations.toml`.
#[doc(hidden)]
pub mod mutation {
    /// Returns true if this mistake is made.
    pub fn is(number: usize) -> bool {
        static MADE: std::sync::LazyLock<Option<usize>> =
            std::sync::LazyLock::new(|| std::env::var("DIANA_MUTATION").ok()?.parse().ok());
        *MADE == Some(number)
    }
}
"""


def main():
    needs.cargo()
    mutations = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutation"]
    copy()
    for number, mutation in enumerate(mutations):
        if not is_of_script(mutation):
            insert(number, **mutation)
    policy = COPY / "src/policy/lib.rs"
    policy.write_text(policy.read_text(encoding="utf-8") + SWITCH, encoding="utf-8")
    began = time.monotonic()
    run("--no-run") or die("the mistakes do not compile, see above")
    (run() and run("small", test="redis") and run("scopes", test="redis") and run("orders", test="dynamic")) or die("tests fail without a mistake, see above")
    words = sys.argv[1:] or [""]
    tried = [it for it in enumerate(mutations) if any(word in it[1]["law"] + it[1]["file"] for word in words)]
    missed = [mutation for number, mutation in tried if not is_found(number, mutation)]
    say(f"{len(tried) - len(missed)} of {len(tried)} mistakes were found in {time.monotonic() - began:.0f} s")
    if missed:
        die("not found: " + "; ".join(f"{mutation['law']} ({mutation['file']})" for mutation in missed))


def copy():
    """A copy of the tree, so that no mistake stays in it. Its files are newer than what was built from an earlier one."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if name.split("/")[0] not in ("docs", "charts", "watch") and (ROOT / name).is_file():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, COPY / name)


def is_of_script(mutation):
    return mutation["file"].endswith(".lua")


def insert(number, law, file, old, new, by, **more):
    """Makes a mistake that is chosen when the program runs."""
    switch = "crate" if file.startswith("src/policy/") else "diana_policy"
    chosen = f"(if {switch}::mutation::is({number}) {{ {new} }} else {{ {old} }})"
    replace(chosen, law, file, old, by, **more)


def replace(chosen, law, file, old, by, **more):
    """Replaces an expression in a file of the copy. Returns the text before."""
    path, text = COPY / file, (COPY / file).read_text(encoding="utf-8")
    around = more.get("in", old)
    if around not in text:
        # An earlier entry makes another mistake of the same expression.
        around = f"else {{ {old} }}"
    if text.count(around) != 1 or around.count(old) != 1:
        die(f"{file} has no single `{old}` for “{law}” ({by})")
    path.write_text(text.replace(around, around.replace(old, chosen)), encoding="utf-8")
    return text


def is_found(number, mutation):
    began = time.monotonic()
    options = {"number": number, "depth": mutation.get("depth", GATE)}
    if is_of_script(mutation):
        before = replace(mutation["new"], **mutation)
        is_found = not run(mutation["by"], test="redis", **options)
        (COPY / mutation["file"]).write_text(before, encoding="utf-8")
    else:
        is_found = not run(mutation["by"], test=mutation.get("test", "promises"), **options)
    say(f"{'found' if is_found else 'MISSED'} by {mutation['by']} in {time.monotonic() - began:.0f} s: {mutation['law']}")
    return is_found


def run(*words, number=None, depth=GATE, test="promises"):
    """Runs tests in the copy. Returns true if they pass; with a mistake they may never end."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(BUILD), "RUST_BACKTRACE": "0"}
    environment |= {"DIANA_MUTATION": str(number), "DIANA_DEPTH": str(depth)}
    command = ["cargo", "test", "--quiet", "--test", test, *words]
    options = {"cwd": COPY, "env": environment, "text": True, "start_new_session": True}
    tests = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    try:
        told, _ = tests.communicate(timeout=None if number is None else PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(tests.pid, signal.SIGKILL)
        told, _ = tests.communicate()
    if tests.returncode != 0 and number is None:
        say(end(told))
    return tests.returncode == 0


main()
