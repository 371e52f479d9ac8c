// The scale of differences: which class a difference has. graph.css gives each class its colour (--heat-0 to --heat-6).

export interface HeatClass {
  index: number;
  from: number; // the smallest difference, as a multiple of the tolerance
  text: string;
}

const BOUNDS = [0, 1e-3, 1e-1, 1, 10, 100, 1000];

/** The classes from the smallest to the largest difference; classes 3 and above are beyond the tolerance. */
export const HEAT_CLASSES: readonly HeatClass[] = BOUNDS.map((from, index) => ({
  index,
  from,
  text: index === BOUNDS.length - 1 ? `${from} x the tolerance and more` : `${from} to ${BOUNDS[index + 1]} x the tolerance`,
}));

/** The class of a difference, given as a multiple of the tolerance. A difference that is no number is in the last. */
export function heatClass(worst: number): number {
  if (!Number.isFinite(worst)) return BOUNDS.length - 1;
  return BOUNDS.findLastIndex((from) => worst >= from);
}
