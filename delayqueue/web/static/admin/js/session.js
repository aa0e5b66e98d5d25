// The user of the page.

import { call, dropToken, hasToken, learnAccess, may, setToken } from "./api.js";
import { ask } from "./ask.js";
import { t } from "./i18n.js";

export const CHANGED = "session"; // the event that is fired when the user changes

let title = "";

/** The name of the server's environment and its colour ("" = none); null if it has no name. */
export function environment() {
  const [name, colour = ""] = title.split(/,\s*(?=[^,]*$)/);
  return name ? { name, colour } : null;
}

/** Load what the user may do and the server's name. */
export async function learn() {
  try {
    await learnAccess();
    if (may("stats")) title = (await call("stats", { counts: false })).settings.admin_title || "";
  } catch {
    // the page asks for a token, or says that the server is away
  }
}

let asking = null;

/** Ask for a token; only once, even if several calls need one. `refusal`: what the server said. */
export function signIn(refusal) {
  asking ??= question(hasToken() ? refusal : null).finally(() => { asking = null; });
  return asking;
}

async function question(error) {
  dropToken();
  const token = await ask(t("token"), { error, text: t("tokenAsk"), input: "Token", password: true, ok: t("signIn") });
  if (token) setToken(token);
  await learn();
  dispatchEvent(new Event(CHANGED));
}
