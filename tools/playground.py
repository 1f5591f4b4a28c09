"""Builds the playground, one file that needs no server: target/playground/index.html."""

import gzip
import json
import os
import re
import shutil
import textwrap

import needs
from build import without_paths
from console import CARGO_TARGET, ROOT, TARGET, check_size, run

SOURCE = ROOT / "src/web/page"
PAGE = TARGET / "playground/index.html"
WORK = TARGET / "npm/playground"
WASM = "wasm32-unknown-unknown"
# A profile of Cargo.toml.
PROFILE = "page"
# The most bytes of the page.
LIMIT = 2 << 20


def core():
    """Compiles the core, and generates the JavaScript that calls it."""
    needs.rust("target", WASM)
    environment = {"CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS": without_paths()}
    run([needs.cargo(), "build", "--package", "diana-web", "--profile", PROFILE, "--target", WASM], env={**os.environ, **environment})
    binder = needs.cargo_tool("wasm-bindgen-cli", "wasm-bindgen", needs.locked("wasm-bindgen"))
    run([binder, "--target", "web", "--no-typescript", "--out-dir", WORK / "core", CARGO_TARGET / WASM / PROFILE / "diana_web.wasm"])
    # In the page, bytes take a third more as text.
    (WORK / "core/diana.gz").write_bytes(gzip.compress((WORK / "core/diana_web_bg.wasm").read_bytes(), mtime=0))


def rules(text):
    """The rules of an example: a plugin's configuration, or a whole file without its first line, which is for editors."""
    if found := re.search(r"^( *)value: \|\n((?:\1 +.*\n|\n)+)", text, flags=re.M):
        return textwrap.dedent(found[2])
    return re.sub(r"\A# yaml-language-server:.*\n", "", text)


def presets():
    """Writes the shipped examples that the page offers."""
    found = json.loads((SOURCE / "presets.json").read_text())
    for preset in (it for it in found if "file" in it):
        text = rules((ROOT / "envoy" / preset["file"]).read_text())
        # Requests of the page have headers in place of verified claims.
        for old, new in preset.pop("replace", []):
            text = text.replace(old, new)
        preset["rules"] = text
    (WORK / "presets.js").write_text(f"export default {json.dumps(found)};\n")


def page():
    """Writes the page, with its style and script inside."""
    shutil.copytree(SOURCE, WORK, dirs_exist_ok=True)
    needs.npm_project(WORK)
    presets()
    options = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--loader:.gz=binary", "--legal-comments=inline", "--log-level=warning"]
    places = [f"--alias:presets={WORK / 'presets.js'}", f"--outfile={WORK / 'page.js'}"]
    run(["node", WORK / "node_modules/esbuild/bin/esbuild", WORK / "main.js", *options, *places])
    style = (WORK / "node_modules/uplot/dist/uPlot.min.css").read_text() + (WORK / "style.css").read_text()
    # The text of a script must not contain its end tag.
    script = (WORK / "page.js").read_text().replace("</script", "<\\/script")
    text = (WORK / "index.html").read_text()
    text = text.replace("<!-- style -->", f"<style>{style}</style>").replace("<!-- script -->", f'<script type="module">{script}</script>')
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text)
    check_size(PAGE, LIMIT)


def build():
    for name in ("node", "npm"):
        needs.program(name)
    core()
    page()


if __name__ == "__main__":
    build()
