// Texts in the picture: their widths, and how they are shortened. Names come from models and may hold anything.

const SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/** The fonts of graph.css; a test of the page compares them. */
export const FONTS = {
  title: `600 12px ${SANS}`,
  text: `11px ${SANS}`,
  line: `10px ${MONO}`,
  label: `10px ${SANS}`,
} as const;

export type Font = keyof typeof FONTS;

const LONGEST = 160; // characters that are measured
const KEPT = 20000; // widths in memory

const widths = new Map<string, number>();
const fits = new Map<string, string>();
let context: CanvasRenderingContext2D | null = null;

/** The width of a text in pixels. */
export function widthOf(text: string, font: Font): number {
  const key = font + text;
  const found = widths.get(key);
  if (found !== undefined) return found;
  context ??= document.createElement("canvas").getContext("2d");
  let width = text.length * 6.5;
  if (context) {
    context.font = FONTS[font];
    width = context.measureText(text).width;
  }
  if (widths.size > KEPT) widths.clear();
  widths.set(key, width);
  return width;
}

/** A text that is at most as wide as told; what is too long loses its middle. */
export function fit(text: string, font: Font, width: number): string {
  if (text.length > LONGEST) return fitted(text, font, width);
  const key = `${font} ${width} ${text}`;
  const found = fits.get(key);
  if (found !== undefined) return found;
  const made = fitted(text, font, width);
  if (fits.size > KEPT) fits.clear();
  fits.set(key, made);
  return made;
}

function fitted(text: string, font: Font, width: number): string {
  const letters = Array.from(plain(text.length > 4 * LONGEST ? text.slice(0, LONGEST) + text.slice(-LONGEST) : text));
  const tooLong = text.length > 4 * LONGEST || letters.length > LONGEST;
  if (!tooLong && widthOf(letters.join(""), font) <= width) return letters.join("");
  let [fits, fails] = [0, Math.min(letters.length, LONGEST)];
  while (fails - fits > 1) {
    const middle = (fits + fails) >> 1;
    if (widthOf(shortened(letters, middle), font) <= width) fits = middle;
    else fails = middle;
  }
  return shortened(letters, fits);
}

function shortened(letters: readonly string[], kept: number): string {
  const head = Math.ceil(kept / 2);
  return `${letters.slice(0, head).join("")}\u2026${letters.slice(letters.length - (kept - head)).join("")}`;
}

/** A text without characters that control a terminal, a line or a direction: each is shown as a sign. */
export function plain(text: string): string {
  return text
    .replace(/[\u0000-\u001f]/g, (letter) => String.fromCharCode(0x2400 + letter.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Cs}/gu, "\u00b7");
}
