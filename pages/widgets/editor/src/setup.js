// CodeMirror, as much of it as a Python editor needs.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, dropCursor, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tagHighlighter, tags as t } from "@lezer/highlight";
import { faultGutter, faultTip, foundField } from "./faults.js";
import { files } from "./files.js";
import { keys } from "./keys.js";
import { hangingIndent } from "./wrap.js";

/** Classes for the style sheet, so that light and dark follow the page without a line of code. */
const HIGHLIGHT = tagHighlighter([
  { tag: [t.keyword, t.operatorKeyword, t.controlKeyword, t.definitionKeyword, t.moduleKeyword, t.modifier, t.self], class: "tok-keyword" },
  { tag: [t.string, t.special(t.string), t.docString], class: "tok-string" },
  { tag: [t.number, t.bool, t.null], class: "tok-number" },
  { tag: [t.comment], class: "tok-comment" },
  { tag: [t.function(t.definition(t.variableName)), t.definition(t.className)], class: "tok-definition" },
  { tag: [t.meta], class: "tok-meta" },
]);

const given = new Compartment();

/** What comes from the page and may change: the name of the box, the placeholder, whether it may be typed in. */
function ofPage(data) {
  return [
    // Editable is focusable; tabindex says so to those who look for it in the attributes.
    EditorView.contentAttributes.of({ "aria-label": data.label, "aria-describedby": "cl-keys", tabindex: "0" }),
    data.placeholder ? placeholder(data.placeholder) : [],
    EditorState.readOnly.of(Boolean(data.readOnly)),
  ];
}

/** A change of what comes from the page. */
export const pageEffect = (data) => given.reconfigure(ofPage(data));

/** The state an editor begins with. */
export function firstState(editor, data, text) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  return EditorState.create({
    doc: text,
    extensions: [
      faultGutter,
      lineNumbers(),
      highlightActiveLineGutter(),
      highlightActiveLine(),
      highlightSpecialChars(),
      history(),
      drawSelection({ cursorBlinkRate: still ? 0 : 1200 }),
      dropCursor(),
      EditorView.lineWrapping,
      hangingIndent,
      pythonLanguage,
      indentUnit.of("    "),
      indentOnInput(),
      bracketMatching(),
      syntaxHighlighting(HIGHLIGHT),
      search({ top: true }),
      foundField,
      faultTip,
      files(editor),
      keymap.of([...keys(editor), ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
      given.of(ofPage(data)),
      EditorView.updateListener.of((update) => editor.updated(update)),
      EditorView.domEventHandlers({ blur: () => editor.flush() }),
    ],
  });
}
