// Elements, rendered by Preact: rendering again changes only what differs. Text stays text, whatever it contains.

import { Component, h, render } from "../vendor/preact/preact.mjs";
import { t } from "./i18n.js";

export { Component, h, render };

/** Go to the place #/…; if the user is there, load it anew. */
export function goTo(hash) {
  if (location.hash === hash) dispatchEvent(new Event("hashchange"));
  else location.hash = hash;
}

/** Let the address say what is shown, so that Back returns to it; nothing is loaded. */
export const keepPlace = (hash) => history.replaceState(null, "", hash);

/** The text that a text area has now, which began with this one. It shows every line break as LF; here they are CRLF again if all of them were,
 *  and a text that was not changed stays as it is. */
export function bodyOf(typed, before = "") {
  if (typed === before.replace(/\r\n?/g, "\n")) return before;
  const isCrlf = before.includes("\r\n") && !/[\r\n]/.test(before.replaceAll("\r\n", ""));
  return isCrlf ? typed.replaceAll("\n", "\r\n") : typed;
}

/** A table. columns: [{name, class, cell: (row) => content, sort: its sort key, if it has one, rising: it begins with the least}];
 *  `key` identifies a row; `empty` is shown if there are no rows; sorting: {by, reverse, onsort(by)}; kind: a class. */
export function table(columns, rows, key, empty, sorting = null, kind = "") {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "scroll" }, h("table", { class: [kind, sorting && "sortable"].filter(Boolean).join(" ") || null },
    h("thead", {}, h("tr", {}, columns.map((column) => heading(column, sorting)))),
    h("tbody", {}, rows.map((row) => h("tr", { key: key(row) }, columns.map((column) => h("td", { class: column.class, "data-name": typeof column.name === "string" ? column.name : null }, column.cell(row))))))));
}

function heading({ name, sort, rising, class: kind }, sorting) {
  if (!sorting || !sort) return h("th", { scope: "col", class: kind }, name);
  const isSorted = sorting.by === sort;
  const upwards = Boolean(rising) !== sorting.reverse;
  return h("th", { scope: "col", class: kind, "aria-sort": isSorted ? (upwards ? "ascending" : "descending") : null },
    h("button", { type: "button", class: "plain", onclick: () => sorting.onsort(sort) }, name));
}

/** A name that may break after dots, dashes and the like. */
export const breaking = (name) => name.split(/(?<=[./_:@-])/).map((part, index) => [index > 0 && h("wbr"), part]);

/** A text that may break at its blanks only, and not within a date. */
export const unbroken = (text) => text.split(" ").map((word, index) => [index > 0 && " ", h("span", { class: "time" }, word)]);

/** Names with their values: [[name, value]] */
export const facts = (rows) => h("dl", {}, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

/** A placeholder for content that is still loading; visible only if that takes a while. */
export const loading = () => h("p", { class: "loading soft", role: "status" }, t("loading"));

/** A message with its line breaks. Long lines wrap: the last line of a traceback says what happened, and is often the longest. */
export const words = (message) => h("pre", { class: message.includes("\n") ? "words trace" : "words" }, message);

/** A group of buttons, one of them pressed. options: [[value, text]] */
export function choices(options, chosen, onchange, label) {
  return h("div", { class: "choices", role: "group", "aria-label": label }, options.map(([value, text]) =>
    h("button", { key: value, type: "button", "aria-pressed": String(value === chosen), onclick: () => onchange(value) }, text)));
}

const NARROW = matchMedia("(max-width: 720px)"); // as in style.css

/** Whether the page is as narrow as on a phone. */
export const isNarrow = () => NARROW.matches;

/** How many rows a list begins with: `wide` ones, or fewer on a phone, where each of them is a card. */
export const firstRows = (wide) => (isNarrow() ? 25 : wide);
