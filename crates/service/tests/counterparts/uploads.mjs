// People who upload with Chromium from an app on another site: by a plain form without scripts, and by the scripts of a page,
// with `fetch` and with the progress that only XMLHttpRequest tells. What was uploaded is read by a page of the app, too.
// IN_BUCKET says that the forms are a storage's own, which takes one again until it is too old.
import assert from "node:assert/strict";
import crypto from "node:crypto";
import http from "node:http";
import { launch, press, visitor } from "./chromium.mjs";
import { BASE_URL, byKey } from "./service.mjs";

const { IN_BUCKET } = process.env;
// What looks like the end of a part is no end; and more than is written at a time.
const BYTES = Buffer.concat([Buffer.from("\r\n------WebKitFormBoundary\r\n--\r\n\0"), crypto.randomBytes(600_000), Buffer.from("\r\n--")]);
const DIGEST = crypto.createHash("sha256").update(BYTES).digest("hex");
const KIND = "application/octet-stream";

const owner = { email: "ada@customer.example", firstName: "Ada", lastName: "Lovelace" };
const { id: tenant } = await byKey("POST", "/account/tenant", { name: "Analytical Engines", owner, muteNotifications: true });
const prepare = (fileName) => byKey("POST", "/account/tenant/upload/prepare", { fileName, contentType: KIND }, tenant);
const finish = (form) => byKey("POST", "/account/tenant/upload/finish", { key: form.fields.key }, tenant);

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
const hidden = ([name, value]) => `<input type="hidden" name="${name}" value="${escaped(value)}">`;
let shown = "";
const app = http.createServer((_, answer) =>
  answer.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(`<!doctype html><title>The app</title>${shown}`));
await new Promise((ready) => app.listen(0, "127.0.0.1", ready));
const origin = `http://127.0.0.1:${app.address().port}`;

async function byForm(page) {
  const form = await prepare("Übersicht \"2\".bin");
  shown = `<form method="post" enctype="multipart/form-data" action="${form.url}">${Object.entries(form.fields).map(hidden).join("")}
    <input type="file" name="file"><button>Upload</button></form>`;
  await page.goto(origin);
  await page.locator("input[type=file]").setInputFiles({ name: "Größe; name=\"key\".bin", mimeType: "text/html", buffer: BYTES });
  const answered = page.waitForResponse((answer) => answer.request().method() === "POST");
  await press(page, "Upload");
  assert.equal((await answered).status(), 204);
  assert.equal(page.url(), `${origin}/`, "an answer without content leaves the page where it is");
  const read = await fetch(await finish(form));
  assert.deepEqual(Buffer.from(await read.arrayBuffer()), BYTES);
  assert.equal(read.headers.get("content-disposition"), "attachment; filename=\"_bersicht 2.bin\"; filename*=UTF-8''%C3%9Cbersicht%202.bin");
  if (IN_BUCKET) return;
  // Once is enough, and whoever sends it twice reads why.
  await press(page, "Upload");
  await page.waitForURL(form.url);
  assert.match(await page.locator("body").innerText(), /CONFLICT/);
}

/// Runs in the page of the app.
async function postByFetch({ form, base64 }) {
  const data = new FormData();
  for (const [name, value] of Object.entries(form.fields)) data.append(name, value);
  data.append("file", new Blob([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))]), "a.bin");
  const answer = await fetch(form.url, { method: "POST", body: data });
  return { status: answer.status, text: await answer.text() };
}

/// The same; whoever wants to know of progress has to be allowed to send first.
function postWithProgress({ form, base64 }) {
  const data = new FormData();
  for (const [name, value] of Object.entries(form.fields)) data.append(name, value);
  data.append("file", new Blob([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))]), "a.bin");
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    let sent = 0;
    request.upload.onprogress = (event) => { sent = event.loaded; };
    request.onload = () => resolve({ status: request.status, sent });
    request.onerror = () => reject(new Error("it was not sent, or its answer is not readable"));
    request.open("POST", form.url);
    request.send(data);
  });
}

async function readByFetch(address) {
  const answer = await fetch(address);
  const digest = await crypto.subtle.digest("SHA-256", await answer.arrayBuffer());
  return { status: answer.status, digest: Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("") };
}

async function byScript(page) {
  shown = "";
  await page.goto(origin);
  const base64 = BYTES.toString("base64");
  for (const post of [postByFetch, postWithProgress]) {
    const form = await prepare("a.bin");
    assert.ok(new URL(form.url).origin !== origin);
    const posted = await page.evaluate(post, { form, base64 });
    assert.equal(posted.status, 204);
    if (post === postWithProgress) assert.ok(posted.sent > BYTES.length, `${posted.sent} bytes were told of`);
    const address = await finish(form);
    assert.ok(address.startsWith(BASE_URL));
    assert.deepEqual(await page.evaluate(readByFetch, address), { status: 200, digest: DIGEST });
    if (IN_BUCKET) continue;
    const again = await page.evaluate(postByFetch, { form, base64 });
    assert.deepEqual([again.status, JSON.parse(again.text).error], [409, "CONFLICT"]);
  }
  assert.deepEqual(page.refused, []);
}

const browser = await launch();
try {
  await byForm(await visitor(browser));
  await byScript(await visitor(browser, { javaScriptEnabled: true }));
} finally {
  await browser.close();
  app.close();
}
