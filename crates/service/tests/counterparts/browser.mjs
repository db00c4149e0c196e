// People with Chromium on the hosted pages. Scripts are switched off but for passkeys, and every login ends at an app on
// another site, whose OpenID Connect library checks what it got. Ends with an exception that names the flow and the page.
import assert from "node:assert/strict";
import path from "node:path";
import { Secret, TOTP } from "otpauth";
import { startApp } from "./app.mjs";
import { field, focusedField, follow, heading, impatient, launch, press, type, visitor } from "./chromium.mjs";
import { spectator } from "./looks.mjs";
import { BASE_URL, PASSWORD, SCREENSHOTS, advance, alsoIn, byKey, invite, mailedLink, owner as makeOwner } from "./service.mjs";

const NEW_PASSWORD = "violet harbour lamb";
const app = await startApp({ name: "Difference Engine", tenantSelfSignup: true });
const browser = await launch();
const { look: takePicture, close } = await spectator(browser, SCREENSHOTS);
const flows = { password, keyboard, mistakes, workspaces, magicLink, reset, signUp, invitation, joining, secondFactor, lostPhone, passkey, policy, errors };
// Every form, sent twice on a slow line, without scripts and with them.
const forms = { password, mistakes, workspaces, magicLink, reset, signUp, invitation, joining, secondFactor, lostPhone };
let pass = "";

/// Each pass has its own people.
const called = (email) => pass + email;
const owner = (email) => makeOwner(called(email));
/// Pictures are taken of people who have time.
const look = (page, name) => pass || takePicture(page, name);

try {
  // ONLY="passkey signUp" runs just these.
  const wanted = process.env.ONLY?.split(" ") ?? Object.keys(flows);
  if (process.env.IMPATIENT) {
    const javaScriptEnabled = process.env.IMPATIENT === "with scripts";
    pass = "twice.";
    for (const name of wanted.filter((name) => forms[name])) await run(`${pass}${name}`, forms[name], { javaScriptEnabled });
  } else {
    for (const name of wanted) await run(name, flows[name], { javaScriptEnabled: flows[name] === passkey });
  }
  await close();
} finally {
  await browser.close();
  app.close();
}

async function run(name, flow, options) {
  const page = await visitor(browser, options);
  if (pass) await impatient(page);
  try {
    await flow(page);
    assert.deepEqual(page.refused, [], "a page's policy refused something");
  } catch (error) {
    if (SCREENSHOTS) await page.screenshot({ path: path.join(SCREENSHOTS, `failed-${name}.png`) });
    const text = await page.locator("body").innerText();
    console.error(`The flow "${name}" stopped at ${page.url()}, which says:\n\n${text}\n\nRefused: ${page.refused.join("\n")}\n`);
    throw error;
  } finally {
    await page.context().close();
  }
}

/// From the app's own page to the page that asks for the password.
async function name(page, email, link = "Sign in") {
  await page.goto(app.origin);
  await follow(page, link);
  await heading(page, "Sign in to Difference Engine");
  await type(page, "Email address", email);
  await press(page, "Continue");
}

async function signIn(page, email, secret = PASSWORD) {
  await name(page, email);
  await type(page, "Password", secret);
  await press(page, "Sign in");
}

/// Back in the app, which believes the tokens.
async function welcome(page, email) {
  await heading(page, `Welcome, ${email}`);
  assert.ok(page.url().startsWith(app.callback));
  assert.equal(app.tokens.claims().email, email);
}

async function password(page) {
  const { email } = await owner("password@customer.example");
  await page.goto(app.origin);
  await follow(page, "Sign in");
  await heading(page, "Sign in to Difference Engine");
  await look(page, "identifier");
  await type(page, "Email address", email);
  await press(page, "Continue");
  await field(page, "Password");
  await look(page, "password");
  await type(page, "Password", PASSWORD);
  await press(page, "Sign in");
  await welcome(page, email);
  // Signed in, there is nothing to ask, unless the app wants it.
  await page.goto(app.origin);
  await follow(page, "Sign in");
  await welcome(page, email);
  await page.goto(app.origin);
  await follow(page, "Sign in again");
  await heading(page, "Sign in to Difference Engine");
  await page.goto(app.origin);
  await follow(page, "Sign out");
  await heading(page, "Sign in to Difference Engine");
  await page.goto(app.origin);
  await follow(page, "Sign in");
  await heading(page, "Sign in to Difference Engine");
}

/// Nothing but keys, from the app's link to the app.
async function keyboard(page) {
  const { email } = await owner("keyboard@customer.example");
  await page.goto(app.origin);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await heading(page, "Sign in to Difference Engine");
  await focusedField(page, "Email address");
  await page.keyboard.type(email);
  await page.keyboard.press("Enter");
  await focusedField(page, "Password");
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await page.getByText("Incorrect email address or password.").waitFor();
  // Every stop shows where the keys are: another way is three stops away.
  const focused = page.locator(":focus");
  await page.keyboard.press("Tab");
  assert.equal(await focused.innerText(), "Sign in");
  assert.notEqual(await focused.evaluate((element) => getComputedStyle(element).outlineStyle), "none");
  await page.keyboard.press("Shift+Tab");
  await focusedField(page, "Password");
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press("Enter");
  await welcome(page, email);
}

async function mistakes(page) {
  const { email } = await owner("mistakes@customer.example");
  await page.goto(app.origin);
  await follow(page, "Sign in");
  // What the browser takes for an address need not be one.
  await type(page, "Email address", "ada..lovelace@customer.example");
  await press(page, "Continue");
  await page.getByText("Enter a valid email address, such as ada@example.com.").waitFor();
  await look(page, "identifier-error");
  await type(page, "Email address", email);
  await press(page, "Continue");
  await type(page, "Password", "not this one");
  await press(page, "Sign in");
  await page.getByText("Incorrect email address or password.").waitFor();
  await look(page, "password-error");
  await type(page, "Password", PASSWORD);
  await press(page, "Sign in");
  await welcome(page, email);
  // Going back sends no form again.
  await page.goBack();
  await heading(page, "Sign in to Difference Engine");
}

async function workspaces(page) {
  const { email } = await owner("several.workspaces.and.a.rather.long.address@subsidiary.customer.example");
  const long = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz & Söhne";
  const tenant = await alsoIn(email, long);
  await signIn(page, email);
  await heading(page, "Choose a workspace");
  await look(page, "workspaces");
  await press(page, long);
  await welcome(page, email);
  const claims = JSON.parse(Buffer.from(app.tokens.access_token.split(".")[1], "base64url"));
  assert.equal(claims.tid, tenant);
}

async function magicLink(page) {
  const { email } = await owner("link@customer.example");
  await name(page, email);
  await press(page, "Email me a sign-in link");
  await heading(page, "Check your inbox");
  await look(page, "link-sent");
  const link = await mailedLink(email);
  await page.goto(link);
  await heading(page, "Sign in to Difference Engine");
  await look(page, "magic-link");
  await press(page, "Sign in");
  await welcome(page, email);
  await page.goto(link);
  await heading(page, "This link no longer works");
  await look(page, "link-over");
}

async function reset(page) {
  const { email } = await owner("reset@customer.example");
  await name(page, email);
  await follow(page, "Forgot your password?");
  await heading(page, "Reset your password");
  await look(page, "forgot");
  await press(page, "Email me a link");
  await heading(page, "Check your inbox");
  await page.goto(await mailedLink(email));
  await heading(page, "Choose a new password");
  await look(page, "new-password");
  await type(page, "Password", "password");
  await press(page, "Set password");
  await page.getByText("Password is").waitFor();
  await look(page, "new-password-error");
  await type(page, "Password", NEW_PASSWORD);
  await press(page, "Set password");
  await welcome(page, email);
  const elsewhere = await visitor(browser);
  await signIn(elsewhere, email, NEW_PASSWORD);
  await welcome(elsewhere, email);
  await elsewhere.context().close();
}

async function signUp(page) {
  const email = called("new@customer.example");
  await page.goto(app.origin);
  await follow(page, "Sign in");
  await follow(page, "Create an account");
  await heading(page, "Sign up for Difference Engine");
  await look(page, "sign-up");
  await type(page, "First name", "Grace");
  await type(page, "Email address", email);
  await press(page, "Create an account");
  await heading(page, "Check your inbox");
  await look(page, "sign-up-sent");
  await page.goto(await mailedLink(email));
  await heading(page, "Welcome to Difference Engine");
  await look(page, "sign-up-password");
  await type(page, "Password", NEW_PASSWORD);
  await type(page, "Workspace name", "Compilers");
  await press(page, "Set password");
  await welcome(page, email);
}

async function invitation(page) {
  const { tenant } = await owner("host@customer.example");
  const email = called("guest@customer.example");
  await byKey("POST", "/account/tenant/user", { username: email, role: "MEMBER" }, tenant);
  await page.goto(await mailedLink(email));
  await heading(page, "Welcome to Difference Engine");
  await look(page, "invitation");
  await type(page, "Password", NEW_PASSWORD);
  await press(page, "Set password");
  // The app did not begin this login, and says so; the next one needs no password.
  await page.waitForURL(`${app.callback}?code=*`);
  await page.goto(`${app.origin}/login`);
  await welcome(page, email);
}

/// Somebody with an account is asked into one more workspace, signs in and joins; and declines another.
async function joining(page) {
  const [{ tenant }, { email }] = [await owner("inviting@customer.example"), await owner("joining@customer.example")];
  await invite(tenant, email);
  await page.goto(await mailedLink(email));
  await heading(page, "Join a workspace");
  await look(page, "join");
  await follow(page, "Sign in to join");
  await press(page, "Continue");
  await type(page, "Password", PASSWORD);
  await press(page, "Sign in");
  await page.getByText(`You are signed in as ${email}.`).waitFor();
  await look(page, "join-signed-in");
  await press(page, "Join");
  await heading(page, "Choose a workspace");
  const { tenant: other } = await owner("unwanted@customer.example");
  await invite(other, email);
  await page.goto(await mailedLink(email));
  await heading(page, "Join a workspace");
  await press(page, "Decline");
  await heading(page, "Invitation declined");
}

/// The code that an authenticator app shows at this moment of the test clock.
async function codeOf(secret) {
  const now = await advance(30);
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: now.getTime() });
}

/// Sets up an authenticator app during a login, and tells its secret and the backup code.
async function setUpFactor(page, picture) {
  await heading(page, "Set up two-step verification");
  if (picture) await look(page, "mfa-choice");
  await press(page, "Use an authenticator app");
  await field(page, "Code");
  if (picture) await look(page, "mfa-app");
  const secret = (await page.locator(".highlight").innerText()).replaceAll(" ", "");
  await type(page, "Code", await codeOf(secret));
  await press(page, "Continue");
  await heading(page, "Save your backup code");
  if (picture) await look(page, "mfa-backup-code");
  const backupCode = await page.locator(".highlight").innerText();
  await press(page, "I have saved it");
  return { secret, backupCode };
}

async function secondFactor(page) {
  const { email, tenant } = await owner("factor@customer.example");
  await byKey("PUT", `/account/tenant/${tenant}`, { mfa: true });
  await signIn(page, email);
  const { secret } = await setUpFactor(page, true);
  await welcome(page, email);

  await page.context().clearCookies();
  await signIn(page, email);
  await heading(page, "Enter your code");
  await look(page, "mfa");
  await type(page, "Code", "000000");
  await press(page, "Continue");
  await page.getByText("The code is incorrect, has expired, or has already been used.").waitFor();
  await look(page, "mfa-error");
  await type(page, "Code", await codeOf(secret));
  await press(page, "Continue");
  await welcome(page, email);
}

async function lostPhone(page) {
  const { email, tenant } = await owner("lost@customer.example");
  await byKey("PUT", `/account/tenant/${tenant}`, { mfa: true });
  await signIn(page, email);
  const { backupCode } = await setUpFactor(page);
  await welcome(page, email);

  await page.context().clearCookies();
  await signIn(page, email);
  await follow(page, "Use your backup code");
  await field(page, "Backup code");
  await look(page, "mfa-backup");
  await type(page, "Backup code", backupCode);
  await press(page, "Continue");
  await heading(page, "Set up two-step verification");
  await type(page, "Phone number", "+49 170 1234567");
  await press(page, "Get codes by SMS");
  await field(page, "Code");
  await look(page, "mfa-phone");
  await follow(page, "Choose another method");
  await setUpFactor(page);
  await welcome(page, email);
}

async function passkey(page) {
  const { email } = await owner("passkey@customer.example");
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("WebAuthn.enable");
  const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true };
  await devtools.send("WebAuthn.addVirtualAuthenticator", { options: { ...options, automaticPresenceSimulation: true } });

  await page.goto(app.origin);
  await follow(page, "Sign in");
  await press(page, "Sign in with a passkey");
  await page.getByText("No passkey was used.").waitFor();
  await look(page, "passkey-none");
  await follow(page, "Set up a passkey");
  await heading(page, "Set up a passkey");
  await look(page, "passkey-link");
  await type(page, "Email address", email);
  await press(page, "Email me a link");
  await heading(page, "Check your inbox");
  const link = await mailedLink(email);
  const scriptless = await visitor(browser);
  await scriptless.goto(link);
  await scriptless.locator("noscript p").waitFor();
  await scriptless.context().close();
  await page.goto(link);
  await heading(page, "Set up a passkey");
  await look(page, "passkey-setup");
  await press(page, "Set up a passkey");
  await heading(page, "Your passkey is ready");
  await look(page, "passkey-ready");

  await page.goto(app.origin);
  await follow(page, "Sign in");
  await press(page, "Sign in with a passkey");
  await welcome(page, email);
}

/// The page's policy names the app, and the browser lets a form end nowhere else.
async function policy(page) {
  const { email } = await owner("policy@customer.example");
  await page.route("**/auth/login/password?*", async (route) => {
    const response = await route.fetch();
    const headers = response.headers();
    const shown = headers["content-security-policy"];
    assert.ok(shown.includes(`form-action 'self' ${app.origin};`), shown);
    await route.fulfill({ response, headers: { ...headers, "content-security-policy": shown.replace(app.origin, "") } });
  });
  await name(page, email);
  await field(page, "Password");
  // What a redirect leads to is not intercepted.
  await page.reload();
  await type(page, "Password", PASSWORD);
  const refusal = page.waitForEvent("console", (message) => message.text().includes("form-action"));
  await press(page, "Sign in");
  await refusal;
  assert.ok(page.url().startsWith(BASE_URL), page.url());
  page.refused = [];
}

/// What people see when something is wrong with a request.
async function errors(page) {
  await page.goto(`${BASE_URL}/auth/authorize?client_id=nobody&redirect_uri=https%3A%2F%2Fevil.example`);
  await heading(page, "This request could not be completed");
  await look(page, "error");
  await page.goto(`${BASE_URL}/auth/login/set-password?token=nonsense`);
  await heading(page, "This link no longer works");
  await look(page, "link-unknown");
  // An app that says nowhere to go on to has a page of its own for whoever signs out.
  await byKey("PUT", "/account/app", { defaultCallbackUri: null });
  await page.goto(app.origin);
  await follow(page, "Sign out");
  await heading(page, "Signed out");
  await look(page, "signed-out");
  await byKey("PUT", "/account/app", { defaultCallbackUri: app.callback });
}
