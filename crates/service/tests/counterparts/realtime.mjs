// A browser's EventSource on the realtime channel: it hears what changes, and stays away once its login has ended.
import assert from "node:assert/strict";
import http from "node:http";
import { launch, visitor } from "./chromium.mjs";
import { APP_ID, BASE_URL, PASSWORD, byKey, drain, owner } from "./service.mjs";

const ada = await owner("ada@customer.example");
const origin = { origin: "http://localhost:3000", "content-type": "application/json" };

async function post(where, headers, body) {
  const answer = await fetch(BASE_URL + where, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(answer.ok, true, `${where}: ${answer.status}`);
  return answer.json();
}

const signIn = { username: ada.email, password: PASSWORD, appId: APP_ID, mode: "sdk" };
const { session } = await post("/auth/auth/authenticate", origin, signIn);
const { access_token: accessToken } = await post("/auth/token/direct", origin, { session, appId: APP_ID, mode: "sdk" });
const bearer = { authorization: `Bearer ${accessToken}`, "x-app-id": APP_ID, "content-type": "application/json" };
const config = await (await fetch(`${BASE_URL}/v1/realtime/config`, { headers: { "x-app-id": APP_ID } })).json();
const { token } = await post(new URL(config.authorizeUrl).pathname, bearer, {});

// The app's own page, on an origin that the service does not know.
const site = http.createServer((_, response) => response.setHeader("content-type", "text/html").end("<p>app</p>"));
await new Promise((resolve) => site.listen(0, "localhost", resolve));
const browser = await launch();
try {
  const page = await visitor(browser, { javaScriptEnabled: true });
  await page.goto(`http://localhost:${site.address().port}/`);
  await page.evaluate((url) => {
    window.heard = [];
    window.stream = new EventSource(url);
    window.stream.onmessage = ({ data, lastEventId }) => window.heard.push({ ...JSON.parse(data), lastEventId });
    return new Promise((resolve, reject) => {
      window.stream.onopen = () => resolve();
      window.stream.onerror = () => reject(new Error("the stream did not open"));
    });
  }, `${config.url}?token=${token}`);
  await byKey("PUT", `/account/tenant/${ada.tenant}`, { name: "Renamed" });
  await drain();
  await page.waitForFunction(() => window.heard.length > 0, undefined, { polling: 100 });
  const [first] = await page.evaluate(() => window.heard);
  assert.deepEqual([first.type, first.workspaceId, first.data], ["user.state_changed", ada.tenant, { reason: "workspace" }]);
  assert.match(first.lastEventId, /^[1-9][0-9]*$/);

  const [member] = await byKey("GET", "/account/tenant/user", undefined, ada.tenant);
  await byKey("DELETE", `/account/tenant/user/${member.id}/sessions`, undefined, ada.tenant);
  await drain();
  await page.waitForFunction(() => window.stream.readyState === EventSource.CLOSED, undefined, { polling: 100, timeout: 20_000 });
} finally {
  await browser.close();
  site.close();
}
console.log("the browser heard it");
