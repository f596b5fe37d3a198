// Where the keyboard goes on when what had the focus leaves the page: to the same control drawn anew, to the Undo of
// what it did, else to the first control of the nearest box around it that is still there. The browser would begin at
// the top of the page again. Only for the keyboard: a click never moves the focus.

const CONTROLS = "button:not(:disabled), summary, a[href], input:not(:disabled), textarea:not(:disabled)";
const UNDO = '[class*="_undo_line"] button:not(:disabled)';
const DID_SOMETHING = /_apply_/;
const AT_REST = '[data-testid="stApp"][data-test-script-state="notRunning"]';

let last = null; // { element, keys: from the control's own outwards }

export default function () {
  if (globalThis.carryLabFocus) return;
  globalThis.carryLabFocus = true;
  document.addEventListener("focusin", (event) => remember(event.target));
  document.addEventListener("pointerdown", () => (last = null), true);
  new MutationObserver(goOn).observe(document.body, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["data-test-script-state"],
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
