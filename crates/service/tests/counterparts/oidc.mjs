// openid-client, certified by the OpenID Foundation, signs somebody in, stays signed in and reads who it is. Every token is
// verified a second time with jose. Ends with an exception when either sees anything that it does not like.
import assert from "node:assert/strict";
import { createRemoteJWKSet, decodeProtectedHeader, errors, jwtVerify } from "jose";
import * as oidc from "openid-client";
import { startApp } from "./app.mjs";
import { heading, launch, press, type, visitor } from "./chromium.mjs";
import { APP_ID, BASE_URL, PASSWORD, owner } from "./service.mjs";

const app = await startApp({ requirePkce: true });
const ada = await owner("ada@customer.example");
const browser = await launch();
try {
  await flow();
} finally {
  await browser.close();
  app.close();
}

async function flow() {
  // Discovery says what this client uses.
  const known = app.config.serverMetadata();
  assert.equal(known.issuer, `${BASE_URL}/auth`);
  assert.ok(known.supportsPKCE() && known.authorization_response_iss_parameter_supported);

  const page = await visitor(browser);
  await page.goto(`${app.origin}/login`);
  await type(page, "Email address", ada.email);
  await press(page, "Continue");
  await type(page, "Password", PASSWORD);
  await press(page, "Sign in");
  await heading(page, "Welcome, ada@customer.example");
  const landed = new URL(page.url());
  const [first, login] = [app.tokens, app.login];
  const claims = first.claims();
  assert.equal(claims.email, ada.email);
  assert.ok(claims.nonce && claims.auth_time && claims.sid);
  await verified(first, claims.sub);

  const profile = await oidc.fetchUserInfo(app.config, first.access_token, claims.sub);
  assert.deepEqual([profile.sub, profile.email], [claims.sub, ada.email]);
  await assert.rejects(oidc.fetchUserInfo(app.config, first.access_token, "somebody else"), oidc.ClientError);

  const second = await oidc.refreshTokenGrant(app.config, first.refresh_token);
  assert.notEqual(second.refresh_token, first.refresh_token);
  await verified(second, claims.sub);
  assert.equal((await oidc.fetchUserInfo(app.config, second.access_token, claims.sub)).email, ada.email);

  await refused(oidc.refreshTokenGrant(app.config, second.access_token));
  // Somebody who is signed in comes back at once, and an error comes back as one.
  await page.goto(`${app.origin}/login?prompt=none`);
  await heading(page, "Welcome, ada@customer.example");
  const stranger = await visitor(browser);
  await stranger.goto(`${app.origin}/login?prompt=none`);
  assert.match(await stranger.locator("body").innerText(), /login_required/);

  await wrongAnswers(landed, login, second);
}

/// What a client has to notice by itself, and what the service has to.
async function wrongAnswers(landed, login, tokens) {
  const { state, nonce, verifier } = login;
  const right = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
  const grant = (url, wrong) => oidc.authorizationCodeGrant(app.config, url, { ...right, ...wrong });
  await assert.rejects(grant(landed, { expectedState: "another" }), oidc.ClientError, "another state");
  const elsewhere = new URL(landed);
  elsewhere.searchParams.set("iss", "https://evil.example");
  await assert.rejects(grant(elsewhere), oidc.ClientError, "another issuer");
  // A code that comes twice was stolen: all that came from it ends.
  await refused(grant(landed));
  await refused(oidc.refreshTokenGrant(app.config, tokens.refresh_token));
}

function refused(attempt) {
  const isRefusal = (problem) => problem instanceof oidc.ResponseBodyError && problem.error === "invalid_grant";
  return assert.rejects(attempt, isRefusal);
}

/// A second implementation agrees about each token, and refuses it for another audience or issuer.
async function verified(tokens, sub) {
  const keys = createRemoteJWKSet(new URL(app.config.serverMetadata().jwks_uri));
  const expected = { issuer: `${BASE_URL}/auth`, algorithms: ["PS256"], subject: sub };
  const id = await jwtVerify(tokens.id_token, keys, { ...expected, audience: APP_ID });
  assert.equal(id.payload.sub, sub);
  await assert.rejects(jwtVerify(tokens.id_token, keys, { ...expected, audience: "another" }), errors.JWTClaimValidationFailed);
  const access = await jwtVerify(tokens.access_token, keys, { ...expected, typ: "at+jwt" });
  assert.deepEqual([access.payload.sub, access.payload.aid, access.payload.tid], [sub, APP_ID, ada.tenant]);
  assert.equal(decodeProtectedHeader(tokens.refresh_token).typ, "refresh+jwt");
  await jwtVerify(tokens.refresh_token, keys, { algorithms: ["PS256"] });
  const forged = tokens.access_token.replace(/\.[^.]+\./, (part) => `${part.slice(0, -2)}A.`);
  await assert.rejects(jwtVerify(forged, keys, expected), errors.JOSEError);
}
