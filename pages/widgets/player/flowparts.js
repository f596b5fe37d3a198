// The pieces that the shape flow is drawn from: boxes, chips, arrows, marks. One unit of the picture is one CSS pixel.

import { svg } from "./dom.js";

export const LINE = 13; // height of a line of text in a box or chip
export let SMALL = 0.88; // the small font against the normal one

/** On a projector small words are as large as all others: the style sheet says so. */
export function smallIs(ratio) {
  SMALL = ratio;
}

/** A horizontal or vertical arrow with its head at the end. */
export function arrow(role, x1, y1, x2, y2) {
  const [dx, dy] = [Math.sign(x2 - x1), Math.sign(y2 - y1)];
  const head = dx ? `M${x2},${y2}l${-6 * dx},-3.5v7z` : `M${x2},${y2}l-3.5,${-6 * dy}h7z`;
  return svg("g", { class: `arrow ${role}` },
    svg("path", { class: "shaft", d: `M${x1},${y1}L${x2 - 5 * dx},${y2 - 5 * dy}` }),
    svg("path", { class: "head", d: head }));
}

/** Lines of text centred on a point. */
export function centred(lines, cx, cy, className = "") {
  const top = cy - ((lines.length - 1) * LINE) / 2;
  return lines.map((line, index) =>
    svg("text", { class: className, x: cx, y: top + index * LINE, "text-anchor": "middle", dy: "0.35em" }, line));
}

/** A rounded box around a centre. */
export function rounded(className, cx, cy, width, height, radius = 6) {
  return svg("rect", { class: className, x: cx - width / 2, y: cy - height / 2, width, height, rx: radius });
}

/** A value on its way in or out. Several leaves look like a pile of sheets. */
export function chip(role, lines, cx, cy, width, height, piled) {
  return svg("g", { class: `chip ${role}` },
    piled ? rounded("sheet", cx + 3, cy - 3, width, height, 4) : null,
    rounded("face", cx, cy, width, height, 4),
    centred(lines, cx, cy));
}

/** Init or the final carry. The first line is its name. */
export function endBox(className, lines, cx, cy, width, height) {
  const [name, ...rest] = centred(lines, cx, cy, "small");
  name.classList.add("name");
  return svg("g", { class: `end ${className}` }, rounded("face", cx, cy, width, height), name, rest);
}

export function endHeight(lines) {
  return lines.length * LINE + 14;
}

/** The sign that says broken or flagged without colour: a disc with ✗ or ⚠. */
export function badge(kind, sign, cx, cy) {
  return svg("g", { class: `badge ${kind}` },
    svg("circle", { cx, cy, r: 9 }),
    svg("text", { x: cx, y: cy, "text-anchor": "middle", dy: "0.36em" }, sign));
}
