// Elements, rendered by Preact: what is rendered again changes only where it differs. Text stays text, whatever stands in it.

import { Component, h, render } from "../vendor/preact/preact.mjs";

export { Component, h, render };

/** A table. columns: [{name, class, cell: (row) => content}]; `key` tells a row from the others; `empty` is said where there are none. */
export function table(columns, rows, key, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.class }, column.name)))),
    h("tbody", {}, rows.map((row) => h("tr", { key: key(row) }, columns.map((column) => h("td", { class: column.class, "data-name": typeof column.name === "string" ? column.name : null }, column.cell(row))))))));
}

/** A name that breaks behind its dots, dashes and the like, if it has to. */
export const breaking = (name) => name.split(/(?<=[./_:@-])/).map((part, index) => [index > 0 && h("wbr"), part]);

/** Names and what stands behind them: [[name, value]] */
export const facts = (rows) => h("dl", {}, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

/** Buttons of which one is pressed. options: [[value, text]] */
export function choices(options, chosen, onchange, label) {
  return h("div", { class: "choices", role: "group", "aria-label": label }, options.map(([value, text]) =>
    h("button", { type: "button", "aria-pressed": String(value === chosen), onclick: () => onchange(value) }, text)));
}
