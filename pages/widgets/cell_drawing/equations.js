// The equations: letters once, numbers again for each unit. Every text comes ready from core/plots/cell_equations.py.

import { el } from "../player/dom.js";

/** "W_{ii}" -> W with an index below. */
export function withIndices(text) {
  return text.split(/(_\{[^}]*\})/).map((part) => (part.startsWith("_{") ? el("sub", {}, part.slice(2, -1)) : part));
}

/** A numbers line with each field's text of this unit put in. */
export function numbersOf(template, columns, unit) {
  return template.replace(/\{([^}]+)\}/g, (_, name) => columns[name]?.[unit] ?? "");
}

/** The block of equations for one unit. */
export function equationLines(data, unit) {
  return data.equations.map(({ slot, symbols, numbers }) =>
    el("div", { class: `equation ${roleOf(data, slot)}`, "data-slot": slot },
      el("div", { class: "symbols" }, withIndices(symbols)),
      data.units > 0 ? el("div", { class: "numbers" }, numbersOf(numbers, data.columns, unit)) : null));
}

function roleOf(data, slot) {
  return data.gates.includes(slot) ? "gate" : slot.replace("′", "");
}

/** The products written out term by term. */
export function spelledLines(data, unit) {
  return data.spelled.map(({ symbols, texts }) =>
    el("div", { class: "spelled" }, el("span", { class: "symbols" }, withIndices(symbols)), ` = ${texts[unit]}`));
}
