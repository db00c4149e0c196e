// The reference library of Standard Webhooks and Stripe's own package verify what the service sends, each in the form it
// knows. Ends with an exception when either refuses a delivery, or accepts one that was altered.
import assert from "node:assert/strict";
import http from "node:http";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { APP_ID, byKey, byOperator, drain } from "./service.mjs";

const received = [];
const receiver = http.createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  received.push({ headers: request.headers, body });
  response.writeHead(204).end();
});
await new Promise((resolve) => receiver.listen(0, "localhost", resolve));
const webhook = `/admin/apps/${APP_ID}/webhook`;
const stripe = new Stripe("sk_test_unused");

function verified({ headers, body }, secret) {
  const event = stripe.webhooks.constructEvent(body, headers["service-signature"], secret);
  assert.deepEqual(new Webhook(secret).verify(body, headers), event);
  assert.deepEqual([headers["service-event-id"], headers["service-event-type"]], [event.id, event.type]);
  const altered = body.replace("Acme", "Evil");
  assert.throws(() => stripe.webhooks.constructEvent(altered, headers["service-signature"], secret));
  assert.throws(() => new Webhook(secret).verify(altered, headers));
  return event;
}

try {
  const { secret: first } = await byOperator("GET", `${webhook}/secret`);
  await byOperator("PUT", webhook, { url: `http://localhost:${receiver.address().port}/`, events: ["tenant.created"] });
  const owner = { email: "ada@customer.example", firstName: "Ada", lastName: "Lovelace" };
  await byKey("POST", "/account/tenant", { name: "Acme", owner, muteNotifications: true });
  await drain();
  assert.equal(received.length, 1);
  assert.equal(verified(received[0], first).data.name, "Acme");

  const { secret: second } = await byOperator("POST", `${webhook}/secret/rotate`, {});
  await byKey("POST", "/account/tenant", { name: "Acme two", owner, muteNotifications: true });
  await drain();
  for (const secret of [first, second]) assert.equal(verified(received[1], secret).data.name, "Acme two");
} finally {
  receiver.close();
}
console.log("both libraries agree");
