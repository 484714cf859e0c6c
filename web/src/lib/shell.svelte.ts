/** Which parts of the shell are open: on small screens its sides are sheets. */

import { MediaQuery } from "svelte/reactivity";

class Shell {
  #small = new MediaQuery("(max-width: 700px)", false);
  #narrow = new MediaQuery("(max-width: 1080px)", false);
  /** The list of sessions, as a sheet. */
  side = $state(false);
  /** The panel of the next request, as a sheet. */
  aside = $state(false);
  /** Whether the panel is shown beside the conversation if there is room. */
  wantsAside = $state(true);
  /** Whether the palette and the shortcut sheet are open. */
  palette = $state(false);
  sheet = $state(false);

  get small(): boolean {
    return this.#small.current;
  }

  /** Too narrow for a panel on the right. */
  get narrow(): boolean {
    return this.#narrow.current;
  }
}

export const shell = new Shell();
