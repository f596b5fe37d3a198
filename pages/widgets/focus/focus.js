// Where the keyboard goes on when what had the focus leaves the page: to the same control drawn anew, to the Undo of
// what it did, else to the first control of the nearest box around it that is still there. The browser would begin at
// the top of the page again. Only for the keyboard: a click never moves the focus.
//
// What scrolls can be reached and scrolled by keyboard, and only that: a box that shows all it has is no stop of Tab.
//
// And the colour scheme on the root: Streamlit says it on .stApp alone, and what pops over hangs beside that.

const CONTROLS = "button:not(:disabled), summary, a[href], input:not(:disabled), textarea:not(:disabled)";
const UNDO = '[class*="_undo_line"] button:not(:disabled)';
const DID_SOMETHING = /_apply_/;
const AT_REST = '[data-testid="stApp"][data-test-script-state="notRunning"]';
const SCROLLS = '[data-testid="stCode"] pre, .cl-details pre, .cl-said, .cl-printed, .cl-scroll, .cl-matrix';
const SETTLED = 120; // ms without a change before boxes are measured

let words = {}; // what is read out
let settling = 0;
let last = null; // { element, keys: from the control's own outwards }

/** Streamlit calls this at mount and whenever the theme changes. */
export default function ({ data }) {
  words = data;
  document.documentElement.style.colorScheme = getComputedStyle(document.querySelector(".stApp")).colorScheme;
  if (globalThis.carryLabFocus) return;
  globalThis.carryLabFocus = true;
  document.addEventListener("focusin", (event) => remember(event.target));
  document.addEventListener("pointerdown", () => (last = null), true);
  new MutationObserver(goOn).observe(document.body, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["data-test-script-state"],
  });
  new MutationObserver(settle).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["open"] });
  addEventListener("resize", settle);
  settle();
}

function settle() {
  clearTimeout(settling);
  settling = setTimeout(reach, SETTLED);
}

/** Measures first and writes then, so that the page is laid out once. */
function reach() {
  const boxes = [...document.querySelectorAll(SCROLLS)];
  const scrolling = boxes.map((box) => box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight);
  boxes.forEach((box, at) => {
    if (scrolling[at] === (box.getAttribute("tabindex") === "0")) return;
    if (!scrolling[at]) return box.removeAttribute("tabindex");
    box.setAttribute("tabindex", "0");
    if (box.hasAttribute("aria-label")) return;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", words.scrolls);
  });
}

function remember(element) {
  last = element.matches?.(":focus-visible") ? { element, keys: keysAround(element) } : null;
}

function keysAround(element) {
  const keys = [];
  for (let box = element; box; box = box.parentElement) keys.push(...[...box.classList].filter((name) => name.startsWith("st-key-")));
  return keys;
}

function goOn() {
  if (!last || last.element.isConnected || document.activeElement !== document.body || !document.querySelector(AT_REST)) return;
  next()?.focus();
}

function next() {
  const [own, ...around] = last.keys;
  if (!own) return null;
  return inside(own) ?? (DID_SOMETHING.test(own) ? shown(document, UNDO) : null) ?? around.map(inside).find(Boolean);
}

function inside(key) {
  const box = document.getElementsByClassName(key)[0];
  return box ? shown(box, CONTROLS) : null;
}

function shown(box, selector) {
  return [...box.querySelectorAll(selector)].find((control) => control.checkVisibility()) ?? null;
}
