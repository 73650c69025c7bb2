"""packed.py - unpacks a page without a browser, as page/unpack.js does in one."""
import functools, gzip, re


def read(text):
    """The bytes of packed text, "size characters": each two characters are 13 bits."""
    size, _, characters = text.partition(" ")
    digits = [ord("<" if c == "!" else c) - ord("#") for c in characters]
    bits, count = "".join(f"{high * 91 + low:013b}" for high, low in zip(digits[::2], digits[1::2])), int(size)
    return int(bits[:8 * count], 2).to_bytes(count, "big")


@functools.lru_cache(maxsize=8)
def unpacked(page):
    """The page with its style sheets, its scripts and its data as plain elements."""
    def element(found):
        name, text = found.groups()
        content = gzip.decompress(read(text)).decode()
        if name == "data":
            return '<script id="data" type="application/json">\n' + content.replace("</", "<\\/") + "</script>"
        return f"<{name}>\n{content}</{name}>"
    return re.sub(r'<script id="packed-(\w+)"[^>]*>([^<]*)</script>\n<script>Packed\.open\("\1"\);</script>', element, page)
