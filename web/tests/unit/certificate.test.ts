import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Unreadable, check, checkFile } from "../../src/certificate/check";
import { regionSentence, roundedDown } from "../../src/certificate/regions";
import { byCodePoint, canonical, pythonFloat, seal, sha256 } from "../../src/certificate/seal";
import { Float, type Int, type Json, type JsonObject, parseJson } from "../../src/json";
import { strictGolden } from "../golden";

const KEPT = new URL("../../../results/certificates/", import.meta.url);
const kept = (readdirSync(KEPT, { recursive: true }) as string[]).filter((name) => name.endsWith(".json")).sort();
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("certificates that exactstate has written", () => {
  test("there are some", () => expect(kept.length).toBeGreaterThan(15));
  test.each(kept)("%s is valid", (name) => {
    expect(checkFile(readFileSync(new URL(name, KEPT))).findings).toEqual([]);
  });
  test.each(kept)("%s is not valid with one digit changed", (name) => {
    const text = readFileSync(new URL(name, KEPT), "utf-8");
    const at = text.indexOf('"matching"');
    const changed = text.slice(0, at) + text.slice(at).replace(/\d/, (digit) => String((Number(digit) + 1) % 10));
    expect(checkFile(bytes(changed)).findings.length).toBeGreaterThan(0);
  });
});

const BASES = strictGolden("certificates").map((row) => ({
  name: row.get("name") as string,
  content: row.get("content") as JsonObject,
  mutants: (row.get("mutants") as Json[][]).map(([way, value, verdicts]) => ({
    way: (way as Json[]).map((key) => (typeof key === "string" ? key : Number((key as Int).value))),
    value: parseJson(value as string),
    verdicts: verdicts as string,
  })),
}));

function changed(content: Json, way: (string | number)[], value: Json): Json {
  if (!way.length) return value;
  const [key, ...rest] = way;
  if (Array.isArray(content)) return content.map((item, i) => (i === key ? changed(item, rest, value) : item));
  const copy: JsonObject = new Map(content as JsonObject);
  copy.set(key as string, changed(copy.get(key as string)!, rest, value));
  return copy;
}

function sealedAgain(content: JsonObject): JsonObject {
  return new Map([...content, ["sha256", seal(content)]]);
}

/** JSON with the keys in their order: `proved` follows the order of `rounding`. */
function written(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(written).join(",")}]`;
  if (!(value instanceof Map)) return canonical(value);
  return `{${[...value].map(([key, item]) => `${canonical(key)}:${written(item)}`).join(",")}}`;
}

describe.each(BASES)("the changed certificates of $name", ({ content, mutants }) => {
  test("it is valid itself", () => expect(check(content).findings).toEqual([]));

  test("every change is judged as check.py judges it, sealed again or not", () => {
    expect(mutants.length).toBeGreaterThan(400);
    const apart: unknown[] = [];
    for (const { way, value, verdicts } of mutants) {
      const other = changed(content, way, value) as JsonObject;
      const found = [other, sealedAgain(other)].map((one) => (check(one).findings.length ? "0" : "1")).join("");
      if (found !== verdicts) apart.push({ way, value: canonical(value), wanted: verdicts, found });
    }
    expect(apart).toEqual([]);
  });

  test("without a new seal nothing passes", () => {
    const passed = mutants.filter(({ verdicts }) => verdicts[0] === "1");
    // a value that is written in the same way, such as 4.0 for 4.0
    for (const { way, value } of passed) expect(canonical(changed(content, way, value))).toBe(canonical(content));
  });

  test("an entry that is missing or added", () => {
    for (const key of content.keys()) {
      const less: JsonObject = new Map([...content].filter(([name]) => name !== key));
      if (key !== "sha256") expect(check(sealedAgain(less)).findings.length).toBe(key === "regions" ? 0 : 1);
    }
    expect(check(sealedAgain(new Map([...content, ["more", null]]))).findings).toEqual([
      "the certificate has an entry “more” that does not belong there.",
    ]);
  });

  test("an unknown number format, or a bound below one rounding", () => {
    const rounding = content.get("rounding") as JsonObject;
    const renamed: JsonObject = new Map([...rounding].map(([name, bounds]) => [name === "float32" ? "float33" : name, bounds]));
    const proved = (content.get("proved") as string[]).map((name) => (name === "float32" ? "float33" : name));
    expect(check(sealedAgain(new Map([...content, ["rounding", renamed], ["proved", proved]]))).findings[0]).toContain("known formats are float64");
    const low = changed(content, ["rounding", "float32", "labels", 0], new Float(1e-9)) as JsonObject;
    expect(check(sealedAgain(low)).findings[0]).toContain("rounding once may cost");
  });

  test("half of a surrogate pair in a name", () => {
    expect(check(sealedAgain(new Map([...content, ["name", "\ud800"]]))).findings[0]).toContain("surrogate");
  });

  test("a repeated key, NaN, deep nesting, other bytes, other files", () => {
    const text = written(content);
    expect(checkFile(bytes(text)).findings).toEqual([]);
    expect(() => checkFile(bytes(text.replace("{", '{"name":"x",')))).toThrow(Unreadable);
    expect(() => checkFile(bytes(text.replace(/"reach":\d+/, '"reach":NaN')))).toThrow("NaN is not a JSON number");
    expect(() => checkFile(bytes("[".repeat(1e6)))).toThrow("nested too deep");
    expect(() => checkFile(Uint8Array.of(0xff, 0xfe))).toThrow("not UTF-8");
    expect(() => checkFile(bytes("\ufeff" + text))).toThrow(Unreadable);
    expect(() => checkFile(bytes("{}"))).toThrow("some other JSON");
    expect(() => checkFile(bytes(text + " x"))).toThrow("something follows");
  });
});

describe("the seal", () => {
  test("SHA-256 is that of node", () => {
    for (const length of [0, 1, 3, 55, 56, 63, 64, 65, 119, 120, 1000]) {
      const message = Uint8Array.from({ length }, (_, i) => (i * 37 + length) & 255);
      expect(sha256(message)).toBe(createHash("sha256").update(message).digest("hex"));
    }
  });
  test("numbers are written as Python writes them", () => {
    const cases: [number, string][] = [
      [4, "4.0"], [1e-5, "1e-05"], [0.0001, "0.0001"], [1e16, "1e+16"], [123456789012345680, "1.2345678901234568e+17"],
      [1e15, "1000000000000000.0"], [0.1, "0.1"], [-0, "-0.0"], [1.7976931348623157e308, "1.7976931348623157e+308"],
      [5e-324, "5e-324"], [12.5, "12.5"], [1.5e-7, "1.5e-07"], [-2.25, "-2.25"],
    ];
    for (const [value, text] of cases) expect(pythonFloat(value)).toBe(text);
  });
  test("text is written in ASCII, keys in the order of code points", () => {
    expect(canonical(parseJson('"é\\u0001\\"\\n\u007f😀"'))).toBe('"\\u00e9\\u0001\\"\\n\\u007f\\ud83d\\ude00"');
    expect(["\uffff", "😀", "a", "ab"].sort(byCodePoint)).toEqual(["a", "ab", "\uffff", "😀"]);
    expect(canonical(parseJson("[-0, 1E2, 123456789012345678901234567890]"))).toBe("[0,100.0,123456789012345678901234567890]");
  });
});

describe("regions of inputs", () => {
  const regions = { norm: "linf", centers: [[0], [9]], radii: [0.3199, 0.3199] };
  test("are stated as exactstate check states them", () => {
    expect(regionSentence(regions, "every sequence", ["float32"])).toBe(
      "Correct on every sequence of any length whose inputs differ from the prototypes by at most 0.319 in every coordinate; proved in float32.",
    );
    expect(regionSentence({ ...regions, radii: [1.5, 2.25] }, "every sequence", ["float32"])).toContain("at most 1.5 to 2.25, by symbol, in");
    expect(regionSentence({ ...regions, radii: [0, 0] }, "every sequence", [])).toBe("Inputs that are the prototypes: proved in no format.");
  });
  test.each([[0.3, 0.3], [0.29999999, 0.299], [0.0999999, 0.0999], [12345.6, 12300], [1, 1], [0, 0]])("%f is rounded down to %f", (radius, shown) => {
    expect(roundedDown(radius)).toBe(shown);
  });
});
