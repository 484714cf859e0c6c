"""Estimates the tokens of the parts of a request, and sums them by layer."""

from lamina.core.codec import digest_texts
from lamina.core.values.item import Picture
from lamina.core.values.prompt import LAYERS, Layer, LayerSize, Prompt, Segment

# The tokens that chat templates add around every message; providers differ by one or two.
MESSAGE_TOKENS = 4
CALL_TOKENS = 8
# An image of unknown size; vendors charge 260 to 1,600 for one that fills a screen.
IMAGE_TOKENS = 1_200


def picture_tokens(picture: Picture) -> int:
    if picture.width and picture.height:
        return max(85, min(1_600, picture.width * picture.height // 750))
    return IMAGE_TOKENS


def measure_layers(prompt: Prompt) -> tuple[LayerSize, ...]:
    """Return the tokens, segments and digest of each layer, tools included."""
    groups: dict[Layer, list[Segment]] = {layer: [] for layer in LAYERS}
    for segment in prompt:
        groups[segment.layer].append(segment)
    return tuple(
        LayerSize(
            layer=layer,
            tokens=sum(segment.tokens for segment in segments),
            segments=len(segments),
            digest=digest_texts(segment.digest for segment in segments),
        )
        for layer, segments in groups.items()
    )
