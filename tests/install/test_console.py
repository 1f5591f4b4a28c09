"""Every console example of the README and the book has the documented output.

Numbers may differ, except statuses of HTTP. `…` stands for any lines. Commands that start servers run until the page
ends, or starts other servers.
"""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import textwrap
import unittest
from pathlib import Path

from servers import ROOT, wait_for

SERVERS = re.compile(r"make (run|fleet|watch)\b")
# A nested make prints the folders that it enters and leaves.
ALONE = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
# The examples use gateways that share limits, so `make fleet` has the maximum timeout for Redis.
PATIENT = {**ALONE, "REDIS_TIMEOUT": "1s"}
MARK = "@@ said so @@"
# Its sections start Envoys of their own: `cargo test --test envoy recipe_page` runs them.
RECIPES = ROOT / "docs/guides/recipes.md"


def commands(block):
    """Commands of a block with their documented output."""
    for command, output in re.findall(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", block, flags=re.M):
        yield command.replace("\n> ", "\n").strip(), output.strip()


def examples(page):
    """Commands of a page with their documented output."""
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), flags=re.M | re.S):
        yield from commands(block)


def pattern(output):
    """A regular expression for an output."""
    parts, split = [], re.split(r"(…|\d+(?:\.\d+)*)", output)
    for at, part in enumerate(split):
        if part == "…":
            # Alone in a line and at the very end it stands for lines, elsewhere for the rest of a line.
            is_alone = split[at - 1][-1:] in ("", "\n") and split[at + 1][:1] == "\n"
            parts.append("(?s:.*)" if is_alone or at + 1 >= len(split) - 1 else ".*")
        elif part[:1].isdecimal() and not re.fullmatch("[1-5]0[0-9]", part):
            parts.append(r"\d+(?:\.\d+)*")
        else:
            parts.append(re.escape(part))
    return "".join(parts)


def plain(output):
    """The text without trailing spaces and surrounding empty lines."""
    return "\n".join(line.rstrip() for line in output.splitlines()).strip()


@contextlib.contextmanager
def serving(command, ended_by=signal.SIGTERM):
    """Runs a `make` target without rebuilding the module, until the block ends. Yields a list, which then has its output."""
    with tempfile.NamedTemporaryFile("w+") as log:
        words = command.replace("make ", "make -o build ", 1)
        process = subprocess.Popen(["bash", "-c", words], cwd=ROOT, env=PATIENT, stdout=log, stderr=log, start_new_session=True)
        said = Path(log.name).read_text
        try:
            wait_for(lambda: "Ctrl-C stops" in said() or process.poll() is not None, f"{command}: {said()}")
            if process.poll() is not None:
                raise AssertionError(f"{command} has ended:\n{said()}")
            output = []
            yield output
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, ended_by)
            process.wait()
        output.append(said())


def run(commands):
    """The output of each command, in sequence in one shell."""
    script = "".join(f"{command.replace('make ', 'make -o build ')}\necho '{MARK}'\n" for command in commands)
    # Errors of a command are a part of its output.
    done = subprocess.run(["bash"], input=script, cwd=ROOT, env=ALONE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.replace("\r", "").split(f"{MARK}\n")[:-1]


class Console(unittest.TestCase):
    maxDiff = None

    def check(self, page):
        groups = [(None, [])]
        for command, output in examples(page):
            if SERVERS.match(command):
                groups.append((command, []))
            else:
                groups[-1][1].append((command, output))
        for server, told in groups:
            for (command, output), out in zip(told, self.outputs(server, told), strict=True):
                with self.subTest(command=command):
                    self.assertRegex(plain(out), rf"\A{pattern(output)}\Z")

    def outputs(self, server, told):
        """The output of the commands while the server runs, if there is one."""
        with serving(server) if server else contextlib.nullcontext():
            return run([command for command, _ in told])

    def test_readme(self):
        self.check(ROOT / "README.md")

    def test_every_page(self):
        pages = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page != RECIPES and any(examples(page))]
        self.assertGreater(len(pages), 2)
        for page in pages:
            with self.subTest(page=page.name):
                self.check(page)

    def test_the_limit_of_ones_own_of_the_tutorial(self):
        _, told = (ROOT / "docs/tutorial.md").read_text().split("## A limit of your own\n")
        entry = re.search(r"^```yaml\n(.*?)^```$", told, flags=re.M | re.S)[1]
        call, mistake = re.search(r"`(curl [^`]*)`", told)[1], re.search(r"such as `(unit: \w+)`", told)[1]
        query = re.search(r"`/mine(\?\S+)`", told)[1]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", dir=ROOT / "target") as file:
            server = f"make run RULES={Path(file.name).relative_to(ROOT)}"
            file.write(entry)
            file.flush()
            with serving(server):
                answers = [said.split()[1] for said in run([call] * 5 + [call.replace("ada", "bob")])]
                shaped = run([f"curl -si 'http://127.0.0.1:10000/mine{query}'"])[0]
            self.assertEqual(answers, ["200"] * 3 + ["503"] * 2 + ["200"])
            self.assertRegex(shaped, r"(?s)\AHTTP/1.1 401 .*\nx-tokens-used: 25\n.*\n\nx{1000}\Z")
            self.assertGreater(int(re.search(r"x-envoy-upstream-service-time: (\d+)", shaped)[1]), 1999)
            file.seek(0)
            file.write(entry.replace("unit: minute", mistake))
            file.flush()
            with self.assertRaises(AssertionError) as refused, serving(server):
                pass
            # The line of the file, after the command that shows it.
            self.assertRegex(
                str(refused.exception),
                r"(?s)has ended:\nerror: [^\n]*`diana check [^`]*`.* 4:\d+ limits\[0\].rules\[0\].unit: found `fortnight`, allowed: .*minute",
            )

    def test_a_file_of_the_other_kind_is_named(self):
        for server, advice in [
            ("make run CONFIG=envoy/examples/plans.yaml", "make run RULES=envoy/examples/plans.yaml"),
            ("make run RULES=envoy/hot.yaml", "make run CONFIG=envoy/hot.yaml"),
        ]:
            with self.subTest(server), self.assertRaisesRegex(AssertionError, advice), serving(server):
                pass

    def test_ctrl_c_ends_without_an_error(self):
        with serving("make run", signal.SIGINT) as output:
            pass
        self.assertNotRegex(output[0], r"make: |Traceback|error")


if __name__ == "__main__":
    unittest.main()
