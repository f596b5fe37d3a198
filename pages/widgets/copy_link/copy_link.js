// A button that copies the address of the page. Nothing is sent to the server.

const SHOWN_MS = 2500;
const ICON =
  "M6.5 9.5l3-3M7.5 5l1.3-1.3a2.5 2.5 0 0 1 3.5 3.5L11 8.5M5 7.5 3.7 8.8a2.5 2.5 0 0 0 3.5 3.5L8.5 11";
const timers = new WeakMap();

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".copy-link");
  let button = root.querySelector("button");
  if (!button) {
    button = document.createElement("button");
    button.type = "button";
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of [["viewBox", "0 0 16 16"], ["aria-hidden", "true"]]) svg.setAttribute(name, value);
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", ICON);
    svg.append(path);
    const label = document.createElement("span");
    button.append(svg, label);
    const said = document.createElement("div");
    said.className = "said";
    said.setAttribute("role", "status");
    root.append(button, said);
  }
  button.querySelector("span").textContent = data.label;
  button.setAttribute("aria-label", data.label);
  button.title = data.problem || data.says;
  button.onclick = async () => {
    if (data.problem) return say(root, data.problem);
    const link = window.location.href;
    if (await copied(link)) say(root, data.done);
    else show(root, data.byHand, link);
  };
}

async function copied(text) {
  try {
    if (navigator.clipboard && window.isSecureContext) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch {
    // No permission: the old way may still work.
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true;
  area.style.cssText = "position: fixed; top: 0; left: 0; opacity: 0;";
  document.body.append(area);
  const focused = document.activeElement;
  area.focus({ preventScroll: true });
  area.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    area.remove();
    focused?.focus?.({ preventScroll: true });
  }
}

function say(root, text) {
  const said = root.querySelector(".said");
  clearTimeout(timers.get(root));
  said.replaceChildren(text);
  timers.set(root, setTimeout(() => said.replaceChildren(), SHOWN_MS + 30 * text.length));
}

function show(root, text, link) {
  const said = root.querySelector(".said");
  clearTimeout(timers.get(root));
  const field = document.createElement("input");
  field.readOnly = true;
  field.value = link;
  field.setAttribute("aria-label", text);
  field.onblur = () => said.replaceChildren();
  said.replaceChildren(text, field);
  field.focus();
  field.select();
}
