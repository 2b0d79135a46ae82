"""Prints the goals of a measurement and whether they were reached: the last lines of a program of bench/."""


def verdict(what, value, aim, least=True, form=".2f"):
    """Prints one line; value: None where nothing was measured. least: it must be at least the aim, else at most. True: it is."""
    met = value is not None and (value >= aim if least else value <= aim)
    got = "not measured" if value is None else format(value, form)
    print(f"{'pass' if met else 'MISS' if value is not None else '-':5} {what}: {got}, at {'least' if least else 'most'} {aim:g}", flush=True)
    return met
