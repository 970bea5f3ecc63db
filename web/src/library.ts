/** The machines that the page offers; machines.json is written by `python -m tests.web.golden`. */

import { type Machine, machineFromJson } from "./automata/machine";
import entries from "./machines.json";

export interface Entry {
  name: string;
  about: string;
  machine: Machine;
  weights: number[];
}

export const LIBRARY: Entry[] = entries.map(({ name, about, machine, weights }) => ({
  name, about, weights, machine: machineFromJson(JSON.stringify(machine)),
}));

export function entry(name: string): Entry {
  const found = LIBRARY.find((one) => one.name === name);
  if (!found) throw new Error(`there is no machine ${name}`);
  return found;
}
