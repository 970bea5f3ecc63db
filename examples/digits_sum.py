"""Sequences of handwritten digits: the running sum modulo 10, learned end to end from the label at the last image.

scikit-learn's 8 x 8 images, real scans that ship with the package. An encoder reads an image, three heads keep
the sum. After training the machine is extracted with the mean image of each digit as its symbol, and compared with
addition. Then that machine is distilled into one head, which is certified over regions of images.

    pip install '.[examples]'
    python examples/digits_sum.py [--length 10000]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import exactstate
from exactstate.automata import Moore
from exactstate.extract.graph.network import layer_output
from exactstate.extract.regions import attack, broken_radii, largest_radii, prototypes, prove, random_changes

DIGITS = [str(digit) for digit in range(10)]


def images() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(training images, their digits, test images, their digits); pixels from 0 to 1."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x, y = torch.from_numpy(data.data).float() / 16.0, torch.from_numpy(data.target).long()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x, y = x[order], y[order]
    return x[:1200], y[:1200], x[1200:], y[1200:]


class Adder(nn.Module):
    """Images (B L 64) to the logits of the sum (B L 10)."""

    def __init__(
        self, width: int = 48, heads: tuple[int, ...] = (12, 12, 12), initial_state: tuple[int, ...] = ()
    ) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.memory = exactstate.NFSM(width, heads, noise=False, temperature=1.0, initial_state=initial_state)
        self.readout = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.readout(self.memory(self.encoder(x))[0])


class Recurrent(nn.Module):
    """The same with a GRU."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.memory, self.readout = nn.GRU(width, width, batch_first=True), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.readout(self.memory(self.encoder(x))[0])


def train(model: nn.Module, x: Tensor, y: Tensor, steps: int, seed: int = 0) -> None:
    """Sequences that grow by an image whenever the labels of the last images are right; at most ten."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps, pct_start=0.1)
    longest, recent = 1, 0.0
    for _ in range(steps):
        length = int(torch.randint(max(1, longest - 1), longest + 1, (), generator=generator))
        which = torch.randint(0, len(x), (128, length), generator=generator)
        shown = x[which] + 0.05 * torch.randn(*which.shape, 64, generator=generator)
        logits, label = model.train()(shown)[:, -1], y[which].sum(1) % 10
        loss = nn.functional.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        recent = 0.95 * recent + 0.05 * float((logits.argmax(-1) == label).float().mean())
        if recent > 0.93 and longest < 10:
            longest, recent = longest + 1, 0.6
    model.eval()


def sum_machine() -> Moore:
    """The target: the sum of the digits modulo 10."""
    tables = np.array([[(state + digit) % 10 for state in range(10)] for digit in range(10)])
    return Moore(
        symbols=tuple(DIGITS), tables=tables, states=tuple(DIGITS), outputs=tuple(DIGITS), readout=np.arange(10)
    )


@torch.no_grad()
def tables_of(model: Adder, x: Tensor) -> np.ndarray:
    """N S: the table that every image gives."""
    tables = model.memory.tables(model.encoder(x)[None])
    return torch.cat([table[0] for table in tables], -1).numpy()


@torch.no_grad()
def accuracy_at(model: nn.Module, x: Tensor, y: Tensor, length: int, words: int = 20) -> float:
    """The share of correct labels among the last half of sequences of test images."""
    which = torch.randint(0, len(x), (words, length), generator=torch.Generator().manual_seed(1))
    wanted = y[which].cumsum(1) % 10
    right = model(x[which]).argmax(-1) == wanted
    return float(right[:, length // 2 :].float().mean())


def radius_of_images(machine: Any, images: Tensor, digits: Tensor, method: str) -> np.ndarray:
    """The largest certified radius around each image, the table being that of its digit; 0 where it is another."""
    from exactstate.extract.graph.arithmetic import ASSUMED
    from exactstate.extract.graph.leads import LeadBounds
    from exactstate.extract.graph.steps import Region

    layer, network = machine.layers[0], machine.source
    best = layer.tables[np.argsort(layer.symbols)][digits.numpy()]
    used = layer.used.all(0)
    low, high = np.zeros(len(images)), np.full(len(images), 0.5)
    book = type(network.book)(len(images), network.heads)
    for _ in range(9):
        trial = 0.5 * (low + high)
        held = network.with_region(Region(images.double().numpy(), trial))
        held.book = book
        leads = LeadBounds(held, ASSUMED["float32"].arithmetic("float32"), held.region)
        proved = (leads.layer(0, np.arange(len(images))[:, None], best, method) > 0)[:, used].all(1)
        low, high = np.where(proved, trial, low), np.where(proved, high, trial)
    return low


def learned(x: Tensor, y: Tensor, steps: int, seeds: tuple[int, ...] = (1, 2, 3)) -> tuple[Adder, Any, Any]:
    """(model, machine, verdict) of the first seed whose machine is addition; of the last one otherwise."""
    for seed in seeds:
        torch.manual_seed(seed)
        model, started = Adder(), time.process_time()
        train(model, x, y, steps, seed)
        machine, verdict = extracted(model, x, y)
        print(f"seed {seed}, {time.process_time() - started:.0f} CPU seconds: {verdict.explain()}")
        if verdict:
            break
    return model, machine, verdict


def compressed(model: Adder, machine: Any, x: Tensor, steps: int = 600) -> Adder:
    """A network with one head, distilled from the learned machine and how it reads images; no label is used."""
    named = machine.named
    with torch.no_grad():
        read = model(x[:, None]).argmax(-1)[:, 0]
    torch.manual_seed(0)
    small = Adder(heads=(named.n_states,), initial_state=(named.start,))
    tables = torch.tensor(named.tables.tolist())
    labels = torch.tensor([DIGITS.index(name) for name in named.states])
    optimizer, generator = torch.optim.AdamW(small.parameters(), 3e-3), torch.Generator().manual_seed(0)
    for _ in range(steps):
        which = torch.randint(0, len(x), (128,), generator=generator)
        shown = x[which] + 0.1 * torch.randn(128, 64, generator=generator)
        (logits,) = small.memory.logits(small.encoder(shown))
        loss = nn.functional.cross_entropy(logits.transpose(1, 2).flatten(0, 1), tables[read[which]].flatten())
        logits = small.readout(layer_output(small.memory, torch.arange(named.n_states)[:, None]))
        loss = loss + nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return small.eval()


def extracted(model: Adder, x: Tensor, y: Tensor) -> tuple[Any, Any]:
    """(machine, verdict), with the mean image of every digit as its symbol."""
    symbols = prototypes(x, [DIGITS[digit] for digit in y.tolist()])
    machine = exactstate.extract(model, inputs={digit: symbols[digit] for digit in DIGITS}, labels=DIGITS)
    return machine, exactstate.certify(machine, sum_machine())


def main(length: int = 10_000, steps: int = 2000, tested: int = 100, tries: int = 1_000_000) -> dict[str, Any]:
    x, y, test_x, test_y = images()
    model, machine, verdict = learned(x, y, steps)
    row: dict[str, Any] = {"certified": bool(verdict), "steps": steps, "length": length}
    if not verdict:
        return row
    # several heads hold the sum in many ways, so that images of one digit have many tables: one head has one way
    row["configurations_learned"] = len(machine.configurations)
    learned_model, model = model, compressed(model, machine, x)
    machine, verdict = extracted(model, x, y)
    print(f"compressed: {verdict.explain()}")
    row["compressed_certified"] = bool(verdict)
    if not verdict:
        return row

    with torch.no_grad():
        read = model(test_x[:, None]).argmax(-1)[:, 0]  # a sequence of one image: the digit itself
    row["image_accuracy"] = float((read == test_y).float().mean())
    layer = machine.layers[0]
    table_of_digit, used = layer.tables[np.argsort(layer.symbols)], layer.used.all(0)
    right = (tables_of(model, test_x) == table_of_digit[test_y.numpy()])[:, used].all(1)
    row["images_with_the_table_of_their_digit"] = float(right.mean())
    print(f"test images read right: {row['image_accuracy']:.2%} of {len(right)}; with the table of the mean image of "
          f"their digit: {right.mean():.2%}")  # fmt: skip

    for method in ("interval", "linear"):
        started = time.process_time()
        radii = largest_radii(machine, method=method)
        row[f"{method}_seconds"] = round(time.process_time() - started, 1)
        row[f"{method}_least"], row[f"{method}_median"] = min(radii.values()), float(np.median(list(radii.values())))
    broken = broken_radii(machine, restarts=2, rounds=3)
    row["broken_least"], row["broken_median"] = min(broken.values()), float(np.median(list(broken.values())))
    proved, proof = prove(machine, {digit: 0.999 * radius for digit, radius in radii.items()})
    print(f"{proof.explain()}; by intervals {row['interval_least']:.4f}, broken at {row['broken_least']:.4f}")
    row["random_tries"], row["random_changes"] = tries, random_changes(machine, radii, tries=tries)
    row["adversarial_changes"] = len(attack(machine, radii, restarts=8))
    print(f"changed tables or labels in those regions: {row['random_changes']} in {tries:,} random images, "
          f"{row['adversarial_changes']} in 8 rounds of adversarial ones")  # fmt: skip
    inside = proved.watch(test_x).certified
    row["images_in_regions_of_mean_images"] = float(inside.mean())
    print(f"test images inside the region of a mean image: {inside.mean():.2%}")

    for method in ("interval", "linear"):
        own = radius_of_images(machine, test_x[:tested], test_y[:tested], method)
        row[f"images_certified_{method}"] = float((own > 0).mean())
        row[f"image_radius_median_{method}"] = float(np.median(own))
        print(f"test images with a certified region of their own ({method}): {(own > 0).mean():.1%} of {tested}, "
              f"median radius {np.median(own):.4f}")  # fmt: skip

    torch.manual_seed(0)
    gru = Recurrent()
    train(gru, x, y, steps)
    # a perfect adder that reads images as this network does; a wrong image moves the sum for ever
    which = torch.randint(0, len(test_x), (20, length), generator=torch.Generator().manual_seed(1))
    possible = read[which].cumsum(1) % 10 == test_y[which].cumsum(1) % 10
    row["accuracy_possible"] = float(possible[:, length // 2 :].float().mean())
    row["accuracy_nfsm"], row["accuracy_gru"] = (accuracy_at(each, test_x, test_y, length) for each in (model, gru))
    row["accuracy_nfsm_learned"] = accuracy_at(learned_model, test_x, test_y, length)
    for name, each in (("nfsm", model), ("gru", gru)):
        row[f"accuracy_{name}_10"] = accuracy_at(each, test_x, test_y, 10, 500)
    clean = torch.from_numpy(np.flatnonzero(right))
    row["accuracy_nfsm_clean"], row["accuracy_gru_clean"] = (
        accuracy_at(each, test_x[clean], test_y[clean], length) for each in (model, gru)
    )
    print(
        f"labels right over sequences of {length:,} test images (second half): NFSM {row['accuracy_nfsm']:.1%}, "
        f"GRU {row['accuracy_gru']:.1%}, a perfect adder with the same reader {row['accuracy_possible']:.1%}"
    )
    print(f"the same on images with the table of their digit: NFSM {row['accuracy_nfsm_clean']:.1%}, GRU "
          f"{row['accuracy_gru_clean']:.1%}; sequences of 10: NFSM {row['accuracy_nfsm_10']:.1%}, GRU "
          f"{row['accuracy_gru_10']:.1%}")  # fmt: skip
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--length", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=2000)
    options = parser.parse_args()
    main(options.length, options.steps)
