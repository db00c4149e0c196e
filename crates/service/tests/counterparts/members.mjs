// An owner with Chromium, without scripts, in the members' portal: invites somebody, is refused, changes a role, withdraws the
// invitation, changes the workspace's settings and their own name. Every page is looked at by eye and by axe, on a phone and on a desktop.
import assert from "node:assert/strict";
import { heading, launch, press, type, visitor } from "./chromium.mjs";
import { spectator } from "./looks.mjs";
import { BASE_URL, SCREENSHOTS, byKey, handoverCode, owner } from "./service.mjs";

const ada = await owner("ada@customer.example");
await byKey("POST", "/account/tenant/user", { username: "charles.babbage@a-rather-long-domain.example", firstName: "Charles",
  lastName: "Babbage", role: "ADMIN", muteNotifications: true }, ada.tenant);
const code = await handoverCode(ada.email);

const browser = await launch();
const { look, close } = await spectator(browser, SCREENSHOTS && `${SCREENSHOTS}-members`);
const page = await visitor(browser);
const says = (text) => page.getByText(text, { exact: false }).first().waitFor();

async function invite(email) {
  await type(page, "Email address", email);
  await page.getByLabel("Role", { exact: true }).selectOption("ADMIN");
  await press(page, "Send invitation");
}

try {
  await page.goto(`${BASE_URL}/cloud-views/user-management-portal/users?code=${code}`);
  await heading(page, "Members");
  await look(page, "members");
  await invite("grace@customer.example");
  await says("The invitation has been sent.");
  await look(page, "members-invited");
  await invite("grace@customer.example");
  await says("or invited to it");
  await look(page, "members-refused");

  await page.getByRole("link", { name: "grace@customer.example" }).click();
  await heading(page, "Member");
  await look(page, "member");
  await page.getByLabel("New role", { exact: true }).selectOption("MEMBER");
  await press(page, "Change role");
  await says("The role has been changed.");
  await press(page, "Withdraw invitation");
  await heading(page, "Members");
  await says("The invitation has been withdrawn.");

  await page.getByRole("link", { name: "Settings" }).click();
  await heading(page, "Settings");
  await type(page, "Workspace name", "Analytical Engines");
  await type(page, "Logo", "https://cdn.example/logo.svg");
  await look(page, "settings");
  await press(page, "Save");
  await says("The settings have been saved.");
  await look(page, "settings-saved");

  await page.getByRole("link", { name: "Your profile" }).click();
  await heading(page, "Your profile");
  await type(page, "First name", "Augusta");
  await press(page, "Save");
  await says("Your name has been saved.");
  await look(page, "profile");
  await page.getByRole("link", { name: "Plan" }).click();
  await heading(page, "Choose a plan");
  await look(page, "members-plan");
  assert.deepEqual(page.refused, [], "a page's policy refused something");
  await close();
} catch (error) {
  console.error(`It stopped at ${page.url()}, which says:\n\n${await page.locator("body").innerText()}`);
  throw error;
} finally {
  await browser.close();
}
