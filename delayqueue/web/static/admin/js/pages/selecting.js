// A page with a list of jobs: the user ticks rows, or all that match, and applies a verb to them.

import { call, may } from "../api.js";
import { action, ask, say, sayUndoable, showOutcome, withProgress } from "../ask.js";
import { h } from "../dom.js";
import { jobs, number, seconds } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { exportJobs } from "./exporting.js";
import { jobTable } from "./jobs.js";

const PIECE = 500; // jobs of a call
const AT_ONCE = 8; // calls, if a verb takes one job
const PAGE = 1000;
const MOST = 100000; // jobs ticked at once: some megabytes of ids
const NEEDS_NUMBER = 100; // more jobs than this are deleted only after the user has typed their number
const MOST_NAMED = 200; // failures in the list

/** Call a verb that takes one job. Resolves to {id, code: 0}, or to {id, message} if it fails. */
const one = (verb, request) => call(verb, request).then(() => ({ id: request.id, code: 0 }), ({ message }) => ({ id: request.id, message }));
// what a verb asks before it begins, the states that it is for, and how it is called for many jobs: run() resolves to [{id, code or message}]
const VERBS = {
  kick: { asks: "kickThese", states: ["buried", "delayed"], piece: PIECE, run: async (ids) => (await call("kick", { ids })).results },
  reschedule: { asks: "rescheduleThese", states: ["buried", "delayed", "ready"], piece: PIECE, run: async (ids, when) => (await call("reschedule", { ids, ...when })).results },
  release: { asks: "releaseThese", states: ["reserved"], piece: AT_ONCE, run: (ids) => Promise.all(ids.map((id) => one("release", { id, delay: 0 }))) },
  delete: { asks: "deleteThese", states: ["buried", "delayed", "ready", "reserved"], piece: PIECE, run: (ids) => call("delete", { ids }) },
};

/** Ask for the new due time of jobs. Resolves to {by} or {delay}, in seconds, or to null if the user cancels. */
export async function askWhen(title, text) {
  const choices = [["by", t("dueBy")], ["delay", t("dueTogether")]];
  const answer = await ask(title, { text, choices, input: t("dueHowLong"), value: "1h" });
  if (answer === null) return null;
  const [how, typed] = answer;
  const isEarlier = how === "by" && /^\s*[-−]/.test(typed);
  return { [how]: isEarlier ? -seconds(typed.replace(/[-−]/, "")) : seconds(typed) };
}

/** Ask whether to apply a verb to that many jobs. Resolves to the verb's argument, or null if the user cancels. */
async function confirm(verb, count, { reason, title = t(verb) }) {
  const which = reason === undefined ? jobs(count) : t("buriedFor", jobs(count), reason || t("noReason"));
  const text = t(VERBS[verb].asks, which);
  if (verb === "reschedule") return askWhen(title, text);
  if (verb !== "delete") return ask(title, { text });
  const typed = count > NEEDS_NUMBER && { input: t("typeNumber", count), must: String(count) };
  return ask(title, { text, danger: true, ...typed });
}

/** Apply a verb to jobs, some at a time. Returns the ids of the changed jobs, and [id, reason] of each failure; stops if the server does not answer. */
async function doAll(verb, ids, given) {
  const { piece, run } = VERBS[verb];
  const done = [];
  const failed = [];
  let at = 0;
  await withProgress(t(verb), ids.length, async () => {
    const now = ids.slice(at, at + piece);
    if (!now.length) return 0;
    at += piece;
    try {
      for (const { id, code, message } of await run(now, given)) {
        if (code === 0) done.push(id);
        else failed.push([id, message || t(`code_${code}`)]);
      }
    } catch (error) {
      for (const id of ids.slice(at - piece)) failed.push([id, error.message]); // also those that were not reached
      at = ids.length;
    }
    return now.length;
  });
  return { done, failed };
}

/** Whether moving the jobs back by the same time undoes the verb: not if a move to an earlier time stopped at the present, nor for dead
 *  letters, which would stay delayed. */
const canMoveBack = (verb, given, { states }) => verb === "reschedule" && given.by > 0 && states !== undefined && !states.has("buried");

/** Show what became of a verb for many jobs, with the jobs that it failed for, if there are any. */
const showAll = (text, failed) => showOutcome(text, failed.length && [
  h("p", {}, t("failedCount", number(failed.length))),
  h("ul", { class: "failed" }, failed.slice(0, MOST_NAMED).map(([id, why]) => h("li", { key: id }, h("code", {}, id), ": ", why))),
]);

/** Offer to move jobs back, which have been moved by that many seconds. */
export function sayMoved(ids, by, changed) {
  sayUndoable(t("didCount", jobs(ids.length)), async () => {
    const { done, failed } = await doAll("reschedule", ids, { by: -by });
    await changed();
    const text = t("undoneCount", jobs(done.length));
    if (failed.length) await showAll(text, failed);
    return text;
  });
}

/** Ask, apply the verb, and show the outcome. Returns the ids of the changed jobs; null if the user cancels.
 *  about: {reason: why all jobs were buried, if they were; title: what the verb is called here; states: the jobs' states, a Set, if known;
 *  changed: called after an undo} */
export async function doWith(verb, ids, about = {}) {
  const given = await confirm(verb, ids.length, about);
  if (given === null) return null;
  const { done, failed } = await doAll(verb, ids, given);
  if (!failed.length && canMoveBack(verb, given, about)) {
    sayMoved(done, given.by, about.changed);
    return done;
  }
  await showAll(t("didCount", jobs(done.length)), failed);
  return done;
}

export class Selecting extends Live {
  state = { cursors: [""], ticked: new Map() }; // id -> its state when it was ticked

  tick = (jobs, on) => {
    const ticked = new Map(this.state.ticked);
    for (const job of jobs) {
      if (on) ticked.set(job.id, job.state);
      else ticked.delete(job.id);
    }
    this.setState({ ticked });
  };

  tickAll = async () => {
    const ticked = new Map();
    let cursor = "";
    await withProgress(t("selectAll"), null, async () => {
      if (ticked.size >= MOST || cursor === null) return 0;
      const page = await call("list", { ...this.which(), limit: PAGE, cursor });
      page.jobs.forEach((job) => ticked.set(job.id, job.state));
      cursor = page.cursor || null;
      return page.jobs.length || 1;
    });
    this.setState({ ticked });
    if (cursor !== null && ticked.size >= MOST) say(t("mostSelected", number(MOST)));
  };

  run = async (verb) => {
    const { ticked } = this.state;
    const done = await doWith(verb, [...ticked.keys()], { states: new Set(ticked.values()), changed: this.refresh });
    if (done === null) return;
    this.tick(done.map((id) => ({ id })), false); // refused ones stay ticked
    await this.refresh();
  };

  exporting() {
    return exportJobs(this.which());
  }

  /** The jobs, and the actions on the ticked ones. total: how many match, null if that is not known. */
  list(listed, total, options) {
    const { ticked } = this.state;
    const states = new Set(ticked.values());
    const verbs = Object.keys(VERBS).filter((verb) => may(verb) && VERBS[verb].states.some((state) => states.has(state)));
    return [
      listed.jobs.length > 0 && h("div", { class: "bar", role: "group", "aria-label": t("selection") },
        h("span", { role: "status" }, ticked.size ? t("selected", number(ticked.size)) : ""),
        action(total === null ? t("selectMatching") : t("selectCount", number(total)), this.tickAll, null, "all"),
        ticked.size > 0 && action(t("clear"), () => this.setState({ ticked: new Map() }), null, "clear"),
        verbs.map((verb) => action(t(verb), () => this.run(verb), verb === "delete" ? "danger" : null, verb)),
        h("span", { class: "grow" }),
        this.exporting()),
      jobTable(listed, (cursors) => this.choose({ cursors }), { ...options, ticked, tick: this.tick }),
    ];
  }
}
