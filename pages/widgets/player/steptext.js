// What happens in the current step, in words and numbers: "step 3: c₃ = 6, x₃ = −1 → c₄ = 5, y₃ = 5".

import { el, equation, fill, fillNodes, joined } from "./dom.js";
import { isSimple, stepAt } from "./model.js";

const SYMBOL = { carry: "c", x: "x", y: "y" };

/** The nodes of the step text at a position: one sentence for single leaves, else a row for each leaf. */
export function stepText(data, position) {
  if (data.broken) return [el("p", { class: "sentence" }, data.text.not_run)];
  return isSimple(data) ? sentence(data, position) : rows(data, position);
}

function sentence(data, position) {
  const step = stepAt(data, position);
  const equations = (role, at, index) =>
    data.leaves[role].length ? [equation(role, SYMBOL[role], index, data[role][0][at])] : [];
  const carry = (at) => equations("carry", at, at);
  const end = position === data.T ? ending(data, carry(position)) : [];
  if (!step) return [el("p", { class: "sentence" }, atInit(data, carry(0)), end), types(data)];
  const inputs = joined([...carry(step.index), ...equations("x", step.index, step.t)], ", ");
  const outputs = joined([...carry(position), ...equations("y", step.index, step.t)], ", ");
  const template = data.reverse ? data.text.at_step_reverse : data.text.at_step;
  const nodes = fillNodes(template, { step: String(step.index), t: String(step.t), inputs, outputs });
  return [el("p", { class: "sentence" }, nodes, end), types(data)];
}

function atInit(data, carry) {
  if (!carry.length) return [initWords(data)];
  return fillNodes(data.reverse ? data.text.at_init_reverse : data.text.at_init, { carry });
}

function initWords(data) {
  return data.reverse ? data.text.at_init_plain_reverse : data.text.at_init_plain;
}

function ending(data, carry) {
  if (data.T === 0) return [" · ", data.text.no_steps];
  return [" · ", ...(carry.length ? fillNodes(data.text.at_end, { carry }) : [data.text.at_end_plain])];
}

/** The types of one step, which are the same at every t. */
function types(data) {
  const typed = (role) =>
    data.leaves[role].map((leaf) => [el("span", { class: role }, SYMBOL[role]), ` ${[leaf.type, leaf.axes].filter(Boolean).join(" ")}`]);
  const inputs = joined([...typed("carry"), ...typed("x")], ", ").flat();
  const outputs = joined([...typed("carry"), ...typed("y")], ", ").flat();
  return el("p", { class: "types" }, fillNodes(data.text.types, { inputs, outputs }));
}

/** Each leaf on a line of its own: path, what it was, what it became, its type. The number of lines never changes. */
function rows(data, position) {
  const step = stepAt(data, position);
  const body = [];
  for (const role of ["carry", "x", "y"]) {
    data.leaves[role].forEach((leaf, index) => body.push(leafRow(data, role, leaf, data[role][index], position, step)));
    if (data.hidden_leaves[role]) {
      const note = fill(data.text.leaves_not_shown, { count: data.hidden_leaves[role] });
      body.push(el("tr", {}, el("td", { colspan: 3, class: "more" }, note)));
    }
  }
  return [el("p", { class: "sentence" }, heading(data, position, step)), el("table", {}, el("tbody", {}, body))];
}

function heading(data, position, step) {
  const end = position === data.T ? [" · ", data.T ? data.text.at_end_plain : data.text.no_steps] : [];
  if (!step) return [initWords(data), ...end];
  const template = data.reverse ? data.text.at_step_plain_reverse : data.text.at_step_plain;
  return [fill(template, { step: step.index, t: step.t }), ...end];
}

function leafRow(data, role, leaf, texts, position, step) {
  const at = (arrow, where, index) => el("span", { class: "part" }, arrow, equation(role, SYMBOL[role], index, texts[where]));
  let value = ["–"];
  if (role === "carry") value = step ? [at("", step.index, step.index), " ", at("→ ", position, position)] : [at("", 0, 0), el("span", { class: "part" })];
  else if (step) value = [at(role === "y" ? "→ " : "", step.index, step.t)];
  const kind = leaf.type.endsWith("[]") ? "value" : "value array"; // arrays: what was above what became, at every t
  return el("tr", {},
    el("th", { scope: "row", class: role }, leaf.path),
    el("td", { class: kind }, value),
    el("td", { class: "type" }, [leaf.type, leaf.axes].filter(Boolean).join(" ")));
}

/** The same as one plain line: the tooltip of a step's box and what a screen reader hears. */
export function stepSummary(data, position) {
  const [head, body] = stepText(data, position);
  if (isSimple(data) || !body) return head.textContent;
  const cells = Array.from(body.querySelectorAll("tr"), (row) => Array.from(row.children, (cell) => cell.textContent).join(" "));
  return [head.textContent, ...cells].join("; ");
}
