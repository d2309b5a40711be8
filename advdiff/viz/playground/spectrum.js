// All eigenvalues of a real matrix that need not be symmetric: Hessenberg form, then QR steps with shifts, in complex
// arithmetic, so that one kind of step serves real eigenvalues and pairs.

/**
 * @param {Float64Array} matrix row by row @param {number} size
 * @returns {[number, number][]} real and imaginary parts, sorted by the real part
 */
export function eigenvalues(matrix, size) {
  const re = hessenberg(matrix, size), im = new Float64Array(size * size);
  const found = /** @type {[number, number][]} */ ([]);
  let last = size - 1, tries = 0;
  while (last >= 0) {
    let first = last; // the block that still hangs together ends at last
    while (first > 0 && !isNegligible(re, im, size, first)) first--;
    if (first === last) {
      found.push([re[last * size + last], im[last * size + last]]);
      last--;
      tries = 0;
      continue;
    }
    qrStep(re, im, size, first, last, shiftOf(re, im, size, last, ++tries));
    if (tries > 400) throw new Error("The eigenvalues did not converge.");
  }
  return found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

/** Whether the entry below the diagonal in row k has vanished; if so it is set to zero. */
function isNegligible(/** @type {Float64Array} */ re, /** @type {Float64Array} */ im, /** @type {number} */ n, /** @type {number} */ k) {
  const below = k * n + k - 1, above = (k - 1) * n + k - 1, here = k * n + k;
  const size = Math.abs(re[above]) + Math.abs(im[above]) + Math.abs(re[here]) + Math.abs(im[here]);
  if (Math.abs(re[below]) + Math.abs(im[below]) > 2.3e-16 * (size || 1)) return false;
  re[below] = im[below] = 0;
  return true;
}

/** Similar to the matrix and zero below the first subdiagonal, by reflections. @param {Float64Array} matrix @param {number} n */
function hessenberg(matrix, n) {
  const h = Float64Array.from(matrix), v = new Float64Array(n);
  for (let k = 0; k < n - 2; k++) {
    let length = 0;
    for (let i = k + 1; i < n; i++) length += (v[i] = h[i * n + k]) ** 2;
    length = Math.sqrt(length);
    if (length === 0) continue;
    v[k + 1] += v[k + 1] < 0 ? -length : length;
    let square = 0;
    for (let i = k + 1; i < n; i++) square += v[i] * v[i];
    for (let j = 0; j < n; j++) {
      let inner = 0;
      for (let i = k + 1; i < n; i++) inner += v[i] * h[i * n + j];
      inner *= 2 / square;
      for (let i = k + 1; i < n; i++) h[i * n + j] -= inner * v[i];
    }
    for (let i = 0; i < n; i++) {
      let inner = 0;
      for (let j = k + 1; j < n; j++) inner += h[i * n + j] * v[j];
      inner *= 2 / square;
      for (let j = k + 1; j < n; j++) h[i * n + j] -= inner * v[j];
    }
    for (let i = k + 2; i < n; i++) h[i * n + k] = 0;
  }
  return h;
}

/**
 * Wilkinson's shift: the eigenvalue of the last 2 × 2 block nearer to its corner; now and then another one, which
 * breaks the symmetry of matrices such as a directed ring, on which the first would do nothing.
 * @param {Float64Array} re @param {Float64Array} im @param {number} n @param {number} k @param {number} tries
 * @returns {[number, number]}
 */
function shiftOf(re, im, n, k, tries) {
  const d = k * n + k, a = (k - 1) * n + k - 1, b = (k - 1) * n + k, c = k * n + k - 1;
  if (tries % 10 === 0) return [re[d] + Math.abs(re[c]) + Math.abs(im[c]), im[d] + 0.5 * Math.abs(re[c])];
  const halfRe = (re[a] - re[d]) / 2, halfIm = (im[a] - im[d]) / 2;
  const [rootRe, rootIm] = squareRoot(
    halfRe * halfRe - halfIm * halfIm + re[b] * re[c] - im[b] * im[c],
    2 * halfRe * halfIm + re[b] * im[c] + im[b] * re[c],
  );
  const sign = halfRe * rootRe + halfIm * rootIm < 0 ? 1 : -1;
  return [re[d] + halfRe + sign * rootRe, im[d] + halfIm + sign * rootIm];
}

/** @param {number} re @param {number} im @returns {[number, number]} */
function squareRoot(re, im) {
  const length = Math.hypot(re, im), root = Math.sqrt((length + Math.abs(re)) / 2);
  if (root === 0) return [0, 0];
  return re >= 0 ? [root, im / (2 * root)] : [Math.abs(im) / (2 * root), im < 0 ? -root : root];
}

/**
 * One step H − σI = QR, H ← RQ + σI on rows and columns first … last, by Givens rotations.
 * @param {Float64Array} re @param {Float64Array} im @param {number} n
 * @param {number} first @param {number} last @param {[number, number]} shift
 */
function qrStep(re, im, n, first, last, [shiftRe, shiftIm]) {
  for (let k = first; k <= last; k++) {
    re[k * n + k] -= shiftRe;
    im[k * n + k] -= shiftIm;
  }
  const cosines = new Float64Array(n), sineRe = new Float64Array(n), sineIm = new Float64Array(n);
  for (let k = first; k < last; k++) {
    const p = k * n + k, q = (k + 1) * n + k;
    const top = Math.sqrt(re[p] ** 2 + im[p] ** 2), length = Math.sqrt(top ** 2 + re[q] ** 2 + im[q] ** 2);
    // [c, s̄; −s, c] takes (p, q) to (phase · length, 0), with c real.
    let c = 1, sr = 0, si = 0;
    if (length > 0) {
      c = top / length;
      const phaseRe = top > 0 ? re[p] / top : 1, phaseIm = top > 0 ? im[p] / top : 0;
      sr = (re[q] * phaseRe + im[q] * phaseIm) / length;
      si = (im[q] * phaseRe - re[q] * phaseIm) / length;
    }
    [cosines[k], sineRe[k], sineIm[k]] = [c, sr, si];
    for (let j = k; j <= last; j++) {
      const x = k * n + j, y = (k + 1) * n + j;
      const xr = re[x], xi = im[x], yr = re[y], yi = im[y];
      re[x] = c * xr + sr * yr + si * yi;
      im[x] = c * xi + sr * yi - si * yr;
      re[y] = c * yr - (sr * xr - si * xi);
      im[y] = c * yi - (sr * xi + si * xr);
    }
  }
  for (let k = first; k < last; k++) {
    const c = cosines[k], sr = sineRe[k], si = sineIm[k];
    for (let i = first; i <= Math.min(k + 1, last); i++) {
      const x = i * n + k, y = i * n + k + 1;
      const xr = re[x], xi = im[x], yr = re[y], yi = im[y];
      re[x] = c * xr + sr * yr - si * yi;
      im[x] = c * xi + sr * yi + si * yr;
      re[y] = c * yr - (sr * xr + si * xi);
      im[y] = c * yi - (sr * xi - si * xr);
    }
  }
  for (let k = first; k <= last; k++) {
    re[k * n + k] += shiftRe;
    im[k * n + k] += shiftIm;
  }
}
