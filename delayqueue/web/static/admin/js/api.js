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

// The roles that may call a verb, as its @endpoint says; those that only the admin may call are left out.
const NEEDS = {
  push: ["produce"], reschedule: ["produce"], cancel: ["produce"], get: ["produce", "consume", "view"], delete: ["produce", "consume"],
  touch: ["consume"], release: ["consume"], bury: ["consume"],
  list: ["view"], find: ["view"], topics: ["view"], stats: ["view"], forecast: ["view"], history: ["view"], buried: ["view"], subscribers: ["view"], schedules: ["view"], "preview-schedule": ["view"],
};
let roles = ["admin"];

/** Load the roles of the token. */
export async function learnRoles() {
  ({ roles } = await call("whoami"));
}

/** Whether the user may call the verb. The page does not show the others. */
export const may = (verb) => roles.includes("admin") || (NEEDS[verb] || []).some((role) => roles.includes(role));

/** Call an endpoint; returns the answer's data. Throws ApiError. */
export async function call(verb, request = {}) {
  const headers = { "Content-Type": "application/json", "Accept-Language": current(), "X-Admin-Page": "yes" };
  if (hasToken()) headers.Authorization = `Bearer ${sessionStorage.getItem(KEY)}`;
  let answer;
  try {
    const response = await fetch(verb, { method: "POST", headers, body: JSON.stringify(request), credentials: "omit" });
    answer = await response.json();
  } catch (error) {
    throw new ApiError(null, String(error.message || error));
  }
  if (answer.code !== 0) throw new ApiError(answer.code, answer.message);
  return answer.data;
}
