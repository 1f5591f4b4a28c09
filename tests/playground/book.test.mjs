// The book as a reader has it in a browser: its search, its pages on a phone, in the light and in the dark, and its links.

import assert from "node:assert/strict";
import {existsSync, readFileSync, readdirSync} from "node:fs";
import {dirname, join, relative, resolve} from "node:path";
import {test} from "node:test";
import {fileURLToPath, pathToFileURL} from "node:url";

import {AXE, withBrowser} from "./browser.mjs";

const BOOK = resolve(process.env.DIANA_BOOK, "docs");
const text = (name) => readFileSync(join(BOOK, name), "utf8");
/** Pages as readers open them. A redirect leads away before it could be measured; tests/tools checks where to. */
const PAGES = readdirSync(BOOK, {recursive: true}).filter((name) => name.endsWith(".html") && !["print.html", "toc.html", "index.html"].includes(name) && !text(name).includes('http-equiv="refresh"'));
/** What people type, and the section that helps. One of the first three results leads there. */
const QUESTIONS = {
  "everything is 503": "runbook.html#everything-gets-503-500-or-429",
  "why 503": "runbook.html#everything-gets-503-500-or-429",
  "429 for everybody": "runbook.html#everything-gets-503-500-or-429",
  "refused with quota left": "runbook.html#why-was-this-refused",
  "limits reset after deploy": "runbook.html#limits-reset-after-a-rollout",
  "limit is not applied": "runbook.html#a-limit-is-not-applied-or-does-not-work",
  "rate limit does not work": "runbook.html#a-limit-is-not-applied-or-does-not-work",
  "wasm crash": "runbook.html#the-vm-failed",
  "redis is slow": "runbook.html#redis-is-slow-or-down",
  "redis down": "runbook.html#redis-is-slow-or-down",
  "two gateways disagree": "runbook.html#two-gateways-disagree",
  "pods not ready": "runbook.html#new-gateway-pods-never-become-ready-or-a-change-of-a-listener-does-not-arrive",
  "switch off": "runbook.html#switch-diana-off",
  "disable diana": "runbook.html#switch-diana-off",
  "kill switch": "runbook.html#switch-diana-off",
  "why was this refused": "runbook.html#why-was-this-refused",
  "upgrade rollback": "guides/upgrading.html",
  "DianaRedisAway": "runbook.html#dianaredisaway",
  "client address behind proxy": "guides/client-addresses.html",
  "install helm": "guides/",
};

/** Pages with all kinds of markup: tables, code, pictures, links in each of them. */
const KINDS = ["introduction.html", "tutorial.html", "runbook.html", "comparison.html", "guides/command.html", "guides/watching.html"];
/** Rules that do not fit a book: its tables have corners without a text, and scroll. */
const UNFIT = {"scrollable-region-focusable": {enabled: false}, "empty-table-header": {enabled: false}};

const url = (name) => pathToFileURL(join(BOOK, name)).href;

test("search finds the help by the words that people type", () => withBrowser(async (browser) => {
  const page = await browser.newPage();
  const missed = {};
  for (const [words, wanted] of Object.entries(QUESTIONS)) {
    await page.goto(`${url("introduction.html")}?search=${encodeURIComponent(words)}`);
    await page.waitForSelector("#mdbook-searchresults li a");
    const found = await page.locator("#mdbook-searchresults > li > a").evaluateAll((all) => all.slice(0, 3).map((it) => it.href));
    const places = found.map((it) => it.replace(/\?highlight=[^#]*/, "").slice(url("").length + 1));
    if (!places.some((it) => it.startsWith(wanted))) missed[words] = places;
  }
  assert.deepEqual(missed, {});
}));

test("every page fits a phone, and each kind of markup is accessible in the light and in the dark", () => withBrowser(async (browser) => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({colorScheme, viewport: {width: 390, height: 844}});
    for (const name of PAGES) {
      await page.goto(url(name));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
      if (!KINDS.includes(name)) continue;
      await page.addScriptTag({path: AXE});
      // The schemes differ in their colours only.
      const chosen = colorScheme === "light" ? {rules: UNFIT} : {runOnly: ["color-contrast"]};
      const {violations} = await page.evaluate((options) => axe.run("main", options), chosen);
      assert.deepEqual(violations.map(({id, nodes}) => `${id}: ${nodes[0].html} ${nodes[0].failureSummary}`), [], `${name}, ${colorScheme}`);
    }
    await page.close();
  }
}));

test("examples of the book open in the playground", () => withBrowser(async (browser) => {
  const page = await browser.newPage();
  await page.goto(url("examples.html"));
  const links = await page.locator("a.try").evaluateAll((links) => links.map((link) => link.href));
  for (const link of links) {
    await page.goto("about:blank");
    await page.goto(link);
    await page.waitForSelector("html[data-ready]");
    assert.match(await page.locator("#problems").textContent(), /No problems/, link);
    assert.equal(await page.locator("#message").textContent(), "", link);
  }
}));

test("every link of the built book leads to a file and a heading", () => {
  const built = Object.fromEntries(PAGES.map((name) => [name, text(name)]));
  for (const [name, html] of Object.entries(built)) {
    for (const [, link] of html.matchAll(/(?:href|src)="([^"]+)"/g)) {
      if (/^[a-z]+:/.test(link) || link === "#") continue;
      const target = fileURLToPath(new URL(link.replace(/#.*/, "") || name.replace(/.*\//, ""), pathToFileURL(join(BOOK, dirname(name), "/"))));
      const anchor = decodeURIComponent(link.split("#")[1] ?? "");
      assert.ok(existsSync(target), `${name}: ${link}`);
      const found = built[relative(BOOK, target)];
      if (anchor && found) assert.ok(found.includes(`id="${anchor}"`), `${name}: ${link}`);
    }
  }
});
