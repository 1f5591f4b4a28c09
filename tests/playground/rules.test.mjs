// What is told of rules while they are typed.

import assert from "node:assert/strict";
import {test} from "node:test";

import {SIMPLE, open, outcome, says, type, withBrowser} from "./browser.mjs";

test("a problem is told with its line, and leads there", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  await type(page, SIMPLE.rules.replace("minute", "fortnight"));
  const problem = page.getByRole("button", {name: /^Line 4: limits\[0\]\.rules\[0\]\.unit: found `fortnight`/});
  await problem.waitFor();
  await says(outcome(page), "The rules have problems.");
  await problem.press("Enter");
  const selected = await page.evaluate(() => document.querySelector(".cm-activeLine").textContent);
  assert.match(selected, /fortnight/);
  await type(page, SIMPLE.rules);
  await says(page.locator("#problems"), "No problems");
  await says(outcome(page), "7 of 30 admitted");
}));

test("keys and values are offered by the schema", () => withBrowser(async (browser) => {
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

test("a document that means a huge tree is refused in no time", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  const lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
  for (const [before, name] of ["ab", "bc", "cd", "de", "ef", "fg", "gh"]) lines.push(`${name}: &${name} [${Array(10).fill(`*${before}`)}]`);
  await type(page, lines.join("\n"));
  await says(page.locator("#problems"), "Line ");
  await says(outcome(page), "The rules have problems.");
}));
