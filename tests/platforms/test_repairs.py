"""What operators do by hand or half-way, and what mends it by the pages. Gateways go on serving."""

import json
import re
import ssl
import subprocess
import unittest

from laboratory import CHART, RELEASE, Authority, EnvoyGateway, Istio, Shared, rule
from objects import TYPO



class Repairs(Shared):
    def interrupt(self, state, verb, *words, name="diana"):
        """Kills Helm while it waits for what does not happen."""
        scene = self.scene
        command = scene.cluster.command(self.helm, verb, name, *words, "-n", scene.namespace, "--wait", "--timeout=10m")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}

        def interrupted(helm):
            if helm.poll() is not None:
                self.fail(helm.stdout.read())
            found = json.loads(scene.cluster.run("helm", "list", "-a", "-o", "json", "-n", scene.namespace))
            return state in {it["status"] for it in found}

        with subprocess.Popen([str(word) for word in command], **pipes) as helm:
            # Pods that run have the document of the upgrade at once.
            helm.stdin.write(scene.values(rule(3, self.rule), {"companion": {"image": "lab/nothing"}}))
            helm.stdin.close()
            scene.wait(lambda: interrupted(helm), f"the release is {state}")
            helm.kill()

    def test_an_upgrade_that_is_interrupted(self):
        scene = self.scene
        with self.steady():
            self.interrupt("pending-upgrade", "upgrade", CHART, "--values=-")
            self.assertIn("another operation", scene.helm("upgrade", config=rule(9), fails=True))
            self.assertTrue(scene.knows(self.rule))
            scene.helm("rollback", "--wait", "--timeout=10m")
            self.assertTrue(scene.knows(self.rule))
            scene.install()

    def test_an_installation_that_is_interrupted(self):
        scene = self.scene
        with self.steady():
            self.interrupt("pending-install", "install", CHART, "--values=-", name="other")
            self.assertIn("another operation", scene.helm("upgrade", name="other", fails=True))
            scene.helm("uninstall", "--wait", "--timeout=10m", name="other")
            self.assertTrue(scene.knows(self.rule))

    def test_an_uninstallation_that_is_killed(self):
        scene = self.scene

        def hold(finalizers):
            patch = json.dumps({"metadata": {"finalizers": finalizers}})
            scene.kubectl("patch", "configmap", "diana-companion", "--type=merge", "--patch", patch)

        with self.steady():
            hold(["lab.example.com/held"])
            self.interrupt("uninstalling", "uninstall")
            hold(None)
            scene.helm("uninstall", "--wait", "--timeout=10m")
            scene.wait(lambda: not scene.explained(), "the filter is gone")
            self.assertEqual(scene.admitted(5), 5)

    def test_helm_waits_for_rules_with_a_typo(self):
        scene = self.scene
        with self.steady():
            # It would wait in vain for any time.
            told = scene.helm("upgrade", "--wait", "--timeout=20s", values={"rulesText": TYPO}, fails=True)
            self.assertIn("context deadline exceeded", told)
            scene.wait(lambda: scene.says("burts", **scene.companions()), "a companion names the mistake")
            self.check_test_fails("the companion serves another document")
            scene.helm("rollback", "--wait", "--timeout=10m")
            self.assertTrue(scene.knows(self.rule))
            scene.helm("test")

    def test_an_upgrade_after_changes_by_kubectl(self):
        scene = self.scene
        with self.steady():
            scene.kubectl("patch", "configmap", "diana-companion", "--type=merge", "--patch", json.dumps({"data": {"rules.yaml": TYPO}}))
            scene.wait(lambda: scene.says("burts", **scene.companions()), "a companion names the mistake")
            if self.helm == "helm4":
                told = [scene.helm(verb, config=rule(3, "other"), fails=True) for verb in ("upgrade", "rollback")]
                self.assertTrue(all("conflict with" in it for it in told), told)
            # Helm 4 would find the same conflict again if the fields belonged to kubectl.
            scene.repair()
            scene.helm("upgrade", "--wait", "--timeout=10m", config=rule(3, "other"))
            scene.have("other")

    def test_a_filter_that_kubectl_changed(self):
        scene = self.scene
        with self.steady():
            [name] = scene.kubectl("get", self.kind, "-l", RELEASE, "-o", "name").split()
            scene.kubectl("patch", name, "--type=json", "--patch", json.dumps([{"op": "replace", **self.change}]))
            scene.wait(lambda: not scene.explained(), "the filter is gone")
            # The listener of before drains, with all its metrics.
            self.check_test_fails("no Diana")
            told = scene.helm("upgrade", config=rule(3, self.rule), fails=True)
            self.assertEqual("conflict with" in told, self.helm == "helm4")
            self.assertFalse(scene.explained(), "Helm has not repaired it")
            scene.helm("upgrade", self.force, config=rule(3, self.rule))
            scene.have(self.rule)
            scene.helm("test")

    def test_objects_that_kubectl_deleted(self):
        scene = self.scene
        with self.steady():
            for verb, more in (("upgrade", {"config": rule(3, self.rule)}), ("rollback", {})):
                scene.kubectl("delete", f"{self.kind},deployment,service,configmap", "-l", RELEASE)
                scene.wait(lambda: not scene.explained(), "the filter is gone")
                scene.helm(verb, "--wait", "--timeout=10m", **more)
                scene.have(self.rule)
            self.assertEqual(scene.admitted(5), 3)

    def test_companions_that_hang_later(self):
        scene = self.scene
        with self.steady():
            for pod in scene.ready(**scene.companions()):
                scene.stop(pod)
            scene.wait(lambda: not scene.ready(**scene.companions()), "no companion is ready")
            self.assertEqual(scene.admitted(5), 3)
            scene.wait(lambda: len(scene.ready(**scene.companions())) == 2, "their liveness probes have replaced them")
            self.assertTrue(scene.knows(self.rule))

    def test_tls_of_the_companion(self):
        scene, host, authority = self.scene, f"diana-companion.{self.scene.namespace}.svc", Authority()
        with self.steady():
            scene.lay_certificate(authority.issue(host))
            name = scene.install(values={"companion": {"tls": {"secret": "certificate", "ca": authority.text}}})
            scene.helm("test")
            scene.restart()
            scene.have(name)
            other = authority.issue("other.example.com")
            scene.lay_certificate(other)
            places = [(it["status"]["podIP"], 8080) for it in scene.ready(**scene.companions())]
            scene.wait(lambda: all(ssl.get_server_certificate(place) == other[0] for place in places), "it serves a renewed certificate")
            old, new = scene.ready()[0], scene.restart(ready=False)
            scene.wait(lambda: scene.warms(new), "a new gateway does not trust it")
            self.assertEqual([it["metadata"]["name"] for it in scene.ready()], [old["metadata"]["name"]])
            self.assertEqual(scene.admitted(5), 3)
            scene.lay_certificate(authority.issue(host))
            scene.wait(lambda: [it["metadata"]["name"] for it in scene.ready()] == [new["metadata"]["name"]], "the new gateway serves")
            scene.have(name)

    def test_a_restricted_namespace(self):
        scene, label = self.scene, "pod-security.kubernetes.io/enforce"
        with self.steady():
            scene.kubectl("label", "namespace", scene.namespace, f"{label}=restricted")
            values = {"companion": {"resources": {"limits": {"memory": "64Mi"}}}}
            scene.helm("upgrade", "--wait", "--timeout=10m", config=rule(3, self.rule), values=values)
            scene.helm("test")
            scene.kubectl("label", "namespace", scene.namespace, f"{label}-")

    def test_a_gateway_that_does_not_exist(self):
        scene = self.scene
        with self.steady():
            scene.helm("upgrade", config=rule(3, self.rule), values=self.nothing)
            scene.wait(lambda: not scene.explained(), "the filter is gone")
            self.assertEqual(scene.admitted(5), 5)
            self.check_test_fails("no pod of a gateway has the labels")


class OnIstio(Repairs, unittest.TestCase):
    plane, kind, force = Istio, "envoyfilter", "--force"
    change = {"path": "/spec/configPatches/1/match/context", "value": "SIDECAR_INBOUND"}
    nothing = {"istio": {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "nothing"}]}}

    def test_a_patch_that_kubectl_turned_into_a_removal(self):
        """It removes the filter that it looks for, the router. Envoy refuses a listener without one, and keeps that of before."""
        scene = self.scene
        with self.steady():
            [name] = scene.kubectl("get", self.kind, "-l", RELEASE, "-o", "name").split()
            change = {"op": "replace", "path": "/spec/configPatches/1/patch/operation", "value": "REMOVE"}
            scene.kubectl("patch", name, "--type=json", "--patch", json.dumps([change]))
            # The metric of the alert.
            refused = re.compile(r"^envoy_listener_manager_lds_update_rejected\{.*\} [1-9]", re.M)
            scene.wait(lambda: refused.search(scene.admin("/stats/prometheus")), "Envoy has refused the listener")
            self.assertEqual(scene.admitted(5), 3)
            scene.helm("upgrade", self.force, config=rule(3, "other"))
            scene.have("other")
            scene.helm("test")


class OnEnvoyGateway(Repairs, unittest.TestCase):
    plane, helm, kind, force = EnvoyGateway, "helm4", "envoypatchpolicy", "--force-conflicts"
    change = {"path": "/spec/jsonPatches/1/name", "value": "another"}
    nothing = {"envoyGateway": {"gateways": [{"name": "nothing", "listeners": ["http"]}]}}

    def test_listeners_that_do_not_exist(self):
        scene = self.scene
        with self.steady():
            gateways = [{"name": "public", "listeners": ["nothing"]}]
            scene.helm("upgrade", config=rule(3, self.rule), values={"envoyGateway": {"gateways": gateways}})
            scene.wait(lambda: not scene.explained(), "the filter is gone")
            self.check_test_fails("no document, or no Diana")

    def test_a_listener_that_is_removed(self):
        scene = self.scene

        def have(*names):
            spec = {"listeners": [{"name": name, "port": port, "protocol": "HTTP"} for name, port in (("http", 80), *names)]}
            scene.kubectl("patch", "gateway", "public", "--type=merge", "--patch", json.dumps({"spec": spec}))

        with self.steady():
            have(("more", 8081))
            gateways = [{"name": "public", "listeners": ["more", "http"]}]
            scene.helm("upgrade", config=rule(3, self.rule), values={"envoyGateway": {"gateways": gateways}})
            scene.wait(lambda: (it := scene.get("/limited", port=8081)) and it.refused, "limits hold on it")
            have()
            scene.wait(lambda: not scene.get("/limited", port=8081), "the listener is gone")
            scene.restart()
            scene.have(self.rule)
            self.assertEqual(scene.admitted(5), 3)

    def test_a_release_in_another_namespace(self):
        scene = self.scene
        other = f"{scene.namespace}-other"
        scene.kubectl("create", "namespace", other)
        with self.steady():
            scene.helm("uninstall", "--wait", "--timeout=10m")
            gateways = [{"name": "public", "namespace": "NAMESPACE", "listeners": ["http"]}]
            values = {"envoyGateway": {"gateways": gateways}}
            scene.helm("install", "-n", other, "--wait", "--timeout=10m", config=rule(3), values=values)
            scene.have("all")
            self.assertEqual(scene.admitted(5), 3)
            scene.helm("test", "-n", other)
            scene.helm("uninstall", "-n", other, "--wait", "--timeout=10m")
            scene.wait(lambda: not scene.explained(), "the filter is gone")
        scene.kubectl("delete", "namespace", other, "--timeout=10m")


if __name__ == "__main__":
    unittest.main()
