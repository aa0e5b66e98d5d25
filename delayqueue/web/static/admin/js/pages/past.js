// The history of hours or days that the servers record: throughput, lateness, depth, and what went wrong.

import { call } from "../api.js";
import { past } from "../chart.js";
import { choices, h } from "../dom.js";
import { length, number, seconds, time } from "../format.js";
import { t } from "../i18n.js";

const PER = { 60: "per60", 600: "per600", 3600: "per3600" }; // by the length of a step in seconds
const MARK_TEXTS = { started: "mark_started", outage: "mark_outage", failover: "mark_failover", clock: "mark_clock" };
const FRESH_MS = { "3h": 10000, "2d": 60000, "30d": 60000 }; // servers record their counts every 10 s or so
const MARKS = 5; // listed in words, of incidents and of actions
const LEAST = 10; // steps of a chart; more if more of them are known
// what a chart shows: [field, its text, colour]
const CHARTS = {
  flow: [["pushed", "pushed", "--delayed"], ["delivered", "delivered", "--reserved"], ["finished", "finished", "--ready"], ["failed", "failed", "--buried"]],
  lateness: [["lateness_mean", "mean", "--reserved"], ["lateness_worst", "worst", "--buried"]],
  "depth": ["delayed", "ready", "reserved", "buried"].map((state) => [state, state, `--${state}`]),
};
export const FIRST_PAST = { reach: "3h", shows: "flow" };

/** The history of a topic, or of all topics for "". */
export class Past {
  constructor(topic) {
    this.topic = topic;
    this.known = null;
    this.reach = null;
    this.asked = 0;
  }

  /** The history of the chosen time range; loaded again when it may have changed. */
  async of({ reach }) {
    if (reach !== this.reach || Date.now() - this.asked > FRESH_MS[reach]) {
      const asked = Date.now();
      const known = await call("history", { topic: this.topic || null, span: reach });
      known.marks = known.marks.filter(({ kind, what }) => kind !== "did" || !this.topic || what?.includes(`"topic": ${JSON.stringify(this.topic)}`));
      Object.assign(this, { known, reach, asked });
    }
    return this.known;
  }

  /** A card with its chart; onchoose gets the new selection. */
  card({ reach, shows }, onchoose) {
    const title = shows === "flow" ? t(PER[this.known.step]) : t(shows);
    const series = CHARTS[shows];
    const skip = unknownSteps(this.known);
    const columns = series.map(([field]) => this.known[field].slice(skip));
    const times = this.known.pushed.map((_, index) => this.known.start + index * this.known.step).slice(skip);
    const isKnown = columns.some((column) => column.some((value) => value !== null));
    return h("section", { class: "card past" },
      h("div", { class: "bar" }, h("h2", {}, title), h("span", { class: "grow" }),
        choices(Object.keys(CHARTS).map((name) => [name, t(name)]), shows, (chosen) => onchoose({ reach, shows: chosen }), t("past")),
        choices(Object.keys(FRESH_MS).map((span) => [span, length(seconds(span))]), reach, (chosen) => onchoose({ reach: chosen, shows }), t("reach"))),
      past(`${reach} ${shows}`, {
        label: title, step: this.known.step, marks: this.known.marks.filter(({ at, lasted }) => at + lasted >= times[0]).map((mark) => ({ ...mark, text: describe(mark) })),
        series: series.map(([, text, colour]) => [t(text), colour]), format: shows === "lateness" ? length : number,
      }, [times, ...(shows === "flow" ? columns.map(whole) : columns)]),
      !isKnown && h("p", { class: "soft small" }, t("noPast")),
      h("div", { class: "legend" }, series.map(([, text, colour]) => h("span", {}, h("span", { class: "dot", style: { background: `var(${colour})` } }), t(text)))),
      h("ul", { class: "marks small soft" }, listed(this.known.marks).map((mark) =>
        h("li", { key: `${mark.at} ${mark.server}`, class: mark.kind }, time(mark.at), " ", describe(mark)))));
  }
}

/** The latest incidents and the latest changes by users, so that neither kind hides the other. */
function listed(marks) {
  const of = (isAction) => marks.filter(({ kind }) => (kind === "did") === isAction).slice(0, MARKS);
  return [...of(false), ...of(true)].sort((one, other) => other.at - one.at);
}

/** How many steps at the beginning are left out: those before the first step with data. */
function unknownSteps(known) {
  const steps = known.pushed.length;
  const first = known.pushed.findIndex((_, index) => Object.values(CHARTS).flat().some(([field]) => known[field][index] !== null));
  return Math.max(0, Math.min(first < 0 ? steps : first, steps - LEAST));
}

/** Counts without the last step, which is not over and would look like a drop, unless it is the first step with data. */
const whole = (column) => (column.at(-2) === null ? column : [...column.slice(0, -1), null]);

function describe({ kind, lasted, server, by, what }) {
  if (kind === "did" && what) return `${by}: ${what}`;
  return [MARK_TEXTS[kind] ? t(MARK_TEXTS[kind]) : kind, lasted > 0 && length(lasted), server].filter(Boolean).join(" · ");
}
