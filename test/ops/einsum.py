"""Einsum: diagonals, ellipses, implicit outputs, several operands, broadcasting."""
import numpy as np

EQUATIONS = [
    ("ii->i", (3, 3)), ("ii", (3, 3)), ("ii->", (3, 3)), ("...ii->...i", (2, 4, 3, 3)), ("iji->j", (3, 4, 3)),
    ("iij->j", (3, 3, 4)), ("jii->ij", (2, 3, 3)), ("iii->i", (3, 3, 3)), ("ijij->ij", (2, 3, 2, 3)),
    ("a,b,c->cab", (2,), (3,), (4,)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("abc,cd,def->afe", (2, 3, 4), (4, 5), (5, 6, 7)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 6)), ("i...,j...->...ij", (2, 3), (4, 3)), ("...->...", (2, 3)),
    (",->", (), ()), ("a,->a", (3,), ()), ("bij,bjk", (2, 3, 4), (2, 4, 5)), ("ij,ij->", (3, 4), (3, 4)), ("ba", (2, 3)),
    ("B a", (2, 3)), ("aA,Ab", (2, 3), (3, 4)), ("i,i,i->i", (3,), (3,), (3,)), ("ab,a->b", (1, 3), (4,)),
]


def cases(Case, rng):
    for number, (equation, *shapes) in enumerate(EQUATIONS):
        data = {f"x{i}": rng.standard_normal(s).astype(np.float32) for i, s in enumerate(shapes)}
        expect = np.einsum(equation, *data.values()).astype(np.float32)
        yield Case(f"e{number:02}", "Einsum", list(data), ["y"], data, attrs={"equation": equation}, expect=[expect])
