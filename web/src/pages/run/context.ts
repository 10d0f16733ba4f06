import { createContext, useContext } from "react";
import type { RunView } from "../../api/types";
import type { RunSnapshot, RunStore } from "../../live/run-store";
import type { Ask } from "../../ui/dialog";

/** The run that the page shows, and how it is steered. */
export interface RunHere {
  id: string;
  store: RunStore;
  run: RunSnapshot;
  view: RunView;
  /** Opens a dialog that asks before it acts. */
  ask: (ask: Ask) => void;
  /** Sends an intervention at once. */
  send: (control: Parameters<RunStore["send"]>[0]) => Promise<void>;
  /** Why this person may not steer. */
  barred: string | null;
  mode: string;
}

export const RunContext = createContext<RunHere | null>(null);

export function useRunHere(): RunHere {
  const here = useContext(RunContext);
  if (!here) throw new Error("this part of the page belongs to a run");
  return here;
}
