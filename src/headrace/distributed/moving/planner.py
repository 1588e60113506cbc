"""Which variables to move, so that servers have equal shares: a pure function.

>>> sizes = {"ps0": {"a": 40, "b": 30, "c": 30}, "ps1": {}}
>>> plan_moves(sizes, ["ps0", "ps1"])
[('a', 'ps0', 'ps1')]
>>> plan_moves({"ps0": {"a": 1}, "ps1": {"b": 1}}, ["ps0", "ps1"], retiring=["ps1"])
[('b', 'ps1', 'ps0')]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

__all__ = ["plan_moves"]

#: Shares whose difference is less than this part of the mean are equal.
_EVEN = 0.1


def plan_moves(
    sizes: Mapping[str, Mapping[str, float]],
    tasks: Sequence[str],
    retiring: Collection[str] = (),
) -> list[tuple[str, str, str]]:
    """Moves that empty the tasks that retire, and make the shares of the others about equal.

    Whatever must go first is given to who has least, the largest first (Graham, "Bounds on
    multiprocessing timing anomalies", 1969). Then who has most gives the variable to who has least
    that brings both nearest to each other, while that is worth it.

    Args:
        sizes: the weight of each variable, its bytes for instance, by the task that has it.
        tasks: those that there are, with new ones.
        retiring: those of them that are to have nothing.

    Returns:
        ``(variable, from, to)``, in the order in which to move; each variable at most once.

    Raises:
        ValueError: if no task would be left, or a variable is at two tasks.
    """
    staying = [task for task in tasks if task not in retiring]
    if not staying:
        raise ValueError(f"No task is left for variables: {', '.join(tasks) or 'none'} retire.")
    home: dict[str, str] = {}
    for task, own in sizes.items():
        for name in own:
            if name in home:
                raise ValueError(f"Variable {name} is at {home[name]} and at {task}.")
            home[name] = task
    size = {name: sizes[task][name] for name, task in home.items()}
    shares: dict[str, set[str]] = {task: set() for task in staying}
    for name, task in home.items():
        if task in shares:
            shares[task].add(name)
    load = {task: sum(size[n] for n in names) for task, names in shares.items()}
    homeless = [name for name, task in home.items() if task not in shares]
    for name in sorted(homeless, key=lambda n: (-size[n], n)):
        task = min(staying, key=lambda t: load[t])
        shares[task].add(name)
        load[task] += size[name]
    _make_even(shares, load, size)
    now = {name: task for task, names in shares.items() for name in names}
    order = sorted((n for n in home if now[n] != home[n]), key=lambda n: (home[n], -size[n], n))
    return [(name, home[name], now[name]) for name in order]


def _make_even(
    shares: dict[str, set[str]], load: dict[str, float], size: Mapping[str, float]
) -> None:
    """Let who has most give to who has least; each turn makes the sum of the squares smaller."""
    worth = _EVEN * sum(load.values()) / len(load)
    while True:
        most, least = max(load, key=lambda t: load[t]), min(load, key=lambda t: load[t])
        gap = load[most] - load[least]
        fitting = [n for n in shares[most] if 0 < size[n] < gap]
        if gap <= worth or not fitting:
            return
        name = min(fitting, key=lambda n: (abs(gap - 2 * size[n]), n))
        shares[most].remove(name)
        shares[least].add(name)
        load[most] -= size[name]
        load[least] += size[name]
