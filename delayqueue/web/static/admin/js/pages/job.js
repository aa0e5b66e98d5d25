// A job: its fields, its history, and the actions on it.

import { call, may } from "../api.js";
import { breaking, facts, h, table, words } from "../dom.js";
import { length, parsed, relative, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { groupLink, heldLine, jobActions, noSuchJob, progressBar, stateMark, tagLink } from "./jobs.js";
import { topicLink } from "./topics.js";

export class JobPage extends Live {
  load() {
    return call("get", { id: this.props.argument });
  }

  view(found) {
    return found ? view(found, this.refresh) : noSuchJob(this.props.argument);
  }
}

function view(found, refresh) {
  const known = [
    [t("state"), [stateMark(found.state), found.held_by && heldLine(found.held_by)]],
    [t("topic"), topicLink(found.topic)],
    [t("dueAt"), `${time(found.due)} · ${relative(found.due)}`],
    found.put_off_until && [t("putOffUntil"), `${time(found.put_off_until)} · ${relative(found.put_off_until)}`],
    [t("ttr"), length(found.ttr)],
    [t("attempts"), String(found.attempt)],
    found.worker && [t("worker"), may("workers") ? h("a", { href: `#/workers/${encodeURIComponent(found.worker)}` }, breaking(found.worker)) : breaking(found.worker)],
    found.group && [t("group"), groupLink(found)],
    found.progress && [t("progress"), progressBar(found.progress)],
    found.tags.length && [t("tags"), found.tags.map(tagLink)],
    found.call && [t("call"), breaking(`${found.call.method} ${found.call.url}`)],
    found.message && !isTold(found) && [t("message"), words(found.message)],
  ].filter(Boolean);
  return [
    h("div", { class: "bar" }, h("h1", { class: "mono" }, breaking(found.id)), h("span", { class: "grow" }), jobActions(found, refresh)),
    h("div", { class: "columns" },
      h("div", {},
        h("section", { class: "card" }, facts(known)),
        h("section", { class: "card" }, h("h2", {}, t("body")), found.body ? h("pre", { tabindex: 0 }, pretty(found.body)) : h("p", { class: "soft" }, t("noBody")))),
      h("section", { class: "card" }, h("h2", {}, t("history")), h("ul", { class: "timeline" }, events(found)))),
    found.results.length > 0 && h("section", { class: "card" }, h("h2", {}, t("results")), table([
      { name: t("name"), class: "wide", cell: (result) => result.subscriber },
      { name: t("status"), cell: (result) => t(result.status === "succeeded" ? "trySucceeded" : "tryFailed") },
      { name: t("attempts"), class: "number", cell: (result) => String(result.attempts) },
      { name: t("dueAt"), cell: (result) => time(result.due) },
      { name: t("message"), class: "wide", cell: (result) => words(result.message) },
    ], found.results, (result) => result.subscriber, "")),
  ];
}

/** Whether the history shows the last message. */
const isTold = ({ ended, message, attempts }) => Boolean(ended) || attempts.at(-1)?.message === message;

/** What happened to the job, the oldest event first. */
function events(found) {
  const event = (at, text, kind = "", message = "") => h("li", { class: kind },
    h("div", {}, h("b", {}, text), " ", h("span", { class: "soft small time" }, time(at))), message && words(message));
  const past = found.due <= Date.now() / 1000;
  const list = [[found.created, event(found.created, t("pushed"))]];
  for (const attempt of found.attempts) {
    const text = t("attempt_failed", attempt.attempt, length(attempt.ended - attempt.started));
    list.push([attempt.ended, event(attempt.ended, attempt.worker ? [text, " · ", attempt.worker] : text, "bad", attempt.message)]);
  }
  if (found.state === "delayed" || past) list.push([found.due, event(found.due, past ? t("due_event") : t("will_be_due"))]);
  if (found.state === "reserved") list.push([found.started, event(found.started, t("attempt_runs", found.attempt))]);
  if (found.ended) list.push([found.ended, event(found.ended, t(found.state), found.state === "finished" ? "good" : "bad", found.message)]);
  return list.sort(([one], [other]) => one - other).map(([, element]) => element);
}

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

const MOST_INDENTS = 1e6; // in all lines together: a body with 20,000 levels would have 400 million

/** JSON with indents; anything else, and what is too deep for them, unchanged. Its texts and numbers stay as they are: JavaScript would round the
 *  long ones. */
function pretty(body) {
  if (parsed(body).length > 1) return body;
  let depth = 0;
  let before = "";
  const parts = [];
  let indents = 0;
  const line = () => {
    indents += depth;
    return `\n${"  ".repeat(depth)}`;
  };
  for (const token of body.match(TOKENS)) {
    const isEnd = token === "}" || token === "]";
    if (isEnd) depth -= 1;
    const isInner = /[{[]$/.test(before) ? !isEnd : isEnd;
    if (isInner || before === ",") parts.push(line());
    if (token === "{" || token === "[") depth += 1;
    if (indents > MOST_INDENTS) return body;
    parts.push(token === ":" ? ": " : token);
    before = token;
  }
  return parts.join("");
}
