// The panels: spectrum in the complex plane, curves over time, bars of the bounds. SVG as text.

/** Few digits, and powers of ten where there would be many. @param {number} value @param {number} [digits] @returns {string} */
export function format(value, digits = 4) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 10 ** -digits)) {
    const [mantissa, exponent] = value.toExponential(2).split("e");
    return `${mantissa} · 10^{${Number(exponent)}}`.replaceAll("-", "−");
  }
  return value.toFixed(size >= 100 ? 2 : digits).replace("-", "−");
}

/** Raises ^{…} and lowers _{…}. @param {string} text @returns {string} HTML */
export const maths = text => text.replace(/[&<>]/g, sign => `&#${sign.charCodeAt(0)};`)
  .replace(/\^\{([^{}]*)\}/g, "<sup>$1</sup>").replace(/_\{([^{}]*)\}/g, "<sub>$1</sub>");

/** The same in SVG text. @param {string} text @returns {string} */
const inSvg = text => text.replace(/[&<>]/g, sign => `&#${sign.charCodeAt(0)};`)
  .replace(/\^\{([^{}]*)\}/g, '<tspan dy="-4" font-size="75%">$1</tspan><tspan dy="4">\u200b</tspan>');

/** About four round numbers. @param {number} low @param {number} high @returns {number[]} */
export function ticks(low, high) {
  const raw = (high - low) / 4, base = 10 ** Math.floor(Math.log10(raw || 1));
  const step = base * ([1, 2, 2.5, 5, 10].find(factor => factor * base >= raw) ?? 10);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

const BOX = { width: 380, height: 230, left: 46, right: 12, top: 12, bottom: 34 };

/** @param {[number, number]} xs @param {[number, number]} ys */
function axes(xs, ys, /** @type {string} */ xLabel, /** @type {(value: number) => string} */ yText = value => String(value)) {
  const { width, height, left, right, top, bottom } = BOX;
  const x = (/** @type {number} */ value) => left + ((value - xs[0]) / (xs[1] - xs[0] || 1)) * (width - left - right);
  const y = (/** @type {number} */ value) => height - bottom - ((value - ys[0]) / (ys[1] - ys[0] || 1)) * (height - top - bottom);
  const minus = (/** @type {string} */ text) => text.replace("-", "−");
  const across = ticks(...xs).map(value => `<line class="pg-grid" x1="${x(value)}" x2="${x(value)}" y1="${top}" y2="${height - bottom}"/>
    <text x="${x(value)}" y="${height - bottom + 14}" text-anchor="middle">${minus(String(value))}</text>`);
  const up = ticks(...ys).map(value => `<line class="pg-grid" x1="${left}" x2="${width - right}" y1="${y(value)}" y2="${y(value)}"/>
    <text x="${left - 6}" y="${y(value) + 4}" text-anchor="end">${inSvg(minus(yText(value)))}</text>`);
  const label = `<text x="${(left + width - right) / 2}" y="${height - 3}" text-anchor="middle">${inSvg(xLabel)}</text>`;
  return { x, y, svg: [...across, ...up, label].join("") };
}

/** @param {string} name @param {string} inner @returns {string} */
const frame = (name, inner) =>
  `<svg viewBox="0 0 ${BOX.width} ${BOX.height}" role="img" aria-label="${name}">${inner}</svg>`;

/**
 * @param {[number, number][]} values eigenvalues of L @param {number} beta @param {number} theta @param {number} critical θ*
 * @returns {string}
 */
export function spectrumChart(values, beta, theta, critical) {
  const real = [...values.map(value => value[0]), -beta, -theta, 0.3], imaginary = values.map(value => Math.abs(value[1]));
  const xs = /** @type {[number, number]} */ ([Math.min(...real) - 0.25, Math.max(...real, 2) + 0.2]);
  const most = Math.max(1, ...imaginary) * 1.15, { x, y, svg } = axes(xs, [-most, most], "real part of the eigenvalues of L");
  const { height, top, bottom } = BOX, zero = Math.max(x(0), x(xs[0]));
  const dots = values.map(([re, im]) => `<circle class="pg-dot" cx="${x(re).toFixed(1)}" cy="${y(im).toFixed(1)}" r="4.2"/>`).join("");
  const cross = `M${x(-theta) - 5} ${y(0) - 5}l10 10m0-10l-10 10`;
  return frame(
    `Eigenvalues of L in the complex plane. The smallest real part is ${(-critical).toFixed(3)}; minus beta is ${(-beta).toFixed(3)}.`,
    `<rect class="pg-grows" x="${x(xs[0])}" y="${top}" width="${Math.max(0, zero - x(xs[0]))}" height="${height - top - bottom}"/>
    ${svg}<line class="pg-mark" x1="${x(-beta)}" x2="${x(-beta)}" y1="${top}" y2="${height - bottom}"/>
    <text class="pg-marked" x="${x(-beta) + 4}" y="${top + 12}">−β</text>
    ${dots}<path class="pg-pole" d="${cross}"/><text class="pg-poled" x="${x(-theta)}" y="${y(0) - 10}" text-anchor="middle">−θ</text>`,
  );
}

/**
 * @param {{name: string, values: number[]}[]} lines @param {number[]} times @param {number} time where T stands
 * @returns {string}
 */
export function curvesChart(lines, times, time) {
  const all = lines.flatMap(line => line.values), most = Math.max(...all), least = Math.min(...all);
  const positive = all.filter(value => value > 1e-12 * most);
  const isLog = least >= 0 && most > 50 * Math.max(...lines.map(line => line.values[0]), 1e-300);
  const lowest = isLog ? Math.floor(Math.log10(Math.min(...positive))) : Math.min(0, least);
  const place = (/** @type {number} */ value) => (isLog ? Math.log10(Math.max(value, 10 ** lowest)) : value);
  const highest = isLog ? Math.ceil(Math.log10(most)) : (most > 0 ? most * 1.08 : 1);
  const { x, y, svg } = axes([0, times[times.length - 1]], [lowest, highest], "t",
    value => (isLog ? (Number.isInteger(value) ? `10^{${String(value).replace("-", "−")}}` : "") : String(value)));
  const { height, top, bottom } = BOX;
  const paths = lines.map((line, k) => `<path class="pg-curve pg-curve-${k}" d="M${line.values
    .map((value, i) => `${x(times[i]).toFixed(1)} ${y(place(value)).toFixed(1)}`).join("L")}"/>`).join("");
  return frame(
    `${lines.map(line => line.name).join(", ")} over time, at t = 0 and at the end: ${lines
      .map(line => `${line.values[0].toPrecision(3)} and ${line.values[line.values.length - 1].toPrecision(3)}`).join("; ")}.`,
    `${svg}${paths}<line class="pg-mark" x1="${x(time)}" x2="${x(time)}" y1="${top}" y2="${height - bottom}"/>
    <text class="pg-marked" x="${x(time) + (time > 9 ? -5 : 4)}" y="${top + 10}" text-anchor="${time > 9 ? "end" : "start"}">T</text>`,
  );
}

/** The share of a logarithmic bar from 10^{-3} to 10^3. @param {number} value @returns {number} 0 … 100 */
export const barLength = value => (value > 0 ? Math.max(0, Math.min(100, ((Math.log10(value) + 3) / 6) * 100)) : 0);
