// The step's code and the equivalent Python loop: coloured, with the current line lit and its values at the line's end.

import { el, equation, fill, joined } from "./dom.js";
import { stepAt } from "./model.js";

const KEYWORDS = new Set(
  ("False None True and as assert async await break class continue def del elif else except finally for from global if " +
    "import in is lambda nonlocal not or pass raise return try while with yield").split(" "),
);
const TOKEN = /(#.*)|("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(\d[\w.]*)|([A-Za-z_]\w*)|(\s+|[^\w\s"'#]+|.)/gu;

/** One line of Python as coloured spans. `marks`: column -> role, for names that play another role at one place. */
export function highlighted(line, names, marks = new Map()) {
  const nodes = [];
  let attribute = false;
  for (const match of line.matchAll(TOKEN)) {
    const [text, comment, string, number, name] = match;
    const column = Array.from(line.slice(0, match.index)).length;
    const role = name && !attribute ? (marks.get(column) ?? (Object.hasOwn(names, name) ? names[name] : null)) : null;
    const kind = comment ? "comment" : string ? "string" : number ? "number" : KEYWORDS.has(name) ? "keyword" : role;
    nodes.push(kind ? el("span", { class: kind }, text) : text);
    if (text.trim()) attribute = text.endsWith(".");
  }
  return nodes;
}

/** The step's source as a code block. */
export function stepBlock(data) {
  const lines = data.step_code.replace(/\s+$/, "").split("\n");
  const marksOf = (row) => new Map(data.marks.filter((mark) => mark[0] === row).map(([, column, role]) => [column, role]));
  const inDocstring = docstringLines(lines);
  const rows = lines.map((line, row) => {
    const nodes = inDocstring[row] ? [el("span", { class: "string" }, line)] : highlighted(line, data.names, marksOf(row));
    return el("span", { class: "line" }, el("code", {}, nodes));
  });
  return el("div", { class: "code", role: "group", "aria-label": data.text.step_title }, rows);
}

/** Which lines belong to a string of several lines: they open one that they do not close, or stand in it. */
function docstringLines(lines) {
  let open = null;
  return lines.map((line) => {
    const before = open;
    for (const [quotes] of line.matchAll(/"""|'''/g)) open = open === null ? quotes : open === quotes ? null : open;
    return before !== null || open !== null;
  });
}

/** The loop as a code block; `paintLoop` lights it. One line of each phase has room for values. */
export function loopBlock(data) {
  const last = data.loop.map(({ phase }) => phase).lastIndexOf("for");
  const first = (phase) => data.loop.findIndex((line) => line.phase === phase);
  const rows = data.loop.map(({ text, phase }, row) =>
    el("span", { class: "line", "data-phase": phase, "data-values": row === (phase === "for" ? last : first(phase)) },
      el("code", {}, highlighted(text, data.names)),
      el("span", { class: "values", "aria-hidden": "true" })),
  );
  return el("div", { class: "code loop", role: "group", "aria-label": data.text.loop_aria }, rows);
}

/** Lights the lines of a moment and writes the values of this step at the line ends. */
export function paintLoop(block, data, position, phase) {
  const lit = litPhases(data, position, phase);
  for (const line of block.children) {
    const own = line.dataset.phase;
    line.classList.toggle("now", lit.includes(own));
    if (lit.includes(own)) line.setAttribute("aria-current", "step");
    else line.removeAttribute("aria-current");
    const shown = line.dataset.values ? lineValues(data, own, position) : [];
    line.lastChild.replaceChildren(...(shown.length ? ["# ", ...shown] : []));
  }
}

const BROKEN_LINE = { carry: "step", step: "step", xs: "for", length: "for", init: "init" };

function litPhases(data, position, phase) {
  if (data.broken) return [BROKEN_LINE[data.broken.where]];
  if (phase) return [phase];
  if (position === 0) return ["init"];
  return position === data.T ? ["step", "done"] : ["step"];
}

function lineValues(data, phase, position) {
  if (data.broken) return phase === BROKEN_LINE[data.broken.where] ? [`${data.text.broken_mark} ${data.broken.code}`] : [];
  const step = stepAt(data, position);
  if (phase === "init") return values(data, "carry", 0, 0);
  if (!step) return phase === "done" && data.T === 0 ? values(data, "carry", 0, 0) : [];
  if (phase === "for") return values(data, "x", step.index, step.t);
  if (phase === "step") {
    const results = [values(data, "carry", position, position), values(data, "y", step.index, step.t)];
    return joined(results.filter((result) => result.length), ", ").flat();
  }
  if (phase === "append") return [fill(data.text.appended, { count: position, length: data.T })];
  return position === data.T ? values(data, "carry", position, position) : [];
}

/** The first leaf's value and how many more leaves there are. */
function values(data, role, at, index) {
  if (!data.leaves[role].length) return [];
  const first = equation(role, { carry: "c", x: "x", y: "y" }[role], index, data[role][0][at]);
  const further = data.leaves[role].length + data.hidden_leaves[role] - 1;
  return further > 0 ? [first, ` ${furtherText(data, further)}`] : [first];
}

/** "+2 leaves". */
export function furtherText(data, count) {
  return count === 1 ? data.text.one_more_leaf : fill(data.text.more_leaves, { count });
}
