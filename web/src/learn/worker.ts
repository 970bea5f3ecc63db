/** Training beside the page, so that the page stays responsive. */

import { type Outcome, type Progress, type Task, learn } from "./search";

export type Message = { kind: "progress"; progress: Progress; seconds: number } | { kind: "outcome"; outcome: Outcome; seconds: number };

self.addEventListener("message", (event: MessageEvent<{ task: Task; seed: number }>) => {
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1000;
  const training = learn(event.data.task, event.data.seed);
  let [last, kept] = [-Infinity, 0];
  for (;;) {
    const { value, done } = training.next();
    if (done) {
      self.postMessage({ kind: "outcome", outcome: value, seconds: seconds() } satisfies Message);
      return;
    }
    // a picture per frame is enough, but a head that is kept is always shown
    if (value.kept.length === kept && performance.now() - last < 60) continue;
    [last, kept] = [performance.now(), value.kept.length];
    self.postMessage({ kind: "progress", progress: value, seconds: seconds() } satisfies Message);
  }
});
