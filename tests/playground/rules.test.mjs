// Problems and completions while the user types rules.

import assert from "node:assert/strict";
import {test} from "node:test";

import {SIMPLE, open, result, waitForText, type, withBrowser} from "./browser.mjs";

test("a problem shows its line and leads to it", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  await type(page, SIMPLE.rules.replace("minute", "fortnight"));
  const problem = page.getByRole("button", {name: /^Line 4: limits\[0\]\.rules\[0\]\.unit: found `fortnight`/});
  await problem.waitFor();
  await waitForText(result(page), "The rules have problems. Below is the last result.");
  await waitForText(page.locator("#variants.stale"), "7 of 30 admitted");
  await problem.press("Enter");
  const selected = await page.evaluate(() => document.querySelector(".cm-activeLine").textContent);
  assert.match(selected, /fortnight/);
  await type(page, SIMPLE.rules);
  await waitForText(page.locator("#problems"), "No problems");
  await waitForText(page.locator("#variants:not(.stale)"), "7 of 30 admitted");
}));

test("completions follow the schema", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  const offered = async (rules) => {
    await type(page, rules);
    await page.keyboard.press("Control+Space");
    const list = page.locator(".cm-tooltip-autocomplete li");
    await list.first().waitFor();
    const all = await list.allTextContents();
    await page.keyboard.press("Escape");
    return all;
  };
  assert.ok((await offered("li")).includes("limits"));
  assert.ok((await offered("limits:\n  - Url: /\n    ru")).includes("rules"));
  assert.ok((await offered("limits:\n  - Url: /\n    rules:\n      - name: a\n        alg")).includes("algo"));
  assert.ok((await offered("limits:\n  - Url: /\n    rules:\n      - {name: a, scop")).includes("scope"));
  const algorithms = await offered("limits:\n  - Url: /\n    rules:\n      - {name: a, algo: T");
  assert.ok(algorithms.includes("TB"), algorithms.join());
}));

test("a document that expands to a huge tree is refused", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  const lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
  for (const [before, name] of ["ab", "bc", "cd", "de", "ef", "fg", "gh"]) lines.push(`${name}: &${name} [${Array(10).fill(`*${before}`)}]`);
  await type(page, lines.join("\n"));
  await waitForText(page.locator("#problems"), "Line ");
  await waitForText(result(page), "The rules have problems.");
}));
