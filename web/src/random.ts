/** Random numbers from a seed: the same seed gives the same run. */

export class Random {
  private state: number;
  private spare: number | null = null;

  constructor(seed: number) {
    this.state = (Math.imul(seed, 0x9e3779b1) ^ 0x85ebca6b) >>> 0;
    for (let i = 0; i < 4; i++) this.uniform();
  }

  /** From 0 to below 1 (mulberry32). */
  uniform(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  below(n: number): number {
    return Math.floor(this.uniform() * n);
  }

  normal(): number {
    if (this.spare !== null) {
      const value = this.spare;
      this.spare = null;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    const angle = 2 * Math.PI * this.uniform();
    this.spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  /** A number from 0 on, by weights. */
  choose(weights: readonly number[]): number {
    let rest = this.uniform() * weights.reduce((sum, w) => sum + w, 0);
    for (let i = 0; i < weights.length; i++) {
      rest -= weights[i];
      if (rest < 0) return i;
    }
    return weights.length - 1;
  }
}
