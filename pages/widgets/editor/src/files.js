// Files and notebooks that are dropped or pasted: their text comes into the editor, as one step that can be undone.

import { EditorView } from "@codemirror/view";
import { normal } from "./text.js";

const KINDS = /\.(py|pyi|ipynb|md|markdown|txt)$/i;
/** A notebook is mostly pictures: of that many times what a text may have, the cells are taken. */
const NOTEBOOK_ROOM = 20;
const KB = 1024;

/** The code cells of a notebook, one below the other, as the Doctor writes them; null for anything else. */
export function cellsOf(text) {
  if (!/^\s*\{/.test(text)) return null;
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(data?.cells)) return null;
  const code = data.cells.filter((cell) => cell?.cell_type === "code").map(({ source }) => (Array.isArray(source) ? source.join("") : String(source ?? "")));
  return code.map((source, i) => `# cell ${i + 1}\n${source}`).join("\n");
}

/** The text of a file, or a problem: {text} or {word, fields}, the name of a sentence and what is put in. */
export async function textOf(file, most) {
  const name = file.name;
  if (!KINDS.test(name)) return { word: "wrong_kind", fields: { name } };
  const notebook = /\.ipynb$/i.test(name);
  const room = notebook ? NOTEBOOK_ROOM * most : most;
  const tooBig = (size, limit) => ({ word: "too_big", fields: { name, size: Math.ceil(size / KB), most: Math.floor(limit / KB) } });
  if (file.size > room) return tooBig(file.size, room);
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    return { word: "not_text", fields: { name } };
  }
  if (text.includes("\0")) return { word: "not_text", fields: { name } };
  const cells = notebook ? cellsOf(text) : text;
  if (notebook && !cells) return { word: cells === "" ? "no_cells" : "not_text", fields: { name } };
  return cells.length > most ? tooBig(cells.length, most) : { text: normal(cells) };
}

/** Takes files that are dropped or pasted. `editor` has open(file) and insert(text). */
export function files(editor) {
  const take = (event, list) => {
    if (!list?.length) return false;
    event.preventDefault();
    editor.open(list[0]);
    return true;
  };
  const over = (view, on) => view.dom.classList.toggle("cl-drop", on);
  return EditorView.domEventHandlers({
    dragover: (event, view) => {
      if (event.dataTransfer?.types.includes("Files")) over(view, true);
      return false;
    },
    dragleave: (event, view) => {
      if (!view.dom.contains(event.relatedTarget)) over(view, false);
      return false;
    },
    drop: (event, view) => {
      over(view, false);
      return take(event, event.dataTransfer?.files);
    },
    paste: (event) => {
      const text = event.clipboardData?.getData("text/plain") ?? "";
      const list = event.clipboardData?.files;
      // With a file some systems paste its name as text, too; with text some programs paste a picture of it.
      if (!text || KINDS.test(list?.[0]?.name ?? "")) return take(event, list);
      const cells = cellsOf(text);
      if (!cells) return false;
      event.preventDefault();
      editor.insert(normal(cells));
      return true;
    },
  });
}
