// The arrow of the scan, along the axis that the layer really runs over. Over the batch it is drawn in the alarm colour.

import { svg } from "../player/dom.js";

const HEAD = 7;

/** The arrows for a way: over the columns `right`, `left`, `both`; over the rows `down`, `up`, `updown`. */
export function drawScan(way, width, height) {
  const across = ["right", "left", "both"].includes(way);
  const picture = svg("svg", { class: "scan", width, height, "aria-hidden": "true" });
  if (across) {
    if (way !== "left") picture.append(arrow([4, way === "both" ? 4 : height / 2], [width - 4, way === "both" ? 4 : height / 2]));
    if (way !== "right") picture.append(arrow([width - 4, way === "both" ? height - 4 : height / 2], [4, way === "both" ? height - 4 : height / 2]));
  } else {
    if (way !== "up") picture.append(arrow([way === "updown" ? 4 : width / 2, 3], [way === "updown" ? 4 : width / 2, height - 3]));
    if (way !== "down") picture.append(arrow([way === "updown" ? width - 4 : width / 2, height - 3], [way === "updown" ? width - 4 : width / 2, 3]));
  }
  return picture;
}

function arrow([x1, y1], [x2, y2]) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const [bx, by] = [x2 - ux * HEAD, y2 - uy * HEAD];
  const half = HEAD * 0.55;
  return svg("g", {},
    svg("circle", { cx: x1, cy: y1, r: 2.6 }),
    svg("line", { x1, y1, x2: bx, y2: by }),
    svg("polygon", { points: `${x2},${y2} ${bx - uy * half},${by + ux * half} ${bx + uy * half},${by - ux * half}` }));
}
