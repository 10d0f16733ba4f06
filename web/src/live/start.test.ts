import { afterEach, describe, expect, it, vi } from "vitest";
import { forgetFirst, takeFirst } from "../api/first";

describe("requests sent before the page loads", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("is used once, then requested again", () => {
    const answer = Promise.resolve(new Response("{}"));
    vi.stubGlobal("window", { ralphFirst: { "/me": answer } });
    expect(takeFirst("/me")).toBe(answer);
    expect(takeFirst("/me")).toBeUndefined();
    expect(takeFirst("/runs")).toBeUndefined();
  });

  it("is dropped if the user wasn't logged in", () => {
    vi.stubGlobal("window", { ralphFirst: { "/runs/a": Promise.resolve(new Response("{}", { status: 401 })) } });
    forgetFirst();
    expect(takeFirst("/runs/a")).toBeUndefined();
  });

  it("is empty if boot.js didn't run", () => {
    vi.stubGlobal("window", {});
    expect(takeFirst("/me")).toBeUndefined();
  });
});
