// What keys do here that is not CodeMirror's own: run, go from fault to fault, indent, and let the keyboard out.

import { indentLess, indentMore } from "@codemirror/commands";
import { getIndentUnit } from "@codemirror/language";
import { EditorSelection } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { faultsIn } from "./faults.js";

/** Long enough for anybody; any other key ends it. */
const LEAVING_MS = 3_600_000;

/** The keys. `editor` has run(), say(fault) and leaving(). */
export function keys(editor) {
  return [
    { key: "Mod-Enter", run: () => editor.run(), preventDefault: true },
    { key: "Ctrl-Enter", run: () => editor.run(), preventDefault: true },
    { key: "F8", run: (view) => go(view, editor, 1), shift: (view) => go(view, editor, -1), preventDefault: true },
    { key: "Tab", run: indent, shift: indentLess },
    { key: "Escape", run: (view) => leave(view, editor) },
  ];
}

/** To the next fault after the cursor (or the one before it), round and round. */
function go(view, editor, step) {
  const faults = faultsIn(view.state);
  const { head } = view.state.selection.main;
  const next = step > 0 ? faults.find(({ from }) => from > head) : faults.findLast(({ from }) => from < head);
  const one = next ?? faults.at(step > 0 ? 0 : -1);
  if (one) {
    view.dispatch({
      selection: EditorSelection.cursor(one.from),
      effects: EditorView.scrollIntoView(one.from, { y: "nearest", yMargin: 90 }),
    });
  }
  editor.say(one);
  return true;
}

/** Indents the chosen lines; without a choice goes on to the next stop. */
function indent(view) {
  const { state } = view;
  if (state.selection.ranges.some((range) => !range.empty)) return indentMore(view);
  const unit = getIndentUnit(state);
  view.dispatch(state.changeByRange(({ head }) => {
    const spaces = " ".repeat(unit - ((head - state.doc.lineAt(head).from) % unit));
    return { changes: { from: head, insert: spaces }, range: EditorSelection.cursor(head + spaces.length) };
  }), { scrollIntoView: true, userEvent: "input" });
  return true;
}

/** The next Tab leaves the editor. CodeMirror does so for two seconds, too short for some people. */
function leave(view, editor) {
  queueMicrotask(() => view.setTabFocusMode(LEAVING_MS));
  editor.leaving();
  return false;
}
