// What runs by itself: the subscribers that the server calls, and the schedules by which it pushes jobs.

import { call } from "../api.js";
import { act, action, ask } from "../ask.js";
import { fill, h, table } from "../dom.js";
import { length, number, relative, time } from "../format.js";
import { t } from "../i18n.js";
import { topicLink } from "./topics.js";

export const subscribers = (content, _, live) => registered(content, live, {
  title: t("subscribers"), list: "subscribers", add: "subscribe", remove: "unsubscribe", empty: t("noSubscribers"),
  columns: [
    { name: t("topic"), class: "wide", cell: (one) => topicLink(one.topic) },
    { name: t("order"), class: "number", cell: (one) => number(one.order) },
    { name: t("calls"), class: "wide mono", cell: (one) => one.url || one.handler },
    { name: t("retries"), class: "hide-small", cell: (one) => one.retry.map(length).join(", ") },
    { name: t("expects"), class: "hide-small mono", cell: (one) => (one.url ? one.expect || "2xx" : "–") },
    { name: t("onFailure"), class: "hide-small", cell: (one) => t(one.on_failure === "continue" ? "goOn" : "bury") },
    { name: t("payload"), class: "hide-small", cell: (one) => (one.url ? t(one.payload) : "–") },
    { name: t("signed"), class: "hide-small", cell: (one) => (one.signed ? t("yes") : t("no")) },
  ],
  fields: [
    ["name", t("name"), { required: true }], ["topic", t("topic"), { required: true }],
    ["url", "URL", { required: true, type: "url", placeholder: "https://" }],
    ["order", t("order"), { type: "number", value: "0" }], ["secret", t("secretHelp"), { placeholder: "whsec_…" }],
    ["expect", t("expectHelp"), { placeholder: "*success*", maxlength: "256" }],
    ["on_failure", t("onFailure"), { choices: [["bury", t("bury")], ["continue", t("goOn")]] }],
    ["payload", t("payload"), { choices: [["body", t("body")], ["event", t("event")]] }],
  ],
  request: (text) => ({ ...text, order: Number(text.order || 0) }),
});

export const schedules = (content, _, live) => registered(content, live, {
  title: t("schedules"), list: "schedules", add: "schedule", remove: "unschedule", empty: t("noSchedules"),
  columns: [
    { name: t("topic"), class: "wide", cell: (one) => topicLink(one.topic) },
    { name: t("when"), class: "mono", cell: (one) => (one.cron ? `${one.cron} ${one.tz}` : length(one.every)) },
    { name: t("next"), cell: (one) => (one.next === null ? "–" : h("span", { title: relative(one.next) }, time(one.next))) },
    { name: t("body"), class: "cut hide-small", cell: (one) => one.body },
  ],
  fields: [
    ["name", t("name"), { required: true }], ["topic", t("topic"), { required: true }],
    ["cron", t("cronHelp"), { placeholder: "30 9 * * 1-5" }], ["tz", t("zoneHelp"), { placeholder: "Asia/Shanghai" }],
    ["every", t("everyHelp"), { placeholder: "15m" }], ["body", t("body"), {}],
  ],
  request: (text) => text,
});

const input = (name, { choices, ...options }) => (choices
  ? h("select", { name }, choices.map(([value, text]) => h("option", { value }, text)))
  : h("input", { name, autocomplete: "off", ...options }));

/** A list of what is registered under names, with a form that adds one. */
async function registered(content, live, kind) {
  const list = h("div");
  const button = h("button", { type: "submit", class: "primary" }, t("add"));
  const inputs = kind.fields.map(([name, label, options]) => h("label", {}, label, input(name, options)));
  const form = h("form", { class: "fields" }, inputs, h("div", { class: "whole" }, button));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act(button, async () => {
      const given = [...new FormData(form)].map(([name, text]) => [name, text.trim()]).filter(([, text]) => text);
      await call(kind.add, kind.request(Object.fromEntries(given)));
      form.reset();
      await refresh();
    });
  });
  fill(content, h("h1", {}, kind.title), h("section", { class: "card" }, list),
    h("section", { class: "card" }, h("h2", {}, t("add")), form));
  const columns = [
    { name: t("name"), class: "wide", cell: (one) => one.name }, ...kind.columns,
    { name: "", class: "number", cell: (one) => (one.declared ? h("span", { class: "soft small" }, t("declared")) : removal(one.name)) },
  ];
  const removal = (name) => action(t("remove"), async () => {
    if (await ask(t("remove"), { text: t("removeAsk", name), danger: true, ok: t("remove") }) === null) return;
    await call(kind.remove, { name });
    await refresh();
  }, "danger");
  async function refresh() {
    fill(list, table(columns, await call(kind.list), kind.empty));
  }
  await live(refresh, 5000);
}
