// The batch as a grid. A click is shown at once and told to the server, which answers with the batch as it then is.
// Streamlit (components.v2) calls the default export at mount and again whenever data or theme change.

import { el, fill, isDark } from "../player/dom.js";
import { cellWords, drawCell, drawRuns, kindOf, tickStep } from "./cells.js";
import { ChartClicks } from "./chart.js";
import { drawScan } from "./scan.js";

const VERSION = 1;
/** The least width of a column, where there is a mouse and where there is a finger; below it the grid scrolls. */
const LEAST = 9;
const LEAST_NARROW = 18;
const NARROW = 500;
const TURNED = { 1: "0", "?": "0", 0: "1", "!": "1" };
const grids = new WeakMap(); // parent element -> Grid

export default function mount({ data, parentElement, setTriggerValue }) {
  const host = parentElement.querySelector(".sequence-grid");
  let grid = grids.get(parentElement);
  if (grid && grid.root !== host) {
    grid.destroy();
    grid = null;
  }
  if (!grid) grids.set(parentElement, (grid = new Grid(host)));
  grid.update(data, setTriggerValue);
  return () => {
    grid.destroy();
    grids.delete(parentElement);
  };
}

class Grid {
  constructor(root) {
    this.root = root;
    this.at = [0, 0]; // the cell that the keyboard is on; column -1 is the row's label
    this.width = 0;
    this.parts = {
      scroll: el("div", { class: "scroll" }),
      scanText: el("p", { class: "scan-text" }),
      legend: el("p", { class: "legend" }),
      hint: el("p", { class: "hint" }),
    };
    root.replaceChildren(this.parts.scanText, this.parts.scroll, el("div", { class: "foot" }, this.parts.legend, this.parts.hint));
    root.addEventListener("click", (event) => this.clicked(event.target));
    root.addEventListener("keydown", (event) => this.pressed(event));
    this.charts = new ChartClicks((t, unit) => this.tell("point", { t, unit, at: Date.now() }));
    this.resizes = new ResizeObserver(() => this.data && Math.floor(root.clientWidth) !== this.width && this.redraw());
    this.resizes.observe(root);
  }

  update(data, tell) {
    if (data?.version !== VERSION) return;
    this.data = data;
    this.tell = tell;
    this.root.dataset.theme = isDark(getComputedStyle(this.root).getPropertyValue("--st-background-color")) ? "dark" : "light";
    this.root.classList.toggle("stale", data.stale);
    this.root.classList.toggle("misread", data.misread);
    this.root.classList.toggle("editable", data.editable);
    this.at = [Math.min(this.at[0], Math.max(data.batch - 1, 0)), Math.min(this.at[1], data.length - 1)];
    this.write();
    this.redraw();
    this.charts.update(data.chart);
  }

  destroy() {
    this.charts.destroy();
    this.resizes.disconnect();
  }

  // ---- drawing

  write() {
    const { data, parts } = this;
    parts.scanText.textContent = data.scan_text;
    parts.legend.replaceChildren(...data.used.map((state) =>
      el("span", { class: "key" }, el("i", { class: `cell ${kindOf(state)}`, style: "--level: 0.7" }), data.text[state])));
    parts.hint.textContent = data.reduced ? data.text.reduced : data.editable ? data.text.toggle : data.stale ? "" : data.text.fixed;
  }

  redraw() {
    const focused = this.root.getRootNode().activeElement?.closest?.("[data-row]");
    const { data, parts } = this;
    this.width = Math.floor(this.root.clientWidth);
    if (this.width < 40) return; // hidden: the observer calls again when there is room
    const { left, right, length } = data;
    const room = (this.width - left - right) / (length + 1);
    const least = this.width < NARROW ? LEAST_NARROW : LEAST;
    const column = data.reduced ? room : Math.max(room, least);
    const table = el("table", { class: data.reduced ? "reduced" : "", role: "grid", "aria-label": data.text.title, "aria-rowcount": data.batch + 1, "aria-colcount": length + 1 },
      this.columns(column),
      el("thead", {}, this.scanRow(column), this.numbers(column)),
      el("tbody", {}, data.rows.map((_, row) => this.row(row))));
    table.style.width = `${left + right + column * (length + 1)}px`;
    parts.scroll.replaceChildren(table);
    if (data.misread) this.drawDown(table);
    this.rove();
    if (focused) this.cellAt(...this.at)?.focus();
  }

  /** The widths: half a column stands free at both ends, as in the chart below, where carries stand on the lines. */
  columns(column) {
    const { left, right, length } = this.data;
    const widths = [left, column / 2, ...Array(length).fill(column), column / 2, right];
    return el("colgroup", {}, widths.map((width) => el("col", { style: `width: ${width}px` })));
  }

  scanRow(column) {
    const { data } = this;
    const corner = el("td", { class: "corner" }, el("b", {}, "B ↓"), el("small", {}, fill(data.text.axis, { number: data.axes.B })));
    const across = ["right", "left", "both"].includes(data.scan);
    const arrow = across && data.length ? drawScan(data.scan, column * data.length, data.scan === "both" ? 20 : 14) : "";
    const edge = el("td", { class: "edge" }, el("b", {}, "T →"), el("small", {}, fill(data.text.axis, { number: data.axes.T })));
    return el("tr", { class: "scan-row", "aria-hidden": "true" }, corner, el("td"), data.length ? el("td", { colspan: data.length }, arrow) : null, el("td"), edge);
  }

  numbers(column) {
    const { data } = this;
    const step = tickStep(data.length, column);
    const cells = Array.from({ length: data.length }, (_, t) =>
      el("th", { scope: "col", class: data.chosen.column === t ? "chosen" : "", "aria-label": `t = ${t}` }, t % step === 0 || data.chosen.column === t ? String(t) : ""));
    return el("tr", { class: "numbers" }, el("td", { class: "t" }, "t"), el("td"), cells, el("td"), el("td"));
  }

  row(row) {
    const { data } = this;
    const one = data.rows[row];
    const chosen = data.chosen.row === row;
    const words = fill(data.text.choose, { example: row, length: one.length });
    const label = el("th", { scope: "row", class: "label", role: "rowheader", "data-row": row, "data-column": "-1", "aria-label": words, title: words, "aria-current": chosen ? "true" : null, tabindex: "-1" }, el("span", {}, String(row)));
    const cells = data.reduced ? [data.length ? drawRuns(data, row) : null] : Array.from({ length: data.length }, (_, column) => {
      const cell = drawCell(data, row, column);
      if (data.chosen.column === column && chosen) cell.classList.add("point");
      return cell;
    });
    const end = el("td", { class: `end ${one.bad || one.wrong ? "wrong" : ""}` }, one.length);
    return el("tr", { class: chosen ? "chosen" : "" }, label, el("td", { class: "gap" }), cells, el("td", { class: "gap" }), end);
  }

  /** The arrow down the batch, in the half column left of the cells. */
  drawDown(table) {
    const body = table.tBodies[0];
    const gap = body.querySelector("td.gap");
    if (!gap) return;
    const width = 14;
    const arrow = drawScan(this.data.scan, this.data.scan === "updown" ? width + 6 : width, body.offsetHeight);
    const holder = el("div", { class: "down" }, arrow);
    Object.assign(holder.style, { left: `${this.data.left - width - 4}px`, top: `${body.offsetTop}px` });
    this.parts.scroll.append(holder);
  }

  // ---- choosing

  clicked(target) {
    const cell = target.closest?.("[data-row]");
    if (!cell) return;
    this.at = [Number(cell.dataset.row), Number(cell.dataset.column)];
    this.rove();
    this.act();
  }

  act() {
    const [row, column] = this.at;
    if (column < 0) {
      if (!this.data.misread) this.tell("example", { example: row, at: Date.now() });
    } else if (this.data.editable) {
      this.turn(row, column);
      this.tell("toggle", { example: row, t: column, at: Date.now() });
    }
  }

  /** Turned over at once; the server's answer draws it again. */
  turn(row, column) {
    const one = this.data.rows[row];
    const state = TURNED[one.states[column]];
    one.states = one.states.slice(0, column) + state + one.states.slice(column + 1);
    const cell = this.cellAt(row, column);
    cell.className = `cell ${kindOf(state)}`;
    cell.setAttribute("aria-selected", String(state === "1"));
    cell.setAttribute("aria-label", cellWords(this.data, row, column, state));
  }

  pressed(event) {
    const here = event.target.closest?.("[data-row]");
    if (event.ctrlKey || event.metaKey || event.altKey || !here) return;
    const [row, column] = (this.at = [Number(here.dataset.row), Number(here.dataset.column)]);
    const last = this.data.reduced ? -1 : this.data.length - 1;
    const moves = { ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], Home: [row, 0], End: [row, last] };
    if (event.key === " " || event.key === "Enter") this.act();
    else if (event.key in moves) {
      const [r, c] = moves[event.key];
      this.at = [Math.min(Math.max(r, 0), this.data.batch - 1), Math.min(Math.max(c, -1), last)];
      this.rove();
      this.cellAt(...this.at)?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  cellAt(row, column) {
    return this.parts.scroll.querySelector(`[data-row="${row}"][data-column="${column}"]`);
  }

  /** One stop for Tab: the cell where the keyboard is. */
  rove() {
    for (const cell of this.parts.scroll.querySelectorAll('[tabindex="0"]')) cell.tabIndex = -1;
    const here = this.cellAt(...this.at) ?? this.cellAt(this.at[0], -1);
    if (here) here.tabIndex = 0;
  }
}
