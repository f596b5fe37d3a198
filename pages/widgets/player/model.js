// What the payload says at a position, and how a scan fits a width. Pure functions: no DOM, no state.
//
// A position p runs from 0 (the initial carry) to T. Position p shows step p - 1, which took carry p - 1 to carry p
// and visited t = order[p - 1].

/** The step shown at a position; null at the initial carry. */
export function stepAt(data, position) {
  return position > 0 ? { index: position - 1, t: data.order[position - 1] } : null;
}

/** The position that a click on a chart's x means, or null. */
export function positionOf(data, axis, x) {
  const number = typeof x === "string" && x.trim() === "" ? NaN : Number(x);
  if (!Number.isInteger(number)) return null;
  const position = axis === "index" ? data.order.indexOf(number) + 1 : number;
  const valid = axis === "index" ? position > 0 : position >= 0 && position <= data.T;
  return valid ? position : null;
}

/** The x range of the current step on a chart, or null where there is nothing to show.
 *  `cells`: the chart is a heatmap, whose columns are centred on their x. */
export function cursorRange(data, axis, position, cells) {
  const step = stepAt(data, position);
  if (axis === "index") return step && { from: step.t - 0.5, to: step.t + 0.5 };
  const half = cells ? 0.5 : 0;
  return { from: Math.max(position - 1, 0) - half, to: position + half };
}

/** Milliseconds that Play takes for T steps: 0.75 s a step up to 8, then slowly more, 18 s at 512. */
export function playTime(T) {
  return T <= 8 ? 750 * T : Math.min(18000, 6000 + (12000 * (T - 8)) / 504);
}

/** Play shows the parts of a step one after another while there is time to see them. */
export const PHASES = ["for", "step", "append"];
export const MAX_PHASED_STEPS = 12;

/** Which steps are drawn when `slots` boxes fit. An ellipsis takes the place of one box, so nothing jumps. */
export function stepWindow(T, current, slots) {
  if (T <= slots) return { first: 0, last: T };
  const inner = Math.max(slots - 2, 1);
  const first = Math.min(Math.max(current - Math.floor(inner / 2), 0), T - inner);
  if (first <= 1) return { first: 0, last: slots - 1 };
  if (first + inner >= T - 1) return { first: T - slots + 1, last: T };
  return { first, last: first + inner };
}

/** The same on a narrow screen, where init (-1) and final (T) have to leave the picture too.
 *  Grows from the current item to both sides while `widthOf(first, last)` fits. */
export function stripWindow(T, current, fits) {
  let [first, last] = [current, current];
  for (let grown = true; grown; ) {
    grown = false;
    if (last < T && fits(first, last + 1)) [last, grown] = [last + 1, true];
    if (first > -1 && fits(first - 1, last)) [first, grown] = [first - 1, true];
  }
  return { first, last };
}

/** What a chip of a role says at a position: lines of text. Long values are drawn as their type, in two lines. */
export function chipLines(data, role, position) {
  const leaf = data.leaves[role][0];
  if (!leaf) return [];
  return data.chips[role] ? [data.chips[role][position]] : typeLines(leaf.type);
}

/** "float32[2,4]" in two lines. */
export function typeLines(type) {
  const cut = type.indexOf("[");
  return cut > 0 && cut < type.length - 2 ? [type.slice(0, cut), type.slice(cut)] : [type];
}

/** The most characters that a chip of this role ever has. */
export function chipCharacters(data, role) {
  const leaf = data.leaves[role][0];
  if (!leaf) return 0;
  const lines = data.chips[role] ?? typeLines(leaf.type);
  return lines.reduce((most, line) => Math.max(most, line.length), 0);
}

/** Leaves of a role beyond the first, drawn or not. */
export function furtherLeaves(data, role) {
  return Math.max(data.leaves[role].length + data.hidden_leaves[role] - 1, 0);
}

/** True where each role has at most one leaf, and a short one: the step then fits one sentence. */
export function isSimple(data) {
  return ["carry", "x", "y"].every((role) => data.leaves[role].length === 0 || (data.chips[role] && !furtherLeaves(data, role)));
}
