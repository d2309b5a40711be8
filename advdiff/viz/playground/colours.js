// From numbers to colours: matplotlib's viridis and inferno at 17 places each, and blue–grey–orange for two signs.
const STOPS = {
  viridis: "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725",
  inferno: "000004 0b0724 210c4a 3d0965 57106e 71196e 8a226a a32c61 bc3754 d24644 e45a31 f1731d f98e09 fcac11 f9cb35 f2ea69 fcffa4",
  signed: "053061 2166ac 4393c3 92c5de d9dde2 f4b57a e08214 b35806 7f3b08",
};
const LEVELS = 256;

/** 256 colours from low to high. @param {keyof typeof STOPS} name @returns {[number, number, number][]} */
export function palette(name) {
  const stops = STOPS[name].split(" ").map(hex => [0, 2, 4].map(k => parseInt(hex.slice(k, k + 2), 16)));
  return Array.from({ length: LEVELS }, (_, k) => {
    const place = (k / (LEVELS - 1)) * (stops.length - 1), low = Math.min(Math.floor(place), stops.length - 2);
    const mix = (/** @type {number} */ c) => Math.round(stops[low][c] + (place - low) * (stops[low + 1][c] - stops[low][c]));
    return [mix(0), mix(1), mix(2)];
  });
}

const PALETTES = { viridis: palette("viridis"), signed: palette("signed"), inferno: palette("inferno") };

/** Red, green and blue of the 256 colours, one after another. @param {keyof typeof STOPS} name @returns {Uint8Array} */
export const bytesOf = name => Uint8Array.from(PALETTES[name].flat());

/**
 * @typedef {{low: number, high: number, name: keyof typeof PALETTES}} Scale
 */

/** From 0 to the largest value, or symmetric about 0 if there are negative ones. @param {ArrayLike<number>} values @returns {Scale} */
export function scaleOf(values) {
  let low = 0, high = 0;
  for (let u = 0; u < values.length; u++) {
    low = Math.min(low, values[u]);
    high = Math.max(high, values[u]);
  }
  if (low < -1e-12 * Math.max(high, -low)) {
    const most = Math.max(high, -low);
    return { low: -most, high: most, name: "signed" };
  }
  return { low: 0, high: high || 1, name: "viridis" };
}

/** The number of the colour, 0 … 255. @param {number} value @param {Scale} scale @returns {number} */
export function levelOf(value, { low, high }) {
  const share = (value - low) / (high - low || 1);
  return Math.max(0, Math.min(LEVELS - 1, Math.round(share * (LEVELS - 1))));
}

/** @param {number} level @param {Scale["name"]} name @returns {string} */
export const colourOf = (level, name) => `rgb(${PALETTES[name][level].join(" ")})`;

/** Black or white, whichever is read better on the colour. @param {number} level @param {Scale["name"]} name @returns {string} */
export function inkOn(level, name) {
  const [r, g, b] = PALETTES[name][level];
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#000" : "#fff";
}

/** As the background of a colour bar. @param {Scale["name"]} name @returns {string} */
export const gradientOf = name =>
  `linear-gradient(to right, ${Array.from({ length: 17 }, (_, k) => colourOf(Math.round((k / 16) * 255), name)).join(", ")})`;
