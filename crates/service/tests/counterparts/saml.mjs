// samlify, whose signatures and encryption are JavaScript's, as the identity provider of a workspace, in Chromium with scripts and without. It
// reads the service's metadata as it is, verifies each request and answers in every form that it knows. Every page of the way is looked at by
// eye and by axe.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import samlify from "samlify";
import { startApp } from "./app.mjs";
import { follow, heading, launch, press, type, visitor } from "./chromium.mjs";
import { spectator } from "./looks.mjs";
import { BASE_URL, SCREENSHOTS, alsoIn, byKey, owner } from "./service.mjs";

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "saml-"));
const file = (name) => path.join(folder, name);
const read = (name) => fs.readFileSync(file(name), "utf8");
const openssl = (...command) => execFileSync("openssl", command, { stdio: "pipe" });
openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", file("idp.key"), "-out", file("idp.pem"), "-subj", "/CN=idp.example");
openssl("genpkey", "-algorithm", "RSA", "-out", file("sp.key"));
// Its schemas are a package of their own that needs a Java machine; what is read here is verified by its signature.
samlify.setSchemaValidator({ validate: async () => "not looked at" });

const { algorithms } = samlify.Constants;
const CIPHERS = { gcm: "http://www.w3.org/2009/xmlenc11#aes256-gcm", cbc: algorithms.encryption.data.AES_256 };

// Another site than the service, whose cookies a posted answer does not bring.
const server = http.createServer();
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const origin = `http://127.0.0.1:${server.address().port}`;

const service = (binding) => ({ Binding: samlify.Constants.namespace.binding[binding], Location: `${origin}/sso` });
const provider = (more = {}) =>
  samlify.IdentityProvider({
    entityID: `${origin}/metadata`, privateKey: read("idp.key"), signingCert: read("idp.pem"), wantAuthnRequestsSigned: true,
    nameIDFormat: ["urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"],
    singleSignOnService: [service("redirect"), service("post")], ...more,
  });

/// Its own template leaves out when somebody signed in, which every answer has to say.
function filledIn(template, { id, acs, entityId, email }) {
  const [now, later] = [0, 5].map((minutes) => new Date(Date.now() + minutes * 60_000).toISOString());
  const statement = `<saml:AuthnStatement AuthnInstant="${now}" SessionIndex="_${id}"><saml:AuthnContext><saml:AuthnContextClassRef>` +
    "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>";
  const values = {
    ID: `_r${crypto.randomUUID()}`, AssertionID: `_a${crypto.randomUUID()}`, Destination: acs, SubjectRecipient: acs, Audience: entityId,
    Issuer: `${origin}/metadata`, IssueInstant: now, ConditionsNotBefore: now, ConditionsNotOnOrAfter: later,
    SubjectConfirmationDataNotOnOrAfter: later, InResponseTo: id, StatusCode: samlify.Constants.StatusCode.Success,
    NameIDFormat: "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress", NameID: email,
  };
  const context = template.replace("{AuthnStatement}", statement).replace("{AttributeStatement}", "");
  return { id: values.ID, context: samlify.SamlLib.replaceTagsByValue(context, values) };
}

/// What the provider makes of a request: the fields of the form that goes back.
async function answered(connection, binding, request, relayState, { signs, cipher, signsFirst = false }) {
  const metadata = connection.metadata;
  const sp = samlify.ServiceProvider({ metadata, wantMessageSigned: signs !== "assertion" });
  const asked = await provider().parseLoginRequest(sp, binding, request);
  // Somebody who runs the provider may have it sign the response alone, whatever the metadata wishes.
  const to = signs === "response" ? samlify.ServiceProvider({ metadata: metadata.replace('WantAssertionsSigned="true"', 'WantAssertionsSigned="false"') }) : sp;
  const idp = provider(cipher ? { isAssertionEncrypted: true, dataEncryptionAlgorithm: CIPHERS[cipher], keyEncryptionAlgorithm: algorithms.encryption.key.RSA_OAEP_MGF1P } : {});
  const person = { id: asked.extract.request.id, acs: sp.entityMeta.getAssertionConsumerService("post"), entityId: sp.entityMeta.getEntityID(), email: how.email ?? ada.email };
  assert.equal(asked.extract.issuer, person.entityId);
  const made = await idp.createLoginResponse(to, asked, "post", {}, {
    customTagReplacement: (template) => filledIn(template, person), encryptThenSign: !signsFirst, relayState,
  });
  return { action: made.entityEndpoint, SAMLResponse: made.context, RelayState: relayState };
}

let how;
server.on("request", async (request, answer) => {
  try {
    const url = new URL(request.url, origin);
    if (url.pathname !== "/sso") return answer.writeHead(404).end();
    const [query, signed] = [Object.fromEntries(url.searchParams), url.search.slice(1).split("&Signature=")[0]];
    const body = Object.fromEntries(new URLSearchParams((await request.toArray()).join("")));
    const form = request.method === "POST"
      ? await answered(how.connection, "post", { body }, body.RelayState, how)
      : await answered(how.connection, "redirect", { query, octetString: signed }, query.RelayState, how);
    const fields = ["SAMLResponse", "RelayState"].map((name) => `<input type="hidden" name="${name}" value="${form[name]}">`);
    const page = `<!doctype html><html lang="en"><title>Provider</title><body><h1>Provider</h1><form method="post" action="${form.action}">${fields.join("")}` +
      "<button>Go on</button></form><script>document.forms[0].submit()</script></body></html>";
    answer.writeHead(200, { "content-type": "text/html" }).end(page);
  } catch (error) {
    how.failure = error;
    answer.writeHead(500, { "content-type": "text/plain" }).end(String(error));
  }
});

const ada = await owner("ada@customer.example");
async function connect(requestMethod, signedRequestAlgorithm) {
  const filled = await byKey("POST", "/account/federation/metadata", { metadataXml: provider().getMetadata() });
  assert.equal(filled.loginUrl, `${origin}/sso`);
  const signing = { signedRequest: true, signedRequestAlgorithm, privateKey: read("sp.key") };
  const { id } = await byKey("POST", "/account/federation/connection", { ...filled, ...signing, name: "Acme", requestMethod });
  const metadata = await (await fetch(`${BASE_URL}/auth/federation/saml/${id}/metadata`)).text();
  return { id, requestMethod, metadata };
}

/// Signs in by typing the address, with scripts or without.
async function attempt(page, title) {
  await byKey("PUT", `/account/tenant/${ada.tenant}`, { federationConnection: how.connection.id });
  await page.goto(`${app.origin}/login`);
  await type(page, "Email address", ada.email);
  await press(page, "Continue");
  if (!how.scripts) {
    if (how.connection.requestMethod === "POST") await press(page, "Continue");
    await heading(page, "Provider").catch((error) => { throw how.failure ?? error; });
    await press(page, "Go on");
  }
  await heading(page, title).catch(async (error) => {
    throw how.failure ?? new Error(`${how.signs} ${how.cipher}: ${await page.locator("body").innerText()}`, { cause: error });
  });
}

/// Answers the request of the page that somebody is on, without scripts.
async function answer(page) {
  await heading(page, "Provider").catch((error) => { throw how.failure ?? error; });
  await press(page, "Go on");
}

/// What people and administrators see besides the way in: each page once.
async function lookAround(redirected, posted) {
  const [page, signed] = [await visitor(browser), { signs: "both", scripts: false }];
  const failed = "This request could not be completed";
  const says = (text) => page.getByText(text, { exact: false }).first().waitFor();
  // The page with a posted request, which sends itself where scripts run; and the way back from it.
  how = { ...signed, connection: posted };
  await byKey("PUT", `/account/tenant/${ada.tenant}`, { federationConnection: posted.id });
  await page.goto(`${app.origin}/login`);
  await type(page, "Email address", ada.email);
  await press(page, "Continue");
  await heading(page, "Continue to your identity provider");
  await look(page, "posted-request");
  await follow(page, "Sign in another way");
  await heading(page, "Sign in to My app");
  // Trials: of a member, of somebody new, of somebody who may not come in, and of an answer that nobody accepts.
  const trial = async (connection, name, shown, change = {}) => {
    how = { ...signed, connection, ...change };
    await page.goto((await byKey("POST", `/account/federation/connection/${connection.id}/test`, {})).url);
    if (connection.requestMethod === "POST") await press(page, "Continue");
    await answer(page);
    await heading(page, "Connection test");
    await says(shown);
    const hidden = await page.locator("pre").evaluateAll((blocks) => blocks.filter((block) => block.scrollWidth > block.clientWidth).length);
    assert.equal(hidden, 0, `${name} hides the end of a line`);
    await look(page, name);
  };
  await trial(posted, "trial", "signs in as OWNER");
  await trial(posted, "trial-newcomer", "joins as MEMBER", { email: "new.colleague.with.a.long.name@subsidiary.customer.example" });
  await byKey("PUT", `/account/tenant/${ada.tenant}`, { jitProvisioning: false });
  await trial(posted, "trial-denied", "Refused: You are not a member", { email: "stranger@customer.example" });
  await trial(redirected, "trial-refused", "Step: decryption", { signs: "assertion", cipher: "cbc" });
  // Somebody whom nobody lets in; an answer that nobody accepts; an outcome that was fetched, and one that never was.
  await byKey("PUT", `/account/tenant/${ada.tenant}`, { federationConnection: redirected.id });
  const force = async (change) => {
    how = { ...signed, connection: redirected, ...change };
    await page.goto(`${app.origin}/login?federation_connection=${redirected.id}`);
    await answer(page);
  };
  await force({ email: "stranger@customer.example" });
  await heading(page, failed);
  await says("You are not a member");
  await look(page, "denied");
  await force({ signs: "assertion", cipher: "cbc" });
  await heading(page, failed);
  await says("could not be accepted");
  await look(page, "refused");
  await follow(page, "Back to sign-in");
  await heading(page, "Sign in to My app");
  await page.goto(`${BASE_URL}/auth/federation/done?handle=nonsense`);
  await heading(page, failed);
  await look(page, "done-unknown");
  // Somebody with several ways in; and somebody with none, of whom the app wants one.
  await alsoIn(ada.email, "Difference Engines");
  await page.goto(`${app.origin}/login`);
  await type(page, "Email address", ada.email);
  await press(page, "Continue");
  await says("Choose how to sign in as");
  await look(page, "ways");
  await follow(page, "Sign in another way");
  await page.getByLabel("Password", { exact: true }).waitFor();
  await look(page, "ways-password");
  await page.goto(`${app.origin}/login?force_federation=saml`);
  await type(page, "Email address", "stranger@customer.example");
  await press(page, "Continue");
  await says("belongs to no identity provider");
  assert.equal(await page.getByText("Choose how to sign in").count(), 0, "there is nothing to choose");
  await look(page, "ways-none");
  assert.deepEqual(page.refused, [], "a page's policy refused something");
  await page.context().close();
}

const app = await startApp({ requirePkce: true });
const browser = await launch();
const { look, close } = await spectator(browser, SCREENSHOTS && `${SCREENSHOTS}-saml`);
try {
  const [redirected, posted] = [await connect("GET", "sha256"), await connect("POST", "sha512")];
  const good = [
    { connection: redirected, signs: "assertion", scripts: true },
    { connection: redirected, signs: "response", scripts: false },
    { connection: posted, signs: "both", scripts: false },
    { connection: posted, signs: "assertion", cipher: "gcm", scripts: true },
    { connection: redirected, signs: "response", cipher: "gcm", scripts: true },
    { connection: redirected, signs: "both", cipher: "gcm", scripts: false },
    { connection: posted, signs: "both", cipher: "cbc", scripts: true },
  ];
  for (how of good) await attempt(await visitor(browser, { javaScriptEnabled: how.scripts }), `Welcome, ${ada.email}`);
  const bad = [
    { connection: redirected, signs: "assertion", cipher: "cbc", scripts: true },
    // What is signed before it is encrypted cannot be verified as it arrives.
    { connection: redirected, signs: "both", cipher: "gcm", signsFirst: true, scripts: true },
  ];
  for (how of bad) await attempt(await visitor(browser, { javaScriptEnabled: true }), "This request could not be completed");
  await lookAround(redirected, posted);
  await close();
} finally {
  await browser.close();
  app.close();
  server.close();
  fs.rmSync(folder, { recursive: true });
}
