"""One colour and one marker for every mechanism, in all pictures.

Okabe and Ito's palette, told apart by readers with any colour vision.
"""

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
    "a_priori": "#009E73",
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
    "a_priori": "P",
    "noisy_distance": "v",
    "ldp": "X",
}


def mechanism_words(name: str) -> str:
    """The name of a row as a picture prints it."""
    return name.replace("_", " ").replace("laplac", "Laplac")
