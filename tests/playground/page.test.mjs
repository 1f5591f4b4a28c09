// The page itself: its link, its looks, and whom it serves.

import assert from "node:assert/strict";
import {test} from "node:test";

import {AXE, SIMPLE, open, outcome, says, withBrowser} from "./browser.mjs";

test("a link holds everything", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  await page.getByLabel("Seconds").fill("20");
  await says(outcome(page), "6 of 20 admitted");
  await page.getByRole("button", {name: "Copy link"}).click();
  await says(page.locator("#said"), /Copied|address bar/);
  const other = await open(browser, {hash: new URL(page.url()).hash});
  await says(outcome(other), "6 of 20 admitted");
  assert.equal(await other.getByLabel("Seconds").inputValue(), "20");
}));

test("rubbish in a link is said to be, and does no harm", () => withBrowser(async (browser) => {
  for (const hash of ["#%", "#AAAA", "#!!!!", `#${"A".repeat(5000)}`]) {
    const page = await open(browser, {hash});
    await says(page.locator("#said"), "holds no experiment");
    await says(outcome(page), "requests, shown");
    await page.close();
  }
  const strange = {rules: 7, seconds: "<b>", gateways: null, streams: [{kind: "evil", path: {}, headers: 3}, 5], algorithms: "W"};
  await says(outcome(await open(browser, {state: strange})), "requests, shown");
}));

test("what a link says is text and never markup", () => withBrowser(async (browser) => {
  const attack = "<img src=x onerror=alert(1)>";
  const streams = [{...SIMPLE.streams[0], path: `/${attack}`, headers: `x-account-id: ${attack}`}];
  const rules = `${SIMPLE.rules}# ${attack}`;
  const page = await open(browser, {state: {...SIMPLE, streams, rules}});
  page.on("dialog", () => assert.fail("a script of the link ran"));
  await page.getByRole("button", {name: /Why was/}).first().click();
  await says(page.getByLabel("Why", {exact: true}), attack);
  assert.equal(await page.locator("img").count(), 0);
}));

test("it fits a small screen and helps those who cannot see it, in both schemes", () => withBrowser(async (browser) => {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [400, 1400]) {
      const page = await open(browser, {state: {...SIMPLE, algorithms: ["", "W"]}, colorScheme, viewport: {width, height: 900}});
      await says(outcome(page), "7 of 30 admitted");
      await page.getByRole("button", {name: /Why was/}).first().click();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${width} px: ${wide} px too wide`);
      await page.addScriptTag({path: AXE});
      const {violations} = await page.evaluate(() => axe.run());
      const told = violations.map(({id, nodes}) => `${id}: ${nodes.map((it) => it.html).join("\n")}`);
      assert.deepEqual(told, [], `${width} px, ${colorScheme}`);
      await page.close();
    }
  }
}));

test("all of it can be reached by the keyboard", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  await says(outcome(page), "7 of 30 admitted");
  const reached = new Set();
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.textContent));
  }
  for (const place of ["copy", "preset", "seconds", "add", "moment", "by", "Why?"]) assert.ok(reached.has(place), `${place} of ${[...reached]}`);
  assert.ok([...reached].some((it) => it.includes("cm-content")));
}));
