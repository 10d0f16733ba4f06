import { describe, expect, it } from "vitest";
import { parse, racePath, runPath } from "./router";

describe("a race", () => {
  it("has an address by any of its runs", () => {
    expect(parse(racePath("20261115-143307-k3f9"), "")).toEqual({ page: "race", id: "20261115-143307-k3f9" });
    expect(parse("/races", "").page).toBe("lost");
  });
});

describe("addresses", () => {
  it("name pages and tabs", () => {
    expect(parse("/", "").page).toBe("runs");
    expect(parse("/runs/r-1/diff", "?iteration=3")).toMatchObject({ page: "run", id: "r-1", tab: "diff" });
    expect(parse("/settings", "")).toEqual({ page: "settings", sub: "browser" });
    expect(parse("/settings/unknown", "").page).toBe("lost");
    expect(parse("/runs/r-1/nope", "").page).toBe("lost");
    expect(parse("/runs/%E0%A4%A", "").page).toBe("run");
  });
  it("parse back to the same route", () => {
    const path = runPath("a/b c", "logs");
    expect(parse(path, "")).toMatchObject({ page: "run", id: "a/b c", tab: "logs" });
  });
});
