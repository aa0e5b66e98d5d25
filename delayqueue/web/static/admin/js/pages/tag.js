// The jobs of a tag.

import { call, may } from "../api.js";
import { action, ask, say } from "../ask.js";
import { h } from "../dom.js";
import { jobs } from "../format.js";
import { t } from "../i18n.js";
import { pages } from "./jobs.js";
import { askWhen, Selecting } from "./selecting.js";

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
    say(t("didCount", jobs((await call("reschedule", { tag: name, ...when })).count)));
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
