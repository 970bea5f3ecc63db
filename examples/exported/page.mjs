// The page's own part: a button for every symbol of the machine, and what it says. Without a page, see `count` below.
import { outputs, Stream, symbols } from "./machine.mjs";

// How often the machine says `word` along a text.
export function count(text, word) {
  return new Stream().push(text).filter((number) => outputs[number] === word).length;
}

if (typeof document !== "undefined") {
  const stream = new Stream();
  for (const symbol of symbols) {
    const button = document.createElement("button");
    button.textContent = symbol;
    button.onclick = () => {
      const [said] = stream.push([symbol]);
      document.getElementById("said").textContent = outputs[said];
      document.getElementById("count").textContent = stream.symbols_read;
    };
    document.getElementById("buttons").append(button);
  }
} else {
  const [text, word] = process.argv.slice(2);
  console.log(count(text, word));
}
