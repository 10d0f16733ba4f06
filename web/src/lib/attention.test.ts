import { describe, expect, it } from "vitest";
import type { RunRow } from "../api/types";
import { attentionOf, iconOf, tabTitle } from "./attention";

const row = (status: RunRow["status"], driven = true) => ({ status, driven }) as RunRow;

describe("the browser's tab", () => {
  it("counts the runs that need you", () => {
    expect(tabTitle("Runs · ralph", 2)).toBe("(2) Runs · ralph");
    expect(tabTitle("Runs · ralph", 0)).toBe("Runs · ralph");
    expect(attentionOf([row("needs you"), row("needs you"), row("done")])).toEqual({ needs: 2, working: false });
    expect([attentionOf([row("working")]).working, attentionOf([row("working", false)]).working]).toEqual([true, false]);
  });
  it("has another icon for each state", () => {
    const icons = [{ needs: 1, working: true, finished: true }, { needs: 0, working: true, finished: true }, { needs: 0, working: true, finished: false }, { needs: 0, working: false, finished: false }].map(iconOf);
    expect(new Set(icons).size).toBe(4);
  });
});
