/* The map of a space: pointer, touch and arrow keys show a sample, the legend shows one class, and the other map, another
   column or the pictures themselves can be chosen. It reads the JSON beside the picture and writes nothing but text. */
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const NEAR = 110;
  const DIRECTIONS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

  for (const figure of document.querySelectorAll("figure[data-map]")) live(figure, JSON.parse(figure.dataset.map));

  function live(figure, told) {
    const find = (selector) => figure.querySelector(selector);
    const plane = find("svg.plane");
    const [group, ring] = [plane.querySelector("g"), plane.querySelector("circle")];
    const [looked, crop, words, sheet] = [find(".looked"), find(".looked canvas"), find(".looked p"), find("img.cells")];
    const [legend, layer, column] = [find(".legend"), find("canvas.pictures"), find("select")];
    const [columns, width, height] = told.sheet;
    const [left, top, wide, tall] = plane.getAttribute("viewBox").split(" ").map(Number);
    const count = told.rows.length;
    let kind = Object.keys(told.maps)[0];
    let chosen = null;
    let here = null;

    const coloured = () => told.columns[column ? Number(column.value) : 0];
    const code = (at) => (coloured() ? coloured().codes[at] : 0);
    const place = (at) => [told.maps[kind][2 * at], told.maps[kind][2 * at + 1]];
    const share = (at) => [(place(at)[0] - left) / wide, (place(at)[1] - top) / tall];
    const shown = (at) => chosen === null || code(at) === chosen;
    const colour = (of) => (of < told.shown ? `k${of % told.colours}` : "kx");
    const sign = (of) => told.signs[of < told.shown ? of % told.signs.length : 0];

    function draw() {
      const lines = new Map();
      for (let at = 0; at < count; at += 1) {
        const [x, y] = place(at);
        lines.set(code(at), `${lines.get(code(at)) ?? ""}M${x},${y}${sign(code(at))}`);
      }
      group.replaceChildren(...[...lines].sort(([one], [other]) => one - other).map(([of, line]) => {
        const path = document.createElementNS(SVG, "path");
        path.setAttribute("class", chosen === null || of === chosen ? colour(of) : `${colour(of)} faint`);
        path.setAttribute("d", line);
        return path;
      }));
      pictures();
      if (here !== null) show(here);
    }

    function list() {
      const held = coloured();
      if (!held) return;
      const present = [...new Set(held.codes)].sort((one, other) => one - other).slice(0, told.shown);
      legend.replaceChildren(...present.map((of) => {
        const [item, button, svg, path, name] = ["li", "button"].map((tag) => document.createElement(tag))
          .concat(["svg", "path"].map((tag) => document.createElementNS(SVG, tag)), document.createElement("bdi"));
        svg.setAttribute("class", "sign");
        svg.setAttribute("viewBox", "-26 -26 52 52");
        svg.setAttribute("aria-hidden", "true");
        path.setAttribute("class", colour(of));
        path.setAttribute("d", `M0,0${sign(of)}`);
        svg.append(path);
        name.textContent = held.classes[of];
        button.type = "button";
        button.setAttribute("aria-pressed", "false");
        button.append(svg, " ", name);
        button.addEventListener("click", () => {
          chosen = chosen === of ? null : of;
          for (const each of legend.querySelectorAll("button")) each.setAttribute("aria-pressed", "false");
          button.setAttribute("aria-pressed", String(chosen === of));
          draw();
        });
        item.append(button);
        return item;
      }));
    }

    function cut(context, at, ...box) {
      const [column, row] = [at % columns, Math.floor(at / columns)];
      context.drawImage(sheet, column * width, row * height, width, height, ...box);
    }

    function pictures() {
      if (layer.hidden || !sheet.complete) return;
      const ratio = window.devicePixelRatio || 1;
      [layer.width, layer.height] = [plane.clientWidth * ratio, plane.clientHeight * ratio];
      const context = layer.getContext("2d");
      const across = Math.max(16 * ratio, layer.width / 26);
      const down = (across * height) / width;
      const rim = 1.5 * ratio;
      const inks = new Map([...group.children].map((path) => [path.classList[0], getComputedStyle(path).fill]));
      for (let at = 0; at < count; at += 1) {
        const [x, y] = [share(at)[0] * layer.width - across / 2, share(at)[1] * layer.height - down / 2];
        context.globalAlpha = shown(at) ? 1 : 0.08;
        context.fillStyle = inks.get(colour(code(at)));
        context.fillRect(x - rim, y - rim, across + 2 * rim, down + 2 * rim);
        cut(context, at, x, y, across, down);
      }
    }

    function show(at) {
      here = at;
      const [x, y] = place(at);
      ring.setAttribute("cx", x);
      ring.setAttribute("cy", y);
      ring.removeAttribute("visibility");
      [crop.width, crop.height] = [3 * width, 3 * height];
      const context = crop.getContext("2d");
      context.imageSmoothingQuality = "high";
      cut(context, at, 0, 0, crop.width, crop.height);
      const labels = told.columns.map((each) => `${each.name}: ${each.classes[each.codes[at]]}`);
      const numbers = told.numbers.map((each) => `${each.name}: ${each.values[at] ?? "–"}`);
      words.replaceChildren(...[...labels, ...numbers, `${told.split} ${told.rows[at]}`].map((line) => {
        const item = document.createElement("bdi");
        item.textContent = line;
        return item;
      }));
      looked.hidden = false;
      looked.dataset.at = String(at);
      looked.style.left = `${100 * share(at)[0]}%`;
      looked.style.top = `${100 * share(at)[1]}%`;
      const aside = [x > 0 ? "calc(-100% - 14px)" : "14px", y > 0 ? "calc(-100% - 6px)" : "6px"];
      looked.style.transform = `translate(${aside.join(", ")})`;
    }

    function hide() {
      here = null;
      looked.hidden = true;
      ring.setAttribute("visibility", "hidden");
    }

    function nearest(x, y, weigh = () => 1) {
      let [best, least] = [null, Infinity];
      for (let at = 0; at < count; at += 1) {
        if (!shown(at)) continue;
        const [dx, dy] = [place(at)[0] - x, place(at)[1] - y];
        const distance = Math.hypot(dx, dy) * weigh(dx, dy, at);
        if (distance < least) [best, least] = [at, distance];
      }
      return [best, least];
    }

    function pointed(event) {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.getScreenCTM().inverse());
      const [at, distance] = nearest(point.x, point.y);
      if (at !== null && distance < NEAR) show(at);
      else hide();
    }

    function keyed(event) {
      if (event.key === "Escape") hide();
      const direction = DIRECTIONS[event.key];
      if (!direction) return;
      event.preventDefault();
      const [x, y] = here === null ? [0, 0] : place(here);
      const ahead = (dx, dy, at) => {
        const [along, across] = [dx * direction[0] + dy * direction[1], Math.abs(dx * direction[1] + dy * direction[0])];
        return at === here || along <= 0 || across > along ? Infinity : 1 + across / along;
      };
      const [at] = here === null ? nearest(x, y) : nearest(x, y, ahead);
      if (at !== null) show(at);
    }

    plane.setAttribute("tabindex", "0");
    plane.setAttribute("role", "application");
    plane.addEventListener("pointermove", pointed);
    plane.addEventListener("pointerdown", pointed);
    plane.addEventListener("pointerleave", () => document.activeElement !== plane && hide());
    plane.addEventListener("keydown", keyed);
    plane.addEventListener("focus", () => here === null && plane.matches(":focus-visible") && show(nearest(0, 0)[0]));
    plane.addEventListener("blur", hide);
    const kinds = [...figure.querySelectorAll("button[data-kind]")];
    for (const button of kinds) {
      button.addEventListener("click", () => {
        kind = button.dataset.kind;
        for (const each of kinds) each.setAttribute("aria-pressed", String(each === button));
        for (const note of figure.querySelectorAll("[data-of]")) note.hidden = note.dataset.of !== kind;
        draw();
      });
    }
    const seen = find("button[data-pictures]");
    seen.addEventListener("click", () => {
      layer.hidden = !layer.hidden;
      seen.setAttribute("aria-pressed", String(!layer.hidden));
      pictures();
    });
    if (column) {
      column.addEventListener("change", () => {
        chosen = null;
        list();
        draw();
      });
    }
    window.addEventListener("resize", pictures);
    figure.classList.add("live");
    list();
  }
})();
