// How a page looks and reads: a picture of it light and dark, on a phone and on a desktop, the accessibility rules of axe,
// and no sideways scrolling however narrow the window.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const WINDOWS = { phone: { width: 360, height: 740 }, desktop: { width: 1280, height: 800 } };
const NARROWEST = 320;

/// Looks at pages into `folder`, or not at all without one.
export async function spectator(browser, folder) {
  if (!folder) return { look: async () => {}, close: async () => {} };
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  const context = await browser.newContext();
  const seen = new Set();

  /// Shows the same page in a browser of its own, which runs scripts, whatever the visitor's does.
  async function look(visited, name) {
    assert.ok(!seen.has(name), `two pages are called ${name}`);
    seen.add(name);
    const [url, body] = [visited.url(), await visited.content()];
    const page = await context.newPage();
    // A form that sends itself stays where it is, to be looked at.
    await page.route("**/cloud-views/form.js", (route) => route.fulfill({ body: "", contentType: "text/javascript" }));
    await page.route(url, (route) => route.fulfill({ body, contentType: "text/html; charset=utf-8" }));
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const [device, size] of Object.entries(WINDOWS)) {
        await page.setViewportSize(size);
        if (page.url() !== url) await page.goto(url);
        await page.screenshot({ path: path.join(folder, `${name}-${colorScheme}-${device}.png`), fullPage: true });
      }
      if (!(await page.evaluate(() => window.axe))) await page.addScriptTag({ path: AXE });
      const found = await page.evaluate((values) => axe.run({ runOnly: { type: "tag", values } }), RULES);
      const problems = found.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(" ")}`);
      assert.deepEqual(problems, [], `axe about ${name}, ${colorScheme}`);
    }
    await page.setViewportSize({ width: NARROWEST, height: 600 });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= NARROWEST, `${name} is ${width} wide in a window of ${NARROWEST}`);
    await page.close();
  }
  return { look, close: () => context.close() };
}
