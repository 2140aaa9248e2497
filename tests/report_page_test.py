"""Measures the pages that the unit tests rendered, in headless Chromium: from 360 to 1440 pixels, light and
dark, nothing is wider than the window, no text is smaller or fainter than a reader can make out, no label is
cut off, and no name of a check and no digest is broken. The pictures are left beside the pages.

report_page_test.py FOLDER [chromium]

Exits 77 (skipped) where no Chromium is found. The measuring script goes into a copy of each page; the page
itself has none.
"""

import html
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(sys.argv[1])
NAMES = sys.argv[2:] or ["chromium", "chromium-browser", "google-chrome"]
del sys.argv[1:]
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
PAGES = ("pass", "fail", "inconclusive", "overlong")
WIDTHS = (360, 768, 1200, 1440)
SCHEMES = ("light", "dark")
SMALLEST_TEXT = 9  # pixels, as they appear on the screen; the page's own is 16
LONG_NAME = 30  # letters: a longer name may need a second line on a phone
FAINTEST_TEXT = 4.5  # contrast, WCAG 2 level AA
# Name, width, height, scheme. The first is docs/report-fail.png: copy it there when the page changes.
PICTURES = [("fail", 900, 800, "light")]
PICTURES += [(name, *size) for name in ("pass", "fail", "inconclusive")
             for size in ((360, 1400, "light"), (1440, 1200, "dark"))]

# Runs in each page: what sticks out of the window or of a drawing, and what is hard to read.
MEASURE = """
const root = document.documentElement, wide = [], small = [], faint = [], broken = [];
const light = text => {
  const [red, green, blue] = text.match(/[\\d.]+/g).map(Number).map(value =>
    value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const behind = element => {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    if (colour != 'rgba(0, 0, 0, 0)' && colour != 'transparent') return colour;
  }
  return 'rgb(255, 255, 255)';
};
document.querySelectorAll('details').forEach(element => element.open = true);
for (const element of document.querySelectorAll('.head code, .check > .mono, .check > code, .identity code')) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top))).size;
  if (element.textContent.length < LONG_NAME && lines > 1) broken.push(element.textContent);
}
for (const element of document.body.querySelectorAll('*')) {
  const box = element.getBoundingClientRect();
  const name = element.tagName + '.' + (element.getAttribute('class') || '') + ' ' +
    element.textContent.slice(0, 40);
  if (box.width && (box.right > root.clientWidth + 0.5 || box.left < -0.5)) wide.push(name);
  const own = [...element.childNodes].some(node => node.nodeType == 3 && node.textContent.trim());
  if (!own || !box.height || element.closest('script')) continue;
  const svg = element.closest('svg'), style = getComputedStyle(element);
  const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  const size = parseFloat(style.fontSize) * scale;
  if (size < SMALLEST) small.push(size + ' ' + name);
  const [low, high] = [light(svg ? style.fill : style.color), light(behind(element))].sort((a, b) => a - b);
  const contrast = (high + 0.05) / (low + 0.05);
  if (contrast < FAINTEST) faint.push(contrast.toFixed(2) + ' ' + name);
  if (!svg) continue;
  const edge = svg.getBoundingClientRect();
  if (box.left < edge.left - 0.5 || box.right > edge.right + 0.5) wide.push('cut off: ' + name);
}
const result = document.createElement('pre');
result.className = 'measured';
result.textContent = JSON.stringify({name: window.name, inner: innerWidth, client: root.clientWidth,
  scroll: root.scrollWidth, wide, small, faint, broken});
parent.document.body.append(result);
"""
MEASURE = MEASURE.replace("SMALLEST", str(SMALLEST_TEXT)).replace("FAINTEST", str(FAINTEST_TEXT))
MEASURE = MEASURE.replace("LONG_NAME", str(LONG_NAME))


def in_scheme(text, scheme):
    """The page as a reader sees it whose system asks for light or dark."""
    text = text.replace("prefers-color-scheme:dark", "min-width:0" if scheme == "dark" else "max-width:0")
    return text.replace("color-scheme:light dark", "color-scheme:" + scheme)


def frame(name, text, width, height):
    """A window cannot be made as narrow as a phone everywhere; a frame can."""
    return (f'<iframe name="{name}" style="border:0;display:block;width:{width}px;height:{height}px" '
            f'srcdoc="{html.escape(text)}"></iframe>')


def chromium(body, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "frames.html"
        page.write_text(f'<!doctype html><meta charset="utf-8"><body style="margin:0">{body}</body>')
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                   "--hide-scrollbars", "--virtual-time-budget=20000", *arguments, page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "HOME": folder})


def measured(pages):
    """What was measured of each of (name, text, width), by name."""
    frames = ""
    for name, text, width in pages:
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        text = text.replace("</body>", f"<script>{MEASURE}</script></body>")
        frames += frame(name, text, width, 4000)
    done = chromium(frames, "--dump-dom")
    found = re.findall(r'<pre class="measured">(.*?)</pre>', done.stdout, re.S)
    results = {result["name"]: result for result in (json.loads(html.unescape(text)) for text in found)}
    assert set(results) == {name for name, _, _ in pages}, done.stderr[-2000:]
    return results


class Pages(unittest.TestCase):
    maxDiff = None

    def test_everything_is_on_the_page_and_can_be_read(self):
        pages = [(f"{name}-{width}-{scheme}", in_scheme((FOLDER / f"{name}.html").read_text(), scheme), width)
                 for name in PAGES for width in WIDTHS for scheme in SCHEMES]
        results = measured(pages)
        for name, _, width in pages:
            with self.subTest(name):
                result = results[name]
                self.assertEqual(result["inner"], width)
                self.assertEqual(result["wide"], [])
                self.assertEqual(result["scroll"], result["client"])
                self.assertEqual(result["small"], [])
                self.assertEqual(result["faint"], [])
                self.assertEqual(result["broken"], [])

    def test_the_measure_notices_what_is_too_wide_too_small_too_faint_and_broken(self):
        text = ('<!doctype html><body style="margin:0"><p style="width:500px">w</p>'
                '<p style="font-size:6px">s</p><p style="color:#999">f</p>'
                '<div class="identity"><code style="display:block;width:2em;overflow-wrap:anywhere;'
                'line-height:1.2em">447632c94944</code></div></body>')
        result = measured([("bad", text, 360)])["bad"]
        self.assertEqual(result["scroll"], 500)
        self.assertEqual((result["wide"], result["small"]), (["P. w"], ["6 P. s"]))
        self.assertEqual(result["faint"], ["2.85 P. f"])
        self.assertEqual(result["broken"], ["447632c94944"])

    def test_pictures_are_left_to_look_at(self):
        for name, width, height, scheme in PICTURES:
            text = in_scheme((FOLDER / f"{name}.html").read_text(), scheme)
            picture = (FOLDER / f"{name}-{width}-{scheme}.png").resolve()
            picture.unlink(missing_ok=True)
            done = chromium(frame(name, text, width, height), f"--screenshot={picture}",
                            f"--window-size={width},{height}")
            self.assertTrue(picture.exists(), done.stderr[-2000:])
            self.assertEqual(struct.unpack(">II", picture.read_bytes()[16:24])[1], height)


if __name__ == "__main__":
    if CHROMIUM is None:
        print("skipped: no Chromium (Debian: chromium) to measure the pages with")
        sys.exit(77)
    unittest.main()
