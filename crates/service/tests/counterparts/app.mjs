// An app whose people sign in at the service, with openid-client, a library that the OpenID Foundation certified.
//
// It lives on another site than the service (127.0.0.1 against localhost), as real apps do: the browser applies its rules
// about cookies and about where forms may lead.
import http from "node:http";
import * as oidc from "openid-client";
import { APP_ID, BASE_URL, byKey } from "./service.mjs";

const html = (body) => `<!doctype html><html lang="en"><title>The app</title><body>${body}</body></html>`;

/// Starts the app and registers its callback. `settings` are changes of the app's settings at the service.
export async function startApp(settings = {}) {
  const server = http.createServer();
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const origin = `http://127.0.0.1:${server.address().port}`;
  const callback = `${origin}/callback`;
  await byKey("PUT", "/account/app", { redirectUris: [callback], defaultCallbackUri: callback, ...settings });

  // ID tokens are verified with the published keys, although they came straight from the service.
  const execute = [oidc.allowInsecureRequests, oidc.enableNonRepudiationChecks];
  const metadata = { id_token_signed_response_alg: "PS256" };
  const config = await oidc.discovery(new URL(`${BASE_URL}/auth`), APP_ID, metadata, oidc.None(), { execute });
  const app = { origin, callback, config, close: () => server.close() };
  const underWay = new Map();

  async function begin(more) {
    const [state, nonce, verifier] = [oidc.randomState(), oidc.randomNonce(), oidc.randomPKCECodeVerifier()];
    underWay.set(state, { state, nonce, verifier });
    return oidc.buildAuthorizationUrl(config, {
      redirect_uri: callback, scope: "openid profile email", state, nonce, ...more,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256",
    });
  }

  async function finish(url) {
    const login = underWay.get(url.searchParams.get("state"));
    if (!login) throw new Error("nobody began this login");
    underWay.delete(login.state);
    const { state, nonce, verifier } = app.login = login;
    const checks = { pkceCodeVerifier: verifier, expectedNonce: nonce, expectedState: state, idTokenExpected: true };
    app.tokens = await oidc.authorizationCodeGrant(config, url, checks);
    return app.tokens.claims();
  }

  server.on("request", async (request, answer) => {
    const url = new URL(request.url, origin);
    const say = (status, body) => answer.writeHead(status, { "content-type": "text/html" }).end(html(body));
    try {
      if (url.pathname === "/login") {
        const to = await begin(Object.fromEntries(url.searchParams));
        answer.writeHead(302, { location: to.href }).end();
      } else if (url.pathname === "/callback") {
        const who = await finish(url);
        say(200, `<h1>Welcome, ${who.email}</h1>`);
      } else {
        const link = (href, label) => `<a href="${href}">${label}</a> `;
        say(200, link("/login", "Sign in") + link("/login?prompt=login", "Sign in again") +
          link(`${BASE_URL}/auth/url/signup/${APP_ID}`, "Sign up") + link(`${BASE_URL}/auth/url/logout/${APP_ID}`, "Sign out"));
      }
    } catch (error) {
      say(500, `<h1>Failed</h1><p>${error.error ?? error.code}: ${error.message}</p>`);
    }
  });
  return app;
}
