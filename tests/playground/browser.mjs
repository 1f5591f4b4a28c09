// Opens the page in a headless Chromium, for the tests.

import assert from "node:assert/strict";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const {DIANA_PLAYGROUND, DIANA_PACKAGES, DIANA_CHROMIUM} = process.env;
const packages = createRequire(`${DIANA_PACKAGES}/package.json`);
const {chromium} = packages("playwright-core");

export const AXE = packages.resolve("axe-core/axe.min.js");
export const PAGE = pathToFileURL(DIANA_PLAYGROUND).href;

/** Rules and traffic with a result that is easy to compute by hand. */
export const SIMPLE = {
  rules: "limits:\n  - Url: /\n    rules:\n      - {name: six, actor: account, unit: minute, rpu: 6, burst: 5, algo: TB}\n",
  seconds: 30, gateways: 1, workers: 1, seed: 1, algorithms: [""],
  streams: [{kind: "steady", rate: 1, every: 1, callers: 1, takes: 5, status: 200, method: "GET", path: "/", headers: "x-account-id: a-{n}"}],
};

/** Starts a browser, passes it to `use`, and closes it. */
export async function withBrowser(use) {
  const browser = await chromium.launch({executablePath: DIANA_CHROMIUM, args: ["--no-sandbox"]});
  try {
    await use(browser);
  } finally {
    await browser.close();
  }
}

/** Opens the page. An error of the page, or a request to a server, fails the test. */
export async function open(browser, {state, hash, ...settings} = {}) {
  const page = await browser.newPage(settings);
  page.on("pageerror", (error) => assert.fail(error));
  page.on("request", (request) => assert.ok(/^(file|data|blob):/.test(request.url()), request.url()));
  await page.goto(PAGE + (hash ?? (state ? await link(page, state) : "")));
  await page.waitForSelector("html[data-ready]");
  return page;
}

/** The link to a state, in the format of the page. */
async function link(page, state) {
  const packed = await page.evaluate(async (text) => {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  }, JSON.stringify(state));
  return `#${packed}`;
}

/** A picture of the page, for its guide. */
export async function picture(page, name) {
  await page.screenshot({path: `${process.env.DIANA_SCREENSHOTS ?? "target/screenshots"}/${name}.png`});
}

/** Waits until an element shows a text. */
export async function waitForText(locator, pattern) {
  await locator.filter({hasText: pattern}).first().waitFor();
}

export const result = (page) => page.getByRole("region", {name: "Result"});

/** Replaces the rules through the keyboard. */
export async function type(page, rules) {
  const editor = page.getByRole("textbox", {name: "Rules, in YAML"});
  await editor.click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(rules);
  return editor;
}
