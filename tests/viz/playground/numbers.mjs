// The numbers of the playground for settings that come as JSON, for the comparison with the library's.
import { readFileSync } from "node:fs";
import { Session } from "../../../advdiff/viz/playground/session.js";
import { toldValue } from "../../../advdiff/viz/playground/numbers.js";
import { disc } from "../../../advdiff/viz/playground/graph.js";
import { densePropagator, logNorm } from "../../../advdiff/viz/playground/dense.js";

const cases = JSON.parse(readFileSync(0, "utf8"));
const plain = values => (values ? Array.from(values) : null);
const answers = cases.map(state => {
  if (state.disc) return disc(state.disc);
  const session = new Session(state), flow = session.flow();
  return {
    state: plain(session.now()),
    inverse: plain(session.inverse()),
    powers: session.series().map(plain),
    spectrum: session.spectrum(),
    critical: session.critical(),
    curves: session.curves(),
    logNorm: flow.coupling ? logNorm(densePropagator({ ...flow, beta: 0 }), flow.size) : null,
    comparison: session.comparison(),
    told: Object.fromEntries(state.told.map(key => [key, toldValue(session, key)])),
  };
});
process.stdout.write(JSON.stringify(answers));
