import { afterEach, describe, expect, it, vi } from "vitest";
import { forgetFirst, takeFirst } from "../api/first";

describe("what was asked before the page was there", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("is taken once, and asked anew afterwards", () => {
    const answer = Promise.resolve(new Response("{}"));
    vi.stubGlobal("window", { ralphFirst: { "/me": answer } });
    expect(takeFirst("/me")).toBe(answer);
    expect(takeFirst("/me")).toBeUndefined();
    expect(takeFirst("/runs")).toBeUndefined();
  });

  it("is forgotten where nobody was logged in", () => {
    vi.stubGlobal("window", { ralphFirst: { "/runs/a": Promise.resolve(new Response("{}", { status: 401 })) } });
    forgetFirst();
    expect(takeFirst("/runs/a")).toBeUndefined();
  });

  it("is nothing where the first script did not run", () => {
    vi.stubGlobal("window", {});
    expect(takeFirst("/me")).toBeUndefined();
  });
});
