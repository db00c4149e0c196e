// The public OpenFeature SDK for servers with its OFREP provider against a running service.
//
// Expects the flags that the test ofrep_sdk makes. Ends with an exception when the SDK sees anything else.
import assert from "node:assert/strict";
import { OFREPProvider } from "@openfeature/ofrep-provider";
import { OpenFeature } from "@openfeature/server-sdk";

const { BASE_URL: base, APP_ID: app, API_KEY: key } = process.env;
const ways = {
  "base URL": { baseUrl: `${base}/cloud-views/ofrep/${app}` },
  "x-app-id": { baseUrl: base, headers: [["x-app-id", app]] },
  "API key": { baseUrl: base, headers: [["x-api-key", key]] },
};

for (const [way, options] of Object.entries(ways)) {
  await OpenFeature.setProviderAndWait(way, new OFREPProvider(options));
  const client = OpenFeature.getClient(way);
  const pro = { targetingKey: "user_1", tenant: { plan: "pro" }, country: "CH" };

  assert.equal(await client.getBooleanValue("boolean", false), true, way);
  assert.equal(await client.getStringValue("text", "fallback", pro), "for pro", way);
  assert.equal(await client.getStringValue("text", "fallback", { "tenant.plan": "pro" }), "for pro", way);
  assert.equal(await client.getStringValue("text", "fallback", {}), "for others", way);
  assert.equal(await client.getNumberValue("number", 0, pro), 2.5, way);
  assert.deepEqual(await client.getObjectValue("object", {}, pro), { colours: ["red"], deep: { yes: true } }, way);

  const text = await client.getStringDetails("text", "fallback", pro);
  assert.deepEqual([text.reason, text.variant, text.flagMetadata.variantIndex], ["TARGETING_MATCH", "branch-0", 0], way);
  const off = await client.getBooleanDetails("off", true);
  assert.deepEqual([off.value, off.reason], [false, "DISABLED"], way);

  const unknown = await client.getBooleanDetails("unknown", true);
  assert.deepEqual([unknown.value, unknown.errorCode], [true, "FLAG_NOT_FOUND"], way);
  const wrongType = await client.getNumberDetails("text", 7, pro);
  assert.deepEqual([wrongType.value, wrongType.errorCode], [7, "TYPE_MISMATCH"], way);
}
await OpenFeature.close();
console.log("the OpenFeature SDK agrees");
