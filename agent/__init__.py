if __name__ != "stillwatch.agent":
    raise ImportError("import stillwatch.agent, not agent: a second copy of every class would follow")

import os

# Read once when cv2 loads, so it must stand before any import of it: the hard stop behind source.max_pixels.
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(268_435_456))
