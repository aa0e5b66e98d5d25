// Dead letters of all topics, by the reason of their last failure.

import { call, may } from "../api.js";
import { action, ask } from "../ask.js";
import { choices, firstRows, h, table } from "../dom.js";
import { length, number, relative, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { exportButtons } from "./exporting.js";
import { jobLink } from "./jobs.js";
import { doWith } from "./selecting.js";
import { topicLink } from "./topics.js";

const MOST_IDS = 10000; // of a page
const PAGE = firstRows(100);
const TOPICS_SHOWN = 5;
const COLUMNS = ["reason", "note", "count", "first", "last", "topics", "ids"];
const SPANS = [3600, 86400, 7 * 86400, 30 * 86400]; // seconds
const BARS = 24;
const MOST_CHARS = 500; // of a note

/** The groups of all pages, merged by reason; with the ids of one reason if the request names it. */
async function all(request) {
  const groups = new Map();
  let cursor = "";
  do {
    const page = await call("buried", { ...request, cursor });
    page.groups.forEach((group) => groups.set(group.reason, sum(groups.get(group.reason), group)));
    cursor = page.cursor;
  } while (cursor);
  return [...groups.values()].sort((one, other) => other.count - one.count);
}

function sum(one, other) {
  if (!one) return other;
  const topics = { __proto__: null, ...one.topics }; // a topic may be called constructor
  for (const [topic, count] of Object.entries(other.topics)) topics[topic] = (topics[topic] || 0) + count;
  return {
    reason: one.reason, count: one.count + other.count, first: Math.min(one.first, other.first), last: Math.max(one.last, other.last),
    topics, ids: [...one.ids, ...other.ids], note: one.note || other.note, counts: one.counts?.map((count, step) => count + other.counts[step]),
  };
}

const moment = (at) => h("span", { title: time(at) }, relative(at));

export class Dead extends Live {
  everyMs = 5000;

  load() {
    const step = this.state.span / BARS;
    const start = (Math.ceil(Date.now() / 1000 / step) - BARS) * step;
    return all({ start, step, steps: BARS });
  }

  state = { most: PAGE, span: SPANS[1] };

  run = async (verb, reason, title) => {
    const [group] = await all({ reason, ids: MOST_IDS });
    if (group) await doWith(verb, group.ids, { reason, title });
    await this.refresh();
  };

  note = async ({ reason, note }) => {
    const text = await ask(t("note"), { text: t("noteAsk", reason || t("noReason")), input: t("noteHelp"), value: note?.text, most: MOST_CHARS, ok: t("save") });
    if (text === null || text === (note?.text ?? "")) return; // somebody else may have written another meanwhile
    await call("note", { reason, text: text.trim() || null });
    await this.refresh();
  };

  view(groups) {
    const { most, span } = this.state;
    const tallest = Math.max(1, ...groups.flatMap((group) => group.counts));
    const total = groups.reduce((count, group) => count + group.count, 0);
    return [
      h("div", { class: "bar" }, h("h1", {}, t("deadLetters"), " ", h("span", { class: "soft" }, number(total))), h("span", { class: "grow" }),
        choices(SPANS.map((one) => [one, length(one)]), span, (chosen) => this.choose({ span: chosen }), t("buriedIn")),
        exportButtons("dead-letters", COLUMNS, async () => ({ rows: await all({ ids: MOST_IDS }), cursor: "" }))),
      h("div", { class: "card" }, table([
        { name: t("reason"), class: "wide title reason", cell: (group) => [
          h("b", {}, group.reason || t("noReason")), group.note && noteOf(group.note),
          h("div", { class: "small" }, t("example"), " ", jobLink(group.ids[0])), h("div", { class: "small" }, topicsOf(group))] },
        { name: t("count"), class: "number", cell: (group) => number(group.count) },
        { name: t("buriedIn"), class: "spark", cell: ({ counts }) => spark(counts, tallest, t("buriedOf", number(counts.reduce((sum, count) => sum + count, 0)), length(span))) },
        { name: t("first"), class: "time", cell: (group) => moment(group.first) },
        { name: t("last"), class: "time", cell: (group) => moment(group.last) },
        { name: t("actions"), class: "buttons", cell: ({ reason, note }) => [
          may("kick") && action(t("retry"), () => this.run("kick", reason, t("retry")), null, "kick"),
          may("reschedule") && action(t("reschedule"), () => this.run("reschedule", reason), null, "reschedule"),
          may("note") && action(t("note"), () => this.note({ reason, note }), null, "note"),
          may("delete") && action(t("delete"), () => this.run("delete", reason), "danger", "delete")] },
      ], groups.slice(0, most), (group) => group.reason, t("noDeadLetters"), null, "compact"),
      groups.length > most && action(t("moreReasons", number(groups.length - most)), () => this.setState({ most: most + PAGE }))),
    ];
  }
}

/** A note: its text, its author and its time. */
const noteOf = ({ text, by, at }) => h("div", { class: "note" }, text, " ", h("span", { class: "soft small" }, by, " · ", moment(at)));

/** Bars, the last one up to now. `tallest`: the count of the tallest bar of all charts; `label`: what the bars say, in words. */
const spark = (counts, tallest, label) => h("svg", { role: "img", "aria-label": label, viewBox: `0 0 ${counts.length * 4} 24`, width: counts.length * 4, height: 24 },
  h("title", {}, label), counts.map((count, step) => {
    const height = count && Math.max(2, 24 * count / tallest);
    return h("rect", { key: step, x: step * 4, y: 24 - height, width: 3, height });
  }));

/** The topics with the most dead letters, in one line. */
function topicsOf({ topics }) {
  const most = Object.entries(topics).sort(([, one], [, other]) => other - one);
  return [
    most.slice(0, TOPICS_SHOWN).map(([topic, count], place) => [place > 0 && " · ", topicLink(topic, "buried"), ` ${number(count)}`]),
    most.length > TOPICS_SHOWN && h("span", { class: "soft" }, " · ", t("moreOf", number(most.length - TOPICS_SHOWN))),
  ];
}
