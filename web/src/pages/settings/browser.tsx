import { useState } from "react";
import { allowNotifications, notifications } from "../../lib/notify";
import { setTheme, useTheme, type Theme } from "../../lib/theme";
import { useMe } from "../../session";
import { Button, cx, Section } from "../../ui/basics";

const THEMES: [Theme, string][] = [["system", "System"], ["light", "Light"], ["dark", "Dark"]];

/** Settings of this browser. */
export function Browser() {
  const me = useMe();
  const theme = useTheme();
  const [allowed, setAllowed] = useState(notifications());
  return (
    <div className="pane narrow">
      <Section title="You">
        <p>{me.name}, {me.role} <span className="muted">· ralph {me.version}</span></p>
      </Section>
      <Section title="Theme">
        <div className="chips" role="group" aria-label="Theme">
          {THEMES.map(([id, label]) => <button key={id} type="button" className={cx("chip", theme === id && "chip-on")} aria-pressed={theme === id} onClick={() => setTheme(id)}>{label}</button>)}
        </div>
      </Section>
      <Section title="Notifications">
        <p className="muted">Notify me when a run needs me, is done, or has failed, while this page is open.</p>
        {allowed === "impossible" && <p>This browser doesn't support notifications.</p>}
        {allowed === "denied" && <p className="tone-attention">The browser blocks notifications for this page. Allow them in its site settings.</p>}
        {(allowed === "on" || allowed === "off") && (
          <Button onClick={() => void allowNotifications(allowed === "off").then(setAllowed)} aria-pressed={allowed === "on"}>{allowed === "on" ? "Turn off" : "Turn on"}</Button>
        )}
      </Section>
      <Section title="API">
        <p className="muted">This page uses the public API: <a href="/api/docs" target="_blank" rel="noopener noreferrer">API reference</a>.</p>
      </Section>
    </div>
  );
}
