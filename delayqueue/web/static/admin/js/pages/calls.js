// The calls of jobs, by host: how many succeed, and why others are not made.

import { call } from "../api.js";
import { breaking, h, table, words } from "../dom.js";
import { length, number, relative, time } from "../format.js";
import { t } from "../i18n.js";
import { Live } from "../live.js";

export class Calls extends Live {
  load() {
    return call("stats");
  }

  view({ called, calls, servers }) {
    const callers = servers.filter((server) => server.call_limit);
    return [
      h("h1", {}, t("calls")),
      !callers.length && h("div", { class: "card warning" }, t("noCallers")),
      callers.length > 0 && callers.length < servers.length && h("p", { class: "soft" }, t("someCallers", callers.map((server) => server.name).join(", "))),
      h("p", {}, t("waitForCalls", number(called)), " ", h("span", { class: "soft" }, t("callsNote"))),
      h("section", { class: "card" }, table([
        { name: t("host"), class: "wide title", cell: (one) => breaking(one.host) },
        { name: t("underWay"), class: "number time", cell: (one) => h("span", { class: one.calling >= one.limit ? "failed" : null }, `${number(one.calling)} / ${number(one.limit)}`) },
        { name: t("waitThere"), class: "number", cell: (one) => h("span", { class: one.waiting ? "failed" : null }, number(one.waiting ?? 0)) },
        { name: t("waitSince"), class: "time", cell: (one) => one.waiting_since && h("span", { title: time(one.waiting_since) }, relative(one.waiting_since)) },
        { name: t("nextTry"), class: "time", cell: (one) => one.next_try && h("span", { title: time(one.next_try) }, relative(one.next_try)) },
        { name: t("lastMinute"), class: "time", cell: (one) => h("span", { class: one.failed ? "failed" : null }, t("callCounts", number(one.succeeded), number(one.failed))) },
        { name: t("putOff"), class: "number", cell: (one) => number(one.put_off) },
        { name: t("took"), class: "number time", cell: (one) => (one.took === null ? "–" : length(one.took)) },
        { name: t("lastFailure"), class: "wide", cell: (one) => one.failed_at && [h("span", { class: "small", title: time(one.failed_at) }, relative(one.failed_at)), words(one.error)] },
      ], calls, (one) => one.host, t("noCalls"))),
    ];
  }
}
