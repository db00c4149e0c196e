// The passkey ceremonies of the hosted login. The page's form says which one, where its options come from and what to
// say when it fails; the browser's answer goes into the form, which is then sent as any other.
"use strict";

{
  const form = document.getElementById("passkey");
  const { ceremony, options: optionsAddress, cancelled, failed, known, unsupported } = form.dataset;
  const button = form.querySelector("button");
  let alert = null;

  const say = (words) => {
    alert?.remove();
    alert = document.createElement("p");
    alert.className = "alert";
    alert.setAttribute("role", "alert");
    alert.textContent = words;
    form.before(alert);
  };

  const bytes = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));

  const text = (buffer) =>
    btoa(Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join(""))
      .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

  const withBytes = (credentials) => credentials?.map((credential) => ({ ...credential, id: bytes(credential.id) }));

  const askServer = async () => {
    const answer = await fetch(optionsAddress, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (!answer.ok) {
      throw new Error(`options: ${answer.status}`);
    }
    const { sdkChallengeToken, ...publicKey } = await answer.json();
    publicKey.challenge = bytes(publicKey.challenge);
    return { sdkChallengeToken, publicKey };
  };

  const askAuthenticator = (publicKey) => {
    if (ceremony === "create") {
      const user = { ...publicKey.user, id: bytes(publicKey.user.id) };
      const excludeCredentials = withBytes(publicKey.excludeCredentials);
      return navigator.credentials.create({ publicKey: { ...publicKey, user, excludeCredentials } });
    }
    return navigator.credentials.get({
      publicKey: { ...publicKey, allowCredentials: withBytes(publicKey.allowCredentials) },
    });
  };

  const response = (answer) =>
    ceremony === "create"
      ? {
          clientDataJSON: text(answer.clientDataJSON),
          attestationObject: text(answer.attestationObject),
          transports: answer.getTransports?.() ?? [],
        }
      : {
          clientDataJSON: text(answer.clientDataJSON),
          authenticatorData: text(answer.authenticatorData),
          signature: text(answer.signature),
          userHandle: answer.userHandle ? text(answer.userHandle) : null,
        };

  const run = async () => {
    const { sdkChallengeToken, publicKey } = await askServer();
    const credential = await askAuthenticator(publicKey);
    form.elements.challenge.value = sdkChallengeToken;
    form.elements.credential.value = JSON.stringify({
      id: credential.id,
      rawId: text(credential.rawId),
      type: credential.type,
      response: response(credential.response),
      clientExtensionResults: credential.getClientExtensionResults(),
    });
    form.submit();
  };

  const reasons = { NotAllowedError: cancelled, AbortError: cancelled, InvalidStateError: known };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      await run();
    } catch (error) {
      say(reasons[error.name] ?? failed);
      button.disabled = false;
    }
  });

  // Somebody who comes back with the browser's own button may try again.
  addEventListener("pageshow", () => {
    button.disabled = false;
  });

  if (window.PublicKeyCredential) {
    form.hidden = false;
  } else if (unsupported) {
    say(unsupported);
  }
}
