"""The disc of 1,600 nodes while a slider is dragged, by Chromium's own trace: frames a second, and work on each."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from typing import Any

from tests.browser.test_playground import Page
from tools.chromium import Browser, Trace

DISC = "#playground:b=1&t=1&v=row&a=places&d=1&p=curves&g=disc%20of%201%2C600%20nodes"
CATEGORIES = "devtools.timeline,disabled-by-default-devtools.timeline"
# What the page's main thread does for a frame, after the hand has moved: script, style, layout, paint.
WORK = ("FireAnimationFrame", "EventDispatch", "UpdateLayoutTree", "Layout", "PrePaint", "Paint", "Layerize")
# A hand that moves the slider in every frame: a pointer by WebDriver waits for an answer after each step.
HAND = """
const slider = document.querySelector(".advdiff-playground input[type=range][data-key=beta]");
window.isDragged = true;
let moves = 0;
const move = () => {
  if (!window.isDragged) return;
  slider.value = 1.5 + 1.2 * Math.sin(moves++ / 20);
  slider.dispatchEvent(new Event("input", {bubbles: true}));
  requestAnimationFrame(move);
};
requestAnimationFrame(move);
"""


def frames_of(events: list[dict[str, Any]]) -> tuple[float, float]:
    """Frames a second, and the median of the milliseconds that the page's main thread works on one."""
    threads: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and event["name"] in WORK:
            threads[event["pid"], event["tid"]].append(event)
    page = max(threads.values(), key=lambda found: sum(event["name"] == "FireAnimationFrame" for event in found))
    ends = sorted(event["ts"] for event in page if event["name"] == "Layerize")
    assert len(ends) > 2, "no frame was drawn"
    work = [0.0] * len(ends)
    for event in page:
        after = [k for k, end in enumerate(ends) if end >= event["ts"]]
        if after:
            work[after[0]] += event.get("dur", 0) / 1000
    return (len(ends) - 1) / ((ends[-1] - ends[0]) / 1e6), statistics.median(work[1:])


def test_disc_keeps_up_with_a_slider_that_is_dragged(browser: Browser, record_property: Any) -> None:
    page = Page(browser, DISC)
    box = page.box("input[type=range][data-key=beta]")
    places = [
        (box["left"] + box["width"] * (0.1 + 0.8 * abs(1 - k / 30 % 2)), box["top"] + box["height"] / 2)
        for k in range(110)
    ]
    page.mouse("mousePressed", places[0])
    for place in places[:20]:  # until the script is warm
        page.mouse("mouseMoved", place)
    trace = Trace(browser, CATEGORIES)
    for place in places[20:]:
        page.mouse("mouseMoved", place)
    by_pointer = frames_of(trace.stop())
    page.mouse("mouseReleased", places[-1], down=False)
    browser.run(HAND)
    trace = Trace(browser, CATEGORIES)
    time.sleep(3)
    by_script = frames_of(trace.stop())
    browser.run("window.isDragged = false")
    for name, (rate, work) in (("pointer", by_pointer), ("every frame", by_script)):
        record_property(name, f"{rate:.1f} frames a second, {work:.1f} ms of work on each")
        print(f"disc of 1,600 nodes, moved by {name}: {rate:.1f} frames a second, {work:.1f} ms of work on a frame")
    assert max(by_pointer[1], by_script[1]) < 60, "milliseconds of work on the median frame"
    assert min(by_pointer[0], by_script[0]) > 8, "frames a second"
