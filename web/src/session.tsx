// Who looks at the page, and what they may do. The server enforces it; the page only does not offer what would be refused.

import { createContext, useContext } from "react";
import type { Me } from "./api/types";

export const Session = createContext<Me>({ name: "", role: "viewer", csrf: "", version: "" });

export function useMe(): Me {
  return useContext(Session);
}

/** Why this person may not steer; `null` where they may. */
export function useMaySteer(): string | null {
  return useMe().role === "viewer" ? "Viewers may look, not steer" : null;
}

export function useIsAdmin(): boolean {
  return useMe().role === "admin";
}
