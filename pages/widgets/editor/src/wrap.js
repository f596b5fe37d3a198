// A line that is too long goes on below, further in than it began: Python's indentation stays readable.

import { RangeSetBuilder } from "@codemirror/state";
import { Decoration, ViewPlugin } from "@codemirror/view";

const DEEPEST = 40;
const FURTHER = 2;

const LINES = Array.from({ length: DEEPEST + 1 }, (_, columns) => Decoration.line({ class: `cl-in-${columns}` }));

/** The rules for the classes; classes and not style attributes, which a strict content policy refuses. */
export const WRAP_CSS = LINES.map((_, columns) => {
  const further = `${columns + FURTHER}ch`;
  return `.editor .cm-editor .cl-in-${columns} { padding-left: calc(8px + ${further}); text-indent: -${further}; }`;
}).join("\n");

/** How many columns a line begins with that are empty. */
function columnsOf(text, tab) {
  let columns = 0;
  for (const char of text) {
    if (char === " ") columns++;
    else if (char === "\t") columns += tab - (columns % tab);
    else break;
  }
  return Math.min(columns, DEEPEST);
}

function linesOf(view) {
  const { state } = view;
  const found = new RangeSetBuilder();
  for (const { from, to } of view.visibleRanges) {
    for (let pos = from; pos <= to; ) {
      const line = state.doc.lineAt(pos);
      found.add(line.from, line.from, LINES[columnsOf(line.text, state.tabSize)]);
      pos = line.to + 1;
    }
  }
  return found.finish();
}

/** The indentation of lines that are wrapped. */
export const hangingIndent = ViewPlugin.fromClass(class {
  constructor(view) {
    this.lines = linesOf(view);
  }

  update(update) {
    if (update.docChanged || update.viewportChanged) this.lines = linesOf(update.view);
  }
}, { decorations: (plugin) => plugin.lines });
