// A list of jobs as a file: CSV, or JSON lines.

import { call } from "../api.js";
import { say, withProgress } from "../ask.js";
import { number } from "../format.js";
import { t } from "../i18n.js";

const PAGE = 1000;
const MOST = 100000; // jobs of a file: the browser holds it
const COLUMNS = ["id", "topic", "state", "due", "created", "attempt", "priority", "tags", "message", "body"];

/** A cell: quoted, and nothing that a spreadsheet takes for a formula. */
function cell(value) {
  const text = Array.isArray(value) ? value.join(" ") : String(value ?? "");
  const safe = typeof value !== "number" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

const FORMATS = {
  csv: { type: "text/csv", head: `\uFEFF${COLUMNS.join(",")}\r\n`, line: (job) => `${COLUMNS.map((column) => cell(job[column])).join(",")}\r\n` },
  jsonl: { type: "application/jsonl", head: "", line: (job) => `${JSON.stringify(job)}\n` },
};

/** Save the jobs of a listing, from the first on; `format` is csv or jsonl. */
export async function save(which, format) {
  const { type, head, line } = FORMATS[format];
  const parts = [head];
  let cursor = "";
  const count = await withProgress(t("export"), null, async () => {
    if (cursor === null || parts.length > MOST) return 0;
    const page = await call("list", { ...which, limit: PAGE, cursor });
    parts.push(...page.jobs.map(line));
    cursor = page.cursor || null;
    return page.jobs.length || (cursor === null ? 0 : 1);
  });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = `${which.topic || which.tag}.${format}`.replace(/[^\p{L}\p{N}._-]+/gu, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  say(t(cursor === null ? "exported" : "exportedPart", number(count)));
}
