// The server's HTTP API. The token is kept for this tab only; a proxy that logs users in has its own cookie.

import { current, t } from "./i18n.js";

const KEY = "token";
const TOO_MANY = 429;
const MOST_WAIT_S = 10; // for a longer one, the user is told instead
const SILENT_MS = 30000; // a server that has not answered by then counts as away
const LONG_MS = 310000; // for what takes long: a trial call may take 300 s, and who leaves ends what is half done
const LONG = ["purge", "cancel", "reschedule", "try-subscriber"];

/** An answer whose code is not 0, or no answer at all (code null). */
export class ApiError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}
export const UNAVAILABLE = 6;
export const UNAUTHORIZED = 7;
export const FORBIDDEN = 8;
export const SIGNED_OUT = "signed out"; // not by the server: by the proxy in front of it

export const hasToken = () => sessionStorage.getItem(KEY) !== null;
export const setToken = (token) => sessionStorage.setItem(KEY, token);
export const dropToken = () => sessionStorage.removeItem(KEY);

let user = ""; // whom the proxy has logged in
let allowed = null; // the paths that the user may call; null = nobody has told, so the server refuses what it may not

const OVERALL = ["/stats", "/buried", "/subscribers", "/schedules", "/workers"]; // the page calls them for all topics, which a token for some may not

/** Load who the user is, and what the user may call. */
export async function learnAccess() {
  const access = await call("whoami");
  ({ user = "", endpoints: allowed = null } = access);
  if (access.topics && !access.topics.includes("*")) allowed = allowed?.filter((path) => !OVERALL.includes(path)) ?? null;
}

/** The name of the user whom the proxy has logged in; "" if it has not. */
export const userName = () => user;

/** Whether the user may call the verb. The page hides the other verbs. */
export const may = (verb) => allowed === null || allowed.includes(`/${verb}`);

/** Call an endpoint; returns the answer's data. Throws ApiError. */
export const call = (verb, request = {}) => answered(verb, { method: "POST", body: JSON.stringify(request) });

/** Ask an endpoint that only answers GET, as call() does. */
export const look = (verb) => answered(verb, { method: "GET" });

/** Whether a proxy that logs users in answers instead of the server, which redirects no call and names itself if it wants a token. */
const isRefusedByProxy = (response) => response.type === "opaqueredirect"
  || (response.status === 401 && !response.headers.get("WWW-Authenticate")?.includes('realm="delay-queue"'));

/** A time limit that begins anew with each call of `again`. */
function limited(ms) {
  const aborting = new AbortController();
  let timer;
  const again = () => {
    clearTimeout(timer);
    timer = setTimeout(() => aborting.abort(), ms);
  };
  again();
  return { signal: aborting.signal, again };
}

/** `tries`: how often the server may say that it takes no more requests now. */
async function answered(verb, sent, tries = 5) {
  // Accept: else oauth2-proxy answers with a form once the login has ended
  const headers = { "Accept": "application/json", "Content-Type": "application/json", "Accept-Language": current(), "X-Admin-Page": "yes" };
  if (hasToken()) headers.Authorization = `Bearer ${sessionStorage.getItem(KEY)}`;
  let answer;
  try {
    const { signal, again } = limited(LONG.includes(verb) ? LONG_MS : SILENT_MS);
    const response = await fetch(verb, { ...sent, headers, signal, credentials: "same-origin", redirect: "manual" });
    if (isRefusedByProxy(response)) throw new ApiError(SIGNED_OUT, t("signedOut"));
    const waitS = Number(response.headers.get("Retry-After")); // NaN for a date, which a proxy may send
    if (response.status === TOO_MANY && tries > 1 && waitS <= MOST_WAIT_S) {
      await new Promise((resolve) => { setTimeout(resolve, 1000 * waitS); });
      return await answered(verb, sent, tries - 1);
    }
    const heard = new TransformStream({ transform(part, rest) { again(); rest.enqueue(part); } }); // megabytes take minutes on a slow line
    answer = await new Response(response.body.pipeThrough(heard)).json();
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError(null, t("noAnswer"));
  }
  if (answer.code !== 0) throw new ApiError(answer.code, answer.message);
  return answer.data;
}

/** The pages of a list that begin at these cursors: their rows, which an answer calls `name`, and the cursor of the next page ("" = none). */
export async function callPages(verb, name, request, cursors) {
  const rows = [];
  let next = "";
  for (const cursor of cursors) {
    const page = await call(verb, { ...request, cursor });
    rows.push(...page[name]);
    next = page.cursor;
    if (!next) break;
  }
  return { rows, next };
}
