// Questions, messages, and doing what a button says.

import { h, fill } from "./dom.js";
import { t } from "./i18n.js";

/** Say something in the corner for a while. */
export function say(text, bad = false) {
  const toast = h("div", { class: bad ? "toast bad" : "toast", role: bad ? "alert" : null }, text);
  document.getElementById("toasts").append(toast);
  setTimeout(() => toast.remove(), bad ? 9000 : 4000);
}

/** Ask a question. options: {text, input: label, value, must: the text that has to be typed, danger, ok, password}.
 *  Resolves to the input ("" where there is none), or null where the user says no. */
export function ask(title, options = {}) {
  const dialog = document.getElementById("dialog");
  const input = options.input && h("input", {
    value: options.value || "", autocomplete: "off", spellcheck: "false", type: options.password ? "password" : "text",
    name: "answer", maxlength: "1024",
  });
  const ok = h("button", { type: "submit", class: options.danger ? "danger" : "primary", value: "ok" }, options.ok || t("ok"));
  if (options.must) {
    ok.disabled = true;
    input.addEventListener("input", () => { ok.disabled = input.value !== options.must; });
  }
  const form = h("form", { method: "dialog" },
    h("h2", {}, title),
    options.text && h("p", {}, options.text),
    input && h("label", {}, options.input, input),
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close("") }, t("cancel")), ok));
  fill(dialog, form);
  dialog.returnValue = "";
  dialog.showModal();
  (input || ok).focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok" ? (input ? input.value : "") : null), { once: true });
  });
}

/** Do what a button says: it is disabled meanwhile, and an error is shown in words. */
export async function act(button, work) {
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    say(error.message, true);
  } finally {
    button.disabled = false;
  }
}

/** A button that does something. */
export function action(text, work, kind = "") {
  const button = h("button", { type: "button", class: kind, onclick: () => act(button, work) }, text);
  return button;
}

/** Repeat `piece` (which returns how many it did, 0 = none left) and show how far it is. */
export async function withProgress(title, total, piece) {
  const dialog = document.getElementById("dialog");
  const bar = h("progress", { max: total, value: 0, "aria-label": title });
  let stopped = false;
  fill(dialog, h("h2", {}, title), bar, h("div", { class: "actions" }, h("button", { type: "button", onclick: () => { stopped = true; } }, t("cancel"))));
  dialog.showModal();
  let did = 0;
  try {
    while (!stopped) {
      const count = await piece();
      if (!count) break;
      did += count;
      bar.value = Math.min(did, total);
    }
  } finally {
    dialog.close();
  }
  return did;
}
