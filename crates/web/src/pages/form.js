// A form is sent once: its button says that it works. What is clicked twice all the same is answered alike.
"use strict";

addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  // The form of a passkey is sent after its ceremony, by its own script.
  if (form.id === "passkey") {
    return;
  }
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "true";
  (submitter ?? form.querySelector("button"))?.setAttribute("aria-busy", "true");
});

// Somebody who comes back with the browser's own button may send it again.
addEventListener("pageshow", () => {
  for (const form of document.forms) {
    delete form.dataset.sent;
    form.querySelectorAll("[aria-busy]").forEach((button) => button.removeAttribute("aria-busy"));
  }
});

// A form that only leads on sends itself, except to somebody who has come back to it.
const [arrival] = performance.getEntriesByType("navigation");
if (arrival?.type !== "back_forward") {
  document.querySelector("form[data-leads-on]")?.requestSubmit();
}
