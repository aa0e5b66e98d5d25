// Elements, rendered by Preact: rendering again changes only what differs. Text stays text, whatever it contains.

import { Component, h, render } from "../vendor/preact/preact.mjs";

export { Component, h, render };

/** A table. columns: [{name, class, cell: (row) => content, sort: its sort key, if it has one}]; `key` identifies a row;
 *  `empty` is shown if there are no rows; sorting: {by, reverse, onsort(by)}. */
export function table(columns, rows, key, empty, sorting = null) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "scroll" }, h("table", { class: sorting && "sortable" },
    h("thead", {}, h("tr", {}, columns.map((column) => heading(column, sorting)))),
    h("tbody", {}, rows.map((row) => h("tr", { key: key(row) }, columns.map((column) => h("td", { class: column.class, "data-name": typeof column.name === "string" ? column.name : null }, column.cell(row))))))));
}

function heading({ name, sort, class: kind }, sorting) {
  if (!sorting || !sort) return h("th", { scope: "col", class: kind }, name);
  const isSorted = sorting.by === sort;
  const upwards = (sort === "topic") !== sorting.reverse; // numbers are sorted from the largest
  return h("th", { scope: "col", class: kind, "aria-sort": isSorted ? (upwards ? "ascending" : "descending") : null },
    h("button", { type: "button", class: "plain", onclick: () => sorting.onsort(sort) }, name, isSorted && h("span", { "aria-hidden": "true" }, upwards ? " ▲" : " ▼")));
}

/** A name that may break after dots, dashes and the like. */
export const breaking = (name) => name.split(/(?<=[./_:@-])/).map((part, index) => [index > 0 && h("wbr"), part]);

/** Names with their values: [[name, value]] */
export const facts = (rows) => h("dl", {}, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

/** A group of buttons, one of them pressed. options: [[value, text]] */
export function choices(options, chosen, onchange, label) {
  return h("div", { class: "choices", role: "group", "aria-label": label }, options.map(([value, text]) =>
    h("button", { type: "button", "aria-pressed": String(value === chosen), onclick: () => onchange(value) }, text)));
}
