"""Runs the tests of tests/platforms in a cluster of its own, or leaves such a cluster running: `main.py test [VERSION…] [TEST…]`,
`main.py cluster [VERSION]`. A version is `newest` or `oldest`: which control planes run. Tests are named as unittest takes them, or `smoke`. Each
control plane has a cluster of its own, and two run side by side: most of the time they wait."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import building  # noqa: E402
import local  # noqa: E402
import needs  # noqa: E402
from console import ROOT, TARGET, die, end, run, say  # noqa: E402

# A process with a network, mounts and processes of its own. Everything in it ends with it, and it ends with this program, by any signal.
APART = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
TESTS = ROOT / "tests/platforms"
# The test classes of each control plane.
PLANES = {"istio": "OnIstio", "envoy-gateway": "OnEnvoyGateway"}
AT_ONCE = 2
# The tests that a mistake in the chart, in a module or in the companion would break first.
SMOKE = [
    "test_life.{}.test_from_the_installation_to_the_uninstallation",
    "test_mistakes.{}.test_a_typo_by_helm",
    "test_fleet.{}.test_two_pods_share_a_global_limit",
    "test_native.{}.test_the_chart",
    "test_manifests.{}.test_all_are_accepted_by_the_api_server",
]
PROGRAMS = {"ip": "iproute2", "nsenter": "util-linux", "setpriv": "util-linux", "openssl": "openssl", "node": "nodejs", "npm": "npm"}
PROGRAMS |= {"redis-server": "redis-server", "redis-cli": "redis-tools", "iptables": "iptables", "busybox": "busybox-static"}


def prepare(versions):
    """Builds and finds all programs. After it, nothing needs another machine."""
    building.check_go()
    if os.geteuid() != 0:
        die("only root can make network namespaces, in which the cluster runs; run it as root")
    if subprocess.run([*APART, "true"]).returncode != 0:
        die("this machine lets no process have namespaces of its own: `unshare` failed, see above")
    for name, package in PROGRAMS.items():
        if not shutil.which(name):
            needs.debian(package, f"`{name}` is missing")
    building.all_programs(versions)
    needs.python_with_grpc()
    run([sys.executable, "tools/build.py"])
    run([sys.executable, "tools/native.py"])
    # Here, since clusters side by side would write it at once.
    run([sys.executable, "tools/image.py"], stdout=subprocess.DEVNULL)
    # As `cargo test` builds it: a release would be optimized for minutes.
    run(["cargo", "build", "--quiet", "--profile", "test", "--package", "diana-cli", "--features", "policies"])


def start(version, script, *words, **options):
    """Starts a Python program beside a new cluster. Returns it, and the folder of the cluster."""
    (TARGET / "platforms").mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{version}-", dir=TARGET / "platforms"))
    folder.chmod(0o755)
    # HTTP proxies of this machine cannot reach the cluster.
    variables = {**os.environ, "NO_PROXY": "*", "no_proxy": "*", "DIANA_PLATFORMS": version, "DIANA_CLUSTER": str(folder)}
    command = [str(word) for word in (*APART, needs.python_with_grpc(), script, *words)]
    return subprocess.Popen(command, env=variables, cwd=ROOT, **options), folder


def test(version, plane, names):
    """The numbers of tests that passed and failed in a cluster with one control plane, and why they failed."""
    # A full name of a test is taken whatever `-k` says.
    chosen = [name for name in names if not any(it in name.split(".") for key, it in PLANES.items() if key != plane)]
    if names and not chosen:
        return 0, 0, ""
    words = chosen or ["discover", "-s", TESTS]
    process, folder = start(version, TESTS / "run.py", *words, "-k", PLANES[plane], stderr=subprocess.PIPE, text=True)
    began, text = time.monotonic(), ""
    for line in process.stderr:
        print(f"{version} {plane}: {line}", end="", file=sys.stderr, flush=True)
        text += line
    ran = sum(map(int, re.findall(r"^Ran (\d+) test", text, re.M)))
    failed = sum(map(int, re.findall(r"(?:failures|errors)=(\d+)", text)))
    if process.wait() != 0 and not failed:
        failed = 1
    say(f"{version} {plane}: {max(0, ran - failed)} passed, {failed} failed, {(time.monotonic() - began) / 60:.0f} min")
    if not failed:
        shutil.rmtree(folder)
        return ran, 0, ""
    # From the first of unittest's reports on.
    reason = "".join(text.partition("=" * 70)[1:]) or end(text)
    return max(0, ran - failed), failed, f"=== {version} {plane} has failed; all logs are in {folder}/logs\n{reason}"


def show(version):
    process, folder = start(version, ROOT / "tools/platforms/shown.py")
    try:
        # `unshare` has one child, the first process of the new namespaces. Programs of another terminal enter by its number.
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        found = []
        while not found and process.poll() is None:
            time.sleep(0.1)
            found = children.read_text().split()
        (folder / "pid").write_text("".join(found[:1]))
        if process.wait() != 0:
            die("the cluster has ended, see above")
    finally:
        local.kill([process])
        (folder.parent / "enter").unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def main(what, *words):
    versions = [word for word in words if word in building.VERSIONS]
    if what == "cluster":
        with local.processes():
            prepare(versions or ["newest"])
            show(*(versions or ["newest"]))
        return
    try:
        prepare(versions or building.VERSIONS)
    except SystemExit as missing:
        say(f"{missing}\n0 passed, 1 failed")
        sys.exit(1)
    names = [word for word in words if word not in versions]
    if names == ["smoke"]:
        names = [name.format(its) for name in SMOKE for its in PLANES.values()]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda job: test(*job, names), itertools.product(versions or building.VERSIONS, PLANES)))
    passed, failed = (sum(result[part] for result in results) for part in (0, 1))
    # Repeated, since the other cluster prints after it.
    say("\n".join(reason for *_, reason in results if reason))
    say(f"{passed} passed, {failed or int(not passed)} failed")
    sys.exit(0 if passed and not failed else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
