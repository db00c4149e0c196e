// Stripe's own package against the provider of the tests: it takes what the real API takes, answers in its form, and refuses
// what the real API refuses. Then the package signs an event for the service's receiver.
import assert from "node:assert/strict";
import Stripe from "stripe";
import { BASE_URL, APP_ID } from "./service.mjs";

const { PROVIDER_URL, SECRET_KEY, WEBHOOK_SECRET } = process.env;
const { hostname, port } = new URL(PROVIDER_URL);
const connect = (key) => new Stripe(key, { host: hostname, port, protocol: "http", telemetry: false, maxNetworkRetries: 1 });
const stripe = connect(SECRET_KEY);

async function refused(call, type, more = {}) {
  const error = await call.then(
    () => assert.fail("it was accepted"),
    (error) => error,
  );
  assert.equal(error.type, type, error.message);
  for (const [name, value] of Object.entries(more)) assert.equal(error[name], value, error.message);
}

const customer = await stripe.customers.create({ name: "Acme", email: "ada@customer.example", metadata: { tenantId: "t" } });
assert.match(customer.id, /^cus_/);
const product = await stripe.products.create({ name: "Pro", metadata: { planId: "p" } });
const monthly = { product: product.id, currency: "eur", unit_amount: 2900, recurring: { interval: "month" } };
const price = await stripe.prices.create(monthly);
const dear = await stripe.prices.create({ ...monthly, unit_amount: 9900 });
assert.deepEqual([price.object, price.unit_amount, price.currency], ["price", 2900, "eur"]);
const rate = await stripe.taxRates.create({ display_name: "VAT", percentage: 19, inclusive: false, country: "DE" });

const order = {
  mode: "subscription",
  customer: customer.id,
  line_items: [{ price: price.id, quantity: 1, dynamic_tax_rates: [rate.id] }],
  success_url: "https://shop.example/done?s={CHECKOUT_SESSION_ID}",
  cancel_url: "https://shop.example/",
  client_reference_id: "t",
  metadata: { tenantId: "t" },
  subscription_data: { metadata: { tenantId: "t" } },
};
const session = await stripe.checkout.sessions.create(order);
assert.deepEqual([session.status, session.payment_status, typeof session.url], ["open", "unpaid", "string"]);
await fetch(`${PROVIDER_URL}/c/${session.id}`, { method: "POST" });
const paid = await stripe.checkout.sessions.retrieve(session.id);
assert.equal(paid.payment_status, "paid");
const bought = await stripe.subscriptions.retrieve(paid.subscription);
const [item] = bought.items.data;
assert.deepEqual([bought.status, bought.cancel_at_period_end, item.price.id], ["active", false, price.id]);
assert.ok(item.current_period_end > item.current_period_start);

const ending = await stripe.subscriptions.update(bought.id, { cancel_at_period_end: true });
assert.equal(ending.cancel_at_period_end, true);
const change = { items: [{ id: item.id, price: dear.id }], proration_behavior: "create_prorations", cancel_at_period_end: false };
const changed = await stripe.subscriptions.update(bought.id, change);
assert.deepEqual([changed.cancel_at_period_end, changed.items.data[0].price.unit_amount], [false, 9900]);
const portal = await stripe.billingPortal.sessions.create({ customer: customer.id, return_url: "https://shop.example/" });
assert.equal(typeof portal.url, "string");

const meter = await stripe.billing.meters.create({
  display_name: "calls",
  event_name: "calls",
  default_aggregation: { formula: "last" },
  customer_mapping: { type: "by_id", event_payload_key: "stripe_customer_id" },
  value_settings: { event_payload_key: "value" },
});
const minute = Math.floor(Date.now() / 60_000) * 60;
for (const value of ["3", "7"]) {
  const payload = { stripe_customer_id: customer.id, value };
  await stripe.billing.meterEvents.create({ event_name: "calls", payload, timestamp: minute });
}
const tiers = [{ up_to: 1000, unit_amount: 0 }, { up_to: "inf", unit_amount_decimal: "0.5" }];
const metered = { product: product.id, currency: "eur", billing_scheme: "tiered", tiers_mode: "graduated", tiers };
const overage = await stripe.prices.create({ ...metered, recurring: { interval: "month", usage_type: "metered", meter: meter.id } });
assert.equal(overage.unit_amount, null);
await refused(stripe.prices.create({ ...metered, recurring: { interval: "month", usage_type: "metered" } }), "StripeInvalidRequestError");
const more = await stripe.subscriptions.update(bought.id, { items: [{ price: overage.id }] });
assert.equal(more.items.data.length, 2);
const fewer = await stripe.subscriptions.update(bought.id, { items: [{ id: more.items.data[1].id, deleted: true }] });
assert.equal(fewer.items.data.length, 1);
const span = { customer: customer.id, start_time: minute, end_time: minute + 60 };
const totals = await stripe.billing.meters.listEventSummaries(meter.id, span);
assert.equal(totals.data[0].aggregated_value, 7);
const endpoint = await stripe.webhookEndpoints.create({ url: "https://app.example/hook", enabled_events: ["invoice.paid"] });
assert.match(endpoint.secret, /^whsec_/);

const wrong = "StripeInvalidRequestError";
await refused(connect("sk_test_wrong").customers.create({ name: "Acme" }), "StripeAuthenticationError");
await refused(stripe.customers.create({ nome: "Acme" }), wrong, { param: "nome", statusCode: 400 });
await refused(stripe.prices.create({ ...monthly, currency: "EURO" }), wrong, { param: "currency" });
await refused(stripe.prices.create({ ...monthly, unit_amount: undefined }), wrong, { param: "unit_amount" });
await refused(stripe.checkout.sessions.create({ ...order, success_url: "/done" }), wrong, { param: "success_url" });
await refused(stripe.checkout.sessions.create({ ...order, customer: "cus_unknown" }), wrong, { param: "customer" });
await refused(stripe.subscriptions.retrieve("sub_unknown"), wrong, { statusCode: 404, code: "resource_missing" });
await refused(stripe.subscriptions.update(bought.id, { items: [{ id: "si_unknown", price: price.id }] }), wrong);
await refused(stripe.billing.meters.listEventSummaries(meter.id, { ...span, start_time: minute + 1 }), wrong);
const again = { idempotencyKey: "one" };
const first = await stripe.customers.create({ name: "Once" }, again);
assert.equal((await stripe.customers.create({ name: "Once" }, again)).id, first.id);
await refused(stripe.customers.create({ name: "Twice" }, again), "StripeIdempotencyError");
assert.equal((await stripe.subscriptions.cancel(bought.id)).status, "canceled");
await refused(stripe.subscriptions.cancel(bought.id), wrong, { statusCode: 404 });

const body = JSON.stringify({ id: "evt_of_the_package", type: "invoice.paid", data: { object: { id: "in_1" } } });
const sign = (secret) => stripe.webhooks.generateTestHeaderString({ payload: body, secret });
const tell = (signature) =>
  fetch(`${BASE_URL}/account/payprovider/webhook/${APP_ID}`, {
    method: "POST",
    headers: { "content-type": "application/json", "provider-signature": signature },
    body,
  });
assert.equal((await tell(sign(WEBHOOK_SECRET))).status, 200);
assert.equal((await tell(sign("whsec_of_others"))).status, 400);
console.log("the package and the provider of the tests agree");
