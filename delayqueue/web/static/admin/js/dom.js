// Elements without markup: text stays text, whatever stands in it.

/** An element: h("a", {href: "#/", onclick: fn, class: "x"}, "text", child, [more]). false and null are left out. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list" && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Put these in place of what the element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A table. columns: [{name, number, cell: (row) => content}]; `empty` is said where there are no rows. */
export function table(columns, rows, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.class }, column.name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((column) => h("td", { class: column.class }, column.cell(row))))))));
}

/** Buttons of which one is pressed. options: [[value, text]] */
export function choices(options, chosen, onchange, label) {
  const buttons = options.map(([value, text]) => h("button", {
    type: "button", "aria-pressed": String(value === chosen), onclick: () => {
      buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(options[index][0] === value)));
      onchange(value);
    },
  }, text));
  return h("div", { class: "choices", role: "group", "aria-label": label }, buttons);
}
