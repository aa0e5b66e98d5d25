// A form that pushes a job: a new one, or a copy of another.

import { call } from "../api.js";
import { Form, say } from "../ask.js";
import { bodyOf, h } from "../dom.js";
import { exactly, seconds } from "../format.js";
import { t } from "../i18n.js";
import { Live, NEVER_MS } from "../live.js";
import { jobLink, noSuchJob } from "./jobs.js";

const NEW = { topic: "", ttr: 60, tags: [], attempts: [], priority: 1024, body: "", retry: null, retain: null, expires: null, call: null };
const asLength = (value) => (value > 0 ? exactly(value) : "");

/** How long after its due time a job expires; 0 = never. If it is due for a retry, its first attempt tells when it was due at first. */
function expiryOf({ expires, due, attempts: [first] }) {
  if (!expires) return 0;
  return first?.started < due ? Math.ceil(expires - first.started) : Math.round(1000 * (expires - due)) / 1000;
}

/** A retry schedule as users type it: "15s,2m", a preset's name, "none" for no retries; "" = null. */
export const retryText = (delays) => (delays?.length === 0 ? "none" : (delays || []).map(exactly).join(","));

/** The typed retry schedule, as requests have it. */
export function retryOf(text) {
  if (!text) return null;
  if (text === "none") return { delays: [] };
  return /^[a-z]+$/.test(text) ? { preset: text } : { delays: text.split(",").map((delay) => delay.trim()) };
}

const lines = (name, label, text, { rows = 2, whole = false } = {}) => h("label", { class: whole ? "whole" : null }, label,
  h("textarea", { name, rows, class: "mono", spellcheck: false, defaultValue: text }));
const field = (name, label, options = {}) => h("label", {}, label, h("input", { name, autocomplete: "off", spellcheck: false, ...options }));

/** With a job's id as argument, the form starts with that job's fields. */
export class Push extends Live {
  everyMs = NEVER_MS; // the form is the user's

  /** The job that the form starts with; without one, the call only asks for a token before the form is filled. */
  async load() {
    const id = this.props.argument;
    return id ? call("get", { id, options: true }) : call("whoami").then(() => NEW);
  }

  push = async (form) => {
    const request = job(form, this.state.data);
    const data = await call("push", request);
    this.setState({ pushed: data ? data.id : request.id });
    say(t("didIt"));
  };

  view(model) {
    const { argument } = this.props;
    const { pushed } = this.state;
    if (!model) return noSuchJob(argument);
    return [h("h1", {}, t(argument ? "cloning" : "push")), h(Form, {
      kind: "fields card", text: t("pushNow"), work: this.push,
      after: h("p", { role: "status" }, pushed && [t("pushedId"), jobLink(pushed)]),
    },
    field("topic", t("topic"), { required: true, defaultValue: model.topic }),
    field("id", t("idHelp"), { required: true, defaultValue: "*" }),
    field("delay", t("delay"), { defaultValue: argument ? "" : "30m" }),
    field("ttr", t("ttrHelp"), { type: "number", defaultValue: String(model.ttr), required: true }),
    lines("tags", t("tagsHelp"), model.tags.join("\n")),
    field("priority", t("priorityHelp"), { type: "number", defaultValue: String(model.priority) }),
    field("group", t("groupHelp"), { defaultValue: model.group || "" }),
    field("retry", t("retryHelp"), { defaultValue: retryText(model.retry) }),
    field("retain", t("retainHelp"), { defaultValue: asLength(model.retain) }),
    field("expire", t("expireHelp"), { defaultValue: asLength(expiryOf(model)) }),
    field("call", t("callHelp"), { type: "url", defaultValue: model.call?.url || "" }),
    lines("headers", t("headersHelp"), headersText(model.call)),
    lines("body", t("body"), model.body, { rows: 8, whole: true }))];
  }
}

const SECRET = "***";  // instead of a header's value: the server does not tell it

/** The headers of a call, a line each; one whose value is not known has to be typed again. */
export const headersText = (known) => Object.entries(known?.headers || {}).map(([name, value]) => `${name}: ${value === SECRET ? "" : value}`).join("\n");

/** The typed headers. Throws an error that names a line without a value. */
export function headersOf(text) {
  return Object.fromEntries(text.split("\n").filter((line) => line.trim()).map((line) => {
    const [, name, value] = /^([^:]+):(.*\S)/.exec(line) || [];
    if (!value) throw new Error(t("headerWrong", line.trim()));
    return [name.trim(), value.trim()];
  }));
}

/** The form as a job for /push. `model`: the job that is copied. */
function job(form, model) {
  const text = (name) => form.get(name).trim();
  const length = (name) => (text(name) ? seconds(text(name)) : null);
  return {
    topic: text("topic"), id: text("id"), delay: length("delay") || 0, ttr: Number(text("ttr")), body: bodyOf(form.get("body"), model.body),
    tags: text("tags") ? text("tags").split(/\s*\n\s*/) : null,
    group: text("group") || null,
    retry: retryOf(text("retry")),
    retain: length("retain"), expire: length("expire"), priority: Number(text("priority") || NEW.priority),
    call: callOf(text("call"), text("headers"), model.call),
  };
}

/** The typed call, as requests have it. Fields of a call that the form does not have are copied from the `known` call. */
export const callOf = (url, headers, known) => (url ? { ...known, url, headers: headersOf(headers) } : null);
