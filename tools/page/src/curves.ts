// The curves of edges: cubic Bezier splines, as x and y of their points.

import type { Point } from "./camera.ts";

const HEAD = 7; // length of an arrow head

export type Curve = Float64Array;

export function reversed(curve: Curve): Curve {
  const made = new Float64Array(curve.length);
  for (let at = 0; at < curve.length; at += 2) {
    made[at] = curve[curve.length - at - 2] ?? 0;
    made[at + 1] = curve[curve.length - at - 1] ?? 0;
  }
  return made;
}

/** The `d` of a path. */
export function pathOf(curve: Curve): string {
  if (curve.length < 8) return "";
  let out = `M${short(curve[0])},${short(curve[1])}C`;
  for (let at = 2; at < curve.length; at += 2) out += `${short(curve[at])},${short(curve[at + 1])} `;
  return out;
}

/** The head of an arrow at the end of a curve. */
export function headOf(curve: Curve): string {
  const count = curve.length;
  if (count < 4) return "";
  const [x, y] = [curve[count - 2] ?? 0, curve[count - 1] ?? 0];
  let [dx, dy] = [0, -1];
  for (let at = count - 4; at >= 0; at -= 2) {
    [dx, dy] = [(curve[at] ?? 0) - x, (curve[at + 1] ?? 0) - y];
    if (Math.hypot(dx, dy) > 0.5) break;
  }
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  const [bx, by] = [x + ux * HEAD, y + uy * HEAD];
  const wing = HEAD * 0.42;
  return `M${short(x)},${short(y)}L${short(bx - uy * wing)},${short(by + ux * wing)} ${short(bx + uy * wing)},${short(by - ux * wing)}Z`;
}

/** The point in the middle of a curve. */
export function middleOf(curve: Curve): Point {
  const pieces = Math.floor((curve.length / 2 - 1) / 3);
  const piece = Math.floor(pieces / 2);
  const at = (index: number, axis: number) => curve[2 * (3 * piece + index) + axis] ?? 0;
  if (pieces % 2 === 0) return { x: at(0, 0), y: at(0, 1) };
  const blend = (axis: number) => (at(0, axis) + 3 * at(1, axis) + 3 * at(2, axis) + at(3, axis)) / 8;
  return { x: blend(0), y: blend(1) };
}

/** The point of a curve that is nearest to its middle and not below a height. */
export function pointAbove(curve: Curve, y: number): Point {
  const middle = middleOf(curve);
  if (middle.y <= y) return middle;
  let best: Point = { x: curve[0] ?? 0, y: Math.min(curve[1] ?? 0, y) };
  for (let at = 0; at + 7 < curve.length; at += 6) {
    for (let part = 0; part <= 1; part += 0.1) {
      const blend = (axis: number) => {
        const [a = 0, b = 0, c = 0, d = 0] = [0, 2, 4, 6].map((offset) => curve[at + offset + axis]);
        const rest = 1 - part;
        return rest ** 3 * a + 3 * rest ** 2 * part * b + 3 * rest * part ** 2 * c + part ** 3 * d;
      };
      if (blend(1) <= y && blend(1) > best.y - 1) best = { x: blend(0), y: blend(1) };
    }
  }
  return best;
}

function short(value: number | undefined): string {
  return (Math.round((value ?? 0) * 10) / 10).toString();
}
