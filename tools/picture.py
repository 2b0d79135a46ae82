#!/usr/bin/env python3
"""docs/report.svg: the graph and the memory of the built-in model, taken out of its report by a browser. `make picture`."""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "test"))
sys.dont_write_bytecode = True

from lib.browser import Browser  # noqa: E402

WIDTH, HEIGHT, LEFT = 960, 500, 380
GRAPH = """(() => { const w = find('#graph > g'); w.removeAttribute('transform'); for (const t of w.querySelectorAll('title')) t.remove();
  const b = w.getBBox(); return [b.x, b.y, b.width, b.height, w.innerHTML]; })()"""
MEMORY = "(() => { const m = find('#memory-chart'), r = m.getBoundingClientRect(); for (const t of m.querySelectorAll('title')) t.remove(); return [r.width, r.height, m.innerHTML]; })()"


def styles():
    """The styles of the page that the pictures use: colors, light and dark, and rules for SVG."""
    with open(os.path.join(ROOT, "tools", "report.css"), encoding="utf-8") as f:
        text = f.read()
    light, dark = re.findall(r":root \{(.*?)\}", text, re.S)[:2]
    rules = [x for x in text.splitlines() if x.startswith(("svg text", ".edge", ".box", ".port", ".heat", ".life", ".axis", ".peak {", ".bound", ".alive"))]
    return "svg {" + light + "}\n@media (prefers-color-scheme: dark) { svg {" + dark + "} }\n" + "\n".join(rules)


def main():
    with tempfile.TemporaryDirectory() as folder, Browser() as b:
        page = os.path.join(folder, "r.html")
        subprocess.run([os.path.join(ROOT, "build", "ingot"), "inspect", os.path.join(ROOT, "models", "digits.onnx"), "-d", "batch=1", "--march", "avx2", "--html", page], check=True)
        p = b.open("file://" + page, width=1000, height=900)
        p.wait("find('[data-box]')")
        x, y, w, h, graph = p.eval(GRAPH)
        p.eval("show_tab('memory')")
        p.eval("find('#memory-chart').style.cssText = 'width:560px;height:380px;border:0;box-sizing:content-box'")
        p.wait("find('.life')")
        p.eval("new Promise(done => setTimeout(done, 500))")
        mw, mh, memory = p.eval(MEMORY)
        p.fine()
    scale = min((LEFT - 20) / w, (HEIGHT - 30) / h)
    graph, memory = (re.sub(r"(\d+\.\d)\d+", r"\1", t.replace("&nbsp;", " ")) for t in (graph, memory))
    with open(os.path.join(ROOT, "docs", "report.svg"), "w", encoding="utf-8") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
                'aria-label="A report: kernels with the nodes of the model in them, and memory over time">\n'
                f'<style>\n{styles()}\n</style>\n<rect width="{WIDTH}" height="{HEIGHT}" rx="8" style="fill:var(--page)"/>\n'
                f'<g transform="translate({10 + (LEFT - 20 - w * scale) / 2:.1f} 15) scale({scale:.4f}) translate({-x:.1f} {-y:.1f})">{graph}</g>\n'
                f'<g transform="translate({LEFT} 60)"><text class="word" x="66" y="-18" style="font-size:15px">Memory over time</text>{memory}</g>\n</svg>\n')


if __name__ == "__main__":
    main()
