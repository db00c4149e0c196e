// oidc-provider, an OpenID Connect provider that the OpenID Foundation certified, as the provider that people of an app sign in with: by
// query and by a posted form, with each algorithm, and with keys that are rolled over. Every page of the way is looked at by eye and by axe.
import assert from "node:assert/strict";
import http from "node:http";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";
import { startApp } from "./app.mjs";
import { follow, heading, launch, press, type, visitor } from "./chromium.mjs";
import { spectator } from "./looks.mjs";
import { BASE_URL, SCREENSHOTS, byKey, owner } from "./service.mjs";

const issuer = `http://127.0.0.1:${process.env.OPENID_PORT}`;
const SECRET = "a secret: with %characters& of all kinds";

const key = async (alg, kid) => ({ ...(await exportJWK((await generateKeyPair(alg, { extractable: true })).privateKey)), alg, kid, use: "sig" });

function provider(keys, clients) {
  const claims = { openid: ["sub"], email: ["email", "email_verified"], profile: ["given_name", "family_name"] };
  const person = (sub) => ({ sub, email: sub, email_verified: true, given_name: "Ada", family_name: "Lovelace" });
  return new Provider(issuer, {
    clients, claims, jwks: { keys }, pkce: { required: () => true },
    enabledJWA: { idTokenSigningAlgValues: ["RS256", "PS256", "ES256", "EdDSA"] },
    findAccount: (_, id) => ({ accountId: id, claims: async () => person(id) }),
    cookies: { keys: ["for tests"] },
  }).callback();
}

const client = (client_id, path, alg) => ({
  client_id, client_secret: SECRET, redirect_uris: [`${BASE_URL}/auth/federation/${path}/callback`], id_token_signed_response_alg: alg,
});

async function signIn(page, app, button, email) {
  await page.goto(`${app.origin}/login`);
  await follow(page, button);
  await page.locator("input[name=login]").fill(email);
  await page.locator("input[name=password]").fill("anything");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, `Welcome, ${email}`);
}

/// What people see who cannot go on with a provider: each page once.
async function lookAround() {
  const page = await visitor(browser);
  // Somebody who says no to the provider.
  await page.goto(`${app.origin}/login`);
  await follow(page, "Continue with Acme");
  await page.getByRole("link", { name: "Cancel" }).click();
  await heading(page, "This request could not be completed");
  await look(page, "provider-canceled");
  await follow(page, "Back to sign-in");
  await heading(page, "Sign in to My app");
  // A provider that does not answer.
  const { id } = await byKey("POST", "/account/federation/connection", {
    type: "oidc", name: "Nobody", issuer: "http://127.0.0.1:1", clientId: "corp", clientSecret: SECRET,
  });
  await byKey("PUT", `/account/tenant/${ada.tenant}`, { federationConnection: id });
  await page.goto(`${app.origin}/login?federation_connection=${id}`);
  await heading(page, "Something went wrong");
  await look(page, "provider-unreachable");
  // One that was turned off while somebody was about to choose it.
  await page.goto(`${app.origin}/login`);
  await byKey("PUT", "/account/app", { socialOneSsoEnabled: false });
  await follow(page, "Continue with Acme");
  await heading(page, "This request could not be completed");
  await look(page, "provider-off");
  // Somebody whom nobody knows, where nobody may sign up: the app's own page for them.
  await byKey("PUT", "/account/app", { socialOneSsoEnabled: true, tenantSelfSignup: false });
  await page.goto(`${app.origin}/login?force_federation=social-one`);
  await page.locator("input[name=login]").fill("nobody@new.example");
  await page.locator("input[name=password]").fill("anything");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "This request could not be completed");
  await look(page, "provider-unknown-person");
  assert.deepEqual(page.refused, [], "a page's policy refused something");
  await page.context().close();
}

const ada = await owner("ada@customer.example");
const connection = (await byKey("POST", "/account/federation/connection", {
  type: "oidc", name: "Directory", issuer, clientId: "corp", clientSecret: SECRET,
})).id;
const clients = [client("one", "social-one", "RS256"), client("two", "social-two", "ES256"), client("corp", `oidc/${connection}`, "EdDSA")];
const keys = await Promise.all([key("RS256", "a"), key("RS256", "b"), key("ES256", "c"), key("EdDSA", "d")]);
let answer = provider(keys, clients);
const server = http.createServer((request, response) => answer(request, response));
await new Promise((ready) => server.listen(process.env.OPENID_PORT, "127.0.0.1", ready));
await byKey("PUT", "/account/app/credentials", {
  socialOneClientId: "one", socialOneClientSecret: SECRET, socialTwoClientId: "two", socialTwoClientSecret: SECRET,
});
const app = await startApp({ requirePkce: true, socialOneSsoEnabled: true, socialTwoSsoEnabled: true });
const browser = await launch();
const { look, close } = await spectator(browser, SCREENSHOTS && `${SCREENSHOTS}-oidc`);
try {
  await signIn(await visitor(browser), app, "Continue with Acme", ada.email);
  const { sub } = app.tokens.claims();
  // The form posts itself with scripts, and by its button without.
  await signIn(await visitor(browser, { javaScriptEnabled: true }), app, "Continue with Pear", ada.email);
  assert.equal(app.tokens.claims().sub, sub);
  // Another key signs, which was published before.
  answer = provider([keys[1], keys[2], keys[3]], clients);
  await signIn(await visitor(browser), app, "Continue with Acme", ada.email);
  // Somebody new signs up, without a mail.
  const page = await visitor(browser);
  await page.goto(`${app.origin}/login`);
  await heading(page, "Sign in to My app");
  await look(page, "identifier-providers");
  await follow(page, "Continue with Acme");
  await page.locator("input[name=login]").fill("eve@new.example");
  await page.locator("input[name=password]").fill("anything");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Sign up for My app");
  await look(page, "provider-sign-up");
  await type(page, "Workspace name", "Eve & Co");
  await press(page, "Create an account");
  await heading(page, "Welcome, eve@new.example");
  // A workspace's own directory: typing the address leads there.
  await byKey("PUT", `/account/tenant/${ada.tenant}`, { federationConnection: connection });
  const member = await visitor(browser);
  await member.goto(`${app.origin}/login`);
  await type(member, "Email address", ada.email);
  await press(member, "Continue");
  await member.locator("input[name=login]").fill(ada.email);
  await member.locator("input[name=password]").fill("anything");
  await member.getByRole("button", { name: "Sign-in" }).click();
  await member.getByRole("button", { name: "Continue" }).click();
  await heading(member, `Welcome, ${ada.email}`);
  assert.equal(app.tokens.claims().sub, sub);
  await lookAround();
  await close();
} finally {
  await browser.close();
  app.close();
  server.close();
}
