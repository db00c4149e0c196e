// A customer with Chromium, without scripts, on the plan page and in the sandbox: tries a plan, is declined, pays, changes the
// card, cancels and continues. Every page is looked at by eye and by axe, on a phone and on a desktop.
import assert from "node:assert/strict";
import { heading, launch, press, type, visitor } from "./chromium.mjs";
import { spectator } from "./looks.mjs";
import { SCREENSHOTS, byKey } from "./service.mjs";

await byKey("PUT", "/account/app", { payproviderEnabled: true });
await byKey("PUT", "/account/app/credentials", { payproviderSecretKey: "sandbox_browser" });
await byKey("POST", "/account/payments/tax", { name: "VAT", percentage: 19, countryCode: "DE" });
const owner = { email: "ada@customer.example", firstName: "Ada", lastName: "Lovelace" };
const { id } = await byKey("POST", "/account/tenant", { name: "Analytical Engines", owner, muteNotifications: true });
const { url } = await byKey("GET", `/account/tenant/${id}/customerPortal`);

const browser = await launch();
const { look, close } = await spectator(browser, SCREENSHOTS && `${SCREENSHOTS}-plans`);
const page = await visitor(browser);
const says = (text) => page.getByText(text, { exact: false }).first().waitFor();

async function card(number, expiry = "12/40") {
  await type(page, "Card number", number);
  await type(page, "Expiry (MM/YY)", expiry);
  await type(page, "Security code", "123");
}

try {
  await page.goto(url);
  await heading(page, "Choose a plan");
  await says("You have no plan yet.");
  await look(page, "plans-none");
  await press(page, "Try it for 14 days");
  await says("Your trial ends on");
  await look(page, "plans-trial");

  await press(page, "29 EUR / month");
  await heading(page, "Pro");
  await look(page, "checkout");
  await type(page, "Show the total for a country", "DE");
  await press(page, "Show total");
  await says("Total: 34.51 EUR");
  await look(page, "checkout-total");
  await card("4000 0000 0000 0002");
  await press(page, "Pay");
  await says("declined");
  await look(page, "checkout-declined");
  await card("4242 4242 4242 4242");
  await press(page, "Pay");
  await heading(page, "Choose a plan");
  await says("Your plan is Pro.");
  await look(page, "plans-paid");

  await press(page, "Payment details");
  await heading(page, "Your subscription");
  await says("Card ending in 4242");
  await look(page, "portal");
  await card("4242", "1/20");
  await press(page, "Change card");
  await says("Enter the number of a card.");
  await look(page, "portal-refused");
  await press(page, "Cancel subscription");
  await says("Ends on");
  await look(page, "portal-ending");
  await press(page, "Continue subscription");
  await says("Next payment on");
  assert.deepEqual(page.refused, [], "a page's policy refused something");
  await close();
} catch (error) {
  console.error(`It stopped at ${page.url()}, which says:\n\n${await page.locator("body").innerText()}`);
  throw error;
} finally {
  await browser.close();
}
