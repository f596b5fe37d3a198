// Places and texts: Python counts characters and lines ended by a line feed, the editor counts UTF-16 units.

/** Text as the editor keeps it: line feeds alone, and no half of a pair, which could not be sent as UTF-8. */
export function normal(text) {
  const lines = String(text ?? "").replace(/\r\n?/g, "\n");
  return lines.toWellFormed ? lines.toWellFormed() : lines.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** Number of characters, as Python counts them. */
export function characters(text) {
  let count = 0;
  for (let i = 0; i < text.length; i += isPair(text, i) ? 2 : 1) count++;
  return count;
}

function isPair(text, i) {
  const first = text.charCodeAt(i), second = text.charCodeAt(i + 1);
  return first >= 0xd800 && first < 0xdc00 && second >= 0xdc00 && second < 0xe000;
}

/** Index in UTF-16 units of the character with this number; the end of the text when there are fewer. */
export function unitsAt(text, column) {
  let i = 0;
  for (let n = 0; n < column && i < text.length; n++) i += isPair(text, i) ? 2 : 1;
  return i;
}

/** The position of a line (from 1) and column (from 0, in characters); taken back into the document. */
export function position(doc, line, column) {
  const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
  return line > doc.lines ? at.to : at.from + unitsAt(at.text, Math.max(column, 0));
}

/** Line (from 1) and column (from 0, in characters) of a position. */
export function place(doc, pos) {
  const line = doc.lineAt(pos);
  return [line.number, characters(line.text.slice(0, pos - line.from))];
}

/** The smallest change that turns one text into the other: the cursor and what is around it stay where they are. */
export function change(before, after) {
  const most = Math.min(before.length, after.length);
  let from = 0;
  while (from < most && before.charCodeAt(from) === after.charCodeAt(from)) from++;
  let end = 0;
  while (end < most - from && before.charCodeAt(before.length - 1 - end) === after.charCodeAt(after.length - 1 - end)) end++;
  return { from, to: before.length - end, insert: after.slice(from, after.length - end) };
}

/** A template with its fields put in. */
export function fill(template, fields) {
  return template.replace(/\{(\w+)\}/g, (_, name) => fields[name]);
}

/** An element with a class and children; texts become text nodes, never HTML. */
export function el(tag, css = "", ...children) {
  const node = document.createElement(tag);
  if (css) node.className = css;
  node.append(...children.filter((child) => child !== ""));
  return node;
}

/** A sentence; what stands between backticks as code. */
export function sentence(text) {
  return text.split(/`([^`]+)`/).map((part, i) => (i % 2 ? el("code", "", part) : part)).filter((part) => part !== "");
}
