// The topics whose jobs fall due in a range of time.

import { call } from "../api.js";
import { h, table } from "../dom.js";
import { number, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { topicLink } from "./topics.js";

const MOST_TOPICS = 200;
const AT_ONCE = 8;

export class Due extends Live {
  everyMs = 30000;
  range = this.props.argument.split("-").map(Number);

  async load() {
    const topics = (await call("topics", { sort: "delayed", limit: MOST_TOPICS + 1 })).filter((topic) => topic.delayed);
    const rows = [];
    for (let at = 0; at < Math.min(topics.length, MOST_TOPICS); at += AT_ONCE) {
      rows.push(...await Promise.all(topics.slice(at, at + AT_ONCE).map((topic) => count(topic.topic, ...this.range))));
    }
    return { rows: rows.filter((row) => row.count).sort((one, other) => other.count - one.count), isPart: topics.length > MOST_TOPICS };
  }

  view({ rows, isPart }) {
    return [h("h1", {}, t("dueIn", ...this.range.map(time))), isPart && h("p", {}, t("dueInMost", MOST_TOPICS)), h("div", { class: "card" }, table([
      { name: t("topic"), class: "wide title", cell: (row) => topicLink(row.topic, "delayed", this.props.argument) },
      { name: t("delayed"), class: "number", cell: (row) => number(row.count) },
    ], rows, (row) => row.topic, t(isPart ? "noneDueInMost" : "noneDue"), null, "compact"))];
  }
}

async function count(topic, start, end) {
  const step = Math.max(end - start, 0.001);
  const { counts } = await call("forecast", { topic, start, end: end + 0.001, step: step + 0.001 });
  return { topic, count: counts.reduce((all, one) => all + one, 0) };
}
