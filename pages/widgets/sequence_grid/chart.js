// A click on a point of the chart below chooses its t and unit: each point carries both.
//
// The chart belongs to Streamlit and may mount later, be drawn again or go away at any time, so nothing is assumed:
// `sync` looks for it after every change of the document and is cheap and harmless when nothing changed.

/** Streamlit's class for a key: anything but letters, digits, - and _ becomes a dash. */
function classOfKey(key) {
  return `st-key-${key.trim().replace(/[^a-zA-Z0-9_-]/g, "-")}`;
}

export class ChartClicks {
  /** `onPick(t, unit)` is called when a point is clicked. */
  constructor(onPick) {
    this.onPick = onPick;
    this.key = "";
    this.charts = new Map(); // graph div -> [its emitter, the listener]
    this.frame = 0;
    this.observer = new MutationObserver(() => this.soon());
    this.observer.observe(document.body, { childList: true, subtree: true });
  }

  update(key) {
    this.key = key;
    this.sync();
  }

  destroy() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    for (const div of [...this.charts.keys()]) this.detach(div);
  }

  soon() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.sync();
    });
  }

  sync() {
    const found = this.key ? [...document.querySelectorAll(`.${classOfKey(this.key)} .js-plotly-plot`)].filter((div) => typeof div.on === "function" && div._ev) : [];
    for (const [div, [emitter]] of [...this.charts]) if (!found.includes(div) || div._ev !== emitter) this.detach(div);
    for (const div of found) if (!this.charts.has(div)) this.attach(div);
  }

  attach(div) {
    const listener = (event) => {
      const point = event?.points?.[0]?.customdata;
      if (Array.isArray(point) && Number.isInteger(point[0])) this.onPick(point[0], point[1]);
    };
    div.on("plotly_click", listener);
    this.charts.set(div, [div._ev, listener]);
  }

  detach(div) {
    const [emitter, listener] = this.charts.get(div);
    this.charts.delete(div);
    emitter.removeListener("plotly_click", listener);
  }
}
