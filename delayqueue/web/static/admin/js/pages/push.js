// A form that pushes a job: a new one, a copy of another, or a buried one with a new body.

import { call } from "../api.js";
import { Form, say } from "../ask.js";
import { Component, h } from "../dom.js";
import { seconds } from "../format.js";
import { t } from "../i18n.js";
import { jobLink } from "./jobs.js";

const NEW = { topic: "", ttr: 60, tags: [], priority: 1024, body: "", retry: null, retain: null, expires: null };
const asLength = (value) => (value > 0 ? `${value}s` : "");
const field = (name, label, options = {}) => h("label", {}, label, h("input", { name, autocomplete: "off", spellcheck: false, ...options }));

/** With the argument ["clone" or "edit", id] the form starts with that job's fields; an edited job replaces it. */
export class Push extends Component {
  constructor(properties) {
    super(properties);
    const [mode, id] = properties.argument ? JSON.parse(properties.argument) : ["new"];
    Object.assign(this, { mode, id });
    this.state = { model: mode === "new" ? NEW : null };
  }

  async componentDidMount() {
    if (this.mode === "new") return;
    try {
      this.setState({ model: await call("get", { id: this.id, options: true }) });
    } catch (error) {
      say(error.message, true);
    }
  }

  push = async (form) => {
    const request = job(form);
    if (this.mode === "edit") {
      request.id = this.id;
      const found = await call("get", { id: this.id });
      if (found?.state !== "buried") throw new Error(t("gone")); // the push would take it from its worker
    }
    const data = await call("push", request);
    this.setState({ pushed: data ? data.id : request.id });
    say(t("didIt"));
  };

  render(_, { model, pushed }) {
    const title = h("h1", {}, t({ new: "push", clone: "cloning", edit: "editing" }[this.mode]));
    if (!model) return title;
    const isNew = this.mode === "new";
    return [title, h(Form, {
      kind: "fields card", text: this.mode === "edit" ? t("retry") : t("pushNow"), work: this.push,
      after: h("p", { role: "status" }, pushed && [t("pushedId"), jobLink(pushed)]),
    },
    field("topic", t("topic"), { required: true, defaultValue: model.topic }),
    field("id", t("idHelp"), { required: true, defaultValue: this.mode === "edit" ? model.id : "*", readOnly: this.mode === "edit" }),
    field("delay", t("delay"), { defaultValue: isNew ? "30m" : "" }),
    field("ttr", t("ttrHelp"), { type: "number", defaultValue: String(model.ttr), required: true }),
    field("tags", t("tagsHelp"), { defaultValue: model.tags.join(", ") }),
    field("priority", t("priorityHelp"), { type: "number", defaultValue: String(model.priority) }),
    field("retry", t("retryHelp"), { defaultValue: (model.retry || []).map((delay) => `${delay}s`).join(",") }),
    field("retain", t("retainHelp"), { defaultValue: asLength(model.retain) }),
    field("expire", t("expireHelp"), { defaultValue: model.expires ? asLength(Math.round(1000 * (model.expires - model.due)) / 1000) : "" }),
    h("label", { class: "whole" }, t("body"), h("textarea", { name: "body", rows: 8, class: "mono", spellcheck: false, defaultValue: model.body })))];
  }
}

/** The form as a job for /push. */
function job(form) {
  const text = (name) => form.get(name).trim();
  const length = (name) => (text(name) ? seconds(text(name)) : null);
  const retry = text("retry");
  return {
    topic: text("topic"), id: text("id"), delay: length("delay") || 0, ttr: Number(text("ttr")), body: form.get("body"),
    tags: text("tags") ? text("tags").split(",").map((tag) => tag.trim()) : null,
    retry: !retry ? null : /^[a-z]+$/.test(retry) ? { preset: retry } : { delays: retry.split(",").map((delay) => delay.trim()) },
    retain: length("retain"), expire: length("expire"), priority: Number(text("priority") || NEW.priority),
  };
}
