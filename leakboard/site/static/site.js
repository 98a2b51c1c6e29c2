// What the pages do beyond HTML: charts (Plotly), sorting and filtering (DataTables), one view of a board at a time,
// the victim that keeps most privacy at a chosen loss, and downloads. No request goes anywhere.
"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const here = document.currentScript.src;
const dark = window.matchMedia("(prefers-color-scheme: dark)");

// A page that stands alone carries its libraries, and what is long in itself (data-part: an id), compressed.
async function unpack() {
  for (const source of all("script[type='application/gzip']")) {
    const bytes = Uint8Array.from(atob(source.textContent), (letter) => letter.charCodeAt(0));
    const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    const place = document.getElementById(source.dataset.part);
    if (place) place.innerHTML = text;
    else document.head.append(Object.assign(document.createElement("script"), { textContent: text }));
    source.remove();
  }
}

// Charts take their colours from the page, so that they are readable in light and dark.
function themed(layout) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axes = Object.keys(layout).filter((key) => /^[xy]axis/.test(key));
  const lines = { gridcolor: colour("--line"), linecolor: colour("--soft"), tickcolor: colour("--soft") };
  const changed = Object.fromEntries(axes.map((key) => [key, { ...layout[key], ...lines }]));
  const hover = { bgcolor: colour("--sheet"), bordercolor: colour("--soft"), font: { color: colour("--ink") }, align: "left" };
  return { ...layout, ...changed, font: { ...layout.font, color: colour("--ink") }, hoverlabel: hover };
}

// Plotly is large: a page without charts does not read it, and the tables of the others do not wait for it.
let plotly;

function load(name) {
  return new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), { onload: resolve, onerror: reject });
    script.src = new URL(name, here);
    document.head.append(script);
  });
}

// A chart is drawn again when the window changes: one drawing after the other, since names are placed by pixels.
function draw(box) {
  box.drawn = (box.drawn ?? Promise.resolve()).catch(() => {}).then(() => drawOnce(box));
  return box.drawn;
}

async function drawOnce(box) {
  if (!window.Plotly) await (plotly ??= load("plotly.min.js"));
  const source = document.querySelector(`script[data-chart="${box.id}"]`);
  const { data, layout } = JSON.parse(source.textContent);
  // a chart that Plotly updates instead has no elements for names that were left out before
  await Plotly.newPlot(box, data, themed(layout), { displaylogo: false, displayModeBar: false });
  await placeNames(box);
  box.on("plotly_click", ({ points }) => {
    const row = document.querySelector(`tr[data-slug="${points[0].customdata}"] a`);
    if (row) location.href = row.href;
    else if (String(points[0].customdata).endsWith(".html")) location.href = points[0].customdata;
  });
}

// Put each name where it hides no point and no other name, rings and the first points first; without room it is shown
// on hover.
const SIDES = ["top center", "bottom center", "middle right", "middle left", "top right", "bottom right", "top left", "bottom left"];
const TOWARDS = { top: -1, left: -1, middle: 0, center: 0, right: 1, bottom: 1 };
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

async function placeNames(box) {
  const area = box.querySelector(".nsewdrag")?.getBoundingClientRect();
  const isRing = (group) => group.__data__[0].trace.hoverinfo === "skip";
  const groups = all(".scatterlayer .trace", box).filter((group) => group.querySelector(".textpoint"))
    .sort((a, b) => isRing(b) - isRing(a));
  if (!area || !groups.length) return;
  const points = groups.map((group) => all(".points path", group).map((path) => path.getBoundingClientRect()));
  const taken = [...points.flat(), ...all(".annotation", box).map((note) => note.getBoundingClientRect())];
  for (const [i, group] of groups.entries()) {
    const { index, text, marker } = group.__data__[0].trace;
    const distance = marker.size / 1.6 + 1; // of the text from the middle of the point, as Plotly computes it
    const [shown, sides] = [text.map(() => ""), text.map(() => SIDES[0])];
    for (const label of all(".textpoint", group)) {
      const j = label.__data__.i; // Plotly may leave out the element of an empty name
      const { width, height } = label.getBoundingClientRect();
      const point = points[i][j];
      const [x, y] = [(point.left + point.right) / 2, (point.top + point.bottom) / 2];
      for (const side of text[j] ? SIDES : []) {
        const [down, right] = side.split(" ").map((word) => TOWARDS[word]);
        const left = x + right * distance + ((right - 1) / 2) * width;
        const top = y + down * distance + ((down - 1) / 2) * height;
        const place = { left, top, right: left + width, bottom: top + height };
        const inside = left >= area.left && place.right <= area.right && top >= area.top && place.bottom <= area.bottom;
        if (inside && !taken.some((other) => meet(other, place))) {
          taken.push(place);
          [shown[j], sides[j]] = [text[j], side];
          break;
        }
      }
    }
    await Plotly.restyle(box, { text: [shown], textposition: [sides] }, [index]);
  }
}

// Browsers may lay out what lies in closed details: hundreds of charts that nobody sees.
const seen = (box) => box.offsetParent && !box.closest("details:not([open])");
const drawVisible = () => Promise.all(all(".chart").filter(seen).map(draw));

function sortable(table) {
  new DataTable(table, {
    paging: false, info: false, autoWidth: false, order: [],
    searching: table.rows.length > 12, language: { search: "Filter" },
  });
}

// A row unfolds below itself, in the whole width of the table; without scripts it unfolds in its first cell.
function unfold(details) {
  const row = DataTable.Api ? new DataTable.Api(details.closest("table")).row(details.closest("tr")) : null;
  if (!row) return;
  if (details.open) row.child(details.querySelector(".folded").cloneNode(true), "unfolded").show();
  else row.child.hide();
}

function show(id) {
  all(".view").forEach((view) => { view.hidden = view.id !== id; });
  const picker = document.getElementById("view-picker");
  if (picker) picker.value = id;
  drawVisible();
}

function followAnchor() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const view = target.closest(".view");
  if (view && view.hidden) show(view.id);
  const details = target.closest("details");
  if (details) details.open = true;
  target.scrollIntoView({ block: target.matches("tr") ? "center" : "start" });
}

// The same rule as in the page's own text (choices.py): most privacy within the loss, ties where intervals overlap.
function keepsMost(view, loss) {
  const least = Number(view.querySelector(".answer").dataset.reference) - loss / 100 - 1e-9;
  const rows = all("tr[data-privacy]", view).map((row) => ({ row, ...row.dataset }));
  const number = (entry, key) => Number(entry[key] ?? entry.privacy);
  const allowed = rows.filter((entry) => Number(entry.utility) >= least);
  const best = allowed.reduce((first, next) => (Number(next.privacy) > Number(first.privacy) ? next : first));
  const ties = allowed.filter((entry) => entry !== best
    && number(entry, "low") <= number(best, "high") && number(best, "low") <= number(entry, "high"));
  const reference = allowed.find((entry) => entry.slug === view.querySelector(".answer").dataset.undefended);
  const noBetter = reference !== undefined
    && !allowed.some((entry) => number(entry, "low") > number(reference, "high"));
  const linkedFirst = allowed.every((entry) => entry.first !== undefined)
    ? Math.min(...allowed.map((entry) => Number(entry.first))) : 0;
  return { best, ties, noBetter, linkedFirst };
}

function tellChoice(view, typed) {
  const loss = Number(typed);
  if (typed === "" || !(loss >= 0)) return;
  const { best, ties, noBetter, linkedFirst } = keepsMost(view, loss);
  const hidesNothing = linkedFirst > 0.5;
  all("tr.chosen", view).forEach((row) => row.classList.remove("chosen"));
  const [bold, isolated] = ["b", "bdi"].map((name) => (text) => {
    const element = document.createElement(name);
    element.textContent = text;
    return element;
  });
  const { utility, best: first } = view.querySelector(".answer").dataset;
  if (!noBetter && !hidesNothing) best.row.classList.add("chosen");
  const limit = `at a loss of at most ${loss} point${loss === 1 ? "" : "s"}`;
  const firstRight = `the attacker's first candidate is right for at least ${linkedFirst.toFixed(3)} of the vectors`;
  const parts = hidesNothing
    ? [
      bold("No victim hides its texts"), ` ${limit}: ${firstRight}. A thief is least sure of its links with `, isolated(best.victim),
      `, where it links ${(1 - best.privacy).toFixed(3)} with one false link in a hundred. Privacy is`,
    ]
    : noBetter
    ? [bold("No defence keeps measurably more than none"), ` ${limit}. The highest value is that of `, isolated(best.victim), ":"]
    : [`${limit.replace("at", "At")} `, bold(best.victim), " keeps most privacy:"];
  parts.push(` ${Number(best.privacy).toFixed(3)} at a ${utility} of ${Number(best.utility).toFixed(3)}.`);
  if (best.verdict) parts.push(` Its privacy claim: ${best.verdict}.`);
  if (ties.length) {
    parts.push(` Its interval overlaps ${ties.length === 1 ? "that of 1 other victim" : `those of ${ties.length} other victims`}: `);
    ties.forEach((tie, i) => parts.push(isolated(tie.victim), i < ties.length - 1 ? "; " : "."));
  }
  view.querySelector(".result").replaceChildren(...parts);
  view.querySelector(".had").hidden = best.slug !== first;
}

function download(kind) {
  const source = document.getElementById("table-data");
  const { csv, columns, rows } = JSON.parse(source.textContent);
  const records = () => rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
  const text = kind === "csv" ? csv : JSON.stringify(records(), null, 1);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind === "csv" ? "text/csv" : "application/json" }));
  link.download = `${source.dataset.name}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function start() {
  await unpack();
  all("table.sortable").forEach(sortable);
  all("table.sortable details.more").forEach((details) => details.addEventListener("toggle", () => unfold(details)));
  const picker = document.getElementById("view-picker");
  if (picker) {
    picker.closest(".picker").hidden = false;
    picker.addEventListener("change", () => { show(picker.value); history.replaceState(null, "", `#${picker.value}`); });
    show(picker.value);
  }
  for (const view of all(".view").filter((one) => one.querySelector(".answer"))) {
    const input = view.querySelector(".control input");
    view.querySelector(".control").hidden = false;
    input.addEventListener("input", () => tellChoice(view, input.value));
    tellChoice(view, input.value);
  }
  all("[data-download]").forEach((button) => button.addEventListener("click", () => download(button.dataset.download)));
  all("details:not(.more)").forEach((details) => details.addEventListener("toggle", drawVisible));
  window.addEventListener("hashchange", followAnchor);
  let resized;
  window.addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(drawVisible, 200); });
  [dark, window.matchMedia("print")].forEach((medium) => medium.addEventListener("change", drawVisible));
  await drawVisible();
  followAnchor();
  document.documentElement.dataset.ready = "yes";
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
