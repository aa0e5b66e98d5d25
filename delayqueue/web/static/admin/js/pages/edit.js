// Retries a dead letter with another body. All else about the job stays, its attempts too.

import { call } from "../api.js";
import { ask, Form, say, told } from "../ask.js";
import { bodyOf, Component, h } from "../dom.js";
import { parsed } from "../format.js";
import { t } from "../i18n.js";
import { jobLink, jobPlace } from "./jobs.js";

export class Edit extends Component {
  state = { found: undefined, body: "" };

  componentDidMount = told(async () => {
    const found = await call("get", { id: this.props.argument });
    this.setState({ found, body: found?.body });
  });

  /** What is wrong with the new body, if something is. The old one need not have been JSON. */
  flaw() {
    const [[, before], [, now]] = [this.state.found.body, this.state.body].map(parsed);
    return !before && now;
  }

  retry = async () => {
    const { found: { id, body: before }, body } = this.state;
    const wrong = this.flaw();
    if (wrong && await ask(t("retry"), { error: t("noLongerJson", wrong), danger: true, ok: t("retryAnyway") }) === null) return;
    const { hash } = location;
    await call("kick", { id, body: bodyOf(body, before) });
    if (location.hash === hash) location.hash = jobPlace(id); // not if the user has gone elsewhere
    say(t("didIt"));
  };

  render({ argument }, { found, body }) {
    const title = h("h1", {}, t("editing"));
    if (!found) return [title, found === null && h("p", { class: "empty" }, t("noSuchJob", argument))];
    const wrong = this.flaw();
    return [title, h(Form, { kind: "fields card", text: t("retry"), work: this.retry },
      h("p", { class: "whole" }, jobLink(found.id), " ", h("span", { class: "soft" }, t("editNote"))),
      h("label", { class: "whole" }, t("body"), h("textarea", {
        rows: 12, class: "mono", spellcheck: false, value: body, oninput: (event) => this.setState({ body: event.target.value }),
      })),
      h("div", { class: "whole", role: "status" }, wrong && h("p", { class: "card warning" }, t("noLongerJson", wrong))))];
  }
}
