// A form that pushes a job.

import { call } from "../api.js";
import { Form, say } from "../ask.js";
import { Component, h } from "../dom.js";
import { seconds } from "../format.js";
import { t } from "../i18n.js";
import { jobLink } from "./jobs.js";

const field = (name, label, options = {}) => h("label", {}, label, h("input", { name, autocomplete: "off", spellcheck: false, ...options }));

export class Push extends Component {
  push = async (form) => {
    const request = job(form);
    const data = await call("push", request);
    this.setState({ pushed: data ? data.id : request.id });
    say(t("didIt"));
  };

  render(_, { pushed }) {
    return [h("h1", {}, t("push")), h(Form, {
      kind: "fields card", text: t("pushNow"), work: this.push, after: h("p", { role: "status" }, pushed && [t("pushedId"), jobLink(pushed)]),
    },
    field("topic", t("topic"), { required: true }),
    field("id", t("idHelp"), { defaultValue: "*", required: true }),
    field("delay", t("delay"), { defaultValue: "30m" }),
    field("ttr", t("ttrHelp"), { type: "number", defaultValue: "60", required: true }),
    field("tags", t("tagsHelp")),
    field("retry", t("retryHelp")),
    field("retain", t("retainHelp")),
    h("label", { class: "whole" }, t("body"), h("textarea", { name: "body", rows: 6, class: "mono", spellcheck: false })))];
  }
}

/** The form as the server takes a job. */
function job(form) {
  const text = (name) => form.get(name).trim();
  const length = (name) => (text(name) ? seconds(text(name)) : null);
  const retry = text("retry");
  return {
    topic: text("topic"), id: text("id"), delay: length("delay") || 0, ttr: Number(text("ttr")), body: form.get("body"),
    tags: text("tags") ? text("tags").split(",").map((tag) => tag.trim()) : null,
    retry: !retry ? null : /^[a-z]+$/.test(retry) ? { preset: retry } : { delays: retry.split(",").map((delay) => delay.trim()) },
    retain: length("retain"),
  };
}
