// A table of jobs, and the buttons of one.

import { call, callPages, may } from "../api.js";
import { action, ask, sayUndoable } from "../ask.js";
import { breaking, firstRows, h, table } from "../dom.js";
import { number, reasonLine, relative, seconds, time, todaysClock } from "../format.js";
import { t } from "../i18n.js";
import { topicLink } from "./topics.js";

const PAGE = firstRows(50);

/** The path of a job's page. */
export const jobPlace = (id) => `#/job/${encodeURIComponent(id)}`;
export const jobLink = (id) => h("a", { class: "mono", href: jobPlace(id) }, breaking(id));
export const noSuchJob = (id) => h("p", { class: "empty" }, t("noSuchJob", id));
const formLink = (form, id, text) => h("a", { class: "button", href: `#/${form}/${encodeURIComponent(id)}` }, text);
export const stateMark = (state) => h("span", { class: `state ${state}` }, t(state));
/** The path of the results for {id, text, message, topic, tag, group, state, start, end}, of which one is enough. */
export const findLink = (wanted) => `#/find/${encodeURIComponent(JSON.stringify(wanted))}`;
export const groupLink = ({ topic, group }) => h(may("find") ? "a" : "span", { class: "tag", href: findLink({ topic, group }) }, group);
export const tagLink = (name) => h("a", { class: "tag", href: `#/tag/${encodeURIComponent(name)}` }, name);

/** How far an attempt is: a bar, the percentage, what it is at, and, as a title, when its worker said so. */
export const progressBar = ({ percent, message, at }) => h("div", { class: "progress", title: `${time(at)} · ${relative(at)}` },
  percent !== null && h("progress", { max: 100, value: percent, "aria-label": t("progress") }),
  h("span", {}, [percent !== null && `${number(percent)} %`, message].filter(Boolean).join(" · ")));

const HELD_BY = { delayed: "heldByDelayed", reserved: "heldByReserved", ready: "heldByReady" };
/** What holds up a ready job of a group, with the way there. */
export const heldLine = ({ id, state, until }) => h("a", { class: "held", href: jobPlace(id), title: until === null ? null : relative(until) },
  t(HELD_BY[state], id, todaysClock(until)));

/** The pages of a list that begin at these cursors: the jobs, the cursors, and the cursor of the next page ("" = none). */
export async function pages(which, cursors) {
  const { rows: jobs, next } = await callPages("list", "jobs", { ...which, limit: PAGE }, cursors);
  return { jobs, cursors, next };
}

/** Jobs, each with a link to its page and a box that calls tick(jobs, on). `more` gets the cursors with that of the next page.
 *  options: {topic: whether to show it, attempts: whether these are known, empty: what to say if there are none, sorting: as in table()} */
export function jobTable({ jobs, cursors, next }, more, { topic = true, attempts = true, empty = t("noJobs"), sorting, ticked, tick }) {
  const box = (label, of) => h("input", {
    type: "checkbox", "aria-label": label, checked: of.every((job) => ticked.has(job.id)), onchange: (event) => tick(of, event.target.checked),
  });
  return [
    table([
      { name: h("label", { class: "shown" }, box(t("tickShown"), jobs), h("span", { "aria-hidden": "true" }, t("tickShown"))), cell: (job) => box(t("tick", job.id), [job]) },
      { name: t("id"), sort: "id", rising: true, class: "wide title", cell: (job) => jobLink(job.id) },
      topic && { name: t("topic"), sort: "topic", rising: true, class: "wide", cell: (job) => topicLink(job.topic) },
      jobs.some((job) => job.group) && { name: t("group"), class: "wide", cell: (job) => job.group && groupLink(job) },
      { name: t("state"), sort: "state", rising: true, cell: (job) => [stateMark(job.state), job.state === "reserved" && job.progress && progressBar(job.progress), job.held_by && heldLine(job.held_by)] },
      { name: t("dueAt"), sort: "due", rising: true, class: "time", cell: (job) => h("span", { title: relative(job.due) }, time(job.due)) },
      attempts && { name: t("attempt"), class: "number", cell: (job) => String(job.attempt) },
      attempts && { name: t("message"), class: "cut", cell: (job) => job.message && h("span", { title: job.message }, reasonLine(job.message)) },
    ].filter(Boolean), jobs, (job) => job.id, empty, sorting, "compact"),
    next && action(t("more"), () => more([...cursors, next])),
  ];
}

/** The actions that a job's state allows; `changed` is called afterwards. */
export function jobActions(job, changed) {
  const verb = (name, run, kind) => action(t(name), async () => { if (await run() !== false) await changed(); }, kind, name); // false: the user cancelled
  const one = (path, request = {}) => call(path, { id: job.id, ...request });
  const isWaiting = job.state === "delayed" || job.state === "ready"; // a dead letter cannot become one again
  const backToItsTime = () => one("reschedule", { due: job.due }).then(changed);
  const buttons = {
    kick: verb("kick", async () => {
      await one("kick");
      if (isWaiting) sayUndoable(t("didKick", job.id), backToItsTime);
    }),
    reschedule: verb("reschedule", async () => {
      const answer = await ask(t("reschedule"), { input: t("rescheduleAsk"), value: "10m" });
      if (answer === null) return false;
      await one("reschedule", { delay: seconds(answer) });
      if (isWaiting) sayUndoable(t("didReschedule", job.id), backToItsTime);
      return true;
    }),
    touch: verb("touch", () => one("touch")),
    release: verb("release", async () => await ask(t("release"), { text: t("releaseAsk") }) !== null && one("release", { delay: 0 })),
    bury: verb("bury", async () => {
      const why = await ask(t("bury"), { input: t("buryAsk") });
      if (why === null) return false;
      await one("bury", { message: why });
      sayUndoable(t("didBury", job.id), () => one("kick").then(changed));
      return true;
    }),
    delete: verb("delete", async () => {
      const options = { text: t("deleteAsk", job.id), danger: true };
      return await ask(t("delete"), options) !== null && one("delete");
    }, "danger"),
  };
  const possible = {
    delayed: ["kick", "reschedule", "delete"],
    ready: ["reschedule", "delete"],
    reserved: ["touch", "release", "bury", "delete"],
    buried: ["kick", "reschedule", "delete"],
  };
  return [
    (possible[job.state] || []).filter(may).map((name) => buttons[name]),
    may("kick") && job.state === "buried" && formLink("edit", job.id, t("edit")),
    may("push") && formLink("clone", job.id, t("clone")),
  ];
}
