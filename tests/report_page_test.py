"""Measures the pages that the unit tests rendered, in headless Chromium: at 360 and 1440 pixels nothing is
wider than the window, no text is smaller than a reader can make out, and no label is cut off.

report_page_test.py FOLDER [chromium]

Exits 77 (skipped) where no Chromium is found. The measuring script goes into a copy of each page; the
page itself has none.
"""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(sys.argv[1])
NAMES = sys.argv[2:] or ["chromium", "chromium-browser", "google-chrome"]
del sys.argv[1:]
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
PAGES = ("pass", "fail", "inconclusive", "overlong")
WIDTHS = (360, 1440)
SMALLEST_TEXT = 9  # pixels, as they appear on the screen; the page's own is 16

# Runs in the page: what sticks out of the window or of a box that hides it, and the smallest text.
MEASURE = """
const root = document.documentElement, wide = [], small = [];
document.querySelectorAll('details').forEach(element => element.open = true);
for (const element of document.body.querySelectorAll('*')) {
  const box = element.getBoundingClientRect();
  const name = element.tagName + '.' + (element.getAttribute('class') || '') + ' ' +
    element.textContent.slice(0, 40);
  if (box.width && (box.right > root.clientWidth + 0.5 || box.left < -0.5)) wide.push(name);
  const own = [...element.childNodes].some(node => node.nodeType == 3 && node.textContent.trim());
  if (!own || !box.height || element.closest('head,style')) continue;
  const svg = element.closest('svg');
  const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  const size = parseFloat(getComputedStyle(element).fontSize) * scale;
  if (size < SMALLEST) small.push(size + ' ' + name);
  if (svg) {
    const edge = svg.getBoundingClientRect();
    if (box.left < edge.left - 0.5 || box.right > edge.right + 0.5) wide.push('cut off: ' + name);
  }
}
const result = document.createElement('pre');
result.id = 'measured';
result.textContent = JSON.stringify({inner: innerWidth, client: root.clientWidth, scroll: root.scrollWidth,
  wide, small});
parent.document.body.append(result);
"""


def measured(page, width):
    """The page in a frame of that width: a window cannot be made as narrow as a phone everywhere."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    script = "<script>" + MEASURE.replace("SMALLEST", str(SMALLEST_TEXT)) + "</script>"
    text = text.replace("</body>", script + "</body>")
    frame = (f'<!doctype html><body><iframe style="border:0;width:{width}px;height:8000px" '
             f'srcdoc="{html.escape(text)}"></iframe></body>')
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "frame.html"
        copy.write_text(frame)
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                   "--hide-scrollbars", "--virtual-time-budget=10000", "--dump-dom", copy.as_uri()]
        environment = {**os.environ, "HOME": folder}
        dump = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    found = re.search(r'<pre id="measured">(.*?)</pre>', dump.stdout, re.S)
    assert found, dump.stderr[-2000:]
    return json.loads(html.unescape(found[1]))


class Pages(unittest.TestCase):
    def test_nothing_is_wider_than_the_window(self):
        for name in PAGES:
            for width in WIDTHS:
                with self.subTest(page=name, width=width):
                    result = measured(FOLDER / f"{name}.html", width)
                    self.assertEqual(result["inner"], width)
                    self.assertEqual(result["wide"], [])
                    self.assertEqual(result["scroll"], result["client"])
                    self.assertEqual(result["small"], [])

    def test_the_measure_notices_what_is_too_wide_and_too_small(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            page.write_text('<!doctype html><body style="margin:0"><p style="width:500px">w</p>'
                            '<p style="font-size:6px">s</p></body>')
            result = measured(page, 360)
        self.assertEqual(result["scroll"], 500)
        self.assertEqual(result["wide"], ["P. w"])
        self.assertEqual(result["small"], ["6 P. s"])


if __name__ == "__main__":
    if CHROMIUM is None:
        print("skipped: no Chromium (Debian: chromium) to measure the pages with")
        sys.exit(77)
    unittest.main()
