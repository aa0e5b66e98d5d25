// Search results: topics by a part of their name, jobs by a part of their id, or by a text in their body.

import { call, may } from "../api.js";
import { action } from "../ask.js";
import { h } from "../dom.js";
import { number } from "../format.js";
import { t } from "../i18n.js";
import { exportButtons } from "./exporting.js";
import { Selecting } from "./selecting.js";
import { topicLink } from "./topics.js";

const MOST_TOPICS = 20;
const MOST_JOBS = 100;
const CALLS = 20; // before the user is asked whether to continue
const PIECE = 500; // jobs that are looked up in a call
const COLUMNS = ["id", "topic", "state", "due"];

/** The path of the results for {id}, {text}, or {topic, text}. */
export const findLink = (wanted) => `#/find/${encodeURIComponent(JSON.stringify(wanted))}`;

export class Find extends Selecting {
  everyMs = 1e9; // never: each refresh would search all jobs again
  state = { ticked: new Map(), sort: "due", reverse: false };
  wanted = this.props.argument.startsWith("{") ? JSON.parse(this.props.argument) : { id: this.props.argument };

  async load() {
    const { data } = this.state;
    if (data && !data.isLooking) return this.lookAgain(data);
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

  /** The jobs that were found, as they are now. */
  async lookAgain(data) {
    const jobs = [];
    for (let at = 0; at < data.jobs.length; at += PIECE) {
      const piece = data.jobs.slice(at, at + PIECE);
      const now = await call("get", { ids: piece.map((job) => job.id) });
      piece.forEach((job, place) => now[place] && jobs.push("code" in now[place] ? job : now[place])); // with a code: the answer had no room for it
    }
    return { ...data, jobs };
  }

  goOn = async () => this.setState({ data: await this.look(this.state.data) });

  tickAll = () => this.tick(this.state.data.jobs, true);

  exporting() {
    const { id, text } = this.wanted;
    return exportButtons(`found-${id || text}`, COLUMNS, async () => ({ rows: this.state.data.jobs, cursor: "" }));
  }

  view({ topics, jobs, looked, cursor, isLooking }) {
    const { id, topic, text } = this.wanted;
    const { sort, reverse } = this.state;
    const sorting = { by: sort, reverse, onsort: (by) => this.setState({ sort: by, reverse: by === sort && !reverse }) };
    const title = topic ? [t("foundInTopic", text), " ", topicLink(topic)] : t(id ? "foundFor" : "foundIn", id || text);
    return [
      h("h1", {}, title),
      topics.length > 0 && h("section", { class: "card" }, h("h2", {}, t("topics")),
        h("ul", { class: "plain" }, topics.map((one) => h("li", { key: one.topic }, topicLink(one.topic))))),
      h("section", { class: "card" }, h("h2", {}, t(id ? "foundIds" : "foundJobs", number(jobs.length))),
        this.list({ jobs: sorted(jobs, sort, reverse) }, jobs.length, { attempts: false, sorting, empty: t(id ? "noSuchIds" : "noneFound", id || text) }),
        h("div", { class: "bar" }, h("span", { class: "soft", role: "status" }, t(cursor ? "lookedAt" : "lookedAtAll", number(looked))),
          cursor && !isLooking && action(t("goOn"), this.goOn)),
        text && h("p", { class: "soft small" }, t("findNote"))),
      (id || topic) && !isLooking && h("section", { class: "card" },
        h("p", {}, t(id ? "bodiesNotSearched" : "otherTopics")),
        h("div", { class: "bar" }, h("a", { class: "button", href: findLink({ text: id || text }) }, t("searchBodies")),
          h("span", { class: "soft small" }, t("searchCost", number(looked))))),
    ];
  }
}

/** The jobs in the order of one of their members; those that are equal by id. */
function sorted(jobs, by, reverse) {
  const order = (one, other) => (one < other ? -1 : Number(one > other));
  const found = [...jobs].sort((one, other) => order(one[by], other[by]) || order(one.id, other.id));
  return reverse ? found.reverse() : found;
}
