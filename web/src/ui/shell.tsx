import { useState, type ReactNode } from "react";
import { useRunsLive, runsLive } from "../live/list-store";
import { useNow, useWide } from "../lib/hooks";
import { span } from "../lib/format";
import { isDark, setTheme, useTheme } from "../lib/theme";
import { useMe } from "../session";
import type { Route } from "../router";
import { A, Button, cx } from "./basics";
import { Menu } from "./menu";
import { go } from "../router";

interface ShellProps {
  route: Route;
  onPalette: () => void;
  onKeys: () => void;
  onLogout: () => void;
  children: ReactNode;
}

/** The frame of every page: navigation, user, connection state. */
export function Shell({ route, onPalette, onKeys, onLogout, children }: ShellProps) {
  const me = useMe();
  useTheme();
  const wide = useWide(700);
  const needs = useNeeds();
  const nav = (
    <nav className="nav" aria-label="Pages">
      <A href="/" aria-current={route.page === "runs" || route.page === "run" ? "page" : undefined}>
        Runs
        {needs > 0 && <span className="badge" title={`${needs} need you`}>{needs}<span className="sr-only"> need you</span></span>}
      </A>
      <A href="/board" aria-current={route.page === "board" ? "page" : undefined}>Board</A>
      <A href="/costs" aria-current={route.page === "costs" ? "page" : undefined}>Costs</A>
      <A href="/settings" aria-current={route.page === "settings" ? "page" : undefined}>Settings</A>
    </nav>
  );
  return (
    <div className="shell">
      <a className="skip" href="#main">Skip to the content</a>
      <header className="top">
        <A href="/" className="brand" aria-label="ralph, all runs">
          <Logo /> <span>ralph</span>
        </A>
        {wide && nav}
        <span className="top-space" />
        <button type="button" className="palette-button" onClick={onPalette} aria-label={wide ? undefined : "Search and commands"}>
          <SearchIcon />
          {wide && <span>Search or jump to …</span>}
          {wide && <kbd aria-hidden>{/Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘K" : "Ctrl K"}</kbd>}
        </button>
        <Button look="primary" onClick={() => go("/new")} className="new-button" disabled={me.role === "viewer"} title={me.role === "viewer" ? "Viewers can't start runs" : "New run (c)"}>
          <span aria-hidden>+</span> <span className={wide ? undefined : "sr-only"}>New run</span>
        </Button>
        <button type="button" className="icon" aria-label={isDark() ? "Light theme" : "Dark theme"} title="Light or dark (t)" onClick={() => setTheme(isDark() ? "light" : "dark")}>
          {isDark() ? <SunIcon /> : <MoonIcon />}
        </button>
        {wide && (
          <button type="button" className="icon" aria-label="Keys" title="Keys (?)" onClick={onKeys}>
            ?
          </button>
        )}
        <Menu
          name={`${me.name}, ${me.role}`}
          className="button-quiet who"
          label={<span className="who-letter" aria-hidden>{(me.name[0] ?? "?").toUpperCase()}</span>}
          items={[
            { label: `${me.name} · ${me.role}`, run: () => go("/settings") },
            "line",
            { label: "Settings", hint: "g s", run: () => go("/settings") },
            { label: "Keys", hint: "?", run: onKeys },
            "line",
            { label: "Log out", run: onLogout },
          ]}
        />
      </header>
      <LinkBanner />
      {children}
      {!wide && <div className="bottom-nav">{nav}</div>}
    </div>
  );
}

function useNeeds(): number {
  const { rows, gone } = useRunsLive();
  let n = 0;
  for (const row of rows.values()) if (row.status === "needs you" && !gone.has(row.id)) n++;
  return n;
}

/** A warning while the page isn't live. */
function LinkBanner() {
  const { link, retryAt } = useRunsLive();
  const now = useNow();
  const [since, setSince] = useState<number | null>(null);
  if (link === "live") {
    if (since !== null) setSince(null);
    return null;
  }
  if (link === "offline" && since === null) setSince(now);
  // A short connect isn't worth a message.
  if (since === null || now - since < 1500) return null;
  return (
    <div className={cx("banner banner-offline")} role="status">
      <span>
        <strong>Connection lost.</strong> Your runs continue. Last update {span((now - since) / 1000)} ago.
        {retryAt !== null && retryAt > now && <> Trying again in {span((retryAt - now) / 1000)}.</>}
      </span>
      <Button small onClick={runsLive.retry}>Try now</Button>
    </div>
  );
}

function Logo() {
  return (
    <svg viewBox="0 0 32 32" width="18" height="18" aria-hidden fill="none" stroke="currentColor" strokeWidth="3.4" strokeLinecap="round" strokeLinejoin="round">
      <path d="M25 10.500A11 11 0 1 0 27 16" />
      <path d="M27 4v7h-7" />
    </svg>
  );
}
export function SearchIcon() {
  return (
    <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden fill="none" stroke="currentColor" strokeWidth="1.5">
      <circle cx="7" cy="7" r="4.5" />
      <path d="m10.5 10.5 3.5 3.5" strokeLinecap="round" />
    </svg>
  );
}
function MoonIcon() {
  return (
    <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinejoin="round">
      <path d="M13.5 9.800A6 6 0 0 1 6.2 2.500a6 6 0 1 0 7.300 7.300Z" />
    </svg>
  );
}
function SunIcon() {
  return (
    <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round">
      <circle cx="8" cy="8" r="3" />
      <path d="M8 1v1.500M8 13.500V15M1 8h1.500M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1" />
    </svg>
  );
}
