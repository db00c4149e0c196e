// Debian's Chromium, driven by Playwright.
import assert from "node:assert/strict";
import fs from "node:fs";
import { chromium } from "playwright-core";

const EXECUTABLE = "/usr/bin/chromium";

export function launch() {
  if (!fs.existsSync(EXECUTABLE)) throw new Error(`${EXECUTABLE} is missing: scripts/prepare installs it`);
  // Nothing but what a page asks for may leave the machine.
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath: EXECUTABLE, headless: true, args, timeout: 60_000 });
}

/// Somebody's browser with one page. It fails on whatever the pages' own policy refuses.
export async function visitor(browser, options = {}) {
  const context = await browser.newContext({ javaScriptEnabled: false, ...options });
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  page.refused = [];
  page.on("console", (message) => {
    if (/Content Security Policy|Refused to/.test(message.text())) page.refused.push(message.text());
  });
  page.on("pageerror", (error) => page.refused.push(String(error)));
  return page;
}

/// Waits for a page with this title, and no other.
export async function heading(page, name) {
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  assert.equal(await page.locator("h1").count(), 1, `the titles of ${page.url()}`);
  assert.deepEqual(page.refused, [], `on ${page.url()}`);
}

/// Waits for a field to type into.
export const field = (page, label) => page.getByLabel(label, { exact: true }).waitFor();

/// Waits until keys go into this field: a page can be seen a moment before its first field has the focus.
export const focusedField = (page, label) =>
  page.getByLabel(label, { exact: true }).and(page.locator(":focus")).waitFor();

/// Presses a button; somebody impatient does so twice, before the first answer has come.
export async function press(page, name) {
  const button = page.getByRole("button", { name, exact: true });
  await button.click({ noWaitAfter: true });
  if (!page.isImpatient) return;
  await new Promise((resolve) => setTimeout(resolve, 120));
  // A script may have seen to it that there is nothing to press any more.
  await button.click({ noWaitAfter: true, timeout: 500 }).catch(() => {});
}

/// Puts somebody on a slow line, who presses every button twice.
export async function impatient(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.emulateNetworkConditions", { offline: false, latency: 200, downloadThroughput: -1, uploadThroughput: -1 });
  page.isImpatient = true;
}

export const follow = (page, name) => page.getByRole("link", { name, exact: true }).click();
export const type = (page, label, text) => page.getByLabel(label, { exact: true }).fill(text);
