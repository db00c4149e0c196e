// samlify, whose signatures and encryption are JavaScript's, as the identity provider of a workspace, in Chromium with scripts and without. It
// reads the service's metadata as it is, verifies each request and answers in every form that it knows.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import samlify from "samlify";
import { startApp } from "./app.mjs";
import { heading, launch, press, type, visitor } from "./chromium.mjs";
import { BASE_URL, byKey, owner } from "./service.mjs";

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
  const person = { id: asked.extract.request.id, acs: sp.entityMeta.getAssertionConsumerService("post"), entityId: sp.entityMeta.getEntityID(), email: ada.email };
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

const app = await startApp({ requirePkce: true });
const browser = await launch();
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
} finally {
  await browser.close();
  app.close();
  server.close();
  fs.rmSync(folder, { recursive: true });
}
