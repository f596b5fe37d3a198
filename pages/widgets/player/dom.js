// Text and elements: the few helpers that the other files of the scan player share. No state.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. `attributes` are set as attributes, children may be nodes or strings (never parsed as HTML). */
export function el(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** A template with its {fields} put in, as text. */
export function fill(template, fields = {}) {
  return template.replace(/\{(\w+)\}/g, (_, name) => String(fields[name] ?? ""));
}

/** A template whose fields are nodes (or lists of nodes and strings): the parts in order, ready for `append`. */
export function fillNodes(template, fields) {
  return template.split(/(\{\w+\})/).flatMap((part) => (/^\{\w+\}$/.test(part) ? (fields[part.slice(1, -1)] ?? "") : part));
}

/** Digits below the line: 12 -> ₁₂. */
export function subscript(number) {
  return String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
}

/** "c₃ = 6" in the colour of its role. */
export function equation(role, symbol, index, value) {
  return el("span", { class: role }, `${symbol}${subscript(index)} = ${value}`);
}

/** Items with a separator between them. */
export function joined(items, separator) {
  return items.flatMap((item, index) => (index ? [separator, item] : [item]));
}

/** Words in lines of at most `limit` characters; a longer word is cut. */
export function wrapped(text, limit) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    let rest = word;
    const last = lines[lines.length - 1];
    if (last && last.length + 1 + rest.length <= limit) {
      lines[lines.length - 1] = `${last} ${rest}`;
      continue;
    }
    if (last) lines.push("");
    for (; rest.length > limit; rest = rest.slice(limit)) lines.splice(lines.length - 1, 0, rest.slice(0, limit));
    lines[lines.length - 1] = rest;
  }
  return lines;
}

/** Where the background is dark, by relative luminance of a CSS colour; light when it cannot be read. */
export function isDark(color) {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  if (!context || !color) return false;
  context.fillStyle = "#ffffff";
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
}
