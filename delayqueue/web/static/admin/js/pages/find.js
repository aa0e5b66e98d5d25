// Search results: topics by a part of their name; jobs by a part of their id, a text in their body or in the reason of a failure,
// their topic, tag, group, state and due time.

import { call, may } from "../api.js";
import { action, Form } from "../ask.js";
import { goTo, h, isNarrow } from "../dom.js";
import { moment, number, parsed, time } from "../format.js";
import { t } from "../i18n.js";
import { NEVER_MS } from "../live.js";
import { exportButtons } from "./exporting.js";
import { findLink } from "./jobs.js";
import { Selecting } from "./selecting.js";
import { topicLink } from "./topics.js";

const MOST_TOPICS = 20;
const MOST_JOBS = 100;
const CALLS = 20; // before the user is asked whether to continue
const PIECE = 500; // jobs that are looked up in a call
const COLUMNS = ["id", "topic", "state", "due"];

// the prefixes of the search field, and the field of /find that each one sets; text without a prefix is a part of the id
const FIELDS = { id: "id", body: "text", reason: "message", topic: "topic", tag: "tag", group: "group", state: "state", from: "start", to: "end" };
const TIMES = ["start", "end"];
const STATES = ["", "delayed", "ready", "reserved", "buried", "finished", "cancelled", "expired", "dropped"];
const WORD = /(?<=^|\s)(\w+):(?:"([^"]*)"|(\S+))/g;

/** What was typed into the search field: `1001 topic:order reason:"time out" from:2026-11-23`. Throws an error for an invalid time. */
export function wantedOf(typed) {
  const wanted = {};
  const rest = typed.replace(WORD, (word, name, quoted, plain) => {
    const field = Object.hasOwn(FIELDS, name) && FIELDS[name];
    if (!field) return word;
    const value = quoted ?? plain;
    wanted[field] = TIMES.includes(field) ? moment(value) : value;
    return "";
  });
  return rest.trim() ? { id: rest.trim(), ...wanted } : wanted;
}

/** Where a search leads: to the page of the tag or the topic if it names nothing else, else to the results. */
export function searchPlace({ ...wanted }) {
  const names = Object.keys(wanted);
  const hasOnly = (...allowed) => names.every((name) => allowed.includes(name));
  if (wanted.tag && hasOnly("tag")) return `#/tag/${encodeURIComponent(wanted.tag)}`;
  if (wanted.topic && hasOnly("topic", "state")) return `#/topic/${encodeURIComponent(JSON.stringify([wanted.topic, wanted.state || "", ""]))}`;
  return findLink(wanted);
}

export class Find extends Selecting {
  everyMs = NEVER_MS; // each refresh would search all jobs again
  state = { ticked: new Map(), sort: "due", reverse: false };
  wanted = (this.props.argument.startsWith("{") && parsed(this.props.argument)[0]) || { id: this.props.argument };

  /** Begin the search; once it has begun, look again at what it has found, whether or not it still runs. */
  async load() {
    const { id } = this.wanted;
    if (!this.found) {
      const topics = this.isFor("id") && may("topics") ? await call("topics", { match: id, limit: MOST_TOPICS }) : [];
      this.found = { topics, jobs: [], looked: 0, cursor: null }; // null: nothing has been searched
    }
    await (this.found.cursor === null ? this.look() : this.lookAgain());
    return this.found;
  }

  /** What was found so far, with these changes. */
  find(changes) {
    this.found = { ...this.found, ...changes };
    if (this.found.cursor !== null) this.setState({ data: this.found });
  }

  /** Search more jobs, until some are found, all have been searched, or it takes long. */
  look = async () => {
    const most = this.found.jobs.length + MOST_JOBS;
    this.find({ isLooking: true });
    try {
      for (let count = 0; count < CALLS && !this.left && this.found.cursor !== "" && this.found.jobs.length < most; count += 1) {
        const { jobs, looked, cursor } = await call("find", { ...this.wanted, cursor: this.found.cursor, limit: MOST_JOBS });
        this.find({ jobs: [...this.found.jobs, ...jobs], looked: this.found.looked + looked, cursor });
      }
    } finally {
      this.find({ isLooking: false });
    }
  };

  /** See how the jobs that were found are now. */
  async lookAgain() {
    const now = new Map();
    for (let at = 0; at < this.found.jobs.length; at += PIECE) {
      const ids = this.found.jobs.slice(at, at + PIECE).map(({ id }) => id);
      (await call("get", { ids })).forEach((job, place) => { if (!job || !("code" in job)) now.set(ids[place], job); }); // with a code: the answer had no room for it
    }
    this.find({ jobs: this.found.jobs.map((job) => (now.has(job.id) ? now.get(job.id) : job)).filter(Boolean) });
  }

  tickAll = () => this.tick(this.state.data.jobs, true);

  exporting() {
    const { id, text, message } = this.wanted;
    return exportButtons(`found-${id || text || message || "jobs"}`, COLUMNS, async () => ({ rows: this.state.data.jobs, cursor: "" }));
  }

  /** The form stays if the server refuses the search. */
  render(properties, state) {
    return [h("h1", {}, this.title()), this.form(), super.render(properties, state)];
  }

  title() {
    const known = [["foundFor", "id"], ["foundIn", "text"], ["foundInReasons", "message"], ["ofGroup", "group"]].find(([, name]) => this.isFor(name));
    const inTopic = [["foundInTopic", "text"], ["ofGroup", "group"]].find(([, name]) => this.isFor("topic", name));
    if (inTopic) return [t(inTopic[0], this.wanted[inTopic[1]]), " ", topicLink(this.wanted.topic)];
    return t(...(known ? [known[0], this.wanted[known[1]]] : ["searchResults"]));
  }

  view({ topics, jobs, looked, cursor, isLooking }) {
    const { id, text, message } = this.wanted;
    const { sort, reverse } = this.state;
    const sorting = { by: sort, reverse, onsort: (by) => this.setState({ sort: by, reverse: by === sort && !reverse }) };
    const isForId = this.isFor("id");
    const empty = isForId ? t("noSuchIds", id) : this.isFor("text") || this.isFor("topic", "text") ? t("noneFound", text) : t("noneMatch");
    const others = isForId ? [["searchBodies", { text: id }], ["searchReasons", { message: id }]] : this.isFor("topic", "text") ? [["searchBodies", { text }]] : [];
    return [
      topics.length > 0 && h("section", { class: "card" }, h("h2", {}, t("topics")),
        h("ul", { class: "plain" }, topics.map((one) => h("li", { key: one.topic }, topicLink(one.topic))))),
      h("section", { class: "card" }, h("h2", {}, t(isForId ? "foundIds" : "foundJobs", number(jobs.length))),
        this.list({ jobs: sorted(jobs, sort, reverse) }, jobs.length, { attempts: false, sorting, empty }),
        h("div", { class: "bar" }, h("span", { class: "soft", role: "status" }, t(cursor ? "lookedAt" : "lookedAtAll", number(looked))),
          cursor && !isLooking && action(t("goOn"), this.look)),
        (text || message) && h("p", { class: "soft small" }, t("findNote"))),
      others.length > 0 && !isLooking && h("section", { class: "card" },
        h("p", {}, t(isForId ? "bodiesNotSearched" : "otherTopics")),
        h("div", { class: "bar" }, others.map(([name, wanted]) => h("a", { key: name, class: "button", href: findLink(wanted) }, t(name))),
          h("span", { class: "soft small" }, t("searchCost", number(looked))))),
    ];
  }

  /** Whether the search has these fields and no others. */
  isFor(...names) {
    return Object.keys(this.wanted).sort().join() === names.sort().join();
  }

  /** The form with all that can be searched for. */
  form() {
    const { wanted } = this;
    const input = (name, label, more) => h("label", {}, t(label), h("input", { name, autocomplete: "off", spellcheck: false, maxlength: 256, defaultValue: wanted[name], ...more }));
    const at = (name, label) => input(name, label, { placeholder: time(Date.now() / 1000).slice(0, 16), defaultValue: time(wanted[name]) });
    return h("details", { class: "card", open: !this.isFor("id") && !isNarrow() }, h("summary", {}, t("searchFor")),
      h(Form, { kind: "fields", text: t("searchNow"), work: this.search },
        input("id", "partOfId"), input("text", "findText"), input("message", "findReason"), input("topic", "topic"), input("tag", "tag"),
        input("group", "group"),
        h("label", {}, t("state"), h("select", { name: "state" }, STATES.map((state) =>
          h("option", { key: state, value: state, selected: state === (wanted.state || "") }, t(state || "all"))))),
        at("start", "from"), at("end", "dueTo")));
  }

  search = async (form) => {
    const wanted = {};
    const at = (name, typed) => (typed === time(this.wanted[name]) ? this.wanted[name] : moment(typed)); // a time that was not touched keeps its fraction, and its hour if there are two
    for (const [name, typed] of form) {
      if (typed.trim()) wanted[name] = TIMES.includes(name) ? at(name, typed) : typed.trim();
    }
    if (!Object.keys(wanted).length) throw new Error(t("searchNothing"));
    goTo(searchPlace(wanted));
  };
}

/** The jobs, sorted by one of their fields, then by id. */
function sorted(jobs, by, reverse) {
  const order = (one, other) => (one < other ? -1 : Number(one > other));
  const found = [...jobs].sort((one, other) => order(one[by], other[by]) || order(one.id, other.id));
  return reverse ? found.reverse() : found;
}
