  // The ladder: pieces are decompressed one after the other until enough rows fit the filter.
  const form = document.getElementById("filter"), ladder = document.getElementById("ladder");
  const more = document.getElementById("more"), count = document.getElementById("count");
  const index = await part("index");
  const make = (name, className, text) => {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const lanes = (r) => "vn".includes(r[4]) ? "middle note" : (r[3] ? "right" : "left") + " arrow" + (r[4] === "t" ? " wrong" : "");
  function draw(r) {
    const li = make("li", lanes(r)), lane = make("div", "lane");
    li.append(make("span", "at", r[0].toFixed(6)), lane);
    const who = make("span", "vh", (r[3] ? "server" : "client") + ": ");
    const p = make("p", r[4] === "v" ? "bad" : "");
    p.append(who, r[5]);
    p.title = "connection " + r[2] + ", packet " + r[1];
    lane.append(p);
    return li;
  }
  const page = 300;
  let search = 0, piece = 0, row = 0, shown = 0, connection = 0;

  async function show() {
    const mine = search, words = form.elements.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const only = Number(form.elements.connection.value), wanted = form.elements.kind.value;
    let left = page;
    const found = document.createDocumentFragment();
    for (; piece < index.length && left > 0; piece++, row = 0) {
      const x = index[piece];
      if (only && (only < x.first || only > x.last)) continue;
      if (wanted && ![...wanted].some((k) => x.kinds.includes(k))) continue;
      const rows = await part(x.part);
      if (mine !== search) return; // the filter has changed
      for (; row < rows.length && left > 0; row++) {
        const r = rows[row];
        if (only && r[2] !== only || wanted && !wanted.includes(r[4])) continue;
        const text = r[5].toLowerCase();
        if (!words.every((w) => text.includes(w))) continue;
        if (r[2] !== connection) {
          connection = r[2];
          const head = make("li", "ends"), lane = make("div", "lane");
          lane.append(make("span", "", "client"), make("span", "", "connection " + connection), make("span", "", "server"));
          head.append(make("span", "at", "seconds"), lane);
          found.append(head);
        }
        found.append(draw(r));
        left--; shown++;
      }
      if (row < rows.length) break;
    }
    ladder.append(found);
    const end = piece >= index.length;
    more.hidden = end;
    count.value = end ? shown + (shown === 1 ? " event" : " events") : "the first " + shown;
  }
  async function again() {
    search++; piece = row = shown = connection = 0;
    ladder.replaceChildren();
    await show();
  }
  form.addEventListener("input", again);
  form.addEventListener("submit", (e) => e.preventDefault());
  more.addEventListener("click", show);
  form.hidden = false;

  // Charts, drawn of what the page holds for each connection.
  const charted = document.getElementById("charted");
  if (charted) {
    const all = await part("charts"), at = document.getElementById("charts");
    const svg = "http://www.w3.org/2000/svg";
    function chart(title, unit, s, lines) {
      const most = Math.max(...lines.flat());
      if (!(most > 0)) return;
      const figure = make("figure", "chart"), n = lines[0].length, picture = document.createElementNS(svg, "svg");
      const round = most >= 100 ? Math.round(most).toLocaleString("en") : String(+most.toPrecision(3));
      figure.append(make("figcaption", "", title + ": at most " + round + " " + unit + "; from " + s.begin.toFixed(6) + " s to " + (s.begin + n * s.width).toFixed(6) + " s"));
      picture.setAttribute("viewBox", "0 0 " + n + " 100");
      picture.setAttribute("preserveAspectRatio", "none");
      picture.setAttribute("role", "img");
      picture.setAttribute("aria-label", title);
      lines.forEach((line, i) => {
        const path = document.createElementNS(svg, "path");
        path.setAttribute("class", lines.length > 1 && i === 0 ? "c" : "s");
        path.setAttribute("d", "M" + line.map((y, x) => x + " " + (97 - 94 * y / most).toFixed(1) + "H" + (x + 1)).join("L"));
        picture.append(path);
      });
      figure.append(picture);
      at.append(figure);
    }
    const charts = () => {
      at.replaceChildren();
      const s = all[charted.value];
      chart("Throughput", "MB/s", s, s.bytes.map((line) => line.map((b) => b / s.width / 1e6)));
      chart("Reads outstanding", "Reads", s, s.open);
      chart("Credits granted", "credits", s, [s.credits]);
      if (!at.firstChild) at.append(make("p", "note", "This connection carried no data."));
    };
    charted.addEventListener("input", charts);
    charts();
  }
  await again();
