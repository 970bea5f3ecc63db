/**
 * Machines in DOT: the files that exactstate, LearnLib and AALpy write. States are nodes, transitions are edges with labels:
 * `symbol` or `input/output`; Moore outputs stand in the node, `name / output` or the record `name|output`; a double circle
 * accepts. The start is where an edge from a node without a label leads.
 */

import { quoted } from "../json";
import { type Kind, type Machine, NotMachine, mooreReadout } from "./machine";

interface DotNode {
  name: string;
  attributes: Map<string, string>;
}

interface DotEdge {
  source: string;
  target: string;
  attributes: Map<string, string>;
  line: number;
}

interface Graph {
  nodes: Map<string, DotNode>;
  edges: DotEdge[];
  attributes: Map<string, string>;
}

interface Token {
  kind: "name" | "mark" | "arrow" | "end";
  value: string;
  at: number;
}

const TOKEN = /\s*(?:(\/\/[^\n]*|\/\*[^]*?\*\/|#[^\n]*)|("(?:[^"\\]|\\[^])*")|(->|--)|([[\]{};,=:])|(-?(?:\d+\.\d*|\.\d+|\d+)(?![\p{L}_\d])|[\p{L}_\d]+)|($))/uy;

export function looksLikeDot(text: string): boolean {
  return /^\s*(?:(?:\/\/|#)[^\n]*\n\s*|\/\*[^]*?\*\/\s*)*(?:strict\s+)?(?:di)?graph\b/i.test(text.slice(0, 2000));
}

class Reader {
  private at = 0;
  private token: Token;
  readonly graph: Graph = { nodes: new Map(), edges: [], attributes: new Map() };

  constructor(private readonly text: string) {
    this.token = this.next();
  }

  error(reason: string, at = this.token.at): NotMachine {
    return new NotMachine(`line ${this.line(at)}: ${reason}`);
  }

  line(at: number): number {
    return this.text.slice(0, at).split("\n").length;
  }

  private next(): Token {
    for (;;) {
      TOKEN.lastIndex = this.at;
      const found = TOKEN.exec(this.text);
      if (!found) throw new NotMachine(`line ${this.line(this.at)}: this is not DOT from here on.`);
      this.at = TOKEN.lastIndex;
      const [, comment, string, arrow, mark, name] = found;
      const at = this.at - (string ?? arrow ?? mark ?? name ?? "").length;
      if (comment !== undefined) continue;
      if (string !== undefined) {
        // only an escaped quote and a line that goes on have a meaning of their own; labels keep \n, \l and \r
        return { kind: "name", value: string.slice(1, -1).replace(/\\(\r\n|\n|")/g, (_, c: string) => (c === '"' ? '"' : "")), at };
      }
      if (arrow !== undefined) return { kind: "arrow", value: arrow, at };
      if (mark !== undefined) return { kind: "mark", value: mark, at };
      if (name !== undefined) return { kind: "name", value: name, at };
      return { kind: "end", value: "", at };
    }
  }

  private take(kind: Token["kind"], value?: string): string | null {
    if (this.token.kind !== kind || (value !== undefined && this.token.value !== value)) return null;
    const taken = this.token.value;
    this.token = this.next();
    return taken;
  }

  private want(kind: Token["kind"], value: string | undefined, what: string): string {
    const taken = this.take(kind, value);
    if (taken === null) throw this.error(`wanted ${what}${this.token.value ? `; found ${quoted(this.token.value, 20)}` : "; the text ends"}.`);
    return taken;
  }

  read(): Graph {
    if (this.token.value.toLowerCase() === "strict") this.token = this.next();
    const kind = this.want("name", undefined, "digraph").toLowerCase();
    if (kind !== "digraph") throw new NotMachine("transitions have a direction; wanted a digraph.");
    this.take("name");
    this.want("mark", "{", "an opening brace");
    this.statements(new Map(), new Map());
    if (this.token.kind !== "end") throw this.error("something follows the graph.");
    return this.graph;
  }

  private statements(nodeDefaults: Map<string, string>, edgeDefaults: Map<string, string>): void {
    while (this.take("mark", "}") === null) {
      if (this.take("mark", ";") !== null || this.take("mark", ",") !== null) continue;
      if (this.take("mark", "{") !== null) {
        this.statements(new Map(nodeDefaults), new Map(edgeDefaults));
        continue;
      }
      const at = this.token.at;
      const name = this.want("name", undefined, "a name or a closing brace");
      const lower = name.toLowerCase();
      if (lower === "subgraph") {
        this.take("name");
        this.want("mark", "{", "an opening brace");
        this.statements(new Map(nodeDefaults), new Map(edgeDefaults));
      } else if (["node", "edge", "graph"].includes(lower) && this.token.value === "[") {
        const into = lower === "node" ? nodeDefaults : lower === "edge" ? edgeDefaults : this.graph.attributes;
        this.attributes().forEach((value, key) => into.set(key, value));
      } else if (this.take("mark", "=") !== null) {
        this.graph.attributes.set(name, this.want("name", undefined, "a value"));
      } else {
        this.chain(name, at, nodeDefaults, edgeDefaults);
      }
    }
  }

  private chain(first: string, at: number, nodeDefaults: Map<string, string>, edgeDefaults: Map<string, string>): void {
    const names = [first];
    this.port();
    while (this.token.kind === "arrow") {
      if (this.token.value === "--") throw this.error("an edge of a machine has a direction; wanted ->.");
      this.token = this.next();
      names.push(this.want("name", undefined, "a state"));
      this.port();
    }
    for (const name of names) {
      if (!this.graph.nodes.has(name)) this.graph.nodes.set(name, { name, attributes: new Map(nodeDefaults) });
    }
    const attributes = this.token.value === "[" && this.token.kind === "mark" ? this.attributes() : new Map<string, string>();
    if (names.length === 1) attributes.forEach((value, key) => this.graph.nodes.get(first)!.attributes.set(key, value));
    for (let i = 1; i < names.length; i++) {
      this.graph.edges.push({
        source: names[i - 1], target: names[i], attributes: new Map([...edgeDefaults, ...attributes]), line: this.line(at),
      });
    }
  }

  private port(): void {
    while (this.take("mark", ":") !== null) this.want("name", undefined, "a port");
  }

  private attributes(): Map<string, string> {
    const found = new Map<string, string>();
    while (this.take("mark", "[") !== null) {
      while (this.take("mark", "]") === null) {
        if (this.take("mark", ",") !== null || this.take("mark", ";") !== null) continue;
        const key = this.want("name", undefined, "an attribute");
        found.set(key, this.take("mark", "=") !== null ? this.want("name", undefined, "a value") : "true");
      }
    }
    return found;
  }
}

export function machineFromDot(text: string): Machine {
  const reader = new Reader(text);
  const graph = reader.read();
  const own = graph.attributes.has("exactstate_machine");
  const markers = new Set(
    [...graph.nodes.values()]
      .filter((node) => node.name === "__start0" || (node.attributes.get("label") === "" && !graph.edges.some((e) => e.target === node.name)))
      .map((node) => node.name),
  );
  const starts = graph.edges.filter((edge) => markers.has(edge.source));
  if (starts.length > 1) throw new NotMachine(`line ${starts[1].line}: a machine has one start; this file marks ${starts.length}.`);
  const nodes = [...graph.nodes.values()].filter((node) => !markers.has(node.name));
  const edges = graph.edges.filter((edge) => !markers.has(edge.source));
  if (!nodes.length || !edges.length) throw new NotMachine("there are no states or no transitions in this file.");
  const kind = kindOf(graph, nodes, edges, starts.length > 0);
  const unescape = own ? percent : (name: string): string => name;
  const number = new Map(nodes.map((node, q) => [node.name, q]));
  const named = nodes.map((node) => nameAndOutput(node, kind, unescape));
  const distinct = new Set(named.map(([name]) => name)).size === named.length;
  const states = distinct ? named.map(([name]) => name) : nodes.map((node) => node.name);
  const builder = new Builder(listed(graph, "exactstate_symbols", unescape), listed(graph, "exactstate_outputs", unescape), kind);
  const stateOutputs = named.map(([, output]) => (output === null ? -1 : builder.output(output)));
  const steps: [number, number, number, number, number][] = [];
  for (const edge of edges) {
    const label = edge.attributes.get("label");
    if (label === undefined) throw new NotMachine(`line ${edge.line}: this edge has no label, so no symbol.`);
    for (const [symbol, output] of transitions(label, kind === "mealy", edge.line)) {
      const a = builder.symbol(unescape(symbol));
      const z = output === null ? -1 : builder.output(unescape(output));
      steps.push([number.get(edge.source)!, a, number.get(edge.target)!, z, edge.line]);
    }
  }
  const start = starts.length ? number.get(starts[0].target)! : 0;
  return builder.machine(states, start, steps, stateOutputs);
}

type DotKind = Kind | "dfa";

function kindOf(graph: Graph, nodes: DotNode[], edges: DotEdge[], hasStart: boolean): DotKind {
  const own = graph.attributes.get("exactstate_machine");
  if (own !== undefined) {
    if (!["mealy", "moore", "dfa", "semiautomaton"].includes(own)) throw new NotMachine(`exactstate_machine=${quoted(own, 20)} is not a kind of machine.`);
    return own as DotKind;
  }
  if (nodes.some((node) => node.attributes.get("shape") === "doublecircle")) return "dfa";
  if (edges.every((edge) => transitions(edge.attributes.get("label") ?? "", true, 0, false).every(([, out]) => out !== null))) return "mealy";
  if (nodes.every((node) => split(node) !== null)) return "moore";
  return hasStart ? "dfa" : "semiautomaton";
}

function split(node: DotNode): [string, string] | null {
  const label = node.attributes.get("label") ?? "";
  const record = (node.attributes.get("shape") ?? "").includes("record");
  const inside = record ? label.trim().replace(/^\{([^]*)\}$/, "$1").replace(/<[^<>]*>/g, "") : label;
  const mark = record ? "|" : inside.includes(" / ") ? " / " : "/";
  const at = inside.indexOf(mark);
  return at < 0 ? null : [inside.slice(0, at).trim(), inside.slice(at + mark.length).trim()];
}

function nameAndOutput(node: DotNode, kind: DotKind, unescape: (name: string) => string): [string, string | null] {
  if (kind === "moore") {
    const both = split(node);
    if (!both) throw new NotMachine(`state ${quoted(node.name)} has no output; wanted name / output.`);
    return [unescape(both[0] || node.name), unescape(both[1])];
  }
  const label = unescape((node.attributes.get("label") ?? node.name).trim()) || node.name;
  if (kind !== "dfa") return [label, null];
  return [label, node.attributes.get("shape") === "doublecircle" ? "accept" : "reject"];
}

/** Symbol and output of every line of a label. */
function transitions(label: string, mealy: boolean, line: number, strict = true): [string, string | null][] {
  const lines = label.split(/\\[nlr]|\n/).map((one) => one.trim()).filter((one) => one);
  if (!lines.length && strict) throw new NotMachine(`line ${line}: this edge has an empty label.`);
  return lines.flatMap((one): [string, string | null][] => {
    if (!mealy) return one.split(" | ").map((symbol) => [symbol.trim(), null]);
    const mark = one.includes(" / ") ? " / " : "/";
    const at = one.indexOf(mark);
    if (at <= 0) {
      if (strict) throw new NotMachine(`line ${line}: the label ${quoted(one, 30)} lacks an input or an output; wanted in/out.`);
      return [[one, null]];
    }
    return one.slice(0, at).split(" | ").map((symbol) => [symbol.trim(), one.slice(at + mark.length).trim()]);
  });
}

function percent(written: string): string {
  try {
    return written.includes("%") ? decodeURIComponent(written.replace(/%(?![0-9a-fA-F]{2})/g, "%25")) : written;
  } catch {
    throw new NotMachine(`${quoted(written, 30)} is not percent-encoded UTF-8.`);
  }
}

function listed(graph: Graph, key: string, unescape: (name: string) => string): string[] {
  const written = graph.attributes.get(key);
  return written === undefined ? [] : written.split("|").map((name) => unescape(name.trim()));
}

class Builder {
  private readonly symbols: Map<string, number>;
  private readonly outputs: Map<string, number>;

  constructor(symbols: string[], outputs: string[], private readonly kind: DotKind) {
    this.symbols = new Map(symbols.map((name, i) => [name, i]));
    this.outputs = new Map((kind === "dfa" ? ["reject", "accept"] : outputs).map((name, i) => [name, i]));
  }

  symbol(name: string): number {
    return this.number(this.symbols, name);
  }

  output(name: string): number {
    return this.number(this.outputs, name);
  }

  private number(known: Map<string, number>, name: string): number {
    if (!known.has(name)) known.set(name, known.size);
    return known.get(name)!;
  }

  machine(states: string[], start: number, steps: [number, number, number, number, number][], stateOutputs: number[]): Machine {
    const symbols = [...this.symbols.keys()];
    const n = states.length;
    const tables = symbols.map(() => Array<number>(n).fill(-1));
    const edgeOutputs = symbols.map(() => Array<number>(n).fill(0));
    for (const [q, a, next, z, line] of steps) {
      if (tables[a][q] >= 0 && (tables[a][q] !== next || edgeOutputs[a][q] !== z)) {
        throw new NotMachine(`line ${line}: state ${quoted(states[q])} has two transitions for ${quoted(symbols[a])}.`);
      }
      tables[a][q] = next;
      edgeOutputs[a][q] = z;
    }
    for (const [a, row] of tables.entries()) {
      const q = row.indexOf(-1);
      if (q >= 0) throw new NotMachine(`state ${quoted(states[q])} has no transition for ${quoted(symbols[a])}; a machine needs one for every symbol.`);
    }
    const base = { symbols, states, tables, start };
    if (this.kind === "semiautomaton") return { ...base, kind: "semiautomaton", start: 0, outputs: states, readout: tables };
    const outputs = [...this.outputs.keys()];
    if (this.kind === "mealy") return { ...base, kind: "mealy", outputs, readout: edgeOutputs };
    return { ...base, kind: "moore", outputs, ...mooreReadout(tables, stateOutputs) };
  }
}
