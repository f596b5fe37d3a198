// The shape flow of a scan that does not run: init, the first steps without values, and what breaks drawn broken,
// in the error colour, dashed, with ✗ and the sentence beside it.

import { furtherText } from "./code.js";
import { fill, svg, wrapped } from "./dom.js";
import { arrow, badge, centred, chip, endBox, endHeight, LINE, rounded, SMALL } from "./flowparts.js";

const BOX_HEIGHT = 32;
const CHIP = { width: 30, height: 22 };

/** Draws the broken scan into the picture and returns nothing: there is nothing to play. */
export function drawBroken(picture, data, width, cw) {
  const place = measure(data, width, cw);
  picture.setAttribute("viewBox", `0 0 ${width} ${place.height}`);
  picture.setAttribute("width", width);
  picture.setAttribute("height", place.height);
  picture.dataset.flagged = "";
  picture.dataset.phase = "broken";
  picture.replaceChildren(...rowNames(data, place), ...skeleton(data, place), ...fracture(data, place));
}

/** Where everything stands. The sentence has its room to the right of what it speaks of. */
function measure(data, width, cw) {
  const further = data.counts.carry - 1;
  const more = further > 0 ? [furtherText(data, further)] : [];
  const init = [data.text.init, data.init_type || data.text.none, ...more];
  const initWidth = Math.max(...init.map((line) => line.length)) * cw * SMALL + 18;
  const boxWidth = fill(data.text.step_box, { step: 0 }).length * cw + 14;
  const spare = width - initWidth - 2 * boxWidth - 4;
  const link = Math.min(Math.max(spare / 3, 30), 96);
  const steps = [0, 1].map((step) => initWidth + link + boxWidth / 2 + step * (boxWidth + link));
  const above = data.broken.where === "xs" || data.broken.where === "length";
  const at = { init: initWidth / 2, step: steps[0], carry: (steps[0] + steps[1]) / 2, xs: steps[0], length: steps[1] }[data.broken.where];
  const textX = at + (above ? CHIP.width / 2 + 16 : 14);
  const beside = width - textX >= 24 * cw;
  const room = Math.floor((beside ? width - textX : width - 4) / cw);
  const lines = wrapped([data.broken.code, data.broken.label].filter(Boolean).join(" "), Math.max(room, 8));
  const place = { width, cw, init, initWidth, boxWidth, link, steps, at, lines, textX: beside ? textX : 2 };
  return { ...place, ...rowsOfBroken(data, above, beside, lines.length) };
}

function rowsOfBroken(data, above, beside, count) {
  const block = count * LINE;
  const xLabel = 12;
  const head = data.broken.where === "length" ? 16 : 0;
  const textAbove = above && !beside ? block + 8 + head / 2 : 0;
  const x = xLabel + 24 + head + textAbove + (above && beside ? Math.max(block / 2 - CHIP.height, 0) : 0);
  const box = data.counts.x || above ? x + CHIP.height / 2 + 32 + BOX_HEIGHT / 2 : 34; // no xs, no room for them
  const bottom = box + BOX_HEIGHT / 2;
  const y = bottom + 24 + CHIP.height / 2;
  const textBelow = beside ? bottom + 26 : (data.broken.where === "carry" ? y + CHIP.height / 2 : bottom + 6) + 16;
  const text = above ? (beside ? x - block / 2 + LINE / 2 : xLabel + 18 + LINE / 2) : textBelow;
  const lowest = data.broken.where === "carry" ? y + CHIP.height / 2 : bottom + 6;
  const height = Math.ceil(Math.max(lowest, above ? 0 : textBelow + block - LINE / 2) + 8);
  return { above, beside, xLabel, x, box, bottom, y, text, height };
}

function rowNames(data, place) {
  if (!data.counts.x) return [];
  const name = (role, label, type, y) =>
    svg("text", { class: `row ${role}`, x: 1, y, dy: "0.35em" }, [label, type].filter(Boolean).join(" "));
  const bad = place.above ? " broken" : "";
  return [name(`x${bad}`, data.text.xs, data.xs_type, place.xLabel)];
}

/** What stands in any case. Nothing after the break has happened: it is drawn faint. */
function skeleton(data, place) {
  const { where } = data.broken;
  const faint = { init: where === "init", step: where !== "carry" };
  return [
    where === "init" ? null : endBox("init", place.init, place.initWidth / 2, place.box, place.initWidth, endHeight(place.init)),
    carryArrow(place, place.initWidth + 3, place.steps[0], where === "init" ? "faint" : ""),
    where === "carry" ? null : carryArrow(place, place.steps[0] + place.boxWidth / 2 + 3, place.steps[1], "faint"),
    where === "step" ? null : box(data, place, 0, faint.init ? "faint" : ""),
    box(data, place, 1, "faint"),
    afterwards(data, place),
    where === "xs" || !data.counts.x ? null : xIn(data, place, 0, faint.init ? "faint" : ""),
    where === "carry" ? yOut(data, place) : null,
  ].filter(Boolean);
}

function carryArrow(place, from, to, className) {
  return svg("g", { class: `link carry ${className}` }, arrow("carry", from, place.box, to - place.boxWidth / 2 - 3, place.box));
}

function box(data, place, step, className) {
  return svg("g", { class: `step ${className}` },
    rounded("face", place.steps[step], place.box, place.boxWidth, BOX_HEIGHT),
    centred([fill(data.text.step_box, { step })], place.steps[step], place.box));
}

function xIn(data, place, step, className) {
  const cx = place.steps[step];
  return svg("g", { class: className },
    arrow("x", cx, place.x + CHIP.height / 2 + 2, cx, place.box - BOX_HEIGHT / 2 - 2),
    chip("x", ["x"], cx, place.x, CHIP.width, CHIP.height, false));
}

function yOut(data, place) {
  const cx = place.steps[0];
  return svg("g", {},
    arrow("y", cx, place.bottom + 2, cx, place.y - CHIP.height / 2 - 2),
    chip("y", ["y"], cx, place.y, CHIP.width, CHIP.height, false));
}

/** The rest of the scan, where there is room to hint at it. */
function afterwards(data, place) {
  const from = place.steps[1] + place.boxWidth / 2 + 3;
  const final = data.text.final.length * place.cw * SMALL + 18;
  if (from + 60 > place.width) return null;
  const rest = svg("g", { class: "link carry faint" }, arrow("carry", from, place.box, from + 36, place.box), centred(["…"], from + 48, place.box));
  if (from + 110 + final > place.width) return rest;
  rest.append(
    arrow("carry", from + 60, place.box, from + 96, place.box),
    endBox("final", [data.text.final], from + 99 + final / 2, place.box, final, endHeight([""])));
  return rest;
}

/** What breaks, and why, next to it. */
function fracture(data, place) {
  const draw = { carry: brokenCarry, step: brokenStep, init: brokenInit, xs: brokenX, length: brokenLength }[data.broken.where];
  const text = place.lines.map((line, index) => svg("text", { class: "because", x: place.textX, y: place.text + index * LINE, dy: "0.35em" }, line));
  return [svg("g", { class: "broken" }, draw(data, place), leader(place), text)];
}

function leader(place) {
  if (!place.beside) return null;
  if (place.above) return svg("path", { class: "leader", d: `M${place.at + CHIP.width / 2 + 3},${place.x}h9` });
  const top = place.at === place.initWidth / 2 ? place.box + endHeight(place.init) / 2 : place.at === place.steps[0] ? place.bottom : place.box + 12;
  return svg("path", { class: "leader", d: `M${place.at},${top + 3}V${place.text}h10` });
}

function brokenCarry(data, place) {
  const [from, to] = [place.steps[0] + place.boxWidth / 2 + 3, place.steps[1] - place.boxWidth / 2 - 3];
  return [arrow("dashed", from, place.box, to, place.box), badge("broken", data.text.broken_mark, place.at, place.box)];
}

function brokenStep(data, place) {
  return [
    box(data, place, 0, "dashed"),
    badge("broken", data.text.broken_mark, place.steps[0] + place.boxWidth / 2, place.box - BOX_HEIGHT / 2),
  ];
}

function brokenInit(data, place) {
  const height = endHeight(place.init);
  return [
    endBox("dashed", place.init, place.initWidth / 2, place.box, place.initWidth, height),
    badge("broken", data.text.broken_mark, place.initWidth - 2, place.box - height / 2 + 1),
  ];
}

function brokenX(data, place) {
  const [cx, top, bottom] = [place.steps[0], place.x + CHIP.height / 2, place.box - BOX_HEIGHT / 2];
  return [
    arrow("dashed", cx, top + 2, cx, bottom - 2),
    svg("g", { class: "dashed" }, chip("x", ["x"], cx, place.x, CHIP.width, CHIP.height, false)),
    badge("broken", data.text.broken_mark, cx, (top + bottom) / 2 - 1),
  ];
}

/** The steps that `length` asks for and the slices that xs has do not come out even. */
function brokenLength(data, place) {
  const [from, to] = [place.steps[0] - CHIP.width / 2, place.steps[1] + CHIP.width / 2];
  const y = place.x - CHIP.height / 2 - 6;
  const sliced = data.counts.x > 0;
  return [
    sliced ? svg("g", { class: "dashed" }, chip("x", ["?"], place.steps[1], place.x, CHIP.width, CHIP.height, false)) : null,
    svg("path", { class: "dashes", d: `M${from},${y}v-6H${to}v6` }),
    badge("broken", data.text.broken_mark, (from + to) / 2, y - 6),
  ];
}
