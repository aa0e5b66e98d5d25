// All topics with their counts; the argument is what they are sorted by at first, or all that was chosen, as JSON.

import { call, may } from "../api.js";
import { action, ask, say, sayUndoable } from "../ask.js";
import { breaking, choices, firstRows, h, keepPlace, table, unbroken } from "../dom.js";
import { jobs, length, number, parsed, perSecond, seconds, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { environment } from "../session.js";
import { exportButtons } from "./exporting.js";

const PAGE_OF_FILE = 1000;
const COLUMNS = ["topic", "delayed", "ready", "reserved", "buried", "oldest_ready_age", "paused", "limit", "rates"];
const RATES = [
  ["pushed", "pushed_rate"], ["delivered", "delivered_rate"], ["finished", "finished_rate"], ["failed", "failed_rate"],
];
const FILTERS = [null, "buried", "late", "paused", "full", "limited"];

const chosen = (argument) => (argument.startsWith("{") ? parsed(argument)[0] : argument && { sort: argument });

export class Topics extends Live {
  state = { match: "", only: null, sort: "topic", reverse: false, offset: 0, ...chosen(this.props.argument) };
  size = firstRows(100); // of a page

  /** The page of topics; an earlier one if the topics have become fewer. */
  async load() {
    const { offset } = this.state;
    const found = await this.some(offset, this.size + 1);
    if (found.length || !offset) return found;
    await new Promise((done) => { this.setState({ offset: Math.max(0, offset - this.size) }, done); });
    return this.load();
  }

  /** Of the topics that match the filter, `limit` ones from `offset` on. */
  some(offset, limit, { sort, reverse } = this.state) {
    const { match, only } = this.state;
    return call("topics", { match: match.trim() || null, only, sort, reverse, offset, limit, rates: true });
  }

  /** The topics that an export contains: all that match the filter. By name: sorted by counts, which change, some would come twice. */
  read = async (cursor) => {
    const rows = await this.some(Number(cursor), PAGE_OF_FILE, { sort: "topic", reverse: false });
    return { rows, cursor: rows.length < PAGE_OF_FILE ? "" : String(Number(cursor) + rows.length) };
  };

  /** Show other topics: from `offset` on, or from the first one. */
  show(which) {
    const { match, only, sort, reverse, offset } = { ...this.state, offset: 0, ...which };
    keepPlace(`#/topics/${encodeURIComponent(JSON.stringify({ match, only, sort, reverse, offset }))}`);
    this.choose({ ...which, offset });
  }

  view(found) {
    const { match, only, sort, reverse, offset } = this.state;
    const onsort = (by) => this.show({ sort: by, reverse: by === sort && !reverse });
    const shown = found.slice(0, this.size);
    return [
      h("div", { class: "bar" }, h("h1", {}, t("topics")), h("span", { class: "grow" }),
        choices(FILTERS.map((one) => [one, t(one || "all")]), only, (chosen) => this.show({ only: chosen }), t("only")),
        h("input", {
          type: "search", placeholder: t("filter"), "aria-label": t("filter"), maxlength: 256, value: match,
          oninput: (event) => this.show({ match: event.target.value }),
        }),
        exportButtons("topics", COLUMNS, this.read)),
      h("div", { class: "card" }, topicTable(shown, match || only ? t("noTopicsFound") : t("noTopics"), { by: sort, reverse, onsort }),
        (offset > 0 || found.length > this.size) && h("div", { class: "bar" },
          action(t("previous"), () => this.show({ offset: Math.max(0, offset - this.size) }), null, "previous"),
          h("span", { role: "status" }, `${number(offset + 1)} – ${number(offset + shown.length)}`),
          found.length > this.size && action(t("nextPage"), () => this.show({ offset: offset + this.size }), null, "next"))),
    ];
  }
}

const count = (state) => ({
  name: t(state), sort: state, class: "number", cell: (row) => (row[state]
    ? topicLink(row.topic, state, "", h("span", { class: `state ${state}` }, number(row[state]))) : h("span", { class: "soft zero" }, "0")),
});
const rate = ([event, text]) => ({
  name: t(text), class: "number",
  cell: ({ rates }) => (rates ? h("span", { class: rates[event] ? event : "soft zero" }, perSecond(rates[event])) : ""),
});
const columns = () => [
  { name: t("topic"), sort: "topic", rising: true, class: "wide title", cell: (row) => [topicLink(row.topic), " ", topicTags(row)] },
  count("delayed"), count("ready"), count("reserved"), count("buried"),
  { name: t("oldest"), sort: "oldest", class: "number", cell: (row) => (row.oldest_ready_age === null ? "" : length(row.oldest_ready_age)) },
  ...RATES.map(rate),
];

/** Topics with their counts. */
const topicTable = (rows, empty, sorting) => table(columns(), rows, (row) => row.topic, empty, sorting, "compact");

const NEARLY_FULL = 0.8; // of its jobs; below, a topic that the server calls full has a bucket that is

/** Topics that need attention, with the reasons: [{topic, why}]. Reasons that only a newer server knows are left out. */
export function troubleTable(rows) {
  const why = {
    buried: (topic) => t("whyBuried", jobs(topic.buried)), late: (topic) => t("whyLate", length(topic.oldest_ready_age)),
    paused: (topic) => t("whyPaused", jobs(topic.ready)),
    full: (topic) => t(allOf(topic) < NEARLY_FULL * topic.limit.max_jobs ? "whyBucketFull" : "whyFull", number(allOf(topic)), jobs(topic.limit.max_jobs)),
  };
  return table([
    { name: t("topic"), class: "wide title", cell: ({ topic }) => [topicLink(topic.topic), " ", topicTags(topic)] },
    { name: t("why"), class: "wide", cell: (row) => row.why.filter((one) => why[one]).map((one) =>
      h("div", { key: one }, topicLink(row.topic.topic, { buried: "buried", full: "" }[one] ?? "ready", "", why[one](row.topic)))) },
  ], rows, ({ topic }) => topic.topic, t("noTrouble"), null, "compact");
}

/** The path of a topic's page, with the state ("all" for each) and the range of due times that it begins with. */
export const topicPlace = (...which) => `#/topic/${encodeURIComponent(JSON.stringify(which))}`;

/** The topic, state and range of an address that topicPlace() made, or the topic of a shorter one, from its argument. */
export const topicAt = (argument) => (argument.startsWith("[") && parsed(argument)[0]) || [argument];

export function topicLink(topic, state = "", range = "", text = breaking(topic)) {
  return h("a", { href: topicPlace(topic, state, range) }, text);
}

/** How many jobs a topic has that have not ended. */
const allOf = ({ delayed, ready, reserved, buried }) => delayed + ready + reserved + buried;

/** Marks that say that a topic is paused or limited. */
export function topicTags(topic) {
  const paused = topic.paused === true ? t("paused") : topic.paused && t("pausedUntil", time(topic.paused));
  const limits = topic.limit && limitText(topic.limit);
  const limited = limits && t("limitedTo", limits);
  const most = topic.limit?.max_jobs && t("mostJobs", jobs(topic.limit.max_jobs));
  return [paused, limited, most].filter(Boolean).map((text) => [h("span", { class: "tag" }, unbroken(text)), " "]);
}

// what the number of a limit is for, by what follows it
const LIMIT_OF = { "/s": "rate", "": "concurrency", "/group": "group_concurrency" };
const NO_LIMITS = { rate: null, concurrency: null, group_concurrency: null, group_order: null };

/** Limits as users type them: "50/s, 10, 1/group, order". */
function limitText(limit) {
  const numbers = Object.entries(LIMIT_OF).map(([unit, name]) => limit[name] && `${limit[name]}${unit}`);
  return [...numbers, limit.group_order && "order"].filter(Boolean).join(", ");
}

/** The typed limits: "50/s" is a rate, "10" jobs at once, "1/group" those of a group, "order" its strict order; none typed means no limit.
 *  Throws an error for anything else, a limit that is typed twice, and a number such as "1,500", which could be two. */
function limitOf(text) {
  const limit = { ...NO_LIMITS };
  for (const word of text.split(/(?:\s|,(?!\d{3}(?!\d)))+/).filter(Boolean)) {
    const [, value, unit = ""] = /^(\d+(?:\.\d+)?)(\/s|\/group)?$/.exec(word) || [];
    const name = value ? LIMIT_OF[unit] : "group_order";
    if ((!value && word !== "order") || limit[name] !== null) throw new Error(t("limitWrong", word));
    limit[name] = value ? Number(value) : true;
  }
  return limit;
}

/** Pause a topic as it was paused before: until it is resumed, or for the rest of the time. */
async function pauseAgain({ topic, paused }) {
  const left = paused === true ? null : paused - Date.now() / 1000;
  if (left === null || left > 0) await call("pause", { topic, seconds: left });
}

/** The buttons of a topic. */
export function topicActions(topic, changed) {
  const name = topic.topic;
  const pause = action(t("pause"), async () => {
    const answer = await ask(t("pause"), { input: t("pauseFor") });
    if (answer === null) return;
    await call("pause", { topic: name, seconds: answer.trim() ? seconds(answer) : null });
    sayUndoable(t("didPause", name), () => call("resume", { topic: name }).then(changed));
    await changed();
  });
  const resume = action(t("resume"), async () => {
    await call("resume", { topic: name });
    sayUndoable(t("didResume", name), () => pauseAgain(topic).then(changed));
    await changed();
  });
  const limit = action(t("limit"), async () => {
    const answer = await ask(t("limit"), { input: t("limitTo"), value: topic.limit ? limitText(topic.limit) : "" });
    if (answer === null) return;
    const before = { ...NO_LIMITS, ...topic.limit };
    const typed = Object.entries(limitOf(answer)).filter(([each, value]) => value !== before[each]); // the others may have been changed meanwhile
    if (!typed.length) return;
    await call("limit", { topic: name, ...Object.fromEntries(typed) });
    const back = typed.flatMap(([each]) => (each === "rate" && before.rate ? ["rate", "burst"] : [each])).map((each) => [each, before[each]]);
    sayUndoable(t("didLimit", name), () => call("limit", { topic: name, ...Object.fromEntries(back) }).then(changed));
    await changed();
  });
  const purge = action(t("purge"), async () => {
    const options = { text: t("purgeAsk", name), error: environment()?.name, input: t("purgeType"), must: name, danger: true };
    if (await ask(t("purge"), options) === null) return;
    const { count } = await call("purge", { topic: name });
    say(t("didCount", jobs(count)));
    await changed();
  }, "danger");
  return [may("pause") && (topic.paused ? resume : pause), may("limit") && limit, may("purge") && purge];
}
