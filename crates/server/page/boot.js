// Before anything is painted: the theme that this browser chose last.
try {
  var chosen = localStorage.getItem("ralph.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch (_) {
  // Storage may be forbidden; the system's theme is used then.
}
// The first questions are asked while the page's own code is still on its way (`api/first.ts` takes the answers).
(function () {
  var first = (window.ralphFirst = {});
  function ask(path) {
    first[path] = fetch("/api/v1" + path, { headers: { accept: "application/json" }, credentials: "same-origin" });
    first[path].catch(function () {});
  }
  // A code in the address logs in before anything can be asked.
  if (location.hash.indexOf("#code=") === 0) return;
  ask("/me");
  if (location.pathname === "/" && location.search === "") ask("/runs?sort=updated&order=desc&limit=100");
  var run = /^\/runs\/([\w-]+)/.exec(location.pathname);
  if (run) ask("/runs/" + run[1]);
})();
