"""PPO in plain PyTorch with an NFSM as memory: a cue at the entrance of a T-maze says which way to turn at its end.

A rollout goes on through many episodes; `resets` marks the steps at which one begins, in the rollout and in the update
alike. Trained in corridors of at most 8 steps, tested in one of 10,000.

    python examples/ppo.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

import exactstate

LEFT, RIGHT, CORRIDOR, JUNCTION = range(4)  # what is seen; the actions are LEFT and RIGHT
ENVIRONMENTS, STEPS, LONGEST, UPDATES = 64, 64, 8, 20


class Mazes:
    """Many mazes side by side; an action matters at the junction only: 1 for the side of the cue, -1 for the other."""

    def __init__(self, count: int, generator: torch.Generator) -> None:
        self.generator, self.step = generator, torch.zeros(count, dtype=torch.long)
        self.cue, self.length = torch.zeros(count, dtype=torch.long), torch.zeros(count, dtype=torch.long)
        self.begin(torch.ones(count, dtype=torch.bool))

    def begin(self, which: Tensor) -> None:
        count = (len(which),)
        self.cue = torch.where(which, torch.randint(2, count, generator=self.generator), self.cue)
        self.length = torch.where(which, torch.randint(1, LONGEST + 1, count, generator=self.generator), self.length)
        self.step = torch.where(which, 0, self.step)

    def see(self) -> Tensor:
        inside = torch.where(self.step > self.length, JUNCTION, CORRIDOR)
        return torch.where(self.step == 0, self.cue, inside)

    def act(self, action: Tensor) -> tuple[Tensor, Tensor]:
        """(reward, whether the episode has ended)."""
        ended = self.step > self.length
        reward = torch.where(ended, torch.where(action == self.cue, 1.0, -1.0), 0.0)
        self.step = self.step + 1
        self.begin(ended)
        return reward, ended


class Agent(nn.Module):
    """Observations B L and the steps at which episodes begin -> the policy and the value of every step, the state."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedding, self.memory = nn.Embedding(4, width), exactstate.NFSM(width, (4,) * 8)
        self.policy, self.value = nn.Linear(width, 2), nn.Linear(width, 1)

    def forward(
        self, seen: Tensor, begins: Tensor, state: Tensor | None = None
    ) -> tuple[Categorical, Tensor, Tensor]:  # fmt: skip
        x = self.embedding(seen)
        y, state = self.memory(x, state, resets=begins)
        return Categorical(logits=self.policy(x + y)), self.value(x + y)[..., 0], state


def advantages(rewards: Tensor, values: Tensor, ends: Tensor, after: Tensor, gamma: float, decay: float) -> Tensor:
    """Generalized advantage estimation, B L; `after`: the values behind the last step."""
    made, later = torch.zeros_like(rewards), torch.zeros_like(after)
    for t in reversed(range(rewards.shape[1])):
        going = 1.0 - ends[:, t].float()
        later = rewards[:, t] + gamma * after * going - values[:, t] + gamma * decay * going * later
        made[:, t], after = later, values[:, t]
    return made


def train(agent: Agent) -> None:
    mazes = Mazes(ENVIRONMENTS, torch.Generator().manual_seed(0))
    optimizer = torch.optim.Adam(agent.parameters(), 3e-3)
    state, begins = None, torch.ones(ENVIRONMENTS, dtype=torch.bool)
    for update in range(1, UPDATES + 1):
        before, rows = state, []
        with torch.no_grad():
            for _ in range(STEPS):
                seen = mazes.see()
                policy, value, state = agent(seen[:, None], begins[:, None], state)
                action = policy.sample()[:, 0]
                reward, ends = mazes.act(action)
                rows.append((seen, begins, action, policy.log_prob(action[:, None])[:, 0], value[:, 0], reward, ends))
                begins = ends
            after = agent(mazes.see()[:, None], begins[:, None], state)[1][:, 0]
        seen, starts, action, old, values, rewards, ends = (torch.stack(part, 1) for part in zip(*rows, strict=True))
        gains = advantages(rewards, values, ends, after, gamma=0.95, decay=0.95)
        targets, gains = gains + values, (gains - gains.mean()) / (gains.std() + 1e-8)
        for _ in range(4):
            policy, value, _ = agent(seen, starts, before)  # all steps at once, from the state before the rollout
            ratio = (policy.log_prob(action) - old).exp()
            clipped = torch.minimum(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean()
            loss = (value - targets).square().mean() - clipped - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        if update % 5 == 0:
            print(f"update {update}: {(rewards[ends] > 0).float().mean():.0%} of {int(ends.sum())} turns right")


@torch.no_grad()
def turns_right(agent: Agent, length: int) -> float:
    """The share of long corridors at whose end the agent turns to the side of the cue."""
    cues = torch.tensor([LEFT, RIGHT]).repeat(8)
    seen = torch.full((16, length + 2), CORRIDOR)
    seen[:, 0], seen[:, -1] = cues, JUNCTION
    policy = agent.eval()(seen, torch.zeros_like(seen, dtype=torch.bool))[0]
    return float((policy.logits[:, -1].argmax(-1) == cues).float().mean())


def main() -> None:
    torch.set_num_threads(1)  # steps of a rollout are small
    torch.manual_seed(0)
    agent = Agent()
    train(agent)
    print(f"corridors of 10,000 steps: {turns_right(agent, 10_000):.0%} turned right")


if __name__ == "__main__":
    main()
