// The user of the page.

import { call, dropToken, hasToken, learnAccess, may, setToken, UNAVAILABLE } from "./api.js";
import { ask } from "./ask.js";
import { t } from "./i18n.js";

export const CHANGED = "session"; // the event that is fired when the user or the server's name may have changed
const RETRY_MS = 2000;

let title = "";
let retry;

/** The name of the server's environment and its colour ("" = none); null if it has no name. */
export function environment() {
  const [name, colour = ""] = title.split(/,\s*(?=[^,]*$)/);
  return name ? { name, colour } : null;
}

/** Load what the user may do and the server's name, again and again while the server is away. */
export async function learn() {
  clearTimeout(retry);
  try {
    await learnAccess();
    if (may("stats")) title = (await call("stats", { counts: false })).settings.admin_title || "";
  } catch (error) {
    if (error.code === null || error.code === UNAVAILABLE) { // the page says so; for a token it asks
      retry = setTimeout(learn, RETRY_MS);
      return;
    }
  }
  dispatchEvent(new Event(CHANGED));
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
  if (/[^ -~]/.test(token)) return question(t("tokenWrong")); // fetch() would refuse to send it, or change it
  if (token) setToken(token);
  return learn();
}
