r"""A formula in plain letters, for places where nothing is typeset: the excerpts of the search.

\beta\bV e^{-\bL T}   →   βV e^(−LT)
"""

from __future__ import annotations

import re
import unicodedata

from docutils.utils.math import tex2unichar as letters

_KNOWN: dict[str, str] = {
    **letters.mathop,
    **letters.mathbin,
    **letters.mathrel,
    **letters.mathord,
    **letters.mathalpha,
    **letters.mathopen,
    **letters.mathclose,
    **letters.mathfence,
    **letters.mathpunct,
    **letters.space,
} | {"lvert": "|", "rvert": "|", "lVert": "‖", "rVert": "‖", "dots": "…", "ldots": "…", "cdots": "…", "bone": "1"}
_KNOWN |= {"epsilon": "ε", "phi": "φ", "varphi": "φ", "quad": " ", "qquad": " ", "top": "⊤", "prime": "′", "At": "Ã"}
_KNOWN |= {"Qh": "Q̂", "Kh": "K̂", "R": "ℝ", "E": "𝔼", "infty": "∞", "le": "≤", "ge": "≥", "to": "→", "colon": ":"}
_ACCENTS = {"tilde": "\u0303", "hat": "\u0302", "bar": "\u0304", "dot": "\u0307", "overline": "\u0304"}
_RAISED = str.maketrans("0123456789+-−=ni*'⊤", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼ⁿⁱ*′ᵀ")
_LOWERED = str.maketrans("0123456789+-−=aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
_ACCENT = r"\\(tilde|hat|bar|dot|overline)"
_FONT = r"\\(?:text\w*|math\w+|boldsymbol|operatorname\*?|boxed|vphantom|pmb)"
_ARGUMENT = r"\s*\{([^{}]*)\}"
_BARE = r"(?![a-zA-Z])\s*(\\[a-zA-Z]+|\w)"  # an argument of one letter needs no braces
_SHIFT = re.compile(r"([\^_])\s*(?:\{([^{}]*)\}|([^\s({\\]))")
_LAYOUT = re.compile(
    r"\\(?:begin|end)\{[^{}]*\}(?:\{[^{}]*\})?|\\label\{[^{}]*\}"
    r"|\\(?:under|over)brace|\\displaystyle|\\[,;:!> ]|\\\\|[&~]"
)


def tex_words(tex: str) -> str:
    r"""The formula with the signs that Unicode has, and the names of functions for the rest.

    >>> tex_words(r"\bZ(T) = e^{-\bL T}\,\bZ(0)"), tex_words(r"\norm{\Delta\At}_2 \le \frac{x}2")
    ('Z(T) = e^(−L T) Z(0)', '‖ΔÃ‖₂ ≤ x/2')
    """
    text = _LAYOUT.sub(" ", re.sub(r"\\(?:left|right|[bB]igg?[lr]?)(?![a-z])", "", tex))
    text = re.sub(r"\\[dt]?frac\s*(\\[a-zA-Z]+|\w)", r"\\frac{\1}", text)
    text = re.sub(r"(\\[dt]?frac\s*\{[^{}]*\})\s*(\\[a-zA-Z]+|\w)", r"\1{\2}", text)
    text = re.sub(rf"({_FONT}|\\sqrt)(?![a-zA-Z]){_BARE}", r"\1{\2}", text)
    text = re.sub(_ACCENT + _BARE, r"\\\1{\2}", text)
    text = re.sub(r"\\([a-zA-Z]+)", lambda found: _letter(found[0]), text)
    before = ""
    while text != before:  # from the innermost braces to the outermost
        before = text
        text = re.sub(r"\\[dt]?frac" + _ARGUMENT * 2, lambda found: "/".join(map(_operand, found.groups())), text)
        text = re.sub(r"\\norm" + _ARGUMENT, r"‖\1‖", text)
        text = re.sub(r"\\sqrt" + _ARGUMENT, r"√(\1)", text)
        text = re.sub(_ACCENT + _ARGUMENT, lambda found: found[2] + _ACCENTS[found[1]], text)
        text = re.sub(_FONT + _ARGUMENT, r"\1", text)
        text = _SHIFT.sub(_shifted, text)
    text = text.replace(r"\|", "‖")
    text = re.sub(r"[{}\\]", "", text).replace("-", "−")
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _shifted(found: re.Match[str]) -> str:
    """An exponent or an index: small, where all its letters exist small, and otherwise in brackets."""
    text = (found[2] or found[3] or "").strip()
    table = _RAISED if found[1] == "^" else _LOWERED
    return text.translate(table) if all(ord(letter) in table for letter in text) else f"{found[1]}({text})"


def _operand(text: str) -> str:
    return text if re.fullmatch(r"\s*[\w∂^²∞]*\s*", text) else f"({text.strip()})"


def _letter(command: str) -> str:
    """What a command means; those that take an argument wait for it."""
    name = command.removeprefix("\\")
    if name in _KNOWN:
        return _KNOWN[name]
    if re.fullmatch(r"b[A-Zxz]", name):  # the book's bold letters
        return name[1]
    waits = re.fullmatch(rf"\\(?:[dt]?frac|norm|sqrt)|{_ACCENT}|{_FONT}", command)
    return command if waits else name
