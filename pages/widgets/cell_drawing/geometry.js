// Which units are drawn as bars, and where a bar stands in its box. No DOM: Node's tests import this file as it is.

/** Bars side by side in one box; more units are paged, 16 at a time. */
export const MAX_BARS = 16;
const HEAD = 21;
const PAD = 7;

/** The first and last unit of the page that holds `unit`. */
export function unitWindow(units, unit) {
  if (units <= MAX_BARS) return { first: 0, last: units - 1 };
  const first = Math.floor(unit / MAX_BARS) * MAX_BARS;
  return { first, last: Math.min(first + MAX_BARS, units) - 1 };
}

/** The part of a box that holds its bars, below the name. */
export function plotArea(box) {
  return { x: box.x + PAD, y: box.y + HEAD, width: box.width - 2 * PAD, height: box.height - HEAD - PAD + 1 };
}

/** The column of one of `count` bars, its whole width: what a click may hit. */
export function columnOf(area, index, count) {
  const width = area.width / count;
  return { x: area.x + index * width, y: area.y, width, height: area.height };
}

/** Where zero is in an area with this scale. */
export function zeroOf(area, low, high) {
  return area.y + (area.height * high) / (high - low);
}

/** The bar of a value: from zero to the value, never thinner than a hair. */
export function barOf(area, index, count, value, low, high) {
  const column = columnOf(area, index, count);
  const width = Math.min(18, Math.max(column.width * 0.74, column.width - 4, 0.6));
  const zero = zeroOf(area, low, high);
  const end = area.y + (area.height * (high - Math.min(Math.max(value, low), high))) / (high - low);
  return {
    x: column.x + (column.width - width) / 2,
    y: Math.min(zero, end),
    width,
    height: Math.max(Math.abs(end - zero), 0.8),
  };
}

/** A polyline's path with rounded corners. */
export function wirePath(points, radius = 7) {
  const [start, ...rest] = points;
  let path = `M${start[0]} ${start[1]}`;
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    if (!next) {
      path += `L${point[0]} ${point[1]}`;
      return;
    }
    const before = toward(point, index ? rest[index - 1] : start, radius);
    const after = toward(point, next, radius);
    path += `L${before[0]} ${before[1]}Q${point[0]} ${point[1]} ${after[0]} ${after[1]}`;
  });
  return path;
}

function toward(from, to, distance) {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const length = Math.hypot(dx, dy) || 1;
  const step = Math.min(distance, length / 2);
  return [from[0] + (dx / length) * step, from[1] + (dy / length) * step];
}

/** The three corners of an arrow head at the end of a polyline, as SVG points. */
export function arrowHead(points, size = 6) {
  const [x, y] = points[points.length - 1];
  const [px, py] = points[points.length - 2];
  const length = Math.hypot(x - px, y - py) || 1;
  const [ux, uy] = [(x - px) / length, (y - py) / length];
  const [bx, by] = [x - ux * size, y - uy * size];
  const half = size * 0.55;
  return `${x},${y} ${bx - uy * half},${by + ux * half} ${bx + uy * half},${by - ux * half}`;
}
