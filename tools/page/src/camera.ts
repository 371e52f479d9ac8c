// What part of a drawing a pane shows: dragging moves it, the wheel and two fingers zoom.

export interface Point {
  x: number;
  y: number;
}

const [SMALLEST, LARGEST] = [0.01, 4];
const DRAG = 4; // pixels before a press becomes a drag

export class Camera {
  x = 0; // of the drawing's origin, in pixels of the pane
  y = 0;
  scale = 1;
  moved = false; // whether the last press was a drag
  private readonly pointers = new Map<number, Point>();

  /** `change` is called with what a user's move did: a shift in pixels, and a factor about a point of the pane. */
  constructor(
    private readonly pane: SVGSVGElement,
    private readonly change: (shift: Point, factor: number, about: Point) => void,
  ) {
    pane.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    pane.addEventListener("pointerdown", (event) => this.press(event));
    pane.addEventListener("pointermove", (event) => this.move(event));
    pane.addEventListener("pointerup", (event) => this.release(event));
    pane.addEventListener("pointercancel", (event) => this.release(event));
  }

  get width(): number {
    return this.pane.clientWidth || 800;
  }

  get height(): number {
    return this.pane.clientHeight || 600;
  }

  shift(by: Point): void {
    this.x += by.x;
    this.y += by.y;
  }

  zoom(factor: number, about: Point): void {
    const scale = clamp(this.scale * factor, SMALLEST, LARGEST);
    const real = scale / this.scale;
    this.x = about.x - (about.x - this.x) * real;
    this.y = about.y - (about.y - this.y) * real;
    this.scale = scale;
  }

  /** Put a point of the drawing at a point of the pane. */
  put(point: Point, at: Point): void {
    this.x = at.x - point.x * this.scale;
    this.y = at.y - point.y * this.scale;
  }

  toScreen(point: Point): Point {
    return { x: this.x + point.x * this.scale, y: this.y + point.y * this.scale };
  }

  toDrawing(point: Point): Point {
    return { x: (point.x - this.x) / this.scale, y: (point.y - this.y) / this.scale };
  }

  get middle(): Point {
    return { x: this.width / 2, y: this.height / 2 };
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 20 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const x = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
      this.change({ x: -x * unit, y: 0 }, 1, this.middle);
      return;
    }
    const strength = event.ctrlKey ? 0.01 : 0.0016;
    this.change({ x: 0, y: 0 }, Math.exp(-clamp(event.deltaY * unit, -240, 240) * strength), this.pointOf(event));
  }

  private pointOf(event: MouseEvent): Point {
    const frame = this.pane.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  }

  private press(event: PointerEvent): void {
    if (event.button > 1) return;
    this.pointers.set(event.pointerId, this.pointOf(event));
    if (this.pointers.size === 1) this.moved = false;
  }

  private move(event: PointerEvent): void {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    if (!event.buttons) {
      this.release(event);
      return;
    }
    const now = this.pointOf(event);
    const shift = { x: now.x - before.x, y: now.y - before.y };
    if (!this.moved && Math.hypot(shift.x, shift.y) < DRAG) return;
    if (!this.moved) this.pane.setPointerCapture(event.pointerId);
    this.moved = true;
    this.pointers.set(event.pointerId, now);
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (!other) {
      this.change(shift, 1, this.middle);
      return;
    }
    const distance = (point: Point) => Math.max(10, Math.hypot(point.x - other.x, point.y - other.y));
    const about = { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 };
    this.change({ x: shift.x / 2, y: shift.y / 2 }, distance(now) / distance(before), about);
  }

  private release(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
  }
}

export function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
