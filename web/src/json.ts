/**
 * JSON, read strictly: a repeated key is an error, integers and decimal numbers are told apart, and nothing is lost of a
 * large integer. `JSON.parse` does none of this, and a certificate needs all of it: `1` is not `1.0` there.
 */

export class Int {
  constructor(readonly value: bigint) {}
}

export class Float {
  constructor(readonly value: number) {}
}

export type Json = null | boolean | string | Int | Float | Json[] | JsonObject;
export type JsonObject = Map<string, Json>;

/** Why a text is not JSON, and the line. */
export class NotJson extends Error {
  constructor(
    reason: string,
    readonly line: number,
  ) {
    super(reason);
  }
}

/** No file of ours nests deeper than this. */
const MAX_DEPTH = 200;
/** Python refuses to read longer integers, so that a file is refused by both readers or by none. */
const MAX_DIGITS = 4300;
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPES: Record<string, string> = {
  '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t",
};

export function parseJson(text: string): Json {
  return new Parser(text).whole();
}

/** The text of a file; null if it is not UTF-8. A byte order mark is kept, and is not JSON. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

class Parser {
  private at = 0;
  constructor(private readonly text: string) {}

  whole(): Json {
    const value = this.value(0);
    this.blanks();
    if (this.at < this.text.length) throw this.error("something follows the end of the JSON value");
    return value;
  }

  private error(reason: string): NotJson {
    let line = 1;
    for (let i = 0; i < this.at && i < this.text.length; i++) if (this.text[i] === "\n") line++;
    return new NotJson(reason, line);
  }

  private blanks(): void {
    while (" \t\n\r".includes(this.text[this.at] ?? "x")) this.at++;
  }

  private value(depth: number): Json {
    if (depth > MAX_DEPTH) throw this.error("lists are nested too deep");
    this.blanks();
    const first = this.text[this.at];
    if (first === "{") return this.object(depth);
    if (first === "[") return this.array(depth);
    if (first === '"') return this.string();
    for (const [word, value] of [["null", null], ["true", true], ["false", false]] as const) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    for (const word of ["NaN", "Infinity", "-Infinity"]) {
      if (this.text.startsWith(word, this.at)) throw this.error(`${word} is not a JSON number`);
    }
    return this.number();
  }

  private number(): Json {
    NUMBER.lastIndex = this.at;
    const found = NUMBER.exec(this.text);
    if (!found) throw this.error(this.at < this.text.length ? "a value is missing" : "the text ends too early");
    this.at = NUMBER.lastIndex;
    if (found[1] !== undefined || found[2] !== undefined) return new Float(Number(found[0]));
    if (found[0].replace("-", "").length > MAX_DIGITS) throw this.error("an integer is too long");
    return new Int(BigInt(found[0]));
  }

  private string(): string {
    const parts: string[] = [];
    this.at++;
    for (;;) {
      PLAIN.lastIndex = this.at;
      parts.push(PLAIN.exec(this.text)![0]);
      this.at = PLAIN.lastIndex;
      const next = this.text[this.at];
      if (next === '"') {
        this.at++;
        return parts.join("");
      }
      if (next !== "\\") throw this.error(next === undefined ? "a string does not end" : "a control character in a string");
      const escape = this.text[this.at + 1] ?? "";
      if (escape === "u") {
        const digits = this.text.slice(this.at + 2, this.at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw this.error("four hexadecimal digits must follow \\u");
        parts.push(String.fromCharCode(parseInt(digits, 16)));
        this.at += 6;
      } else {
        if (!Object.hasOwn(ESCAPES, escape)) throw this.error("an unknown escape in a string");
        parts.push(ESCAPES[escape]);
        this.at += 2;
      }
    }
  }

  private array(depth: number): Json[] {
    const items: Json[] = [];
    this.at++;
    this.blanks();
    if (this.text[this.at] === "]") {
      this.at++;
      return items;
    }
    for (;;) {
      items.push(this.value(depth + 1));
      this.blanks();
      const mark = this.text[this.at];
      if (mark !== "," && mark !== "]") throw this.error("a list needs a comma or its end here");
      this.at++;
      if (mark === "]") return items;
    }
  }

  private object(depth: number): JsonObject {
    const entries: JsonObject = new Map();
    this.at++;
    this.blanks();
    if (this.text[this.at] === "}") {
      this.at++;
      return entries;
    }
    for (;;) {
      this.blanks();
      if (this.text[this.at] !== '"') throw this.error("a key in double quotes is missing");
      const key = this.string();
      if (entries.has(key)) throw this.error(`the key ${quoted(key)} occurs twice`);
      this.blanks();
      if (this.text[this.at] !== ":") throw this.error("a colon is missing after a key");
      this.at++;
      entries.set(key, this.value(depth + 1));
      this.blanks();
      const mark = this.text[this.at];
      if (mark !== "," && mark !== "}") throw this.error("an object needs a comma or its end here");
      this.at++;
      if (mark === "}") return entries;
    }
  }
}

/** Whether a text has no half of a surrogate pair. */
export function isWellFormed(text: string): boolean {
  return !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);
}

/** A name as sentences show it: in quotes, short, and without characters that could hide others. */
export function quoted(name: string, most = 60): string {
  const points = [...name];
  const short = points.length > most ? [...points.slice(0, most), "…"] : points;
  return `“${short.map(visible).join("")}”`;
}

/** Control characters and those that change the direction of writing, by their code point. */
export function visible(char: string): string {
  return /[\p{C}\p{Zl}\p{Zp}]/u.test(char) ? `\\u{${char.codePointAt(0)!.toString(16)}}` : char;
}

/** A name without invisible characters, for labels. */
export function printable(name: string): string {
  return /[\p{C}\p{Zl}\p{Zp}]/u.test(name) ? [...name].map(visible).join("") : name;
}
