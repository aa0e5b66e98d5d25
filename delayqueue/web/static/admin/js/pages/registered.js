// Subscribers, which the server calls, and schedules, by which it pushes jobs.

import { call, callPages, may } from "../api.js";
import { action, ask, Form, sayUndoable, showOutcome } from "../ask.js";
import { bodyOf, breaking, facts, firstRows, h, table, unbroken, words } from "../dom.js";
import { exactly, length, number, relative, seconds, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { exportButtons } from "./exporting.js";
import { jobLink } from "./jobs.js";
import { callOf, headersOf, headersText, retryOf, retryText } from "./push.js";
import { topicLink } from "./topics.js";

const PAGE = firstRows(100);
const PAGE_OF_FILE = 1000;

/** How a subscriber is called, in one line. */
const rules = (one) => [
  one.method !== "POST" && one.method, one.retry.length ? `${t("retries")} ${one.retry.map(exactly).join(", ")}` : t("noRetries"), one.url && `${t("expects")} ${one.expect || "2xx"}`,
  one.on_failure === "continue" && t("goesOn"), one.payload === "event" && t("isSentEvent"), one.signed && t("signed"),
  Object.keys(one.headers).join(", "),
].filter(Boolean).join(" · ");

function callsOf({ succeeded, failed, took }) {
  if (!succeeded && !failed) return h("span", { class: "soft" }, t("none"));
  return [
    h("span", { class: failed ? "failed" : null }, t("callCounts", number(succeeded), number(failed))),
    h("div", { class: "soft small" }, t("average", length(took))),
  ];
}

const failure = ({ at, id, message }) => h("div", { key: at + id, class: "small" },
  h("span", { title: time(at) }, relative(at)), " ", jobLink(id), words(message));

/** The last failure, and earlier ones on demand. */
const failuresOf = ([last, ...others]) => last && [
  failure(last),
  others.length > 0 && h("details", {}, h("summary", { class: "small" }, t("moreOf", number(others.length))), others.map(failure)),
];

const USUAL = { order: "0", timeout: "30s", retry: "5s,5m,30m,2h,5h,10h", concurrency: "10" };

const SUBSCRIBERS = (old) => ({
  exported: ["name", "topic", "order", "url", "handler", "timeout", "retry", "concurrency", "signed", "declared", "expect", "on_failure", "payload", "method", "headers", "paused", "calls"],
  title: t("subscribers"), list: "subscribers", request: { calls: true }, add: "subscribe", remove: "unsubscribe", empty: t("noSubscribers"),
  name: (one) => [one.name, one.paused !== null && [" ", h("span", { class: "tag" }, unbroken(t("pausedSince", time(one.paused))))]],
  columns: [
    { name: t("topic"), class: "wide", cell: (one) => topicLink(one.topic) },
    { name: t("order"), class: "number", cell: (one) => number(one.order) },
    { name: t("calls"), class: "wide", cell: (one) => [h("span", { class: "mono" }, breaking(one.url || one.handler)), h("div", { class: "soft small" }, rules(one))] },
    { name: t("callsOfDay"), class: "time", cell: (one) => callsOf(one.calls) },
    { name: t("lastFailure"), class: "wide", cell: (one) => failuresOf(one.calls.failures) },
  ],
  actions: (one, refresh) => [
    one.url && may("try-subscriber") && action(t("tryIt"), () => tryIt(one.name), null, "try"),
    may("pause-subscriber") && (one.paused === null
      ? action(t("pause"), () => pause(one, refresh), null, "pause") : action(t("resume"), () => changeUndoably("resume", one.name, refresh), null, "resume")),
  ],
  fields: [
    ["name", t("name"), { required: true }], ["topic", t("topic"), { required: true }],
    ["url", t("url"), { required: true, type: "url", placeholder: "https://" }],
    ["order", t("order"), { type: "number", placeholder: USUAL.order }],
    ["secret", t(old.signed ? "secretStays" : "secretHelp"), { placeholder: "whsec_…" }],
    ["timeout", t("timeout"), { placeholder: USUAL.timeout }],
    ["retry", t("retryCalls"), { placeholder: USUAL.retry }],
    ["concurrency", t("callsAtOnce"), { type: "number", placeholder: USUAL.concurrency }],
    ["expect", t("expectHelp"), { placeholder: "*success*", maxlength: "256" }],
    ["on_failure", t("onFailure"), { choices: [["bury", t("bury")], ["continue", t("carryOn")]] }],
    ["payload", t("payload"), { choices: [["body", t("body")], ["event", t("event")]] }],
    ["method", t("method"), { choices: ["POST", "PUT", "PATCH", "DELETE", "GET"].map((one) => [one, one]) }],
    ["headers", t("callHeaders"), { rows: 2 }],
  ],
  given: (typed) => {
    const text = { ...USUAL, expect: "", headers: "", ...typed };
    return {
      ...text, order: Number(text.order), timeout: seconds(text.timeout), retry: retryOf(text.retry), concurrency: Number(text.concurrency),
      headers: text.headers === headersText(old).trim() ? null : headersOf(text.headers), // null: they stay, with values that the page does not know
    };
  },
  written: (one) => ({ ...one, secret: "", timeout: exactly(one.timeout), retry: retryText(one.retry), headers: headersText(one) }),
});

async function pause({ name, topic }, refresh) {
  if (await ask(t("pause"), { text: t("pauseSubscriberAsk", name, topic) }) !== null) await changeUndoably("pause", name, refresh);
}

/** Pause or resume a subscriber; the other of the two undoes it. */
async function changeUndoably(verb, name, refresh) {
  await change(verb, name, refresh);
  const [text, other] = verb === "pause" ? ["didPause", "resume"] : ["didResume", "pause"];
  sayUndoable(t(text, name), () => change(other, name, refresh));
}

async function change(verb, name, refresh) {
  await call(`${verb}-subscriber`, { name });
  await refresh();
}

/** Call a subscriber with a made-up job, and show the result. */
async function tryIt(name) {
  const body = await ask(t("tryIt"), { text: t("tryAsk", name), input: t("body"), value: "{}", most: 65536 });
  if (body === null) return;
  const { succeeded, status, took, message } = await call("try-subscriber", { name, body });
  await showOutcome(t(succeeded ? "trySucceeded" : "tryFailed"), facts([
    [t("httpStatus"), status || "–"], [t("took"), length(took)], [t("answer"), h("div", { class: "lines mono" }, message)],
  ]));
}

const SCHEDULES = (old) => ({
  exported: ["name", "topic", "cron", "every", "tz", "body", "ttr", "catch_up", "paused", "call", "group", "next", "declared"],
  title: t("schedules"), list: "schedules", request: {}, add: "schedule", remove: "unschedule", empty: t("noSchedules"),
  name: (one) => [one.name, one.paused && [" ", h("span", { class: "tag" }, t("paused"))]],
  columns: [
    { name: t("topic"), class: "wide", cell: (one) => topicLink(one.topic) },
    { name: t("when"), class: "mono", cell: (one) => (one.cron ? `${one.cron} ${one.tz}` : t("everyLength", exactly(one.every))) },
    { name: t("next"), cell: (one) => (one.next === null ? "–" : h("span", { title: relative(one.next) }, time(one.next))) },
    { name: t("body"), class: "cut", cell: (one) => one.body },
    { name: t("calls"), class: "wide", cell: (one) => one.call && h("span", { class: "mono" }, breaking(one.call.url)) },
  ],
  actions: (one, refresh) => [
    may("run-schedule") && action(t("runNow"), async () => {
      if (await ask(t("runNow"), { text: t("runAsk", one.name, one.topic) }) === null) return;
      const { id } = await call("run-schedule", { name: one.name });
      await showOutcome(t("pushedNow"), jobLink(id));
    }, null, "run"),
    may("schedule") && !one.declared && action(t(one.paused ? "resume" : "pause"), async () => {
      const set = (paused) => call("schedule", { name: one.name, paused, if_exists: "change" }).then(refresh);
      await set(!one.paused);
      sayUndoable(t(one.paused ? "didResume" : "didPause", one.name), () => set(one.paused));
    }, null, "pause"),
  ],
  fields: [
    ["name", t("name"), { required: true }], ["topic", t("topic"), { required: true }],
    ["cron", t("cronHelp"), { placeholder: "30 9 * * 1-5" }], ["tz", t("zoneHelp"), { placeholder: "Asia/Shanghai" }],
    ["every", t("everyHelp"), { placeholder: "15m" }], ["ttr", t("ttrHelp"), { type: "number", placeholder: "60" }],
    ["catch_up", t("catchUp"), { choices: [["once", t("catchOnce")], ["all", t("catchAll")], ["skip", t("catchNone")]] }],
    ["group", t("groupHelp"), {}], ["body", t("body"), { rows: 3 }],
    ["call", t("callHelp"), { type: "url" }], ["headers", t("headersHelp"), { rows: 2 }],
  ],
  // null removes what it has, "" is refused
  given: ({ ttr = "60", every, cron = every ? null : "", tz = cron && "UTC", group = null, body = "", call: url = "", headers = "", ...text }) => {
    const stays = url === old.call?.url && headers === headersText(old.call).trim(); // with values that the page does not know
    return { ...text, ttr: Number(ttr), every, cron, tz, group, body: bodyOf(body, old.body), call: stays ? undefined : callOf(url, headers, old.call) };
  },
  written: (one) => ({ ...one, every: one.every ? exactly(one.every) : "", tz: one.cron ? one.tz : "", call: one.call?.url, headers: headersText(one.call) }),
  isTimed: true,
});

/** A field with its present value: a selection, a text of several lines, or one line. */
function input(name, { choices, ...options }, value) {
  if (choices) return h("select", { name }, choices.map(([one, text]) => h("option", { value: one, selected: one === value }, text)));
  const kind = options.rows ? "textarea" : "input";
  return h(kind, { name, autocomplete: "off", spellcheck: false, defaultValue: value === undefined || value === null ? "" : String(value), ...options });
}

const timesOf = (times) => (times.length ? h("ol", { class: "times" }, times.map(({ at, local }) =>
  h("li", { key: at }, h("span", { class: "mono" }, local), " ", h("span", { class: "soft" }, relative(at))))) : t("noTimes"));

/** The fields that are not empty; a body keeps its blanks. */
const filled = (form) => Object.fromEntries([...form].map(([name, text]) => [name, name === "body" ? text : text.trim()]).filter(([, text]) => text));

/** A list of subscribers or schedules, with a form that adds one or changes one. */
class Registered extends Live {
  everyMs = 5000;
  state = { cursors: [""] };

  load() {
    return this.read(this.state.cursors, PAGE);
  }

  read(cursors, limit) {
    const { list, request } = this.kind({});
    return callPages(list, list, { ...request, limit }, cursors);
  }

  /** Open the form: for a new one, or with the fields of `old`. */
  open = (old = {}) => {
    this.setState({ old: { ...old }, times: null }, () => {
      const form = document.querySelector("form.fields");
      form.untouched ??= filled(new FormData(form));
      form.querySelector("input:not([readonly])").focus();
    });
  };

  close = () => this.setState({ old: null });

  /** Change the form by an answer to it, unless another form is open by now. */
  answer(old, state) {
    if (this.state.old === old) this.setState(state);
  }

  /** Save the form: of a change only what was typed, so that it undoes no other change. */
  save = async (form, { untouched }) => {
    const { old } = this.state;
    const { add, given } = this.kind(old);
    const [typed, before] = [filled(form), untouched].map(given);
    const differs = (field) => JSON.stringify(typed[field]) !== JSON.stringify(before[field]);
    const changes = Object.fromEntries(Object.entries(typed).filter(([field]) => differs(field)));
    await call(add, old.name ? { ...changes, name: old.name, if_exists: "change" } : { ...typed, if_exists: "fail" });
    this.answer(old, { old: null });
    await this.refresh();
  };

  preview = async ({ form }) => {
    const { old } = this.state;
    const { cron, every, tz } = filled(new FormData(form));
    const asked = { cron, every, tz };
    this.asked = asked;
    const times = await call("preview-schedule", asked);
    if (this.asked === asked) this.answer(old, { times });
  };

  /** The times that are shown, or asked for, are those of what was typed before. */
  forgetTimes = () => {
    this.asked = null;
    this.setState({ times: null });
  };

  form() {
    const { old, times } = this.state;
    const { fields, written, isTimed } = this.kind(old);
    const values = old.name ? written(old) : {};
    const field = ([name, label, options]) => h("label", { class: options.rows ? "whole" : null }, label,
      input(name, name === "name" && old.name ? { ...options, readOnly: true } : options, values[name]));
    return h("section", { class: "card", oninput: this.forgetTimes }, h("h2", {}, old.name ? t("changeIt", old.name) : t("add")), h(Form, {
      key: old.name, kind: "fields", text: t("save"), work: this.save,
      after: [isTimed && may("preview-schedule") && action(t("nextTimes"), this.preview, null, "preview"), action(t("cancel"), this.close, null, "cancel")],
    }, fields.map(field)),
    h("div", { role: "status" }, times && timesOf(times)));
  }

  removal(name) {
    return action(t("remove"), async () => {
      if (await ask(t("remove"), { text: t("removeAsk", name), danger: true }) === null) return;
      await call(this.kind({}).remove, { name });
      await this.refresh();
    }, "danger", "remove");
  }

  view({ rows, next }) {
    const { title, list, name, columns, exported, actions, empty, add, remove } = this.kind({});
    const { old, cursors } = this.state;
    return [
      h("div", { class: "bar" }, h("h1", {}, title), h("span", { class: "grow" }),
        may(add) && action(t("add"), () => this.open(), "primary", "add"),
        exportButtons(list, exported, async (cursor) => {
          const page = await this.read([cursor], PAGE_OF_FILE);
          return { rows: page.rows, cursor: page.next };
        })),
      old && this.form(),
      h("section", { class: "card" }, table([
        { name: t("name"), class: "wide title", cell: name }, ...columns,
        { name: t("actions"), class: "buttons", cell: (one) => [actions(one, this.refresh),
          one.declared ? h("span", { class: "soft small" }, t("declared")) : [
            may(add) && action(t("change"), () => this.open(one), null, "change"), may(remove) && this.removal(one.name)]] },
      ], rows, (one) => one.name, empty), next && action(t("more"), () => this.choose({ cursors: [...cursors, next] }))),
    ];
  }
}

export class Subscribers extends Registered {
  kind = SUBSCRIBERS;
}

export class Schedules extends Registered {
  kind = SCHEDULES;
}
