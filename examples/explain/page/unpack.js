/* unpack.js - unpacks the page: html.c writes its style sheets, scripts and data packed, which saves half of it.
 *
 *     Packed.open("style");     the element "packed-style" becomes a <style>
 *     Packed.open("script");    "packed-script" becomes a <script>, and runs at once
 *     Packed.open("data");      "packed-data" becomes the element "data", with the JSON
 *     Packed.read(text)         a file of gzip, from its text
 *
 * Packed text is "size characters", the bytes of a file of gzip in base 91. A browser's DecompressionStream could unpack
 * it, too, but not at once: the reader would see the page without its style first. */
"use strict";

const Packed = (() => {
    /* ---- base 91: each two characters are 13 bits ----------------------------------------------------------------- */

    function read(text) {
        const digit = at => (text[at] === "!" ? "<" : text[at]).charCodeAt(0) - "#".charCodeAt(0);
        const bytes = new Uint8Array(parseInt(text, 10));
        let held = 0, bits = 0, n = 0;
        for (let at = text.indexOf(" ") + 1; n < bytes.length; at += 2) {
            held = held << 13 | (digit(at) * 91 + digit(at + 1));
            for (bits += 13; bits >= 8 && n < bytes.length; n++) bytes[n] = held >> (bits -= 8);
        }
        return bytes;
    }

    /* ---- deflate (RFC 1951) --------------------------------------------------------------------------------------- */

    /* A length or a distance is a base and some extra bits. */
    const LENGTHS = basesOf(3, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5]);
    LENGTHS.push({ base: 258, extra: 0 });
    const DISTANCES = basesOf(1, Array.from({ length: 30 }, (_, n) => Math.max(0, (n >> 1) - 1)));
    const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    const FIXED = [codeOf(Array.from({ length: 288 }, (_, n) => (n < 144 ? 8 : n < 256 ? 9 : n < 280 ? 7 : 8))),
        codeOf(Array(30).fill(5))];

    function basesOf(first, extras) {
        let next = first;
        return extras.map(extra => {
            const base = next;
            next += 1 << extra;
            return { base, extra };
        });
    }

    /* A Huffman code, from the number of bits of each symbol: how many codes have n bits, and the symbols in the order
     * of their codes. */
    function codeOf(lengths) {
        const count = new Uint16Array(16), symbols = [];
        for (let n = 1; n < 16; n++) {
            lengths.forEach((length, symbol) => length === n && symbols.push(symbol));
            count[n] = lengths.filter(length => length === n).length;
        }
        return { count, symbols };
    }

    /* The bits of the bytes from byte `from` on, the lowest of each byte first. */
    function bitsOf(bytes, from) {
        let at = 8 * from;
        const take = n => { /* at most 16 */
            const byte = at >> 3, held = bytes[byte] | bytes[byte + 1] << 8 | bytes[byte + 2] << 16;
            const value = held >> (at & 7) & (1 << n) - 1;
            at += n;
            return value;
        };
        /* The next symbol. `first` is the first code of n bits, and `index` is its symbol's place. */
        const symbol = ({ count, symbols }) => {
            for (let n = 1, code = 0, first = 0, index = 0; n < 16; n++, at++) {
                code = code << 1 | bytes[at >> 3] >> (at & 7) & 1;
                if (code - first < count[n]) {
                    at++;
                    return symbols[index + code - first];
                }
                index += count[n];
                first = first + count[n] << 1;
            }
            throw new Error("this page is damaged");
        };
        const skipToByte = () => (at = at + 7 & ~7);
        return { take, symbol, skipToByte };
    }

    /* The codes of a block, whose lengths are packed themselves. */
    function readCodes({ take, symbol }) {
        const literals = take(5) + 257, distances = take(5) + 1, lengths = Array(19).fill(0), all = [];
        for (let n = take(4) + 4, i = 0; i < n; i++) lengths[ORDER[i]] = take(3);
        const code = codeOf(lengths);
        while (all.length < literals + distances) {
            const s = symbol(code), again = s === 16 ? 3 + take(2) : s === 17 ? 3 + take(3) : s === 18 ? 11 + take(7) : 1;
            const length = s === 16 ? all[all.length - 1] : s > 16 ? 0 : s;
            for (let i = 0; i < again; i++) all.push(length);
        }
        return [codeOf(all.slice(0, literals)), codeOf(all.slice(literals))];
    }

    /* Unpacks a file of gzip that stores no name. Its last four bytes are the size. */
    function inflate(bytes) {
        const out = new Uint8Array(new DataView(bytes.buffer).getUint32(bytes.length - 4, true));
        const input = bitsOf(bytes, 10), { take, symbol } = input;
        let n = 0, isLast = 0;
        function readStored() {
            input.skipToByte();
            const end = n + take(16);
            take(16);
            while (n < end) out[n++] = take(8);
        }
        function readBlock([literals, distances]) {
            for (let s = symbol(literals); s !== 256; s = symbol(literals)) {
                if (s < 256) {
                    out[n++] = s;
                    continue;
                }
                const length = LENGTHS[s - 257], end = n + length.base + take(length.extra);
                const distance = DISTANCES[symbol(distances)], back = distance.base + take(distance.extra);
                for (; n < end; n++) out[n] = out[n - back];
            }
        }
        while (!isLast) {
            isLast = take(1);
            const kind = take(2);
            if (kind) readBlock(kind === 1 ? FIXED : readCodes(input));
            else readStored();
        }
        return out;
    }

    /* ---- the page ------------------------------------------------------------------------------------------------- */

    function open(name) {
        const packed = document.getElementById("packed-" + name), isData = name === "data";
        const element = document.createElement(isData ? "script" : name);
        if (isData) Object.assign(element, { id: "data", type: "application/json" });
        element.textContent = new TextDecoder().decode(inflate(read(packed.textContent)));
        packed.replaceWith(element);
    }

    return { read, open };
})();
