/** What is in a file: a machine (JSON or DOT) or a certificate. */

import { machineFromDot, looksLikeDot } from "./automata/dot";
import { type Machine, NotMachine, machineFromContent } from "./automata/machine";
import { NotJson, decodeUtf8, parseJson } from "./json";

export type Content = { kind: "machine"; machine: Machine } | { kind: "certificate" };

export function readFile(bytes: Uint8Array): Content {
  const text = decodeUtf8(bytes);
  if (text === null) throw new NotMachine("this is not UTF-8 text. A machine is a .json or .dot file.");
  if (looksLikeDot(text)) return { kind: "machine", machine: machineFromDot(text) };
  try {
    const content = parseJson(text);
    if (content instanceof Map && content.get("format") === "exactstate-certificate") return { kind: "certificate" };
    return { kind: "machine", machine: machineFromContent(content) };
  } catch (error) {
    if (error instanceof NotJson) throw new NotMachine(`this is neither a machine nor a certificate: ${error.message}, line ${error.line}.`);
    throw error;
  }
}
