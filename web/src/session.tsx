// The user and their role. The server enforces it; the page only hides what would be refused.

import { createContext, useContext } from "react";
import type { Me } from "./api/types";

export const Session = createContext<Me>({ name: "", role: "viewer", csrf: "", version: "" });

export function useMe(): Me {
  return useContext(Session);
}

/** Why the user can't control runs; null if they can. */
export function useMaySteer(): string | null {
  return useMe().role === "viewer" ? "Viewers can't control runs" : null;
}

export function useIsAdmin(): boolean {
  return useMe().role === "admin";
}
