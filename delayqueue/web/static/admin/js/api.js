// The server's HTTP API. The token is kept for this tab only.

import { current } from "./i18n.js";

const KEY = "token";

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

export const hasToken = () => sessionStorage.getItem(KEY) !== null;
export const setToken = (token) => sessionStorage.setItem(KEY, token);
export const dropToken = () => sessionStorage.removeItem(KEY);

let allowed = null; // the paths that the token may call; null = nobody has told, so the server refuses what it may not

/** Load what the token may call. */
export async function learnAccess() {
  ({ endpoints: allowed = null } = await call("whoami"));
}

/** Whether the user may call the verb. The page hides the other verbs. */
export const may = (verb) => allowed === null || allowed.includes(`/${verb}`);

/** Call an endpoint; returns the answer's data. Throws ApiError. */
export const call = (verb, request = {}) => answered(verb, { method: "POST", body: JSON.stringify(request) });

/** Ask an endpoint that only answers GET, as call() does. */
export const look = (verb) => answered(verb, { method: "GET" });

async function answered(verb, sent) {
  const headers = { "Content-Type": "application/json", "Accept-Language": current(), "X-Admin-Page": "yes" };
  if (hasToken()) headers.Authorization = `Bearer ${sessionStorage.getItem(KEY)}`;
  let answer;
  try {
    const response = await fetch(verb, { ...sent, headers, credentials: "omit" });
    answer = await response.json();
  } catch (error) {
    throw new ApiError(null, String(error.message || error));
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
