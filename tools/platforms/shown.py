"""Runs a cluster with both control planes, a gateway of each, and Diana on both, until Ctrl-C."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/platforms"))

from laboratory import TOKEN, EnvoyGateway, Istio, Scene, rule  # noqa: E402

import building  # noqa: E402
import local  # noqa: E402
from console import TARGET, relative, say  # noqa: E402

ENTER = TARGET / "platforms/enter"


def main():
    with local.processes() as none:
        scenes = []
        for plane in (EnvoyGateway, Istio):
            say(f"starting a gateway of {plane.NAME}, and Diana")
            scene = Scene(plane)
            scene.helm("install", config=rule(3, "three-a-day"))
            scene.have("three-a-day")
            scenes.append(scene)
        cluster = scenes[0].cluster
        # This process is the first of its namespace of processes; outside, only its parent's children tell its number.
        path = ":".join(str(building.TOOLS / name) for name in ("kubernetes", "helm3"))
        ENTER.write_text(
            f"""#!/bin/sh
# Runs a command beside the cluster of `make cluster`.
pid=$(cat {cluster.folder}/pid)
KUBECONFIG={cluster.kubeconfig} PATH={path}:$PATH exec nsenter --target "$pid" --net --mount --wd=. "$@"
"""
        )
        ENTER.chmod(0o755)
        enter = relative(ENTER)
        say(f"\nThe cluster runs; Ctrl-C stops it. In another terminal:\n\n  {enter} kubectl get pods -A")
        for scene in scenes:
            say(f"""
  # {scene.plane.NAME}, in the namespace {scene.namespace}: the fourth request is refused
  for i in 1 2 3 4; do {enter} curl -i http://{scene.address()}:{scene.plane.PORT}/limited; done
  {enter} curl -i -H 'x-diana-explain: {TOKEN}' http://{scene.address()}:{scene.plane.PORT}/limited
  {enter} helm get values diana -n {scene.namespace} -o yaml""")
        local.wait(lambda: False, none)


if __name__ == "__main__":
    main()
