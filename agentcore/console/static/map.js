// Draws the map of memories, and chooses those inside a lasso, of a color or of a region.
"use strict";

const SHADES = 7; // values with a color of their own; the others share the last one
const AGES = 5;
const POINT = 2.5;
const REGIONS = ["left", "middle", "right"];
const ROWS = ["Top", "Center", "Bottom"];

// Returns the groups of the points for a field: a name, and the places of its points.
function groupsOf(points, field) {
  if (field === "times") return ageGroups(points);
  const members = points.values[field].map((name) => ({ name, places: [] }));
  points[field].forEach((value, place) => members[value].places.push(place));
  members.sort((one, other) => other.places.length - one.places.length);
  const groups = members.slice(0, SHADES).map((each, shade) => ({ ...each, key: `shade-${shade}` }));
  const others = members.slice(SHADES);
  if (others.length) {
    const places = others.flatMap((each) => each.places).sort((one, other) => one - other);
    groups.push({ name: `${others.length} others`, places, key: `shade-${SHADES}` });
  }
  return groups;
}

// Fifths by time; the points are sorted, the newest first.
function ageGroups(points) {
  const count = points.times.length;
  const groups = [];
  for (let fifth = 0; fifth < AGES; fifth++) {
    const start = Math.round((fifth * count) / AGES), end = Math.round(((fifth + 1) * count) / AGES);
    if (start === end) continue;
    const [newest, oldest] = [points.times[start], points.times[end - 1]].map((each) =>
      new Date(each * 1000).toISOString().slice(0, 10));
    const places = Array.from({ length: end - start }, (_, offset) => start + offset);
    groups.push({ name: `${oldest} to ${newest}`, places, key: `age-${fifth}` });
  }
  return groups;
}

// Whether a point is inside a polygon: a ray from it crosses the outline an odd number of times.
function isInside(x, y, outline) {
  let inside = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const [xi, yi] = outline[i], [xj, yj] = outline[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

class MemoryMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.points = JSON.parse(canvas.dataset.points);
    canvas.removeAttribute("data-points");
    this.most = Number(canvas.dataset.most);
    this.all = Array.from(this.points.ids, (_, place) => place);
    this.chosen = new Set();
    this.lasso = [];
    this.select = document.getElementById("color-by");
    this.select.addEventListener("change", () => this.group());
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.lasso = [[event.offsetX, event.offsetY]];
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.lasso.length) return;
      this.lasso.push([event.offsetX, event.offsetY]);
      this.drawSoon();
    });
    canvas.addEventListener("pointerup", () => this.endLasso());
    canvas.addEventListener("pointercancel", () => { this.lasso = []; this.drawSoon(); });
    new ResizeObserver(() => this.drawSoon()).observe(canvas);
    new MutationObserver(() => this.drawSoon()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawSoon());
    this.listRegions();
    this.group();
  }

  // A button for each color; their colors are those of the points.
  group() {
    this.groups = groupsOf(this.points, this.select.value);
    document.getElementById("legend").replaceChildren(...this.groups.map((group) => {
      const key = document.createElement("span");
      key.className = `key ${group.key}`;
      const name = document.createElement("bdi");
      name.textContent = group.name;
      const button = this.button(group.places, key, name, `: ${group.places.length.toLocaleString("en")}`);
      button.setAttribute("aria-label", `List ${group.name}: ${group.places.length.toLocaleString("en")} memories`);
      return button;
    }));
    this.drawSoon();
  }

  listRegions() {
    const third = (value) => Math.min(2, Math.floor(((value + 1) * 3) / 2));
    const places = Array.from({ length: 9 }, () => []);
    for (const place of this.all) places[3 * third(-this.points.y[place]) + third(this.points.x[place])].push(place);
    document.getElementById("regions").replaceChildren(...places.map((each, region) => {
      const button = this.button(each, `${ROWS[Math.floor(region / 3)]} ${REGIONS[region % 3]}: ${each.length.toLocaleString("en")}`);
      button.disabled = !each.length;
      return button;
    }));
  }

  button(places, ...content) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.append(...content);
    button.addEventListener("click", () => this.choose(places));
    return button;
  }

  place(index, width, height) {
    const margin = 3 * POINT;
    return [
      margin + ((this.points.x[index] + 1) / 2) * (width - 2 * margin),
      margin + ((1 - this.points.y[index]) / 2) * (height - 2 * margin),
    ];
  }

  endLasso() {
    const { clientWidth, clientHeight } = this.canvas;
    const outline = this.lasso;
    this.lasso = [];
    if (outline.length < 3) return this.drawSoon();
    this.choose(this.all.filter((each) => isInside(...this.place(each, clientWidth, clientHeight), outline)));
  }

  // Lists the newest of these memories below the map.
  choose(places) {
    const listed = places.slice(0, this.most);
    this.chosen = new Set(places);
    const count = places.length.toLocaleString("en");
    document.getElementById("choice").textContent = !places.length
      ? "No memory is inside the line."
      : `${count} chosen${listed.length < places.length ? `; the newest ${listed.length} are listed` : ""}.`;
    this.drawSoon();
    if (!places.length) return document.getElementById("chosen").replaceChildren();
    const form = document.getElementById("choose");
    form.elements.memory_ids.value = listed.map((each) => this.points.ids[each]).join(",");
    form.requestSubmit();
  }

  drawSoon() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  draw() {
    const { canvas } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const keys = document.querySelectorAll("#legend .key");
    this.groups.forEach((group, number) => {
      pen.fillStyle = getComputedStyle(keys[number]).backgroundColor;
      for (const each of group.places) {
        const [x, y] = this.place(each, width, height);
        pen.globalAlpha = !this.chosen.size || this.chosen.has(each) ? 0.85 : 0.2;
        pen.fillRect(x - POINT, y - POINT, 2 * POINT, 2 * POINT);
      }
    });
    pen.globalAlpha = 1;
    if (this.lasso.length < 2) return;
    pen.strokeStyle = getComputedStyle(canvas).color;
    pen.setLineDash([4, 3]);
    pen.beginPath();
    this.lasso.forEach(([x, y]) => pen.lineTo(x, y));
    pen.closePath();
    pen.stroke();
  }
}

// The map arrives after the page.
new MutationObserver(() => {
  const canvas = document.querySelector("canvas[data-points]");
  if (canvas) new MemoryMap(canvas);
}).observe(document.body, { childList: true, subtree: true });
