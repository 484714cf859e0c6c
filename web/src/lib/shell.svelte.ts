/** What of the shell is open: on small screens its sides are sheets. */

import { MediaQuery } from "svelte/reactivity";

class Shell {
  #small = new MediaQuery("(max-width: 700px)", false);
  #narrow = new MediaQuery("(max-width: 1080px)", false);
  /** The list of sessions, as a sheet. */
  side = $state(false);
  /** The panel of the request to come, as a sheet. */
  aside = $state(false);
  /** Whether the panel stands beside the conversation where there is room. */
  wantsAside = $state(true);
  /** What to open for these keys: set by those who build the palette and the sheet of keys. */
  palette = $state(false);
  sheet = $state(false);

  get small(): boolean {
    return this.#small.current;
  }

  /** Too narrow for a panel at the right. */
  get narrow(): boolean {
    return this.#narrow.current;
  }
}

export const shell = new Shell();
