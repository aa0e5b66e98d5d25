// Questions, messages, and the actions of buttons.

import { UNAUTHORIZED } from "./api.js";
import { Component, h, render } from "./dom.js";
import { t } from "./i18n.js";
import { signIn } from "./session.js";

const element = (id) => document.getElementById(id);
let toasts = [];

function show(changed) {
  toasts = changed;
  render(toasts.map((toast) => h("div", { key: toast.at, class: toast.bad ? "toast bad" : "toast", role: toast.bad ? "alert" : null, onclick: () => drop(toast) },
    toast.text, toast.undo && h("button", { type: "button", onclick: toast.undo }, t("undo")))),
  element("toasts"));
}

const drop = (toast) => show(toasts.filter((one) => one !== toast));

/** Show a message in the corner for a while, or until it is clicked. A message of success removes earlier errors. */
export function say(text, bad = false) {
  const toast = { text, bad, at: performance.now() };
  show([...toasts.filter((one) => bad || !one.bad), toast]);
  setTimeout(() => drop(toast), bad ? 9000 : 4000);
}

/** The function work; an error of it is shown as a message, or as a question for a token. */
export const showingErrors = (work) => async (...given) => {
  try {
    await work(...given);
  } catch (error) {
    if (error.code === UNAUTHORIZED) await signIn(error.message);
    else say(error.message, true);
  }
};

const UNDO_MS = 60000;

/** Say that something was done, and offer for a minute to undo it; undo() resolves to the message to show, or to nothing for t("undone"). */
export function sayUndoable(text, undo) {
  const run = showingErrors(async () => say(await undo() || t("undone")));
  const toast = { text, at: performance.now(), undo: run };
  show([...toasts.filter((one) => !one.undo && !one.bad), toast]); // only the last thing can be undone
  setTimeout(() => drop(toast), UNDO_MS);
}

const dialog = element("dialog");
let settle = () => {}; // ends the wait for what is in the dialog
dialog.addEventListener("close", () => { if (!dialog.open) settle(dialog.returnValue); }); // open: by now something else is in it

/** Open the dialog with this content. Resolves when it is closed, to what closed it: "" also if something else takes its place. */
function open(content) {
  settle("");
  render(null, dialog);
  render(content, dialog);
  dialog.returnValue = "";
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("input, [type=submit]")?.focus();
  return new Promise((resolve) => { settle = resolve; });
}
const close = () => dialog.close("");

/** The dialog's actions: cancel, and the others. */
const actions = (...others) => h("div", { class: "actions" }, h("button", { type: "button", onclick: close }, t("cancel")), others);
const heading = (title) => h("h2", { id: "dialog-title" }, title);

class Question extends Component {
  state = { text: this.props.value || "" };

  render({ title, error, text, choices, input, most, must, danger, ok, password, onchoice, onanswer }, { text: typed }) {
    return h("form", { method: "dialog" },
      heading(title),
      error && h("p", { class: "card error", role: "alert" }, error),
      text && h("p", {}, text),
      choices && h("fieldset", {}, choices.map(([value, name]) =>
        h("label", { key: value }, h("input", { type: "radio", name: "choice", value, required: true, onchange: () => onchoice(value) }), name))),
      input && h("label", {}, input, h("input", {
        value: typed, autocomplete: "off", spellcheck: false, type: password ? "password" : "text", name: "answer", maxlength: most || 1024,
        oninput: (event) => { this.setState({ text: event.target.value }); onanswer(event.target.value); },
      })),
      actions(h("button", { type: "submit", class: danger ? "danger" : "primary", value: "ok", disabled: must !== undefined && typed !== must }, ok || title)));
  }
}

/** Ask a question. options: {error, text, choices: [[value, text]], input: label, value, most: characters, must: the text that must be typed, danger, ok,
 *  password}. The button that agrees has the text `ok`, or else the title, which says what it does.
 *  Resolves to the input ("" if there is none); with `choices`, to [the chosen value, the input]; to null if the user cancels. */
export async function ask(title, options = {}) {
  let answer = options.value || "";
  let chosen = null;
  addEventListener("hashchange", close); // a question belongs to its page
  const closed = await open(h(Question, { title, ...options, onanswer: (text) => { answer = text; }, onchoice: (value) => { chosen = value; } }));
  removeEventListener("hashchange", close);
  if (closed !== "ok") return null;
  return options.choices ? [chosen, answer] : answer;
}

/** Show an outcome: in the corner, or, if there are details, in the dialog until the user closes it. */
export async function showOutcome(title, more) {
  if (!more) { say(title); return; }
  await open([heading(title), more, h("form", { method: "dialog", class: "actions" }, h("button", { type: "submit", class: "primary" }, t("close")))]);
}

/** Repeat `piece` (which returns how many it did, 0 = none left) and show the progress, until the user closes the dialog; total null = unknown.
 *  Resolves to how many were done; to null if the user has closed the dialog. */
export async function withProgress(title, total, piece) {
  let isOpen = true;
  let did = 0;
  const content = () => [heading(title), h("progress", { ...(total !== null && { max: total, value: Math.min(did, total) }), "aria-label": title }), actions()];
  const closed = open(content()).then(() => { isOpen = false; });
  try {
    while (isOpen) {
      const count = await piece();
      if (!count) break;
      did += count;
      if (isOpen) render(content(), dialog);
    }
    return isOpen ? did : null;
  } finally {
    if (isOpen) close();
    await closed;
  }
}

// The second click of a double click, and Enter held down, were meant for what was there before: they push nothing twice, answer no question that has
// just opened beneath them, and press nothing on the page that a link led to. A button that still says the same, such as “Next page”, may be pressed again.
let clicked = {};
addEventListener("click", (event) => {
  const target = event.target.closest("button, a");
  const isOther = target !== clicked.target || target?.textContent !== clicked.text;
  if (event.detail > 1 && target && (isOther || target.type === "submit")) {
    event.preventDefault();
    event.stopPropagation();
  } else clicked = { target, text: target?.textContent };
}, true);
addEventListener("keydown", (event) => { if (event.repeat && event.key === "Enter" && !event.target.closest("textarea")) event.preventDefault(); });

/** Run the action of a button, one at a time; show an error as a message. */
async function busily(component, work) {
  if (component.state.busy) return;
  component.setState({ busy: true });
  await showingErrors(work)();
  component.setState({ busy: false });
}
const busy = (component) => (component.state.busy ? "true" : null); // not disabled: that would take the focus away

class Action extends Component {
  render({ text, work, kind }) {
    return h("button", { type: "button", class: kind, "aria-disabled": busy(this), onclick: ({ currentTarget }) => busily(this, () => work(currentTarget)) }, text);
  }
}

/** A button that calls work(button). `key` distinguishes it from others that may be rendered in its place. */
export const action = (text, work, kind = null, key = null) => h(Action, { key, text, work, kind });

/** Fields, and a button that calls work(FormData, form) with them. `after` comes after the button. */
export class Form extends Component {
  submit = (event) => {
    const form = event.currentTarget;
    event.preventDefault();
    busily(this, () => this.props.work(new FormData(form), form));
  };

  render({ text, kind, after, children }) {
    return h("form", { class: kind, onsubmit: this.submit }, children,
      h("div", { class: "whole bar" }, h("button", { type: "submit", class: "primary", "aria-disabled": busy(this) }, text), after));
  }
}
