"""The files of watch/ for Prometheus and Grafana: alerts with promtool, and every query of the dashboard under load."""

import contextlib
import json
import os
import re
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request
from pathlib import Path

import yaml
from servers import ROOT, free_port, wait_for

sys.path.insert(0, str(ROOT / "tools"))
import watch  # noqa: E402

DASHBOARD = json.loads((ROOT / "watch/dashboard.json").read_text())
RULES = yaml.safe_load((ROOT / "watch/rules.yaml").read_text())


def panels():
    """Every panel of the dashboard, also those of folded rows."""
    for panel in DASHBOARD["panels"]:
        yield from panel["panels"] if panel["type"] == "row" else [panel]


def queries():
    """Every query of the dashboard, for all namespaces."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$namespace", ".*")


def labels(target):
    """The labels that the name of a series in the legend needs."""
    return re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])


def ask(port, path, **parameters):
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]
    return None


@contextlib.contextmanager
def running():
    """Starts the processes of `make watch` on free ports. Yields the ports."""
    ports, processes = {name: free_port() for name in watch.PORTS}, []
    try:
        watch.start(processes, os.environ["DIANA_ENVOY"], ports)
        wait_for(lambda: watch.local.ready(ports["admin"]), "Envoy is ready")
        ended = watch.load(ports["gateway"])
        try:
            yield ports
        finally:
            ended.set()
    finally:
        watch.local.kill(processes)


def browse(port, *options):
    """What a browser without a window makes of the page, after the first drawing of all panels."""
    page = f"http://127.0.0.1:{port}/?seconds=60"
    browser = ["chromium", "--headless", "--no-sandbox", "--window-size=1300,760", "--virtual-time-budget=4000", *options, page]
    return subprocess.run(browser, cwd=ROOT, capture_output=True, text=True, check=True).stdout


class Rules(unittest.TestCase):
    def test_promtool_takes_them_and_each_alert_fires_when_it_should(self):
        for command in (["check", "rules", "watch/rules.yaml"], ["test", "rules", "watch/rules.test.yaml"]):
            done = subprocess.run(["promtool", *command], cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_is_tested_and_has_its_place_in_the_runbook(self):
        tested = (ROOT / "watch/rules.test.yaml").read_text().split("exp_alerts:")[:-1]
        fired = {re.findall(r"alertname: (\w+)", before)[-1] for before in tested}
        alerts = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule}
        self.assertEqual(fired, set(alerts))
        headings = re.findall(r"^## (\w+)$", (ROOT / "docs/runbook.md").read_text(), flags=re.M)
        self.assertEqual(set(headings), set(alerts))
        for name, rule in alerts.items():
            self.assertEqual(rule["annotations"]["runbook_url"], f"docs/runbook.md#{name.lower()}")


class Dashboard(unittest.TestCase):
    def test_first_screen_has_four_panels_and_the_rest_is_folded(self):
        kinds = [panel["type"] for panel in DASHBOARD["panels"]]
        self.assertEqual(kinds, ["timeseries"] * 4 + ["row"] * (len(kinds) - 4))
        self.assertEqual({row["collapsed"] for row in DASHBOARD["panels"][4:]}, {True})
        every = [*panels(), *DASHBOARD["panels"][4:]]
        self.assertEqual(len({panel["id"] for panel in every}), len(every))

    def test_each_axis_has_a_unit_and_a_name(self):
        for panel in panels():
            with self.subTest(panel=panel["title"]):
                axis = panel["fieldConfig"]["defaults"]
                self.assertTrue(axis["unit"] and axis["custom"]["axisLabel"])


class UnderLoad(unittest.TestCase):
    def test_every_query_of_the_dashboard_has_data_and_an_alert_fires(self):
        with running() as ports:
            port, missing = ports["prometheus"], list(queries())

            def answered():
                found = [each for each in missing if (ask(port, "query", query=each[1]) or {}).get("result")]
                for each in found:
                    missing.remove(each)
                return not missing

            try:
                wait_for(answered, "every query")
            except AssertionError:
                self.fail(f"no data: {missing}")
            for panel in panels():
                for target in panel["targets"]:
                    found = ask(port, "query", query=target["expr"].replace("$namespace", ".*"))["result"]
                    nameless = [each["metric"] for each in found if not all(each["metric"].get(label) for label in labels(target))]
                    self.assertEqual(nameless, [], panel["title"])
            rules = watch.FOLDER / "centre/rules.yaml"

            def limit():
                found = (ask(port, "query", query='diana_rule_limit_gateway{rule="hello"}') or {}).get("result", [])
                return [each["value"][1] for each in found]

            self.assertEqual(limit(), ["5"])
            rules.write_text(rules.read_text().replace("rpu: 5,", "rpu: 7,"))
            wait_for(lambda: limit() == ["7"], "the limit of the next document")
            rules.write_text(rules.read_text() + "nonsense\n")

            def firing():
                alerts = (ask(port, "alerts") or {}).get("alerts", [])
                return [it for it in alerts if it["state"] == "firing" and it["labels"]["alertname"] == "DianaConfigurationRejected"]

            wait_for(firing, "the alert for a document with problems fires")
            drawn, _, _ = browse(ports["page"], "--dump-dom").partition("<script>")
            self.assertEqual(drawn.count("<svg"), len(list(panels())))
            self.assertIn("DianaConfigurationRejected (firing)", drawn)
            for sign in ("no data yet", "cannot answer", "does not answer"):
                self.assertNotIn(sign, drawn)
            self.pictured(ports["page"])

    def pictured(self, port):
        """A picture of the page, as in the guide."""
        folder = Path(os.environ.get("DIANA_SCREENSHOTS", ROOT / "target/screenshots"))
        folder.mkdir(parents=True, exist_ok=True)
        browse(port, f"--screenshot={folder / 'dashboard.png'}")
        self.assertTrue((folder / "dashboard.png").read_bytes().startswith(b"\x89PNG"))


if __name__ == "__main__":
    unittest.main()
