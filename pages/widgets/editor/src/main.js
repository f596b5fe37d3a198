// The code editor in its component: what comes from Python goes in, what the person does goes out.
//
// An editor outlives its element: Streamlit may take the element away and bring it back (another page and back), and the
// text, its undo history and the cursor must still be there. It is kept under the widget's key, in this browser tab.

import { isolateHistory } from "@codemirror/commands";
import { EditorView } from "@codemirror/view";
import CSS from "./editor.css";
import { faultsIn, foundField, setFound, shapeOn } from "./faults.js";
import { textOf } from "./files.js";
import { firstState, pageEffect } from "./setup.js";
import { change, characters, el, fill, normal, place } from "./text.js";
import { WRAP_CSS } from "./wrap.js";

const PAUSE_MS = 350;
/** From that part of the limit on, the number of characters is shown. */
const NEARLY = 0.9;

const editors = new Map();
const sheet = new CSSStyleSheet();
sheet.replaceSync(CSS + WRAP_CSS);

/** Streamlit calls this once, in the component that carries the code; the one that carries data waits for it. */
export default function () {
  const slot = (globalThis.carryLabEditor ??= { waiting: [] });
  slot.mount = mount;
  for (const ready of slot.waiting.splice(0)) ready();
}

/** Shows data in a component's element: at its first call there, and whenever the data change. */
function mount({ data, parentElement, setStateValue }) {
  if (!data) return undefined;
  const host = parentElement.querySelector(".editor");
  let editor = editors.get(data.key);
  if (!editor) editors.set(data.key, (editor = new Editor()));
  editor.emit = (edit) => setStateValue("edit", edit);
  editor.show(host, data);
  return () => editor.leave(host);
}

class Editor {
  constructor() {
    this.runs = 0;
    this.timer = 0;
    this.sent = null; // the text that Python knows
  }

  // ---- life

  show(host, data) {
    const first = !this.state;
    const before = this.data;
    this.data = data;
    const text = normal(data.text);
    if (first) {
      this.state = firstState(this, data, text);
      this.revision = data.revision;
      this.sent = text;
    }
    if (this.host !== host) this.enter(host);
    host.style.setProperty("--height", `${data.height}px`);
    this.parts.keys.textContent = data.words.keys;
    if (before && (before.label !== data.label || before.placeholder !== data.placeholder || before.readOnly !== data.readOnly)) this.view.dispatch({ effects: pageEffect(data) });
    if (data.revision > this.revision) this.replace(text);
    // Back in the page, or in another session (its numbers begin anew): what is here stays, and is sent if it is news.
    else if (data.revision < this.revision || !before) this.meet(text);
    this.revision = data.revision;
    this.find(data, text);
    this.count();
  }

  /** Draws itself in an element. */
  enter(host) {
    if (this.view) this.leave(this.host);
    const root = host.getRootNode();
    if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    const hint = el("span", "cl-hint");
    const keys = el("span", "cl-hidden");
    keys.id = "cl-keys";
    const told = el("div", "cl-told");
    told.setAttribute("role", "alert");
    const live = el("div", "cl-hidden cl-live");
    live.setAttribute("role", "status");
    const count = el("span", "cl-count");
    this.view = new EditorView({ state: this.state, root });
    host.replaceChildren(this.view.dom, told, el("div", "cl-foot", hint, count), keys, live);
    // Nothing typed here is a shortcut of the page.
    host.onkeydown = (event) => event.stopPropagation();
    Object.assign(this, { host, parts: { hint, keys, told, live, count } });
  }

  leave(host) {
    if (this.host !== host || !this.view) return;
    this.flush();
    this.state = this.view.state;
    this.view.destroy();
    Object.assign(this, { view: null, host: null, data: null });
  }

  // ---- from Python

  /** The page's text instead of what is here: one step for Ctrl+Z. */
  replace(text) {
    this.put(text);
    this.sent = text;
  }

  /** Python knows this text; it is told what is here. */
  meet(text) {
    this.sent = text;
    if (normal(this.view.state.doc.toString()) !== text) this.later(0);
  }

  put(text) {
    const now = this.view.state.doc.toString();
    if (now === text) return;
    this.view.dispatch({
      changes: change(now, text),
      annotations: isolateHistory.of("full"),
      userEvent: "input.replace",
    });
  }

  /** Draws what a check found, unless that is drawn already. */
  find(data, text) {
    if (data.diagnostics === null) return; // a check goes on; what is there is dimmed already
    const found = { checked: data.checked === null ? text : normal(data.checked), faults: data.diagnostics, shapes: data.shapes, words: data.words };
    const name = JSON.stringify(found);
    if (name === this.found) return;
    const faults = JSON.stringify(found.faults.map(({ code, message }) => [code, message]));
    this.found = name;
    this.view.dispatch({ effects: setFound.of(found) });
    this.hint();
    if (faults !== (this.faults ?? "[]")) this.announce();
    this.faults = faults;
  }

  // ---- to Python

  updated(update) {
    // Its strip and cards are dimmed by it at the first key, long before the new text is checked (style.css).
    update.view.dom.getRootNode().host?.toggleAttribute("data-edited", update.state.field(foundField).stale);
    if (!update.docChanged) return;
    this.tell("");
    this.later(PAUSE_MS);
  }

  later(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.view?.composing ? this.later(PAUSE_MS) : this.send()), milliseconds);
  }

  /** Sends what is here, if Python does not know it or shall run it. */
  send(run = false) {
    clearTimeout(this.timer);
    if (!this.view || !this.emit) return;
    this.count();
    const { doc, selection } = this.view.state;
    const text = normal(doc.toString());
    if (text === this.sent && !run) return;
    this.sent = text;
    if (run) this.runs = Math.max(Date.now(), this.runs + 1); // rises even after a reload, when the count is forgotten
    // What cannot be checked anyway need not travel; it stays here.
    this.emit({ text: text.slice(0, this.data.most), revision: this.revision, run: this.runs, cursor: place(doc, selection.main.head) });
  }

  /** Sends what is waiting to be sent. */
  flush() {
    this.send();
  }

  run() {
    this.send(true);
    return true;
  }

  // ---- files

  async open(file) {
    if (this.data.readOnly) return;
    const { text, word, fields } = await textOf(file, this.data.most);
    if (!this.view) return;
    if (text === undefined) {
      this.tell(fill(this.data.words[word], fields));
      return;
    }
    this.put(text);
    this.tell(fill(this.data.words.opened, { name: file.name }));
    this.view.focus();
    this.send();
  }

  insert(text) {
    if (this.data.readOnly) return;
    this.view.dispatch(this.view.state.replaceSelection(text), { userEvent: "input.paste", scrollIntoView: true });
  }

  // ---- words

  tell(text) {
    if (this.parts.told.textContent !== text) this.parts.told.textContent = text;
  }

  count() {
    const text = this.view.state.doc.toString();
    const { limit, words } = this.data;
    const count = text.length > limit * NEARLY ? characters(text) : 0;
    const fields = { count: count.toLocaleString("en"), limit: limit.toLocaleString("en") };
    const over = count > limit;
    this.parts.count.textContent = count > limit * NEARLY ? fill(over ? words.over : words.count, fields) : "";
    this.parts.count.classList.toggle("cl-over", over);
  }

  hint() {
    const { words } = this.data;
    const any = this.view.state.field(foundField).faults.length > 0;
    this.parts.hint.textContent = any ? `${words.hint} · ${words.hint_faults}` : words.hint;
  }

  sentence({ fault, from }) {
    const { words } = this.data;
    const line = this.view.state.doc.lineAt(from).number;
    const said = fill(words.at, { line, severity: fault.word, code: fault.code, message: fault.message.replaceAll("`", "") });
    const shape = shapeOn(this.view.state, from);
    return shape ? fill(words.at_shape, { said, shape }) : said;
  }

  /** How many faults a check found, and the first of them. */
  announce() {
    const faults = faultsIn(this.view.state);
    const { words } = this.data;
    const first = faults.length ? this.sentence(faults[0]) : "";
    const template = faults.length === 1 ? words.one_fault : words.faults;
    this.live(faults.length ? fill(template, { n: faults.length, first }) : words.no_faults);
  }

  say(one) {
    this.live(one ? this.sentence(one) : this.data.words.no_faults);
  }

  leaving() {
    this.live(this.data.words.leaving);
  }

  live(text) {
    // The same words again are only read when they change.
    const { live } = this.parts;
    live.textContent = live.textContent === text ? `${text}\u00a0` : text;
  }
}
