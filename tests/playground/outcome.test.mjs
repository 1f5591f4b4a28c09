// What becomes of traffic: what is told must be what the rules say.

import assert from "node:assert/strict";
import {test} from "node:test";

import {SIMPLE, open, outcome, says, type, withBrowser} from "./browser.mjs";

test("algorithms stand side by side", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  const shown = (name) => outcome(page).getByRole("article").filter({has: page.getByRole("heading", {name, exact: true})});
  // Five at once, and one more at 10 and at 20 seconds.
  await says(shown("as written"), "7 of 30 admitted");
  await page.getByLabel("token bucket (TB)").check();
  await says(shown("token bucket (TB)"), "7 of 30 admitted");
  await page.getByLabel("fixed window (W)").check();
  await says(shown("fixed window (W)"), "6 of 30 admitted");
  await page.getByLabel("sliding window (SW)").check();
  await says(shown("sliding window (SW)"), "6 of 30 admitted");
  await page.getByLabel("leaky bucket (LB)").check();
  await says(shown("leaky bucket (LB)"), "slots would be further apart");
  await page.getByRole("checkbox", {name: "as written"}).uncheck();
  await shown("as written").waitFor({state: "detached"});
}));

test("workers that count for themselves let more through", () => withBrowser(async (browser) => {
  const rules = SIMPLE.rules.replace("algo: TB", "algo: TB, scope: local");
  const page = await open(browser, {state: {...SIMPLE, rules}});
  await says(outcome(page), "7 of 30 admitted");
  await page.getByLabel("Workers each").fill("4");
  await page.waitForFunction(() => Number(/(\d+) of 30 admitted/.exec(document.querySelector("#variants").textContent)?.[1]) > 14);
}));

test("why a request was refused is told by clicks and by keys", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  await says(outcome(page), "7 of 30 admitted");
  const over = page.locator(".u-over");
  const {width, height} = await over.boundingBox();
  await over.click({position: {x: (width * 7.1) / 30, y: height / 2}});
  await says(page.locator("#moment-told"), "7.");
  const row = page.getByRole("row").filter({hasText: "refused"}).filter({hasText: "come again in 3 s"});
  await row.waitFor();
  await row.getByRole("button", {name: /Why was request 8 refused/}).press("Enter");
  const why = page.getByLabel("Why", {exact: true});
  await says(why, "x-account-id");
  await says(why.getByRole("row"), /six\s*refused\s*0 of 5\s*3/);
  await page.getByLabel("From second").focus();
  await page.keyboard.press("Home");
  await says(page.getByRole("region", {name: "Requests of this moment"}), "admitted");
}));

test("too much is refused, and anything else goes on", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  await page.getByLabel("a second").fill("1000000");
  await says(outcome(page), "more than 100000 requests");
  await page.getByLabel("a second").fill("2");
  await says(outcome(page), "of 60 admitted");
  await page.getByLabel("Gateways").fill("1000");
  await says(outcome(page), "there can be 1 to 64 workers");
}));

test("every example of the page works", () => withBrowser(async (browser) => {
  const page = await open(browser);
  const examples = page.getByLabel("Start from");
  const count = await examples.locator("option").count();
  assert.ok(count > 4);
  for (let number = 0; number + 1 < count; number += 1) {
    await examples.selectOption(`${number}`);
    await says(page.locator("#problems"), /^(?!.*Line )/);
    await says(outcome(page), /[1-9]\d* requests, shown/);
    await page.waitForFunction(() => /[1-9]\d* (refused|banned)|[1-9]\d* of them held/.test(document.querySelector("#variants").textContent));
  }
}));

test("lines of a log come as they did", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: {...SIMPLE, streams: []}});
  await says(outcome(page), "no request comes");
  const line = (second) => `[2026-03-01T10:00:${String(second).padStart(2, "0")}.250Z] "GET / HTTP/1.1" 200 - 0 3 1 0 "-" "curl" "id" "example.com" "10.0.0.1:80"`;
  const json = '{"start_time": "2026-03-01T10:00:28.000Z", "method": "GET", "path": "/", "response_code": 200, "x-account-id": "ada"}';
  const lines = [...Array(28).keys()].map(line);
  const rules = SIMPLE.rules.replace("account", "all");
  await page.getByRole("textbox", {name: /lines of an access log/}).fill([...lines, "no request", json].join("\n"));
  await says(outcome(page), "1 of 30 lines of the log tell of no request, such as line 29");
  await says(outcome(page), "29 of 29 admitted");
  await type(page, rules);
  await says(outcome(page), "7 of 29 admitted");
}));
