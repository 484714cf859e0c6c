/** Light, dark, or the system setting. */

export type Theme = "auto" | "light" | "dark";
const STORED = "lamina.theme";

class ThemeChoice {
  value = $state<Theme>(stored());

  set(value: Theme): void {
    this.value = value;
    try {
      localStorage.setItem(STORED, value);
    } catch {
      // Without browser storage the choice lasts until the page is closed.
    }
    this.apply();
  }

  next(): void {
    this.set(this.value === "auto" ? "light" : this.value === "light" ? "dark" : "auto");
  }

  apply(): void {
    if (this.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.value;
  }
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(STORED);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

export const theme = new ThemeChoice();
