// The running service as a test sees it: calls with the app's key, the test clock, and the mails that left.
import fs from "node:fs";
import path from "node:path";

export const { BASE_URL, APP_ID, API_KEY, OPERATOR_KEY, MAILS, SCREENSHOTS } = process.env;
export const PASSWORD = "correct-horse-battery-7";

async function call(method, where, headers, body) {
  const answer = await fetch(BASE_URL + where, {
    method,
    headers: { "content-type": "application/json", ...headers },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${where} answered ${answer.status}: ${text}`);
  return text && JSON.parse(text);
}

/// Calls with the app's key, in a workspace when one is given.
export const byKey = (method, where, body, tenant) =>
  call(method, where, { "x-api-key": API_KEY, ...(tenant && { "x-tenant-id": tenant }) }, body);

/// Calls as the operator.
export const byOperator = (method, where, body) =>
  call(method, where, { authorization: `Bearer ${OPERATOR_KEY}` }, body);

/// Moves the test clock and does what is due; tells what time it is then.
export async function advance(seconds) {
  const { now } = await call("POST", "/admin/test-clock", { authorization: `Bearer ${OPERATOR_KEY}` }, { advanceSeconds: seconds });
  return new Date(now);
}

/// Does what is due, such as sending mails. The clock goes on meanwhile and never moves back, hence not by 0.
export const drain = () => advance(1);

/// Mails in a folder are written as they read, so that a link in one can be copied.
const textOf = (mail) => mail.replaceAll("\r\n", "\n");

/// The last link with a token that was mailed to somebody.
export async function mailedLink(email) {
  await drain();
  const names = fs.readdirSync(MAILS).filter((name) => name.endsWith(".eml")).sort().reverse();
  for (const name of names) {
    const text = textOf(fs.readFileSync(path.join(MAILS, name), "utf8"));
    const link = text.match(/https?:\/\/[^\s"<>]*token=[A-Za-z0-9._~-]+/);
    if (link && new RegExp(`^To: .*${email}`, "m").test(text)) return link[0];
  }
  throw new Error(`no mail to ${email} has a link with a token`);
}

async function workspace(name, email, more) {
  const owner = { email, firstName: "Ada", lastName: "Lovelace" };
  return (await byKey("POST", "/account/tenant", { name, owner, ...more })).id;
}

/// The owner of a new workspace, with a password.
export async function owner(email) {
  const tenant = await workspace("Analytical Engines", email);
  const token = new URL(await mailedLink(email)).searchParams.get("token");
  await call("PUT", "/auth/auth/password", {}, { token, password: PASSWORD });
  return { email, tenant };
}

/// A code with which somebody who signs in comes into the portals.
export async function handoverCode(email) {
  const page = { origin: "http://localhost:3000" };
  const credentials = { username: email, password: PASSWORD, appId: APP_ID, mode: "sdk" };
  const { session } = await call("POST", "/auth/auth/authenticate", page, credentials);
  const tokens = await call("POST", "/auth/token/direct", page, { session, appId: APP_ID, mode: "sdk" });
  const { code } = await call("POST", `/auth/handover/code/${APP_ID}`, page, { accessToken: tokens.access_token });
  return code;
}

/// A workspace asks somebody to join, as it does by itself: with a token of its own.
export async function invite(tenant, username) {
  const [host] = await byKey("GET", "/account/tenant/user", undefined, tenant);
  const wanted = { name: "Invitations", privileges: ["USER_WRITE"], tenantUserId: host.id };
  const { token } = await byKey("POST", "/account/api-token/workspace", wanted, tenant);
  await call("POST", "/account/tenant/user", { "x-api-key": token }, { username });
}

/// A further workspace for somebody; its id.
export const alsoIn = (email, name) => workspace(name, email, { muteNotifications: true });
