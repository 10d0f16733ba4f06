import { describe, expect, it } from "vitest";
import { pieces } from "./ansi";

describe("colors of a terminal", () => {
  it("become pieces with classes", () => {
    expect(pieces("\u001b[1;31mfailed\u001b[0m: 3")).toEqual([
      { text: "failed", style: "ansi-bold ansi-red" },
      { text: ": 3", style: "" },
    ]);
  });
  it("of 256 and of millions become the nearest of eight", () => {
    expect(pieces("\u001b[38;5;196mx")[0]?.style).toBe("ansi-red");
    expect(pieces("\u001b[38;2;10;200;10mx")[0]?.style).toBe("ansi-green");
  });
  it("leave nothing else of an escape sequence", () => {
    expect(pieces("\u001b[2J\u001b[Hok")).toEqual([{ text: "ok", style: "" }]);
  });
  it("survive nonsense", () => {
    expect(pieces("\u001b[38;5mx\u001b[999my")).toHaveLength(2);
  });
});
