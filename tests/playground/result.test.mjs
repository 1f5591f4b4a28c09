// The shown result must be that of the rules.

import assert from "node:assert/strict";
import {test} from "node:test";

import {SIMPLE, open, result, waitForText, type, withBrowser} from "./browser.mjs";

test("algorithms can be compared", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  const shown = (name) => result(page).getByRole("article").filter({has: page.getByRole("heading", {name, exact: true})});
  // Five at once, and one more at 10 and at 20 seconds.
  await waitForText(shown("as written"), "7 of 30 admitted");
  await page.getByText("Compare algorithms").click();
  await page.getByLabel("token bucket (TB)").check();
  await waitForText(shown("token bucket (TB)"), "7 of 30 admitted");
  await page.getByLabel("fixed window (W)").check();
  await waitForText(shown("fixed window (W)"), "6 of 30 admitted");
  await page.getByLabel("sliding window (SW)").check();
  await waitForText(shown("sliding window (SW)"), "6 of 30 admitted");
  await page.getByLabel("leaky bucket (LB)").check();
  await waitForText(shown("leaky bucket (LB)"), "slots would be further apart");
  await page.getByRole("checkbox", {name: "as written"}).uncheck();
  await shown("as written").waitFor({state: "detached"});
}));

test("local rules admit more with more workers", () => withBrowser(async (browser) => {
  const rules = SIMPLE.rules.replace("algo: TB", "algo: TB, scope: local");
  const page = await open(browser, {state: {...SIMPLE, rules}});
  await waitForText(result(page), "7 of 30 admitted");
  await page.getByLabel("Workers per gateway").fill("4");
  await page.waitForFunction(() => Number(/(\d+) of 30 admitted/.exec(document.querySelector("#variants").textContent)?.[1]) > 14);
}));

test("a refusal is explained by mouse and by keyboard", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  await waitForText(result(page), "7 of 30 admitted");
  const over = page.locator(".u-over");
  const {width, height} = await over.boundingBox();
  await over.click({position: {x: (width * 7.1) / 30, y: height / 2}});
  await waitForText(page.locator("#interval"), "7.");
  const row = page.getByRole("row").filter({hasText: "refused"}).filter({hasText: "retry after 3 s"});
  await row.waitFor();
  await row.getByRole("button", {name: /Why was request 8 refused/}).press("Enter");
  const why = page.getByLabel("Explanation", {exact: true});
  await waitForText(why, "x-account-id");
  await waitForText(why.getByRole("row"), /six\s*refused\s*0 of 5\s*3/);
  await page.getByLabel("Time", {exact: true}).focus();
  await page.keyboard.press("Home");
  await waitForText(page.getByRole("region", {name: "Requests of this time"}), "admitted");
}));

test("an experiment beyond the limits shows an error until it is corrected", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  await page.getByLabel("requests per second").fill("1000000");
  await waitForText(result(page), "at most 100000 requests are allowed");
  await page.getByLabel("requests per second").fill("2");
  await waitForText(result(page), "of 60 admitted");
  await page.getByLabel("Gateways", {exact: true}).fill("1000");
  await waitForText(result(page), "found 1000 workers, 1 to 64 are allowed");
}));

test("every example of the page works", () => withBrowser(async (browser) => {
  const page = await open(browser);
  const examples = page.getByLabel("Example");
  const count = await examples.locator("option").count();
  assert.ok(count > 20);
  for (let number = 0; number + 1 < count; number += 1) {
    await examples.selectOption(`${number}`);
    await waitForText(page.locator("#problems"), /^(?!.*Line )/);
    await waitForText(result(page), /[1-9]\d* requests in/);
    // A rule in shadow refuses nothing, and one with `over` marks.
    const name = await examples.locator(`option[value="${number}"]`).textContent();
    const some = /shadow/.test(name) ? /[1-9]\d* admitted/ : /[1-9]\d* (delayed|refused|banned)/;
    await page.waitForFunction((text) => new RegExp(text).test(document.querySelector("#variants").textContent), some.source);
  }
}));

test("lines of a log are replayed", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: {...SIMPLE, streams: []}});
  await waitForText(result(page), "there are no requests");
  const line = (second) => `[2026-03-01T10:00:${String(second).padStart(2, "0")}.250Z] "GET / HTTP/1.1" 200 - 0 3 1 0 "-" "curl" "id" "example.com" "10.0.0.1:80"`;
  const json = '{"start_time": "2026-03-01T10:00:28.000Z", "method": "GET", "path": "/", "response_code": 200, "x-account-id": "ada"}';
  const lines = [...Array(28).keys()].map(line);
  const rules = SIMPLE.rules.replace("account", "all");
  await page.getByRole("textbox", {name: /Lines of an access log/}).fill([...lines, "no request", json].join("\n"));
  await waitForText(result(page), "1 of 30 lines of the log cannot be read, first line 29");
  await waitForText(result(page), "29 of 29 admitted");
  await type(page, rules);
  await waitForText(result(page), "7 of 29 admitted");
}));
