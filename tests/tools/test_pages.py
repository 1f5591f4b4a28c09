"""The pages of the project: their links, the summary of the book, the page of keys."""

import re
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / folder) for folder in ("tools", "tests/kind")]
import keys  # noqa: E402
import pages as kind  # noqa: E402
from book import BESIDE  # noqa: E402
from console import ROOT  # noqa: E402

DOCS = ROOT / "docs"
# A README is limited to the first steps. The rest is in the book.
README_LINES = 100
# A page opens with one sentence: its readers, and the result for them.
OPENING_WORDS = 15
# Commands that only a cluster with nodes can run.
NODES = r"kubectl (?:-n \S+ )?(logs|exec|port-forward|drain|run|cp|attach)\b"


def pages():
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def prose(page):
    """The text of a page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S)


def links(page):
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if not link.startswith("https:")]


def anchors(page):
    """The anchors of headings for links, as forges and mdBook both generate them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.M)
    made = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)"', page.read_text()))


def cells(row):
    """The cells of a row of a table. `\\|` is a character of a cell."""
    return len(re.findall(r"(?<!\\)\|", row)) - 1


def tables(page):
    """Runs of lines that begin with `|`."""
    return re.findall(r"(?:^\|.*\n)+", prose(page), flags=re.M)


def measured(page):
    """The requests and the failed ones of each fault in a table of measurements."""
    rows = re.findall(r"^\| [^|]+ \| (\d+) \| (\d+) \| [\d.]+ ms \|", page.read_text(), flags=re.M)
    return [(int(requests), int(failed)) for requests, failed in rows]


def instructions(page, head):
    """The rows of the table of instructions with this head: their number by their name."""
    (table,) = [table for table in tables(page) if table.startswith(f"| {head} |")]
    found = re.findall(r"^\| ([^|]+) \| ([\d,]+) \|", table, flags=re.M)
    return {name: number_of(number) for name, number in found}


def number_of(text):
    return int(text.replace(",", ""))


def seeds(simulator):
    """The worlds that each run of the simulator plays, besides those of its finds."""
    plays = re.findall(r"(?<!fn )play\(.*?\);", simulator, flags=re.DOTALL)
    spans = [re.findall(r"\b(\d+|[A-Z]+)\.\.(?:[A-Z]+ \+ )?(\d+)", play) for play in plays]
    return sum(int(count) for play in spans for _, count in play)


class Pages(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        for page in pages():
            for link in links(page):
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                with self.subTest(page=page.name, link=link):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target))

    def test_the_book_has_copies_of_what_it_links_to(self):
        for page in DOCS.rglob("*.md"):
            for link in links(page):
                target = (page.parent / link.partition("#")[0]).resolve()
                if target != page.parent and not target.is_relative_to(DOCS):
                    with self.subTest(page=page.name, link=link):
                        self.assertIn(target.relative_to(ROOT).parts[0], BESIDE)

    def test_redirects_lead_from_places_that_are_gone_to_places_that_exist(self):
        redirects = tomllib.loads((DOCS / "book.toml").read_text())["output"]["html"].get("redirect", {})
        for old, new in redirects.items():
            with self.subTest(old=old):
                page, _, heading = old.removeprefix("/").partition("#")
                former = (DOCS / page).with_suffix(".md")
                # mdBook refuses a page that is gone with sections only.
                self.assertTrue(former.exists() or f"/{page}" in redirects)
                self.assertTrue(heading not in anchors(former) if heading and former.exists() else not former.exists())
                path, _, anchor = new.partition("#")
                target = (former.parent / path).resolve().with_suffix(".md")
                self.assertTrue(target.exists(), new)
                if anchor:
                    self.assertIn(anchor, anchors(target))

    def test_each_page_is_in_the_summary(self):
        listed = {(DOCS / link).resolve() for link in links(DOCS / "SUMMARY.md")}
        self.assertEqual(listed, set(DOCS.rglob("*.md")) - {DOCS / "SUMMARY.md"})

    def test_each_row_stands_in_a_table_with_a_head_and_has_its_columns(self):
        for page in pages():
            for table in tables(page):
                head, *rows = table.splitlines()
                with self.subTest(page=page.name, table=head):
                    self.assertRegex("".join(rows[:1]), r"^\|( :?-+:? \|)+$")
                    self.assertEqual({cells(row) for row in rows}, {cells(head)})

    def test_commands_that_need_nodes_are_marked_and_read_by_the_shell(self):
        for page in sorted(DOCS.rglob("*.md")):
            for head, block in re.findall(r"^```((?:sh|console)[^\n]*)\n(.*?)^```$", page.read_text(), flags=re.M | re.S):
                with self.subTest(page=page.name, head=head):
                    if re.search(NODES, block) or " " in head:
                        self.assertRegex(head, r"^(sh|console) kind( istio| envoy-gateway)?$")
                        self.assertIn(str(page.relative_to(DOCS).with_suffix("")), kind.PAGES)
            told = [command for plane in ("istio", "envoy-gateway") for command, _ in kind.steps(page, plane)]
            read = subprocess.run(["bash", "-n"], input="\n".join(told), text=True, capture_output=True)
            self.assertEqual((read.returncode, read.stderr), (0, ""), page.name)

    def test_headings_skip_no_level(self):
        for page in pages():
            levels = [len(marks) for marks in re.findall(r"^(#+) ", prose(page), flags=re.M)]
            with self.subTest(page=page.name):
                self.assertEqual([(one, next) for one, next in zip([0, *levels], levels) if next > one + 1], [])

    def test_the_page_of_keys_is_what_the_schema_says(self):
        self.assertEqual(keys.PAGE.read_text(), keys.page(), "`python3 tools/keys.py` writes it")

    def test_pages_begin_with_their_readers_and_the_result(self):
        introduction = [DOCS / "SUMMARY.md", DOCS / "introduction.md"]
        for page in set(DOCS.rglob("*.md")) - set(introduction):
            with self.subTest(page=page.name):
                title, begin = page.read_text().split("\n\n")[:2]
                self.assertRegex(title, r"\A# .+\Z")
                self.assertRegex(begin, r"\AFor [^.:]+: [^.]+\.")
                self.assertLessEqual(len(begin.partition(". ")[0].split()), OPENING_WORDS)

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), README_LINES)

    def test_the_figures_of_the_readme_are_those_of_the_pages(self):
        readme = (ROOT / "README.md").read_text()
        faults = measured(ROOT / "MEASURED.md")
        self.assertIn(f"**{len(faults)} faults of Redis**", readme)
        self.assertIn(f"[{sum(requests for requests, _ in faults):,}]", readme)
        self.assertEqual({failed for _, failed in faults}, {0})
        played = seeds((ROOT / "tests/sim/main.rs").read_text())
        self.assertIn(f"in {played} simulated fleets", readme)
        mistakes = re.findall(r"^## \d+\. ", (DOCS / "guides/mistakes.md").read_text(), flags=re.M)
        self.assertEqual((len(mistakes), "[Ten mistakes]" in readme), (10, True))
        translated = len(list((ROOT / "envoy/migrations").glob("*.yaml")))
        self.assertEqual((translated, "[Eleven public configurations](envoy/migrations)" in readme), (11, True))
        reports = set(re.findall(r"https://[^)]+/(?:issues|pull)/\d+", (DOCS / "guides/mistakes.md").read_text()))
        self.assertEqual((len(reports), "five with a link to the public report" in readme), (5, True))

    def test_the_figures_of_instructions_agree(self):
        page = ROOT / "MEASURED.md"
        ours, theirs = instructions(page, "rules (one, unless more are listed)"), instructions(page, "`local_ratelimit`")
        bare = number_of(re.search(r"without a filter, which are ([\d,]+)", page.read_text())[1])
        empty = number_of(re.search(r"An empty module adds ([\d,]+)", page.read_text())[1])
        in_process = {name: empty + number for name, number in instructions(page, "rules of the dynamic module").items()}
        comparison, readme = (DOCS / "comparison.md").read_text(), (ROOT / "README.md").read_text()
        self.assertIn(f"in addition to the {bare:,} that", readme)
        in_turn = "`gateway`, by header, 10,000 callers in turn"
        for name, of_theirs, row in (
            ("`all`", "one bucket for all", "one rule for all"),
            ("by header", "by header", "the same by a header"),
            (in_turn, "by header, 10,000 callers in turn", "the same for 10,000 callers"),
            ("by header, refused", "by header, refused", "refused request, by a header"),
        ):
            wasm, module, local = (f"{round(cost, -2):,}" for cost in (ours[name], in_process[name], theirs[of_theirs]))
            with self.subTest(name=name):
                self.assertRegex(comparison, rf"{row} \| {wasm}; as a dynamic module {module} \| \W*{local}\W* \[14\] \|")
                self.assertIn(f"| {wasm} | {module} | {local} |", readme)
        parts = [f"{costs['by header'] / bare:.0%}".replace("%", " %") for costs in (ours, in_process, theirs)]
        self.assertIn("{} more in Diana, {} more in its dynamic module and {} more".format(*parts), " ".join(comparison.split()))
        self.assertIn("two fifths of it or less", (DOCS / "guides/native.md").read_text())
        for name, cost in in_process.items():
            with self.subTest(name=name):
                self.assertLessEqual(cost / ours[name], 2 / 5)


if __name__ == "__main__":
    unittest.main()
