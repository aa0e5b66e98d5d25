// The jobs of a tag.

import { call, may } from "../api.js";
import { action, ask, say } from "../ask.js";
import { h } from "../dom.js";
import { jobs } from "../format.js";
import { t } from "../i18n.js";
import { pages } from "./jobs.js";
import { askWhen, sayMoved, Selecting } from "./selecting.js";

const PAGE = 1000;
const MOST = 10000; // jobs whose move can be undone

/** The ids of the tag's jobs that a move to a later time changes. null if moving them back would not undo it: there are too many jobs,
 *  or dead letters, which would stay delayed. */
async function movable(tag) {
  const ids = [];
  let cursor = "";
  do {
    const page = await call("list", { tag, limit: PAGE, cursor });
    if (page.jobs.some(({ state }) => state === "buried")) return null;
    ids.push(...page.jobs.filter(({ state }) => state === "delayed" || state === "ready").map(({ id }) => id));
    ({ cursor } = page);
  } while (cursor && ids.length <= MOST);
  return cursor ? null : ids;
}

export class TagPage extends Selecting {
  which() {
    return { tag: this.props.argument };
  }

  load() {
    return pages(this.which(), this.state.cursors);
  }

  cancel = async () => {
    const name = this.props.argument;
    if (await ask(t("cancelAll"), { text: t("cancelAllAsk", name), danger: true }) === null) return;
    say(t("didCount", jobs((await call("cancel", { tag: name })).count)));
    await this.refresh();
  };

  delay = async () => {
    const name = this.props.argument;
    const when = await askWhen(t("delayTag"), t("delayTagAsk", name));
    if (when === null) return;
    const ids = when.by > 0 ? await movable(name) : null;
    const { count } = await call("reschedule", { tag: name, ...when });
    if (ids && count && ids.length === count) sayMoved(ids, when.by, this.refresh);
    else say(t("didCount", jobs(count)));
    await this.refresh();
  };

  view(found) {
    return [
      h("div", { class: "bar" }, h("h1", {}, t("withTag", this.props.argument)), h("span", { class: "grow" }),
        may("reschedule") && action(t("delayTag"), this.delay), may("cancel") && action(t("cancelAll"), this.cancel, "danger")),
      h("section", { class: "card" }, this.list(found, null)),
    ];
  }
}
