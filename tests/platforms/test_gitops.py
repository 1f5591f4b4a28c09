"""The chart from a repository: the output of `helm template`, by server-side apply, without a release of Helm."""

import contextlib
import json
import os
import re
import subprocess
import unittest

from laboratory import RELEASE, ROOT, EnvoyGateway, Istio, Scene, output_of, rule, steady
from objects import TYPO

PAGE = ROOT / "docs/guides/gitops.md"


class Gitops:
    plane = kind = None

    def kubectl(self, verb, *words, fails=False, **values):
        """What `kubectl` says of the whole output of `helm template`, with the hooks."""
        manifest = self.scene.helm("template", **values)
        flags = ("--server-side", "--field-manager=gitops", *words)
        return self.scene.cluster.run("kubectl", verb, *flags, "-f", "-", given=manifest, fails=fails)

    def check_unchanged(self, config):
        """Once everything runs, a tool that compares finds nothing to do."""
        scene = self.scene
        scene.wait(lambda: len(scene.ready(**scene.companions())) == len(scene.pods(**scene.companions())) == 2, "both companions are ready")
        self.assertEqual(self.kubectl("diff", config=config), "")

    def check_helms_test(self, config):
        """Its pod runs once, and again after it was deleted."""
        scene, which = self.scene, {"labels": f"{RELEASE},app.kubernetes.io/component=test", "namespace": self.scene.namespace}
        scene.kubectl("delete", "pod", "diana-test")
        self.kubectl("apply", config=config)
        scene.wait(lambda: any(it["status"]["phase"] in ("Succeeded", "Failed") for it in scene.pods(**which)), "the test has ended")
        self.assertEqual([it["status"]["phase"] for it in scene.pods(**which)], ["Succeeded"], scene.log(**which))

    def check_health(self):
        pass

    def test_applied_again_and_again(self):
        self.scene = scene = Scene(self.plane)
        with steady(self, scene):
            for _ in range(2):
                self.kubectl("apply", config=rule(3, "first"))
            scene.have("first")
            self.check_unchanged(rule(3, "first"))
            self.kubectl("apply", config=rule(4, "second"))
            scene.have("second")
            self.assertEqual(scene.admitted(6), 4)
            self.check_unchanged(rule(4, "second"))
            self.check_health()
            self.check_helms_test(rule(4, "second"))
            self.kubectl("apply", values={"rulesText": TYPO})
            scene.wait(lambda: scene.probes_say("/etc/diana/rules.yaml:1:", "burts"), "an event has the mistake and its place")
            self.assertTrue(scene.knows("second"))
            self.kubectl("apply", config=rule(4, "second"))
            self.check_unchanged(rule(4, "second"))
            self.check_helms_test(rule(4, "second"))
            self.assertEqual(scene.admitted(2), 0)
        scene.end()

    def test_a_release_that_is_taken_over(self):
        self.scene = scene = Scene(self.plane, helm=self.helm)
        with steady(self, scene):
            scene.helm("install", config=rule(3, "first"))
            scene.have("first")
            # The same objects are no conflict.
            self.kubectl("apply", config=rule(3, "first"))
            self.check_unchanged(rule(3, "first"))
            self.assertIn('conflict with "helm', self.kubectl("apply", config=rule(4, "second"), fails=True))
            self.kubectl("apply", "--force-conflicts", config=rule(4, "second"))
            scene.have("second")
            scene.kubectl("delete", "secret", "-l", "owner=helm,name=diana")
            self.kubectl("apply", config=rule(4, "third"))
            scene.have("third")
            self.check_unchanged(rule(4, "third"))
            scene.kubectl("delete", self.kind, "-l", RELEASE)
            scene.wait(lambda: not scene.explained(), "the filter is gone")
            self.kubectl("apply", config=rule(4, "third"))
            scene.have("third")
        scene.end()


class OnIstio(Gitops, unittest.TestCase):
    plane, helm, kind = Istio, "helm", "envoyfilter"


class OnEnvoyGateway(Gitops, unittest.TestCase):
    plane, helm, kind = EnvoyGateway, "helm4", "envoypatchpolicy"

    def check_health(self):
        """What Argo CD makes of the policy, by the program of the page. A gateway with usual names is healthy."""
        policy = json.loads(self.scene.kubectl("get", "envoypatchpolicy", "diana-public", "-o", "json"))
        [it] = policy["status"]["ancestors"]

        def condition(kind, status, reason):
            return {"status": {"ancestors": [{"conditions": [{"type": kind, "status": status, "reason": reason}]}]}}

        with argo_cd(PAGE, "EnvoyPatchPolicy") as health:
            self.assertEqual(health(policy), "Healthy", it)
            self.assertEqual(health(condition("Accepted", "False", "Disabled")), "Degraded")
            self.assertEqual(health(condition("Programmed", "False", "Invalid")), "Degraded")
            self.assertEqual(health({}), "Progressing")


@contextlib.contextmanager
def argo_cd(page, kind):
    """Runs the program of a page for a kind of objects, as Argo CD does. Redis has the same language."""
    [program] = re.findall(kind + r": \|\n((?:  .*\n)+)", page.read_text())
    script = f"local obj = cjson.decode(ARGV[1])\nlocal function judge()\n{program}end\nreturn judge().status"
    folder = os.environ["DIANA_CLUSTER"]
    place = f"{folder}/argo-cd.sock"
    redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", place, "--save", ""], cwd=folder, stdout=subprocess.DEVNULL)
    try:
        while not os.path.exists(place) and redis.poll() is None:
            pass
        yield lambda it: output_of("redis-cli", "-s", place, "eval", script, "0", json.dumps(it)).strip().strip('"')
    finally:
        redis.kill()
        redis.wait()


if __name__ == "__main__":
    unittest.main()
