// What tests/e2e/test_access.py asks a page in the browser: window.access.NAME(...). Shadow roots of our widgets are seen into.
(() => {
  const above = (element) => element.parentElement ?? element.getRootNode()?.host ?? null;
  const active = () => {
    let here = document.activeElement;
    while (here?.shadowRoot?.activeElement) here = here.shadowRoot.activeElement;
    return here === document.body ? null : here;
  };
  const path = function* (element) {
    for (let box = element; box; box = above(box)) yield box;
  };
  const inside = (element, selector) => [...path(element)].some((box) => box.matches(selector));
  const every = function* (root = document.body) {
    for (const element of root.querySelectorAll("*")) {
      yield element;
      if (element.shadowRoot) yield* every(element.shadowRoot);
    }
  };
  // Kept for who listens, out of sight for who looks.
  const unseen = (element) =>
    [...path(element)].some((box) => {
      const style = getComputedStyle(box);
      return style.clipPath.startsWith("inset(50%") || style.clip === "rect(0px, 0px, 0px, 0px)" || style.visibility !== "visible" || style.opacity === "0";
    });
  // Closed, the sidebar stands beside the window.
  const away = (element) => (element.closest('[data-testid="stSidebar"]')?.getBoundingClientRect().right ?? 1) <= 0;
  const visible = (element) => element.checkVisibility() && !unseen(element) && !away(element);
  const named = (element) => {
    const key = [...path(element)].flatMap((box) => [...box.classList]).find((name) => name.startsWith("st-key-")) ?? "";
    const words = element.getAttribute("aria-label") || element.textContent || element.value || "";
    return `${element.tagName} ${key} “${words.replace(/\s+/g, " ").trim().slice(0, 60)}”`;
  };

  // --- colours

  const rgba = (text) => {
    const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
    context.fillStyle = text;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat(1);
  const luminance = (color) => {
    const [red, green, blue] = [0, 1, 2].map((i) => (color[i] / 255 <= 0.04045 ? color[i] / 255 / 12.92 : ((color[i] / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [bright, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (bright + 0.05) / (dark + 0.05);
  };
  const behind = (element) => {
    const layers = [...path(element)].map((box) => rgba(getComputedStyle(box).backgroundColor)).filter((color) => color[3]);
    return layers.reverse().reduce((under, color) => over(color, under), rgba("#fff"));
  };

  // --- the focus

  const NEAR = 6; // boxes around what has the focus that may show it
  const looks = (box) => {
    const style = getComputedStyle(box);
    return {
      outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1 ? style.outlineColor : "",
      boxShadow: style.boxShadow.match(/\w+\([^)]*\)/)?.[0] ?? "",
      border: parseFloat(style.borderTopWidth) ? style.borderTopColor : "",
    };
  };
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));

  /** The best contrast of anything that is drawn because of the focus with what it is drawn on; null where none is drawn by CSS. */
  const ring = async () => {
    const here = active();
    if (!here || here.tagName === "CANVAS") return null;
    const boxes = [...path(here)].slice(0, NEAR).filter((box) => visible(box) && box.getBoundingClientRect().width > 4);
    if (here.isContentEditable) await pause(60); // the editor tells itself by a timer
    const on = boxes.map(looks);
    here.blur();
    if (here.isContentEditable) await pause(60);
    const off = boxes.map(looks);
    here.focus({ focusVisible: true, preventScroll: true });
    const seen = boxes.flatMap((box, at) =>
      Object.keys(on[at])
        .filter((kind) => on[at][kind] && on[at][kind] !== off[at][kind])
        .map((kind) => {
          const back = behind(kind === "outline" && parseFloat(getComputedStyle(box).outlineOffset) < 0 ? box : (above(box) ?? box));
          return contrast(over(rgba(on[at][kind]), back), back);
        }),
    );
    const place = here.getBoundingClientRect();
    return { name: named(here), contrast: Math.max(0, ...seen), x: place.x, y: place.y + document.querySelector('[data-testid="stMain"]').scrollTop };
  };

  // --- what is cut, covered, small

  const texts = function* () {
    for (const element of every()) {
      const parts = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
      if (!parts.length || element.matches("style, script, noscript, option, title, desc") || !visible(element)) continue;
      for (const part of parts) {
        const range = document.createRange();
        range.selectNodeContents(part);
        yield { element, text: part.data.trim(), range, box: range.getBoundingClientRect() };
      }
    }
  };

  /** Texts that a box around them cuts off and does not let anybody scroll to. */
  const cut = (but = "") => {
    const found = [];
    for (const { element, text, box } of texts()) {
      if (!box.width || (but && inside(element, but))) continue;
      for (const around of path(element)) {
        const style = getComputedStyle(around);
        if (style.display === "inline" || style.display === "contents") continue;
        const edge = around.getBoundingClientRect();
        const [across, down] = [style.overflowX, style.overflowY];
        const clips = (how) => how === "hidden" || how === "clip";
        const out = Math.max(clips(across) ? Math.max(box.right - edge.right, edge.left - box.left) : 0, clips(down) ? Math.max(box.bottom - edge.bottom, edge.top - box.top) : 0);
        if (out > 2.5) {
          found.push(`${named(element)} “${text.slice(0, 40)}” by ${Math.round(out)} px of ${around.tagName}.${around.className?.baseVal ?? around.className}`);
          break;
        }
        if ([across, down].some((how) => how === "auto" || how === "scroll")) break;
      }
    }
    return found;
  };

  /** The part of a box that is seen: what scrolls cuts off the rest. */
  const shown = (element, box) => {
    let { left, right, top, bottom } = box;
    for (const around of path(element)) {
      const style = getComputedStyle(around);
      if (style.display === "inline" || style.display === "contents") continue;
      const edge = around.getBoundingClientRect();
      if (style.overflowX !== "visible") [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
      if (style.overflowY !== "visible") [top, bottom] = [Math.max(top, edge.top), Math.min(bottom, edge.bottom)];
      if (style.position === "fixed") break;
    }
    return { left, right, top, bottom };
  };

  /** Texts that lie on other texts. Pictures place theirs by themselves and are not asked. */
  const overlapping = () => {
    const lines = [];
    for (const { element, text, range } of texts()) {
      if (inside(element, 'svg, [data-testid="stSidebar"], [data-testid="stHeader"]')) continue;
      for (const box of range.getClientRects()) {
        const part = shown(element, box);
        if (part.right - part.left > 2 && part.bottom - part.top > 4) lines.push({ element, text, box, part });
      }
    }
    const found = [];
    lines.forEach((one, at) => {
      for (const other of lines.slice(at + 1)) {
        if (one.element === other.element || one.element.contains(other.element) || other.element.contains(one.element)) continue;
        const across = Math.min(one.part.right, other.part.right) - Math.max(one.part.left, other.part.left);
        const down = Math.min(one.part.bottom, other.part.bottom) - Math.max(one.part.top, other.part.top);
        // The boxes of lines touch by their leading; letters lie on letters from some third of a line on.
        if (across > 4 && down > 0.4 * Math.min(one.box.height, other.box.height)) found.push(`“${one.text.slice(0, 40)}” and “${other.text.slice(0, 40)}”`);
      }
    });
    return found;
  };

  /** Controls that something else lies on: a click at their middle would not reach them. */
  const covered = () => {
    const at = (x, y) => {
      let hit = document.elementFromPoint(x, y);
      while (hit?.shadowRoot?.elementFromPoint(x, y) && hit.shadowRoot.elementFromPoint(x, y) !== hit) hit = hit.shadowRoot.elementFromPoint(x, y);
      return hit;
    };
    const found = [];
    for (const control of every()) {
      if (!control.matches("button:not(:disabled), summary, a[href], input:not(:disabled), textarea:not(:disabled)") || !visible(control)) continue;
      if (inside(control, '[data-testid="stSidebar"], .modebar, [data-testid="stElementToolbar"]')) continue;
      control.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
      const box = control.getBoundingClientRect();
      if (box.width < 3 || box.height < 3) continue;
      const hit = at(box.x + box.width / 2, box.y + box.height / 2);
      const own = hit && ([...path(hit)].includes(control) || control.contains(hit) || control.closest("label")?.contains(hit) || hit.contains(control));
      if (!own) found.push(`${named(control)} under ${hit ? named(hit) : "nothing: it is outside the window"}`);
    }
    document.querySelector('[data-testid="stMain"]').scrollTop = 0;
    return found;
  };

  const NUMBERS = "code, pre, code *, pre *, input, textarea, .cl-value, .cl-types, td, th, .cm-line, .cm-line *, output, .cl-mono, .cl-numbers";

  /** Code and numbers that are smaller on the screen than `least` pixels; in a picture, every text. */
  const small = (least) => {
    const found = [];
    const told = (element, text, size) => {
      if (size < least - 0.1) found.push(`${named(element)} “${text.slice(0, 40)}” ${size.toFixed(1)} px`);
    };
    for (const { element, text, box } of texts()) {
      if (!box.width || !/[\p{L}\p{N}]/u.test(text) || !inside(element, ".stMainBlockContainer, [data-testid=stPopoverBody]")) continue;
      if (element.ownerSVGElement) {
        const shape = element.closest("text");
        const scale = shape.getBBox().height ? shape.getBoundingClientRect().height / shape.getBBox().height : 1;
        if (!/rotate/.test(shape.getAttribute("transform") ?? "")) told(element, text, parseFloat(getComputedStyle(element).fontSize) * scale);
        continue;
      }
      if (element.matches(NUMBERS) && !inside(element, "[aria-hidden=true]")) told(element, text, parseFloat(getComputedStyle(element).fontSize) * element.currentCSSZoom);
    }
    for (const input of every())
      if (input.matches("input:not([type=checkbox], [type=radio], [type=range], [type=file]), textarea") && visible(input)) told(input, input.value, parseFloat(getComputedStyle(input).fontSize) * input.currentCSSZoom);
    return found;
  };

  /** By how many pixels the page, or what opens over it, is wider than its window. */
  const sideways = () =>
    Math.max(...[document.documentElement, ...document.querySelectorAll('[data-testid="stMain"], [data-testid="stPopoverBody"]')].map((box) => box.scrollWidth - box.clientWidth));

  /** The spacing of text that WCAG 1.4.12 lets a reader set, into every shadow root too. */
  const spaced = () => {
    const rules = "* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important; } p { margin-bottom: 2em !important; }";
    const roots = [document, ...[...every()].map((element) => element.shadowRoot).filter(Boolean)];
    for (const root of roots) {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(rules);
      root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    }
  };

  /** What moves: elements with a transition or an animation that can be seen. */
  const moving = () => {
    const seconds = (text) => Math.max(...text.split(",").map((part) => parseFloat(part) * (part.includes("ms") ? 0.001 : 1)));
    return [...every()]
      .filter((element) => {
        const style = getComputedStyle(element);
        return (style.transitionProperty !== "none" && seconds(style.transitionDuration) > 0.001) || (style.animationName !== "none" && seconds(style.animationDuration) > 0.001);
      })
      .map(named);
  };

  /** Opens every fold of the page itself. */
  const unfold = () => document.querySelectorAll('[data-testid="stMain"] details:not([open]) > summary').forEach((summary) => summary.click());
  const focused = (selector) => Boolean(active() && inside(active(), selector));
  const typing = () => Boolean(active()?.isContentEditable);

  window.access = { ring, cut, overlapping, covered, small, sideways, spaced, moving, unfold, focused, typing };
})();
