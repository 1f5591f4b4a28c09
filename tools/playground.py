"""Builds the playground, one file that needs no server: target/playground/index.html. With `serve`, also serves it on loopback."""

import functools
import http.server
import json
import os
import re
import shutil
import sys
import textwrap

import needs
from build import PROFILE, without_paths
from console import CARGO_TARGET, ROOT, TARGET, die, relative, run, say

SOURCE = ROOT / "src/web/page"
MADE = TARGET / "playground"
# The files that are bundled.
WORK = TARGET / "npm/playground"
WASM = "wasm32-unknown-unknown"
# Most bytes of the page.
BUDGET = 2 << 20
PORT = 8089


def core():
    """Builds the core and the JavaScript that calls it."""
    needs.rust_target(WASM)
    environment = {"CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS": without_paths()}
    command = [needs.cargo(), "build", "--package", "diana-web", "--profile", PROFILE, "--target", WASM]
    run(command, env={**os.environ, **environment})
    binder = needs.cargo_tool("wasm-bindgen-cli", "wasm-bindgen", needs.locked("wasm-bindgen"))
    module = CARGO_TARGET / WASM / PROFILE / "diana_web.wasm"
    run([binder, "--target", "web", "--no-typescript", "--out-dir", WORK / "core", module])


def rules(text):
    """The rules in an example: the value of a plugin's configuration, or the whole file without the schema comment for editors."""
    if held := re.search(r"^( *)value: \|\n((?:\1 +.*\n|\n)+)", text, flags=re.M):
        return textwrap.dedent(held[2])
    return re.sub(r"\A# yaml-language-server:.*\n", "", text)


def presets():
    """The examples of the page. Most take their rules from a shipped file."""
    found = json.loads((SOURCE / "presets.json").read_text())
    for preset in found:
        if file := preset.pop("file", None):
            preset["rules"] = rules((ROOT / "envoy" / file).read_text())
    (WORK / "presets.js").write_text(f"export default {json.dumps(found)};\n")


def page():
    """The page with its style and script included."""
    needs.npm_project(SOURCE, WORK)
    for file in SOURCE.iterdir():
        shutil.copy(file, WORK)
    presets()
    options = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--loader:.wasm=binary", "--legal-comments=inline", "--log-level=warning"]
    places = [f"--alias:presets={WORK / 'presets.js'}", f"--outfile={WORK / 'page.js'}"]
    run(["node", WORK / "node_modules/esbuild/bin/esbuild", WORK / "main.js", *options, *places])
    style = (WORK / "node_modules/uplot/dist/uPlot.min.css").read_text() + (WORK / "style.css").read_text()
    # No text in the script may end it.
    script = (WORK / "page.js").read_text().replace("</script", "<\\/script")
    text = (WORK / "index.html").read_text()
    text = text.replace("<!-- style -->", f"<style>{style}</style>").replace("<!-- script -->", f'<script type="module">{script}</script>')
    MADE.mkdir(parents=True, exist_ok=True)
    made = MADE / "index.html"
    made.write_text(text)
    size = made.stat().st_size
    say(f"{relative(made)}: {size:,} of at most {BUDGET:,} bytes")
    if size > BUDGET:
        die("the playground is over its budget")


def build():
    needs.program("node")
    needs.program("npm")
    core()
    page()


def serve():
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=MADE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", PORT), handler) as server:
        say(f"http://127.0.0.1:{PORT} · Ctrl-C stops")
        server.serve_forever()


if __name__ == "__main__":
    build()
    if "serve" in sys.argv[1:]:
        serve()
