// What runs by itself: the subscribers that the server calls, and the schedules by which it pushes jobs.

import { call, may } from "../api.js";
import { action, ask, Form } from "../ask.js";
import { h, table } from "../dom.js";
import { length, number, relative, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { topicLink } from "./topics.js";

const SUBSCRIBERS = () => ({
  title: t("subscribers"), list: "subscribers", add: "subscribe", remove: "unsubscribe", empty: t("noSubscribers"),
  columns: [
    { name: t("topic"), class: "wide", cell: (one) => topicLink(one.topic) },
    { name: t("order"), class: "number", cell: (one) => number(one.order) },
    { name: t("calls"), class: "wide mono", cell: (one) => one.url || one.handler },
    { name: t("retries"), cell: (one) => one.retry.map(length).join(", ") },
    { name: t("expects"), class: "mono", cell: (one) => (one.url ? one.expect || "2xx" : "–") },
    { name: t("onFailure"), cell: (one) => t(one.on_failure === "continue" ? "goOn" : "bury") },
    { name: t("payload"), cell: (one) => (one.url ? t(one.payload) : "–") },
    { name: t("signed"), cell: (one) => (one.signed ? t("yes") : t("no")) },
  ],
  fields: [
    ["name", t("name"), { required: true }], ["topic", t("topic"), { required: true }],
    ["url", "URL", { required: true, type: "url", placeholder: "https://" }],
    ["order", t("order"), { type: "number", defaultValue: "0" }], ["secret", t("secretHelp"), { placeholder: "whsec_…" }],
    ["expect", t("expectHelp"), { placeholder: "*success*", maxlength: "256" }],
    ["on_failure", t("onFailure"), { choices: [["bury", t("bury")], ["continue", t("goOn")]] }],
    ["payload", t("payload"), { choices: [["body", t("body")], ["event", t("event")]] }],
  ],
  request: (text) => ({ ...text, order: Number(text.order || 0) }),
});

const SCHEDULES = () => ({
  title: t("schedules"), list: "schedules", add: "schedule", remove: "unschedule", empty: t("noSchedules"),
  columns: [
    { name: t("topic"), class: "wide", cell: (one) => topicLink(one.topic) },
    { name: t("when"), class: "mono", cell: (one) => (one.cron ? `${one.cron} ${one.tz}` : length(one.every)) },
    { name: t("next"), cell: (one) => (one.next === null ? "–" : h("span", { title: relative(one.next) }, time(one.next))) },
    { name: t("body"), class: "cut", cell: (one) => one.body },
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
class Registered extends Live {
  everyMs = 5000;

  load() {
    return call(this.kind().list);
  }

  add = async (form, element) => {
    const { add, request } = this.kind();
    const given = [...form].map(([name, text]) => [name, text.trim()]).filter(([, text]) => text);
    await call(add, request(Object.fromEntries(given)));
    element.reset();
    await this.refresh();
  };

  removal(name) {
    return action(t("remove"), async () => {
      if (await ask(t("remove"), { text: t("removeAsk", name), danger: true, ok: t("remove") }) === null) return;
      await call(this.kind().remove, { name });
      await this.refresh();
    }, "danger");
  }

  view(found) {
    const { title, columns, fields, empty, add, remove } = this.kind();
    return [
      h("h1", {}, title),
      h("section", { class: "card" }, table([
        { name: t("name"), class: "wide", cell: (one) => one.name }, ...columns,
        { name: t("actions"), class: "number", cell: (one) => (one.declared ? h("span", { class: "soft small" }, t("declared")) : may(remove) && this.removal(one.name)) },
      ], found, (one) => one.name, empty)),
      may(add) && h("section", { class: "card" }, h("h2", {}, t("add")), h(Form, { kind: "fields", text: t("add"), work: this.add },
        fields.map(([name, label, options]) => h("label", {}, label, input(name, options))))),
    ];
  }
}

export class Subscribers extends Registered {
  kind = SUBSCRIBERS;
}

export class Schedules extends Registered {
  kind = SCHEDULES;
}
