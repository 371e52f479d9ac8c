// Elements of SVG. Text and values are set as such: nothing is ever parsed as markup.

const SPACE = "http://www.w3.org/2000/svg";

export type Attributes = Record<string, string | number | null | undefined>;

export function make<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: (SVGElement | null)[]
): SVGElementTagNameMap[Name] {
  const element = document.createElementNS(SPACE, name);
  for (const key in attributes) {
    const value = attributes[key];
    if (value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  for (const child of children) if (child) element.appendChild(child);
  return element;
}

export function text(content: string, attributes: Attributes): SVGTextElement {
  const element = make("text", attributes);
  element.textContent = content;
  return element;
}

export function title(content: string): SVGTitleElement {
  const element = make("title");
  element.textContent = content;
  return element;
}
