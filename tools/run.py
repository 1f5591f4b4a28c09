"""Starts Envoy with a configuration that has the ports of envoy/envoy.yaml, or with that one and other rules; Ctrl-C stops it."""

import json
import os
import re
import secrets
import sys
import threading

import envoy
import local
import native
from console import ROOT, TARGET, die, say

CONFIG = "envoy/envoy.yaml"
GATEWAY, UPSTREAM, OPERATOR, ADMIN = 10000, 10001, 10002, 9901
# Diana's lines in Envoy's log begin with the names of its plugin.
PLUGIN = re.compile(r"wasm log( diana)+: ")
# The keys by which operators ask, unless the rules have them. At the end, so that lines keep their numbers.
OPERATORS = {
    "explain": "explain: {header: x-diana-explain, token_env: DIANA_TOKEN}",
    "admin": "admin: {path: /.diana, token_env: DIANA_TOKEN}",
}


def main(config=CONFIG, *version):
    rules = os.environ.get("RULES", "")
    check(config, rules)
    binary, token = envoy.path(*version), os.environ.get("DIANA_TOKEN") or secrets.token_hex(16)
    used = with_rules(rules) if rules else config
    used = native.written(used) if os.environ.get("NATIVE") else used
    for port in (GATEWAY, UPSTREAM, OPERATOR, ADMIN):
        local.free(port, config)
    with local.processes() as processes:
        process = local.envoy(binary, used, {**os.environ, "DIANA_TOKEN": token}, reads_log=True)
        processes.append(process)
        log = Log(process.stderr)
        local.wait(lambda: process.poll() is not None or local.ready(ADMIN), [])
        if process.poll() is not None:
            log.explain(rules or config)
        log.pass_on()
        say(f"\nDiana is ready at http://127.0.0.1:{GATEWAY} (admin: http://127.0.0.1:{ADMIN}). Ctrl-C stops Envoy.")
        if rules or config == CONFIG:
            path, header = ("/", "") if rules else ("/reports", " -H 'x-account-id: ada'")
            say(f"""
In another terminal, send a request, and see what each rule decides and why (this token is valid until Envoy stops):

  curl -i{header} 'http://127.0.0.1:{GATEWAY}{path}'
  curl -si -H 'x-diana-explain: {token}'{header} 'http://127.0.0.1:{GATEWAY}{path}' | diana why      (`make cli` builds it)

The upstream answers as you ask: http://127.0.0.1:{GATEWAY}{path}?status=401&delay=2s&header=x-tokens-used:25&size=1000
""")
        if not rules and config == CONFIG:
            say(f"""Be refused, read the caller's usage and reset it:

  for i in 1 2 3; do curl -i -H 'x-account-id: ada' http://127.0.0.1:{GATEWAY}/reports; done
  curl -H 'authorization: Bearer {token}' 'http://127.0.0.1:{OPERATOR}/.diana/usage?rule=reports&actor.account=ada'
  curl -H 'authorization: Bearer {token}' -X POST 'http://127.0.0.1:{OPERATOR}/.diana/reset?rule=reports&actor.account=ada'
""")
        local.wait(lambda: False, processes)


def check(config, rules):
    """Ends the tool if a file is missing, or one of rules is given for a configuration of Envoy, or the reverse."""
    if not (ROOT / (rules or config)).is_file():
        die(f"there is no file {rules or config}")
    is_envoy = "static_resources" in (ROOT / (rules or config)).read_text()
    if rules and is_envoy:
        die(f"{rules} is a configuration of Envoy: `make run CONFIG={rules}` starts it")
    if not rules and not is_envoy:
        die(f"{config} has rules, and no configuration of Envoy: `make run RULES={config}` starts {CONFIG} with them")


def with_rules(rules):
    """Writes envoy/envoy.yaml with the rules of a file in place of its own into the target folder, and returns its path."""
    text = (ROOT / rules).read_text(encoding="utf-8-sig")
    if re.search(r"(?m)^limits\s*:", text):
        missing = [line for key, line in OPERATORS.items() if not re.search(rf"(?m)^{key}\s*:", text)]
        text = "\n".join([text.rstrip("\n"), *missing, ""])
    block = re.compile(r"(?m)^( *)value: \|\n(?:\1 .*\n|\n)*")
    # Text in double quotes has the same lines for the filter, also with tabs or quotes in it.
    value = json.dumps(text, ensure_ascii=False)
    written, count = block.subn(lambda found: f"{found[1]}value: {value}\n", (ROOT / CONFIG).read_text(), count=1)
    if count != 1:
        die(f"{CONFIG} has no text of rules")
    path = TARGET / "run.yaml"
    path.write_text(written)
    return path


class Log:
    """Envoy's log, which is held back until Envoy serves, so that the reason of a failure can stand before it."""

    def __init__(self, lines):
        self.held, self.is_open, self.lock = [], False, threading.Lock()
        self.thread = threading.Thread(target=self.read, args=[lines], daemon=True)
        self.thread.start()

    def read(self, lines):
        for line in lines:
            line = PLUGIN.sub("diana: ", line)
            with self.lock:
                self.show(line) if self.is_open else self.held.append(line)

    def show(self, line):
        sys.stderr.write(line)
        sys.stderr.flush()

    def pass_on(self):
        with self.lock:
            self.is_open = True
            for line in self.held:
                self.show(line)

    def explain(self, file):
        """Ends the tool after Envoy has ended."""
        self.thread.join()
        problems = [line for line in self.held if re.search(r"\d+:\d+ \S+: |not valid YAML|invalid configuration", line)]
        if problems:
            self.show(f"error: Diana does not accept the rules. `diana check {file}` shows each mistake in its line (`make cli` builds it).\n")
            self.show("Envoy's log:\n")
        self.pass_on()
        die("Envoy has ended, see above")


if __name__ == "__main__":
    main(*sys.argv[1:])
