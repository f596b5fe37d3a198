// The picture of the cell: frames, wires and operators once per picture, bars and numbers again for each unit.

import { fill, svg } from "../player/dom.js";
import { arrowHead, barOf, columnOf, plotArea, unitWindow, wirePath, zeroOf } from "./geometry.js";

const ALERTS = { broken: "✗", flagged: "⚠" };

/** Draws everything that does not depend on the unit into `picture`; returns the groups that `paintPicture` fills. */
export function drawPicture(picture, data, name) {
  const { width, height, boxes, operators, wires } = data.pictures[name];
  const id = `cell-${name}`;
  const describe = { cell: data.kind, carry: data.parts.join(", "), gates: data.gates.join(", "), new: data.parts.map((p) => `${p}′`).join(", ") };
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("aria-labelledby", `${id}-title`);
  picture.setAttribute("aria-describedby", `${id}-text`);
  picture.replaceChildren(
    svg("title", { id: `${id}-title` }, fill(data.text.title, describe)),
    svg("desc", { id: `${id}-text` }, fill(data.text.description, describe)),
    ...wires.map(drawWire),
    ...operators.map(drawOperator),
  );
  const slots = {};
  for (const box of boxes) {
    const bars = svg("g", { class: "bars" });
    const value = svg("text", { class: "value", x: box.x + box.width - 7, y: box.y + 15, "text-anchor": "end" });
    const state = alertOf(data, box.slot);
    picture.append(
      svg("g", { class: `box ${box.role} ${state ?? ""}`, "data-slot": box.slot },
        svg("rect", { class: "frame", x: box.x, y: box.y, width: box.width, height: box.height, rx: 8 }),
        bars,
        svg("text", { class: "name", x: box.x + 8, y: box.y + 15 }, box.slot,
          name === "wide" ? svg("tspan", { class: "word", dx: 5 }, data.words[box.slot]) : null),
        value,
        box.slot in data.types ? svg("text", { class: "type", x: box.x + box.width / 2, y: box.y + box.height / 2 + 8, "text-anchor": "middle" }, data.types[box.slot]) : null,
        state ? drawAlert(box, data, state) : null),
    );
    slots[box.slot] = { box, bars, value };
  }
  const notes = {};
  for (const { slot, at, anchor } of operators.filter((operator) => operator.slot)) {
    notes[slot] = svg("text", { class: "note", x: at[0], y: at[1], "text-anchor": anchor });
    picture.append(notes[slot]);
  }
  return { slots, notes, name };
}

function alertOf(data, slot) {
  return Object.keys(ALERTS).find((state) => slot in data[state] || (isGate(data, slot) && "cell" in data[state]));
}

/** Where a fault of the cell itself is shown: at its gates; a simple cell has none, so at what it gives. */
function isGate(data, slot) {
  return data.gates.length ? data.gates.includes(slot) : slot === "h′";
}

function drawWire({ role, points, open, dot }) {
  const end = open ? points : [...points.slice(0, -1), shortened(points)];
  return svg("g", { class: `wire ${role}` },
    svg("path", { d: wirePath(end) }),
    open ? null : svg("polygon", { points: arrowHead(points) }),
    dot ? svg("circle", { cx: points[0][0], cy: points[0][1], r: 2.6 }) : null);
}

/** The last point drawn back a little, so that the line does not show beside the tip of its arrow. */
function shortened(points) {
  const [x, y] = points[points.length - 1];
  const [px, py] = points[points.length - 2];
  const length = Math.hypot(x - px, y - py) || 1;
  return [x - ((x - px) / length) * 4, y - ((y - py) / length) * 4];
}

function drawOperator({ sign, x, y }) {
  const half = sign.length === 1 ? 11 : 7 + sign.length * 4;
  return svg("g", { class: "operator" },
    svg("rect", { x: x - half, y: y - 11, width: 2 * half, height: 22, rx: 11 }),
    svg("text", { x, y: y + (sign.length === 1 ? 5 : 4), "text-anchor": "middle", class: sign.length === 1 ? "sign" : "" }, sign));
}

function drawAlert(box, data, state) {
  const code = data[state][box.slot] ?? data[state].cell;
  const [text, x, y] = [`${ALERTS[state]} ${code}`, box.x + box.width / 2, box.y + box.height];
  return svg("g", { class: `alert ${state}` },
    svg("title", {}, data.text[state]),
    svg("rect", { x: x - 28, y: y - 9, width: 56, height: 18, rx: 9 }),
    svg("text", { x, y: y + 4, "text-anchor": "middle" }, text));
}

/** Bars, numbers and the lit column for one unit. */
export function paintPicture(drawn, data, unit) {
  for (const [slot, { box, bars, value }] of Object.entries(drawn.slots)) {
    const series = data.series[slot];
    value.textContent = series && slot !== "x" ? series.texts[unit] : "";
    bars.replaceChildren(...(series ? drawBars(plotArea(box), series, slot === "x" ? null : unit) : []));
  }
  for (const [slot, note] of Object.entries(drawn.notes)) {
    note.textContent = slot in data.notes ? `${slot} = ${data.notes[slot][unit]}` : "";
  }
}

/** `unit` null: features, all of them, none chosen. */
function drawBars(area, { values, texts, low, high }, unit) {
  const { first, last } = unit === null ? { first: 0, last: values.length - 1 } : unitWindow(values.length, unit);
  const count = last - first + 1;
  const zero = zeroOf(area, low, high);
  const parts = [];
  if (unit !== null) parts.push(svg("rect", { class: "lit", rx: 3, ...columnOf(area, unit - first, count) }));
  parts.push(svg("line", { class: "zero", x1: area.x, x2: area.x + area.width, y1: zero, y2: zero }));
  for (let index = 0; index < count; index += 1) {
    const item = first + index;
    const value = values[item];
    const chosen = item === unit ? "chosen" : "";
    const shape = value === null ? columnOf(area, index, count) : barOf(area, index, count, value, low, high);
    parts.push(svg("rect", { class: `bar ${chosen} ${value === null ? "missing" : ""}`, rx: Math.min(1.5, shape.width / 3), ...shape }));
    const tip = svg("title", {}, `${item}: ${texts[item]}`);
    const hit = { class: unit === null ? "tip" : "hit", "data-unit": unit === null ? null : item };
    parts.push(svg("rect", { ...hit, ...columnOf(area, index, count) }, tip));
  }
  return parts;
}
