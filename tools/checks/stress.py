"""What each file of the shared stress folder must lead to, by its name.

Called by tools/checks/faults.py and tests. Names not listed here must come to any clear outcome.
"""

from pathlib import Path

from stillwatch.tools.checks.corpus import Case

# Frames that the files truly hold (README of the folder, and PyAV's count where OpenCV ends early).
ALL = {
    "anim.gif": 15, "anim.png": 10, "audio_then_video.mp4": 27, "bitflips_h264.mp4": 63, "constant_black.mp4": 60,
    "gap_30s.mp4": 63, "gray16_ffv1.mkv": 13, "gray_h264.mp4": 63, "gray_mjpeg.avi": 63, "interlaced_mpeg2.mpg": 12,
    "lying_duration.mp4": 63, "odd_175x131_h264.mp4": 20, "odd_175x131_mjpeg.avi": 20, "ok_av1.mp4": 25,
    "ok_h264.mp4": 63, "ok_h264.ts": 63, "ok_hevc.mp4": 63, "ok_mjpeg.avi": 63, "ok_mjpeg_raw_stream.mjpeg": 63,
    "ok_vp9.webm": 63, "png_renamed.mp4": 1, "pure_noise.mp4": 20, "raw_bgr24_bottomup.avi": 8, "rot90.mp4": 15,
    "sar_4_3.mp4": 25, "single_frame.mp4": 1, "size_change_midstream.ts": 50, "tiny_16x16.mp4": 20,
    "vfr_h264.mp4": 25, "vfr_vp9.webm": 25, "yuv444_h264.mp4": 63,
    "avif.avif": 1, "bmp24.bmp": 1, "cmyk.jpg": 1, "exif_orientation_5.jpg": 1, "exif_orientation_8.jpg": 1,
    "float32.tiff": 1, "gif.gif": 1, "gray16.png": 1, "gray16.tiff": 1, "gray8.jpg": 1, "gray8.png": 1,
    "gray_alpha.png": 1, "jpeg2000.jp2": 1, "lossless.webp": 1, "multipage.tiff": 1, "noext_jpeg": 1,
    "progressive.jpg": 1, "rgb16.tiff": 1, "rgba.png": 1, "wrong_ext_png_inside.jpg": 1,
    "12in16bit.tif": 1, "hopper_16bit.pgm": 1, "no_duration.webm": 74, "unordered.mov": 4, "video_0.mov": 3,
    "video_270.mov": 3, "video_90.mov": 3,
}  # fmt: skip
SOME = {"bitflips_mjpeg.avi": 37, "tree_cinepak.avi": 68}
SOME_UNCOUNTED = ("trunc_faststart_60pct.mp4", "ts_starts_mid_gop.ts")
NONE = (
    "audio_only.mp4", "empty.mp4", "header_only.avi", "random_64k.mp4", "text_renamed.mp4", "thin_8x480.mp4",
    "tiny_2x2.mp4", "trunc_no_moov.mp4", "zeros_64k.avi", "bad_crc.png", "big_12000x12000_1bit.png", "empty.jpg",
    "size_17x13.png", "size_1x1.png", "size_1x3000.png", "size_3000x1.png", "size_8x8_black.png", "trunc_50pct.png",
    "broken.png", "decompression_bomb.gif", "oom-225817ca0f.tif", "truncated_image.png",
)  # fmt: skip
DAMAGED = {"bitflips_h264.mp4": 20, "ts_missing_packets.ts": 7}  # at least: frames that the decoder itself flags


def stress_cases(folder: Path) -> list[Case]:
    """Return a case for every file of the folder's three parts."""
    files = sorted(path for part in ("video", "images", "third_party") for path in (folder / part).glob("*"))
    return [
        Case(f"stress/{path.parent.name}/{path.name}", str(path), _expected(path.name), _refused(path.name))
        for path in files
        if path.is_file()
    ]


def _expected(name: str) -> str:
    if name in ALL:
        return f"all {ALL[name]}"
    if name in SOME:
        return f"some {SOME[name]}"
    if name in SOME_UNCOUNTED:
        return "some"
    return "none" if name in NONE else "any"


def _refused(name: str) -> dict[str, int]:
    if name == "constant_black.mp4":
        return {"dark": 60}
    return {"damaged": DAMAGED[name]} if name in DAMAGED else {}
