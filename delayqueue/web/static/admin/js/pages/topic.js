// A topic: its counts, what becomes due when, its jobs by state and range of due times, and its dead letters in bulk.

import { call } from "../api.js";
import { action, ask, say, withProgress } from "../ask.js";
import { choices, h } from "../dom.js";
import { localTime, number, seconds, unixTime } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { FIRST_SPAN, forecastCard, forecastOf } from "./forecast.js";
import { jobTable, pages } from "./jobs.js";
import { topicTags, topicActions } from "./topics.js";

const PIECE = 1000; // jobs that one call handles
const STATES = ["", "delayed", "ready", "reserved", "buried"];
const NOTHING = { delayed: 0, ready: 0, reserved: 0, buried: 0, oldest_ready_age: null, paused: false, limit: null };

export class TopicPage extends Live {
  constructor(properties) {
    super(properties);
    const { argument } = properties;
    const [name, state = "", range = ""] = argument.startsWith("[") ? JSON.parse(argument) : [argument];
    const [start, end] = range ? range.split("-").map(Number) : [null, null];
    this.name = name;
    this.state = { state, start, end, cursors: [""], span: FIRST_SPAN };
  }

  async load() {
    const { state, start, end, cursors, span } = this.state;
    const [[counts], listed, forecast] = await Promise.all([
      call("topics", { topics: [this.name] }), pages({ topic: this.name, state: state || null, start, end }, cursors), forecastOf(this.name, span)]);
    return { counts: counts || { ...NOTHING, topic: this.name }, listed, forecast };
  }

  /** Show other jobs. */
  filter(which) {
    this.choose({ ...which, cursors: [""] });
  }

  view({ counts, listed, forecast }) {
    const { state, start, end } = this.state;
    const moment = (name, value, text) => h("label", { class: "soft small" }, text, " ", h("input", {
      type: "datetime-local", step: "1", defaultValue: value ? localTime(value) : "",
      onchange: (event) => this.filter({ [name]: unixTime(event.target.value) }),
    }));
    return [
      h("div", { class: "bar" }, h("h1", {}, counts.topic, " ", topicTags(counts)), h("span", { class: "grow" }), topicActions(counts, this.refresh)),
      forecastCard(forecast, (chosen) => this.choose({ span: chosen })),
      h("section", { class: "card" },
        h("div", { class: "bar" },
          choices(STATES.map((one) => [one, t(one || "all")]), state, (chosen) => this.filter({ state: chosen }), t("state")),
          h("span", { class: "grow" }), moment("start", start, t("from")), moment("end", end, t("to"))),
        state === "buried" && counts.buried > 0 && h("div", { class: "bar" }, bulkActions(counts, this.refresh)),
        jobTable(listed, (more) => this.choose({ cursors: more }), { topic: false })),
    ];
  }
}

/** For all dead letters of a topic. */
function bulkActions(counts, changed) {
  const { topic: name, buried } = counts;
  const kick = action(t("kickAll"), async () => {
    if (await ask(t("kickAll"), { text: t("kickAllAsk", number(buried), name) }) === null) return;
    let left = buried; // those only: one that is buried again meanwhile is a new dead letter
    await finish(withProgress(t("kickAll"), buried, async () => {
      if (left <= 0) return 0;
      const { count } = await call("kick", { topic: name, count: Math.min(PIECE, left) });
      left -= count;
      return count;
    }));
  });
  const delay = action(t("delayAll"), async () => {
    const answer = await ask(t("delayAll"), { input: t("delayAllAsk", number(buried), name), value: "10m" });
    if (answer === null) return;
    const wait = seconds(answer);
    await finish(withProgress(t("delayAll"), buried, async () => {
      const { jobs } = await call("list", { topic: name, state: "buried", limit: PIECE });
      if (jobs.length) await call("reschedule", { ids: jobs.map((job) => job.id), delay: wait });
      return jobs.length;
    }));
  });
  const remove = action(t("deleteAll"), async () => {
    if (await ask(t("deleteAll"), { text: t("deleteAllAsk", number(buried), name), danger: true, ok: t("deleteAll") }) === null) return;
    await finish(withProgress(t("deleteAll"), buried, async () => {
      const { jobs } = await call("list", { topic: name, state: "buried", limit: PIECE });
      if (jobs.length) await call("delete", { ids: jobs.map((job) => job.id) });
      return jobs.length;
    }));
  }, "danger");
  async function finish(done) {
    say(t("didCount", number(await done)));
    await changed();
  }
  return [kick, delay, remove];
}
