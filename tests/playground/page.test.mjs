// The page: its link, its layout, and its accessibility.

import assert from "node:assert/strict";
import {test} from "node:test";

import {AXE, SIMPLE, open, picture, result, waitForText, withBrowser} from "./browser.mjs";

/** Made by the page of version 0.2.0, with the rules of `SIMPLE`. */
const OLD_LINK = "#NY-xbsMwDER_heAsI2mLdOBYoOgPJOjQZFBtwhYiS4FENTEM_3spu510dzo9ijOm4jkjoXejk0znANDAKXmCXdUAa4E2Xe_mYEcmyO5hwLYSE-nRxhLEQAlOCEYXirCBdCsErwa-S8oaH7Tv-0hwfFvOAQ1mbmPodPjL3mBvhe92Uvdk8B7TldOmM3O3CUlsRw2_Zry6oKFGbLtJUUlfryX-4TQhHQy21vt_hthrXfJ5XylWyqrVjCxDrKCP96NSblYGNbuBvY_qB6WvCHw0fzs2riPY0M0cFlwuBn3staL9ul5yMqyfrMEnXpZf";

test("a link restores the state", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  await page.getByLabel("Duration").fill("20");
  await waitForText(result(page), "6 of 20 admitted");
  await page.getByRole("button", {name: "Copy link"}).click();
  await waitForText(page.locator("#message"), /Copied|address bar/);
  const other = await open(browser, {hash: new URL(page.url()).hash});
  await waitForText(result(other), "6 of 20 admitted");
  assert.equal(await other.getByLabel("Duration").inputValue(), "20");
}));

test("a link of an earlier version restores the state", () => withBrowser(async (browser) => {
  const page = await open(browser, {hash: OLD_LINK});
  const shown = (name) => result(page).getByRole("article").filter({has: page.getByRole("heading", {name, exact: true})});
  await waitForText(shown("as written"), "7 of 30 admitted");
  await waitForText(shown("fixed window (W)"), "6 of 30 admitted");
  assert.equal(await page.getByLabel("requests per second").inputValue(), "1");
  assert.equal(await page.getByLabel("to path").inputValue(), "/hello");
}));

test("the result is on the first screen of every example", () => withBrowser(async (browser) => {
  for (const [width, height] of [[1300, 1000], [400, 800]]) {
    const page = await open(browser, {viewport: {width, height}});
    for (const example of await page.locator("#preset option").evaluateAll((all) => all.map((it) => it.value).filter((it) => it !== ""))) {
      await page.locator("#preset").selectOption(example);
      await page.waitForSelector("html[data-ready]");
      assert.equal(await page.evaluate(() => scrollY), 0);
      for (const part of [".plot", ".counts", ".cm-editor"]) {
        const box = await page.locator(part).first().boundingBox();
        const where = `example ${example}, ${width} × ${height}: ${part} ${JSON.stringify(box)}`;
        assert.ok(box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height, where);
      }
    }
    await page.close();
  }
}));

test("links of the book open its examples", () => withBrowser(async (browser) => {
  const shipped = await open(browser, {hash: "#example=examples/in-flight.yaml"});
  await waitForText(shipped.locator("#editor"), "at-a-time");
  const rules = Buffer.from("# größe\nlimits:\n- Url: /orgs/{org}\n  rules: [{name: size, actor: all, unit: day, rpu: 3}]\n").toString("base64url");
  const told = await open(browser, {hash: `#rules=${rules}`});
  await waitForText(told.locator("#editor"), "/orgs/{org}");
  assert.equal(await told.getByLabel("to path").inputValue(), "/orgs/x");
}));

test("an unreadable link is reported", () => withBrowser(async (browser) => {
  for (const hash of ["#%", "#AAAA", "#rules=%", "#example=none", "#!!!!", `#${"A".repeat(5000)}`]) {
    const page = await open(browser, {hash});
    await waitForText(page.locator("#message"), "holds no readable experiment");
    await waitForText(result(page), "requests in");
    await page.close();
  }
  const strange = {rules: 7, seconds: "<b>", gateways: null, streams: [{kind: "evil", path: {}, headers: 3}, 5], algorithms: "W"};
  await waitForText(result(await open(browser, {state: strange})), "requests in");
}));

test("text in a link is never markup", () => withBrowser(async (browser) => {
  const attack = "<img src=x onerror=alert(1)>";
  const streams = [{...SIMPLE.streams[0], path: `/${attack}`, headers: `x-account-id: ${attack}`}];
  const rules = `${SIMPLE.rules}# ${attack}`;
  const page = await open(browser, {state: {...SIMPLE, streams, rules}});
  page.on("dialog", () => assert.fail("a script of the link ran"));
  await page.getByRole("button", {name: /Why was/}).first().click();
  await waitForText(page.getByLabel("Explanation", {exact: true}), attack);
  assert.equal(await page.locator("img").count(), 0);
}));

test("the page is accessible and fits its width in both colour schemes", () => withBrowser(async (browser) => {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [400, 1400]) {
      const page = await open(browser, {state: {...SIMPLE, algorithms: ["", "W"]}, colorScheme, viewport: {width, height: 900}});
      await waitForText(result(page), "7 of 30 admitted");
      if (colorScheme === "light" && width === 1400) await picture(page, "playground");
      await page.getByRole("button", {name: /Why was/}).first().click();
      await page.evaluate(() => document.querySelectorAll("details").forEach((it) => (it.open = true)));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${width} px: ${wide} px too wide`);
      await page.addScriptTag({path: AXE});
      const {violations} = await page.evaluate(() => axe.run());
      const found = violations.map(({id, nodes}) => `${id}: ${nodes.map((it) => it.html).join("\n")}`);
      assert.deepEqual(found, [], `${width} px, ${colorScheme}`);
      await page.close();
    }
  }
}));

test("every control is reachable by keyboard", () => withBrowser(async (browser) => {
  const page = await open(browser, {state: SIMPLE});
  await waitForText(result(page), "7 of 30 admitted");
  const reached = new Set();
  for (let step = 0; step < 80; step += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.textContent));
  }
  for (const place of ["copy", "preset", "seconds", "add", "moment", "algorithm", "Why?", "More", "Compare algorithms"]) assert.ok(reached.has(place), `${place} of ${[...reached]}`);
  assert.ok([...reached].some((it) => it.includes("cm-content")));
}));
