/* The crowd in the denominator, in the page: the formulas of pipeline/report/laboratory.py and what shows them.
   State: batch, temperature, positive, negative, share. Nothing but numbers is read, nothing but text is written. */
"use strict";

function crowd(negatives, temperature, positive, negative) {
  const margin = Math.log(negatives) + (negative - positive) / temperature;
  const tail = Math.exp(-Math.abs(margin));
  const share = (margin >= 0 ? 1 : tail) / (1 + tail);
  return {
    candidates: negatives + 1,
    log_k: Math.log(negatives + 1),
    loss: Math.max(margin, 0) + Math.log1p(tail),
    positive_share: (margin >= 0 ? tail : 1) / (1 + tail),
    negative_share: share,
    weight: Math.exp((positive - negative) / temperature),
    positive_gradient: -share / temperature,
    each_gradient: share / temperature / negatives,
    all_gradient: share / temperature,
  };
}

function readings(state) {
  const negatives = 2 * state.batch - 2;
  const found = crowd(negatives, state.temperature, state.positive, state.negative);
  const doubled = crowd(4 * state.batch - 2, state.temperature, state.positive, state.negative);
  return {
    ...state, ...found, negatives,
    false_negatives: negatives * state.share,
    doubled_batch: 2 * state.batch, doubled_loss: doubled.loss, dearer: doubled.loss - found.loss,
  };
}

const LIMITS = { batch: [1.5, 1e9], temperature: [0.003, 1e3], positive: [-1, 1], negative: [-1, 1] };

function parsed(text) {
  const numbers = text.split(",").map((each) => (each.trim() ? Number(each) : NaN));
  const names = Object.keys(LIMITS);
  const inside = ([low, high], value) => value >= low && value <= high;
  if (numbers.length !== names.length || !names.every((name, at) => inside(LIMITS[name], numbers[at]))) return null;
  return Object.fromEntries(names.map((name, at) => [name, numbers[at]]));
}

const FORMS = {
  percent: (value) => `${(100 * value).toFixed(1)}\u00a0%`,
  short: (value) => value.toFixed(3).replace("-", "−"),
  count: (value) => {
    const digits = Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1);
    return digits.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f").replace("-", "−");
  },
  significant: (value) => {
    const size = Math.abs(value);
    if (size >= 100 && size < 1e5) return FORMS.count(Math.round(value));
    const text = size === 0 ? "0" : size < 1e-3 || size >= 1e5 ? value.toExponential(2) : value.toPrecision(3);
    return text.replace("e+", "e").replaceAll("-", "−");
  },
};

(() => {
  const section = typeof document === "undefined" ? null : document.getElementById("laboratory");
  if (!section) return;
  const sliders = [...section.querySelectorAll("input[type=range]")];
  const prior = section.querySelector("select");
  const state = { ...parsed(section.dataset.state), share: Number(prior.value) };

  function show() {
    const found = readings(state);
    for (const element of section.querySelectorAll("data[data-lab]")) {
      const value = found[element.dataset.lab];
      element.value = String(value);
      element.textContent = FORMS[element.dataset.form](value);
    }
    for (const bar of section.querySelectorAll("[data-bar]")) bar.style.width = `${100 * found[bar.dataset.bar]}%`;
    for (const slider of sliders) {
      const text = section.querySelector(`output[for="${slider.id}"]`).textContent.trim();
      slider.value = slider.name === "batch" ? Math.log2(state.batch) : state[slider.name];
      slider.setAttribute("aria-valuetext", text);
    }
  }

  function load(text, chosen) {
    const found = parsed(text);
    if (!found) return false;
    Object.assign(state, found);
    if (chosen) prior.selectedIndex = Number(chosen);
    state.share = Number(prior.value);
    show();
    return true;
  }

  function explain(chosen) {
    for (const note of section.querySelectorAll("[data-note]")) note.hidden = note.dataset.note !== chosen;
  }

  for (const slider of sliders) {
    slider.addEventListener("input", () => {
      const value = Number(slider.value);
      state[slider.name] = slider.name === "batch" ? Math.round(2 ** value) : value;
      explain("");
      show();
    });
  }
  prior.addEventListener("change", () => {
    state.share = Number(prior.value);
    show();
  });
  for (const button of section.querySelectorAll("button[data-load]")) {
    button.addEventListener("click", () => {
      load(button.dataset.load, button.dataset.prior);
      explain(button.dataset.explain ?? "");
    });
  }
  const address = () => {
    const start = "#crowd=";
    if (location.hash.startsWith(start) && load(location.hash.slice(start.length))) {
      section.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", address);
  section.classList.add("live");
  show();
  address();
})();
