// What the user sees while a layout takes long: how long it has taken, and a button that ends it.

const PATIENCE = 400; // milliseconds before anything is shown

export class Progress {
  private readonly box = document.createElement("div");
  private readonly words = document.createElement("span");
  private readonly button = document.createElement("button");
  private timer = 0;

  constructor(
    host: HTMLElement,
    private readonly cancel: () => void,
  ) {
    this.box.className = "progress";
    this.box.setAttribute("role", "status");
    this.box.hidden = true;
    this.button.type = "button";
    this.box.append(this.words, this.button);
    host.append(this.box);
  }

  begin(what: string): void {
    this.end();
    const start = performance.now();
    this.button.textContent = "Cancel";
    this.button.onclick = this.cancel;
    this.timer = window.setInterval(() => {
      this.words.textContent = `${what} … ${((performance.now() - start) / 1000).toFixed(0)} s`;
      this.box.hidden = false;
    }, PATIENCE);
  }

  end(): void {
    window.clearInterval(this.timer);
    this.box.hidden = true;
  }

  fail(message: string): void {
    this.end();
    this.words.textContent = message;
    this.button.textContent = "Close";
    this.button.onclick = () => this.end();
    this.box.hidden = false;
  }
}
