// The drawn cell: picture, unit slider, overview and equations. A chosen unit changes all of them here, with no rerun.
// Streamlit (components.v2) calls the default export at mount and again whenever data or theme change.

import { el, fill, isDark, svg } from "../player/dom.js";
import { equationLines, spelledLines } from "./equations.js";
import { MAX_BARS, unitWindow } from "./geometry.js";
import { drawOverview, paintOverview, unitAt } from "./overview.js";
import { drawPicture, paintPicture } from "./picture.js";

const VERSION = 1;
/** From here on the wide picture's text is large enough to read. */
const WIDE = 600;
/** A choice is told to the server when it has stood this long, in milliseconds. */
const SETTLED = 350;
const drawings = new WeakMap(); // parent element -> Drawing

export default function mount({ data, parentElement, setStateValue }) {
  const host = parentElement.querySelector(".cell-drawing");
  let drawing = drawings.get(parentElement);
  if (drawing && drawing.root !== host) {
    drawing.destroy();
    drawing = null;
  }
  if (!drawing) drawings.set(parentElement, (drawing = new Drawing(host)));
  drawing.update(data, (unit) => setStateValue("unit", unit));
  return () => {
    drawing.destroy();
    drawings.delete(parentElement);
  };
}

class Drawing {
  constructor(root) {
    this.root = root;
    this.unit = 0;
    this.served = null; // the unit the server last gave: only a change of it overrides a choice made here
    this.timer = 0;
    this.build();
    this.resizes = new ResizeObserver(() => this.resized());
    this.resizes.observe(this.parts.stage);
  }

  build() {
    const parts = {
      stage: el("div", { class: "stage" }),
      picture: svg("svg", { role: "img", class: "picture" }),
      note: el("p", { class: "note", hidden: "" }),
      slider: el("input", { type: "range", min: 0, step: 1, id: "unit" }),
      label: el("label", { for: "unit" }),
      count: el("output", { for: "unit", "aria-hidden": "true" }),
      hint: el("p", { class: "hint" }),
      overviewTitle: el("p", { class: "hint" }),
      overview: svg("svg", { class: "overview", "aria-hidden": "true" }),
      title: el("h3"),
      lines: el("div", { class: "lines", "aria-live": "polite" }),
      details: el("details", {}, el("summary"), el("div", { class: "lines" })),
    };
    parts.stage.append(parts.picture);
    parts.controls = el("div", { class: "controls" }, parts.label, parts.slider, parts.count);
    parts.wide = el("div", { class: "all" }, parts.overviewTitle, parts.overview);
    parts.equations = el("section", {}, parts.title, el("div", { class: "card" }, parts.lines, parts.details));
    this.root.replaceChildren(
      el("div", { class: "card" }, parts.stage, parts.note, parts.controls, parts.hint, parts.wide),
      parts.equations,
    );
    this.parts = parts;
    parts.slider.addEventListener("input", () => this.choose(Number(parts.slider.value)));
    parts.picture.addEventListener("click", (event) => {
      const hit = event.target.closest("[data-unit]");
      if (hit) this.choose(Number(hit.dataset.unit));
    });
    parts.overview.addEventListener("click", (event) => {
      const frame = parts.overview.getBoundingClientRect();
      this.choose(unitAt((event.clientX - frame.left) / frame.width, this.strip.width, this.data.units));
    });
  }

  update(data, tell) {
    if (data?.version !== VERSION) return;
    this.data = data;
    this.tell = tell;
    if (data.unit !== this.served) this.unit = data.unit;
    this.served = data.unit;
    this.unit = Math.min(this.unit, Math.max(data.units - 1, 0));
    this.root.dataset.theme = isDark(getComputedStyle(this.root).getPropertyValue("--st-background-color")) ? "dark" : "light";
    this.write();
    this.redraw();
  }

  destroy() {
    clearTimeout(this.timer);
    this.resizes.disconnect();
  }

  // ---- what does not depend on the unit

  write() {
    const { data, parts } = this;
    const runs = data.units > 0;
    this.root.classList.toggle("stale", data.stale);
    parts.note.hidden = runs && !data.stale;
    parts.note.textContent = runs ? data.text.stale : data.text.not_run;
    for (const part of [parts.controls, parts.hint]) part.hidden = !runs || data.units === 1;
    parts.label.textContent = data.text.slider;
    parts.slider.max = Math.max(data.units - 1, 0);
    parts.slider.setAttribute("aria-label", data.text.slider);
    parts.hint.textContent = data.text.hint;
    parts.wide.hidden = data.units <= MAX_BARS;
    parts.overviewTitle.textContent = fill(data.text.all_units, { count: data.units });
    parts.details.hidden = data.spelled.length === 0;
    parts.details.firstChild.textContent = data.text.spelled;
  }

  redraw() {
    const width = Math.floor(this.parts.stage.clientWidth);
    this.width = width;
    if (width < 40) return; // hidden: the observer calls again when there is room
    const name = width >= WIDE ? "wide" : "narrow";
    this.parts.picture.setAttribute("class", `picture ${name}`);
    this.drawn = drawPicture(this.parts.picture, this.data, name);
    if (this.data.units > MAX_BARS) this.strip = drawOverview(this.parts.overview, this.data, width);
    this.paint();
  }

  resized() {
    if (this.data && Math.floor(this.parts.stage.clientWidth) !== this.width) this.redraw();
  }

  // ---- choosing

  choose(unit) {
    this.unit = unit;
    this.paint();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.served = unit;
      this.tell(unit);
    }, SETTLED);
  }

  paint() {
    const { data, parts, unit } = this;
    this.root.dataset.unit = unit;
    paintPicture(this.drawn, data, unit);
    if (data.units > MAX_BARS) paintOverview(this.strip, unit);
    parts.slider.value = unit;
    parts.slider.style.setProperty("--part", data.units > 1 ? unit / (data.units - 1) : 0);
    const place = fill(data.text.unit, { unit, last: data.units - 1 });
    parts.slider.setAttribute("aria-valuetext", place);
    const { first, last } = unitWindow(data.units, unit);
    parts.count.textContent = data.units > MAX_BARS ? `${place} · ${fill(data.text.units, { first, last })}` : place;
    parts.title.textContent = data.units > 0 ? fill(data.text.equations, { unit, example: data.example }) : data.text.letters;
    parts.lines.replaceChildren(...equationLines(data, unit));
    parts.details.lastChild.replaceChildren(...spelledLines(data, unit));
  }
}
