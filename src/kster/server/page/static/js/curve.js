// The learning curve of a fit, drawn as SVG.

import { drawn } from "./dom.js";

const WIDTH = 560;
const HEIGHT = 220;
const EDGE = { left: 44, right: 14, top: 14, bottom: 30 };

/** points: [{step, train_loss, dev_nll}], the first without a training loss; steps: how far it may go; levels: [[name, loss]] to compare with. */
export function curve(points, steps, levels = []) {
  const losses = [
    ...points.flatMap((point) => [point.train_loss, point.dev_nll]),
    ...levels.map(([, loss]) => loss),
  ].filter(Number.isFinite);
  const [low, high] = losses.length ? padded(Math.min(...losses), Math.max(...losses)) : [0, 1];
  const last = Math.max(steps ?? 0, ...points.map((point) => point.step), 1);
  const x = (step) => EDGE.left + (step / last) * (WIDTH - EDGE.left - EDGE.right);
  const y = (loss) => EDGE.top + ((high - loss) / (high - low)) * (HEIGHT - EDGE.top - EDGE.bottom);
  const svg = drawn("svg", {
    class: "curve",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    "aria-label": inWords(points),
  });

  for (const loss of ticks(low, high, 4)) {
    svg.append(
      drawn("line", { class: "grid", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(loss), y2: y(loss) }),
      drawn(
        "text",
        { class: "axis-text", x: EDGE.left - 8, y: y(loss) + 4, "text-anchor": "end" },
        loss.toFixed(high - low < 0.2 ? 3 : 2),
      ),
    );
  }
  for (const step of ticks(0, last, 5)) {
    svg.append(
      drawn(
        "text",
        { class: "axis-text", x: x(step), y: HEIGHT - 10, "text-anchor": "middle" },
        String(step),
      ),
    );
  }
  for (const [name, loss] of levels) {
    svg.append(
      drawn("line", { class: "level", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(loss), y2: y(loss) }),
      drawn(
        "text",
        { class: "axis-text", x: WIDTH - EDGE.right, y: y(loss) - 5, "text-anchor": "end" },
        name,
      ),
    );
  }
  const line = (name) =>
    points
      .filter((point) => Number.isFinite(point[name]))
      .map((point) => `${x(point.step)},${y(point[name])}`)
      .join(" ");
  svg.append(
    drawn("polyline", { class: "train", points: line("train_loss") }),
    drawn("polyline", { class: "dev", points: line("dev_nll") }),
  );
  const dev = points.filter((point) => Number.isFinite(point.dev_nll));
  const best = dev.reduce((low, point) => (low === null || point.dev_nll < low.dev_nll ? point : low), null);
  for (const point of dev) {
    svg.append(
      drawn("circle", {
        class: point === best ? "best" : "point",
        r: point === best ? 6 : 3,
        cx: x(point.step),
        cy: y(point.dev_nll),
      }),
    );
  }
  return svg;
}

function padded(low, high) {
  const room = Math.max(0.08 * (high - low), 0.01);
  return [low - room, high + room];
}

/** About `wanted` round numbers from low to high. */
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + 1e-9; at += step)
    found.push(Number(at.toFixed(10)));
  return found;
}

function inWords(points) {
  if (!points.length) return "Learning curve: no points yet";
  const last = points.at(-1);
  return `Learning curve: held-out loss ${last.dev_nll.toFixed(3)} after ${last.step} steps`;
}
