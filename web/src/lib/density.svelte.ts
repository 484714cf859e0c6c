/** The display density: all sizes of the app are in rem, so the root's size scales them. */

export type Density = "compact" | "roomy";
const STORED = "lamina.density";

class DensityChoice {
  value = $state<Density>(stored());

  set(value: Density): void {
    this.value = value;
    try {
      localStorage.setItem(STORED, value);
    } catch {
      // Without browser storage the choice lasts until the page is closed.
    }
    this.apply();
  }

  apply(): void {
    if (this.value === "roomy") document.documentElement.dataset.density = "roomy";
    else delete document.documentElement.dataset.density;
  }
}

function stored(): Density {
  try {
    return localStorage.getItem(STORED) === "roomy" ? "roomy" : "compact";
  } catch {
    return "compact";
  }
}

export const density = new DensityChoice();
