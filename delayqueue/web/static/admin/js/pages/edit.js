// Retries a dead letter with another body. All else about the job stays, its attempts too.

import { call } from "../api.js";
import { ask, Form, say } from "../ask.js";
import { bodyOf, h } from "../dom.js";
import { parsed } from "../format.js";
import { t } from "../i18n.js";
import { Live, NEVER_MS } from "../live.js";
import { jobLink, jobPlace, noSuchJob } from "./jobs.js";

export class Edit extends Live {
  everyMs = NEVER_MS; // the form is the user's

  load() {
    return call("get", { id: this.props.argument });
  }

  /** What is wrong with the new body, if something is. The old one need not have been JSON. */
  flaw() {
    const { data: { body: old }, body = old } = this.state;
    const [[, before], [, now]] = [old, body].map(parsed);
    return !before && now;
  }

  retry = async () => {
    const { data: { id, body: before }, body = before } = this.state;
    const wrong = this.flaw();
    if (wrong && await ask(t("retry"), { error: t("noLongerJson", wrong), danger: true, ok: t("retryAnyway") }) === null) return;
    const { hash } = location;
    const now = await call("get", { id });
    if (now && now.body !== before && await ask(t("retry"), { error: t("bodyChanged"), danger: true, ok: t("retryAnyway") }) === null) return;
    await call("kick", { id, body: bodyOf(body, before) });
    if (location.hash === hash) location.hash = jobPlace(id); // not if the user has gone elsewhere
    say(t("didIt"));
  };

  view(found) {
    if (!found) return noSuchJob(this.props.argument);
    const { body = found.body } = this.state;
    const wrong = this.flaw();
    return [h("h1", {}, t("editing")), h(Form, { kind: "fields card", text: t("retry"), work: this.retry },
      h("p", { class: "whole" }, jobLink(found.id), " ", h("span", { class: "soft" }, t("editNote"))),
      h("label", { class: "whole" }, t("body"), h("textarea", {
        rows: 12, class: "mono", spellcheck: false, value: body, oninput: (event) => this.setState({ body: event.target.value }),
      })),
      h("div", { class: "whole", role: "status" }, wrong && h("p", { class: "card warning" }, t("noLongerJson", wrong))))];
  }
}
