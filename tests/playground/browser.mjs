// The page in a headless Chromium, as each test wants it.

import assert from "node:assert/strict";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const {DIANA_PLAYGROUND, DIANA_PACKAGES, DIANA_CHROMIUM} = process.env;
const packages = createRequire(`${DIANA_PACKAGES}/package.json`);
const {chromium} = packages("playwright-core");

export const AXE = packages.resolve("axe-core/axe.min.js");
export const PAGE = pathToFileURL(DIANA_PLAYGROUND).href;

/** Rules and traffic of which anybody can say what becomes of them. */
export const SIMPLE = {
  rules: "limits:\n  - Url: /\n    rules:\n      - {name: six, actor: account, unit: minute, rpu: 6, burst: 5, algo: TB}\n",
  seconds: 30, gateways: 1, workers: 1, seed: 1, algorithms: [""],
  streams: [{kind: "steady", rate: 1, every: 1, callers: 1, takes: 5, status: 200, method: "GET", path: "/", headers: "x-account-id: a-{n}"}],
};

/** Has `use` see a browser, and closes it. */
export async function withBrowser(use) {
  const browser = await chromium.launch({executablePath: DIANA_CHROMIUM, args: ["--no-sandbox"]});
  try {
    await use(browser);
  } finally {
    await browser.close();
  }
}

/** Opens the page; whatever it complains of, or asks of anybody else, fails the test. */
export async function open(browser, {state, hash, ...settings} = {}) {
  const page = await browser.newPage(settings);
  page.on("pageerror", (error) => assert.fail(error));
  page.on("request", (request) => assert.ok(/^(file|data|blob):/.test(request.url()), request.url()));
  await page.goto(PAGE + (hash ?? (state ? await link(page, state) : "")));
  await page.waitForSelector("html[data-ready]");
  return page;
}

/** A link to a state, as the page itself makes them. */
async function link(page, state) {
  const packed = await page.evaluate(async (text) => {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  }, JSON.stringify(state));
  return `#${packed}`;
}

/** Waits until what is shown says so. */
export async function says(locator, pattern) {
  await locator.filter({hasText: pattern}).first().waitFor();
}

export const outcome = (page) => page.getByRole("region", {name: "What becomes of it"});

/** Selects all rules and types others, as a user would. */
export async function type(page, rules) {
  const editor = page.getByRole("textbox", {name: "Rules, in YAML"});
  await editor.click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(rules);
  return editor;
}
