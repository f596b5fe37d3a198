// The shape flow of a scan: init, a box for each step, the final carry; xs come in above, ys go out below.
// `drawFlow` builds the picture for a width and a window of steps, `paintFlow` moves the light over it.

import { fill, subscript, svg } from "./dom.js";
import { arrow, badge, centred, chip, endBox, endHeight, LINE, rounded, SMALL } from "./flowparts.js";
import { chipCharacters, chipLines, furtherLeaves, stepWindow, stripWindow } from "./model.js";
import { furtherText } from "./code.js";
import { stepSummary } from "./steptext.js";

const MIN_LINK = 26; // a carry arrow
const MAX_LINK = 104;
const MIN_PINNED = 4; // fewer boxes than this between init and final: let those leave the picture too
const ELLIPSIS_WIDTH = 40;

/** Sizes of everything at this width. `cw`: the width of one character of the diagram's font. */
export function layoutFlow(data, width, cw) {
  const ends = endLines(data);
  const wide = (lines) => Math.max(...lines.map((line) => line.length)) * cw * SMALL + 18;
  const base = { data, width, cw, ends, initWidth: wide(ends.init), finalWidth: wide(ends.final) };
  const chips = Math.max(chipCharacters(data, "x"), chipCharacters(data, "y"));
  base.chipWidth = Math.max(chips * cw + 12, 28);
  const carryWidth = chipCharacters(data, "carry") * cw;
  const options = [[true, false], [true, true], [false, false], [false, true]].map(([oneLine, raised]) =>
    ({ ...base, oneLine, raised, ...boxesThatFit(base, carryWidth, oneLine, raised) }));
  const most = options[2].slots >= options[3].slots ? options[2] : options[3];
  const chosen = options.find((option) => option.slots >= data.T) ?? options.find((option) => option.slots >= 8) ?? most;
  return placed({ ...chosen, pinned: chosen.slots >= Math.min(data.T, MIN_PINNED) });
}

function boxesThatFit(base, carryWidth, oneLine, raised) {
  const { data, width, cw, chipWidth, initWidth, finalWidth } = base;
  const label = stepLabel(data, Math.max(data.T - 1, 0), oneLine);
  const boxWidth = Math.max(Math.max(...label.map((line) => line.length)) * cw + 14, 38);
  const forLabels = raised ? carryWidth + 14 - boxWidth : carryWidth + 10;
  const link = Math.max(MIN_LINK, forLabels, chipWidth + 8 - boxWidth);
  const slots = Math.floor((width - initWidth - finalWidth - link - 4) / (boxWidth + link));
  return { boxWidth, link, slots };
}

/** Stretches the arrows over the width that is left, and sets the rows from top to bottom. */
function placed(layout) {
  const { data, width, pinned, slots, boxWidth, initWidth, finalWidth, raised, oneLine } = layout;
  const boxes = Math.min(data.T, Math.max(slots, 1));
  const free = width - initWidth - finalWidth - boxes * boxWidth - 4;
  const link = pinned ? Math.min(Math.max(free / (boxes + 1), layout.link), Math.max(MAX_LINK, layout.link)) : layout.link;
  const used = initWidth + finalWidth + boxes * boxWidth + (boxes + 1) * link;
  const left = pinned ? Math.max((width - used) / 2, 1) : 1;
  return { ...layout, link, left, ...rowsOf({ ...layout, link, left, raised, oneLine }) };
}

function rowsOf(layout) {
  const { data, ends, oneLine, raised, link, boxWidth, chipWidth, initWidth, cw, pinned } = layout;
  const has = { x: data.leaves.x.length > 0, y: data.leaves.y.length > 0 };
  const height = (role) => chipLines(data, role, 0).length * LINE + 9;
  const labels = [...rowLabel(data, "x"), ...rowLabel(data, "y")];
  const room = initWidth + link + (boxWidth - chipWidth) / 2 - 10;
  const ownLine = !pinned || Math.max(...labels.map((label) => label.length)) * cw * SMALL > room;
  const boxHeight = oneLine ? 32 : 38;
  const over = Math.max(endHeight(ends.init), endHeight(ends.final)) / 2 - boxHeight / 2;
  const raise = raised ? chipLines(data, "carry", 0).length * LINE + 4 + Math.max(over - 8, 0) : 0;
  let y = 6;
  const rows = { ownLine, boxHeight, has };
  if (has.x || data.xs_type) {
    if (ownLine) y = (rows.xLabel = y + 6) + 12;
    if (data.reverse) y = (rows.xIndex = y + 4) + 10;
    rows.xHeight = has.x ? height("x") : 0;
    rows.x = y + rows.xHeight / 2 + 2;
    if (!ownLine) rows.xLabel = rows.x;
    y = has.x ? rows.x + rows.xHeight / 2 + 24 : y + 4;
  }
  y += raise;
  const tall = Math.max(boxHeight, endHeight(ends.init), endHeight(ends.final));
  rows.box = Math.max(y + boxHeight / 2, tall / 2 + 4);
  y = rows.box + boxHeight / 2;
  if (has.y) {
    rows.yHeight = height("y");
    rows.y = y + 24 + rows.yHeight / 2;
    y = rows.y + rows.yHeight / 2;
    if (data.reverse) y = (rows.yIndex = y + 9) + 4;
    rows.bracket = y + 5;
    y = rows.bracket + 10;
    if (ownLine) y = (rows.yLabel = y + 8) + 6;
    else rows.yLabel = rows.y;
  }
  rows.height = Math.ceil(Math.max(y, rows.box + tall / 2) + 6);
  return rows;
}

function endLines(data) {
  const further = furtherLeaves(data, "carry");
  const more = further ? [furtherText(data, further)] : [];
  const shown = data.chips.carry?.[data.T] ?? "";
  const type = data.final_type || data.text.none;
  const last = !shown ? [type] : type.length + shown.length < 16 ? [`${type} ${shown}`] : [type, shown];
  return {
    init: [data.text.init, data.init_type || data.text.none, ...more],
    final: [data.text.final, ...last, ...more],
  };
}

function rowLabel(data, role) {
  const [name, type] = role === "x" ? [data.text.xs, data.xs_type] : [data.text.ys, data.ys_type];
  const further = furtherLeaves(data, role);
  return [`${name} ${type || data.text.none}`, ...(further ? [furtherText(data, further)] : [])];
}

function stepLabel(data, step, oneLine) {
  return oneLine ? [fill(data.text.step_box, { step })] : [fill(data.text.step_box, { step: "" }).trim(), String(step)];
}

/** Which items are in the picture at a position. */
export function flowWindow(layout, position) {
  const { data, pinned, slots, width, initWidth, finalWidth, boxWidth, link } = layout;
  if (pinned) return stepWindow(data.T, Math.max(position - 1, 0), slots);
  const itemWidth = (item) => (item === -1 ? initWidth : item === data.T ? finalWidth : boxWidth);
  const fits = (first, last) => {
    let used = (first > -1 ? ELLIPSIS_WIDTH + link : 0) + (last < data.T ? ELLIPSIS_WIDTH + link : 0);
    for (let item = first; item <= last; item += 1) used += itemWidth(item) + (item > first ? link : 0);
    return used <= width - 2;
  };
  return stripWindow(data.T, position - 1, fits);
}

/** The items of a window with their places, from left to right. */
function itemsOf(layout, window) {
  const { data, pinned, left, link, boxWidth, initWidth, finalWidth } = layout;
  const items = [];
  let x = left;
  const add = (item, width) => {
    items.push({ ...item, cx: x + width / 2, width });
    x += width + link;
  };
  const gapWidth = pinned ? boxWidth : ELLIPSIS_WIDTH;
  const [first, last] = pinned ? [window.first, window.last - 1] : [Math.max(window.first, 0), Math.min(window.last, data.T - 1)];
  if (pinned || window.first === -1) add({ kind: "init" }, initWidth);
  if (first > 0 || (!pinned && window.first > -1)) add({ kind: "gap", count: first, carry: first }, gapWidth);
  for (let step = first; step <= last; step += 1) add({ kind: "step", step }, boxWidth);
  if (last < data.T - 1 || (!pinned && window.last < data.T)) add({ kind: "gap", count: data.T - 1 - last, carry: data.T }, gapWidth);
  if (pinned || window.last === data.T) add({ kind: "final" }, finalWidth);
  const spare = Math.max(layout.width - (x - link), 0) / 2;
  return pinned ? items : items.map((item) => ({ ...item, cx: item.cx + spare }));
}

/** The index of the carry that an item receives. */
function carryInto(data, item, before) {
  if (item.kind === "step") return item.step;
  if (item.kind === "final") return data.T;
  return before.kind === "init" ? 0 : before.step + 1;
}

/** Builds the picture. */
export function drawFlow(picture, layout, window) {
  const { data, height, width } = layout;
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("width", width);
  picture.setAttribute("height", height);
  const items = itemsOf(layout, window);
  const steps = items.filter((item) => item.kind === "step");
  picture.replaceChildren(
    ...steps.map((item) => litColumn(layout, item)),
    ...rowLabels(layout, steps),
    ...items.slice(1).map((item, index) => link(layout, items[index], item)),
    ...items.map((item) => drawItem(layout, item)),
    ...marks(layout, items),
  );
  picture.dataset.flagged = data.flagged?.where ?? "";
}

function litColumn(layout, item) {
  const reach = Math.min(layout.link - 3, 60);
  const x = Math.max(item.cx - item.width / 2 - reach, 0);
  const right = Math.min(item.cx + item.width / 2 + reach, layout.width);
  return svg("rect", { class: "lit", "data-step": item.step, x, y: 0, width: right - x, height: layout.height, rx: 8 });
}

function rowLabels(layout, steps) {
  const { data, left, ownLine, xLabel, yLabel } = layout;
  const parts = [];
  const label = (role, y) => {
    const lines = ownLine ? [rowLabel(data, role).join(" ")] : rowLabel(data, role);
    const top = y - ((lines.length - 1) * LINE) / 2;
    return lines.map((line, index) => svg("text", { class: `row ${role}`, x: left, y: top + index * LINE, dy: "0.35em" }, line));
  };
  if (xLabel !== undefined) parts.push(...label("x", xLabel));
  if (yLabel !== undefined) parts.push(...label("y", yLabel));
  if (layout.bracket !== undefined && steps.length) parts.push(bracket(layout, steps));
  return parts;
}

/** All y together are ys. */
function bracket(layout, steps) {
  const { bracket: y, chipWidth, data, cw } = layout;
  const [from, to] = [steps[0].cx - chipWidth / 2, steps[steps.length - 1].cx + chipWidth / 2];
  const half = (data.text.stacked.length * cw * SMALL) / 2 + 6;
  const middle = (from + to) / 2;
  const named = to - from > 4 * half;
  const base = named ? `H${middle - half}M${middle + half},${y + 6}H${to}` : `H${to}`;
  return svg("g", { class: "bracket y" },
    svg("path", { d: `M${from},${y}v6${base}v-6` }),
    named ? centred([data.text.stacked], middle, y + 6, "small") : null);
}

function link(layout, from, to) {
  const { data, box, raised, boxHeight } = layout;
  const carry = carryInto(data, to, from);
  const [x1, x2] = [from.cx + from.width / 2 + 3, to.cx - to.width / 2 - 3];
  const lines = chipLines(data, "carry", carry);
  const middle = (x1 + x2) / 2 - 1;
  const stacked = lines.length === 2 && !raised; // the type's name above its arrow, its dimensions below
  const above = stacked ? lines.slice(0, 1) : lines;
  // A raised label is wider than its arrow: it stands over both boxes, and over the taller of them.
  const ends = [from.kind === "init" ? layout.ends.init : [], to.kind === "final" ? layout.ends.final : []];
  const tall = Math.max(boxHeight, ...ends.map((end) => (end.length ? endHeight(end) : 0)));
  const bottom = raised ? box - tall / 2 - 9 : box - 10;
  return svg("g", { class: "link carry", "data-carry": carry },
    arrow("carry", x1, box, x2, box),
    centred(above, middle, bottom - ((above.length - 1) * LINE) / 2),
    stacked ? centred(lines.slice(1), middle, box + 12) : null);
}

function drawItem(layout, item) {
  const { data, ends, box } = layout;
  if (item.kind === "init") {
    return svg("g", { class: "item", "data-position": 0 }, endBox("init", ends.init, item.cx, box, item.width, endHeight(ends.init)));
  }
  if (item.kind === "final") {
    return svg("g", { class: "item", "data-position": data.T }, endBox("final", ends.final, item.cx, box, item.width, endHeight(ends.final)));
  }
  return item.kind === "gap" ? gap(layout, item) : step(layout, item);
}

function gap(layout, item) {
  const { data, box } = layout;
  const words = item.count ? fill(data.text.more_steps, { count: item.count }).split(" ") : ["…"];
  const lines = words.length > 2 ? [words.slice(0, -1).join(" "), words[words.length - 1]] : words;
  return svg("g", { class: "gap" }, centred(lines, item.cx, box, "small"));
}

function step(layout, item) {
  const { data, box, boxHeight, chipWidth, x, xHeight, y, yHeight, has, oneLine } = layout;
  const [top, bottom, at, t] = [box - boxHeight / 2, box + boxHeight / 2, item.step, data.order[item.step]];
  const label = stepLabel(data, at, oneLine);
  const group = svg("g", { class: "step item", "data-step": at, "data-position": at + 1 },
    svg("title", {}, stepSummary(data, at + 1)),
    rounded("face", item.cx, box, item.width, boxHeight),
    centred(label.slice(0, -1), item.cx, box - LINE / 2, "small"),
    centred(label.slice(-1), item.cx, label.length > 1 ? box + LINE / 2 : box));
  if (has.x) {
    group.append(arrow("x", item.cx, x + xHeight / 2 + 2, item.cx, top - 2));
    group.append(chip("x", chipLines(data, "x", at), item.cx, x, chipWidth, xHeight, furtherLeaves(data, "x") > 0));
    if (data.reverse) group.append(...centred([`x${subscript(t)}`], item.cx, layout.xIndex, "x index"));
  }
  if (has.y) {
    group.append(arrow("y", item.cx, bottom + 2, item.cx, y - yHeight / 2 - 2));
    group.append(chip("y", chipLines(data, "y", at), item.cx, y, chipWidth, yHeight, furtherLeaves(data, "y") > 0));
    if (data.reverse) group.append(...centred([`y${subscript(t)}`], item.cx, layout.yIndex, "y index"));
  }
  return group;
}

/** Where a silent fault sits, a warning sign: on what it names, once. */
function marks(layout, items) {
  const { data, box, boxHeight, x, chipWidth } = layout;
  if (!data.flagged) return [];
  const sign = (cx, cy) => [badge("flagged", data.text.flagged_mark, cx, cy)];
  const init = items.find((item) => item.kind === "init");
  const steps = items.filter((item) => item.kind === "step");
  if (data.flagged.where === "init" && init) return sign(init.cx + init.width / 2 - 2, box - endHeight(layout.ends.init) / 2 + 2);
  if (!steps.length) return [];
  const [first, second] = steps;
  if (data.flagged.where === "step") return sign(first.cx + first.width / 2 - 1, box - boxHeight / 2 + 1);
  if (data.flagged.where === "carry") return sign(second ? (first.cx + second.cx) / 2 : first.cx + first.width, box + 17);
  return x === undefined ? [] : sign(first.cx - chipWidth / 2 - 5, x + layout.xHeight / 2 - 1); // beside the words in the chip
}

/** Moves the light to a position. `phase` is the part of the step that Play shows, or null for all of it. */
export function paintFlow(picture, data, position, phase) {
  picture.dataset.phase = phase ?? "all";
  for (const node of picture.querySelectorAll("[data-step]")) {
    const at = Number(node.dataset.step);
    node.classList.toggle("now", at === position - 1);
    node.classList.toggle("done", at < position - 1);
  }
  for (const node of picture.querySelectorAll("[data-carry]")) {
    const carry = Number(node.dataset.carry);
    node.classList.toggle("in", position > 0 && carry === position - 1);
    node.classList.toggle("out", carry === position);
    node.classList.toggle("done", carry < position - 1);
  }
  picture.querySelector(".end.init")?.classList.toggle("now", position === 0);
  picture.querySelector(".end.final")?.classList.toggle("now", position === data.T);
}

/** What the picture is, in a sentence. */
export function flowSentence(data) {
  const label = fill(data.text.flow_aria, {
    length: data.T,
    init: data.init_type || data.text.none,
    xs: data.xs_type || data.text.none,
    ys: data.ys_type || data.text.none,
    final: data.final_type || data.text.none,
  });
  if (data.broken) return `${label} ${fill(data.text.broken_aria, data.broken)}`;
  return data.flagged ? `${label} ${fill(data.text.flagged_aria, data.flagged)}` : label;
}
