"""Payloads made small: raw deflate with a dictionary of the words that messages are made of.

Called by transport/wire/codec.py. Each payload stands for itself: nobody needs an earlier one to read it. It must not
take more memory than the limit that the reader gives, whatever the bytes claim.
"""

import zlib

from stillwatch.transport.wire.errors import DecodeError

MARK = b"\xc1"  # no msgpack value begins with it
LEVEL = 6
# What deflate may refer to from the first byte, the commonest last. Part of schema 2: it never changes.
DICTIONARY = (
    b"prior_strength\xcb\xa9prior_dof\xcb\xabprior_scale\xc8\xaaprior_mean\xc7\xadconcentration\xcb?\xf0\x00\x00\x00\x00"
    b"\x00\x00\xacroster_counts\xc8\xaeroster_weights\xc8\xa6roster\xc8\xa4base\xcd\xa6labels\x80\xa4born\xc7\xa4died\xc7"
    b"\xa6splits\xa6merges\xa6clumps\xcd\xa8singlets\xcd\xa7seconds\xcb\xa7horizon\xce\x00\x98\x96\x80\xafactivated_frame"
    b"\xcd\xabfree_energy\xcb\xabmodel_epoch\xcd\xacn_components\x1e\xa6n_dims\x12\xaacovariance\xa8diagonal\xa4full\xa5"
    b"which\xa7patches\xa6scenes\xa3ids\xc8\xa6counts\xc8\xa7weights\xc8\xa5means\xc8\xa9variances\xc8\xabcovariances\xc8"
    b"\xa8n_clumps\xcd\xa6n_sent\xaamean_scale\xc7\xabmean_offset\xc7\xaevariance_scale\xc7\xa4kind\xa5model\xa4kind\xa6"
    b"clumps\xa4kind\xa3log\xa5level\xa4info\xa7warning\xa5error\xa4code\xa4text\xa5count\xa4kind\xa7summary\xa4kind\xa6"
    b"source\xa6detail\xa8previous\xacstream_epoch\xa5width\xa6height\xa4kind\xa4gate\xacscene_change\xa4kind\xa8exemplar"
    b"\xaeexemplar_frame\xcd\xadexemplar_t_ns\xcf\xa5share\xcb\xa9component\xff\xa4role\xa5frame\xacmost_typical\xadleast_"
    b"typical\xa6newest\xa5label\xa7removed\xa4kind\xa5alert\xaaalert_kind\xa5novel\xacnew_category\xa8returned\xa8vanished"
    b"\xa5phase\xa3new\xa6update\xa3end\xa8severity\xcb\xabstart_frame\xcd\xaastart_t_ns\xcf\xaaduration_s\xcb\xa4peak\xcb"
    b"\xa1x\xcb\xa1y\xcb\xa5boxes\xc7\xa7history\xc7\xa3nav\xadpicture_frame\xcd\xacpicture_t_ns\xcf\xa9thumbnail\xc5\xff"
    b"\xd8\xff\xe0\x00\x10JFIF\xa4kind\xa5score\xa8accepted\xc2\xa6reason\xa6events\xc7\xa6reasons\x91\xa4dark\xa8learning"
    b"\xc3\xa6frozen\xa7stalled\xaaconnecting\xa5ended\xaatx_bytes\x87\xa5score\xa5drops\xaasuppressed\xa7refused\xa7dropped"
    b"\xadtemperature_c\xa9endpoints\x83\xa4data\xb4tcp://127.0.0.1:5570\xa8snapshot\xb4tcp://127.0.0.1:5571\xa7control"
    b"\xb4tcp://127.0.0.1:5572\xaasource_uri\xb0rtsp://\xb0/dev/video\xabsource_kind\xaasynthetic\xa5video\xa8versions\x89"
    b"\xaastillwatch\xa50.1.0\xa50.2.0\xa6python\xa63.11.\xa7machine\xa6x86_64\xa7aarch64\xa5numpy\xa52.4.6\xa5numba\xa60.68"
    b".1\xa8llvmlite\xa60.50.0\xb6opencv-python-headless\xa85.0.0.93\xa44.13\xa2av\xa618.1.0\xa7msgspec\xa60.22.0\xaf"
    b"disk_free_bytes\xcf\x00\x00\x00\xa7rate_hz\xcb@)\x00\xacframe_age_s\xcb?\xa9rss_bytes\xce\xabcpu_seconds\xcb@\xac"
    b"memory_bytes\xce\x01\xabconfig_hash\xb0\xacencoder_hash\xb0\xaamodel_hash\xb0\xa6epochs\x82\xa7patches\xcd\xa6stream"
    b"\x00\xa6alerts\xa6events\xa9sequences\x86\xa6source\x02\xa6scores\xcd\xa5model\xcd\xa8exemplar\xcc\xa5alert\xa8accepted"
    b"\xcd\xa6frames\xcd\xa8learning\xcb?\xf0\x00\x00\x00\x00\x00\x00\xa4kind\xa6status\xa5state\xa4live\x8b\xa4kind\xa6scor"
    b"es\xa6schema\x02\xa5first\xcd\xa6values\xc7\xa8rarities\xc7\xa9surprises\xc7\xa5flags\xc7\xa7offsets\xc7\xa6frames"
    b"\xc7\xa5agent\xa4cam1\xa3run\xad\xa4boot\xa8\xa5epoch\xcf\x00\x00\x01\xa2\xa8sequence\xcd\xa4t_ns\xcf\x00\x00\xa7mono_ns"
    b"\xcf\x00\x00\xa7wall_ns\xcf\x18\xa9source_ns\xcf\x00\x00\xa5frame\xcd"
)


def compact(payload: bytes) -> bytes:
    """Return the shorter one of the payload and its compact form."""
    coder = zlib.compressobj(LEVEL, wbits=-zlib.MAX_WBITS, zdict=DICTIONARY)
    small = MARK + coder.compress(payload) + coder.flush()
    return small if len(small) < len(payload) else payload


def expand(payload: bytes, limit: int) -> bytes:
    """Return the msgpack map of a payload of either form; DecodeError where it is damaged or longer than `limit`."""
    if payload[:1] != MARK:
        return payload
    coder = zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=DICTIONARY)
    try:
        found = coder.decompress(payload[1:], limit + 1)
    except zlib.error as error:
        raise DecodeError(f"compact payload is damaged: {error}") from None
    if len(found) > limit:
        raise DecodeError(f"compact payload is longer than {limit} bytes")
    if not coder.eof or coder.unused_data:
        raise DecodeError("compact payload has no end, or bytes after it")
    return found
