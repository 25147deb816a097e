"use strict";
(() => {
  const root = document.documentElement;
  const numbers = JSON.parse(document.getElementById("numbers").textContent);
  const NARROW = 560;

  // --- theme: that of the system until the button is pressed; remembered where that is allowed

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");

  function remembered() {
    try { return localStorage.getItem("kspan-theme"); } catch { return null; }
  }

  function remember(theme) {
    try { localStorage.setItem("kspan-theme", theme); } catch { /* a file may not store */ }
  }

  function theme() {
    return root.dataset.theme || (dark.matches ? "dark" : "light");
  }

  function themed() {
    button.textContent = theme() === "dark" ? "Light theme" : "Dark theme";
    draw();
  }

  // --- figures

  function colours() {
    const style = getComputedStyle(root);
    return (name) => style.getPropertyValue("--" + name).trim();
  }

  // A copy in which tokens such as "@accent" are colours; only where a colour belongs.
  function painted(value, colour, key = "") {
    if (Array.isArray(value)) return value.map((item) => painted(item, colour));
    if (value && typeof value === "object") {
      return Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, painted(item, colour, name)]));
    }
    if (typeof value !== "string" || value[0] !== "@") return value;
    if (key === "colorscale") {
      return [[0, colour("negative")], [0.5, colour("zero")], [1, colour("positive")]];
    }
    return key.endsWith("color") ? colour(value.slice(1)) : value;
  }

  function layoutOf(chart, colour, narrow) {
    const layout = painted(
      narrow ? { ...chart.layout, ...chart.narrow } : chart.layout, colour);
    const axes = {
      gridcolor: colour("line"), linecolor: colour("edge"), zerolinecolor: colour("line"),
      tickcolor: colour("edge"), tickfont: { color: colour("ink") },
    };
    return {
      ...layout,
      height: chart.height,
      xaxis: titled({ ...axes, ...layout.xaxis }, colour),
      yaxis: titled({ ...axes, ...layout.yaxis }, colour),
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: colour("sans"), size: 13, color: colour("ink") },
      hoverlabel: {
        bgcolor: colour("sheet"), bordercolor: colour("edge"), align: "left",
        font: { family: colour("sans"), color: colour("ink") },
      },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("muted"), activecolor: colour("ink") },
      margin: { l: 10, r: 12, t: 40, b: 10 },
      dragmode: narrow ? false : "zoom", // a finger on a figure scrolls the page
    };
  }

  function titled(axis, colour) {
    if (axis.title) axis.title = { ...axis.title, font: { size: 13, color: colour("muted") }, standoff: 12 };
    return axis;
  }

  function draw() {
    if (!window.Plotly) return; // not unpacked yet
    const colour = colours();
    const narrow = window.innerWidth < NARROW;
    for (const chart of numbers.charts) {
      Plotly.react(
        document.getElementById("figure-" + chart.key),
        painted(chart.data, colour).map((trace) => narrow ? { ...trace, showscale: false } : trace),
        layoutOf(chart, colour, narrow),
        { responsive: true, displaylogo: false, typesetMath: false, displayModeBar: narrow ? false : "hover",
          modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
          toImageButtonOptions: { filename: "kspan-" + chart.key } });
    }
  }

  // --- the table of features; `numbers.rows` has its exact values, in the order of the page

  const table = document.getElementById("features");
  const body = table.tBodies[0];
  const lines = Array.from(body.rows);
  const compare = new Intl.Collator("en", { numeric: true }).compare;

  function sort(head, column) {
    const text = column === 0;
    const before = head.getAttribute("aria-sort");
    const first = text || column === 1 ? "ascending" : "descending";
    const other = first === "ascending" ? "descending" : "ascending";
    const way = before === first ? other : first;
    const sign = way === "ascending" ? 1 : -1;
    const value = (line) => numbers.rows[line.dataset.row][column];
    const ordered = [...lines].sort((a, b) =>
      sign * (text ? compare(value(a), value(b)) : value(a) - value(b)) || a.dataset.row - b.dataset.row);
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way);
    body.append(...ordered);
  }

  for (const head of table.tHead.rows[0].cells) {
    const press = head.querySelector("button");
    press.addEventListener("click", () => sort(head, Number(press.dataset.column)));
  }

  const filter = document.getElementById("filter");
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    let count = 0;
    for (const line of lines) {
      const name = String(numbers.rows[line.dataset.row][0]).toLowerCase();
      line.hidden = !name.includes(wanted);
      count += line.hidden ? 0 : 1;
    }
    document.getElementById("shown").textContent = `${count} of ${numbers.rows.length} features`;
  });

  // --- CSV: texts in quotes, numbers to the last digit

  function quoted(value) {
    return typeof value === "number" ? String(value) : '"' + String(value).replaceAll('"', '""') + '"';
  }

  document.getElementById("csv").addEventListener("click", () => {
    const rows = [numbers.columns, ...numbers.rows];
    const text = rows.map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    link.download = "features.csv";
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  // --- plotly is packed, as it is most of this file

  async function unpack() {
    const letters = atob(document.getElementById("plotly").textContent);
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const code = document.createElement("script");
    code.textContent = await new Response(stream).text();
    document.head.append(code); // it runs at once
    code.remove();
    draw();
  }

  // --- start

  const chosen = remembered();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    remember(root.dataset.theme);
    themed();
  });
  dark.addEventListener("change", themed);
  let beforePrint;
  window.addEventListener("beforeprint", () => { // ink on paper
    beforePrint = root.dataset.theme;
    root.dataset.theme = "light";
    draw();
  });
  window.addEventListener("afterprint", () => {
    if (beforePrint) root.dataset.theme = beforePrint; else delete root.dataset.theme;
    draw();
  });
  let wasNarrow = window.innerWidth < NARROW;
  window.addEventListener("resize", () => {
    if (wasNarrow !== (window.innerWidth < NARROW)) draw();
    wasNarrow = window.innerWidth < NARROW;
  });
  themed();
  unpack().catch(() => { document.getElementById("unseen").hidden = false; });
})();
