import { lazy, Suspense, useCallback, useEffect, useState } from "react";
import { api } from "./api/calls";
import { asProblem, setCsrf, whenLoggedOut, type Problem } from "./api/client";
import type { Me } from "./api/types";
import { watchAttention } from "./lib/attention";
import { useKeys } from "./lib/keys";
import { watchForNotifications } from "./lib/notify";
import { isDark, setTheme } from "./lib/theme";
import { runsLive } from "./live/list-store";
import { Login } from "./pages/login";
import { Runs } from "./pages/runs";
import { go, useRoute, type Route } from "./router";
import { Session } from "./session";
import { Empty, ProblemNote, Skeleton } from "./ui/basics";
import { Boundary } from "./ui/boundary";
import { Shell } from "./ui/shell";
import { Toasts } from "./ui/toast";

/** The code of a run's page, fetched at once if one is opened, else when the browser is idle. */
export const loadRunPage = () => import("./pages/run/run").then((all) => ({ default: all.RunPage }));

const RunPage = lazy(loadRunPage);
const NewRun = lazy(() => import("./pages/new-run"));
const Board = lazy(() => import("./pages/board"));
const RacePage = lazy(() => import("./pages/race"));
const Costs = lazy(() => import("./pages/costs"));
const Settings = lazy(() => import("./pages/settings/settings"));
const Palette = lazy(() => import("./ui/palette"));
const KeySheet = lazy(() => import("./ui/key-sheet"));

type Who = { state: "asking" } | { state: "out" } | { state: "here"; me: Me } | { state: "away"; problem: Problem };

/** The command line puts a login code behind `#`, so it never reaches a server's log. */
function codeInAddress(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

export function App({ start }: { start: Me | null }) {
  const [who, setWho] = useState<Who>(start ? { state: "here", me: start } : { state: "asking" });
  const [codeProblem, setCodeProblem] = useState<Problem | null>(null);
  const ask = useCallback(async () => {
    try {
      const me = await api.me();
      setCsrf(me.csrf);
      setWho({ state: "here", me });
    } catch (error) {
      const problem = asProblem(error);
      setWho(problem.status === 401 ? { state: "out" } : { state: "away", problem });
    }
  }, []);
  useEffect(() => {
    whenLoggedOut(() => setWho({ state: "out" }));
    const code = codeInAddress();
    if (code === null) {
      if (!start) void ask();
      return;
    }
    api.login({ code }).catch((error: unknown) => setCodeProblem(asProblem(error))).finally(() => void ask());
  }, [ask, start]);
  useEffect(() => {
    if (who.state !== "away") return;
    const timer = setTimeout(() => void ask(), 3000);
    return () => clearTimeout(timer);
  }, [who, ask]);

  if (who.state === "asking") return <Splash />;
  if (who.state === "out") return <Login problem={codeProblem} onDone={() => void ask()} />;
  if (who.state === "away") {
    return (
      <main className="login">
        <ProblemNote problem={who.problem} retry={() => void ask()} />
      </main>
    );
  }
  return (
    <Session.Provider value={who.me}>
      <Inside onLogout={() => setWho({ state: "out" })} />
    </Session.Provider>
  );
}

function Splash() {
  return (
    <main className="login" aria-busy>
      <Skeleton lines={3} />
    </main>
  );
}

function Inside({ onLogout }: { onLogout: () => void }) {
  const route = useRoute();
  const [open, setOpen] = useState<"palette" | "keys" | null>(null);
  useEffect(() => {
    runsLive.open();
    const stops = [watchForNotifications(), watchAttention()];
    // The next page is most likely a run's.
    const later = setTimeout(() => void loadRunPage().catch(() => null), 1500);
    return () => {
      clearTimeout(later);
      stops.forEach((stop) => stop());
      runsLive.close();
    };
  }, []);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
        event.preventDefault();
        setOpen((now) => (now === "palette" ? null : "palette"));
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  useKeys(
    [
      { keys: "?", what: "Keyboard shortcuts", group: "everywhere" },
      { keys: "g r", what: "Go to the runs", group: "everywhere" },
      { keys: "g b", what: "Go to the board", group: "everywhere" },
      { keys: "g c", what: "Go to the costs", group: "everywhere" },
      { keys: "g s", what: "Go to the settings", group: "everywhere" },
      { keys: "c", what: "New run", group: "everywhere" },
      { keys: "t", what: "Light or dark", group: "everywhere" },
    ],
    (keys) => {
      if (keys === "?") setOpen("keys");
      else if (keys === "g r") go("/");
      else if (keys === "g b") go("/board");
      else if (keys === "g c") go("/costs");
      else if (keys === "g s") go("/settings");
      else if (keys === "c") go("/new");
      else if (keys === "t") setTheme(isDark() ? "light" : "dark");
    },
  );
  const logout = async () => {
    await api.logout().catch(() => null);
    onLogout();
  };
  return (
    <>
      <Shell route={route} onPalette={() => setOpen("palette")} onKeys={() => setOpen("keys")} onLogout={() => void logout()}>
        <Boundary key={route.page}>
          <Suspense fallback={<main className="page"><Skeleton lines={8} /></main>}>
            <Page route={route} />
          </Suspense>
        </Boundary>
      </Shell>
      <Suspense fallback={null}>
        {open === "palette" && <Palette onClose={() => setOpen(null)} />}
        {open === "keys" && <KeySheet onClose={() => setOpen(null)} />}
      </Suspense>
      <Toasts />
    </>
  );
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "runs":
      return <Runs query={route.query} />;
    case "board":
      return <Board />;
    case "new":
      return <NewRun />;
    case "run":
      return <RunPage key={route.id} id={route.id} tab={route.tab} query={route.query} />;
    case "race":
      return <RacePage key={route.id} id={route.id} />;
    case "costs":
      return <Costs query={route.query} />;
    case "settings":
      return <Settings sub={route.sub} />;
    case "lost":
      return (
        <main className="page">
          <Empty title="Page not found">
            <p className="muted">
              <a href="/">All runs</a>
            </p>
          </Empty>
        </main>
      );
  }
}
