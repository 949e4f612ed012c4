"""One task in a process of its own: nothing is loaded that another task left behind.

    python benchmarks/alone.py TASK [NUMBER]

makes its data, calls the library once on something tiny, so that its modules are there,
does the task once, and prints CPU seconds, wall seconds and a number to check it by.
"""

import json
import subprocess
import sys
import time

import numpy as np
import synthetic
from timing import ONCE, Timing

FIT, CLASSES = 10_000, 1000


def smooth_ece(n):
    import calibrant as cal

    h, a = synthetic.pairs(n)
    cal.smooth_ece(a[:10], confidence=h[:10])
    return lambda: cal.smooth_ece(a, confidence=h)


def smooth_ece_of_relplot(n):
    import peers

    h, a = synthetic.pairs(n)
    peers.relplot_smooth_ece(h[:10], a[:10])
    return lambda: peers.relplot_smooth_ece(h, a)[0]


def temperature(n):
    from calibrant.recalibration import TemperatureScaling

    z, y = synthetic.logits(n, CLASSES, seed=3)
    TemperatureScaling().fit(z[:10], y[:10])
    return lambda: TemperatureScaling().fit(z, y).temperature_


def temperature_of_torch(n):
    """L-BFGS with strong Wolfe line search: the fair way to do it in torch."""
    import peers

    torch = peers.load("torch")
    torch.set_num_threads(1)
    arrays = synthetic.logits(n, CLASSES, seed=3)
    z, y = (torch.from_numpy(array) for array in arrays)

    def fit(z, y):
        temperature = torch.tensor([1.0], requires_grad=True)
        how = {"lr": 1, "max_iter": 100, "line_search_fn": "strong_wolfe"}
        optimiser = torch.optim.LBFGS([temperature], **how)

        def closure():
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(z / temperature, y)
            loss.backward()
            return loss

        optimiser.step(closure)
        return temperature.item()

    fit(z[:10], y[:10])
    return lambda: fit(z, y)


def temperature_of_scikit_learn(n):
    from record_temperatures import scikit_learn

    z, y = synthetic.logits(n, CLASSES, seed=3)
    scikit_learn(*synthetic.logits(300, 3))
    return lambda: scikit_learn(z, y)


def raced(repeats=3, number=0, **tasks):
    """Timings of tasks by turns, each in processes of its own."""
    timings = {name: Timing() for name in tasks}
    for _ in range(1 if ONCE else repeats):
        for name, task in tasks.items():
            command = [sys.executable, "-W", "ignore", __file__, task, str(number)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            cpu, wall, answer = json.loads(done.stdout.splitlines()[-1])
            found = timings[name]
            found.cpu, found.wall = min(found.cpu, cpu), min(found.wall, wall)
            found.answer = answer
    return timings


def main(task, number):
    work = globals()[task](int(number))
    cpu, wall = time.process_time(), time.perf_counter()
    answer = work()
    took = time.process_time() - cpu, time.perf_counter() - wall
    print(json.dumps([*took, float(np.asarray(answer))]))


if __name__ == "__main__":
    main(*sys.argv[1:])
