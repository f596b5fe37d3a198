// Charts of the page follow the player: each gets a cursor over the current step, and a click on a point moves the player.
//
// The charts belong to Streamlit and may mount later, be drawn again or go away at any time, so nothing is assumed:
// `sync` looks for them after every change of the document and is cheap and harmless when nothing changed.

import { cursorRange, positionOf } from "./model.js";

/** Streamlit's class for a key: anything but letters, digits, - and _ becomes a dash. */
function keyClass(key) {
  return `st-key-${key.trim().replace(/[^a-zA-Z0-9_-]/g, "-")}`;
}

export class ChartFollower {
  /** `onPick(position)` is called when a point is clicked. */
  constructor(onPick) {
    this.onPick = onPick;
    this.data = null;
    this.position = 0;
    this.color = "";
    this.charts = new Map(); // graph div -> what was attached to it
    this.frame = 0;
    this.observer = new MutationObserver(() => this.soon());
    this.observer.observe(document.body, { childList: true, subtree: true });
    this.resizes = new ResizeObserver(() => this.soon());
  }

  /** New data: other charts, other lengths. */
  update(data, color) {
    this.data = data;
    this.color = color;
    this.sync();
  }

  /** Moves every cursor. */
  show(position) {
    this.position = position;
    for (const chart of this.charts.values()) this.place(chart);
  }

  destroy() {
    this.observer.disconnect();
    this.resizes.disconnect();
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
    const found = this.find();
    for (const [div, chart] of [...this.charts]) {
      if (found.get(div) !== chart.axis || div._ev !== chart.emitter) this.detach(div);
    }
    for (const [div, axis] of found) {
      if (!this.charts.has(div)) this.attach(div, axis);
    }
    this.show(this.position);
  }

  /** The charts that are there now: graph div -> axis. */
  find() {
    const found = new Map();
    const wanted = this.data && !this.data.broken ? this.data.follow : [];
    for (const { key, axis } of wanted) {
      for (const div of document.querySelectorAll(`.${keyClass(key)} .js-plotly-plot`)) {
        if (typeof div.on === "function" && div._ev) found.set(div, axis);
      }
    }
    return found;
  }

  attach(div, axis) {
    const chart = { div, axis, emitter: div._ev, bands: [] };
    chart.afterplot = () => this.place(chart);
    chart.click = (event) => this.pick(chart, event);
    div.on("plotly_afterplot", chart.afterplot);
    div.on("plotly_click", chart.click);
    this.resizes.observe(div);
    this.charts.set(div, chart);
  }

  detach(div) {
    const chart = this.charts.get(div);
    this.charts.delete(div);
    this.resizes.unobserve(div);
    chart.emitter.removeListener("plotly_afterplot", chart.afterplot);
    chart.emitter.removeListener("plotly_click", chart.click);
    for (const band of chart.bands) band.remove();
  }

  pick(chart, event) {
    const position = this.data && positionOf(this.data, chart.axis, event?.points?.[0]?.x);
    if (position !== null) this.onPick(position);
  }

  place(chart) {
    const layout = chart.div._fullLayout;
    const host = chart.div.querySelector(".svg-container");
    const plots = layout?._plots && host ? Object.values(layout._plots) : [];
    const boxes = plots.map((plot) => this.boxOf(chart, plot)).filter(Boolean);
    while (chart.bands.length > boxes.length) chart.bands.pop().remove();
    boxes.forEach((box, index) => {
      const band = chart.bands[index] ?? (chart.bands[index] = makeBand());
      if (band.parentNode !== host) host.append(band);
      paintBand(band, box, this.color);
    });
  }

  /** The cursor over one subplot in pixels of the chart, or null where it is out of sight. */
  boxOf(chart, { id, xaxis, yaxis }) {
    const linear = xaxis?._length && yaxis?._length && ["linear", "category", "-"].includes(xaxis.type);
    if (!linear) return null;
    const cells = chart.div._fullData?.some((trace) => trace.type === "heatmap" && `${trace.xaxis}${trace.yaxis}` === id);
    const range = cursorRange(this.data, chart.axis, this.position, cells);
    if (!range) return null;
    const [low, high] = xaxis.range.map(Number);
    const pixel = (x) => ((x - low) / (high - low)) * xaxis._length;
    const inside = (x) => Math.min(Math.max(x, 0), xaxis._length);
    const [from, to] = [pixel(range.from), pixel(range.to)].sort((a, b) => a - b);
    if (!Number.isFinite(from) || !Number.isFinite(to) || to < -1 || from > xaxis._length + 1) return null;
    const [left, right] = [inside(from), inside(to)];
    return { left: xaxis._offset + left, width: right - left, top: yaxis._offset, height: yaxis._length, cells };
  }
}

function makeBand() {
  const band = document.createElement("div");
  band.className = "carry-lab-cursor";
  band.setAttribute("aria-hidden", "true");
  Object.assign(band.style, { position: "absolute", pointerEvents: "none", boxSizing: "border-box", zIndex: 1 });
  return band;
}

/** A tint with a line at the new carry on line charts; on heatmaps a frame, since a tint would change what colours say. */
function paintBand(band, { left, width, top, height, cells }, color) {
  Object.assign(band.style, {
    left: `${left}px`,
    width: `${Math.max(width, 2)}px`,
    top: `${top}px`,
    height: `${height}px`,
    background: cells ? "none" : `color-mix(in srgb, ${color} 14%, transparent)`,
    border: cells ? `2px solid ${color}` : "none",
    borderRight: `2px solid ${color}`,
    marginLeft: !cells && width < 2 ? "-1px" : "0",
  });
}
