// Copies text, and saves files.

type Say = (text: string) => void;

/** Put a text on the clipboard, and say so. */
export async function copyText(text: string, what: string, say: Say): Promise<void> {
  const done = (await byClipboard(text)) || bySelection(text);
  say(done ? `${what} is copied.` : "The browser does not let this page copy.");
}

async function byClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // no permission, or a page of a file
  }
}

function bySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sr";
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}

export function linkHere(): string {
  return location.href;
}

/** Offer a text as a file. */
export function saveFile(text: string, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name.replace(/[^\w.-]+/g, "_").slice(0, 80);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
