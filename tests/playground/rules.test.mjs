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

test("limits of nginx are converted, and compared over time", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  const shown = (name) => result(page).getByRole("article").filter({has: page.getByRole("heading", {name, exact: true})});
  const paste = async (text) => {
    await page.getByText("Bring limits of ingress-nginx or nginx").click();
    await page.getByRole("textbox", {name: /nginx.conf/}).fill(text);
    await page.getByRole("button", {name: "Convert"}).click();
  };
  await paste("limits: none");
  await waitForText(page.locator("#brought"), "the pasted text has no limits");
  await page.getByText("Bring limits of ingress-nginx or nginx").click();
  const annotations = "{nginx.ingress.kubernetes.io/limit-rps: '1', nginx.ingress.kubernetes.io/limit-burst: '9'}";
  const rule = "{host: shop.example.com, http: {paths: [{path: /cart, pathType: Prefix}]}}";
  await paste(`kind: Ingress\nmetadata: {name: web, annotations: ${annotations}}\nspec: {rules: [${rule}]}\n`);
  await waitForText(page.locator("#brought"), "limit-burst-multiplier");
  await waitForText(page.locator("#editor"), "default-web-rps");
  // Two callers, each with six at once and one more a second, of ten every other second.
  for (const name of ["as written", "the original"]) await waitForText(shown(name), "68 of 300 admitted");
  await page.locator("#algorithm").selectOption("original");
  await page.getByRole("row").filter({hasText: "refused"}).filter({hasText: "default-web-rps"}).first().waitFor();
  await type(page, (await page.locator("#editor .cm-content").innerText()).replace("burst: 6", "burst: 3"));
  await waitForText(shown("as written"), "62 of 300 admitted");
  await waitForText(shown("the original"), "68 of 300 admitted");
  const other = await open(browser, {hash: new URL(page.url()).hash});
  await waitForText(result(other), "the original");
}));
