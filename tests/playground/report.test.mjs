// The page that `diana replay --html` writes.

import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import {mkdtempSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {test} from "node:test";
import {pathToFileURL} from "node:url";

import {AXE, withBrowser} from "./browser.mjs";

const {DIANA_COMMAND} = process.env;
const ATTACK = "</script><img src=x onerror=alert(1)>";
const RULES = `limits:
  - Url: /
    rules:
      - {name: account, actor: account, unit: minute, rpu: 3, algo: W}
      - {name: paced, actor: all, unit: second, rpu: 5, algo: LB}
`;

/** A page about a log of two minutes, by two files of rules. */
function written() {
  const folder = mkdtempSync(join(tmpdir(), "diana-report-"));
  const file = (name, text) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const line = (number) => JSON.stringify({
    start_time: new Date(Date.UTC(2026, 10, 24) + number * 50).toISOString(), method: "GET", path: "/", response_code: 200,
    "x-account-id": number % 40 === 0 ? ATTACK : `a-${number % 60}`,
  });
  const log = Array.from({length: 2400}, (_, number) => line(number));
  const [rules, other] = [file("rules.yaml", RULES), file("other.yaml", RULES.replace("rpu: 3", "rpu: 30"))];
  const html = join(folder, "report.html");
  execFileSync(DIANA_COMMAND, ["replay", rules, file("access.log", log.join("\n")), "--against", other, "--html", html]);
  return pathToFileURL(html).href;
}

async function open(browser, url, settings) {
  const page = await browser.newPage(settings);
  page.on("pageerror", (error) => assert.fail(error));
  page.on("console", (line) => assert.notEqual(line.type(), "error", line.text()));
  page.on("dialog", () => assert.fail("a script of the log ran"));
  page.on("request", (request) => assert.ok(/^(file|data):/.test(request.url()), request.url()));
  await page.goto(url);
  return page;
}

test("a report shows tables and plots for any log", () => withBrowser(async (browser) => {
  const url = written();
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [400, 1400]) {
      const page = await open(browser, url, {colorScheme, viewport: {width, height: 900}});
      // Each side has one of all, and one of each rule.
      assert.equal(await page.locator("canvas").count(), 6);
      assert.match(await page.locator("#summary").textContent(), /^2,400 requests from 2026-11-24T00:00:00Z to 2026-11-24T00:01:59Z/);
      assert.equal(await page.getByRole("cell", {name: ATTACK}).count(), 1);
      assert.equal(await page.locator("img").count(), 0);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${width} px: ${wide} px too wide`);
      // The first plot is drawn: it has more than one colour.
      const colours = await page.locator("canvas").first().evaluate((canvas) => {
        const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
      });
      assert.ok(colours > 10, `${colours} colours`);
      await page.addScriptTag({path: AXE});
      const {violations} = await page.evaluate(() => axe.run());
      const found = violations.map(({id, nodes}) => `${id}: ${nodes.map((it) => it.html).join("\n")}`);
      assert.deepEqual(found, [], `${width} px, ${colorScheme}`);
      await page.close();
    }
  }
}));

test("a plot shows the counts under the pointer", () => withBrowser(async (browser) => {
  const page = await open(browser, written(), {viewport: {width: 1200, height: 900}});
  await page.locator(".u-over").first().hover();
  const legend = page.locator(".u-legend").first();
  assert.match(await legend.textContent(), /UTC:?\s*2026-11-24 00:0[01]:\d\d/);
  assert.match(await legend.textContent(), /refused:?\s*\d/);
}));
