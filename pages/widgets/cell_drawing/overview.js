// All units at a glance, for cells wider than a page of bars: a row for each quantity, a column for each unit.

import { svg } from "../player/dom.js";

const ROW = 11;
const LABEL = 26;

/** The rows that are shown, in the order of the cell. */
function rowsOf(data) {
  return [...data.parts, ...data.gates, ...data.parts.map((part) => `${part}′`)];
}

/** Draws the strip into `picture` at this width. */
export function drawOverview(picture, data, width) {
  const rows = rowsOf(data);
  const step = (width - LABEL) / data.units;
  const height = rows.length * ROW + 2;
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("width", width);
  picture.setAttribute("height", height);
  picture.replaceChildren(...rows.flatMap((slot, row) => [
    svg("text", { class: "name", x: 0, y: row * ROW + 9 }, slot),
    ...cells(data.series[slot], row, step),
  ]));
  const mark = svg("rect", { class: "mark", y: 0.5, height: height - 1, rx: 2 });
  picture.append(mark);
  return { mark, step, width };
}

function cells(series, row, step) {
  return series.values.map((value, unit) => {
    const part = value === null ? null : value / Math.max(Math.abs(series.low), Math.abs(series.high));
    const tone = part === null ? "missing" : part < 0 ? "minus" : "plus";
    return svg("rect", {
      class: `tile ${tone}`,
      x: LABEL + unit * step,
      y: row * ROW + 1,
      width: Math.max(step - (step > 4 ? 0.6 : 0), 0.5),
      height: ROW - 1.5,
      "fill-opacity": part === null ? 1 : Math.abs(part).toFixed(3),
    });
  });
}

/** Puts the frame around the chosen unit's column. */
export function paintOverview({ mark, step }, unit) {
  mark.setAttribute("x", LABEL + unit * step - 1);
  mark.setAttribute("width", Math.max(step, 2) + 1.4);
}

/** The unit under a horizontal position (0 to 1 of the strip's width). */
export function unitAt(part, width, units) {
  const unit = Math.floor(((part * width - LABEL) / (width - LABEL)) * units);
  return Math.min(Math.max(unit, 0), units - 1);
}
