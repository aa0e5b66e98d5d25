// Dead letters of all topics, by the reason of their last failure.

import { call, may } from "../api.js";
import { action } from "../ask.js";
import { firstRows, h, table } from "../dom.js";
import { number, relative, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { exportButtons } from "./exporting.js";
import { jobLink } from "./jobs.js";
import { doWith } from "./selecting.js";
import { topicLink } from "./topics.js";

const MOST_IDS = 10000; // of a page
const PAGE = firstRows(100);
const TOPICS_SHOWN = 5;
const COLUMNS = ["reason", "count", "first", "last", "topics", "ids"];

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
  const topics = { ...one.topics };
  for (const [topic, count] of Object.entries(other.topics)) topics[topic] = (topics[topic] || 0) + count;
  return {
    reason: one.reason, count: one.count + other.count, first: Math.min(one.first, other.first), last: Math.max(one.last, other.last),
    topics, ids: [...one.ids, ...other.ids],
  };
}

const moment = (at) => h("span", { title: time(at) }, relative(at));

export class Dead extends Live {
  everyMs = 5000;

  load() {
    return all({});
  }

  state = { most: PAGE };

  run = async (verb, reason, title) => {
    const [group] = await all({ reason, ids: MOST_IDS });
    if (group) await doWith(verb, group.ids, { reason, title });
    await this.refresh();
  };

  view(groups) {
    const { most } = this.state;
    const total = groups.reduce((count, group) => count + group.count, 0);
    return [
      h("div", { class: "bar" }, h("h1", {}, t("deadLetters"), " ", h("span", { class: "soft" }, number(total))), h("span", { class: "grow" }),
        exportButtons("dead-letters", COLUMNS, async () => ({ rows: await all({ ids: MOST_IDS }), cursor: "" }))),
      h("div", { class: "card" }, table([
        { name: t("reason"), class: "wide title reason", cell: (group) => [h("b", {}, group.reason || t("noReason")), h("div", { class: "small" }, t("example"), " ", jobLink(group.ids[0]))] },
        { name: t("count"), class: "number", cell: (group) => number(group.count) },
        { name: t("first"), class: "time", cell: (group) => moment(group.first) },
        { name: t("last"), class: "time", cell: (group) => moment(group.last) },
        { name: t("topics"), class: "wide", cell: topicsOf },
        { name: t("actions"), class: "buttons", cell: ({ reason }) => [
          may("kick") && action(t("retry"), () => this.run("kick", reason, t("retry")), null, "kick"),
          may("reschedule") && action(t("reschedule"), () => this.run("reschedule", reason), null, "reschedule"),
          may("delete") && action(t("delete"), () => this.run("delete", reason), "danger", "delete")] },
      ], groups.slice(0, most), (group) => group.reason, t("noDeadLetters"), null, "compact"),
      groups.length > most && action(t("moreReasons", number(groups.length - most)), () => this.setState({ most: most + PAGE }))),
    ];
  }
}

function topicsOf({ topics }) {
  const most = Object.entries(topics).sort(([, one], [, other]) => other - one);
  return [
    most.slice(0, TOPICS_SHOWN).map(([topic, count]) => h("div", { key: topic }, topicLink(topic, "buried"), ` ${number(count)}`)),
    most.length > TOPICS_SHOWN && h("div", { class: "soft" }, t("moreOf", number(most.length - TOPICS_SHOWN))),
  ];
}
