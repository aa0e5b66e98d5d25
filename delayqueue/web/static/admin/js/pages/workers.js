// The workers that sent their names: whether they are alive, and which jobs they have reserved. The argument is a part of a name.

import { call } from "../api.js";
import { breaking, firstRows, h, table } from "../dom.js";
import { clock, length, number, relative } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";
import { jobLink } from "./jobs.js";
import { topicLink } from "./topics.js";

export class Workers extends Live {
  everyMs = 3000; // as often as the servers tell
  state = { match: this.props.argument };
  size = firstRows(100);

  load() {
    return call("workers");
  }

  view(found) {
    const { match } = this.state;
    const matching = found.filter((worker) => worker.name.includes(match.trim()));
    const shown = matching.slice(0, this.size);
    return [
      h("div", { class: "bar" }, h("h1", {}, t("workers")), h("span", { class: "grow" }),
        h("input", {
          type: "search", placeholder: t("filter"), "aria-label": t("filter"), maxlength: 256, value: match,
          oninput: (event) => this.setState({ match: event.target.value }),
        })),
      h("section", { class: "card" }, table(columns(), shown, (worker) => worker.name, found.length ? t("noWorkersFound") : t("noWorkers")),
        matching.length > shown.length && h("p", { class: "soft" }, t("moreWorkers", number(matching.length - shown.length)))),
    ];
  }
}

const columns = () => [
  { name: t("name"), class: "wide title", cell: (worker) => [breaking(worker.name), h("div", { class: "soft small" }, placeOf(worker))] },
  { name: t("sign"), cell: signOf },
  { name: t("topics"), class: "wide", cell: (worker) => worker.topics.map((topic, index) => [index > 0 && ", ", topicLink(topic)]) },
  { name: t("inHand"), class: "number time", cell: (worker) => (worker.concurrency ? `${number(worker.in_hand)} / ${number(worker.concurrency)}` : number(worker.in_hand)) },
  { name: t("runs"), class: "wide", cell: jobsOf },
  { name: t("lastMinute"), class: "time", cell: (worker) => h("span", { class: worker.failed ? "failed" : null }, t("callCounts", number(worker.finished), number(worker.failed))) },
  { name: t("seenSince"), class: "time", cell: (worker) => relative(worker.since) },
];

/** Where a worker runs, and its version. */
function placeOf({ version, host, pid, address }) {
  return [version, host && pid && `${host} · ${pid}`, address].filter(Boolean).join(" · ");
}

/** When a worker was last seen; if it is gone, also when its reservations end. */
function signOf({ gone, seen, until }) {
  const last = relative(Math.min(seen, Date.now() / 1000 - 0.001)); // by the store's clock, which may be ahead
  if (!gone) return last;
  return [h("span", { class: "state buried" }, t("goneFor", last)), until && h("div", { class: "small" }, t("holdsUntil", clock(until)))];
}

/** The jobs that a worker has had for longest, and for how long. */
function jobsOf({ jobs, in_hand: count }) {
  return [
    jobs.map((job) => h("div", { key: job.id }, jobLink(job.id), " ",
      h("span", { class: "soft small time" }, length(Math.max(0, Date.now() / 1000 - job.since))))),
    count > jobs.length && h("div", { class: "soft small" }, t("moreJobs", number(count - jobs.length))),
  ];
}
