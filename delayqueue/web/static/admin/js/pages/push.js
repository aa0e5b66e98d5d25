// A form that pushes a job.

import { call } from "../api.js";
import { act, say } from "../ask.js";
import { fill, h } from "../dom.js";
import { seconds } from "../format.js";
import { t } from "../i18n.js";
import { jobLink } from "./jobs.js";

export async function push(content) {
  const field = (name, label, options = {}) => h("label", {}, label, h("input", { name, autocomplete: "off", spellcheck: "false", ...options }));
  const button = h("button", { type: "submit", class: "primary" }, t("pushNow"));
  const answer = h("p", { role: "status" });
  const form = h("form", { class: "fields card" },
    field("topic", t("topic"), { required: true }),
    field("id", t("idHelp"), { value: "*", required: true }),
    field("delay", t("delay"), { value: "30m" }),
    field("ttr", t("ttrHelp"), { type: "number", value: "60", required: true }),
    field("tags", t("tagsHelp")),
    field("retry", t("retryHelp")),
    field("retain", t("retainHelp")),
    h("label", { class: "whole" }, t("body"), h("textarea", { name: "body", rows: "6", class: "mono", spellcheck: "false" })),
    h("div", { class: "whole bar" }, button, answer));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    act(button, async () => {
      const request = job(new FormData(form));
      const data = await call("push", request);
      fill(answer, t("pushedId"), jobLink(data ? data.id : request.id));
      say(t("didIt"));
    });
  });
  fill(content, h("h1", {}, t("push")), form);
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
