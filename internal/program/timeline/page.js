  // The requests: pages of those that fit the filter, with bars on an axis of their own.
  const form = document.getElementById("filter"), bars = document.getElementById("bars"), axis = document.getElementById("axis");
  const before = document.getElementById("before"), after = document.getElementById("after"), count = document.getElementById("count");
  const index = await part("index"), svg = "http://www.w3.org/2000/svg", page = 100, first = 6;
  const points = ["posted", "first byte out", "last byte out", "first byte in", "placed", "completed", "polled"];
  const phases = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6]];
  const make = (name, className, text) => {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const known = (r) => r.slice(first).filter((t) => t !== null);
  const time = (us) => us >= 1e6 ? (us / 1e6).toFixed(6) + " s" : us >= 1e3 ? (us / 1e3).toFixed(3) + " ms" : us.toFixed(1) + " µs";
  // span returns from when to when phase k of a request is, or null; it is what Request.spanOf is.
  function span(r, k) {
    let [a, b] = phases[k];
    if (r[1] && a === 2) a = 0;
    if (r[first + 3] === null && a === 4) a = 2;
    const from = r[first + a], to = r[first + b];
    return from === null || to === null || to < from ? null : [from, to];
  }
  function rect(picture, className, x, width) {
    const e = document.createElementNS(svg, "rect");
    e.setAttribute("class", className);
    for (const [name, v] of [["x", x.toFixed(3)], ["width", width.toFixed(3)], ["y", 0], ["height", 10]]) e.setAttribute(name, v);
    picture.append(e);
  }
  function draw(r, low, high) {
    const li = make("li"), label = make("p", r[5] ? "bad" : ""), picture = document.createElementNS(svg, "svg"), times = known(r);
    const scale = (t) => 1000 * (t - low) / Math.max(high - low, 0.001);
    const button = make("button", "", (r[5] ? "✗ " : "") + r[2] + " " + r[3] + ", " + r[4] + " bytes, " + time(Math.max(...times) - Math.min(...times)));
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    label.append(button);
    picture.setAttribute("viewBox", "0 0 1000 10");
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", r[2] + " from " + time(Math.min(...times)) + " to " + time(Math.max(...times)));
    phases.forEach((_, k) => {
      const s = span(r, k);
      if (s) rect(picture, "p" + k, scale(s[0]), Math.max(scale(s[1]) - scale(s[0]), 0.5));
    });
    if (r[first + 3] === null && r[first + 4] !== null) rect(picture, "peer", scale(r[first + 4]), 1.5);
    button.addEventListener("click", () => {
      const open = li.querySelector("dl");
      button.setAttribute("aria-expanded", String(!open));
      if (open) return open.remove();
      const list = make("dl");
      const add = (name, text) => { const d = make("div"); d.append(make("dt", "", name), make("dd", "", text)); list.append(d); };
      add("queue pair", r[0] + (r[1] ? ", receive queue" : ", send queue"));
      points.forEach((p, i) => { if (r[first + i] !== null) add(p, time(r[first + i])); });
      li.append(list);
    });
    li.append(label, picture);
    return li;
  }
  let search = 0, starts = [[0, 0]]; // where the pages begin that were shown: part and row

  async function show() {
    const mine = search, words = form.elements.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const queue = form.elements.queue.value, kind = form.elements.kind.value, found = [];
    let [piece, row] = starts[starts.length - 1];
    for (; piece < index.length && found.length < page; piece++, row = 0) {
      const rows = await part(index[piece]);
      if (mine !== search) return; // the filter has changed
      for (; row < rows.length && found.length < page; row++) {
        const r = rows[row], text = (r[2] + " " + r[3]).toLowerCase();
        if (queue && r[0] !== queue || kind === "send" && r[1] || kind === "recv" && !r[1] || kind === "failed" && !r[5]) continue;
        if (words.every((w) => text.includes(w)) && known(r).length) found.push(r);
      }
      if (row < rows.length) break;
    }
    const low = found.reduce((t, r) => Math.min(t, ...known(r)), Infinity), high = found.reduce((t, r) => Math.max(t, ...known(r)), 0);
    bars.replaceChildren(...found.map((r) => draw(r, low, high)));
    axis.replaceChildren(...(found.length ? [make("span", "", time(low)), make("span", "", "+ " + time(high - low))] : []));
    const end = piece >= index.length;
    before.hidden = starts.length === 1;
    after.hidden = end;
    after.onclick = () => { starts.push([piece, row]); return show(); };
    const from = (starts.length - 1) * page;
    count.value = found.length ? "requests " + (from + 1) + " to " + (from + found.length) : "no request";
  }
  const again = () => { search++; starts = [[0, 0]]; return show(); };
  before.addEventListener("click", () => { starts.pop(); return show(); });
  form.addEventListener("input", again);
  form.addEventListener("submit", (e) => e.preventDefault());
  form.hidden = false;
  await again();
