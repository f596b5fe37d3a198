// Faults and shapes in the text: squiggles, marks in the gutter, messages under the lines, shapes at their right.
//
// They belong to the text that was checked. After an edit they stay with their lines, dimmed, until the next check.

import { ChangeSet, MapMode, RangeSet, StateEffect, StateField, Text } from "@codemirror/state";
import { Decoration, EditorView, GutterMarker, WidgetType, gutter, hoverTooltip } from "@codemirror/view";
import { change, el, position, sentence } from "./text.js";

/** What a check found: {checked: string, faults, shapes, words}; faults and shapes as Python sends them. */
export const setFound = StateEffect.define();

const SEVERITIES = ["error", "warning", "limit", "note"];
/** Drawn without a message under its line: good code is to look calm. The pointer, F8 and the cards have its words. */
const QUIET = "note";
/** Numbers in the gutter beside one line; the messages below it have them all. */
const SHOWN = 2;

// --- state ---------------------------------------------------------------------------------------------------------

const NOTHING = { found: { checked: "", faults: [], shapes: [], words: {} }, text: Text.empty, faults: [], shapes: [], stale: false };

/** The faults in the document as it is: their places have moved with the edits since the check. */
export const foundField = StateField.define({
  create: () => drawn(NOTHING, Text.empty),
  update(value, transaction) {
    const doc = transaction.newDoc;
    for (const effect of transaction.effects) {
      if (effect.is(setFound)) return drawn(placed(effect.value, doc), doc);
    }
    if (!transaction.docChanged) return value;
    if (value.text.eq(doc)) return drawn(placed(value.found, doc), doc); // an undo brought the checked text back
    return drawn({ ...value, ...moved(value, transaction.changes), stale: true }, doc);
  },
  provide: (field) => EditorView.decorations.from(field, (value) => value.decorations),
});

/** Everything at its place; when the text has been edited since it was checked, moved along. */
function placed(found, doc) {
  const text = Text.of(found.checked.split("\n"));
  const line = (number) => text.line(Math.min(Math.max(number, 1), text.lines)).from;
  const faults = found.faults.map((fault) => {
    const from = position(text, fault.line, fault.col);
    const to = Math.max(position(text, fault.endLine, fault.endCol), from);
    const second = fault.because;
    const because = second && [position(text, second[0], second[1]), position(text, second[2], second[3])];
    return { fault, anchor: from, from, to, because };
  });
  const shapes = found.shapes.filter(([number]) => number <= text.lines).map(([number, shape]) => ({ shape, anchor: line(number) }));
  const value = { found, text, faults, shapes, stale: false };
  if (text.eq(doc)) return value;
  const since = ChangeSet.of(change(found.checked, doc.toString()), text.length);
  return { ...value, ...moved(value, since), stale: true };
}

/** Where faults and shapes are after an edit; those whose place was deleted are gone. */
function moved({ faults, shapes }, changes) {
  const along = (pos, side) => changes.mapPos(pos, side);
  const stays = ({ anchor }) => changes.mapPos(anchor, 1, MapMode.TrackDel) !== null;
  return {
    faults: faults.filter(stays).map(({ fault, anchor, from, to, because }) => ({
      fault,
      anchor: along(anchor, 1),
      from: along(from, 1),
      to: Math.max(along(to, -1), along(from, 1)),
      because: because && because.map((pos) => along(pos, 1)),
    })),
    shapes: shapes.filter(stays).map(({ shape, anchor }) => ({ shape, anchor: along(anchor, 1) })),
  };
}

/** The state with what is drawn of it. */
function drawn(value, doc) {
  const ranges = [];
  const marks = new Map();
  value.faults.forEach((one, index) => {
    const { fault, from, to, because } = one;
    const line = doc.lineAt(one.anchor);
    const [start, end] = visible(doc, from, to);
    if (end > start) ranges.push(squiggle(fault.severity).range(start, end));
    if (because && because[1] > because[0]) ranges.push(BECAUSE.range(because[0], because[1]));
    if (fault.severity !== QUIET) {
      const message = new Message(fault, value.stale, value.found.words);
      ranges.push(Decoration.widget({ widget: message, block: true, side: 2 + index }).range(line.to));
    }
    marks.set(line.from, [...(marks.get(line.from) ?? []), fault]);
  });
  const taken = new Set();
  for (const { shape, anchor } of value.shapes) {
    const line = doc.lineAt(anchor);
    if (taken.has(line.from) || !line.text.trim()) continue;
    taken.add(line.from);
    const differing = (marks.get(line.from) ?? []).find((fault) => fault.differs && shape.includes(fault.differs));
    ranges.push(Decoration.widget({ widget: new Shape(shape, differing, value.stale), side: 1 }).range(line.to));
  }
  const gutterMarks = [...marks].map(([from, faults]) => new Mark(faults, value.stale).range(from));
  return { ...value, decorations: Decoration.set(ranges, true), marks: RangeSet.of(gutterMarks, true) };
}

/** The stretch to underline: at least one character, if the line has any. */
function visible(doc, from, to) {
  if (to > from) return [from, to];
  const line = doc.lineAt(from);
  if (from >= line.to) return [Math.max(line.to - 1, line.from), line.to];
  const pair = line.text.codePointAt(from - line.from) > 0xffff;
  return [from, from + (pair ? 2 : 1)];
}

const BECAUSE = Decoration.mark({ class: "cl-because" });
const SQUIGGLES = Object.fromEntries(SEVERITIES.map((name) => [name, Decoration.mark({ class: `cl-squiggle cl-${name}` })]));
const squiggle = (severity) => SQUIGGLES[severity] ?? SQUIGGLES.error;

/** The faults in the document, in the order of their places. */
export function faultsIn(state) {
  return [...state.field(foundField).faults].sort((a, b) => a.from - b.from || a.fault.line - b.fault.line);
}

/** What is said at the right of a line, "" for nothing. */
export function shapeOn(state, pos) {
  const line = state.doc.lineAt(pos);
  return state.field(foundField).shapes.find(({ anchor }) => state.doc.lineAt(anchor).from === line.from)?.shape ?? "";
}

// --- what is drawn -------------------------------------------------------------------------------------------------

/** A fault in words: icon, number, code, message. */
function said(fault) {
  const word = el("span", "cl-hidden", `${fault.word} `);
  const icon = el("span", "cl-icon", fault.icon);
  icon.setAttribute("aria-hidden", "true");
  const name = [fault.badge, fault.code].filter(Boolean).join(" ");
  return [icon, word, ...(name ? [el("b", "", name), " "] : []), ...sentence(fault.message)];
}

/** A fault's message under its line. */
class Message extends WidgetType {
  constructor(fault, stale, words) {
    super();
    Object.assign(this, { fault, stale, words });
  }

  eq(other) {
    return this.stale === other.stale && ["severity", "badge", "code", "message"].every((name) => this.fault[name] === other.fault[name]);
  }

  toDOM() {
    const text = el("span", "", ...said(this.fault));
    const stale = this.stale ? [el("small", "", ` (${this.words.stale})`)] : [];
    const block = el("div", `cl-message cl-${this.fault.severity}`, el("div", "", text, ...stale));
    block.toggleAttribute("data-stale", this.stale);
    return block;
  }

  get estimatedHeight() {
    return 30;
  }
}

/** The shapes at the right end of a line; under the code where there is no room. */
class Shape extends WidgetType {
  constructor(shape, fault, stale) {
    super();
    Object.assign(this, { shape, differs: fault?.differs ?? "", severity: fault?.severity ?? "", stale });
  }

  eq(other) {
    return ["shape", "differs", "severity", "stale"].every((name) => this[name] === other[name]);
  }

  toDOM() {
    const at = this.differs ? this.shape.indexOf(this.differs) : -1;
    const parts = at < 0 ? [this.shape] : [
      this.shape.slice(0, at),
      el("b", `cl-${this.severity}`, this.differs),
      this.shape.slice(at + this.differs.length),
    ];
    const shape = el("span", "cl-shape", ...parts);
    shape.toggleAttribute("data-stale", this.stale);
    // Not part of the text that a screen reader reads: F8 says it, and so do the cards beside the editor.
    shape.setAttribute("aria-hidden", "true");
    return shape;
  }

  /** A click here is one at the end of the line. */
  ignoreEvent() {
    return false;
  }

  /** The cursor at the end of a line stands after its text, not at this box. */
  coordsAt(dom) {
    const before = document.createRange();
    before.selectNodeContents(dom.parentNode);
    before.setEndBefore(dom);
    const last = [...before.getClientRects()].pop();
    if (last) return { left: last.right, right: last.right, top: last.top, bottom: last.bottom };
    const line = dom.parentNode.getBoundingClientRect();
    const left = line.left + parseFloat(getComputedStyle(dom.parentNode).paddingLeft);
    return { left, right: left, top: line.top, bottom: line.bottom };
  }
}

/** The mark of a line in the gutter: the icon of the worst of its faults, and their numbers. */
class Mark extends GutterMarker {
  constructor(faults, stale) {
    super();
    const worst = Math.min(...faults.map((fault) => SEVERITIES.indexOf(fault.severity)));
    const first = faults.find((fault) => SEVERITIES.indexOf(fault.severity) === worst);
    this.severity = first.severity;
    this.icon = first.icon;
    this.badges = faults.slice(0, SHOWN).map((fault) => fault.badge).join("") + (faults.length > SHOWN ? "…" : "");
    this.title = faults.map((fault) => [fault.badge, fault.code, fault.message].filter(Boolean).join(" ")).join("\n");
    this.stale = stale;
  }

  eq(other) {
    return this.title === other.title && this.severity === other.severity && this.stale === other.stale;
  }

  toDOM() {
    const mark = el("span", `cl-mark cl-${this.severity}`, el("span", "cl-icon", this.icon), el("span", "", this.badges));
    mark.title = this.title;
    mark.toggleAttribute("data-stale", this.stale);
    return mark;
  }
}

/** The gutter with the marks. */
export const faultGutter = gutter({
  class: "cl-fault-gutter",
  markers: (view) => view.state.field(foundField).marks,
});

/** What is wrong under the pointer; at the second place of a fault, what was set there. */
export const faultTip = hoverTooltip((view, pos) => {
  const here = ([from, to]) => from <= pos && pos <= to;
  const { faults } = view.state.field(foundField);
  const hits = faults.filter(({ from, to }) => here(visible(view.state.doc, from, to)));
  const seconds = faults.filter(({ because, fault }) => because && fault.becauseText && here(because));
  if (!hits.length && !seconds.length) return null;
  const spans = [...hits.map(({ from, to }) => [from, to]), ...seconds.map(({ because }) => because)];
  return {
    pos: Math.min(...spans.map(([from]) => from)),
    end: Math.max(...spans.map(([, to]) => to)),
    above: true,
    create: () => ({
      dom: el("div", "cl-tip",
        ...hits.map(({ fault }) => el("p", `cl-${fault.severity}`, ...said(fault))),
        ...seconds.map(({ fault }) => el("p", `cl-${fault.severity}`, el("b", "", [fault.badge, fault.code].join(" ")), " ", ...sentence(fault.becauseText)))),
    }),
  };
}, { hoverTime: 250 });
