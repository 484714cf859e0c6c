"""Pictures of a note: found, fetched if allowed, and in a form that providers take."""

import base64
import builtins
import random
import struct
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any

import anyio
import pytest
from PIL import Image

from lamina.adapters.files.paths import PathRefused
from lamina.adapters.workspace.picture_files import (
    MAX_PICTURE_BYTES,
    MAX_PICTURES,
    MAX_PIXELS,
    MAX_TRIED,
    SCALED_SIDE,
    NotePictures,
    fit_picture,
    gather_pictures,
    picture_size,
)
from lamina.core.ports import FetchPicture
from lamina.core.values.web_access import FetchedResource, UnfetchedResource

NOTE = PurePosixPath("sub/n.md")


def encoded(form: str, size: tuple[int, int] = (7, 5), mode: str = "RGB", **how: Any) -> bytes:
    target = BytesIO()
    Image.new(mode, size, 1 if mode in ("1", "P", "L") else "red").save(target, form, **how)
    return target.getvalue()


def noise(side: int) -> Image.Image:
    return Image.frombytes("RGB", (side, side), random.Random(1).randbytes(side * side * 3))


def gather(
    content: str,
    files: dict[str, bytes] | None = None,
    fetch: FetchPicture | None = None,
    find: Callable[[str], str | None] | None = None,
) -> NotePictures:
    def read(place: PurePosixPath, limit: int) -> bytes:
        data = (files or {}).get(str(place))
        if data is None:
            raise PathRefused("missing", f"{place} does not exist in the workspace")
        return data

    return anyio.run(gather_pictures, NOTE, content, read, fetch, find)


# -- kinds and sizes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (encoded("PNG"), "image/png"), (encoded("JPEG"), "image/jpeg"),
        (encoded("JPEG", progressive=True), "image/jpeg"), (encoded("GIF"), "image/gif"),
        (encoded("WEBP"), "image/webp"), (encoded("WEBP", lossless=True), "image/webp"),
        (encoded("WEBP", mode="RGBA", exif=b"Exif\0\0"), "image/webp"),
    ],
)  # fmt: skip
def test_what_providers_take_stays_as_it_is_and_its_size_is_known(data: bytes, kind: str) -> None:
    fitted = fit_picture(data)
    assert (fitted.data, fitted.note) == (data, "")
    picture = fitted.picture
    assert (picture.media_type, picture.width, picture.height) == (kind, 7, 5)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (encoded("BMP"), "image/png"), (encoded("ICO", (16, 16)), "image/png"),
        (encoded("TIFF"), "image/jpeg"), (encoded("TIFF", mode="1"), "image/png"),
        (encoded("TIFF", mode="RGBA"), "image/png"), (encoded("AVIF"), "image/jpeg"),
        (encoded("AVIF", mode="RGBA"), "image/jpeg"),
        (encoded("TIFF", mode="CMYK"), "image/jpeg"), (encoded("BMP", mode="P"), "image/png"),
    ],
)  # fmt: skip
def test_other_kinds_are_converted_always_to_the_same_bytes(data: bytes, kind: str) -> None:
    first, second = fit_picture(data), fit_picture(data)
    assert first == second
    assert first.picture.media_type == kind
    assert (first.picture.width, first.picture.height) == picture_size(first.data)
    assert first.note == ""


def test_a_picture_is_shown_the_way_up_that_it_was_taken() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    fitted = fit_picture(encoded("TIFF", (8, 4), exif=exif))
    assert (fitted.picture.width, fitted.picture.height) == (4, 8)


def test_what_is_too_wide_is_scaled_down_and_said() -> None:
    fitted = fit_picture(encoded("PNG", (9_000, 90)))
    assert (fitted.picture.width, fitted.picture.height) == (SCALED_SIDE, 20)
    assert fitted.note == "scaled down from 9,000 x 90 to 2,048 x 20"


def test_what_has_too_many_bytes_is_made_smaller_the_same_way_each_time() -> None:
    target = BytesIO()
    noise(1_400).save(target, "PNG", compress_level=0)
    assert len(target.getvalue()) > MAX_PICTURE_BYTES
    fitted = fit_picture(target.getvalue())
    assert len(fitted.data) <= MAX_PICTURE_BYTES
    assert fitted == fit_picture(target.getvalue())
    assert (fitted.picture.media_type, fitted.picture.width) == ("image/jpeg", 1_400)
    assert fitted.note == "sent as JPEG, as it is too large otherwise"


def test_an_animation_that_is_small_stays_one() -> None:
    frames = [Image.new("P", (4, 4), number) for number in range(3)]
    target = BytesIO()
    frames[0].save(target, "GIF", save_all=True, append_images=frames[1:])
    assert fit_picture(target.getvalue()).data == target.getvalue()


def bomb(side: int) -> bytes:
    """A bitmap that says it is huge, and is a few bytes."""
    head = struct.pack(
        "<2sIHHIIiiHHIIiiII", b"BM", 54, 0, 0, 54, 40, side, side, 1, 24, 0, 0, 0, 0, 0, 0
    )
    return head + bytes(64)


@pytest.mark.parametrize("side", [9_000, 12_000, 60_000])
def test_what_unpacks_to_too_much_is_not_unpacked(side: int) -> None:
    with pytest.raises(PathRefused) as caught:
        fit_picture(bomb(side))
    assert caught.value.detail == f"it unpacks to more than {MAX_PIXELS:,} pixels"


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b'<?xml version="1.0"?>\n<svg xmlns="x"/>', "it is an SVG drawing"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "it is a HEIC photo"),
        (b"hello", "its bytes are not a picture of a kind that is known"),
        (encoded("BMP")[:40], "it is damaged"),
        (encoded("TIFF")[:40], "it is damaged"),
        (encoded("AVIF")[:60], "it is damaged"),
        (encoded("PNG", (9_000, 9))[:60], "it is damaged"),
    ],
)
def test_what_cannot_be_converted_is_refused_with_words(data: bytes, detail: str) -> None:
    with pytest.raises(PathRefused) as caught:
        fit_picture(data)
    assert detail in caught.value.detail
    assert caught.value.reason == "unreadable"


def test_damaged_pictures_give_a_picture_or_words_and_nothing_else() -> None:
    draw = random.Random(1)
    kinds = [encoded(form, (20, 20)) for form in ("BMP", "TIFF", "AVIF", "ICO", "WEBP", "JPEG")]
    for _ in range(400):
        data = bytearray(draw.choice(kinds))
        for _ in range(draw.randint(1, 8)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        with suppress(PathRefused):
            assert len(fit_picture(bytes(data[: draw.randint(4, len(data))])).data) > 0


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_pillow(name: str, *rest: Any, **more: Any) -> Any:
        if name == "PIL":
            raise ImportError(name)
        return real(name, *rest, **more)

    png, bmp = encoded("PNG"), encoded("BMP")
    monkeypatch.setattr(builtins, "__import__", without_pillow)
    assert fit_picture(png).data == png
    with pytest.raises(PathRefused, match=r"pip install 'lamina-context\[notes\]'"):
        fit_picture(bmp)


# -- references ----------------------------------------------------------------------------------


def test_every_form_of_a_picture_is_found() -> None:
    files = {
        "sub/x.png": encoded("PNG", (1, 1)), "sub/a(b).png": encoded("PNG", (2, 1)),
        "root.bmp": encoded("BMP", (3, 1)), "sub/w.tiff": encoded("TIFF", (4, 1)),
    }  # fmt: skip
    data = base64.b64encode(encoded("BMP", (5, 1))).decode()
    note = (
        '![[x.png|300]] ![](a(b).png "t") ![](< x.png >) ![[root.bmp|3x4]] ![[w.tiff#left|9]] '
        f"![](data:image/bmp;base64,{data})"
    )
    found = gather(note, files)
    assert found.warnings == ()
    assert [picture.width for picture in found.pictures] == [1, 2, 3, 4, 5]


def test_a_name_is_looked_for_beside_the_note_then_at_the_root_then_anywhere() -> None:
    files = {"sub/x.png": encoded("PNG", (1, 1)), "x.png": encoded("PNG", (2, 1)),
             "deep/y.png": encoded("PNG", (3, 1))}  # fmt: skip
    find = {"y.png": "deep/y.png"}.get
    assert [
        picture.width for picture in gather("![[x.png]] ![[y.png]]", files, find=find).pictures
    ] == [
        1,
        3,
    ]
    del files["sub/x.png"]
    assert [picture.width for picture in gather("![[x.png]]", files, find=find).pictures] == [2]
    assert gather("![[y.png]]", files).warnings == (
        "sub/n.md: picture 'y.png' is left out: y.png does not exist in the workspace",
    )


def test_a_path_that_names_its_folder_is_not_looked_for_elsewhere() -> None:
    files = {"deep/y.png": encoded("PNG")}
    found = gather("![](img/y.png)", files, find=lambda name: "deep/y.png")
    assert (found.pictures, len(found.warnings)) == ((), 1)


def test_pictures_on_the_web_are_fetched_only_where_that_is_allowed() -> None:
    asked = []

    async def fetch(url: str, limit: int) -> FetchedResource | UnfetchedResource:
        asked.append(url)
        if "gone" in url:
            return UnfetchedResource(reason="missing", detail="the server answered 404")
        return FetchedResource(url=url, media_type="image/png", data=encoded("PNG"))

    note = "![](https://a.test/x.png) ![](//b.test/gone.png) ![](data:image/png,x)"
    fetched = gather(note, fetch=fetch)
    assert sorted(asked) == ["https://a.test/x.png", "https://b.test/gone.png"]
    assert [picture.width for picture in fetched.pictures] == [7]
    assert "the server answered 404" in fetched.warnings[0]
    left = gather(note)
    assert left.pictures == ()
    assert left.warnings[0] == (
        "sub/n.md: picture 'https://a.test/x.png' is left out: pictures are not fetched from the "
        "web unless the setting `web` allows it"
    )


def test_a_note_full_of_pictures_asks_for_so_many_and_says_the_rest() -> None:
    asked = []

    async def fetch(url: str, limit: int) -> FetchedResource | UnfetchedResource:
        asked.append(url)
        return UnfetchedResource(reason="unreadable", detail="no")

    found = gather("".join(f"![](https://a.test/{n}.png)" for n in range(500)), fetch=fetch)
    assert len(asked) == MAX_PICTURES
    assert len(found.warnings) == MAX_TRIED + 1
    assert found.warnings[-1] == "sub/n.md: 400 more pictures are left out; 100 were looked at"


def test_a_picture_that_was_scaled_down_is_said_once() -> None:
    found = gather("![[w.png]] ![](./w.png)", {"sub/w.png": encoded("PNG", (9_000, 9))})
    assert len(found.pictures) == 1
    assert found.warnings == (
        "sub/n.md: picture 'w.png' is scaled down from 9,000 x 9 to 2,048 x 2",
    )


def test_a_drawing_and_a_text_are_named_and_left_out() -> None:
    found = gather("![[d.svg]] ![](t.txt)", {"sub/d.svg": b"<svg></svg>"})
    assert ["SVG drawing" in found.warnings[0], "not one of .png" in found.warnings[1]] == [
        True
    ] * 2
