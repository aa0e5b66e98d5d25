// A topic: its due times, and its jobs by state and range of due times.

import { call, may } from "../api.js";
import { breaking, choices, h } from "../dom.js";
import { localTime, unixTime } from "../format.js";
import { t } from "../i18n.js";
import { findLink } from "./find.js";
import { FIRST_SPAN, forecastCard, forecastOf } from "./forecast.js";
import { pages } from "./jobs.js";
import { FIRST_PAST, Past } from "./past.js";
import { Selecting } from "./selecting.js";
import { topicTags, topicActions } from "./topics.js";

const STATES = ["", "delayed", "ready", "reserved", "buried"];
const NOTHING = { delayed: 0, ready: 0, reserved: 0, buried: 0, oldest_ready_age: null, paused: false, limit: null };

export class TopicPage extends Selecting {
  constructor(properties) {
    super(properties);
    const { argument } = properties;
    const [name, state = "", range = ""] = argument.startsWith("[") ? JSON.parse(argument) : [argument];
    const [start, end] = range ? range.split("-").map(Number) : [null, null];
    this.name = name;
    this.past = new Past(name);
    Object.assign(this.state, { state, start, end, span: FIRST_SPAN, past: FIRST_PAST });
  }

  which() {
    const { state, start, end } = this.state;
    return { topic: this.name, state: state || null, start, end };
  }

  async load() {
    const { cursors, span } = this.state;
    const [[counts], listed, forecast] = await Promise.all([
      call("topics", { topics: [this.name] }), pages(this.which(), cursors), forecastOf(this.name, span), this.past.of(this.state.past)]);
    return { counts: counts || { ...NOTHING, topic: this.name }, listed, forecast };
  }

  /** Show other jobs. */
  filter(which) {
    this.choose({ ...which, cursors: [""], ticked: new Map() });
  }

  view({ counts, listed, forecast }) {
    const { state, start, end } = this.state;
    const moment = (name, value, text) => h("label", { class: "soft small" }, text, " ", h("input", {
      type: "datetime-local", step: "1", defaultValue: value ? localTime(value) : "",
      onchange: (event) => this.filter({ [name]: unixTime(event.target.value) }),
    }));
    return [
      h("div", { class: "bar" }, h("h1", {}, breaking(counts.topic), " ", topicTags(counts)), h("span", { class: "grow" }), topicActions(counts, this.refresh)),
      h("div", { class: "columns" }, forecastCard(forecast, (chosen) => this.choose({ span: chosen })), this.past.card(this.state.past, (past) => this.choose({ past }))),
      h("section", { class: "card" },
        h("div", { class: "bar" },
          choices(STATES.map((one) => [one, t(one || "all")]), state, (chosen) => this.filter({ state: chosen }), t("state")),
          may("find") && h("input", {
            type: "search", placeholder: t("findText"), "aria-label": t("findText"), maxlength: 256,
            onkeydown: ({ key, target }) => { if (key === "Enter" && target.value) location.hash = findLink({ topic: this.name, text: target.value }); },
          }),
          h("span", { class: "grow" }), moment("start", start, t("from")), moment("end", end, t("to"))),
        this.list(listed, start === null && end === null && state ? counts[state] : null, { topic: false })),
    ];
  }
}
