// The scan player: shape flow, controls, step text and Python loop over t = 0…T, all in the browser, with no rerun.
//
// Text and numbers come ready from core/plots/player.py; nothing from the payload is ever parsed as HTML.

import { el, fill, isDark, svg } from "./dom.js";
import { drawBroken } from "./flowbroken.js";
import { drawFlow, flowSentence, flowWindow, layoutFlow, paintFlow } from "./flow.js";
import { smallIs } from "./flowparts.js";
import { ChartFollower } from "./follow.js";
import { loopBlock, paintLoop, stepBlock } from "./code.js";
import { MAX_PHASED_STEPS, PHASES, playTime } from "./model.js";
import { stepText } from "./steptext.js";

const VERSION = 1;
const SMALL_TEXT = 10.5; // pixels of small words, where the page does not say (--cl-small)
const positions = new Map(); // widget key -> position: outlives a remount and new data
const players = new WeakMap(); // parent element -> Player

const ICONS = {
  reset: "M4 3v10M13 3.5 6.5 8l6.5 4.5z",
  back: "M12 3 4.5 8 12 13z",
  play: "M4.5 3 13 8l-8.5 5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  forward: "M3.5 3.5 10 8l-6.5 4.5zM12.5 3v10",
};

/** Streamlit calls this once, in the component that carries the code; the one that carries data waits for it. */
export default function () {
  const slot = (globalThis.carryLabScanPlayer ??= { waiting: [] });
  slot.mount = mount;
  for (const ready of slot.waiting.splice(0)) ready();
}

/** Shows data in a component's element: at its first call there, and whenever data or theme change. */
function mount({ data, parentElement }) {
  const host = parentElement.querySelector(".scan-player");
  let player = players.get(parentElement);
  if (player && player.root !== host) {
    player.destroy();
    player = null;
  }
  if (!player) players.set(parentElement, (player = new Player(host)));
  player.update(data);
  return () => {
    player.destroy();
    players.delete(parentElement);
  };
}

class Player {
  constructor(root) {
    this.root = root;
    this.position = 0;
    this.phase = null;
    this.playing = null;
    this.width = 0;
    this.follower = new ChartFollower((position) => this.go(position));
    this.resizes = new ResizeObserver(() => this.resized());
    this.build();
    this.resizes.observe(this.parts.stage);
    document.fonts?.ready.then(() => this.data && this.redraw());
  }

  // ---- life

  build() {
    const button = (name) => el("button", { type: "button", class: name }, icon(name));
    const parts = {
      flowTitle: el("h3", { class: "flow-title" }),
      note: el("span", { class: "note" }),
      stage: el("div", { class: "stage" }),
      picture: svg("svg", { role: "img" }),
      ends: el("p", { class: "ends", hidden: "" }),
      label: el("label", { for: "t" }),
      slider: el("input", { id: "t", type: "range", min: 0, step: 1 }),
      count: el("output", { for: "t", "aria-hidden": "true" }),
      reset: button("reset"),
      back: button("back"),
      play: el("button", { type: "button", class: "play" }, icon("play"), el("span")),
      forward: button("forward"),
      text: el("div", { class: "text", "aria-live": "polite" }),
      warning: el("p", { class: "warning", hidden: "" }),
      loopTitle: el("h3"),
      code: el("div", { class: "codes" }),
    };
    parts.stage.append(parts.picture);
    const buttons = el("div", { class: "buttons" }, parts.reset, parts.back, parts.play, parts.forward);
    const controls = el("div", { class: "controls" }, parts.label, parts.slider, parts.count, buttons);
    this.root.replaceChildren(
      el("style", {}, CSS), // a constant that __init__.py puts before the modules
      el("div", { class: "layout" },
        el("section", { class: "flow" },
          el("header", {}, parts.flowTitle, parts.note),
          el("div", { class: "card" }, parts.stage, parts.ends, controls, parts.text, parts.warning)),
        el("section", { class: "program" }, parts.loopTitle, el("div", { class: "card" }, parts.code))),
    );
    this.parts = parts;
    this.listen();
  }

  listen() {
    const { slider, reset, back, play, forward, picture } = this.parts;
    slider.addEventListener("input", () => this.go(Number(slider.value)));
    reset.addEventListener("click", () => this.go(0));
    back.addEventListener("click", () => this.go(this.position - 1));
    forward.addEventListener("click", () => this.go(this.position + 1));
    play.addEventListener("click", () => this.toggle());
    picture.addEventListener("click", (event) => {
      const item = event.target.closest("[data-position]");
      if (item) this.go(Number(item.dataset.position));
    });
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== " " || event.target.closest("button")) return;
      event.preventDefault();
      this.toggle();
    });
  }

  update(data) {
    if (data?.version !== VERSION) return;
    const before = this.data;
    if (before?.T !== data.T || data.broken) this.stop();
    this.data = data;
    this.position = Math.min(positions.get(data.key) ?? 0, data.T);
    this.theme();
    this.label();
    this.writeCode();
    this.redraw();
    this.follower.update(data, getComputedStyle(this.root).getPropertyValue("--carry").trim());
  }

  destroy() {
    this.stop();
    this.resizes.disconnect();
    this.follower.destroy();
  }

  // ---- what does not depend on t

  theme() {
    this.root.dataset.theme = isDark(getComputedStyle(this.root).getPropertyValue("--st-background-color")) ? "dark" : "light";
  }

  label() {
    const { data, parts } = this;
    parts.flowTitle.textContent = data.text.flow_title;
    parts.note.textContent = data.reverse && data.T && !data.broken ? fill(data.text.reverse, { first: data.T - 1 }) : "";
    const counted = data.reverse ? data.text.slider_reverse : data.text.slider; // t is the index of xs alone then
    parts.label.textContent = counted;
    parts.slider.setAttribute("aria-label", counted);
    for (const name of ["reset", "back", "forward"]) named(parts[name], data.text[name]);
    this.root.toggleAttribute("data-broken", Boolean(data.broken));
    const idle = Boolean(data.broken) || data.T === 0;
    for (const part of [parts.slider, parts.reset, parts.back, parts.play, parts.forward]) part.disabled = idle;
    parts.slider.max = Math.max(data.T, 1);
    parts.loopTitle.textContent = data.text.loop_title;
    parts.picture.setAttribute("aria-label", flowSentence(data));
    this.warn();
  }

  warn() {
    const { data, parts } = this;
    parts.warning.hidden = !data.flagged;
    if (!data.flagged) return;
    parts.warning.replaceChildren(el("b", {}, [data.text.flagged_mark, data.flagged.code].filter(Boolean).join(" ")), ` ${data.flagged.label}`);
  }

  writeCode() {
    const { data, parts } = this;
    const written = JSON.stringify([data.step_code, data.loop, data.names, data.marks]);
    if (written === this.written) return;
    this.written = written;
    this.loop = loopBlock(data);
    parts.code.replaceChildren(...(data.step_code === null ? [] : [stepBlock(data)]), this.loop);
  }

  redraw() {
    const { stage, picture } = this.parts;
    const width = Math.floor(stage.clientWidth);
    this.width = width;
    if (width < 40) return; // hidden: the observer calls again when there is room
    const cw = characterWidth(picture);
    const { fontSize } = getComputedStyle(picture);
    const small = parseFloat(getComputedStyle(picture).getPropertyValue("--cl-small")) || SMALL_TEXT;
    smallIs(small / parseFloat(fontSize));
    this.layout = this.data.broken ? null : layoutFlow(this.data, width, cw);
    this.window = "";
    if (this.data.broken) drawBroken(picture, this.data, width, cw);
    this.writeEnds();
    this.paint();
    // A program that scrolls sideways here can be reached by keyboard; one that does not is no stop of Tab.
    for (const code of this.parts.code.children) code.scrollWidth > code.clientWidth ? (code.tabIndex = 0) : code.removeAttribute("tabindex");
  }

  /** Where the picture has no room for the final carry at every t, it stands below it. */
  writeEnds() {
    const { ends } = this.parts;
    ends.hidden = !this.layout || this.layout.pinned || this.data.T === 0;
    if (ends.hidden) return;
    const { data } = this;
    const value = data.leaves.carry.length ? data.carry[0][data.T] : "";
    const [name, ...rest] = this.layout.ends.final;
    ends.replaceChildren(el("b", {}, name), ` ${data.chips.carry || !value ? rest.join(" ") : [rest[0], value, ...rest.slice(1)].join(" ")}`);
  }

  resized() {
    if (this.data && Math.floor(this.parts.stage.clientWidth) !== this.width) this.redraw();
  }

  // ---- moving

  /** Shows a position and stops Play. */
  go(position) {
    this.stop();
    this.show(Math.min(Math.max(position, 0), this.data.T), null);
  }

  show(position, phase) {
    this.position = position;
    this.phase = phase;
    this.paint();
  }

  toggle() {
    if (this.playing) this.go(this.position);
    else this.play();
  }

  play() {
    if (this.data.broken || this.data.T === 0) return;
    const from = this.position === this.data.T ? 0 : this.position;
    this.playing = { from, start: performance.now(), frame: 0 };
    this.parts.text.setAttribute("aria-live", "off"); // nobody can listen to a step every 40 ms
    this.tick(performance.now());
  }

  /** Where Play is follows from the clock, so that slow drawing skips steps and never takes longer. */
  tick(now) {
    const { T } = this.data;
    const steps = Math.max(now - this.playing.start, 0) / (playTime(T) / T);
    const position = this.playing.from + 1 + Math.floor(steps);
    if (position > T) {
      this.go(T);
      return;
    }
    const phased = T <= MAX_PHASED_STEPS && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    const phase = phased ? PHASES[Math.floor((steps % 1) * PHASES.length)] : null;
    if (position !== this.position || phase !== this.phase) this.show(position, phase);
    this.playing.frame = requestAnimationFrame((time) => this.tick(time));
  }

  /** Ends Play where it is; the caller paints. */
  stop() {
    if (!this.playing) return;
    cancelAnimationFrame(this.playing.frame);
    this.playing = null;
    this.phase = null;
    this.parts.text.setAttribute("aria-live", "polite");
  }

  // ---- what depends on t

  paint() {
    const { data, position, phase, parts } = this;
    if (!data.broken && data.T > 0) positions.set(data.key, position); // a scan that is repaired comes back where it was
    this.root.dataset.t = position;
    this.root.dataset.playing = Boolean(this.playing);
    this.paintPicture();
    this.paintControls();
    parts.text.replaceChildren(...stepText(data, position));
    paintLoop(this.loop, data, position, phase);
    this.follower.show(position);
  }

  paintPicture() {
    if (!this.layout) return;
    const window = flowWindow(this.layout, this.position);
    const name = `${window.first}:${window.last}`;
    if (name !== this.window) drawFlow(this.parts.picture, this.layout, window);
    this.window = name;
    paintFlow(this.parts.picture, this.data, this.position, this.phase);
  }

  paintControls() {
    const { data, position, parts } = this;
    const { slider, play, reset, back, forward } = parts;
    slider.value = position;
    slider.style.setProperty("--part", data.T ? position / data.T : 0);
    slider.setAttribute("aria-valuetext", fill(data.reverse ? data.text.slider_value_reverse : data.text.slider_value, { position, length: data.T }));
    parts.count.textContent = data.broken ? "" : `${position} / ${data.T}`;
    const name = this.playing ? "pause" : "play";
    if (play.dataset.name !== name) {
      play.dataset.name = name;
      play.firstChild.replaceWith(icon(name));
    }
    play.lastChild.textContent = data.text[name];
    const idle = Boolean(data.broken) || data.T === 0;
    for (const button of [reset, back]) button.setAttribute("aria-disabled", idle || position === 0);
    forward.setAttribute("aria-disabled", idle || position === data.T);
  }
}

function icon(name) {
  return svg("svg", { class: `icon ${name}`, viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

function named(button, name) {
  button.setAttribute("aria-label", name);
  button.setAttribute("title", name);
}

/** Width of a character of the diagram's (monospaced) font, with the room between letters that a reader may have set. */
function characterWidth(picture) {
  const probe = svg("text", { visibility: "hidden" }, "0".repeat(20));
  picture.append(probe);
  const width = probe.getComputedTextLength() / 20;
  probe.remove();
  return width || 7.2;
}
