// Search results: topics by a part of their name, jobs by a part of their id, or by a text in their body within a topic.

import { call, may } from "../api.js";
import { action } from "../ask.js";
import { h, table } from "../dom.js";
import { number, relative, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { jobLink, stateMark } from "./jobs.js";
import { topicLink } from "./topics.js";

const MOST_TOPICS = 20;
const MOST_JOBS = 100;
const CALLS = 20; // before the user is asked whether to continue

/** The path of the results for {id} or {topic, text}. */
export const findLink = (wanted) => `#/find/${encodeURIComponent(JSON.stringify(wanted))}`;

export class Find extends Live {
  everyMs = 1e9; // never: each refresh would search all jobs again
  wanted = this.props.argument.startsWith("{") ? JSON.parse(this.props.argument) : { id: this.props.argument };

  async load() {
    const { id } = this.wanted;
    const topics = id && may("topics") ? await call("topics", { match: id, limit: MOST_TOPICS }) : [];
    return this.look({ topics, jobs: [], looked: 0, cursor: "" });
  }

  /** Search more jobs, until some are found, all have been searched, or it takes long. */
  async look({ topics, jobs, looked, cursor }) {
    const before = jobs.length;
    for (let count = 0; count < CALLS; count += 1) {
      const found = await call("find", { ...this.wanted, cursor, limit: MOST_JOBS });
      jobs = [...jobs, ...found.jobs];
      looked += found.looked;
      cursor = found.cursor;
      if (!cursor || this.left || jobs.length >= before + MOST_JOBS) break;
      this.setState({ data: { topics, jobs, looked, cursor, isLooking: true } });
    }
    return { topics, jobs, looked, cursor };
  }

  goOn = async () => this.setState({ data: await this.look(this.state.data) });

  view({ topics, jobs, looked, cursor, isLooking }) {
    const { id, topic, text } = this.wanted;
    return [
      h("h1", {}, id ? t("foundFor", id) : [t("foundIn", text), " ", topicLink(topic)]),
      topics.length > 0 && h("section", { class: "card" }, h("h2", {}, t("topics")),
        h("ul", { class: "plain" }, topics.map((one) => h("li", { key: one.topic }, topicLink(one.topic))))),
      h("section", { class: "card" }, h("h2", {}, t("foundJobs", number(jobs.length))), table([
        { name: t("id"), class: "wide", cell: (job) => jobLink(job.id) },
        { name: t("topic"), class: "wide", cell: (job) => topicLink(job.topic) },
        { name: t("state"), cell: (job) => stateMark(job.state) },
        { name: t("dueAt"), cell: (job) => h("span", { title: relative(job.due) }, time(job.due)) },
      ], jobs, (job) => job.id, t("noneFound", id || text)),
      h("div", { class: "bar" }, h("span", { class: "soft", role: "status" }, t(cursor ? "lookedAt" : "lookedAtAll", number(looked))),
        cursor && !isLooking && action(t("goOn"), this.goOn))),
      h("p", { class: "soft small" }, t("findNote")),
    ];
  }
}
