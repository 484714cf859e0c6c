/** The verdict of a verification: only proven requests are verified, and unprovable ones are not broken. */

import { count, exact } from "../../lib/numbers";
import type { IconName } from "../../ui";
import type { SessionCheck } from "./types";

export interface VerifyVerdict {
  label: string;
  words: string;
  tone: "good" | "warn" | "bad" | "plain";
  icon: IconName;
}

export function verdictOf(check: SessionCheck): VerifyVerdict {
  if (check.state === "broken") {
    const wrong = check.wrong.length;
    const label = wrong ? `${count(wrong, "request")} not as sent` : "damaged";
    return { label, words: "Something does not match the record.", tone: "bad", icon: "warning" };
  }
  if (check.requests === 0) {
    return { label: "nothing to verify", words: "No requests sent yet.", tone: "plain", icon: "info" };
  }
  if (check.state === "sound") {
    return { label: "verified", words: "Every request was rebuilt from the journal and matches what was sent, byte for byte.", tone: "good", icon: "check" };
  }
  return {
    label: `${exact(check.rebuilt)} of ${exact(check.requests)} verified`,
    words: "Nothing contradicts the record, but not all of it can be proven.",
    tone: "warn",
    icon: "info",
  };
}
