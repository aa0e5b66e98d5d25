// A topic: its due times, and its jobs by state and range of due times.

import { call, may } from "../api.js";
import { showingErrors } from "../ask.js";
import { breaking, choices, h, keepPlace, table } from "../dom.js";
import { moment, number, time } from "../format.js";
import { t } from "../i18n.js";
import { FIRST_SPAN, forecastCard, forecastOf } from "./forecast.js";
import { findLink, groupLink, pages } from "./jobs.js";
import { FIRST_PAST, Past } from "./past.js";
import { Selecting } from "./selecting.js";
import { topicActions, topicAt, topicPlace, topicTags } from "./topics.js";

const STATES = ["delayed", "ready", "reserved", "buried", "finished", "cancelled", "expired", "dropped", ""];
const ENTER = 13; // as keyCode, which is another one while an input method is used, in Safari, too
const ALL = "all"; // in an address, where "" lets the page choose
const MATTERS = ["buried", "ready", "reserved", "delayed"]; // what the page begins with, if there are such jobs
const NOTHING = { delayed: 0, ready: 0, reserved: 0, buried: 0, oldest_ready_age: null, paused: false, limit: null };

export class TopicPage extends Selecting {
  constructor(properties) {
    super(properties);
    const { argument } = properties;
    const [name, state, range = ""] = topicAt(argument);
    const [start, end = null] = range.split("-").map((bound) => (bound ? Number(bound) : null));
    this.name = name;
    this.past = new Past(name);
    Object.assign(this.state, { state: state === ALL ? "" : state || null, start, end, span: FIRST_SPAN, past: FIRST_PAST });
  }

  which() {
    const { state, start, end } = this.state;
    return { topic: this.name, state: state || null, start, end };
  }

  async count() {
    const [counts] = await call("topics", { topics: [this.name], groups: true });
    return counts || { ...NOTHING, topic: this.name };
  }

  /** Choose the state of the jobs that are listed first. */
  async begin() {
    const counts = await this.count();
    const state = MATTERS.find((one) => counts[one]) || "";
    await new Promise((done) => { this.setState({ state }, done); });
  }

  async load() {
    if (this.state.state === null) await this.begin();
    const { cursors, span } = this.state;
    const [counts, listed, forecast] = await Promise.all([
      this.count(), pages(this.which(), cursors), forecastOf(this.name, span), this.past.of(this.state.past)]);
    return { counts, listed, forecast };
  }

  /** Show other jobs. */
  filter(which) {
    const { state, start, end } = { ...this.state, ...which };
    keepPlace(topicPlace(this.name, state || ALL, `${start ?? ""}-${end ?? ""}`));
    this.choose({ ...which, cursors: [""], ticked: new Map() });
  }

  bound = showingErrors((name, text) => this.filter({ [name]: moment(text) }));

  /** The groups whose jobs wait: how many there are, and those with the most, each with the way to its jobs. */
  groups({ ready, held, most = [] }) {
    return h("section", { class: "card" }, h("h2", {}, t("groups")),
      h("p", { class: "soft" }, t("groupsWait", number(ready), number(held))),
      most.length > 0 && table([
        { name: t("group"), class: "wide title", cell: ({ group }) => groupLink({ topic: this.name, group }) },
        { name: t("ready"), class: "number", cell: (one) => number(one.ready) },
        { name: t("reserved"), class: "number", cell: (one) => number(one.reserved) },
      ], most, (one) => one.group, "", null, "compact"));
  }

  view({ counts, listed, forecast }) {
    const { state, start, end } = this.state;
    const bound = (name, value, text) => h("label", { class: "soft small" }, text, " ", h("input", {
      class: "moment", autocomplete: "off", placeholder: time(Date.now() / 1000).slice(0, 16), defaultValue: time(value), onchange: ({ target }) => this.bound(name, target.value),
    }));
    const button = (one) => [one, [t(one || "all"), counts[one] > 0 && [" ", h("span", { class: "count" }, number(counts[one]))]]];
    return [
      h("div", { class: "bar" }, h("h1", {}, breaking(counts.topic), " ", topicTags(counts)), h("span", { class: "grow" }), topicActions(counts, this.refresh)),
      h("div", { class: "columns" }, forecastCard(forecast, (chosen) => this.choose({ span: chosen })), this.past.card(this.state.past, (past) => this.choose({ past }))),
      counts.groups && this.groups(counts.groups),
      h("section", { class: "card" },
        h("div", { class: "bar" }, choices(STATES.map(button), state, (chosen) => this.filter({ state: chosen }), t("state"))),
        h("div", { class: "bar" },
          may("find") && h("input", {
            type: "search", placeholder: t("findText"), "aria-label": t("findText"), maxlength: 256,
            onkeydown: ({ keyCode, target }) => { if (keyCode === ENTER && target.value) location.hash = findLink({ topic: this.name, text: target.value }); },
          }),
          h("span", { class: "grow" }), h("span", { class: "pair" }, bound("start", start, t("from")), bound("end", end, t("to")))),
        this.list(listed, start === null && end === null ? counts[state] ?? null : null, { topic: false })),
    ];
  }
}
