"""One colour and one marker for every mechanism, in all pictures.

Okabe and Ito's palette, told apart by readers with any colour vision. Mechanisms that are not named here take a grey
and a marker of their own, by their name.
"""

from zlib import crc32

COLOURS = {
    "optimal": "#000000",
    "eikonal": "#D55E00",
    "exponential": "#009E73",
    "geometric_clamped": "#0072B2",
    "geometric_normalised": "#CC79A7",
    "planar_laplace": "#56B4E9",
    "laplacian_clamped": "#56B4E9",
    "laplacian_normalised": "#009E73",
    "randomized_response": "#E69F00",
    "smooth": "#D55E00",
    "smooth_tight": "#000000",
    "lipschitz": "#0072B2",
    "input_perturbation": "#009E73",
    "noisy_distance": "#CC79A7",
    "ldp": "#E69F00",
}
MARKERS = {
    "optimal": "o",
    "eikonal": "s",
    "exponential": "^",
    "geometric_clamped": "D",
    "geometric_normalised": "v",
    "planar_laplace": "P",
    "laplacian_clamped": "P",
    "laplacian_normalised": "^",
    "randomized_response": "X",
    "smooth": "s",
    "smooth_tight": "o",
    "lipschitz": "D",
    "input_perturbation": "P",
    "noisy_distance": "v",
    "ldp": "X",
}


_GREYS = ("0.25", "0.45", "0.65")
_OTHERS = ("*", "h", "d", "p", "<", ">")


def mechanism_style(name: str) -> dict[str, str]:
    """The colour and marker of a mechanism, as matplotlib takes them."""
    number = crc32(name.encode())
    colour = COLOURS.get(name, _GREYS[number % len(_GREYS)])
    return {"color": colour, "marker": MARKERS.get(name, _OTHERS[number % len(_OTHERS)])}


def mechanism_words(name: str) -> str:
    """The name of a row as a picture prints it."""
    return name.replace("_", " ").replace("laplac", "Laplac")
