// Subscribers, which the server calls, and schedules, by which it pushes jobs.

import { call, may } from "../api.js";
import { action, ask, Form, tell } from "../ask.js";
import { breaking, facts, h, table } from "../dom.js";
import { length, number, relative, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { exportButtons } from "./exporting.js";
import { jobLink } from "./jobs.js";
import { topicLink } from "./topics.js";

/** How a subscriber is called, in one line. */
const rules = (one) => [
  `${t("retries")} ${one.retry.map(length).join(", ") || "–"}`, one.url && `${t("expects")} ${one.expect || "2xx"}`,
  one.on_failure === "continue" && t("goesOn"), one.payload === "event" && t("isSentEvent"), one.signed && t("signed"),
].filter(Boolean).join(" · ");

function callsOf({ succeeded, failed, took }) {
  if (!succeeded && !failed) return h("span", { class: "soft" }, t("none"));
  return [
    h("span", { class: failed ? "failed" : null }, t("callCounts", number(succeeded), number(failed))),
    h("div", { class: "soft small" }, t("average", length(took))),
  ];
}

const failure = ({ at, id, message }) => h("div", { key: at + id, class: "small" },
  h("span", { title: time(at) }, relative(at)), " ", jobLink(id), " ", message);

/** The last failure, and earlier ones on demand. */
const failuresOf = ([last, ...others]) => last && [
  failure(last),
  others.length > 0 && h("details", {}, h("summary", { class: "small" }, t("moreOf", number(others.length))), others.map(failure)),
];

const SUBSCRIBERS = () => ({
  exported: ["name", "topic", "order", "url", "handler", "timeout", "retry", "concurrency", "signed", "declared", "expect", "on_failure", "payload", "paused", "calls"],
  title: t("subscribers"), list: "subscribers", request: { calls: true }, add: "subscribe", remove: "unsubscribe", empty: t("noSubscribers"),
  name: (one) => [one.name, one.paused !== null && [" ", h("span", { class: "tag" }, t("pausedSince", time(one.paused)))]],
  columns: [
    { name: t("topic"), class: "wide", cell: (one) => topicLink(one.topic) },
    { name: t("order"), class: "number", cell: (one) => number(one.order) },
    { name: t("calls"), class: "wide", cell: (one) => [h("span", { class: "mono" }, breaking(one.url || one.handler)), h("div", { class: "soft small" }, rules(one))] },
    { name: t("callsOfDay"), cell: (one) => callsOf(one.calls) },
    { name: t("lastFailure"), class: "wide", cell: (one) => failuresOf(one.calls.failures) },
  ],
  actions: (one, refresh) => [
    one.url && may("try-subscriber") && action(t("tryIt"), () => tryIt(one.name), null, "try"),
    may("pause-subscriber") && (one.paused === null
      ? action(t("pause"), () => pause(one, refresh), null, "pause") : action(t("resume"), () => change("resume", one.name, refresh), null, "resume")),
  ],
  fields: [
    ["name", t("name"), { required: true }], ["topic", t("topic"), { required: true }],
    ["url", t("url"), { required: true, type: "url", placeholder: "https://" }],
    ["order", t("order"), { type: "number", defaultValue: "0" }], ["secret", t("secretHelp"), { placeholder: "whsec_…" }],
    ["expect", t("expectHelp"), { placeholder: "*success*", maxlength: "256" }],
    ["on_failure", t("onFailure"), { choices: [["bury", t("bury")], ["continue", t("carryOn")]] }],
    ["payload", t("payload"), { choices: [["body", t("body")], ["event", t("event")]] }],
  ],
  given: (text) => ({ ...text, order: Number(text.order || 0) }),
});

async function pause({ name, topic }, refresh) {
  if (await ask(t("pause"), { text: t("pauseSubscriberAsk", name, topic) }) !== null) await change("pause", name, refresh);
}

async function change(verb, name, refresh) {
  await call(`${verb}-subscriber`, { name });
  await refresh();
}

/** Call it with a made-up job, and show the result. */
async function tryIt(name) {
  const body = await ask(t("tryIt"), { text: t("tryAsk", name), input: t("body"), value: "{}", most: 65536 });
  if (body === null) return;
  const { succeeded, status, took, message } = await call("try-subscriber", { name, body });
  await tell(t(succeeded ? "trySucceeded" : "tryFailed"), facts([
    [t("httpStatus"), status || "–"], [t("took"), length(took)], [t("answer"), h("div", { class: "lines mono" }, message)],
  ]));
}

const SCHEDULES = () => ({
  exported: ["name", "topic", "cron", "every", "tz", "body", "ttr", "catch_up", "next", "declared"],
  title: t("schedules"), list: "schedules", request: {}, add: "schedule", remove: "unschedule", empty: t("noSchedules"), name: (one) => one.name,
  columns: [
    { name: t("topic"), class: "wide", cell: (one) => topicLink(one.topic) },
    { name: t("when"), class: "mono", cell: (one) => (one.cron ? `${one.cron} ${one.tz}` : length(one.every)) },
    { name: t("next"), cell: (one) => (one.next === null ? "–" : h("span", { title: relative(one.next) }, time(one.next))) },
    { name: t("body"), class: "cut", cell: (one) => one.body },
  ],
  actions: (one) => may("run-schedule") && action(t("runNow"), async () => {
    if (await ask(t("runNow"), { text: t("runAsk", one.name, one.topic) }) === null) return;
    const { id } = await call("run-schedule", { name: one.name });
    await tell(t("pushedNow"), jobLink(id));
  }, null, "run"),
  fields: [
    ["name", t("name"), { required: true }], ["topic", t("topic"), { required: true }],
    ["cron", t("cronHelp"), { placeholder: "30 9 * * 1-5" }], ["tz", t("zoneHelp"), { placeholder: "Asia/Shanghai" }],
    ["every", t("everyHelp"), { placeholder: "15m" }], ["body", t("body"), {}],
  ],
  given: (text) => text,
  preview: (text) => call("preview-schedule", { cron: text.cron, every: text.every, tz: text.tz }),
});

const input = (name, { choices, ...options }) => (choices
  ? h("select", { name }, choices.map(([value, text]) => h("option", { value }, text)))
  : h("input", { name, autocomplete: "off", ...options }));

const timesOf = (times) => (times.length ? h("ol", { class: "times" }, times.map(({ at, local }) =>
  h("li", { key: at }, h("span", { class: "mono" }, local), " ", h("span", { class: "soft" }, relative(at))))) : t("noTimes"));

/** The fields that are not empty. */
const filled = (form) => Object.fromEntries([...form].map(([name, text]) => [name, text.trim()]).filter(([, text]) => text));

/** A list of subscribers or schedules, with a form that adds one. */
class Registered extends Live {
  everyMs = 5000;

  load() {
    const { list, request } = this.kind();
    return call(list, request);
  }

  add = async (form, element) => {
    const { add, given } = this.kind();
    await call(add, given(filled(form)));
    element.reset();
    this.setState({ times: null });
    await this.refresh();
  };

  preview = async ({ form }) => {
    this.setState({ times: await this.kind().preview(filled(new FormData(form))) });
  };

  removal(name) {
    return action(t("remove"), async () => {
      if (await ask(t("remove"), { text: t("removeAsk", name), danger: true, ok: t("remove") }) === null) return;
      await call(this.kind().remove, { name });
      await this.refresh();
    }, "danger");
  }

  view(found) {
    const { title, list, name, columns, exported, actions, fields, empty, add, remove, preview } = this.kind();
    return [
      h("div", { class: "bar" }, h("h1", {}, title), h("span", { class: "grow" }),
        exportButtons(list, exported, async () => ({ rows: await this.load(), cursor: "" }))),
      h("section", { class: "card" }, table([
        { name: t("name"), class: "wide", cell: name }, ...columns,
        { name: t("actions"), class: "buttons", cell: (one) => [actions(one, this.refresh),
          one.declared ? h("span", { class: "soft small" }, t("declared")) : may(remove) && this.removal(one.name)] },
      ], found, (one) => one.name, empty)),
      may(add) && h("section", { class: "card" }, h("h2", {}, t("add")), h(Form, {
        kind: "fields", text: t("add"), work: this.add,
        after: preview && may("preview-schedule") && action(t("nextTimes"), this.preview),
      }, fields.map(([field, label, options]) => h("label", {}, label, input(field, options)))),
      h("div", { role: "status" }, this.state.times && timesOf(this.state.times))),
    ];
  }
}

export class Subscribers extends Registered {
  kind = SUBSCRIBERS;
}

export class Schedules extends Registered {
  kind = SCHEDULES;
}
