// Saves what a page lists as CSV or JSON lines.

import { call } from "../api.js";
import { action, say, withProgress } from "../ask.js";
import { number } from "../format.js";
import { t } from "../i18n.js";

const PAGE = 1000;
const MOST = 100000; // rows of a file, which the browser holds in memory
const JOB = ["id", "topic", "state", "due", "created", "attempt", "priority", "tags", "message", "body"];

/** The text of a cell: lists joined by blanks, objects as JSON. */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain).join(" ");
  return value !== null && typeof value === "object" ? JSON.stringify(value) : value ?? "";
}

// How a formula begins, in half or full width; and what comes before a formula within a cell, for programs that separate cells by
// semicolons or tabs, or ignore quotes. A comma separates no cells, because they are quoted.
const FORMULA = /^(?:[\t\r\n]|[\s"'`;,|]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/;
const WITHIN = /[;\t\r\n](?=[\s"'`;,|]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/g;

/** A quoted cell that no spreadsheet takes for a formula. */
function cell(value) {
  const text = String(plain(value));
  const quiet = text.replace(WITHIN, "$&'");
  const safe = typeof value === "number" ? text : FORMULA.test(text) ? `'${quiet}` : quiet;
  return `"${safe.replaceAll('"', '""')}"`;
}

const FORMATS = {
  csv: { type: "text/csv", head: (columns) => `\uFEFF${columns.join(",")}\r\n`, line: (row, columns) => `${columns.map((column) => cell(row[column])).join(",")}\r\n` },
  jsonl: { type: "application/jsonl", head: () => "", line: (row) => `${JSON.stringify(row)}\n` },
};

/** Save rows in a file of this name; `format` is csv or jsonl, read(cursor) returns {rows, cursor}; cursor "" = the end. */
async function save(name, format, columns, read) {
  const { type, head, line } = FORMATS[format];
  const parts = [head(columns)];
  let cursor = "";
  const count = await withProgress(t("export"), null, async () => {
    if (cursor === null || parts.length > MOST) return 0;
    const page = await read(cursor);
    for (const row of page.rows) parts.push(line(row, columns));
    cursor = page.cursor || null;
    return page.rows.length || (cursor === null ? 0 : 1);
  });
  if (count === null) return; // cancelled: no part of a file that looks like the whole
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = `${name}.${format}`.replace(/[^\p{L}\p{N}._-]+/gu, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  say(t(cursor === null ? "exported" : "exportedPart", number(count)));
}

/** The buttons that save rows. */
export const exportButtons = (name, columns, read) => [["csv", "CSV"], ["jsonl", "JSON"]].map(([format, text]) =>
  action(text, () => save(name, format, columns, read), "plain", format));

/** The buttons that save all jobs of a list. */
export const exportJobs = (which) => exportButtons(which.topic || which.tag, JOB, async (cursor) => {
  const page = await call("list", { ...which, limit: PAGE, cursor });
  return { rows: page.jobs, cursor: page.cursor };
});
