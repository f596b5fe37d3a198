// The cells: rows of buttons that a keyboard walks through, or runs of colour where there are too many. No state.

import { el, fill, svg } from "../player/dom.js";

const KINDS = { 1: "real", 0: "padding", "!": "counted", "?": "lost" };
/** Height of a row of runs. */
const RUN = 10;

/** The class of a state. */
export function kindOf(state) {
  return KINDS[state];
}

/** What a cell says to a screen reader and in its tooltip. */
export function cellWords(data, row, column, state) {
  const cell = fill(data.text.cell, { example: row, t: column, state: data.text[state] });
  return data.rows[row].levels?.[column] === "n" ? fill(data.text.nan, { cell }) : cell;
}

/** One cell of the table: a button where it can be turned over. */
export function drawCell(data, row, column) {
  const { states, levels } = data.rows[row];
  const missing = levels[column] === "n";
  const cell = el("td", {
    class: `cell ${kindOf(states[column])} ${missing ? "missing" : ""}`,
    role: "gridcell",
    "data-row": row,
    "data-column": column,
    "aria-label": cellWords(data, row, column, states[column]),
    "aria-selected": states[column] === "1" || states[column] === "?" ? "true" : "false",
    title: cellWords(data, row, column, states[column]),
    style: `--level: ${missing ? 0 : Number(levels[column]) / 9}`,
    tabindex: "-1",
  });
  if (missing) cell.textContent = "×";
  return cell;
}

/** A row of a large batch: its runs as rectangles. */
export function drawRuns(data, row) {
  const picture = svg("svg", { class: "runs", viewBox: `0 0 ${data.length} ${RUN}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  picture.append(...data.rows[row].runs.map(([first, after, state]) =>
    svg("rect", { class: kindOf(state), x: first, y: 0.5, width: after - first, height: RUN - 1 })));
  return el("td", { class: "runs-cell", colspan: data.length }, picture);
}

/** Which column numbers have room: each, or every 2nd, 5th, 10th … */
export function tickStep(length, width) {
  const wanted = 30 / Math.max(width, 1);
  return [1, 2, 5, 10, 20, 50, 100, 200, 500].find((step) => step >= wanted) ?? length;
}
