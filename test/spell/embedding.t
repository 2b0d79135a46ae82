# embeddings are gathered where they are used
# groups: 1
# spelling: gather
(int64[2,4] x, float[4,6] w_e, float[4,6] w_p) => (float[2,4,6] y) <int64[4] i = {0, 1, 2, 3}> { a = Gather(w_e, x) b = Gather(w_p, i) y = Add(a, b) }
# spelling: constant_places
(int64[2,4] x, float[4,6] w_e, float[4,6] w_p) => (float[2,4,6] y) { a = Gather(w_e, x) y = Add(w_p, a) }
