// Keys of the page: views by letters, items by j and k, help by ?. All of it can be done without.
(() => {
  "use strict";
  const typing = (element) => element.closest("input, textarea, select, [contenteditable]");
  const items = () => [...document.querySelectorAll("[data-item]")];
  let at = -1;
  const move = (step) => {
    const all = items();
    if (!all.length) return;
    all[at]?.classList.remove("at");
    at = Math.min(Math.max(at + step, 0), all.length - 1);
    const item = all[at];
    item.classList.add("at");
    item.tabIndex = -1;
    item.focus({ preventScroll: true });
    item.scrollIntoView({ block: "nearest" });
  };
  const decide = (what) => {
    const place = items()[at]?.querySelector(`[data-do="${what}"]`);
    if (!place) return false;
    if (what === "keep") move(1);
    else if (what === "forget") place.requestSubmit();
    else { place.open = true; place.querySelector("textarea").focus(); }
    return true;
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { document.activeElement?.blur(); return; }
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    const key = event.key;
    const reviewing = document.querySelector("[data-do]") && at >= 0;
    if (reviewing && { y: "keep", e: "correct", d: "forget" }[key]) {
      if (decide({ y: "keep", e: "correct", d: "forget" }[key])) event.preventDefault();
      return;
    }
    if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
    else if (key === "Enter" && at >= 0 && event.target === items()[at]) items()[at].querySelector("a[href]")?.click();
    else if (key === "?") document.getElementById("help").showModal();
    else if (key === "/" && document.getElementById("q")) document.getElementById("q").focus();
    else {
      const link = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
      if (!link) return;
      link.click();
    }
    event.preventDefault();
  });
  document.addEventListener("htmx:after:swap", () => { at = -1; });
})();
