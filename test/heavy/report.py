"""Pages of `inspect --html`, `verify --html` and `quantize --html` in a browser: they open without an error and ask for nothing, search finds a node, a click shows it, keys do what
the mouse does, light and dark and a small window; laying out a graph grows with it, not with its square; names that look like HTML are text."""
import json
import os
import shlex

from lib import families, npy
from lib import onnxfile as onnx
from lib.browser import Browser
from lib.core import Skip, Test, want
from suite.cli import MODEL, Cli
from suite.report import DATA, HOSTILE

SHOWN = "document.querySelector('#detail').textContent"
MOST_MS = 4000  # of 8,000 nodes


def page(c, model, *args, html="r.html"):
    got = c.run("inspect", model, *args, "--html", html, limit=300, code=(0, 2))
    if got.rc:  # sizes are missing: those that it proposes
        want("for example: ingot " in got.text(), f"{model}: {got.text()[-300:]}")
        c.run(*shlex.split(got.text().split("for example: ingot ")[1]), limit=300)
    return "file://" + c.path(html)


def digits(c):
    url = page(c, MODEL, "-d", "batch=1", "--march", "avx2")
    with Browser(c.env) as b:
        for dark, width, height in ((False, 1280, 800), (True, 1280, 800), (False, 420, 760)):
            p = b.open(url, dark, width, height)
            p.wait("document.querySelector('[data-box]')")
            want("digits.onnx" in p.eval("document.title"), "the title")
            want(p.eval("document.documentElement.scrollWidth") <= width, "wider than the window")
            p.key("/")
            p.type("conv2")
            want("conv2" in p.wait("document.querySelector('#found li[aria-selected=true]')?.textContent"), "search finds nothing")
            p.key("Enter")
            text = p.eval(SHOWN)
            want("Conv" in text and "kernel_shape=[3,3]" in text and "f32[1,16,8,8]" in text, f"details: {text[:300]}")
            p.wait("document.querySelector('.box.on')")  # its kernel is marked
            p.click("#detail ul:last-of-type button.link")  # the kernel
            want("tile" in p.wait(SHOWN) and "How it is written" in p.eval(SHOWN), f"details of a kernel: {p.eval(SHOWN)[:200]}")
            for tab in ("memory", "kernels", "nodes", "sizes", "messages"):
                p.click("#tab-" + tab)
                p.wait(f"!document.querySelector('#view-{tab}').hidden && document.querySelector('#view-{tab}').children.length")
                p.shot(c.path(f"{tab}-{width}-{'dark' if dark else 'light'}.png"))
            p.click("#tab-graph")
            p.shot(c.path(f"graph-{width}-{'dark' if dark else 'light'}.png"))
            p.fine()


def clicks(c):
    """A click on a box, on a bar and on a row shows what it is; so do arrows; + and 0 change what is seen."""
    url = page(c, MODEL, "-d", "batch=1", "--march", "scalar")
    with Browser(c.env) as b:
        p = b.open(url)
        p.wait("document.querySelector('[data-box]')")
        title = p.eval("document.querySelector('[data-box=\"1\"] .word').textContent")
        p.click("[data-box=\"1\"] rect")
        want(title.rstrip("…") in p.eval(SHOWN), f"{title}: {p.eval(SHOWN)[:100]}")
        p.key("ArrowDown")
        want(p.eval(SHOWN).startswith("2. "), f"the arrow: {p.eval(SHOWN)[:100]}")
        before = p.eval("document.querySelector('#graph g').getAttribute('transform')")
        p.key("+")
        p.wait(f"document.querySelector('#graph g').getAttribute('transform') != {json.dumps(before)}")
        p.key("Enter")
        want(p.eval("document.activeElement.id") == "detail", "Enter goes to the details")
        p.click("#tab-memory")
        p.wait("document.querySelector('.life')")
        name = p.eval("document.querySelector('.life title').textContent").split("\n")[0]
        p.click(".life")
        want(p.eval(SHOWN).startswith(name), f"{name}: {p.eval(SHOWN)[:100]}")
        p.click("#tab-kernels")
        p.click("#view-kernels tbody button.link")
        want(p.eval(SHOWN).startswith("1. "), f"a row: {p.eval(SHOWN)[:100]}")
        p.click("#view-kernels th:nth-child(7) button")
        want(p.eval("document.querySelector('#view-kernels th:nth-child(7)').getAttribute('aria-sort')") == "descending", "sorting")
        want(p.eval("[...document.querySelectorAll('button, input, [tabindex=\"0\"]')].every(e => e.tabIndex >= -1 && (e.textContent || e.getAttribute('aria-label')))"),
             "a control without a name")
        p.fine()


def names(c):
    """Text that looks like HTML or script is shown as text."""
    g = onnx.Graph()
    y = g.input([2, 3], name="x")
    for name in HOSTILE:
        y = g.node("Relu", [y], [name])
    g.output(y, [2, 3])
    c.save("h.onnx", onnx.model(g))
    url = page(c, "h.onnx")
    with Browser(c.env) as b:
        p = b.open(url)
        p.wait("document.querySelector('[data-box]')")
        p.click("#tab-nodes")
        text = p.wait("document.querySelector('#view-nodes').textContent")
        want(all(n in text for n in HOSTILE), f"names: {text[:300]}")
        p.click("#search")
        p.type("名前")
        want("名前" in p.wait("document.querySelector('#found li')?.textContent"), "search for other letters")
        p.key("Enter")
        want("é 名前 <b>&amp;" in p.eval(SHOWN), f"details: {p.eval(SHOWN)[:200]}")
        want("pwned" not in p.eval("document.title") and not p.eval("document.querySelectorAll('b, script:not([id])').length - 1"), "a name became HTML")
        p.fine()


def large(c):
    """8,000 nodes: the layout takes about four times as long as of 2,000, the page opens and search works."""
    took = {}
    with Browser(c.env) as b:
        for family in ("gemm", "diamonds"):
            for n in (2000, 8000):
                families.write(family, n, c.path("big.onnx"))
                url = page(c, "big.onnx")
                want(os.path.getsize(c.path("r.html")) < n * 1200, f"{n} nodes: {os.path.getsize(c.path('r.html'))} bytes")
                opened = [b.open(url) for _ in range(3)]
                want(all(p.wait("window.ingot_layout_ms >= 0") for p in opened), "no layout")
                took[n] = min(p.eval("view.collapsed = false, rebuild(), window.ingot_layout_ms") for p in opened)
            want(took[8000] < MOST_MS and took[8000] < 8 * max(took[2000], 20), f"{family}: layout in {took} ms")
        p = b.open(url)
        p.wait("document.querySelector('#graph path')")
        p.key("/")
        p.type("n_v7000")
        p.key("Enter")
        want("n_v7000" in p.wait(SHOWN), f"details: {p.eval(SHOWN)[:100]}")
        p.shot(c.path("large.png"))
        p.fine()


def repeats(c):
    """Twelve equal layers: one of them and a box for the others, until a click expands them; search finds what is hidden."""
    families.write("gemm", 12, c.path("deep.onnx"))
    url = page(c, "deep.onnx")
    with open(c.path("r.html"), encoding="utf-8") as f:
        kernels = json.loads(DATA.findall(f.read())[0])["kernels"]
    with Browser(c.env) as b:
        p = b.open(url)
        p.wait("document.querySelector('[data-box]')")
        few = p.eval("document.querySelectorAll('[data-box]').length")
        want(few < len(kernels) and "more like the kernel" in p.eval("document.querySelector('#graph').textContent"), f"{few} boxes of {len(kernels)} kernels")
        p.shot(c.path("repeats.png"))
        p.eval("choose({kernel: D.kernels.length - 2}, {show: true})")
        p.wait("document.querySelector('.box.on')")
        p.click(".tools button:last-child")
        p.wait(f"document.querySelectorAll('[data-box]').length > {few}")
        p.click("#tab-kernels")
        want(p.wait("document.querySelector('#view-kernels tbody')?.children.length") == len(kernels), "not all kernels are listed")
        text = p.eval("document.querySelector('#view-kernels').textContent")
        want("Kernel families" in text and all(f["why"] for f in p.eval("D.families")), f"families: {text[-300:]}")
        p.fine()


def networks(c):
    """Real networks, where their files could be had."""
    folder = os.path.join(c.env.build, "models")
    some = sorted(f for f in os.listdir(folder) if f.endswith(".onnx") and f != "silero_vad.onnx") if os.path.isdir(folder) else []
    if not some:
        raise Skip("no files of test/models.txt")
    with Browser(c.env) as b:
        for name in some:
            url = page(c, os.path.join(folder, name), "--march", "avx2", html=name + ".html")
            want(os.path.getsize(c.path(name + ".html")) < 2 << 20, f"{name}: {os.path.getsize(c.path(name + '.html'))} bytes")
            p = b.open(url)
            p.wait("document.querySelector('#graph path')")
            p.shot(c.path(name + ".png"))
            p.fine()


def tables(c):
    """Pages of verify, quantize and inspect --bench: they open on their own table, whose rows are those of the data, and a row leads to its node."""
    npy.save_npz(c.path("x.npz"), {"image": npy.Array("f32", (8, 1, 8, 8), [(i * 7 % 17) / 16 for i in range(512)])})
    c.run("verify", MODEL, "-d", "batch=1", "--engine", "interp", "--html", "errors.html")
    c.run("verify", MODEL, "-d", "batch=1", "--engine", "interp", "--rtol", "0", "--atol", "0", "--html", "wrong.html", code=1)
    c.run("quantize", MODEL, "--data", "x.npz", "-o", "q.onnx", "--html", "layers.html")
    c.run("inspect", MODEL, "-d", "batch=1", "--bench", "--seconds", "0.05", "--march", "sse2", "--html", "kernels.html")
    with Browser(c.env) as b:
        for name, words in (("errors", "all within what is allowed"), ("wrong", "differ by more than is allowed"), ("layers", "SQNR"), ("kernels", "Measured on")):
            with open(c.path(name + ".html"), encoding="utf-8") as f:
                d = json.loads(DATA.findall(f.read())[0])
            view = "#view-" + ("errors" if name == "wrong" else name)
            p = b.open("file://" + c.path(name + ".html"))
            if name == "kernels":
                p.click("#tab-kernels")
            p.wait(f"!document.querySelector('{view}').hidden && document.querySelector('{view} tbody tr')")
            rows = d["errors"] if "errors" in view else d["quantized"]["layers"] if name == "layers" else d["kernels"]
            want(p.eval(f"document.querySelector('{view} tbody').children.length") == len(rows), f"{name}: other rows")
            text = p.eval(f"document.querySelector('{view}').textContent")
            want(words in text and "NaN" not in text and "undefined" not in text, f"{name}: {text[:300]}")
            if name == "layers":
                want(all(row["name"] in text for row in rows), f"layers: {text[:300]}")
            else:
                p.click(f"{view} tbody button.link")
                want(p.wait(SHOWN), f"{name}: a row leads nowhere")
            if name == "kernels":
                want(all(d["families"][k["how"][0]["family"]]["name"] in text for k in rows) and "GFLOP/s" in text, f"kernels: {text[:300]}")
            p.shot(c.path(name + ".png"))
            p.fine()


CASES = (digits, clicks, names, tables, large, repeats, networks)


def tests(env):
    return [Test(f"heavy/report/{fn.__name__}", lambda fn=fn: fn(Cli(env, "heavy_report_" + fn.__name__)), cost=10) for fn in CASES]
