"""sb3-contrib's RecurrentPPO with an NFSM in the place of its LSTM (`pip install sb3-contrib`).

The memory is a few small integers, and the floats in which sb3-contrib keeps the states of a rollout hold them exactly.
Trained in a T-maze with corridors of at most 6 steps, tested in one of 1,000.

    python examples/recurrent_ppo.py
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from torch import Tensor, nn

import exactstate

HEADS = (4,) * 8
LEFT, RIGHT, CORRIDOR, JUNCTION = range(4)  # what is seen; the actions are LEFT and RIGHT


class Cell(nn.Module):
    """What RecurrentPPO asks of its LSTM: the shape of the state that it keeps, and of the input."""

    num_layers, hidden_size = 1, len(HEADS)

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.input_size, self.in_proj = features, nn.Linear(features, width)
        self.memory = exactstate.NFSM(width, HEADS)


class NfsmPolicy(RecurrentActorCriticPolicy):
    """A policy with one NFSM, whose output the policy and the value both read."""

    def __init__(self, observations: Any, actions: Any, rate: Any, *, width: int = 32, **options: Any) -> None:
        super().__init__(observations, actions, rate, lstm_hidden_size=width, enable_critic_lstm=False, **options)
        self.lstm_actor = self.lstm_critic = Cell(self.features_dim, width)  # the gradient of the value goes through it
        self.lstm_hidden_state_shape = (1, 1, len(HEADS))
        self.optimizer = self.optimizer_class(self.parameters(), lr=rate(1), **self.optimizer_kwargs)

    @staticmethod
    def _process_sequence(
        features: Tensor, lstm_states: tuple[Tensor, Tensor], episode_starts: Tensor, lstm: Cell
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Rows of n sequences, one after the other; a step at which an episode starts begins in the initial state."""
        n = lstm_states[0].shape[1]
        x = lstm.in_proj(features).view(n, -1, lstm.memory.config.width)
        y, last = lstm.memory(x, lstm_states[0][0].long(), resets=episode_starts.view(n, -1) > 0)
        held = last[None].float()
        return (x + y).flatten(0, 1), (held, held)


class Maze(gymnasium.Env[np.ndarray, int]):
    """A cue, a corridor, a junction: 1 for a turn to the side of the cue, -1 for the other."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (4,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, longest: int, shortest: int = 1) -> None:
        self.shortest, self.longest = shortest, longest

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.cue, self.at = int(self.np_random.integers(2)), 0
        self.length = int(self.np_random.integers(self.shortest, self.longest + 1))
        return self.see(self.cue), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.at += 1
        ended = self.at > self.length + 1
        reward = (1.0 if action == self.cue else -1.0) if ended else 0.0
        return self.see(JUNCTION if self.at == self.length + 1 else CORRIDOR), reward, ended, False, {}

    def see(self, what: int) -> np.ndarray:
        return np.eye(4, dtype=np.float32)[what]


def turns_right(model: RecurrentPPO, length: int, episodes: int = 4) -> float:
    """The share of episodes in corridors of this length that end with a reward."""
    maze, right = Maze(length, length), 0
    for episode in range(episodes):
        (seen, _), state, begins, ended = maze.reset(seed=episode), None, np.array([True]), False
        while not ended:
            action, state = model.predict(seen, state, episode_start=begins, deterministic=True)
            seen, reward, ended, _, _ = maze.step(int(action))
            begins = np.array([ended])
        right += reward > 0
    return right / episodes


def main() -> None:
    torch.set_num_threads(1)  # steps of a rollout are small
    model = RecurrentPPO(
        NfsmPolicy, Maze(6), n_steps=512, batch_size=512, n_epochs=4, learning_rate=3e-3, gamma=0.95, ent_coef=0.01,
        seed=0, device="cpu",
    )  # fmt: skip
    model.learn(8 * 512)
    print(f"corridors of 1,000 steps: {turns_right(model, 1000):.0%} turned right")


if __name__ == "__main__":
    main()
