// A button for every symbol of the machine, and its output. In node: `node page.mjs TEXT WORD` prints a count.
import { outputNames, Stream, symbols } from "./machine.mjs";

// How often the machine outputs `word` on a text.
export function count(text, word) {
  return new Stream().push(text).filter((id) => outputNames[id] === word).length;
}

if (typeof document !== "undefined") {
  const stream = new Stream();
  for (const symbol of symbols) {
    const button = document.createElement("button");
    button.textContent = symbol;
    button.onclick = () => {
      const [id] = stream.push([symbol]);
      document.getElementById("output").textContent = outputNames[id];
      document.getElementById("count").textContent = stream.symbols_read;
    };
    document.getElementById("buttons").append(button);
  }
} else {
  const [text, word] = process.argv.slice(2);
  console.log(count(text, word));
}
