// Light or dark: the root element has data-theme, also where the choice is left to the system.

import type { Shown, Store } from "./store.ts";

const KEY = "mo_loop theme";
type Theme = Shown["theme"];

/** The choice of an earlier visit; pages of files may have no storage. */
export function storedTheme(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "auto";
  } catch {
    return "auto";
  }
}

export function followTheme(store: Store): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const { theme } = store.get();
    document.documentElement.dataset["theme"] = theme === "auto" ? (system.matches ? "dark" : "light") : theme;
  };
  system.addEventListener("change", apply);
  store.subscribe((shown, before) => {
    if (shown.theme === before.theme) return;
    apply();
    try {
      localStorage.setItem(KEY, shown.theme);
    } catch {
      // this page has no storage; the choice holds while it is open
    }
  });
  apply();
}
