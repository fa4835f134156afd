// The filter, and links to cases. A link is #PLACE?NAME=VALUE&…: a place of the
// page, a filter, or both. Without scripts the page shows what failed.

  // What is compressed: lists of cases at once, exchanges and clauses when they are opened.
  for (const list of document.querySelectorAll("ol.cases[data-parts]"))
    for (const name of list.dataset.parts.trim().split(" ")) list.insertAdjacentHTML("beforeend", await part(name));
  async function fill(e) {
    const later = e.querySelector(":scope > .later, :scope > .body > .later");
    if (!later || later.dataset.asked) return;
    later.dataset.asked = "yes";
    later.outerHTML = (await part(later.dataset.part))[later.dataset.index];
  }
  const form = document.getElementById("filter");
  const cases = [...document.querySelectorAll("li.case")];
  const groups = [...document.querySelectorAll(".group")];
  const count = document.getElementById("count");
  const none = document.getElementById("none");
  const selects = ["rfc", "role", "level"];
  const boxes = [...form.elements.verdict];
  const texts = new Map(); // of the cases, for the search
  let place = "";          // the case that the link names: no filter hides it

  const textOf = (c) => {
    let text = texts.get(c);
    if (text === undefined) {
      const reason = c.querySelector(".reason");
      text = (c.querySelector("summary").textContent + " " + c.querySelector(".story").textContent + " " + (reason ? reason.textContent : "")).toLowerCase();
      texts.set(c, text);
    }
    return text;
  };

  function apply() {
    const words = form.elements.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = new Set(boxes.filter((b) => b.checked).map((b) => b.value));
    const wanted = selects.map((name) => [name, form.elements[name].value]).filter(([, value]) => value);
    let shown = 0;
    for (const c of cases) {
      const fits = verdicts.has(c.dataset.verdict) &&
        wanted.every(([name, value]) => c.dataset[name] === value) &&
        words.every((word) => textOf(c).includes(word));
      c.hidden = !fits && c.id !== place;
      if (!c.hidden) shown++;
    }
    for (const g of groups) g.hidden = !g.querySelector("li.case:not([hidden])");
    count.value = shown + " of " + cases.length + (cases.length === 1 ? " case" : " cases");
    none.hidden = shown > 0;
  }

  // write puts the filter into the address, so that the address shows the same.
  function write() {
    const params = new URLSearchParams();
    const checked = boxes.filter((b) => b.checked).map((b) => b.value);
    if (checked.length < boxes.length) params.set("verdict", checked.join(","));
    for (const name of [...selects, "q"]) {
      const value = form.elements[name].value.trim();
      if (value) params.set(name, value);
    }
    const query = params.toString();
    const hash = "#" + (place || "results") + (query ? "?" + query : "");
    try { history.replaceState(null, "", hash); } catch { /* some browsers forbid it to files */ }
  }

  // find returns the element of a place: a case may be named without its role.
  function find(id) {
    return document.getElementById(id) || cases.find((c) => c.id.startsWith(id + "@"));
  }

  // read follows the address.
  async function read() {
    let hash = location.hash.slice(1);
    const cut = hash.indexOf("?");
    if (cut >= 0) {
      const params = new URLSearchParams(hash.slice(cut + 1));
      hash = hash.slice(0, cut);
      const verdict = params.get("verdict");
      const wanted = verdict === null ? null : verdict.split(",");
      for (const b of boxes) b.checked = wanted === null || wanted.includes(b.value);
      for (const name of selects) {
        form.elements[name].value = params.get(name) || "";
        if (form.elements[name].selectedIndex < 0) form.elements[name].value = "";
      }
      form.elements.q.value = params.get("q") || "";
    }
    let target = null;
    try { hash = decodeURIComponent(hash); } catch { /* then it is no place of ours */ }
    if (hash.startsWith("clause-") && !find(hash)) for (const d of document.querySelectorAll("details.rfc")) await fill(d);
    if (hash) target = find(hash);
    const linked = target && target.matches("li.case") ? target : null;
    place = linked ? linked.id : "";
    for (const c of cases) c.classList.toggle("linked", c === linked);
    apply();
    if (!target) return;
    if (linked) {
      linked.querySelector("details").open = true;
      await fill(linked.querySelector("details"));
    }
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    target.scrollIntoView();
  }

  function setOpen(open) {
    for (const c of cases) if (!c.hidden) c.querySelector("details").open = open;
  }

  document.addEventListener("toggle", (e) => { if (e.target.open) fill(e.target); }, true);
  form.addEventListener("input", () => { place = ""; apply(); write(); });
  form.addEventListener("submit", (e) => e.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { place = ""; apply(); write(); }));
  document.getElementById("expand").addEventListener("click", () => setOpen(true));
  document.getElementById("collapse").addEventListener("click", () => setOpen(false));
  addEventListener("hashchange", read);

  // On paper nothing can be opened: show what is to be shown.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = cases.filter((c) => !c.hidden && /^(fail|inconclusive)$/.test(c.dataset.verdict)).map((c) => c.querySelector("details")).filter((d) => !d.open);
    for (const d of opened) d.open = true;
  });
  addEventListener("afterprint", () => { for (const d of opened) d.open = false; opened = []; });

  form.hidden = false;
  await read();
