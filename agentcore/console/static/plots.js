// Draws each element with data-plot: lines over time, from JSON; drawn again every ten seconds and with the theme.
"use strict";

const plots = new Map();

// A canvas does not know variables: an element resolves them.
function color(name) {
  const probe = document.body.appendChild(document.createElement("span"));
  probe.style.color = `var(${name})`;
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

function newestOf(lines, data) {
  const newest = lines.map(([key, label]) => [label, data[key]?.findLast((value) => value !== null)]);
  const known = newest.filter(([, value]) => value !== undefined && value !== null);
  return known.map(([label, value]) => `${label} ${Math.round(value * 10) / 10}`).join(", ") || "no values yet";
}

function draw(element, data) {
  const { name, unit } = element.dataset;
  const lines = JSON.parse(element.dataset.lines).filter(([key]) => data[key]?.some((value) => value !== null));
  plots.get(element)?.destroy();
  element.replaceChildren();
  const daily = element.dataset.plot.endsWith("days.json");
  const caption = document.createElement("p");
  caption.className = "hint";
  caption.textContent = data.at.length ? `${unit}; newest: ${newestOf(lines, data)}` : element.dataset.empty;
  element.append(caption);
  if (!data.at.length || !lines.length) return;
  const axis = { stroke: color("--hint"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const bars = uPlot.paths.bars({ size: [0.8, 24] });
  const series = lines.map(([, label], place) => ({
    label,
    stroke: color(`--shade-${place}`),
    width: 2,
    spanGaps: false,
    points: { show: !daily && data.at.length < 60, size: 4 },
    ...(daily ? { paths: bars, fill: color(`--shade-${place}`) } : {}),
  }));
  const options = {
    width: Math.max(200, element.clientWidth),
    height: 200,
    axes: [daily ? axis : { ...axis, values: "{HH}:{mm}", incrs: [60, 300, 900, 1800] }, { ...axis, size: 56 }],
    scales: { y: { range: (plot, least, most) => [0, most > 0 ? most * 1.1 : 1] } },
    legend: { live: true },
    series: [{}, ...series],
  };
  // Stacked by day: each bar is drawn to the sum of its layer and those after it.
  const values = lines.map(([key]) => data[key]);
  const stacked = values.map((_, place) => data.at.map((_, at) => values.slice(place).reduce((sum, each) => sum + each[at], 0)));
  if (daily) series.forEach((each, place) => (each.value = (plot, _, __, at) => (at === null ? "--" : values[place][at])));
  const plot = new uPlot(options, [data.at, ...(daily ? stacked : values)], element);
  const canvas = element.querySelector("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${name}: ${caption.textContent}`);
  plots.set(element, plot);
}

// Data by source, and when it was read: days change seldom, and counting them costs more.
const sources = new Map();
const SECONDS = { "days.json": 300, "metrics.json": 10 };

async function refresh() {
  for (const source of new Set([...document.querySelectorAll("[data-plot]")].map((each) => each.dataset.plot))) {
    const seconds = SECONDS[source.split("/").pop()];
    if (Date.now() - (sources.get(source)?.at ?? 0) < 900 * seconds) continue;
    const answer = await fetch(source, { headers: { "HX-Request": "true" } });
    sources.set(source, { at: Date.now(), data: answer.ok ? await answer.json() : null, status: answer.status });
    drawAll(source);
  }
}

function drawAll(only) {
  for (const element of document.querySelectorAll("[data-plot]")) {
    const { data, status } = sources.get(element.dataset.plot) ?? {};
    if (only && element.dataset.plot !== only) continue;
    if (data) draw(element, data);
    else if (status) element.textContent = `The figures could not be read (status ${status}).`;
  }
}

let pending;
function drawSoon() {
  clearTimeout(pending);
  pending = setTimeout(() => drawAll(), 150);
}

refresh();
setInterval(() => document.hidden || refresh(), 10_000);
new MutationObserver(drawSoon).observe(document.documentElement, { attributeFilter: ["data-theme"] });
addEventListener("resize", drawSoon);
