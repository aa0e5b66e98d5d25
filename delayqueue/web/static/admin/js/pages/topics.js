// All topics with their counts.

import { call } from "../api.js";
import { action, ask, say } from "../ask.js";
import { breaking, h, table } from "../dom.js";
import { length, number, seconds, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";

const PAGE = 100;

export class Topics extends Live {
  state = { match: "" };

  load() {
    return call("topics", { match: this.state.match.trim() || null, limit: PAGE + 1 });
  }

  view(found) {
    const { match } = this.state;
    return [
      h("div", { class: "bar" }, h("h1", {}, t("topics")), h("span", { class: "grow" }), h("input", {
        type: "search", placeholder: t("filter"), "aria-label": t("filter"), maxlength: 256, value: match,
        oninput: (event) => this.choose({ match: event.target.value }),
      })),
      h("div", { class: "card" }, topicTable(found.slice(0, PAGE), match ? t("noTopicsFound") : t("noTopics")),
        found.length > PAGE && h("p", { class: "soft" }, t("moreTopics", PAGE))),
    ];
  }
}

/** Topics with their counts. */
export function topicTable(rows, empty = t("noTopics")) {
  const count = (state) => ({
    name: t(state), class: "number", cell: (row) => (row[state]
      ? topicLink(row.topic, state, "", h("span", { class: `state ${state}` }, number(row[state]))) : h("span", { class: "soft" }, "0")),
  });
  return table([
    { name: t("topic"), class: "wide", cell: (row) => [topicLink(row.topic), " ", topicTags(row)] },
    count("delayed"), count("ready"), count("reserved"), count("buried"),
    { name: t("oldest"), class: "number", cell: (row) => (row.oldest_ready_age === null ? "" : length(row.oldest_ready_age)) },
  ], rows, (row) => row.topic, empty);
}

/** A link to a topic's page, with the state and range of due times that it begins with. */
export function topicLink(topic, state = "", range = "", text = breaking(topic)) {
  return h("a", { href: `#/topic/${encodeURIComponent(JSON.stringify([topic, state, range]))}` }, text);
}

/** That a topic is paused or limited. */
export function topicTags(topic) {
  const paused = topic.paused === true ? t("paused") : topic.paused && t("pausedUntil", time(topic.paused));
  const limits = topic.limit && limitText(topic.limit);
  const limited = limits && t("limited", limits);
  return [paused, limited].filter(Boolean).map((text) => [h("span", { class: "tag" }, text), " "]);
}

/** Limits as a person types them: "50/s, 10". */
function limitText({ rate, concurrency }) {
  return [rate && `${rate}/s`, concurrency].filter(Boolean).join(", ");
}

/** What a person typed: "50/s" is a rate, "10" so many at once; what is not there is no limit. */
function limitOf(text) {
  const limit = { rate: null, concurrency: null };
  for (const word of text.split(/[\s,]+/).filter(Boolean)) {
    const [, value, perSecond] = /^([\d.]+)(\/s)?$/.exec(word) || [];
    if (!value) throw new Error(t("limitWrong", word));
    limit[perSecond ? "rate" : "concurrency"] = Number(value);
  }
  return limit;
}

/** The buttons of a topic. */
export function topicActions(topic, changed) {
  const name = topic.topic;
  const pause = action(t("pause"), async () => {
    const answer = await ask(t("pause"), { input: t("pauseFor") });
    if (answer === null) return;
    await call("pause", { topic: name, seconds: answer.trim() ? seconds(answer) : null });
    await changed();
  });
  const resume = action(t("resume"), async () => { await call("resume", { topic: name }); await changed(); });
  const limit = action(t("limit"), async () => {
    const answer = await ask(t("limit"), { input: t("limitTo"), value: topic.limit ? limitText(topic.limit) : "" });
    if (answer === null) return;
    await call("limit", { topic: name, ...limitOf(answer) });
    await changed();
  });
  const purge = action(t("purge"), async () => {
    const options = { text: t("purgeAsk", name), input: t("purgeType"), must: name, danger: true, ok: t("purge") };
    if (await ask(t("purge"), options) === null) return;
    const { count } = await call("purge", { topic: name });
    say(t("didCount", number(count)));
    await changed();
  }, "danger");
  return [topic.paused ? resume : pause, limit, purge];
}
