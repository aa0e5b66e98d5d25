// The jobs of a tag.

import { call } from "../api.js";
import { action, ask, say } from "../ask.js";
import { fill, h } from "../dom.js";
import { number, seconds } from "../format.js";
import { t } from "../i18n.js";
import { jobTable } from "./jobs.js";

const PAGE = 100;

export async function tag(content, name, live) {
  const list = h("div");
  const cancel = action(t("cancelAll"), async () => {
    if (await ask(t("cancelAll"), { text: t("cancelAllAsk", name), danger: true, ok: t("cancelAll") }) === null) return;
    say(t("didCount", number((await call("cancel", { tag: name })).count)));
    await refresh();
  }, "danger");
  const delay = action(t("delayTag"), async () => {
    const answer = await ask(t("delayTag"), { input: t("delayTagAsk", name), value: "10m" });
    if (answer === null) return;
    say(t("didCount", number((await call("reschedule", { tag: name, delay: seconds(answer) })).count)));
    await refresh();
  });
  fill(content, h("div", { class: "bar" }, h("h1", {}, t("withTag", name)), h("span", { class: "grow" }), delay, cancel), h("section", { class: "card" }, list));
  let cursors = [""];
  async function refresh() {
    const rows = [];
    let next = "";
    for (const cursor of cursors) {
      const page = await call("list", { tag: name, limit: PAGE, cursor });
      rows.push(...page.jobs);
      next = page.cursor;
      if (!next) break;
    }
    fill(list, jobTable(rows), next && action(t("more"), async () => { cursors.push(next); await refresh(); }));
  }
  await live(refresh);
}
