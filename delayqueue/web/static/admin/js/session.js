// Who uses the page.

import { dropToken, hasToken, learnRoles, setToken } from "./api.js";
import { ask } from "./ask.js";
import { t } from "./i18n.js";

export const CHANGED = "session"; // the event that says that it is someone else

let asking = null;

/** Ask for a token; once, however many want one. `refusal`: what the server said. */
export function signIn(refusal) {
  asking ??= question(hasToken() ? refusal : null).finally(() => { asking = null; });
  return asking;
}

async function question(error) {
  dropToken();
  const token = await ask(t("token"), { error, text: t("tokenAsk"), input: "Token", password: true, ok: t("signIn") });
  if (token) setToken(token);
  await learnRoles().catch(() => {});
  dispatchEvent(new Event(CHANGED));
}
