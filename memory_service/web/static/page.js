// Keys of the page: views by letters, items by j and k, help by ?. And what changes is put in as the server tells of it;
// what a person types, opens or reads stays. All of it can be done without.
(() => {
  "use strict";
  const typing = (element) => element.closest("input, textarea, select, [contenteditable]");
  const items = () => [...document.querySelectorAll("[data-item]")];
  let item = null;
  const move = (step) => {
    const all = items();
    if (!all.length) return;
    item?.classList.remove("at");
    item = all[Math.min(Math.max(all.indexOf(item) + step, 0), all.length - 1)];
    item.classList.add("at");
    item.tabIndex = -1;
    item.focus({ preventScroll: true });
    item.scrollIntoView({ block: "nearest" });
  };
  const decide = (what) => {
    const place = item?.querySelector(`[data-do="${what}"]`);
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
    const reviewing = document.querySelector("[data-do]") && item;
    if (reviewing && { y: "keep", e: "correct", d: "forget" }[key]) {
      if (decide({ y: "keep", e: "correct", d: "forget" }[key])) event.preventDefault();
      return;
    }
    if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
    else if (key === "Enter" && item && event.target === item) item.querySelector("a[href]:not(.link), summary")?.click();
    else if (key === "?") document.getElementById("help")?.showModal();
    else if (key === "/" && document.getElementById("q")) document.getElementById("q").focus();
    else {
      const link = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
      if (!link) return;
      link.click();
    }
    event.preventDefault();
  });
  // A second click on a button is not a second form.
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });
  document.addEventListener("htmx:after:swap", () => {
    if (!item?.isConnected) item = null;
    item?.classList.add("at");
  });

  // An address may name an item, or a fold.
  const arrive = () => {
    const place = document.getElementById(location.hash.slice(1));
    if (place?.matches("details")) place.open = true;
    if (!place?.matches("[data-item]")) return;
    item?.classList.remove("at");
    item = place;
    item.classList.add("at");
    item.tabIndex = -1;
    item.focus({ preventScroll: true });
  };
  addEventListener("hashchange", arrive);
  if (location.hash) arrive();

  // What the server could not do just now is asked for again: a page, and the last question of a search.
  let repeat = 0;
  const ask = async () => {
    try {
      if ((await fetch(location.href)).status !== 503) return location.reload();
    } catch { /* The server is away, too. */ }
    setTimeout(ask, 3000);
  };
  if (document.querySelector("main > [data-again]")) setTimeout(ask, 3000);
  document.addEventListener("htmx:before:request", () => clearTimeout(repeat));
  const unanswered = ({ target, detail: { ctx } }) => {
    if (!target.matches?.("search form") || (ctx?.response && ctx.response.status !== 503)) return;
    clearTimeout(repeat);
    repeat = setTimeout(() => target.requestSubmit(), 1000);
  };
  document.addEventListener("htmx:response:error", unanswered);
  document.addEventListener("htmx:error", unanswered);

  const filter = document.querySelector("[data-filter]");
  if (filter) filter.hidden = false;
  filter?.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const each of document.querySelectorAll(filter.dataset.filter)) {
      const text = `${each.title} ${each.textContent}`.toLowerCase();
      each.hidden = !words.every((word) => text.includes(word));
    }
  });

  const main = () => document.getElementById("main");
  if (!main().dataset.live) return;
  const { live, only, stream } = main().dataset;
  const stale = document.getElementById("stale");
  let source = null, timer = 0, retry = 0, pause = 2000, rest = 0, lost = false, busy = false, again = false;

  // A form that a person has begun with is left alone.
  const changed = (field) => field.options ? [...field.options].some((each) => each.selected !== each.defaultSelected)
    : /^(checkbox|radio)$/.test(field.type) ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
  const begun = () => [...main().querySelectorAll("form")].filter((form) => [...form.elements].some(
    (field) => field.defaultValue !== undefined && field.type !== "hidden" && changed(field)));
  const put = async (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const forms = begun();
    const gone = forms.some((form) => { const id = form.closest("[data-item]")?.id; return id && !fresh.getElementById(id); });
    stale.hidden = !(gone || !fresh.querySelector("main[data-live]"));
    if (!stale.hidden) return;
    for (const form of forms) form.setAttribute("hx-morph-skip", "");
    await htmx.swap({ text, target: "#main", select: "#main", swap: "outerMorph", sourceElement: main() });
    for (const form of forms) form.removeAttribute("hx-morph-skip");
  };
  const refresh = async () => {
    const from = performance.now(), address = location.href;
    [timer, busy, again] = [0, true, false];
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      const text = await answer.text();
      if (address === location.href) {
        if (answer.ok && !answer.redirected) await put(text);
        else stale.hidden = false;
      }
    } catch { stale.hidden = false; }
    // Of the time, a fifth at most.
    rest = performance.now() + Math.max(800, 4 * (performance.now() - from));
    busy = false;
    if (again) soon();
  };
  const soon = () => {
    if (busy) again = true;
    else timer ||= setTimeout(refresh, Math.max(80, rest - performance.now()));
  };
  // A bar moves without the page being asked for.
  const advance = (place, { state, done, total, eta_seconds: left }) => {
    const bar = place?.querySelector("progress");
    if (!bar || done === null || (state && state !== place.dataset.state)) return false;
    bar.max = total || 1;
    bar.value = done;
    place.querySelector(".count").textContent = `${done} / ${total}`;
    const shown = place.querySelector(".left");
    if (shown) shown.textContent = left ? ` · ${Math.round(left)} s` : "";
    return true;
  };
  const hear = (event) => {
    const { kind, session_id: session, fields } = JSON.parse(event.data);
    const name = session || fields.path;
    if (only && name && name !== only) return;
    const place = kind === "operation" ? document.getElementById(fields.operation_id)
      : kind === "index" ? document.getElementById("sync") : null;
    if (!advance(place, fields)) soon();
  };
  const open = () => {
    clearTimeout(retry);
    source?.close();
    source = new EventSource(stream);
    for (const kind of live.split(" ")) source.addEventListener(kind, hear);
    source.addEventListener("dropped", soon);
    source.onopen = () => {
      pause = 2000;
      // What happened meanwhile, a look at all of it shows; work may have ended since the page was made.
      if (lost || main().querySelector("[data-state=running], [data-state=queued]")) soon();
      lost = false;
    };
    source.onerror = () => {
      if (!lost) setTimeout(() => { if (lost) stale.hidden = false; }, 5000);
      lost = true;
      // The browser itself tries again, but not after an answer that is no stream.
      if (source.readyState !== EventSource.CLOSED) return;
      retry = setTimeout(open, pause);
      pause = Math.min(2 * pause, 60000);
    };
  };
  const close = () => { clearTimeout(retry); source?.close(); source = null; lost = true; };
  // A page that nobody sees listens to nothing: a browser has six connections to a server.
  document.addEventListener("visibilitychange", () => { document.hidden ? close() : open(); });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted) open(); });
  if (!document.hidden) open(); else lost = true;
})();
